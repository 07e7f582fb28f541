"""How a smoothed classifier votes and certifies: names, defaults, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from ranmask.certificates.families import (
    FAMILY_CHOICES,
    SAMPLINGS,
    FamilyChoice,
    Retention,
    Sampling,
    check_fixed,
)
from ranmask.errors import OptionError

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
ENSEMBLES: tuple[str, ...] = get_args(Ensemble)

Threat: TypeAlias = Literal["substitutions", "edits"]
THREATS: tuple[Threat, ...] = get_args(Threat)

SAFER = "safer"
"""The certificate of classifiers that are smoothed by synonyms, which have no other."""
SYNONYMS = "synonyms"
"""The threat that it covers: words replaced by words that a table lists for them."""

DEFAULT_MASKS = 1000
DEFAULT_ESTIMATION_MASKS = 5000
DEFAULT_SELECTION_MASKS = 1000
DEFAULT_FRESH_MASKS = 100
DEFAULT_ALPHA = 0.05

_SHOWN = {"keep": None, "mask_rate": None}  # how many words a copy shows: one of the two


@dataclass(frozen=True)
class SmoothingOptions:
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

    keep: int | None = None
    mask_rate: float | None = None
    family: FamilyChoice | None = None
    masks: int | None = None
    selection_masks: int | None = None
    ensemble: Ensemble = "vote"
    certificate: CertificateKind = "exact"
    alpha: float | None = None
    seed: int = 0
    threat: Threat = "substitutions"
    sampling: Sampling = "fixed"

    def __post_init__(self) -> None:
        Retention(self.keep, self.mask_rate)
        check_choice("certificate", self.certificate, CERTIFICATES)
        check_choice("ensemble", self.ensemble, ENSEMBLES)
        check_choice("threat", self.threat, THREATS)
        check_choice("sampling", self.sampling, SAMPLINGS)
        if self.family is not None:
            check_choice("family", self.family, FAMILY_CHOICES)
        for name in ("masks", "selection_masks"):
            _whole(name, getattr(self, name), least=1)
        _whole("seed", self.seed, least=0)
        if self.alpha is not None:
            _check_alpha(self.alpha)
        if self.certificate == "exact":
            for name in ("selection_masks", "alpha"):
                if getattr(self, name) is not None:
                    raise OptionError(
                        f"{name}={getattr(self, name)!r} means nothing with certificate='exact', "
                        "which draws no samples: leave it out, or use certificate='ablation'"
                    )
        else:
            if self.family is not None:
                raise OptionError(
                    f"family={self.family!r} means nothing with certificate="
                    f"{self.certificate!r}, which draws random kept sets: leave it out, or use "
                    "certificate='exact'"
                )
            if self.ensemble != "vote":
                raise OptionError(
                    f"certificate={self.certificate!r} counts votes; ensemble="
                    f"{self.ensemble!r} goes with certificate='exact' only"
                )
        if self.sampling != "fixed":
            self._check_drawn()
        if self.family == "distinct" and self.keep != 1:
            raise OptionError(
                f"family='distinct' counts each word once, by itself: it needs keep=1, not "
                f"keep={self.keep!r}; or use family='auto'"
            )
        if self.threat == "edits":
            self._check_edits()

    def _check_drawn(self) -> None:
        for name, value, plain in (
            ("family", self.family, None),
            ("certificate", self.certificate, "exact"),
            ("threat", self.threat, "substitutions"),
        ):
            if value != plain:
                raise OptionError(
                    f"{name}={value!r} means nothing with sampling={self.sampling!r}, which draws "
                    "kept sets for each text and certifies none: leave it out, or use "
                    "sampling='fixed'"
                )

    def _check_edits(self) -> None:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class SynonymOptions:
    """How a classifier that is smoothed by synonyms votes and certifies.  Checked when built.

    ``masks`` copies vote in `predict` (100) and are the estimation sample of `certify` (5,000);
    ``selection_masks`` copies select the label that is certified (1,000).
    """

    masks: int | None = None
    selection_masks: int | None = None
    ensemble: Ensemble = "vote"
    alpha: float = DEFAULT_ALPHA
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("ensemble", self.ensemble, ENSEMBLES)
        for name in ("masks", "selection_masks"):
            _whole(name, getattr(self, name), least=1)
        _whole("seed", self.seed, least=0)
        _check_alpha(self.alpha)

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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


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


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of those allowed."""
    if value not in allowed:
        raise OptionError(f"{name} must be one of {', '.join(allowed)}; not {value!r}")


def _check_alpha(alpha: object) -> None:
    if not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise OptionError(f"alpha must lie between 0 and 1, not {alpha!r}")


def _whole(name: str, value: object, least: int) -> None:
    if value is not None and not (
        isinstance(value, int) and not isinstance(value, bool) and value >= least
    ):
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
