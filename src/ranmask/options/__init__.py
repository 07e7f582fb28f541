"""How a smoothed classifier votes and certifies: names, defaults, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from ranmask.certificates.kept import FamilyChoice, Retention, Sampling, check_fixed
from ranmask.errors import OptionError
from ranmask.options.fields import Checked, Option, check_choice, option_fields
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

_MOST_LEVELS = 7  # 64 segments
_SHOWN = {"keep": None, "mask_rate": None}  # how many words a copy shows: one of the two

Keep = Annotated[int | None, Option("Words that each copy shows.", least=1)]
MaskRate = Annotated[
    float | None,
    Option("Or: share of words that is hidden.", least=0, below=1, also=(Fraction,)),
]
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

    reader_weights: Annotated[
        tuple[float, ...] | None,
        Option(
            "What a reader weighs, in copies, of the whole text, then of each half, each quarter, "
            "...",
            least=0,
            most=1_000_000,
        ),
    ] = None
    reader_says: Annotated[
        Literal["scores", "label"],
        Option("What of a reader's answer is weighed: its scores, or all for its first label."),
    ] = "scores"

    def __post_init__(self) -> None:
        Retention(self.keep, self.mask_rate)
        if isinstance(self.reader_weights, list):  # as a file has it
            object.__setattr__(self, "reader_weights", tuple(self.reader_weights))
        super().__post_init__()
        if self.reader_weights is not None:
            self._check_reader_weights(self.reader_weights)
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

    def _check_reader_weights(self, weights: tuple[float, ...]) -> None:
        if not any(weights) or len(weights) > _MOST_LEVELS:
            raise OptionError(
                f"reader_weights must be 1 to {_MOST_LEVELS} numbers, one of them above 0, not "
                f"{weights!r}"
            )
        self._refuse(("certificate",), "which goes with no reader", beside="reader_weights")
        if any(weights[1:]):
            for name, value, needed in (
                ("keep", self.keep, 1),
                ("threat", self.threat, "substitutions"),
                ("family", "auto" if self.family != "distinct" else self.family, "auto"),
            ):
                if value != needed:
                    raise OptionError(
                        f"reader_weights={weights!r} weighs segments, which needs {name}="
                        f"{needed!r}, not {value!r}: use that, or weigh the whole text alone"
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
        left_out += ["ensemble", "reader_weights"]
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
