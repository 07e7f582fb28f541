"""What a smoothed classifier proves against each threat that it was asked about, from one pass.

`ThreatProver` is between `smoothed` and `certificates.threat_radii`: it refuses what cannot be
proved, and scores the words that a table of synonyms lists, in the places of a text's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import Radius
from ranmask.certificates.families import BLANK
from ranmask.certificates.replacements import Replacements, least_differences
from ranmask.certificates.threat_radii import ThreatProofs
from ranmask.certificates.threats import GROWING, MOVING
from ranmask.certificates.votes import Votes
from ranmask.errors import ClassifierError, OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.synonyms import FILE_NAME, SynonymSets
from ranmask.options import DEFAULT_MASKS, SYNONYMS, SmoothingOptions
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.voting import ScoredTexts
from ranmask.words import Document, usable

Score: TypeAlias = Callable[[Sequence[MaskedCopies]], Votes]
"""What is said of copies, as votes."""

_FEW_CLASSES = 8
_MOST_KEPT = 1 << 18  # words, and what is said of listed ones


def check_threats(
    options: SmoothingOptions, base: BaseClassifier, synonyms: SynonymSets | None
) -> None:
    """Refuse a threat that this base classifier, or the lack of a table, leaves unproved."""
    moving = next((name for name in options.all_threats if name in MOVING), None)
    for wanted, asked, instead in (
        (f"threat={moving!r}", moving is not None, "threat='substitutions' or 'span'"),
        ("family='distinct'", options.family == "distinct", "family='auto'"),
    ):
        if asked and not base.order_free:
            raise OptionError(
                f"{wanted} needs a base classifier that is blind to the order and number of "
                f"words, which this {type(base).__name__} is not: use a word table, or a "
                f"function with hide='drop'; or {instead}"
            )
    if SYNONYMS in options.all_threats and synonyms is None:
        raise OptionError(
            "threat='synonyms' needs a table: give synonyms, a file on the command line; in Python "
            "SynonymSets, or a mapping from words to lists of words",
            "synonyms",
        )


def as_synonyms(given: SynonymSets | Mapping[str, Sequence[str]] | None) -> SynonymSets | None:
    """A table of synonyms, as it was given."""
    if given is None or isinstance(given, SynonymSets):
        return given
    if not isinstance(given, Mapping):
        raise OptionError(
            f"synonyms must be SynonymSets or a mapping from words to lists of words, not a "
            f"{type(given).__name__}"
        )
    return SynonymSets(given)


def with_saved_synonyms(folder: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options with the table that was saved beside a model, unless one is given."""
    if options.get("synonyms") is None and (Path(folder) / FILE_NAME).is_file():
        return {**options, "synonyms": SynonymSets.load(Path(folder))}
    return options


def covered(options: SmoothingOptions, synonyms: SynonymSets | None) -> dict[str, object]:
    """What the certificates of these options assume of the attacker, for `assumptions`."""
    found: dict[str, object] = {"threats": options.all_threats}
    grows = any(threat in GROWING for threat in options.all_threats)
    if grows and options.voting_family != "auto":
        found["most_words"] = options.masks or DEFAULT_MASKS
    if synonyms is not None and SYNONYMS in options.all_threats:
        found["table"] = synonyms.name
    return found


@dataclass(frozen=True, eq=False)
class _Known:
    """What is said of the words that a table lists for some words, wherever they stand.

    ``numbers``: the words, numbered.  ``first`` and ``sizes``: which rows of ``said`` are theirs.
    ``least``: the `least_differences` of these, where there are few classes.
    """

    numbers: dict[str, int]
    first: Ints
    sizes: Ints
    said: Votes
    least: Ints

    def with_more(self, words: Sequence[str], sizes: Ints, said: Votes) -> _Known:
        """The same, and more words; nothing that others may be reading is changed."""
        numbers = self.numbers | dict(zip(words, count(len(self.numbers)), strict=False))
        first = len(self.said.best) + np.cumsum(sizes) - sizes
        return _Known(
            numbers,
            np.append(self.first, first),
            np.append(self.sizes, sizes),
            _joined([self.said, said]),
            np.concatenate([self.least, least_differences(said, sizes)])
            if said.classes <= _FEW_CLASSES
            else self.least,
        )


class ThreatProver:
    """Radii against threats.  ``score`` gives the votes of copies.

    What is said of a listed word is remembered where it depends on the word alone.
    """

    def __init__(
        self,
        options: SmoothingOptions,
        base: BaseClassifier,
        synonyms: SynonymSets | None,
        score: Score,
    ) -> None:
        self._options, self._base, self._synonyms, self._score = options, base, synonyms, score
        self._masks = options.masks or DEFAULT_MASKS
        self._listed: dict[str, tuple[str, ...]] = {}
        self._known: _Known | None = None

    def proofs(self, scored: ScoredTexts[MaskedText]) -> ThreatProofs:
        """What is proved of texts, against all threats of the options."""
        self.check(self._options.all_threats, scored.texts)
        asked = SYNONYMS in self._options.all_threats
        replacements = self._replacements(scored) if asked else None
        return ThreatProofs(scored.votes, [text.family for text in scored.texts], replacements)

    def check(self, threats: Sequence[str], texts: Sequence[MaskedText]) -> None:
        """Refuse texts that one of the threats is not proved for."""
        moving = any(threat in MOVING for threat in threats)
        single = next((threat for threat in threats if threat in (*MOVING, SYNONYMS)), None)
        for text in texts if single else ():
            if moving and text.words_read != len(text.document.words):
                raise ClassifierError(
                    f"the base classifier says that it is blind to the number of words, but reads "
                    f"{text.words_read} of {len(text.document.words)}: an insertion could push "
                    "words out of sight"
                )
            family = text.family
            if not family.single and family.places is None:
                raise OptionError(
                    f"threat={single!r} needs a copy for every word, and {family.words} words are "
                    f"more than masks={self._masks}: raise masks"
                )

    def radii(self, threat: str, proofs: ThreatProofs, texts: Sequence[MaskedText]) -> list[Radius]:
        """The radii of texts against one threat, with their worst words."""
        found = proofs.radii(threat)
        numbers = self._claimed(threat, [radius.words for radius in found], texts)
        return [
            radius if radius.words == number else replace(radius, words=number, worst=())
            for radius, number in zip(found, numbers, strict=True)
        ]

    def numbers(
        self, threat: str, proofs: ThreatProofs, texts: Sequence[MaskedText]
    ) -> list[int | None]:
        """The radii as numbers."""
        return self._claimed(threat, proofs.numbers(threat), texts)

    def _claimed(
        self, threat: str, numbers: list[int | None], texts: Sequence[MaskedText]
    ) -> list[int | None]:
        """Radii as they are claimed.

        A text of more than ``masks`` words is voted on by a sample of them where the family is
        ``auto``: no radius reaches so far.  If all words that are read may be replaced, all may.
        """
        pairs = zip(numbers, texts, strict=True)
        if threat == SYNONYMS:
            return [
                len(text.document.words) if number == text.words_read else number
                for number, text in pairs
            ]
        if threat not in GROWING or self._options.voting_family != "auto":
            return numbers
        return [
            number if number is None else min(number, self._masks - text.words_read)
            for number, text in pairs
        ]

    # -- what a table lists --------------------------------------------------------------------

    def _replacements(self, scored: ScoredTexts[MaskedText]) -> Replacements:
        votes = scored.votes
        words = [_shown_words(text) for text in scored.texts]
        nothing = replace(_taken(votes, np.zeros(0, dtype=np.int64)), readings=None)
        once = scored.texts[0].family.places is not None
        if self._base.order_free:
            known, numbers = self._looked_up(words, nothing)
            sizes = known.sizes[numbers]
            if not once and votes.classes <= _FEW_CLASSES:
                labels = np.repeat(votes.winners, votes.copies)
                return Replacements(sizes, least=known.least[numbers, labels])
            first = known.first[numbers] - (np.cumsum(sizes) - sizes)
            rows = np.arange(int(sizes.sum())) + np.repeat(first, sizes)
            said = _taken(known.said, rows)
        else:
            sizes, said = self._in_place(scored.texts, nothing)
        ends = np.cumsum([len(own) for own in words])
        copies = np.diff(np.append(0, np.cumsum(sizes)[ends - 1]))
        present = np.zeros(len(said.best), dtype=bool)
        if once:
            standing = (
                [other in own for word in own for other in self._others(word)]
                for own in map(dict.fromkeys, words)
            )
            present = np.fromiter(chain.from_iterable(standing), dtype=bool, count=len(present))
        return Replacements(sizes, replace(said, copies=copies), present)

    def _others(self, word: str) -> tuple[str, ...]:
        """What the table lists for a word, and can be classified."""
        listed = self._listed.get(word)
        if listed is None:
            assert self._synonyms is not None
            found = self._synonyms.replacements(word)[1:] if word else ()
            if len(self._listed) >= _MOST_KEPT:
                self._listed = {}
            listed = self._listed[word] = tuple(filter(usable, found))
        return listed

    def _looked_up(
        self, words: Sequence[Sequence[str]], nothing: Votes
    ) -> tuple[_Known, npt.NDArray[np.intp]]:
        """What is said of listed words, and the number there of each word of the texts."""
        flat, known = list(chain.from_iterable(words)), self._known
        if known is None or len(known.said.best) > _MOST_KEPT:
            none, classes = np.zeros(0, dtype=np.int64), nothing.classes
            known = _Known({}, none, none, nothing, np.zeros((0, classes, classes), dtype=np.int64))
        while True:
            found = map(known.numbers.get, flat, repeat(-1))
            numbers = np.fromiter(found, np.intp, len(flat))
            missing = np.flatnonzero(numbers < 0).tolist()
            if not missing:
                return known, numbers
            fresh = list(dict.fromkeys(flat[place] for place in missing))
            listed = [self._others(word) for word in fresh]
            rows = tuple(chain.from_iterable(listed))
            places = np.arange(len(rows), dtype=np.int32)[:, None]
            said = nothing
            if rows:
                said = _joined(
                    [nothing, self._score([MaskedCopies(Document(rows), len(rows), places)])]
                )
            self._known = known = known.with_more(fresh, np.array([*map(len, listed)]), said)

    def _in_place(self, texts: Sequence[MaskedText], nothing: Votes) -> tuple[Ints, Votes]:
        """The same where it matters where a word stands: each is shown in its copy's place.

        A copy shows one word, so that many words of a text may be replaced for it at once.
        """
        sizes: list[int] = []
        asked: list[MaskedCopies] = []
        order: list[tuple[int, int, int]] = []
        for number, text in enumerate(texts):
            words = text.document.words
            listed = [self._others(word) for word in words[: text.words_read]]
            sizes += map(len, listed)
            for rank in range(max(map(len, listed))):
                places = [place for place, own in enumerate(listed) if len(own) > rank]
                changed = list(words)
                for place in places:
                    changed[place] = listed[place][rank]
                document = Document(tuple(changed), text.document.premise)
                kept = np.array(places, dtype=np.int32)[:, None]
                asked.append(MaskedCopies(document, text.words_read, kept))
                order += [(number, place, rank) for place in places]
        said = _joined([nothing, self._score(asked)]) if asked else nothing
        rows = np.array(sorted(range(len(order)), key=order.__getitem__), dtype=np.int64)
        return np.array(sizes), _taken(said, rows)


def _shown_words(text: MaskedText) -> Sequence[str]:
    """The word that each copy shows; empty where it shows none."""
    words = text.document.words[: text.words_read]
    if text.family.places is None:
        return words
    return [words[place] if place != BLANK else "" for place in text.kept[:, 0].tolist()]


def _taken(votes: Votes, rows: Ints) -> Votes:
    return replace(
        votes,
        copies=np.array([len(rows)]),
        best=votes.best[rows],
        uncertain=votes.uncertain[rows],
        points=None if votes.points is None else votes.points[rows],
        slack=votes.slack[rows],
    )


def _joined(parts: Iterable[Votes]) -> Votes:
    [first, *_] = parts = list(parts)
    return replace(
        first,
        copies=np.concatenate([part.copies for part in parts]),
        best=np.concatenate([part.best for part in parts]),
        uncertain=np.concatenate([part.uncertain for part in parts]),
        points=None if first.points is None else np.concatenate([p.points for p in parts]),
        slack=np.concatenate([part.slack for part in parts]),
    )
