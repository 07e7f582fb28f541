"""``ranmask beta``: parse, call, print."""

from __future__ import annotations

from dataclasses import dataclass

from ranmask.cli.certify import described_task
from ranmask.cli.command import Given, command
from ranmask.cli.loading import copies_alone, load_masked
from ranmask.cli.options import ColumnOptions, InputOptions, ModelChoice, OutputOptions, open_input
from ranmask.cli.running import classify
from ranmask.options import KEEP, MASK_RATE, SEED
from ranmask.options.fields import Checked, option
from ranmask.runs.result_file import check_result_file


@dataclass(frozen=True, kw_only=True)
class BetaCommand(Checked, group="Estimate"):
    """How beta is estimated."""

    keep: int | None = KEEP()
    mask_rate: float | None = MASK_RATE()
    masks: int | None = option("Random copies a text.", unset="10000", least=1)
    draws: int | None = option("Random choices of changed words to average over.", unset="200")
    changed: int | None = option("Most words that are changed.", unset="10")
    seed: int = SEED(0)


@command(
    InputOptions,
    ModelChoice,
    BetaCommand,
    OutputOptions,
    ColumnOptions,
    without=("tolerance", "recheck"),
)
def beta(given: Given) -> bool:
    """Estimate the paper's beta, how copies that show a changed word vote; it proves nothing.

    Prints JSON lines.  With --output they are appended as they come; the same command again
    resumes.
    """
    given = copies_alone("beta", given)
    asked = given.build(OutputOptions)
    output = asked.output
    source = open_input(given, output)
    if output is not None:
        check_result_file(output)
    from ranmask.paper.betas import DEFAULT_BETA_MASKS, BetaEstimator

    # Votes of a random sample, however the model was saved to vote and to be certified.
    smoothed = load_masked(
        "beta",
        given,
        masks=given.get("masks", DEFAULT_BETA_MASKS),
        certificate="ablation",
        ensemble="vote",
        threat="substitutions",
        sampling="fixed",
    )
    wanted = {name: given[name] for name in ("changed", "draws") if name in given}
    estimator = BetaEstimator(smoothed, **wanted)
    described = {"changed": estimator.changed, "draws": estimator.draws}
    task = described_task(
        "beta",
        smoothed,
        estimator.estimate,
        described,
        without=("certificate", "selection_masks", "alpha"),
    )
    return classify(lambda: task, source, output, printed=asked.printed or "json")
