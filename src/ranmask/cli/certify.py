"""``ranmask certify`` and ``ranmask predict``: parse, call, print."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ranmask.certificates.kept import check_fixed
from ranmask.cli.command import Given, command
from ranmask.cli.loading import copies_alone, load, load_masked, masked_smoothing
from ranmask.cli.options import (
    ColumnOptions,
    InputOptions,
    LmOption,
    ModelChoice,
    OutputOptions,
    PositiveOption,
    ShardingOptions,
    SynonymTable,
    open_input,
)
from ranmask.cli.running import classify
from ranmask.errors import OptionError
from ranmask.options import DeletionKind, SmoothingOptions, for_certificate
from ranmask.options.fields import Checked, option, option_fields
from ranmask.results import Comparison
from ranmask.words import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ranmask.runs.task import Classify, ClassifyTask
    from ranmask.smoothing.smoothed import SmoothedClassifier

_OF_CERTIFICATES = ("family", "masks", "selection_masks", "ensemble", "threat", "threats", "alpha")
NOT_CERTIFIED = ("selection_masks", "certificate", "threat", "threats", "alpha", "tolerance")
"""Options of certificates, which commands that certify nothing do not have."""


@dataclass(frozen=True, kw_only=True)
class CertifyCommand(OutputOptions):
    """What ``ranmask certify`` shows besides."""

    compare: bool = option(
        "Four certificates side by side, each as --certificate gives it: exact, ablation, "
        "paper, paper-as-printed.",
        False,
    )
    copies: int | None = option(
        "Also show this many copies of each text, and what each votes for.", least=1
    )


@dataclass(frozen=True)
class _SynonymCertificate(Checked, kind="synonyms"):
    """The certificate of models that are smoothed by synonyms."""

    certificate: Literal["safer"] = option(
        option_fields(SmoothingOptions)["certificate"].help, "safer"
    )


@dataclass(frozen=True)
class _DeletionCertificate(Checked, kind="deletion"):
    """The certificates of models that are smoothed by deleted words."""

    certificate: DeletionKind = option(
        option_fields(SmoothingOptions)["certificate"].help, "deletion"
    )


@command(
    InputOptions,
    ModelChoice,
    SmoothingOptions,
    SynonymTable,
    _SynonymCertificate,
    _DeletionCertificate,
    CertifyCommand,
    ShardingOptions,
    ColumnOptions,
    PositiveOption,
    without=("sampling",),
)
def certify(given: Given) -> bool:
    """Label texts, and prove how many words can be changed, to anything, without effect.

    With --input and --output, results are appended as they come; the same command again resumes.

    Example: ranmask certify --input mails.csv --label-column label --output out.jsonl
    """
    from ranmask.runs.api import classify_task

    if given.get("compare") or "copies" in given:
        given.refuse(["positive"], "with --compare or --copies")
    if given.get("compare"):
        alone = copies_alone("--compare", given)
        return _classify(alone, partial(_comparing, alone))
    if "copies" in given:
        return _classify(given, partial(_showing, given))
    positive = given.get("positive")
    return _classify(given, partial(classify_task, "certify", partial(load, given), positive))


@command(
    InputOptions,
    ModelChoice,
    SmoothingOptions,
    LmOption,
    OutputOptions,
    ShardingOptions,
    ColumnOptions,
    PositiveOption,
    without=NOT_CERTIFIED,
)
def predict(given: Given) -> bool:
    """Label texts by the vote of their masked copies, without a certificate."""
    from ranmask.runs.api import classify_task

    positive = given.get("positive")
    return _classify(given, partial(classify_task, "predict", partial(load, given), positive))


def _classify(given: Given, make: Callable[[], ClassifyTask]) -> bool:
    asked = given.build(OutputOptions)
    sharding = given.build(ShardingOptions).sharding(asked.output)
    source = open_input(given, asked.output)
    return classify(make, source, asked.output, sharding=sharding, printed=asked.printed)


def _comparing(given: Given) -> ClassifyTask:
    """Several certificates, each as `certify --certificate` gives it with the same options."""
    if "copies" in given:
        raise OptionError(
            f"--copies {given['copies']} does not go with --compare: ask for one of them"
        )
    if "certificate" in given:
        raise OptionError(
            f"--certificate {given['certificate']} means nothing with --compare, which shows "
            "four certificates: leave one of the two out"
        )
    saved = masked_smoothing("--compare", given)
    asked = {**saved, **given}
    threats = ",".join((asked.get("threat", "substitutions"), *(asked.get("threats") or ())))
    if threats != "substitutions":
        raise OptionError(
            f"--compare needs --threat substitutions, not {threats!r}: the other certificates know "
            "nothing else"
        )
    check_fixed(saved.get("sampling", "fixed"))
    # Loaded as it was saved; `for_certificate` says which options belong to which certificate.
    chosen = {name: given[name] for name in _OF_CERTIFICATES if name in given}
    votes = {"ensemble": "vote"} if given.get("ensemble") == "vote" else {}
    smoothed = load_masked("--compare", given, **{**dict.fromkeys(_OF_CERTIFICATES), **votes})
    from ranmask.smoothing.smoothed import COMPARED

    def compare(texts: Sequence[Text]) -> list[Comparison]:
        return [Comparison.of(kinds) for kinds in smoothed.compare(texts, COMPARED, **chosen)]

    exact, *others = (smoothed.with_options(**for_certificate(kind, chosen)) for kind in COMPARED)
    sample = others[0].options.resolved()
    described: dict[str, Any] = {
        "compare": list(COMPARED),
        "estimation_masks": sample.masks,
        "selection_masks": sample.selection_masks,
        "alpha": sample.alpha,
    }
    return described_task(
        "certify", exact, compare, described, without=("certificate",), compared=COMPARED
    )


def _showing(given: Given) -> ClassifyTask:
    """The exact certificate, and some of the copies that it rests on."""
    smoothed = load_masked("--copies", given)
    show = partial(smoothed.certify_showing, copies=given["copies"])
    show([])  # what is wrong with the options is told once, not for every row
    return described_task("certify", smoothed, show, {"copies": given["copies"]})


def described_task(
    command: str,
    classifier: SmoothedClassifier,
    classify: Classify,
    more: Mapping[str, Any],
    without: Sequence[str] = (),
    compared: tuple[str, ...] = (),
) -> ClassifyTask:
    """A task whose record has ``more`` options than the classifier's, and some less."""
    from ranmask.runs.task import ClassifyTask

    description = classifier.description()
    options = {**description["options"], **more}
    described = {name: value for name, value in options.items() if name not in without}
    about = {**description, "options": described}
    return ClassifyTask(command, classifier.labels, classify, about, compared=compared)
