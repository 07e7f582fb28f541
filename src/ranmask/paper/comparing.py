"""Two measurements over the same texts: which differences are significant?

Texts are paired by their rows, and only rows that both have are compared.  The texts are the only
chance that is counted: what another training or another seed would do is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ranmask.errors import DataError
from ranmask.evaluation.intervals import holm
from ranmask.paper.paired_figures import (
    LEVEL,
    ByClass,
    Difference,
    Measured,
    by_class,
    differences,
    same_radii,
)
from ranmask.paper.report.svg import clean
from ranmask.paper.run_data import Attacked, Certified, Reading, Reproduction, Step

FORMAT, VERSION = "ranmask-comparison", 1
EXPLANATION = (
    "Shares: McNemar's exact test and Tango's 95 % interval. Radius: the sign test, with texts "
    "that are wrong or not certified below all others. Entropy: a sign-flip test of the mean "
    "difference and a bootstrap interval, both seeded.",
    f"The verdict goes by p (Holm), adjusted for all rows shown, at {LEVEL:g}. It speaks of other "
    'texts like these, not of another training or seed; "no difference found" does not say that '
    "there is none. An interval is that of its row alone, so it may leave out 0 where the verdict "
    "finds no difference.",
)
"""What the tests are, in two lines."""


@dataclass(frozen=True)
class Comparison:
    """All figures that A and B share; ``notes`` say what was left out, and what else differs.

    ``classes``: figures by class, of the steps whose results know the classes.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    classes: tuple[ByClass, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "a": self.a,
            "b": self.b,
            "differences": [{**asdict(row), "verdict": row.verdict} for row in self.differences],
            "notes": list(self.notes),
            "classes": [asdict(figures) for figures in self.classes],
            "explanation": list(EXPLANATION),
        }


def compare(a: Reproduction, b: Reproduction) -> Comparison:
    """Every figure that both have, with paired tests over the texts that both have.

    Steps are paired by what they measure and by their place in the table or figure; two single
    runs with each other.  Refused: runs over other data, and runs without a text in common.
    """
    pairs, notes = _pairs(a, b)
    notes += [
        f"the setting {key} is {a.settings.get(key)!r} in A and {b.settings.get(key)!r} in B"
        for key in sorted(a.settings.keys() | b.settings.keys())
        if a.settings.get(key) != b.settings.get(key)
    ]
    found: list[Difference] = []
    classes: list[ByClass] = []
    for step_a, step_b in pairs:
        same_place = step_a.place and step_a.place == step_b.place
        title = _described(step_a) if same_place else step_a.measures
        of_a, of_b, said = _paired(title, step_a, step_b)
        notes += said
        found += differences(title, of_a, of_b)
        if of_a.expected:
            classes.append(by_class(title, of_a, of_b))
    adjusted = holm([row.p_value for row in found])
    return Comparison(
        a=f"{a.name}, {a.size}",
        b=f"{b.name}, {b.size}",
        differences=tuple(
            replace(row, adjusted=value) for row, value in zip(found, adjusted, strict=True)
        ),
        notes=tuple(notes),
        classes=tuple(classes),
    )


# -- which step belongs to which ---------------------------------------------------------------


def _pairs(a: Reproduction, b: Reproduction) -> tuple[list[tuple[Step, Step]], list[str]]:
    of_a, of_b = _measured(a, "A"), _measured(b, "B")
    if len(of_a) == len(of_b) == 1:
        [step_a], [step_b] = of_a.values(), of_b.values()
        if step_a.measures != step_b.measures:
            raise DataError(
                f"A is a run that measures {step_a.measures!r}, B one that measures "
                f"{step_b.measures!r}: compare two runs of the same command"
            )
        return [(step_a, step_b)], []
    pairs = [(step, of_b[key]) for key, step in of_a.items() if key in of_b]
    if not pairs:
        raise DataError(
            f"no step of A has the place of one of B: A has {_listed(of_a.values())}; B has "
            f"{_listed(of_b.values())}. To compare two steps, give their result files"
        )
    notes = [
        f"left out, only in {name}: {_listed(mine[key] for key in mine if key not in others)}"
        for name, mine, others in (("A", of_a, of_b), ("B", of_b, of_a))
        if mine.keys() - others.keys()
    ]
    return pairs, notes


def _measured(reproduction: Reproduction, name: str) -> dict[str, Step]:
    """The steps with a result that can be compared, by what they measure and their place."""
    found: dict[str, Step] = {}
    alone = len(reproduction.steps) == 1
    for step in reproduction.steps:
        # Without a place it is what other steps build on, such as texts to train with.
        if isinstance(step.result, Measured) and (step.place or alone):
            key = f"{step.measures} {json.dumps(step.place, sort_keys=True)}"
            if key in found:
                raise DataError(
                    f"{name} has two steps at the place {_described(step)}, {found[key].name} and "
                    f"{step.name}: compare their result files"
                )
            found[key] = step
    if not found:
        reasons = [f"; {step.name}: {step.error}" for step in reproduction.steps if step.error]
        raise DataError(
            f"{name} ({reproduction.name}) has no finished run of certify, attack or predict to "
            f"compare{''.join(reasons)}"
        )
    return found


def _listed(steps: Iterable[Step]) -> str:
    return "; ".join(map(_described, steps))


def _described(step: Step) -> str:
    """The place of a step in words: names stand alone, numbers say what they are."""
    words = [
        value if isinstance(value, str) else f"{key} {value}" for key, value in step.place.items()
    ]
    # It stands in tables and in errors, each of one line.
    return " ".join(clean(", ".join(words) or step.name).split())


# -- which text belongs to which ---------------------------------------------------------------


def _paired(title: str, step_a: Step, step_b: Step) -> tuple[Measured, Measured, list[str]]:
    """The two results over the texts that both have without an error, and what to know of them."""
    a, b = step_a.result, step_b.result
    same_data = _check_data(title, step_a, step_b)
    places_a, places_b = (
        {
            row: place
            for place, row in enumerate(result.rows)
            if not (isinstance(result, Attacked) and result.statuses[place] == "error")
        }
        for result in (a, b)
    )
    rows = [row for row in places_a if row in places_b]
    if not rows:
        raise DataError(f"{title}: A and B have no text in common that has no error in either")
    of_a = _at(a, [places_a[row] for row in rows])
    of_b = _at(b, [places_b[row] for row in rows])
    if not same_data:
        _check_words(title, of_a, of_b)
    notes = _result_notes(title, a, b)
    if len(a.rows) > len(rows) or len(b.rows) > len(rows):
        notes.append(
            f"{title}: {len(rows)} texts are compared, those that both have without an error; A "
            f"has {len(a.rows)}, B has {len(b.rows)}"
        )
    return of_a, of_b, notes


def _at(result: Any, places: Sequence[int]) -> Any:
    """The same result, or certificate, of some of its texts only."""
    texts = len(result.correct if isinstance(result, Reading) else result.rows)
    picked: dict[str, Any] = {
        name: tuple(values[place] for place in places)
        for name, values in vars(result).items()
        if isinstance(values, tuple) and len(values) == texts and name != "readings"
    }
    if isinstance(result, Certified):
        picked["readings"] = tuple(_at(reading, places) for reading in result.readings)
    return replace(result, **picked)


def _result_notes(title: str, a: Measured, b: Measured) -> list[str]:
    """Where figures of the same name do not mean the same."""
    if isinstance(a, Attacked) and isinstance(b, Attacked) and a.attack != b.attack:
        return [f"{title}: A was attacked by {a.attack}, B by {b.attack}"]
    if isinstance(a, Certified) and isinstance(b, Certified):
        names_a, names_b = ([of.certificate for of in result.readings] for result in (a, b))
        if not set(names_a) & set(names_b):
            return [
                f"{title}: radii are not compared, for A has the certificates "
                f"{', '.join(names_a)} and B has {', '.join(names_b)}"
            ]
        if not same_radii(a, b):
            return [
                f"{title}: radii are not compared, for they count {a.threat} in A and {b.threat} "
                "in B: certify both with the same --threat"
            ]
    return []


def _check_data(title: str, step_a: Step, step_b: Step) -> bool:
    """Whether the data are the same to the byte; refused unless one may be a part of the other.

    A corpus that was cut to its first rows has another digest: then the texts must still agree.
    """
    a, b = step_a.data or {}, step_b.data or {}
    advice = "only runs over the same texts can be compared"
    if not a.get("sha256") or not b.get("sha256"):
        raise DataError(f"{title}: no record says which texts these are; {advice}")
    for key in ("name", "split", "columns"):
        if a.get(key) != b.get(key):
            raise DataError(
                f"{title}: {key} is {a.get(key)!r} in A and {b.get(key)!r} in B; {advice}"
            )
    if a["sha256"] == b["sha256"]:
        return True
    if "name" not in a or a.get("rows") == b.get("rows"):
        raise DataError(
            f"{title}: sha256 of the data is {a['sha256'][:8]}... in A and {b['sha256'][:8]}... "
            f"in B; {advice}"
        )
    return False


def _check_words(title: str, a: Measured, b: Measured) -> None:
    """Refuse rows that have other numbers of words, for they are other texts."""
    nothing = [None] * len(a.rows)
    for row, words_a, words_b in zip(a.rows, a.words or nothing, b.words or nothing, strict=True):
        if words_a is None or words_a != words_b:
            raise DataError(
                f"{title}: row {row} has {words_a} words in A and {words_b} in B; only runs over "
                "the same texts can be compared"
            )
