"""What a reproduction is, step by step: a few numbers a text, and no text of a dataset.

That is enough for every table, curve, interval and paired test, and small enough to be committed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from ranmask.errors import DataError
from ranmask.metrics import CertifiedSummary
from ranmask.paper.typed_json import RANGES, check_entries, letters

_Result = TypeVar("_Result")

Kind: TypeAlias = Literal[
    "certified", "empirical", "beta", "rates", "entropy", "arithmetic", "adversarial"
]
Measures: TypeAlias = Literal[
    "training", "certified", "attack", "predict", "beta", "examples", "adversarial"
]
State: TypeAlias = Literal["done", "failed", "todo"]
Status: TypeAlias = Literal["succeeded", "failed", "skipped", "error"]

_LONGEST_NAME = 100
_YES_NO = {True: "1", False: "0", None: "-"}
_STATUSES = {"succeeded": "s", "failed": "f", "skipped": "k", "error": "e"}
_ATTACKED: dict[str, object] = {"text": str, "status": str, "adversarial": str | None}
_COPY: dict[str, object] = {"kept": tuple[int, ...], "label_id": int | None}
_EXAMPLE: dict[str, object] = {
    **dict.fromkeys(("label_id", "words", "kept", "masks"), int),
    **dict.fromkeys(("votes", "critical_words"), tuple[int, ...]),
    "radius": int | None,
    "copies": tuple[Mapping[str, Any], ...],
}
"""What a report reads of a line of our own sentences, where it is there at all."""


def model_name(value: str) -> str:
    """A model as people call it: the last part of its hub id or of its folder."""
    return value.rstrip("/").rpartition("/")[2]


def _in_a_name(key: str, value: Any) -> str:
    """A setting as a part of a file's name: ``seed1``, ``hide-mask``; a base is just named."""
    parts = value if isinstance(value, list) else [value]
    numbers = all(isinstance(part, int | float) for part in parts)
    spelt = "-".join(map(str, parts))
    if key == "base":
        spelt = model_name(spelt)
    else:
        spelt = f"{key}{spelt}" if numbers else f"{key}-{model_name(spelt)}"
    return re.sub(r"[^\w.]+", "-", spelt).strip("-.")


Rows: TypeAlias = Annotated[tuple[int, ...], RANGES]


class _OfTexts:
    """A result with lists that have an entry for each text.

    ``rows``: number of each text's row in its source.  ``words``: how many each has.  ``expected``:
    the number of its true class.  ``errors``: rows with an error, which are left out.
    """

    rows: Rows

    def check(self, where: str) -> None:
        """Refuse lists that do not fit each other; those of what is not known are empty."""
        maybe = ("words", "expected") if isinstance(self, Predicted) else ("expected",)
        for name, values in _lists(self):
            if len(values) != len(self.rows) and (values or name not in maybe):
                raise DataError(
                    f"{where}: {name} has {len(values)} entries for {len(self.rows)} rows: the "
                    "file was changed after it was written"
                )


def _lists(record: object) -> Iterator[tuple[str, Sequence[Any]]]:
    """Every list of a result that has an entry for each text, and its name."""
    for name, values in vars(record).items():
        if name == "readings":
            for reading in values:
                whose = f" of {reading.certificate}"
                yield from ((of + whose, some) for of, some in _lists(reading))
        elif name in ("average", "largest"):
            yield from ((f"{name} {number}", some) for number, some in enumerate(values, 1))
        elif isinstance(values, tuple) and not (name == "changed" and isinstance(record, Betas)):
            yield name, values


@dataclass(frozen=True)
class Reading:
    """What one certificate makes of the votes: entry i belongs to text i.

    ``radius`` None: not certified even unchanged.  A radius counts only where ``correct``.
    """

    certificate: str
    guarantee: bool
    correct: Annotated[tuple[bool, ...], letters(_YES_NO)]
    radius: tuple[int | None, ...]

    @property
    def counted(self) -> list[int | None]:
        """The radii that count; None for a text that is wrong or not certified."""
        pairs = zip(self.correct, self.radius, strict=True)
        return [radius if correct else None for correct, radius in pairs]

    def certified_at(self, changed: int) -> int:
        """Texts that are right and certified at so many changed words."""
        return sum(radius is not None and radius >= changed for radius in self.counted)

    def median_interval(self) -> tuple[int | None, int | None] | None:
        """95 % interval of the median radius, by order statistics; None with too few texts.

        Half of all such texts have a radius of at most the true median, so how many of ours do is
        binomial; that tells between which of our sorted radii it lies, whatever their distribution.
        """
        texts = len(self.radius)
        # The largest rank with P(Binomial(texts, 1/2) < rank) <= 2.5 %, in whole numbers.
        below, rank = 0, 0
        while 40 * (below + math.comb(texts, rank)) <= 2**texts:
            below += math.comb(texts, rank)
            rank += 1
        if not rank:
            return None
        ordered = sorted(-1 if radius is None else radius for radius in self.counted)
        low, high = ordered[rank - 1], ordered[texts - rank]
        return (None if low < 0 else low, None if high < 0 else high)


@dataclass(frozen=True)
class Certified(_OfTexts):
    """A run of ``ranmask certify``: several certificates of the same texts, exact first.

    ``masks``: the most copies that a text had.  ``threat``: what a radius counts, as
    `ranmask.results.Certificate` has it.
    """

    rows: Rows
    words: tuple[int, ...]
    masks: int
    readings: tuple[Reading, ...]
    errors: int = 0
    threat: str = "substitutions"
    expected: tuple[int, ...] = ()

    def check(self, where: str) -> None:
        """Refuse a text without words, and lists that do not fit each other."""
        if 0 in self.words:
            raise DataError(f"{where}: words is 0 for a certified text")
        super().check(where)

    def reading(self, certificate: str, start: int = 0) -> Reading | None:
        """What a certificate from place ``start`` on makes of the votes; None: not asked."""
        named = (found for found in self.readings[start:] if found.certificate == certificate)
        return next(named, None)

    def summary(self, of: Reading) -> CertifiedSummary:
        """The paper's figures of one certificate."""
        counted = CertifiedSummary()
        for correct, radius, words in zip(of.correct, of.radius, self.words, strict=True):
            counted.add(correct=correct, radius=radius, words=words)
        return counted


@dataclass(frozen=True)
class Attacked(_OfTexts):
    """A run of ``ranmask attack``.

    ``attack``: the recipe's full name, which says what it did without.  ``victim``: how it was
    smoothed, or None for a plain classifier.  ``changed``: words changed, where it succeeded.
    ``confirmed``: whether a success is still one on fresh masks; None elsewhere.
    """

    attack: str
    victim: Mapping[str, Any] | None
    rows: Rows
    statuses: Annotated[tuple[Status, ...], letters(_STATUSES)]
    words: tuple[int, ...]
    changed: tuple[int, ...]
    queries: tuple[int, ...]
    confirmed: Annotated[tuple[bool | None, ...], letters(_YES_NO)]
    expected: tuple[int | None, ...] = ()

    @property
    def clean(self) -> list[bool]:
        """Whether each text was right before the attack."""
        return [status != "skipped" for status in self.statuses]

    @property
    def robust(self) -> list[bool]:
        """Whether each is right after it."""
        return [status == "failed" for status in self.statuses]


@dataclass(frozen=True)
class Predicted(_OfTexts):
    """A run of ``ranmask predict``.

    Entropies in nats, of the shares of the votes and, where the ensemble has them, of the mean
    scores (of the softmax of the mean logits).
    """

    rows: Rows
    correct: Annotated[tuple[bool, ...], letters(_YES_NO)]
    vote_entropy: tuple[float, ...]
    score_entropy: tuple[float, ...] | None
    words: tuple[int, ...] = ()
    errors: int = 0
    expected: tuple[int, ...] = ()


@dataclass(frozen=True)
class Betas(_OfTexts):
    """A run of ``ranmask beta``.

    ``share``: p_c of each text.  ``average[i]`` and ``largest[i]``: for each text, beta for
    ``changed[i]`` changed words, as the paper averages it over random positions, and for the
    worst of the positions that were tried; None where a text has fewer words.
    """

    rows: Rows
    words: tuple[int, ...]
    changed: tuple[int, ...]
    share: tuple[float, ...]
    average: tuple[tuple[float | None, ...], ...]
    largest: tuple[tuple[float | None, ...], ...]
    errors: int = 0

    def check(self, where: str) -> None:
        """Refuse lists that do not fit each other."""
        for name, values in (("average", self.average), ("largest", self.largest)):
            if len(values) != len(self.changed):
                raise DataError(
                    f"{where}: {name} has not one list for each of the {len(self.changed)} changed"
                )
        super().check(where)


@dataclass(frozen=True)
class Examples:
    """Our own sentences, certified: lines of ``ranmask certify --copies`` as they are.

    ``labels``: names of the run's classes, in their order; nothing where its record has none.
    """

    lines: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...] = ()

    def check(self, where: str) -> None:
        """Refuse lines that a report could not show."""
        for line in self.lines:
            check_entries(line, _EXAMPLE, f"{where}: a line")
            votes = line.get("votes")
            if votes is not None and line.get("label_id", 0) >= len(votes):
                raise DataError(f"{where}: label_id {line['label_id']} has no entry in votes")
            for copy in line.get("copies", ()):
                if copy.keys() < _COPY.keys():
                    raise DataError(f"{where}: a copy has only {', '.join(copy) or 'nothing'}")
                check_entries(copy, _COPY, f"{where}: a copy")


@dataclass(frozen=True)
class Adversarial:
    """Our own sentences, attacked: of each its ``text``, its ``status``, and ``adversarial``."""

    lines: tuple[Mapping[str, Any], ...]

    def check(self, where: str) -> None:
        """Refuse lines that a report could not show."""
        for line in self.lines:
            if line.keys() < _ATTACKED.keys():
                raise DataError(f"{where}: a line has only {', '.join(line) or 'nothing'}")
            check_entries(line, _ATTACKED, f"{where}: a line")


@dataclass(frozen=True)
class Trained:
    """What a training was: ``run`` and ``validation`` of its ``training.json``."""

    run: Mapping[str, Any]
    validation: Mapping[str, Any]


Result: TypeAlias = Certified | Attacked | Predicted | Betas | Examples | Adversarial | Trained
RESULTS: dict[Measures, type[Result]] = {
    "training": Trained,
    "certified": Certified,
    "attack": Attacked,
    "predict": Predicted,
    "beta": Betas,
    "examples": Examples,
    "adversarial": Adversarial,
}
"""What a step that measures something results in."""


@dataclass(frozen=True)
class Step:
    """One step of a reproduction, and its result where it is done.

    ``command``: as one would type it.  ``place``: where its result belongs in the paper's table
    or figure.  ``data``: what the run's record says of its texts.  ``error``: why it failed, or
    why there is no result yet.  ``uses``: the settings of the run's variant that it depends on,
    itself or through a step that it needs; None where that is not recorded.
    """

    name: str
    measures: Measures
    command: str
    place: Mapping[str, Any]
    state: State
    seconds: float | None = None
    error: str | None = None
    data: Mapping[str, Any] | None = None
    uses: tuple[str, ...] | None = None
    result: Any = None

    def check(self, where: str) -> None:
        """Refuse entries that a report could not show."""
        check_entries(self.place, {"rate": float}, f"{where}: place")
        check_entries(self.data or {}, {"sha256": str, "rows": int}, f"{where}: data")


@dataclass(frozen=True)
class Reproduction:
    """One recipe as it was run.

    ``kind`` says how a report shows it.  ``settings``: those it was run with.  ``machine``:
    versions and hardware of the step that was done last.  ``variant``: the settings that are not
    the recipe's own in this size, in the recipe's order.  ``remarks``: what its reader has to know
    and no record says, written into the condensed file by hand.
    """

    name: str
    title: str
    kind: Kind
    paper: str
    about: str
    size: str
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    steps: tuple[Step, ...]
    variant: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def folder_name(self) -> str:
        """What its folder and its condensed file are called: another variant, another name."""
        variant = "-".join(_in_a_name(*pair) for pair in self.variant.items())
        if len(variant) > _LONGEST_NAME:
            digest = hashlib.sha256(variant.encode(errors="backslashreplace")).hexdigest()
            variant = f"{variant[:_LONGEST_NAME]}-{digest[:8]}"
        size = "" if self.size == "default" else self.size
        return "-".join(part for part in (self.name, size, variant) if part)

    @property
    def seed(self) -> str:
        """The seed that it was run with."""
        return str(self.settings.get("seed", 0))

    @property
    def configuration(self) -> dict[str, Any]:
        """What of the variant changes figures: not the seed, nor which steps there are.

        A list of numbers or tables names steps, as the masking rates do; a list of words is part
        of a command.
        """
        return {
            key: value
            for key, value in self.variant.items()
            if key != "seed"
            and not (isinstance(value, list) and any(not isinstance(one, str) for one in value))
        }

    @property
    def missing(self) -> list[Step]:
        """Steps without a result."""
        return [step for step in self.steps if step.state != "done"]

    def finished(self, sort: type[_Result]) -> Iterator[tuple[Step, _Result]]:
        """Steps that are done and have a result of this sort."""
        for step in self.steps:
            if step.state == "done" and isinstance(step.result, sort):
                yield step, step.result
