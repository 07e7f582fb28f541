"""What people have, as one function from a list of texts to a table of scores.

A scikit-learn estimator or pipeline, a Hugging Face pipeline, a function, an async function.  What
each may return, `answers` says.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranmask.certificates.votes import Outputs, Scores
from ranmask.errors import ClassifierError, ModelError, OptionError, shortened
from ranmask.models.answers import Classes, score_table
from ranmask.models.cached import CachedModel, Memory

_ROUNDING = 1e-9  # of an estimator: sums of floating point take another order in another batch
_PROBES = ("a", "It was good", "It was not good at all", "Call now and win 100 dollars", "x y z")
_FEATURES = (
    ". It is given texts: where it reads features, put a vectorizer before it, with "
    "sklearn.pipeline.make_pipeline"
)


@dataclass(frozen=True)
class TextFunction:
    """A model as a function of a list of texts.

    ``labels``: its classes, in the order of the scores, where they are known.  ``repeatable``: a
    text always gets the same answer, up to ``tolerance``.  ``memory``: keeps its answers.
    """

    model: Any
    function: Callable[[list[Any]], Any]
    labels: tuple[str, ...] | None = None
    outputs: Outputs = "scores"
    repeatable: bool = False
    tolerance: float = 0.0
    columns: tuple[int, ...] | None = None
    hint: str = ""
    memory: Memory | None = None

    def scores(self, texts: list[Any], who: str, classes: int | None = None) -> Scores:
        """A table (texts, classes), or `ClassifierError` that says what ``who`` did.

        ``classes``: how many there are, where no names say so.
        """
        if self.memory is None:
            return self._asked(texts, who, classes)
        about = {
            "answers": self.digest if self.repeatable else None,
            "labels": self.labels,
            "classes": classes,
            "outputs": self.outputs,
        }
        return self.memory.answers(texts, about, lambda new: self._asked(new, who, classes))

    def _asked(self, texts: list[Any], who: str, classes: int | None) -> Scores:
        size = len(texts)  # the function may change the list
        try:
            raw = self.function(texts)
            if inspect.isawaitable(raw):
                raw = _event_loop.result(raw)
        except (Exception, SystemExit) as error:
            raise ClassifierError(f"{who} raised {_told(error)}{self.hint}") from error
        table = score_table(raw, size, Classes(self.labels, classes), self.outputs, who=who)
        return table if self.columns is None else np.ascontiguousarray(table[:, self.columns])

    @property
    def name(self) -> str:
        """``module:name`` of the model, or of its type."""
        named = self.model
        name = getattr(named, "__qualname__", type(named).__qualname__)
        return f"{getattr(named, '__module__', None) or type(named).__module__}:{name}"

    @cached_property
    def digest(self) -> str | None:
        """What tells two models of one name apart: their answers to a few fixed texts."""
        if self.labels is None:
            return None
        try:
            rows = self._asked(list(_PROBES), "it", None)
        except ClassifierError:
            return None
        return hashlib.sha256(np.rint(rows * 1e6).astype(np.int64).tobytes()).hexdigest()[:16]


def as_text_function(model: Any, labels: Sequence[str] | None = None) -> TextFunction:
    """The function that a model is; ``labels``: the classes, in the order that is wanted.

    The names of an estimator's or a pipeline's classes must be the same; where they are numbers
    from 0, or ``LABEL_0`` and so on, they stand for ``labels`` in their order.
    """
    if isinstance(model, CachedModel):
        memory = Memory(model.path, model.name)
        return replace(as_text_function(model.model, labels), memory=memory)
    asked = ("predict_proba", "decision_function", "predict")
    if hasattr(model, "classes_") and any(hasattr(model, name) for name in asked):
        return _of_estimator(model, labels)
    if is_pipeline(model):
        return _of_pipeline(model, labels)
    given = None if labels is None else tuple(labels)
    if hasattr(model, "check_certifiable"):
        raise OptionError(
            f"a {type(model).__name__} answers with results, not scores: give the model in it, "
            "its base"
        )
    if hasattr(model, "predict") and hasattr(model, "get_params"):
        raise ModelError(f"{type(model).__name__} is no fitted classifier: call its fit first")
    for name in ("predict_proba", "__call__", "predict"):
        if callable(getattr(model, name, None)):
            function = model if name == "__call__" else getattr(model, name)
            return TextFunction(model, function, given)
    raise OptionError(
        f"a model must be callable with a list of texts, or a pipeline of scikit-learn or Hugging "
        f"Face, not {type(model).__name__} {model!r:.60}"
    )


def is_pipeline(model: object) -> bool:
    """Whether a model is a pipeline of Hugging Face's; one for another task is refused."""
    task = getattr(model, "task", None)
    if task is None or not callable(model):
        return False
    if task in ("text-classification", "sentiment-analysis"):
        return True
    if hasattr(model, "model") and hasattr(model, "tokenizer"):
        raise ModelError(f"a pipeline for {task!r} does not classify: use 'text-classification'")
    return False


def pipeline_labels(model: Any) -> tuple[str, ...] | None:
    """The classes of a Hugging Face pipeline, where it says them."""
    config = getattr(getattr(model, "model", None), "config", None)
    if config is None:
        return None
    return tuple(str(config.id2label[place]) for place in range(len(config.id2label)))


def in_given_order(
    own: Sequence[str], labels: Sequence[str] | None, whose: str
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Names of a model's classes, and which of its columns each of ``labels`` is.

    None: all are in order.  Classes without a name, only a number, are named by ``labels``.
    """
    names = tuple(own)
    if len(names) < 2:
        raise ModelError(f"{whose} has one class, {', '.join(names)}: two are needed")
    if labels is None or tuple(labels) == names:
        return names, None
    if sorted(labels) == sorted(names):
        return names, tuple(names.index(label) for label in labels)
    numbers = range(len(labels))
    unnamed = [[form.format(number) for number in numbers] for form in ("{}", "LABEL_{}")]
    if list(names) in [*unnamed, ["False", "True"]] and len(names) == len(labels):
        return tuple(labels), None
    raise ModelError(
        f"{whose} has the classes {', '.join(names)}, and not {', '.join(labels)}: they must be "
        "the same"
    )


def _of_estimator(model: Any, labels: Sequence[str] | None) -> TextFunction:
    """An estimator of scikit-learn's: its probabilities, else its decisions, else its labels."""
    values = list(model.classes_)
    if any(np.ndim(value) for value in values):
        raise ModelError(f"{type(model).__name__} has several outputs: give one of them alone")
    names, columns = in_given_order(
        [str(value) for value in values], labels, f"the {type(model).__name__}"
    )
    outputs: Outputs = "scores"
    if hasattr(model, "predict_proba"):
        function = model.predict_proba
    elif hasattr(model, "decision_function") and not _one_against_one(model):
        function, outputs = model.decision_function, "logits"
    else:

        def function(texts: list[Any]) -> Any:
            said = np.asarray(model.predict(texts), dtype=object)
            return said[:, None] == np.array(values, dtype=object)

    return TextFunction(
        model,
        function,
        names if columns is None else tuple(labels or ()),
        outputs,
        repeatable=True,
        tolerance=_ROUNDING,
        columns=columns,
        hint="" if hasattr(model, "steps") else _FEATURES,
    )


def _one_against_one(model: Any) -> bool:
    """Whether decisions are about pairs of classes, as those of an SVC may be."""
    while inner := getattr(model, "best_estimator_", None) or getattr(model, "steps", None):
        model = inner[-1][1] if isinstance(inner, list) else inner
    return getattr(model, "decision_function_shape", None) == "ovo" and len(model.classes_) > 2


def _of_pipeline(model: Any, labels: Sequence[str] | None) -> TextFunction:
    """A text-classification pipeline of Hugging Face's."""
    own = pipeline_labels(model) or labels
    if own is None:
        raise OptionError("the pipeline does not say its classes: name them with labels", "labels")
    names, columns = in_given_order(own, labels, "the pipeline")

    def function(texts: list[Any]) -> Any:
        shown = [
            text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}
            for text in texts
        ]
        return model(shown, top_k=None, truncation=True)

    # It answers by name, so that no column need be moved.
    return TextFunction(model, function, names if columns is None else tuple(labels or ()))


def _told(error: BaseException) -> str:
    """What was raised, in one line."""
    try:
        return f"{type(error).__name__}: {shortened(' '.join(str(error).split()), 300)}"
    except Exception:  # one that cannot say what it is
        return type(error).__name__


class _EventLoop:
    """One event loop in a thread of its own, so that clients of one call serve the next.

    It also works where the caller's thread runs a loop, as in a notebook.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: int | None = None  # a fork has no thread of its parent's

    def result(self, awaitable: Awaitable[Any]) -> Any:
        """What it comes to; where waiting is interrupted, it is cancelled."""

        async def finished() -> Any:
            return await awaitable

        waiting = asyncio.run_coroutine_threadsafe(finished(), self._running())
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._mutex:
            if self._process != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name="ranmask-async", daemon=True
                )
                self._thread.start()
                self._process = os.getpid()
                atexit.register(self._stop, self._loop, self._thread, self._process)
            return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        loop.run_forever()
        loop.close()

    @staticmethod
    def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
        if process == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=1)


_event_loop = _EventLoop()
