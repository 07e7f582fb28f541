"""The seam between smoothing and models: texts and kept sets in, a row of scores a copy out.

A base classifier is anything that implements `BaseClassifier`.  It owns how a hidden word is
hidden.  **Its one duty: what it says of a copy is a function of the kept words and their
positions alone.**  Every guarantee rests on that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.certificates.votes import Outputs as Outputs
from ranmask.certificates.votes import Scores as Scores
from ranmask.errors import ClassifierError, OptionError, blaming
from ranmask.models.known_words import KnownWords
from ranmask.words import Document, Hiding

_MOST_CODES = 1 << 62  # as many copies can be told apart by one 64-bit number
_NOTHING = ("[MASK]",)  # what is shown of a text all of whose words are deleted
_CHARACTERS_AT_ONCE = 1 << 21  # a list of long texts, laid out at once, would fill the memory


@dataclass(frozen=True, eq=False)
class MaskedCopies:
    """Copies of one text.  Row i of ``kept`` lists the word positions that copy i shows.

    (Or `families.BLANK` in their place, if the classifier can read that.)  Positions run over the
    first ``words_read`` words; later words are shown in no copy.
    """

    document: Document
    words_read: int
    kept: KeptSets

    def __len__(self) -> int:
        return len(self.kept)

    def alone(self, row: int) -> MaskedCopies:
        """One of the copies by itself."""
        return MaskedCopies(self.document, self.words_read, self.kept[row : row + 1])


def whole_copy(document: Document, words_read: int) -> MaskedCopies:
    """The copy of a text that shows every word that is read."""
    return MaskedCopies(document, words_read, np.arange(words_read, dtype=np.int32)[None, :])


@dataclass(frozen=True, eq=False)
class DrawnCopies:
    """Random copies of a text: copy ``i`` shows ``sets[j][choices[i, j]]`` as its word ``j``.

    Words of ``document`` beyond ``sets`` are shown in no copy.
    """

    document: Document
    sets: tuple[tuple[str, ...], ...]
    choices: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def documents(self) -> list[Document]:
        """The copies as texts."""
        columns = zip(self.sets, self.choices.T.tolist(), strict=True)
        copies = zip(*(map(words.__getitem__, column) for words, column in columns), strict=True)
        return [Document(words, self.document.premise) for words in copies]

    @property
    def whole(self) -> list[MaskedCopies]:
        """The copies one by one: each shows all of its words."""
        return [whole_copy(copy, len(self.sets)) for copy in self.documents]

    @property
    def described(self) -> dict[str, Any]:
        """The fields of a result that follow from the copies."""
        read = len(self.sets)
        words = len(self.document.words)
        return {"words": words, "words_read": read, "kept": read, "family": "synonyms"}

    @cached_property
    def distinct(self) -> tuple[DrawnCopies, npt.NDArray[np.intp]]:
        """Copies without repetition, and which of them each copy is."""
        sizes = [len(words) for words in self.sets]
        if math.prod(sizes) > _MOST_CODES:  # of so many, no two are the same in practice
            return self, np.arange(len(self))
        codes = np.zeros(len(self), dtype=np.int64)
        for size, column in zip(sizes, self.choices.T, strict=True):
            if size > 1:
                codes = codes * size + column
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        return replace(self, choices=self.choices[first]), which

    def alone(self, row: int) -> MaskedCopies:
        """One of the copies by itself."""
        [copy] = replace(self, choices=self.choices[[row]]).whole
        return copy


@dataclass(frozen=True, eq=False)
class DeletedCopies:
    """Copies of a text that lack words: row i of ``stays`` says which words copy i has.

    A copy is a text of its own, of which at most ``words_read`` words are read; one without words
    is the word ``[MASK]``.
    """

    document: Document
    words_read: int
    stays: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.stays)

    @property
    def documents(self) -> list[Document]:
        """The copies as texts."""
        words, premise = self.document.words, self.document.premise
        return [Document(shown(words, row), premise) for row in self.stays.tolist()]

    @property
    def whole(self) -> list[MaskedCopies]:
        """The copies one by one: each shows all of its words."""
        copies = self.documents
        return [whole_copy(copy, min(len(copy.words), self.words_read)) for copy in copies]

    @property
    def described(self) -> dict[str, Any]:
        """The fields of a result that follow from the copies; ``kept`` on average."""
        words, kept = len(self.document.words), round(float(self.stays.sum(axis=1).mean()))
        return {"words": words, "words_read": words, "kept": kept, "family": "deletion"}

    @cached_property
    def distinct(self) -> tuple[DeletedCopies, npt.NDArray[np.intp]]:
        """Copies without repetition, and which of them each copy is."""
        packed = np.packbits(self.stays, axis=1)
        codes = packed.view(f"V{packed.shape[1]}").ravel()
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        return replace(self, stays=self.stays[first]), which

    def alone(self, row: int) -> MaskedCopies:
        """One of the copies by itself."""
        [copy] = replace(self, stays=self.stays[[row]]).whole
        return copy


def shown(words: Sequence[str], stays: Sequence[bool]) -> tuple[str, ...]:
    """What a copy shows of a text when words are deleted."""
    return tuple(compress(words, stays)) or _NOTHING


class BaseClassifier(ABC):
    """What smoothing needs of a model."""

    outputs: Outputs = "scores"
    """Whether rows are scores in [0, 1], logits of one choice among the classes (softmax), or
    approvals: logits that judge each class by itself (sigmoid).  A vote does not need to know."""

    labels: tuple[str, ...] | None = None
    """Names of the classes, where the model knows them."""

    order_free: bool = False
    """True promises: what this classifier says of a copy that shows one word depends on that
    word alone, neither on its position nor on the number of words; and all words are read.
    Certificates for inserted, deleted and reordered words rest on it."""

    blank: bool = False
    """Whether it has something to say of a copy that shows no word (`families.BLANK`), the same for
    every text: where each distinct word counts once, that copy votes too, and no edit meets it."""

    known: KnownWords | None = None
    """The words that it says something of, where it says the same for every class of all others:
    certificates of changed characters then reckon with these words, and not with any."""

    pairs: bool | None = None
    """Whether it was made for pairs of premise and hypothesis; None where nobody knows."""

    repeatable: bool = False
    """True says that ranmask knows by construction, or has measured, that what this classifier
    says of a copy moves by no more than its `tolerance`.  Others are asked about a few copies
    again (`rechecking`)."""

    proves: bool = True
    """False says that nobody has looked how far rounding moves what it says: no certificate of it
    is a guarantee."""

    remembered: str | None = None
    """The file that its answers may come from, where there is one."""

    votes_only: bool = False
    """True promises no more of a row than its best class, and whether another is within
    `tolerance` of it.  Such rows may be counted as votes, but their numbers mean nothing else."""

    @abstractmethod
    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """Scores of every copy, shape (copies, classes), for each text of ``copies``."""

    def score_each(self, batches: Iterable[Sequence[MaskedCopies]]) -> Iterator[list[Scores]]:
        """`score` of one batch after another.

        A model on a device may begin one before it has finished the one before.
        """
        return map(self.score, batches)

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        """Scores of random copies, each of which shows all of its words, for each text.

        The same as `score` says of them one by one; models may have a shorter way.
        """
        return self._score_texts(texts)

    def score_deleted(self, texts: Sequence[DeletedCopies]) -> list[Scores]:
        """Scores of copies that lack words, for each text; the same as `score` of them as texts."""
        return self._score_texts(texts)

    def _score_texts(self, texts: Sequence[DrawnCopies | DeletedCopies]) -> list[Scores]:
        owners = [place for place, text in enumerate(texts) for _ in range(len(text))]
        copies = [copy for text in texts for copy in text.whole]
        with blaming(owners):
            said = self.score(copies)
        if len(said) != len(copies) or any(len(rows) != 1 for rows in said):
            # Cut into texts, they would be taken for scores of other copies.
            raise ClassifierError(
                f"{type(self).__name__}.score returned {sum(map(len, said))} rows for "
                f"{len(copies)} texts of one copy each: it must return a table for each text, "
                "with a row for each copy"
            )
        return by_text(np.concatenate(said), texts)

    @abstractmethod
    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> BaseClassifier:
        """This classifier with another way of hiding words; None leaves a setting as it is."""

    def words_read(self, document: Document) -> int:
        """How many of the document's words can be shown at all.  Must not depend on the words.

        It may depend on their number and on the premise, which is assumed unchanged.
        """
        return len(document.words)

    @property
    def without_memory(self) -> BaseClassifier:
        """The classifier that computes, where this one may answer from memory."""
        return self

    @property
    def tolerance(self) -> float:
        """How far the difference of two outputs of one copy may move between computations.

        Each output moves by at most half of it.  0 says that the classifier is exact.
        """
        return 0.0

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the tolerance, and so every certificate, rests on besides, in words."""
        return ()

    def description(self) -> dict[str, object]:
        """What identifies this classifier in a run's record: plain JSON values."""
        return {"kind": type(self).__name__}


class WrappedClassifier(BaseClassifier):
    """A classifier that is another one, ``inner``, in all that it does not define itself.

    How copies are scored is its own; `score_drawn`, `score_deleted` and `without_memory` follow.
    """

    def __init__(self, inner: BaseClassifier) -> None:
        self.inner = inner
        for name in BaseClassifier.__annotations__:
            setattr(self, name, getattr(inner, name))

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> BaseClassifier:
        return type(self)(self.inner.configured(hide=hide, mask_token=mask_token))

    def words_read(self, document: Document) -> int:
        return self.inner.words_read(document)

    @property
    def tolerance(self) -> float:
        return self.inner.tolerance

    @property
    def assumes(self) -> tuple[str, ...]:
        return self.inner.assumes

    def description(self) -> dict[str, object]:
        return self.inner.description()


def by_text(table: npt.NDArray[Any], texts: Sequence[Sized]) -> list[npt.NDArray[Any]]:
    """A table of all rows of all texts, cut into one for each text."""
    return np.split(table, np.cumsum([len(text) for text in texts])[:-1])


def score_full_texts(base: BaseClassifier, texts: Sequence[Document]) -> Scores:
    """What ``base`` says of each full text, with every word shown, a row each; at least one."""
    rows: list[Scores] = []
    start = size = 0
    for stop, text in enumerate(texts, 1):
        size += len(text.premise or "") + sum(map(len, text.words))
        if size >= _CHARACTERS_AT_ONCE or stop == len(texts):
            with blaming(range(start, stop)):
                whole = [whole_copy(text, base.words_read(text)) for text in texts[start:stop]]
                rows.append(np.concatenate(base.score(whole)))  # copied: memory is used again
            start, size = stop, 0
    return np.concatenate(rows)


def check_gives_scores(base: BaseClassifier, purpose: str) -> None:
    """Refuse a classifier of which only the votes are right where its scores are needed."""
    if base.votes_only:
        raise OptionError(
            f"{purpose} needs scores, but with dtype='screened' only votes are those of single "
            "precision: use dtype='float32'"
        )


def check_renamed(labels: Sequence[str], own: Sequence[str]) -> None:
    """Refuse names for the classes of a model that cannot stand for its ``own``, where it has any.

    Other names are fine, as many as there are classes.
    """
    if own and len(labels) != len(own):
        raise OptionError(
            f"labels names {len(labels)} classes ({', '.join(labels)}), but the model has "
            f"{len(own)}: {', '.join(own)}. Name each, in this order, or leave labels out",
            "labels",
        )
    if tuple(labels) != tuple(own) and sorted(labels) == sorted(own):
        raise OptionError(
            f"labels names the model's classes in another order than its scores have: "
            f"{', '.join(own)}. Give them so, or leave labels out",
            "labels",
        )


def check_hiding(hide: str) -> None:
    """Refuse a way of hiding that does not exist."""
    if hide not in get_args(Hiding):
        raise OptionError(f"hide must be 'mask' or 'drop', not {hide!r}")


def checked_scores(raw: object, rows: int, classes: int | None) -> Scores:
    """``raw`` as a finite table of ``rows`` rows and, if given, ``classes`` columns.

    Always a copy: whoever returned ``raw`` may use its memory again.
    """
    try:
        # In one layout, for numpy's sums take another order in another one.
        scores = np.asarray(raw, dtype=np.float64).copy(order="C")
    except (TypeError, ValueError, RuntimeError) as error:
        raise ClassifierError(
            f"the base classifier must return a table of numbers, one row a text, not "
            f"{type(raw).__name__} ({error})"
        ) from error
    if scores.ndim != 2 or scores.shape[0] != rows or scores.shape[1] < 2:
        raise ClassifierError(
            f"the base classifier returned shape {scores.shape} for {rows} texts; expected "
            f"({rows}, classes) with at least 2 classes"
        )
    if classes is not None and scores.shape[1] != classes:
        raise ClassifierError(
            f"the base classifier returned {scores.shape[1]} classes, expected {classes}"
        )
    if not np.isfinite(scores).all():
        place = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise ClassifierError(
            f"the base classifier returned {scores[place].tolist()} for one masked copy: a score "
            "that is not a finite number cannot be counted"
        )
    return scores
