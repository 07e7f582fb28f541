"""How far each threat of the menu is proved, for many texts at once.

Guarantee.  Let ``g`` be the smoothed classifier, and let `ThreatProofs` give a text the radius
``r`` against a threat (`threats`).  Then ``g`` gives the same label, as the only winner, to every
text that at most ``r`` steps of that threat make of it.

Assumptions.  Those of `exact`, `distinct` and `pyramid`; for threats that are `MOVING` those of
edits, and that a text which grew is read whole; for synonyms, that what a table lists was scored
(`Replacements`).

Proofs: docs/certificates.md, "A menu of threats".  Integers decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ranmask.certificates.characters import Spellings, characters_proved
from ranmask.certificates.coverage import Ints
from ranmask.certificates.distinct import DistinctWords
from ranmask.certificates.exact import (
    Radius,
    dearest_first,
    exact_radius,
    falling,
    first_of_each,
    steps_below,
    words_below,
)
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed
from ranmask.certificates.pyramid import (
    costs_and_margins,
    dearest_word,
    proved_unchanged,
    run_costs,
)
from ranmask.certificates.replacements import Replacements
from ranmask.certificates.spans import run_lengths, run_lengths_of_sets, shortest_runs
from ranmask.certificates.threats import new_words, step_costs
from ranmask.certificates.votes import Votes


class ThreatProofs:
    """What is proved of several texts' winners, each over its own fixed family.

    A threat that the families do not go with raises `ValueError`.  ``replacements`` are for
    ``synonyms``, ``spellings`` for ``characters`` where words are known.
    """

    def __init__(
        self,
        votes: Votes,
        families: Sequence[Family],
        replacements: Replacements | None = None,
        spellings: Spellings | None = None,
    ) -> None:
        for family in set(families):
            check_fixed(family.kind)
        self._votes, self._families, self._replacements = votes, families, replacements
        self._spellings = spellings

    @property
    def sorted(self) -> bool:
        """Whether the first radii, under substitutions and edits, come of the same sort as others.

        (Where votes may move, `exact` looks closer at whether a radius is tight.)
        """
        exact = self._votes.readings is not None or not self._votes.blurred.any()
        return exact and all(isinstance(texts, _SingleTexts) for texts in self._parts)

    def radii(self, threat: str) -> list[Radius]:
        """The radius of each text; ``worst`` are words of it that a worst choice meets.

        None are where words are inserted alone, or where all may be replaced.
        """
        found = [radius for texts in self._parts for radius in texts.radii(threat)]
        moving = self._votes.blurred
        if self._votes.readings is not None:
            moving = moving | bool((self._votes.readings.slack > 0).any())
        for place, number in enumerate(self._if_unchanged(threat)):
            if found[place].words is None and number is not None:
                dearest = dearest_word(self._votes, self._families[place], place)
                found[place] = Radius(number, True, () if number else (dearest,))
            elif moving[place] and found[place].tight:  # whether it is attained is not worked out
                found[place] = replace(found[place], tight=False)
        return found

    def numbers(self, threat: str) -> list[int | None]:
        """The ``words`` of `radii`, in a fraction of the time."""
        numbers = [number for texts in self._parts for number in texts.numbers(threat).tolist()]
        pairs = zip(numbers, self._if_unchanged(threat), strict=True)
        return [number if number >= 0 else unchanged for number, unchanged in pairs]

    def _if_unchanged(self, threat: str) -> list[int | None]:
        """The radius of each text if no change of it is proved harmless.

        0 where it gets its label again as it stands (under edits: in whatever order); or all its
        words, where a table lists nothing for any of them.
        """
        if self._votes.readings is None or threat == "edits":
            return [None] * len(self._families)
        numbers = np.zeros(len(self._families), dtype=np.int64)
        if threat == "synonyms" and self._replacements is not None:
            words = np.array([family.words for family in self._families])
            numbers = np.where(self._replacements.movable(self._votes), 0, words)
        pairs = zip(numbers.tolist(), proved_unchanged(self._votes).tolist(), strict=True)
        return [number if sure else None for number, sure in pairs]

    @cached_property
    def _parts(self) -> list[_Texts]:
        parts: list[_Texts] = []
        first = 0
        for votes in self._votes.parts():
            last = first + len(votes.copies)
            families, own = self._families[first:last], self._replacements
            kind, start = _kind_of(votes, families), int(self._votes.starts[first])
            texts = kind(votes, families, own and own.part(self._votes, first, last))
            if self._spellings is not None:
                texts.spellings = self._spellings.rows(start, start + int(votes.copies.sum()))
            parts.append(texts)
            first = last
        return parts


def _kind_of(votes: Votes, families: Sequence[Family]) -> type[_Texts]:
    segments = votes.readings is not None and votes.readings.segments is not None
    if families[0].places is not None:
        assert not segments, "segments are cut by position"
        return _OnceTexts
    if segments:
        return _SegmentedTexts
    return _SingleTexts if all(family.single for family in families) else _AnyTexts


class _Texts(ABC):
    """Some texts against all their rivals, and how far a run of words is proved."""

    spellings: Spellings | None = None

    def __init__(
        self, votes: Votes, families: Sequence[Family], replacements: Replacements | None
    ) -> None:
        self._votes, self._families, self._replacements = votes, families, replacements
        self._words = np.array([family.words for family in families])
        self._starts = np.cumsum(self._words) - self._words
        self._bound, self._labels = votes.bound, votes.winners
        self._reserve = 0 if votes.readings is None else votes.readings.reserve
        self._differences = votes.differences(self._labels, every=replacements is not None)
        self._margins = np.add.reduceat(self._differences, votes.starts, axis=1) - self._reserve
        self._found: dict[str, Ints] = {}

    def numbers(self, threat: str) -> Ints:
        """The radius of each text, -1 where nothing is proved."""
        if not len(self._margins):  # a single class: nothing to lose against, but a word stays
            return self._words - (threat == "deletions")
        if threat not in self._found:
            self._found[threat] = self._proved(threat)
        proved = self._found[threat].min(axis=0)
        return np.where(self._margins.min(axis=0) > 0, proved, -1)

    def radii(self, threat: str) -> list[Radius]:
        """The radius of each text, with its worst words."""
        numbers = self.numbers(threat)
        if not len(self._margins):
            return [Radius(number) for number in numbers.tolist()]
        # Of several rivals that allow no more steps, the one with the smallest margin is shown.
        least = self._found[threat] == numbers
        rivals = np.where(least, self._margins, np.iinfo(np.int64).max).argmin(axis=0)
        shown = (numbers >= 0) & (numbers < self._words) & (self._chosen(threat))
        sizes = np.where(shown, numbers + 1, 0)
        worst, ends = self._worst(threat, rivals, sizes), np.cumsum(sizes).tolist()
        tight = self._tight(threat, rivals).tolist()
        rows = zip(numbers.tolist(), tight, sizes.tolist(), ends, strict=True)
        return [
            Radius(None) if number < 0 else Radius(number, sure, tuple(worst[end - size : end]))
            for number, sure, size, end in rows
        ]

    def _proved(self, threat: str) -> Ints:
        """How many steps are proved against each rival, shape (rivals, texts)."""
        radii: Ints = np.minimum(self._shortest_runs[0] - 1, self._words)
        return radii

    def _worst(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]:
        """So many worst positions of each text against one rival, text by text."""
        first = self._shortest_runs[1][rivals, np.arange(len(rivals))]
        ranks = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions: list[int] = (np.repeat(first, sizes) + ranks).tolist()
        return positions

    def _tight(self, threat: str, rivals: Ints) -> npt.NDArray[np.bool_]:
        """Whether some classifier that says the same of these copies attains the bound."""
        return np.full(len(self._words), threat == "insertions" or self._chosen(threat))

    def _chosen(self, threat: str) -> bool:
        """Whether a worst choice of words is known."""
        return threat != "insertions" and (threat != "characters" or self.spellings is None)

    @cached_property
    @abstractmethod
    def _shortest_runs(self) -> tuple[Ints, Ints]:
        """As `spans.shortest_runs`."""


class _AnyTexts(_Texts):
    """Copies may show any words."""

    def numbers(self, threat: str) -> Ints:
        if threat != "substitutions":
            return super().numbers(threat)
        return np.array([-1 if one.words is None else one.words for one in self._searched])

    def radii(self, threat: str) -> list[Radius]:
        return self._searched if threat == "substitutions" else super().radii(threat)

    def _proved(self, threat: str) -> Ints:
        if threat != "span":
            raise ValueError(f"{threat} are proved where each copy shows one word, and all do")
        return super()._proved(threat)

    @cached_property
    def _searched(self) -> list[Radius]:
        """The radii under substitutions: a search for each text."""
        how = {"bound": self._bound, "reserve": self._reserve}
        return [
            exact_radius(family.sets, own, family.words, complete=family.kind == "all", **how)
            for family, own in self._own()
        ]

    def _own(self) -> Iterator[tuple[Family, Ints]]:
        starts = self._votes.starts.tolist()
        for family, start in zip(self._families, starts, strict=True):
            yield family, self._differences[:, start : start + len(family)]

    @cached_property
    def _shortest_runs(self) -> tuple[Ints, Ints]:
        lengths = [
            run_lengths_of_sets(family.sets, own + self._bound, family.words, margins)
            for (family, own), margins in zip(self._own(), self._margins.T, strict=True)
        ]
        return shortest_runs(np.concatenate(lengths, axis=1), self._words)


class _WordTexts(_Texts):
    """Each copy shows one word, and each word has one copy."""

    def _proved(self, threat: str) -> Ints:
        if threat == "span":
            return super()._proved(threat)
        if threat not in ("insertions", "synonyms"):
            return self._steps(threat)
        radii: Ints = (self._margins - 1) // self._bound  # new words say all for the rival
        if threat == "synonyms":
            if self._replacements is None:
                raise ValueError("synonyms are those of a table: give replacements")
            costs = falling(self._synonym_costs, self._words)
            radii = steps_below(costs, self._margins, self._starts)
            radii = np.minimum(radii, self._words)  # all at once may cost less than the margin
        return radii

    def _worst(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]:
        if threat == "span":
            return super()._worst(threat, rivals, sizes)
        if threat != "synonyms":
            return self._positions(threat, rivals, sizes)
        order = dearest_first(self._synonym_costs, self._words, self._starts)
        return first_of_each(order, self._starts, rivals, sizes)

    @abstractmethod
    def _steps(self, threat: str) -> Ints:
        """As `_proved`, for any other threat; `_positions` as `_worst`."""

    @abstractmethod
    def _positions(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]: ...

    @cached_property
    @abstractmethod
    def _synonym_costs(self) -> Ints:
        """What it costs to replace the word at each position by its worst synonym."""


class _SingleTexts(_WordTexts):
    """Every word counts, however often it stands in the text."""

    def _steps(self, threat: str) -> Ints:
        if threat == "characters" and self.spellings is not None:
            against = self.spellings.against(np.repeat(self._labels, self._words))
            texts = self._margins, self._words, self._starts, self.spellings.bound
            return characters_proved(self._differences, against, *texts)
        costs = step_costs(threat, self._dearest, self._bound)
        return steps_below(costs, self._margins, self._starts)

    def _positions(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]:
        return first_of_each(self._order, self._starts, rivals, sizes)

    @cached_property
    def _order(self) -> Ints:
        return dearest_first(self._differences, self._words, self._starts)

    @cached_property
    def _dearest(self) -> Ints:
        return np.take_along_axis(self._differences, self._order, axis=1)

    @cached_property
    def _synonym_costs(self) -> Ints:
        assert self._replacements is not None
        lowest = self._replacements.lowest(self._differences)
        costs: Ints = step_costs("synonyms", self._differences, self._bound, lowest)
        return costs

    @cached_property
    def _shortest_runs(self) -> tuple[Ints, Ints]:
        costs = step_costs("span", self._differences, self._bound)
        through = costs.cumsum(axis=1)
        lengths = run_lengths(through - costs, through, self._margins, self._words)
        return shortest_runs(lengths, self._words)


class _SegmentedTexts(_Texts):
    """Copies that show one word each, and a reader of segments that are cut by position."""

    def __init__(
        self, votes: Votes, families: Sequence[Family], replacements: Replacements | None
    ) -> None:
        super().__init__(votes, families, replacements)
        self._costs, self._margins = costs_and_margins(votes, families, self._labels)

    def _proved(self, threat: str) -> Ints:
        if threat == "span":
            return super()._proved(threat)
        if threat != "substitutions":
            raise ValueError(f"segments are cut by position: they prove nothing against {threat}")
        return words_below(self._costs, self._order, self._margins, self._starts, 0)

    def _worst(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]:
        if threat == "span":
            return super()._worst(threat, rivals, sizes)
        return first_of_each(self._order, self._starts, rivals, sizes)

    @cached_property
    def _order(self) -> Ints:
        return dearest_first(self._costs, self._words, self._starts)

    @cached_property
    def _shortest_runs(self) -> tuple[Ints, Ints]:
        before, through = run_costs(self._votes, self._families, self._labels)
        return shortest_runs(run_lengths(before, through, self._margins, self._words), self._words)


class _OnceTexts(_WordTexts):
    """Each distinct word has one copy, however often it stands in the text."""

    def __init__(
        self, votes: Votes, families: Sequence[Family], replacements: Replacements | None
    ) -> None:
        super().__init__(votes, families, replacements)
        places = [family.places for family in families if family.places is not None]
        at = np.concatenate(places).astype(np.int64)
        self._once = DistinctWords(
            self._differences, votes.copies, at, self._words, self._bound, self._reserve
        )
        self._word_at = at + np.repeat(votes.starts, self._words)
        self._by_step: dict[int, tuple[Ints, npt.NDArray[np.bool_]]] = {}

    def _steps(self, threat: str) -> Ints:
        step = new_words(threat) * self._bound
        if step not in self._by_step:  # edits are proved as substitutions are
            self._by_step[step] = self._once.proved(step)
        return self._by_step[step][0]

    def _positions(self, threat: str, rivals: Ints, sizes: Ints) -> list[int]:
        step = new_words(threat) * self._bound
        if step != self._once.step:  # it remembers its last choice only
            self._once.proved(step)
        return self._once.positions(rivals, sizes)

    def _tight(self, threat: str, rivals: Ints) -> npt.NDArray[np.bool_]:
        if threat == "synonyms":
            return np.zeros(len(self._words), dtype=bool)
        if threat in ("span", "insertions"):
            return super()._tight(threat, rivals)
        _, exact = self._by_step[new_words(threat) * self._bound]
        sure: npt.NDArray[np.bool_] = exact[rivals, np.arange(len(rivals))]
        return sure

    @cached_property
    def _synonym_costs(self) -> Ints:
        assert self._replacements is not None
        return self._replacements.costs_once(self._differences, self._votes, self._word_at)

    @cached_property
    def _shortest_runs(self) -> tuple[Ints, Ints]:
        return self._once.shortest_runs()
