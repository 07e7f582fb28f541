"""How a smoothed classifier votes and certifies: names, defaults, and which go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from ranmask.certificates.kept import FamilyChoice, Retention, Sampling, check_fixed
from ranmask.certificates.threats import MOVING
from ranmask.certificates.threats import Threat as Threat
from ranmask.errors import OptionError
from ranmask.options.fields import Checked, check_choice, option, option_fields
from ranmask.words import Hiding

CertificateKind: TypeAlias = Literal[
    "exact",
    "ablation",
    "ablation-runner-up",
    "paper",
    "paper-as-printed",
    "paper-estimated-beta",
]
CERTIFICATES: tuple[CertificateKind, ...] = get_args(CertificateKind)

DeletionKind: TypeAlias = Literal["deletion", "deletion-runner-up"]
DELETIONS: tuple[DeletionKind, ...] = get_args(DeletionKind)
"""The certificates of classifiers that are smoothed by deleted words (`DeletionOptions`)."""

Ensemble: TypeAlias = Literal["vote", "score", "logit"]
ENSEMBLES: tuple[Ensemble, ...] = get_args(Ensemble)

SAFER: Literal["safer"] = "safer"
"""The certificate of classifiers that are smoothed by synonyms, which have no other."""
SYNONYMS = "synonyms"
"""The threat that it covers: words replaced by words that a table lists for them."""

DEFAULT_MASKS = 1000
DEFAULT_ESTIMATION_MASKS = 5000
DEFAULT_SELECTION_MASKS = 1000
DEFAULT_FRESH_MASKS = 100
DEFAULT_ALPHA = 0.05

_MOST_LEVELS = 7  # 64 segments
_SHOWN = {"keep": None, "mask_rate": None}  # how many words a copy shows: one of the two

KEEP = partial(option, "Words that each copy shows.", least=1)
MASK_RATE = partial(
    option, "Or: share of words that is hidden.", least=0, below=1, also=(Fraction,)
)
MASKS = partial(
    option,
    "Most copies of a text.",
    unset=f"{DEFAULT_MASKS}, or {DEFAULT_ESTIMATION_MASKS} to estimate from; "
    f"{DEFAULT_FRESH_MASKS} where they are drawn for each text",
    least=1,
)
SELECTION_MASKS = partial(
    option,
    "Copies that choose the label, before others estimate its share (not exact).",
    unset=str(DEFAULT_SELECTION_MASKS),
    least=1,
)
ENSEMBLE = partial(option, "What is added up over the copies.")
SEED = partial(option, "Seed of all that is drawn at random.", least=0)
LABELS = partial(option, "Names of the classes, separated by commas.", unset="the model's")
DEVICE = partial(option, "cpu, cuda and so on.", unset="a GPU if there is one")


@dataclass(frozen=True)
class SmoothingOptions(Checked, group="Smoothing"):
    """How a smoothed classifier votes and certifies.  Checked when built.

    None stands for the default; `resolved` fills it in.  Options that mean nothing together are
    refused: a ``family`` with a certificate that samples at random, or ``selection_masks`` and
    ``alpha`` with the exact one.  ``threat`` is what ``radius`` counts, and ``threats`` are others
    whose radii stand beside it (`certificates.threats`).  All but ``substitutions`` go with the
    exact certificate, and all but that and ``span`` with ``keep=1``.  A threat that moves words
    goes with ``family="all"`` (its default) or ``distinct``: a longer text must be voted on by all
    of its words too.  Where those are more than ``masks`` it is refused, not sampled.
    ``family="distinct"`` needs ``keep=1`` as well, and goes with every threat.

    ``sampling="fresh"`` and ``"lm"`` draw ``masks`` kept sets for each text (100, the paper's
    ensemble; a set may repeat).  **They are never certified**, so that ``family``, another
    ``certificate`` and other threats mean nothing with them.
    """

    keep: int | None = KEEP()
    mask_rate: float | None = MASK_RATE()
    family: FamilyChoice | None = option(
        "Which copies vote: all there are, a sample, runs of neighbouring words, or one for each "
        "distinct word (exact only).",
        unset="auto",
    )
    masks: int | None = MASKS()
    selection_masks: int | None = SELECTION_MASKS()
    ensemble: Ensemble = ENSEMBLE("vote")
    certificate: CertificateKind = option(
        "Which certificate; the paper's carry no guarantee.", "exact"
    )
    alpha: float | None = option(
        "Chance that a certificate is wrong (not exact).",
        unset=str(DEFAULT_ALPHA),
        above=0,
        below=1,
    )
    seed: int = SEED(0)
    threat: Threat = option(
        "Which changes the radius counts. Several, separated by commas: the first is the radius, "
        "the radii of the others stand beside it.",
        "substitutions",
    )
    threats: tuple[Threat, ...] | None = option(
        "Other threats, whose radii stand beside it.", unset="none", after="threat"
    )
    sampling: Sampling = option(
        "fixed; or, proving nothing, masks drawn for each text: fresh, or lm (words that a "
        "language model predicts badly are hidden more often).",
        "fixed",
    )

    reader_weights: tuple[float, ...] | None = option(
        "Weight of the reader, in copies: for the whole text, for each half, quarter and so on.",
        least=0,
        most=1_000_000,
    )

    def __post_init__(self) -> None:
        Retention(self.keep, self.mask_rate)
        for name in ("reader_weights", "threats"):
            if isinstance(value := getattr(self, name), list):  # as a file has it
                object.__setattr__(self, name, tuple(value))
        wanted: str = self.certificate
        if wanted in (SAFER, *DELETIONS):
            smoothed = "by synonyms" if wanted == SAFER else "by deleted words"
            raise OptionError(
                f"certificate={wanted!r} is that of a classifier smoothed {smoothed}, which this "
                "one is not: leave it out, or use such a model"
            )
        super().__post_init__()
        if self.reader_weights is not None:
            self._check_reader_weights(self.reader_weights)
        if self.certificate == "exact":
            use = "draws no samples: leave it out, or use certificate='ablation'"
            self._refuse("certificate", use, "selection_masks", "alpha")
        else:
            use = "draws random kept sets: leave it out, or use certificate='exact'"
            self._refuse("certificate", use, "family")
            if self.ensemble != "vote":
                raise OptionError(
                    f"certificate={self.certificate!r} counts votes; ensemble="
                    f"{self.ensemble!r} goes with certificate='exact' only"
                )
        if self.sampling != "fixed":
            use = "certifies none: leave it out, or use sampling='fixed'"
            because = f"draws kept sets for each text and {use}"
            self._refuse("sampling", because, "family", "certificate", "threat", "threats")
        if self.family == "distinct" and self.keep != 1:
            raise OptionError(
                f"family='distinct' counts each word once, by itself: it needs keep=1, not "
                f"keep={self.keep!r}; or use family='auto'"
            )
        object.__setattr__(self, "threats", tuple(dict.fromkeys(self.threats or ())) or None)
        for threat in self.all_threats:
            self._check_threat(threat)

    @property
    def all_threats(self) -> tuple[Threat, ...]:
        """All threats that are certified, first the one that ``radius`` counts."""
        return tuple(dict.fromkeys((self.threat, *(self.threats or ()))))

    def _check_threat(self, threat: Threat) -> None:
        """Refuse a threat that is not proved with these options."""
        if threat == "substitutions":
            return
        needed: list[tuple[str, object, object]] = [("certificate", self.certificate, "exact")]
        if threat != "span":
            needed.append(("keep", self.keep, 1))
            # Where it does not decide what votes, texts of up to ``masks`` words will do.
            auto = self.family == "auto" and (threat != self.threat or threat not in MOVING)
            needed.append(("family", "all" if auto else self.family or "all", "all"))
        for name, value, right in needed:
            if value not in (right, "distinct"):
                raise OptionError(
                    f"threat={threat!r} needs {name}={right!r}, not {value!r}: use that (a word "
                    "table, with an encoder that reads the whole text beside it, does), or "
                    "threat='substitutions'"
                )

    def _check_reader_weights(self, weights: tuple[float, ...]) -> None:
        if not any(weights) or len(weights) > _MOST_LEVELS:
            raise OptionError(
                f"reader_weights must be 1 to {_MOST_LEVELS} numbers, one of them above 0, not "
                f"{weights!r}"
            )
        self._refuse("reader_weights", "goes with the exact one only", "certificate")
        if any(weights[1:]):
            for name, value, needed in (
                ("keep", self.keep, 1),
                ("threat", self._not_by_position, "substitutions"),
                ("family", "auto" if self.family != "distinct" else self.family, "auto"),
            ):
                if value != needed:
                    raise OptionError(
                        f"reader_weights={weights!r} weighs segments, which needs {name}="
                        f"{needed!r}, not {value!r}: use that, or weigh the whole text alone"
                    )

    @property
    def _not_by_position(self) -> str:
        """A threat that segments, which are cut by position, prove nothing against."""
        found = (name for name in self.all_threats if name not in ("substitutions", "span"))
        return next(found, "substitutions")

    def _refuse(self, beside: str, because: str, *names: str) -> None:
        other = f"{beside}={getattr(self, beside)!r}, which {because}"
        for name in names:
            value = getattr(self, name)
            if value != option_fields(SmoothingOptions)[name].default:
                raise OptionError(f"{name}={value!r} means nothing with {other}")

    @property
    def voting_family(self) -> FamilyChoice:
        """The choice of family for the exact certificate, with the default filled in."""
        return self.family or ("all" if self.threat in MOVING else "auto")

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


_NO_REQUEST = ("sampling", "reader_weights")
REQUEST_OPTIONS = tuple(name for name in option_fields(SmoothingOptions) if name not in _NO_REQUEST)
"""What a request to the service may choose: sets that are drawn for each text prove nothing, and
what a reader weighs is the model's."""


@dataclass(frozen=True)
class SynonymOptions(Checked, group="Smoothing"):
    """How a classifier that is smoothed by synonyms votes and certifies.  Checked when built.

    ``masks`` copies vote in `predict` (100) and are the estimation sample of `certify` (5,000);
    ``selection_masks`` copies select the label that is certified (1,000).
    """

    masks: int | None = MASKS()
    selection_masks: int | None = SELECTION_MASKS()
    ensemble: Ensemble = ENSEMBLE("vote")
    alpha: float = option("Chance of error (not exact).", DEFAULT_ALPHA, above=0, below=1)
    seed: int = SEED(0)

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
            "masks": self.masks or DEFAULT_FRESH_MASKS,
            "estimation_masks": self.masks or DEFAULT_ESTIMATION_MASKS,
            "selection_masks": self.selection_masks or DEFAULT_SELECTION_MASKS,
            "certificate": SAFER,
            "threat": SYNONYMS,
        }


@dataclass(frozen=True)
class DeletionOptions(Checked, kind="deletion", group="Smoothing"):
    """How a classifier that is smoothed by deleted words certifies.  Checked when built.

    Each word is deleted with the chance ``mask_rate``; with ``keep``, the chance is larger in texts
    of which copies would have more words than that on average.  ``selection_masks`` copies select
    the label (1,000) and ``masks`` others are what `certify` estimates from (5,000).
    """

    ensemble: ClassVar[Ensemble] = "vote"

    mask_rate: float | None = MASK_RATE()
    keep: int | None = KEEP()
    masks: int | None = MASKS()
    selection_masks: int | None = SELECTION_MASKS()
    certificate: DeletionKind = option("What is proved.", "deletion")
    alpha: float = option("Chance of error (not exact).", DEFAULT_ALPHA, above=0, below=1)
    seed: int = SEED(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mask_rate:
            raise OptionError(
                f"certificate={self.certificate!r} needs mask_rate, the chance that a word is "
                f"deleted, as 0.9; not {self.mask_rate!r}",
                "mask_rate",
            )

    @property
    def least_rate(self) -> float:
        """The chance that a word of a short text is deleted."""
        assert self.mask_rate is not None
        return self.mask_rate

    def check_certifiable(self) -> None:
        """Votes are counted, whatever the options."""

    def resolved(self) -> dict[str, Any]:
        """Plain JSON values with every default filled in, as a run's record shows them."""
        return {
            **asdict(self),
            "masks": self.masks or DEFAULT_ESTIMATION_MASKS,
            "selection_masks": self.selection_masks or DEFAULT_SELECTION_MASKS,
            "ensemble": self.ensemble,
            "threat": "edit-distance",
        }


@dataclass(frozen=True)
class ModelOptions(Checked, group="Model"):
    """How a model's words are hidden and its classes named; a model's file may say it too."""

    labels: tuple[str, ...] | None = LABELS()
    mask_token: str | None = option("Token that stands for a hidden word.", unset="the model's")
    hide: Hiding | None = option(
        "How words are hidden: left out (drop), or a token for each (mask).",
        unset="as trained, else mask",
    )
    tolerance: float | None = option(
        "How far scores may move when a copy is scored again.", unset="measured", least=0
    )


@dataclass(frozen=True)
class CascadeOptions(Checked):
    """When a cascade takes its smoothed path."""

    threshold: float = option(
        "Suspicion above which a text is taken for attacked; 1: never.", 0.5, least=0, most=1
    )


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
        left_out += ["ensemble", "reader_weights", "threats"]
    if now["sampling"] != before["sampling"]:
        left_out.append("certificate")
    return {key: value for key, value in merged.items() if key in given or key not in left_out}


def for_certificate(kind: CertificateKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options for one certificate among several: those that mean nothing to it are left out."""
    check_choice("certificate", kind, CERTIFICATES)
    foreign = ("selection_masks", "alpha") if kind == "exact" else ("family", "ensemble")
    own = {name: value for name, value in given.items() if name not in foreign}
    return {**own, "certificate": kind}


def _chosen_for(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: options.get(name) for name in _SHOWN},
        "exact": options.get("certificate", "exact") == "exact",
        "sampling": options.get("sampling", "fixed"),
    }
