"""What a model may say of a list of texts: one definition, for copies and for whole texts.

    [[0.9, 0.1], ...]                       a number for each class
    [0.1, ...]                              one number a text: for the second of two classes
    ["spam", ...], [1, ...]                 classes by name or number
    [True, ...]                             the second of two classes, or not
    [{"label": "spam", "score": 0.9}, ...]  the same as "spam": other classes have no score
    [[{"label": "spam", "score": 0.9}, ...], ...]   scores by name, as pipelines have them
    [{"ham": 0.1, "spam": 0.9}, ...]                the same

as a list, an array, a tensor (on any device, of any type, with a gradient), or a Series or a
DataFrame of pandas or polars.  A class by name or number has the score 1, and the others 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.certificates.votes import Outputs, Scores
from ranmask.errors import ClassifierError

_NUMBERED = re.compile(r"LABEL_(\d+)")  # what Hugging Face calls classes without a name


@dataclass(frozen=True)
class Classes:
    """What is known of a model's classes: their names, or how many there are, or nothing."""

    labels: tuple[str, ...] | None = None
    number: int | None = None

    @property
    def count(self) -> int | None:
        """How many there are."""
        return self.number if self.labels is None else len(self.labels)

    def place(self, name: object) -> int:
        """Which class a name stands for."""
        if self.labels is None:
            raise ClassifierError(
                f"returned the label {name!r:.60}: say which classes there are, with labels=[...]"
            )
        if name in self.labels:
            return self.labels.index(name)
        numbered = _NUMBERED.fullmatch(name) if isinstance(name, str) else None
        if numbered and int(numbered[1]) < len(self.labels):
            return int(numbered[1])
        raise ClassifierError(
            f"returned the label {name!r:.60}, and the classes are {', '.join(self.labels)}: give "
            "its own names as labels=[...]"
        )


def score_table(
    raw: object, texts: int, classes: Classes, outputs: Outputs = "scores", *, who: str = "it"
) -> Scores:
    """What a model returned for so many texts, as a table (texts, classes) of its own memory.

    Raises `ClassifierError`, which says what ``who`` returned.
    """
    try:
        return _table(raw, texts, classes, outputs)
    except ClassifierError as error:
        raise ClassifierError(f"{who} {error.reason}") from error.__cause__


def _table(raw: object, texts: int, classes: Classes, outputs: Outputs) -> Scores:
    try:
        plain, columns = _plain(raw)
        if _is_named(plain):
            return _named_scores(plain, texts, classes)
        array = np.asarray(plain)
        if array.dtype.kind == "O":  # as pandas and polars hold strings
            strings = all(isinstance(item, str) for item in array.flat)
            array = array.astype(np.str_ if strings and array.size else np.float64)
    except ClassifierError:
        raise
    except Exception as error:  # whatever an object of somebody else's does
        raise ClassifierError(f"returned {_shown(raw)}, no table of numbers ({error})") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape[:1] != (texts,) or array.ndim > 2:
        raise ClassifierError(
            f"returned shape {array.shape} for {texts} texts, no table of numbers: expected "
            f"({texts}, classes), at least 2 classes"
        )
    if array.ndim == 1:
        return _one_a_text(array, classes, outputs)
    if array.dtype.kind not in "fiub":
        raise ClassifierError(f"returned {_shown(raw)}, no table of numbers")
    table = np.array(array, dtype=np.float64, order="C")  # numpy sums others in another order
    if columns is None or classes.labels is None or len(columns) != len(classes.labels):
        return table
    if set(columns) != set(classes.labels):
        return table
    return np.ascontiguousarray(table[:, [columns.index(label) for label in classes.labels]])


def _plain(raw: Any) -> tuple[Any, list[str] | None]:
    """What was returned, as something that numpy reads; and the names of a frame's columns."""
    if hasattr(raw, "logits"):
        raise ClassifierError(
            f"returned a {type(raw).__name__}: return its logits, from a "
            "FunctionClassifier(..., outputs='logits')"
        )
    if hasattr(raw, "detach"):
        return _of_tensor(raw), None
    if hasattr(raw, "to_numpy"):
        names = getattr(raw, "columns", None)
        return raw.to_numpy(), None if names is None else [str(name) for name in names]
    if hasattr(raw, "toarray"):  # a sparse matrix
        return raw.toarray(), None
    if isinstance(raw, Mapping):
        names = ", ".join(map(str, raw))
        raise ClassifierError(f"returned a dict of {names:.60}: return a list, one item a text")
    if isinstance(raw, Iterator):
        raw = list(raw)
    if isinstance(raw, list | tuple) and raw and hasattr(raw[0], "detach"):
        return [_of_tensor(item) for item in raw], None
    return raw, None


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
    """A tensor of torch as an array, without importing torch."""
    tensor = tensor.detach().cpu()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    array: npt.NDArray[Any] = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    return array


def _is_named(plain: Any) -> bool:
    first = plain[0] if isinstance(plain, list | tuple) and plain else None
    if isinstance(first, list | tuple) and first:
        first = first[0]
    return isinstance(first, Mapping)


def _named_scores(rows: Sequence[Any], texts: int, classes: Classes) -> Scores:
    if len(rows) != texts:
        raise ClassifierError(f"returned {len(rows)} answers for {texts} texts")
    return np.array([_named_row(row, classes) for row in rows])


def _named_row(row: Any, classes: Classes) -> list[float]:
    """Scores by name, in the order of the classes."""
    if isinstance(row, Mapping) and isinstance(row.get("label"), str):
        row = [row]
    if not isinstance(row, Mapping):
        row = {item["label"]: item["score"] for item in row}
    scores = {classes.place(name): float(score) for name, score in row.items()}
    number = classes.count or 0
    if len(scores) == 1 and number > 1:  # of the others nothing is known
        return [float(place in scores) for place in range(number)]
    if missing := [place for place in range(number) if place not in scores]:
        name = classes.labels[missing[0]] if classes.labels else missing[0]
        raise ClassifierError(
            f"returned scores of {', '.join(map(str, row))}, and none of {name}: return those of "
            "all classes (top_k=None)"
        )
    return [scores[place] for place in range(number)]


def _one_a_text(array: npt.NDArray[Any], classes: Classes, outputs: Outputs) -> Scores:
    """The table of what was said with one item a text: a name, a number, or a score."""
    if array.dtype.kind == "U":
        known = {name: classes.place(name) for name in dict.fromkeys(array.tolist())}
        return _votes([known[name] for name in array.tolist()], classes.count or 0)
    if array.dtype.kind == "b":
        _check_two(classes, array)
        return _votes(array.astype(np.int64), 2)
    if array.dtype.kind in "iu":
        return _votes(_numbered(array, classes), classes.count or 0)
    if array.dtype.kind != "f":
        raise ClassifierError(f"returned {_shown(array)}, no table of numbers")
    _check_two(classes, array)
    second = np.array(array, dtype=np.float64)
    if outputs != "scores":  # the log-odds of the second class, split so that each moves half
        return np.stack([-second / 2, second / 2], axis=1)
    strange = second[(second < 0) | (second > 1)]
    if len(strange):
        raise ClassifierError(
            f"returned {strange[0]:g} for a text: one number a text is the probability of the "
            "second of two classes. For log-odds use FunctionClassifier(..., outputs='logits'); "
            "class numbers must be integers"
        )
    return np.stack([1 - second, second], axis=1)


def _numbered(array: npt.NDArray[Any], classes: Classes) -> Sequence[int]:
    """Places of classes by number: their names, where all names are numbers, else their order."""
    if classes.labels is not None and all(_is_integer(label) for label in classes.labels):
        return [classes.place(str(number)) for number in array.tolist()]
    if classes.count is None:
        raise ClassifierError(
            f"returned the class {array[0]}: say how many there are, with labels=[...]"
        )
    strange = array[(array < 0) | (array >= classes.count)]
    if len(strange):
        raise ClassifierError(
            f"returned the class {strange[0]}, and there are {classes.count}, counted from 0"
        )
    return array.astype(np.int64)  # type: ignore[return-value]


def _is_integer(label: str) -> bool:
    return re.fullmatch(r"-?\d+", label) is not None


def _votes(places: npt.ArrayLike, classes: int) -> Scores:
    table: Scores = np.eye(classes)[np.asarray(places, dtype=np.int64)]
    return table


def _check_two(classes: Classes, array: npt.NDArray[Any]) -> None:
    if classes.count not in (None, 2):
        raise ClassifierError(
            f"returned one number a text, as {array[0]}, and there are {classes.count} classes: "
            "return one for each class, or class numbers as integers"
        )


def _shown(raw: object) -> str:
    try:
        return f"{type(raw).__name__} {raw!r:.60}"
    except Exception:  # one that cannot be shown
        return type(raw).__name__
