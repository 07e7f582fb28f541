"""Options: what each is for, what it may be, and how a smoothed classifier votes and certifies.

An option is a field of a frozen dataclass:

    epochs: Annotated[int, Option("Most epochs.", least=1)] = 20

Its checks, its flag on the command line, its place in the HTTP schema and in a model's file are
made of that field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ranmask.certificates.kept import FamilyChoice, Retention, Sampling, check_fixed
from ranmask.errors import ModelError, OptionError
from ranmask.words import Hiding


@dataclass(frozen=True)
class Option:
    """What a field is for, and what it may be.

    ``unset``: what None stands for, in words.  ``least`` and ``most`` may be reached, ``above``
    and ``below`` may not; of a list, each item is checked.  On the command line: ``group`` is its
    heading in the help, where it is not its class's; ``flag`` its name, where that is another;
    ``short`` a letter beside it; ``variable`` an environment variable instead; ``positional``: it
    has no flag; ``repeated``: a list whose flag is given once an item, not once with commas.
    """

    help: str
    unset: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    group: str = ""
    flag: str = ""
    short: str = ""
    variable: str = ""
    positional: bool = False
    repeated: bool = False

    def allows(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    @property
    def bounds(self) -> str:
        """The bounds in words, with a blank before them."""
        if self.least is not None and self.most is not None:
            return f" from {self.least:g} to {self.most:g}"
        if self.least is not None and self.below is not None:
            return f" from {self.least:g} up to, not including, {self.below:.10g}"
        if self.above is not None and self.below is not None:
            return f" between {self.above:g} and {self.below:g}"
        if self.above is not None:
            return f" above {self.above:g}"
        return "" if self.least is None else f" of at least {self.least:g}"


class OptionField(NamedTuple):
    """A field, read: ``kind`` is its type without None, of a list that of its items."""

    name: str
    kind: type
    listed: bool
    choices: tuple[str, ...]
    optional: bool
    default: Any
    about: Option

    def check(self, value: Any) -> None:
        """Refuse a value of the wrong type or out of bounds, by name."""
        if value is None and self.optional:
            return
        if self.listed:
            if not isinstance(value, tuple):
                raise self._wrong(f"a tuple of {_KINDS.get(self.kind, 'name')}s", value)
            for item in value:
                self._check_one(item)
        else:
            self._check_one(value)

    def _check_one(self, value: Any) -> None:
        if self.choices:
            check_choice(self.name, value, self.choices)
        elif self.kind is bool:
            if not isinstance(value, bool):
                raise self._wrong("True or False", value)
        elif self.kind in _KINDS:
            wanted = Integral if self.kind is int else Real
            right = isinstance(value, wanted) and not isinstance(value, bool)
            if not right or not math.isfinite(value) or not self.about.allows(value):
                raise self._wrong(f"a {_KINDS[self.kind]}{self.about.bounds}", value)
        elif not isinstance(value, self.kind):
            raise self._wrong(f"a {self.kind.__name__}", value)

    def _wrong(self, wanted: str, value: object) -> OptionError:
        return OptionError(f"{self.name} must be {wanted}, not {value!r}", self.name)


_KINDS: dict[type, str] = {int: "whole number", float: "number"}


@lru_cache
def option_fields(options: type) -> dict[str, OptionField]:
    """The options of a dataclass by name; other fields are left out."""
    hints = get_type_hints(options, include_extras=True)
    found = {}
    for field in fields(options):
        notes = getattr(hints[field.name], "__metadata__", ())
        about = next((note for note in notes if isinstance(note, Option)), None)
        if about is not None:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            found[field.name] = OptionField(field.name, *_parsed(hints[field.name]), default, about)
    return found


def _parsed(hint: Any) -> tuple[type, bool, tuple[str, ...], bool]:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    listed = get_origin(hint) is tuple
    if listed:
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return str, listed, get_args(hint), optional
    return hint, listed, (), optional


class Checked:
    """A dataclass of options, checked when built.  ``GROUP`` is their heading in the help."""

    GROUP: ClassVar[str] = "Settings"

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, field in option_fields(kind).items():
            field.check(getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        values = asdict(self)  # type: ignore[call-overload]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of those allowed."""
    if value not in allowed:
        raise OptionError(f"{name} must be one of {', '.join(allowed)}; not {value!r}", name)


def check_saved(path: Path, saved: Mapping[str, Any], *known: type) -> None:
    """Refuse options in a model's file that no dataclass has, or of the wrong type.

    Whether their values are right is found out where the dataclass is built.
    """
    allowed = {name: field for kind in known for name, field in option_fields(kind).items()}
    for name, value in saved.items():
        if name not in allowed:
            raise ModelError(f"{path} has the option {name!r}, which this ranmask does not know")
        field = allowed[name]
        wanted = list if field.listed else int | float if field.kind is float else field.kind
        if not isinstance(value, wanted):
            raise ModelError(f"{path} has {name}={value!r}, which is of the wrong type")


CertificateKind: TypeAlias = Literal[
    "exact",
    "ablation",
    "ablation-runner-up",
    "paper",
    "paper-as-printed",
    "paper-estimated-beta",
]
CERTIFICATES: tuple[CertificateKind, ...] = get_args(CertificateKind)

Ensemble: TypeAlias = Literal["vote", "score", "logit"]
ENSEMBLES: tuple[Ensemble, ...] = get_args(Ensemble)

Threat: TypeAlias = Literal["substitutions", "edits"]

SAFER: Literal["safer"] = "safer"
"""The certificate of classifiers that are smoothed by synonyms, which have no other."""
SYNONYMS = "synonyms"
"""The threat that it covers: words replaced by words that a table lists for them."""

DEFAULT_MASKS = 1000
DEFAULT_ESTIMATION_MASKS = 5000
DEFAULT_SELECTION_MASKS = 1000
DEFAULT_FRESH_MASKS = 100
DEFAULT_ALPHA = 0.05

_SHOWN = {"keep": None, "mask_rate": None}  # how many words a copy shows: one of the two

Keep = Annotated[int | None, Option("Words that each copy shows.", least=1)]
MaskRate = Annotated[float | None, Option("Or: share of words that is hidden.", least=0, below=1)]
Masks = Annotated[
    int | None,
    Option(
        "Most copies a text.",
        unset=f"{DEFAULT_MASKS}, or {DEFAULT_ESTIMATION_MASKS} to estimate from; "
        f"{DEFAULT_FRESH_MASKS} where they are drawn for each text",
        least=1,
    ),
]
SelectionMasks = Annotated[
    int | None,
    Option(
        "Copies that select the label (not exact).", unset=str(DEFAULT_SELECTION_MASKS), least=1
    ),
]
EnsembleOption = Annotated[Ensemble, Option("How copies are added up.")]
Seed = Annotated[int, Option("Fixes whatever is drawn at random.", least=0)]
Device = Annotated[str | None, Option("cpu, cuda and so on.", unset="a GPU if there is one")]


@dataclass(frozen=True)
class SmoothingOptions(Checked):
    """How a smoothed classifier votes and certifies.  Checked when built.

    None stands for the default; `resolved` fills it in.  Options that mean nothing together are
    refused: a ``family`` with a certificate that samples at random, or ``selection_masks`` and
    ``alpha`` with the exact one.  ``threat="edits"`` goes with the exact certificate, ``keep=1``
    and ``family="all"`` (its default) only: edits change the number of words, and a longer text
    must be voted on by all of its words too.  Where those are more than ``masks`` it is refused,
    not sampled.  ``family="distinct"`` needs ``keep=1`` as well, and goes with both threats.

    ``sampling="fresh"`` and ``"lm"`` draw ``masks`` kept sets for each text (100, the paper's
    ensemble; a set may repeat).  **They are never certified**, so that ``family``, another
    ``certificate`` and ``threat="edits"`` mean nothing with them.
    """

    GROUP: ClassVar[str] = "Smoothing"

    keep: Keep = None
    mask_rate: MaskRate = None
    family: Annotated[
        FamilyChoice | None, Option("Which kept sets vote (exact only).", unset="auto")
    ] = None
    masks: Masks = None
    selection_masks: SelectionMasks = None
    ensemble: EnsembleOption = "vote"
    certificate: Annotated[
        CertificateKind,
        Option("What is proved; the paper's carry no guarantee."),
    ] = "exact"
    alpha: Annotated[
        float | None,
        Option("Chance of error (not exact).", unset=str(DEFAULT_ALPHA), above=0, below=1),
    ] = None
    seed: Seed = 0
    threat: Annotated[
        Threat,
        Option("edits: insertions, deletions and reordering too, for classifiers of single words."),
    ] = "substitutions"
    sampling: Annotated[
        Sampling,
        Option(
            "fixed; or, proving nothing, masks drawn for each text: fresh, or lm (words that a "
            "language model predicts badly are hidden more often)."
        ),
    ] = "fixed"

    def __post_init__(self) -> None:
        Retention(self.keep, self.mask_rate)
        super().__post_init__()
        if self.certificate == "exact":
            self._refuse(
                ("selection_masks", "alpha"),
                "which draws no samples: leave it out, or use certificate='ablation'",
                beside="certificate",
            )
        else:
            self._refuse(
                ("family",),
                "which draws random kept sets: leave it out, or use certificate='exact'",
                beside="certificate",
            )
            if self.ensemble != "vote":
                raise OptionError(
                    f"certificate={self.certificate!r} counts votes; ensemble="
                    f"{self.ensemble!r} goes with certificate='exact' only"
                )
        if self.sampling != "fixed":
            self._refuse(
                ("family", "certificate", "threat"),
                "which draws kept sets for each text and certifies none: leave it out, or use "
                "sampling='fixed'",
                beside="sampling",
            )
        if self.family == "distinct" and self.keep != 1:
            raise OptionError(
                f"family='distinct' counts each word once, by itself: it needs keep=1, not "
                f"keep={self.keep!r}; or use family='auto'"
            )
        if self.threat == "edits":
            for name, value, needed in (
                ("certificate", self.certificate, "exact"),
                ("keep", self.keep, 1),
                ("family", self.family or "all", "all"),
            ):
                if value not in (needed, "distinct"):
                    raise OptionError(
                        f"threat='edits' needs {name}={needed!r}, not {value!r}: use that, or "
                        "threat='substitutions'"
                    )

    def _refuse(self, names: Sequence[str], because: str, *, beside: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value != option_fields(SmoothingOptions)[name].default:
                raise OptionError(
                    f"{name}={value!r} means nothing with {beside}={getattr(self, beside)!r}, "
                    f"{because}"
                )

    @property
    def voting_family(self) -> FamilyChoice:
        """The choice of family for the exact certificate, with the default filled in."""
        return self.family or ("all" if self.threat == "edits" else "auto")

    def check_certifiable(self) -> None:
        """Refuse to certify kept sets that are drawn for each text: they prove nothing."""
        check_fixed(self.sampling)

    def resolved(self) -> SmoothingOptions:
        """These options with every default filled in, as a run's record shows them."""
        if self.sampling != "fixed":
            return replace(self, masks=self.masks or DEFAULT_FRESH_MASKS)
        if self.certificate == "exact":
            return replace(self, family=self.voting_family, masks=self.masks or DEFAULT_MASKS)
        return replace(
            self,
            masks=self.masks or DEFAULT_ESTIMATION_MASKS,
            selection_masks=self.selection_masks or DEFAULT_SELECTION_MASKS,
            alpha=self.alpha or DEFAULT_ALPHA,
        )


REQUEST_OPTIONS = tuple(name for name in option_fields(SmoothingOptions) if name != "sampling")
"""What a request to the service may choose: sets that are drawn for each text prove nothing."""


@dataclass(frozen=True)
class SynonymOptions(Checked):
    """How a classifier that is smoothed by synonyms votes and certifies.  Checked when built.

    ``masks`` copies vote in `predict` (100) and are the estimation sample of `certify` (5,000);
    ``selection_masks`` copies select the label that is certified (1,000).
    """

    GROUP: ClassVar[str] = "Smoothing"

    masks: Masks = None
    selection_masks: SelectionMasks = None
    ensemble: EnsembleOption = "vote"
    alpha: Annotated[float, Option("Chance of error (not exact).", above=0, below=1)] = (
        DEFAULT_ALPHA
    )
    seed: Seed = 0

    @property
    def voting_masks(self) -> int:
        """How many copies decide a label without a certificate."""
        return self.masks or DEFAULT_FRESH_MASKS

    @property
    def estimation_masks(self) -> int:
        """How many copies a certificate is estimated from."""
        return self.masks or DEFAULT_ESTIMATION_MASKS

    def check_certifiable(self) -> None:
        """Refuse to certify anything but votes."""
        if self.ensemble != "vote":
            raise OptionError(
                f"certificate='safer' counts votes, so that ensemble={self.ensemble!r} cannot be "
                "certified: use ensemble='vote'; or predict, which claims nothing"
            )

    def resolved(self) -> dict[str, Any]:
        """Plain JSON values with every default filled in, as a run's record shows them."""
        return {
            **asdict(self),
            "masks": self.voting_masks,
            "estimation_masks": self.estimation_masks,
            "selection_masks": self.selection_masks or DEFAULT_SELECTION_MASKS,
            "certificate": SAFER,
            "threat": SYNONYMS,
        }


@dataclass(frozen=True)
class ModelOptions(Checked):
    """How a model's words are hidden and its classes named; a model's file may say it too."""

    GROUP: ClassVar[str] = "Model"

    labels: Annotated[
        tuple[str, ...] | None,
        Option("Names of the classes, separated by commas.", unset="the model's"),
    ] = None
    mask_token: Annotated[
        str | None, Option("What stands for a hidden word.", unset="the model's")
    ] = None
    hide: Annotated[
        Hiding | None, Option("How words are hidden.", unset="as trained, else mask")
    ] = None
    tolerance: Annotated[
        float | None,
        Option("How far outputs may move when recomputed.", unset="measured", least=0),
    ] = None


@dataclass(frozen=True)
class CascadeOptions(Checked):
    """When a cascade takes its smoothed path."""

    threshold: Annotated[
        float,
        Option("Suspicion above which a text is taken for attacked; 1: never.", least=0, most=1),
    ] = 0.5


def overridden(saved: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Saved options with those given now in their place.

    What was chosen for another number of words, another sampling, or the exact certificate where
    one that estimates is asked for (or the other way round) is left out, unless it is given again.
    """
    if given.keys() & _SHOWN.keys():
        given = {**_SHOWN, **given}  # one of the two takes the place of both
    merged = {**saved, **given}
    before, now = _chosen_for(saved), _chosen_for(merged)
    left_out: list[str] = []
    if now != before:
        left_out += ["family", "masks", "selection_masks", "alpha"]
    if now["exact"] != before["exact"]:
        left_out.append("ensemble")
    if now["sampling"] != before["sampling"]:
        left_out.append("certificate")
    return {key: value for key, value in merged.items() if key in given or key not in left_out}


def for_certificate(kind: CertificateKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options for one certificate among several: those that mean nothing to it are left out."""
    check_choice("certificate", kind, CERTIFICATES)
    foreign = ("selection_masks", "alpha") if kind == "exact" else ("family", "ensemble")
    return {
        **{name: value for name, value in given.items() if name not in foreign},
        "certificate": kind,
    }


def _chosen_for(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: options.get(name) for name in _SHOWN},
        "exact": options.get("certificate", "exact") == "exact",
        "sampling": options.get("sampling", "fixed"),
    }
