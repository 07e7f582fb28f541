"""The certified tables: the paper's, ours counted the same way, and what is proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ranmask.paper.published import CertifiedTable, published
from ranmask.paper.report.beside import SAME, Finding, unlike, verdict
from ranmask.paper.report.blocks import Block, Fold, Heading, Picture, Section, prose, text
from ranmask.paper.report.certified_runs import AS_PRINTED, ByRate
from ranmask.paper.report.certified_tables import (
    against_paper,
    by_certificate,
    changes,
    proved,
    side_by_side,
)
from ranmask.paper.report.experiments import Experiment, experiments
from ranmask.paper.report.figures import by_length, by_rate, certified_curves
from ranmask.paper.report.names import certificate_name, rate_name, several
from ranmask.paper.report.tables import share, whole
from ranmask.paper.run_data import Certified, Reading, Reproduction

_GLOSSARY = """
    - **Accuracy**: share of texts with the right label, nothing changed.
    - **CR@d**: certified accuracy, the share of all texts that are right *and* certified against
      any d changed words.
    - **MCB**: the median radius, which more than half of the texts reach; wrong labels rank below
      0. **MCR**: the same as a share of the text's words. **N/A**: at least half of the texts have
      a wrong label, or one that is not certified even with nothing changed.
    - **Exact** counts the votes of a fixed list of copies: a deterministic proof. **Levine–Feizi**
      samples copies; each certificate holds with probability at least 1 − α.
    - **No guarantee** marks the paper's own counting, as printed and with its off-by-one removed.
      It is here for comparison with its tables: an attacker may need fewer words than it says.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All certified reproductions; None where there is none."""
    chosen = experiments(run for run in reproductions if run.kind == "certified")
    blocks = text(_GLOSSARY)
    for experiment in chosen:
        blocks += [Heading(experiment.run.title), *_experiment(experiment)]
    return Section("Certified robustness", "certified", blocks) if chosen else None


def in_short(experiment: Experiment) -> list[Finding]:
    """Medians as the paper counts and as they are proved, and what is proved at one word."""
    results = ByRate.of(experiment.main)
    printed = published().certified.get(experiment.run.paper)
    found = []
    counted = [(rate, results.figures(rate, AS_PRINTED)) for rate in results]
    ours = {rate: some.middle for rate, some in counted if some}
    if printed is not None and ours:
        its = {row.rate: -1 if row.mcb is None else row.mcb for row in printed.rows}
        more = max(ours.values()) - max(its.values())
        same = results.same_medians(printed)
        said = f"{abs(more)} {'higher' if more > 0 else 'lower'}" if more else SAME
        if missing := its.keys() - ours.keys():
            said = f"{len(missing)} of {len(its)} rates not run"
        said += f"; same median at {sum(map(all, same.values()))} of {len(same)} rates"
        if contradicted := _faults(printed, results)[0]:
            said += f", significantly different at {len(contradicted)}"
        what = "largest median radius, counted as in the paper (no guarantee)"
        found.append(Finding(what, _largest_median(ours), _largest_median(its), said))
    if results:
        first = results[results.best][0].readings[0]
        sure = "proved" if first.guarantee and first.certificate == "exact" else "certified"
        sure = sure if first.guarantee else "claimed, no guarantee"
        most = _largest_median({rate: results.figures(rate).middle for rate in results})
        beside = ("none", "its radii are one too high") if printed and sure == "proved" else ()
        found.append(Finding(f"largest median radius, {sure}", most, *beside))
        share_of = {rate: results.figures(rate).certified_share(1) for rate in results}
        rate = max(share_of, key=lambda rate: share_of[rate])
        masked = "" if rate is None else f" ({rate_name(rate)} masked)"
        found.append(Finding(f"highest CR@1, {sure}", share(share_of[rate]) + masked))
    return found


def _largest_median(by_rate: Mapping[float | None, int] | Mapping[float, int]) -> str:
    """The largest median, -1 for N/A, and at which masking rates it is reached."""
    most = max(by_rate.values())
    rates = [rate_name(rate) for rate, median in by_rate.items() if median == most]
    spelt = whole(None if most < 0 else most)
    if len(rates) == len(by_rate):
        return spelt if len(rates) == 1 else f"{spelt} (at every rate)"
    return f"{spelt} ({several(rates)} masked)"


def _experiment(experiment: Experiment) -> list[Block]:
    run = experiment.run
    results = ByRate.of(experiment.main)
    printed = published().certified.get(run.paper)
    if not results:
        return text("No certified run is finished, so there is nothing to show.")
    blocks: list[Block] = []
    if printed is not None:
        blocks += [*unlike(experiment, printed.base), against_paper(printed, results)]
        blocks += [*verdict(*_faults(printed, results)), *_agreement(printed, results)]
    return [
        *blocks,
        proved(results, noted=printed is not None),
        *_other_settings(experiment, printed, results),
        _curves(run, results),
        _aside(run, results),
        Fold("CR@1 to CR@5 with intervals", [by_certificate(results)]),
    ]


def _faults(printed: CertifiedTable, results: ByRate) -> tuple[list[str], list[str]]:
    """Medians that are the paper's in no seed, counted as it counts.

    First those that are more than noise: in no seed the interval of the median holds the paper's.
    """
    sure: list[str] = []
    close: list[str] = []
    for row in printed.rows:
        found = results.figures(row.rate, AS_PRINTED)
        if not found or any(summary.median_radius == row.mcb for _, summary in found):
            continue
        held = sum(_held(of, row.mcb) for of, _ in found)
        inside = f" (its 95 % interval contains the paper's in {held} of {len(found)} seeds)"
        (close if held else sure).append(
            f"At {rate_name(row.rate)} masked the paper has a median radius (MCB) of "
            f"{whole(row.mcb)} at an accuracy of {row.accuracy:.1f} %; ours is "
            f"{found.medians}{inside if held else ''} at {100 * found.accuracy:.1f} %."
        )
    return sure, close


def _held(of: Reading, median: int | None) -> bool:
    """Whether the interval of the median radius holds another one."""
    ends = of.median_interval()
    if ends is None:
        return True
    low, high, at = (-1 if value is None else value for value in (*ends, median))
    return low <= at <= high


def _agreement(printed: CertifiedTable, results: ByRate) -> list[Block]:
    """At how many rates is the median the paper's, and what is proved?"""
    found = results.same_medians(printed)
    same = [all(seeds) for seeds in found.values()]
    some = sum(any(seeds) and not all(seeds) for seeds in found.values())
    said = "No masking rate of the paper's table was counted as in the paper."
    if same:
        said = """Counted as in the paper, the median radius equals the paper's at
            **{same} of {compared}** masking rates."""
        if some:
            said += " At {some} more it does in some seeds only."
    medians = [
        summary.median_radius
        for rate in results
        for of, summary in results.figures(rate)
        if of.guarantee
    ]
    best = max((-1 if median is None else median for median in medians), default=-1)
    if not medians:
        said += " Nothing here is *proved*."
    else:
        said += " The largest median that is *proved* is {best}; see the next table."
    if medians and any(rate is not None and rate <= 0.5 for rate in results):
        said += """ At 50 % masked or less no certificate here can prove a single word, however
            good the model: some word is visible in at least half of the copies."""
    words = "N/A" if best < 0 else "1 word" if best == 1 else f"{best} words"
    return text(said, same=sum(same), compared=len(same), some=some, best=words)


def _first_seeds(results: ByRate) -> tuple[dict[float | None, Certified], str]:
    """One result for each rate, as charts show it; and what a caption says of that."""
    said = " With several seeds, the first is drawn." if results.several_seeds else ""
    return {rate: seeds[0] for rate, seeds in results.items()}, said


def _curves(run: Reproduction, results: ByRate) -> Picture:
    caption = """Certified accuracy against the number of changed words. The band is the 95 %
        interval of the first certificate, {first}."""
    drawn, said = _first_seeds(results)
    if any(result.reading(AS_PRINTED, 1) for result in drawn.values()):
        caption += """ Where the paper's lines lie above the others, it claims more than is proved.
            The exact certificate takes its label from all copies, the others from a smaller
            sample, so they may start lower or higher."""
    charts = [certified_curves(rate, result) for rate, result in drawn.items()]
    first = certificate_name(next(iter(drawn.values())).readings[0])
    return Picture(f"{run.name}-curves", charts, prose(caption + said, first=first))


def _aside(run: Reproduction, results: ByRate) -> Picture:
    """Lengths at the rate that certifies most; before it all rates, where there are several."""
    best = results.best
    drawn, said = _first_seeds(results)
    name, charts, caption = "lengths", [by_length(best, drawn[best])], "By length:"
    rates = {rate: result for rate, result in drawn.items() if rate is not None}
    if len(rates) > 1:
        name, charts = "rates", [by_rate(rates), *charts]
        caption = "First: every masking rate. Second:"
    caption += """ shorter and longer texts, about a quarter in each group ({rate}). Bars are 95 %
        intervals."""
    rate = rate_name(best, " masked")
    return Picture(f"{run.name}-{name}", charts, prose(caption + said, rate=rate))


def _other_settings(
    experiment: Experiment, printed: CertifiedTable | None, results: ByRate
) -> list[Block]:
    """What other settings change: side by side, on average, and their own tables."""
    others = [(one, found) for one in experiment.others if (found := ByRate.of(one))]
    if not others:
        return []
    by_label = {one.label: found for one, found in others}
    full = {one.full: found for one, found in others}
    heading = Heading("What other settings change", 4)
    side, mean = side_by_side(results, by_label), changes(results, full, printed)
    blocks: list[Block] = [heading, side, mean]
    for label, found in by_label.items():
        tables = [proved(found, noted=printed is not None)]
        if printed is not None:
            tables.insert(0, against_paper(printed, found, every=False))
        blocks.append(Fold(f"The tables of {label}", tables))
    return blocks
