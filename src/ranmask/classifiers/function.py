"""Any Python function from texts to scores, as a base classifier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np

from ranmask.classifiers.base import (
    BaseClassifier,
    Hiding,
    MaskedCopies,
    Outputs,
    Scores,
    check_hiding,
    checked_scores,
)
from ranmask.errors import ClassifierError, OptionError, RanmaskError
from ranmask.words import join


class FunctionClassifier(BaseClassifier):
    """Wraps ``function(list of texts) -> scores of shape (texts, classes)``.

    Assumption: the function is deterministic and judges each text by itself, whatever else is in
    the list.  A hidden word is shown as ``mask_token`` (``hide="mask"``) or left out
    (``hide="drop"``); either way nothing of it is left.  Pairs reach the function as tuples
    ``(premise, masked hypothesis)``.
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
        shown = itertools.chain.from_iterable(map(self.shown, copies))
        batches = []
        while batch := list(itertools.islice(shown, self._batch_size)):
            batches.append(self._call(batch))
        ends = np.cumsum([len(one) for one in copies])[:-1]
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

    def _call(self, batch: list[Any]) -> Scores:
        try:
            raw = self._function(batch)
        except RanmaskError:
            raise
        except Exception as error:
            raise ClassifierError(
                f"the base classifier raised {type(error).__name__}: {error}"
            ) from error
        scores = checked_scores(raw, len(batch), self._classes)
        self._classes = scores.shape[1]
        return scores
