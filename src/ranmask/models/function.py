"""Any Python function from texts to scores, as a base classifier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np

from ranmask.errors import ClassifierError, OptionError
from ranmask.models.base import (
    BaseClassifier,
    MaskedCopies,
    Outputs,
    Scores,
    check_hiding,
    checked_scores,
)
from ranmask.words import Hiding, join

_Batch: TypeAlias = list[tuple[int, Any]]
"""Copies for one call, each with the place of its text."""


class FunctionClassifier(BaseClassifier):
    """Wraps ``function(list of texts) -> scores of shape (texts, classes)``.

    Assumption: the function is deterministic and judges each text by itself, whatever else is in
    the list.  `SmoothedClassifier` asks about a few copies again (``recheck``), and refuses where
    the answer is another; that is no proof.  Where the function raises for a copy the text has no
    label, and `ClassifierError` names it.

    A hidden word is shown as ``mask_token`` (``hide="mask"``) or left out (``hide="drop"``); either
    way nothing of it is left.  A text may show the mask token as a word of its own, and a copy then
    does not tell which words are hidden: what is said of it still depends on visible words alone.
    Pairs reach the function as tuples ``(premise, masked hypothesis)``.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        *,
        mask_token: str = "[MASK]",
        hide: Hiding = "mask",
        outputs: Outputs = "scores",
        labels: Sequence[str] | None = None,
        batch_size: int = 1024,
    ) -> None:
        if not callable(function):
            raise OptionError(f"the base classifier must be callable, not {function!r}")
        if not isinstance(mask_token, str) or [mask_token] != mask_token.split():
            raise OptionError(f"mask_token must be one word without blanks, not {mask_token!r}")
        check_hiding(hide)
        if outputs not in get_args(Outputs):
            raise OptionError(
                f"outputs must be one of {', '.join(get_args(Outputs))}; not {outputs!r}"
            )
        if batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size!r}")
        self.outputs = outputs
        self.labels = tuple(labels) if labels is not None else None
        self._function = function
        self._mask_token = mask_token
        self._hide = hide
        # Where hidden words are left out, a copy of one word is that word and nothing else.
        self.order_free = hide == "drop"
        self._batch_size = batch_size
        self._classes = len(self.labels) if self.labels is not None else None

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> FunctionClassifier:
        return FunctionClassifier(
            self._function,
            mask_token=self._mask_token if mask_token is None else mask_token,
            hide=self._hide if hide is None else hide,
            outputs=self.outputs,
            labels=self.labels,
            batch_size=self._batch_size,
        )

    def description(self) -> dict[str, object]:
        name = getattr(self._function, "__qualname__", type(self._function).__qualname__)
        module = getattr(self._function, "__module__", None)
        return {
            "kind": "function",
            "function": f"{module}:{name}",
            "hide": self._hide,
            "mask_token": self._mask_token,
            "outputs": self.outputs,
        }

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        shown = ((place, copy) for place, text in enumerate(copies) for copy in self.shown(text))
        batches = []
        while batch := list(itertools.islice(shown, self._batch_size)):
            batches.append(self._said_of(batch))
        ends = np.cumsum([len(text) for text in copies])[:-1]
        return np.split(np.concatenate(batches), ends)

    def shown(self, copies: MaskedCopies) -> Iterator[str | tuple[str, str]]:
        """What the function is given for each copy."""
        words = copies.document.words[: copies.words_read]
        premise = copies.document.premise
        for kept in copies.kept.tolist():
            if self._hide == "drop":
                visible = [words[position] for position in kept]
            else:
                visible = [self._mask_token] * len(words)
                for position in kept:
                    visible[position] = words[position]
            text = join(visible)
            yield text if premise is None else (premise, text)

    def _said_of(self, batch: _Batch) -> Scores:
        """Rows of a batch; where that fails, an error that names the text."""
        try:
            return self._call([text for _, text in batch])
        except ClassifierError as error:
            reason, blamed = self._blamed(batch, error)
            texts = {place for place, _ in blamed}
            index = texts.pop() if len(texts) == 1 else None
            if len(blamed) == 1:
                shown = repr(blamed[0][1])
                shown = shown if len(shown) <= 80 else shown[:77] + "..."
                told = f"{reason.reason}, for the copy {shown}"
            else:
                told = (
                    f"{reason.reason}, for {len(blamed)} copies together, though for neither half "
                    "of them: it must judge each text by itself (a smaller batch_size of "
                    "FunctionClassifier may help)"
                )
            raise ClassifierError(told, index) from reason.__cause__

    def _blamed(self, batch: _Batch, error: ClassifierError) -> tuple[ClassifierError, _Batch]:
        """The fewest copies that fail alike, found by halving, and how they do."""
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]) if middle else ():
            try:
                self._call([text for _, text in half])
            except ClassifierError as smaller:
                return self._blamed(half, smaller)
        return error, batch

    def _call(self, texts: list[Any]) -> Scores:
        size = len(texts)  # the function may change the list
        try:
            raw = self._function(texts)
        except (Exception, SystemExit) as error:
            raise ClassifierError(
                f"the base classifier raised {type(error).__name__}: {error}"
            ) from error
        scores = checked_scores(raw, size, self._classes)
        self._classes = scores.shape[1]
        return scores
