"""Functions, pipelines and estimators from texts to scores, as base classifiers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import numpy as np

from ranmask.errors import ClassifierError, OptionError, shortened
from ranmask.models.adapters import (
    TextFunction,
    as_text_function,
    in_given_order,
    is_pipeline,
    pipeline_labels,
)
from ranmask.models.base import (
    BaseClassifier,
    MaskedCopies,
    Outputs,
    Scores,
    by_text,
    check_hiding,
    checked_scores,
)
from ranmask.models.cached import CachedModel
from ranmask.words import Hiding, join

_Batch: TypeAlias = list[tuple[int, Any]]
"""Copies for one call, each with the place of its text."""


class FunctionClassifier(BaseClassifier):
    """Wraps ``function(list of texts) -> scores``, or what can be read as one (`adapters`).

    That is also an async function, a scikit-learn estimator, whose decisions are read as log-odds
    where it has no probabilities, or a Hugging Face pipeline; what they may return `answers` says.
    ``labels`` are the classes in the order of the scores, which names and numbers of classes need.

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
        function: Any,
        *,
        mask_token: str = "[MASK]",
        hide: Hiding = "mask",
        outputs: Outputs | None = None,
        labels: Sequence[str] | None = None,
        batch_size: int = 1024,
    ) -> None:
        if not isinstance(mask_token, str) or [mask_token] != mask_token.split():
            raise OptionError(f"mask_token must be one word without blanks, not {mask_token!r}")
        check_hiding(hide)
        if outputs is not None and outputs not in get_args(Outputs):
            raise OptionError(
                f"outputs must be one of {', '.join(get_args(Outputs))}; not {outputs!r}"
            )
        if batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size!r}")
        known = isinstance(function, TextFunction)
        asked: TextFunction = function if known else as_text_function(function, labels)
        self._function = asked if outputs is None else replace(asked, outputs=outputs)
        self.outputs, self.labels = self._function.outputs, self._function.labels
        self._mask_token = mask_token
        self._hide = hide
        # Where hidden words are left out, a copy of one word is that word and nothing else.
        self.order_free = hide == "drop"
        self._batch_size = batch_size
        self._classes: int | None = None  # as many as it scored before
        memory = self._function.memory
        self.remembered = None if memory is None else str(memory.path)

    @property
    def tolerance(self) -> float:
        return self._function.tolerance

    @property
    def without_memory(self) -> FunctionClassifier:
        if self._function.memory is None:
            return self
        forgetful = replace(self._function, memory=None)
        return self._over(forgetful, self._mask_token, self._hide)

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> FunctionClassifier:
        token = self._mask_token if mask_token is None else mask_token
        return self._over(self._function, token, self._hide if hide is None else hide)

    def _over(self, function: TextFunction, mask_token: str, hide: Hiding) -> FunctionClassifier:
        size = self._batch_size
        return FunctionClassifier(function, mask_token=mask_token, hide=hide, batch_size=size)

    def description(self) -> dict[str, object]:
        told: dict[str, object] = {
            "kind": "function",
            "function": self._function.name,
            "hide": self._hide,
            "mask_token": self._mask_token,
            "outputs": self.outputs,
        }
        if not self._function.repeatable:
            return told
        return {**told, "answers": self._function.digest}

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        shown = ((place, copy) for place, text in enumerate(copies) for copy in self.shown(text))
        batches = []
        while batch := list(itertools.islice(shown, self._batch_size)):
            batches.append(self._said_of(batch))
        return by_text(np.concatenate(batches), copies)

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
                told = f"{reason.reason}, for the copy {shortened(repr(blamed[0][1]), 80)}"
            else:
                told = (
                    f"{reason.reason}: a list of {len(blamed)} copies fails, each half of it does "
                    "not. It is called with a list of texts, and must judge each text by itself "
                    "(a smaller batch_size of FunctionClassifier may help)"
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
        raw = self._function.scores(texts, "the base classifier")
        if self.labels is not None and len(self.labels) != raw.shape[1]:
            raise OptionError(
                f"labels names {len(self.labels)} classes ({', '.join(self.labels)}), but "
                f"the base classifier scores {raw.shape[1]}"
            )
        scores = checked_scores(raw, size, self._classes)
        self._classes = scores.shape[1]
        return scores


def as_base(
    model: Any,
    labels: Sequence[str] | None = None,
    *,
    hide: Hiding | None = None,
    mask_token: str | None = None,
) -> BaseClassifier:
    """A base classifier from what users have; one of ranmask's own is left as it is.

    Of a Hugging Face pipeline it is its model, which `HuggingFaceClassifier` shows copies to far
    faster than the pipeline does.
    """
    if isinstance(model, str):
        raise OptionError(f"{model!r} is no classifier: load a model with from_pretrained")
    if isinstance(model, BaseClassifier):
        return model.configured(hide=hide, mask_token=mask_token) if hide or mask_token else model
    hiding: dict[str, Any] = {"hide": hide, "mask_token": mask_token}
    hiding = {name: value for name, value in hiding.items() if value}
    if isinstance(model, CachedModel) and is_pipeline(model.model):
        raise OptionError(
            f"{model.path} can keep what a pipeline says as a reader of whole texts, but copies "
            "are shown to its model: leave the cache out, or give a function that calls it"
        )
    own = pipeline_labels(model) if is_pipeline(model) else None
    if own is None:
        return FunctionClassifier(model, labels=labels, **hiding)
    in_given_order(own, labels, "the pipeline")  # raises where they are not the same classes
    from ranmask.models.huggingface import HuggingFaceClassifier

    return HuggingFaceClassifier(model.model, model.tokenizer, **hiding)
