"""A classifier of single words: integers in a table, no neural network, about a megabyte.

Guarantee.  What a `WordTable` says of a word is a pure function of the word's characters and of
the integers in its file.  Everything is integer arithmetic and a lookup, so the same word gets
the same scores on every machine, in any company, at any position: the tolerance is 0, and
certificates may cover inserted, deleted and reordered words (``order_free``).

Assumption.  Lower-casing is Python's; a character that a later Unicode gives a lower case to may
be read differently by a later Python.

How a word is scored.  Of a table with a ``normaliser``, the word's normal form is read in its place
(`normalising`).  `word_features` hashes a few forms of the word and its character n-grams.
Each hash names a row of ``entries``; the weighted rows are added to ``bias``, and ``curve``, a
sampled sigmoid, turns each class's sum into a score from 0 to `ONE`.  Every class is judged by
itself: a word may approve of several classes, or of none.  There is no unknown word: a word never
seen before still has n-grams.  A table may also have a ``blank``, what it says before any word is
read: it votes where each distinct word counts once (``family="distinct"``), and there only.

A table with a ``vocabulary`` has a row for each of these words (`normalising.letters`) instead of
hashes.  A word outside of it says nothing: the same for every class.  That is what changed
characters make of most words, so that more of them are proved (`certificates.characters`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import BLANK
from ranmask.errors import ClassifierError, ModelError, OptionError, OutputError, TextError
from ranmask.models import model_config
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import LETTERS, Normaliser, letters
from ranmask.models.word_features import WHOLE, features
from ranmask.words import Hiding, document

FILE_NAME = "words.safetensors"
FILE_VERSION = 2

ONE = 2**20
"""The score 1 in fixed point.  A multiple of 1 / ONE is one of 1 / ``votes.SCALE``, so that
smoothing rounds nothing."""

CURVE_STEPS = 2**7
"""Steps of the curve in a logit of 1; it ends at `CURVE_END`, where it is exactly 0 or `ONE`."""

CURVE_END = 16

_BIAS_LIMIT = 2**40  # sums stay far inside 64 bits
_MOST_WORDS_KEPT = 1 << 17
_MOST_CHARACTERS_KEPT = 1 << 22
_WORDS_AT_ONCE = 1 << 12


def sigmoid_curve() -> npt.NDArray[np.int32]:
    """The sigmoid in fixed point, at every step from -`CURVE_END` to `CURVE_END`."""
    steps = np.arange(CURVE_END * CURVE_STEPS + 1) / CURVE_STEPS
    lower = np.rint(ONE / (1 + np.exp(steps)))
    # Mirrored, so that two scores of opposite sums add up to exactly ONE.
    return np.concatenate([lower[:0:-1], ONE - lower]).astype(np.int32)


class WordTable(BaseClassifier):
    """Scores every word by itself; of a copy with several words, the mean of their scores.

    ``entries`` (int8 or int16; buckets, classes) are what each feature adds to the sums, ``bias``
    (int64; classes) what these begin with, ``blank`` those of a copy that shows no word.  A sum is
    divided by ``2**shift``, and rounded, to find its place on the ``curve`` (int32, rising, from 0
    to at most `ONE`; the sigmoid by default); 0 is in the middle.  ``normaliser``: spellings that
    are read as one; all, by default, are read as they stand.  ``vocabulary``: the words that rows
    of ``entries`` are of, as `spelt` writes them, with the normaliser ``letters`` and no bias.
    """

    outputs = "scores"
    order_free = True
    repeatable = True
    pairs = False

    smoothing: ClassVar[Mapping[str, Any]] = {
        "keep": 1,
        "ensemble": "score",
        "family": "all",
        "masks": 10**6,
    }
    """How a table is meant to be smoothed: ``SmoothedClassifier(table, **table.smoothing)``.
    Every word votes, in texts of up to a million words; longer ones are refused."""

    def __init__(
        self,
        entries: npt.NDArray[np.integer],
        bias: npt.NDArray[np.integer],
        *,
        labels: Sequence[str],
        shift: int,
        curve: npt.NDArray[np.integer] | None = None,
        blank: npt.NDArray[np.integer] | None = None,
        normaliser: Normaliser | None = None,
        vocabulary: npt.NDArray[np.integer] | None = None,
    ) -> None:
        self.normaliser = Normaliser() if normaliser is None else normaliser
        self.labels: tuple[str, ...] = tuple(labels)
        self._entries = _checked("entries", entries, (np.int8, np.int16), 2)
        self._bias = _checked("bias", bias, (np.int64,), 1)
        self._curve = _checked("curve", sigmoid_curve() if curve is None else curve, (np.int32,), 1)
        if not isinstance(shift, int) or isinstance(shift, bool) or not 0 <= shift <= 32:
            raise ModelError(f"a word table's shift must be a number from 0 to 32, not {shift!r}")
        self._shift = shift
        if len(set(self.labels)) < len(self.labels) or len(self.labels) < 2:
            raise ModelError(
                f"a word table needs two or more classes of different names, not {self.labels}"
            )
        if not len(entries) or entries.shape[1:] != bias.shape or len(bias) != len(self.labels):
            raise ModelError(
                f"a word table of {len(self.labels)} classes cannot have entries of shape "
                f"{entries.shape} and a bias of shape {bias.shape}"
            )
        rising = bool((np.diff([0, *self._curve.tolist(), ONE]) >= 0).all())
        if not len(self._curve) % 2 or not rising:
            raise ModelError(
                f"a word table's curve must rise from 0 to at most {ONE}, in an odd number of steps"
            )
        self._blank = None if blank is None else _checked("blank", blank, (np.int64,), 1)
        self.blank = self._blank is not None
        if self._blank is not None and self._blank.shape != self._bias.shape:
            raise ModelError(
                f"a word table of {len(self.labels)} classes cannot have a blank of shape "
                f"{self._blank.shape}"
            )
        for name, sums in (("bias", self._bias), ("blank", self._blank)):
            if sums is not None and max(map(abs, sums.tolist())) >= _BIAS_LIMIT:
                raise ModelError(f"a word table's {name} of {sums.tolist()} is too large")
        self._vocabulary = vocabulary
        if vocabulary is None and self.normaliser.name == LETTERS:
            raise ModelError("a table that reads letters alone needs a vocabulary")
        self.known = None if vocabulary is None else self._read_words(vocabulary)
        self._lock = threading.Lock()  # of the three below: threads may share a table
        self._places: dict[str, int] = {}
        self._rows = np.empty((_MOST_WORDS_KEPT, len(self.labels)), dtype=np.int32)
        self._characters = 0
        self._digest: str | None = None

    @classmethod
    def load(cls, folder: str | Path) -> WordTable:
        """The table in ``folder``, as `save` wrote it."""
        from safetensors import SafetensorError, safe_open

        path = Path(folder) / FILE_NAME
        try:
            with safe_open(path, framework="numpy") as file:
                about = json.loads((file.metadata() or {})["ranmask"])
                version, labels, shift = about["version"], about["labels"], about["shift"]
                digest, spellings = about.get("sha256"), about.get("normaliser")
                names = {"entries", "bias", "curve"} | {"blank", "vocabulary"} & set(file.keys())
                arrays = {name: file.get_tensor(name) for name in names}
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{path} is not a word table, or is damaged: {error}") from error
        if version != FILE_VERSION:
            raise ModelError(f"{path} has version {version!r}; this ranmask reads {FILE_VERSION}")
        if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
            raise ModelError(f"{path} has {labels!r} for the names of its classes")
        try:
            normaliser = Normaliser() if spellings is None else Normaliser(**spellings)
            table = cls(**arrays, labels=labels, shift=shift, normaliser=normaliser)
        except (ModelError, TypeError) as error:
            raise ModelError(f"{path}: {error}") from error
        if table.digest != digest:
            raise ModelError(f"{path} is damaged: it is not the table that was saved")
        return table

    def save(self, folder: str | Path, smoothing: Mapping[str, Any] | None = None) -> None:
        """Write the table, and how it is smoothed, into ``folder``."""
        from safetensors.numpy import save

        path = Path(folder)
        # One key, since safetensors writes several in any order, and the same table is to be the
        # same file, byte for byte.
        about = {"version": FILE_VERSION, "labels": self.labels, "shift": self._shift}
        spelt = json.dumps(about | self._spellings() | {"sha256": self.digest})
        content = save(self._arrays(), {"ranmask": spelt})
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / FILE_NAME).write_bytes(content)
            model_config.write(
                path, model_config.WORDS, self.smoothing if smoothing is None else smoothing
            )
        except OSError as error:
            raise OutputError(f"cannot write a word table to {path}: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes get the table without what it has looked up."""
        made: dict[str, Any] = {"labels": self.labels, "shift": self._shift, **self._arrays()}
        return functools.partial(WordTable, normaliser=self.normaliser, **made), ()

    def renamed(self, labels: Sequence[str]) -> WordTable:
        """This table with other names for its classes."""
        made: dict[str, Any] = {"shift": self._shift, **self._arrays()}
        return WordTable(labels=labels, normaliser=self.normaliser, **made)

    def configured(self, *, hide: Hiding | None = None, mask_token: str | None = None) -> WordTable:
        for name, value in (("hide", hide), ("mask_token", mask_token)):
            if value is not None:
                raise OptionError(
                    f"{name}={value!r} means nothing for a word table, which reads word by word: "
                    "leave it out"
                )
        return self

    def description(self) -> dict[str, object]:
        return {"kind": "words", "sha256": self.digest}

    @property
    def digest(self) -> str:
        """sha256 of everything that decides what this table says."""
        if self._digest is None:
            content = hashlib.sha256()
            for name, array in sorted(self._arrays().items()):
                content.update(f"{name} {array.shape}\n".encode())
                content.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
            content.update(json.dumps([self._shift, *self.labels]).encode())
            if self._spellings():
                content.update(json.dumps(self._spellings(), sort_keys=True).encode())
            self._digest = content.hexdigest()
        return self._digest

    def word_scores(self, word: str) -> tuple[float, ...]:
        """What the table says of one word: a score from 0 to 1 for each class."""
        words = document(word).words
        if words != (word,):
            raise TextError(f"expected one word without blanks around it, not {word!r}")
        return tuple((self._points(words)[0] / ONE).tolist())

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        for text in copies:
            if text.document.premise is not None:
                raise ClassifierError(
                    "a word table reads single texts only, not pairs of premise and hypothesis: "
                    "use an encoder for pairs"
                )
        size = copies[0].kept.shape[1]
        if any(text.kept.shape[1] != size for text in copies):
            return [rows for text in copies for rows in self.score([text])]
        words = [text.document.words for text in copies]
        points = self._points(list(itertools.chain.from_iterable(words)))
        starts = list(itertools.accumulate(map(len, words), initial=0))
        counts = [len(text.kept) for text in copies]
        kept = np.concatenate([text.kept for text in copies])
        places = kept + np.repeat(starts[:-1], counts)[:, None]
        if self._blank is not None:
            points = np.concatenate([points, self._on_curve(self._blank)[None, :]])
            places = np.where(kept == BLANK, len(points) - 1, places)
        if size == 1:
            scores = points[places[:, 0]] / ONE
        else:
            sums = points[places].sum(axis=1, dtype=np.int64)
            # Rounded to a multiple of 1 / ONE in integers: no order of adding, no last bit.
            scores = (2 * sums + size) // (2 * size) / ONE
        ends = itertools.accumulate(counts, initial=0)
        return [scores[start:end] for start, end in itertools.pairwise(ends)]

    def _points(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """Fixed-point scores of each word, shape (words, classes); known words are looked up."""
        with self._lock:
            while True:
                found = map(self._places.get, words, itertools.repeat(-1))
                places = np.fromiter(found, np.intp, len(words))
                missing = np.flatnonzero(places < 0).tolist()
                if not missing:
                    return self._rows[places]
                fresh = list(dict.fromkeys(words[place] for place in missing))
                full = len(self._places) + len(fresh) > _MOST_WORDS_KEPT
                if full or self._characters > _MOST_CHARACTERS_KEPT:
                    self._places, self._characters = {}, 0
                    fresh = list(dict.fromkeys(words))
                self._learn(fresh)

    def _learn(self, fresh: Sequence[str]) -> None:
        if len(fresh) > len(self._rows):
            self._rows = np.empty((len(fresh), len(self.labels)), dtype=np.int32)
        for start in range(0, len(fresh), _WORDS_AT_ONCE):
            group = fresh[start : start + _WORDS_AT_ONCE]
            known = len(self._places)
            self._rows[known : known + len(group)] = self._on_curve(self._sums(group))
            self._places.update(zip(group, itertools.count(known), strict=False))
            self._characters += sum(map(len, group))

    def _sums(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        forms = list(map(self.normaliser, words))
        if self.known is not None:
            places = np.array([self.known.places.get(form, -1) for form in forms])
            found: npt.NDArray[np.int64] = WHOLE * self._entries[places].astype(np.int64)
            found[places < 0] = 0
            return found
        hashes, weights, starts = features(forms)
        parts = self._entries[hashes % len(self._entries)] * weights[:, None]
        sums: npt.NDArray[np.int64] = np.add.reduceat(parts, starts, axis=0) + self._bias
        return sums

    def _read_words(self, vocabulary: npt.NDArray[np.integer]) -> KnownWords:
        read = _checked("vocabulary", vocabulary, (np.uint8,), 1).tobytes()
        words = read.decode(errors="replace").split("\n")
        if len(words) != len(self._entries) or len(set(words)) < len(words):
            raise ModelError(
                f"a vocabulary of {len(set(words))} different words cannot be that of "
                f"{len(self._entries)} entries"
            )
        if self.normaliser.name != LETTERS or not all(
            word and letters(word) == word for word in words
        ):
            raise ModelError("a vocabulary must be of words as the normaliser 'letters' has them")
        if self._bias.any() or self.blank:
            raise ModelError("a table with a vocabulary has no bias and no blank")
        return KnownWords(words)

    def _on_curve(self, sums: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        steps = (sums + (1 << self._shift >> 1)) >> self._shift
        last = len(self._curve) - 1
        found: npt.NDArray[np.int32] = self._curve[np.clip(steps + last // 2, 0, last)]
        return found

    def _spellings(self) -> dict[str, Any]:
        """What the file says of spellings that are read as one: nothing, where all are apart."""
        return {} if self.normaliser.name == "none" else {"normaliser": asdict(self.normaliser)}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        own = {"blank": self._blank, "vocabulary": self._vocabulary}
        arrays = {"entries": self._entries, "bias": self._bias, "curve": self._curve}
        return arrays | {name: array for name, array in own.items() if array is not None}


def spelt(words: Sequence[str]) -> npt.NDArray[np.uint8]:
    """A vocabulary as a table keeps it: one word a line, in UTF-8."""
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _checked(
    name: str, array: npt.NDArray[Any], types: tuple[type[np.integer], ...], dimensions: int
) -> npt.NDArray[Any]:
    if array.dtype not in types or array.ndim != dimensions or not array.size:
        wanted = " or ".join(np.dtype(kind).name for kind in types)
        raise ModelError(
            f"a word table's {name} must be {wanted} of {dimensions} dimensions, not "
            f"{array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array)
