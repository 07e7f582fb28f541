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

from ranmask.certificates.characters import Spellings
from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import Radius
from ranmask.certificates.families import BLANK
from ranmask.certificates.replacements import Replacements, least_said
from ranmask.certificates.threat_radii import ThreatProofs
from ranmask.certificates.threats import GROWING, MOVING
from ranmask.certificates.votes import Votes
from ranmask.errors import ClassifierError, OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.synonyms import FILE_NAME, SynonymSets
from ranmask.options import DEFAULT_MASKS, SYNONYMS, SmoothingOptions
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.spellings import KnownSpellings
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
                f"words, which this one is not: use a word table, or a function with "
                f"hide='drop'; or {instead}"
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
    ``least``: the `least_said` of these for each label, where there are few classes.  ``names``
    numbers listed words too, those of the rows are ``listed`` and those of the words ``shown``.
    """

    numbers: dict[str, int]
    first: Ints
    sizes: Ints
    said: Votes
    least: Ints
    names: dict[str, int]
    listed: Ints
    shown: Ints

    @classmethod
    def none(cls, nothing: Votes) -> _Known:
        """No word."""
        empty = np.zeros(0, dtype=np.int64)
        least = np.zeros((0, nothing.classes, nothing.classes - 1), dtype=np.int64)
        return cls({}, empty, empty, nothing, least, {}, empty, empty)

    def with_more(
        self, words: Sequence[str], sizes: Ints, rows: Sequence[str], said: Votes
    ) -> _Known:
        """The same, and more words; nothing that others may be reading is changed."""
        names, least = dict(self.names), self.least
        if said.classes <= _FEW_CLASSES:
            of_text = np.ones(len(said.copies), dtype=np.int64)
            of_label = [least_said(said, sizes, of_text * one).T for one in range(said.classes)]
            least = np.concatenate([least, np.stack(of_label, axis=1)])
        return _Known(
            self.numbers | dict(zip(words, count(len(self.numbers)), strict=False)),
            np.append(self.first, len(self.said.best) + np.cumsum(sizes) - sizes),
            np.append(self.sizes, sizes),
            _joined([self.said, said]),
            least,
            names,
            np.append(self.listed, _numbered(rows, names)),
            np.append(self.shown, _numbered(words, names)),
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
        self._spellings: KnownSpellings | None = None

    def proofs(self, scored: ScoredTexts[MaskedText]) -> ThreatProofs:
        """What is proved of texts, against all threats of the options."""
        self.check(self._options.all_threats, scored.texts)
        asked = SYNONYMS in self._options.all_threats
        replacements = self._replacements(scored) if asked else None
        families = [text.family for text in scored.texts]
        return ThreatProofs(scored.votes, families, replacements, self._spellings_of(scored))

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

    def _spellings_of(self, scored: ScoredTexts[MaskedText]) -> Spellings | None:
        """What characters can change, where the base classifier knows its words."""
        known, family = self._base.known, scored.texts[0].family
        asked = "characters" in self._options.all_threats and self._options.ensemble == "score"
        if known is None or not asked or not family.single or scored.votes.slack.any():
            return None
        if self._spellings is None:
            places = np.arange(len(known.words), dtype=np.int32)[:, None]
            copies = MaskedCopies(Document(known.words), len(known.words), places)
            said = self._score([copies])
            assert said.points is not None and not said.slack.any()
            self._spellings = KnownSpellings(known, said.points)
        texts = [text.document.words for text in scored.texts]
        return self._spellings.of(texts, scored.votes.winners)

    # -- what a table lists --------------------------------------------------------------------

    def _replacements(self, scored: ScoredTexts[MaskedText]) -> Replacements:
        votes = scored.votes
        words = [_shown_words(text) for text in scored.texts]
        nothing = replace(_taken(votes, np.zeros(0, dtype=np.int64)), readings=None)
        once = scored.texts[0].family.places is not None
        pairs = any(text.document.premise is not None for text in scored.texts)
        if self._base.order_free and not pairs:  # a word says the same wherever it stands
            known, numbers = self._looked_up(words, nothing)
            sizes = known.sizes[numbers]
            if not once and votes.classes <= _FEW_CLASSES:
                labels = np.repeat(votes.winners, votes.copies)
                return Replacements(sizes, known.least[numbers, labels].T)
            first = known.first[numbers] - (np.cumsum(sizes) - sizes)
            rows = np.arange(int(sizes.sum())) + np.repeat(first, sizes)
            said, listed, shown = _taken(known.said, rows), known.listed[rows], known.shown[numbers]
        else:
            sizes, said = self._in_place(scored.texts, words, nothing)
            names: dict[str, int] = {}
            shown = _numbered(list(chain.from_iterable(words)), names)
            others = map(self._others, chain.from_iterable(words))
            listed = _numbered(list(chain.from_iterable(others)), names)
        said = replace(said, copies=np.add.reduceat(sizes, votes.starts))
        if not once:
            return Replacements(sizes, least_said(said, sizes, votes.winners))
        return Replacements(sizes, None, said, listed, shown)

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
            known = _Known.none(nothing)
        while True:
            numbers = np.fromiter(map(known.numbers.get, flat, repeat(-1)), np.intp, len(flat))
            missing = np.flatnonzero(numbers < 0).tolist()
            if not missing:
                return known, numbers
            fresh = list(dict.fromkeys(flat[place] for place in missing))
            listed = [self._others(word) for word in fresh]
            rows = tuple(chain.from_iterable(listed))
            places = np.arange(len(rows), dtype=np.int32)[:, None]
            said = nothing
            if rows:
                said = self._said([MaskedCopies(Document(rows), len(rows), places)], nothing)
            sizes = np.array([*map(len, listed)])
            self._known = known = known.with_more(fresh, sizes, rows, said)

    def _in_place(
        self, texts: Sequence[MaskedText], shown: Sequence[Sequence[str]], nothing: Votes
    ) -> tuple[Ints, Votes]:
        """The same where the place of a word or a premise matters: each in its copy's place.

        A copy shows one word, so that many words of a text may be replaced for it at once.
        """
        sizes: list[int] = []
        asked: list[MaskedCopies] = []
        order: list[tuple[int, int]] = []
        for text, words in zip(texts, shown, strict=True):
            listed, first = [self._others(word) for word in words], len(sizes)
            sizes += map(len, listed)
            for rank in range(max(map(len, listed))):
                copies = [copy for copy, own in enumerate(listed) if len(own) > rank]
                changed = list(text.document.words)
                for copy, [place] in zip(copies, text.kept[copies].tolist(), strict=True):
                    changed[place] = listed[copy][rank]
                document = Document(tuple(changed), text.document.premise)
                asked.append(MaskedCopies(document, text.words_read, text.kept[copies]))
                order += [(first + copy, rank) for copy in copies]
        said = self._said(asked, nothing) if asked else nothing
        rows = np.array(sorted(range(len(order)), key=order.__getitem__), dtype=np.int64)
        return np.array(sizes), _taken(said, rows)

    def _said(self, copies: Sequence[MaskedCopies], nothing: Votes) -> Votes:
        """What is said of listed words; no text is blamed where that fails, for many list them."""
        try:
            return _joined([nothing, self._score(copies)])
        except ClassifierError as error:
            raise ClassifierError(error.reason) from error.__cause__


def _shown_words(text: MaskedText) -> Sequence[str]:
    """The word that each copy shows; empty where it shows none."""
    words = text.document.words[: text.words_read]
    if text.family.places is None:
        return words
    return [words[place] if place != BLANK else "" for place in text.kept[:, 0].tolist()]


def _numbered(words: Sequence[str], names: dict[str, int]) -> Ints:
    """The number of each word; new ones get one."""
    return np.array([names.setdefault(word, len(names)) for word in words], dtype=np.int64)


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
