"""Ours beside the paper's: settings that differ, main figures in short, and verdicts."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Block, Paragraph, Span, prose, text
from ranmask.paper.report.experiments import Experiment, variant_label
from ranmask.paper.run_data import Attacked, Reproduction, Step, Trained, model_name

SAME = "as in the paper"
_MASKS = {"certified": "masks", "beta": "masks"}  # else as many as where a classifier is attacked
_COMMANDS = (
    (r"--longest (\d+)", "texts truncated at {} tokens"),
    (r"--most-queries (\d+)", "at most {} queries per attack"),
    (
        r"attack .*--neighbours (\S+)",
        "TextFooler's candidates from the table {} (paper: 50 neighbours by GloVe)",
    ),
    (r"(--sentence-encoder) ", "sentence similarity by another encoder than USE"),
    (r"--attack-lm (\S+)", "BERT-Attack's language model {} (paper: BERT)"),
)
_PARTIAL = re.compile(r"of ([\d,]+) training rows \(partial\)")
_TESTED = re.compile(r"([\d,]+ of [\d,]+ test rows) \(partial\)")
_ATTACKED = re.compile(r"of ([\d,]+) texts attacked")


@dataclass(frozen=True)
class Finding:
    """One main figure: ours, the paper's, and what that says of the paper."""

    what: str
    ours: str
    paper: str = ""
    verdict: str = ""


def verdict(faults: Sequence[str], noise: Sequence[str] = ()) -> list[Block]:
    """What ours contradicts, set off; and where the difference is not significant, quieter."""
    blocks = text("> **Contradicts the paper.** {said}", said=" ".join(faults)) if faults else []
    if noise:
        said = " ".join(noise)
        blocks += text("**Differs from the paper, within noise.** {said}", said=said)
    return blocks


def unlike(experiment: Experiment, base: str = "") -> list[Block]:
    """Beside a table: in what the settings of its first configuration are not the paper's.

    ``base``: the paper's, where it says so.  Other configurations say themselves in what they
    differ from the first.  Below stand the remarks of all runs, each once; one that the run which
    names the experiment does not have begins with the settings of the first that has it.
    """
    run = experiment.run
    whose: dict[str, Reproduction] = {}
    for other in experiment.runs:
        whose |= {remark: other for remark in other.remarks if remark not in whose}
    remarks = [
        remark if of is run else f"{variant_label(of)}: {remark}" for remark, of in whose.items()
    ]
    return [
        *_unlike(experiment, base),
        *(Paragraph((Span(remark),), "quiet") for remark in remarks),
    ]


def _unlike(experiment: Experiment, base: str) -> list[Block]:
    run = experiment.run
    if not run.paper or not run.settings:
        return []
    known, unknown = [], []
    for name, mine, its in _settings(experiment, base):
        if mine and not its:
            unknown.append(f"{name} {count(mine)}")
        elif mine and mine != its:
            known.append(f"{name} {count(mine)} (paper: {count(its)})")
    known += _said(run)
    unknown += _augmented(run)
    spans = prose("*Unlike the paper:* {said}.", said="; ".join(known)) if known else ()
    if unknown:
        more = prose("*Where the paper says nothing:* {said}.", said="; ".join(unknown))
        spans = (*spans, *([Span(" ")] if spans else []), *more)
    return [Paragraph(spans, "quiet")] if spans else []


def count(value: object) -> str:
    """A number as it is read, anything else as it is."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def sizes(steps: Iterable[Step]) -> set[int]:
    """Numbers of texts that occur."""
    listed = [getattr(step.result, "rows", getattr(step.result, "lines", ())) for step in steps]
    return {len(some) for some in listed if some}


def told_texts(stated: int, seem: int) -> str:
    """Of how many texts the paper says that its figures are, and of how many they seem to be."""
    return f"{count(stated)}; {count(seem)} by its figures"


def shortened(said: str) -> str:
    """The beginning of a long message; the step's log has all of it."""
    return textwrap.shorten(said, 200, placeholder=" …")


def from_to(numbers: set[int]) -> int | str:
    """A number, or the least and the largest of several."""
    if len(numbers) < 2:
        return max(numbers, default=0)
    return f"{min(numbers):,} to {max(numbers):,}"


def _settings(experiment: Experiment, base: str) -> Iterator[tuple[str, Any, Any]]:
    """What a setting is called, ours, and the paper's; nothing where it is not known."""
    run, ours, stated = experiment.run, experiment.run.settings, published().settings
    texts = from_to(sizes(step for step in run.steps if step.place))
    masks = (published().beta if run.kind == "beta" else stated)[
        _MASKS.get(run.kind, "attacked_masks")
    ]
    yield "base", model_name(str(ours.get("base", ""))), base
    yield "texts", texts, None if run.kind == "beta" else _texts_of(run.paper)
    yield "masks", ours.get("masks"), masks
    yield "hidden words", "left out" if ours.get("hide") == "drop" else None, "masked"
    if run.kind == "rates":
        yield "seeds", len(experiment.main.seeds), published().rates["runs"]
    training = stated["training"]
    most = f"at most {training['epochs']}"
    yield "epochs", _usual(run, "--epochs", int), most
    yield "batch size", _usual(run, "--batch-size", int), training["batch_size"]
    spelt = _power(training["learning_rate"])
    yield "learning rate", _usual(run, "--learning-rate", _power), spelt


def _texts_of(paper: str) -> int | str:
    stated, its = int(published().settings["texts"]), published().empirical.get(paper)
    return stated if its is None or its.texts is None else told_texts(stated, its.texts)


def _said(run: Reproduction) -> Iterator[str]:
    """What commands and records of a run say of other settings."""
    notes = {str(step.data.get("note")) for step in run.steps if isinstance(step.data, Mapping)}
    parts = {(found[1], "shuffled" in note) for note in notes if (found := _TESTED.search(note))}
    for part, shuffled in sorted(parts):
        yield f"texts of {part}" if shuffled else f"the first texts of {part} (paper: random ones)"
    for pattern, words in _COMMANDS:
        values = {value for step in run.steps for value in re.findall(pattern, step.command)}
        if values:
            yield words.format(" or ".join(sorted(values)))
    attacks = [step.command for step, _ in run.finished(Attacked)]
    half = [one for one in attacks if re.search(r"--dtype b?float16", one)]
    if half:
        some = "" if len(half) == len(attacks) else f" in {len(half)} of {len(attacks)} attacks"
        yield f"victims in float16{some}"
    for rows, whole in sorted(
        {
            (one["rows"], found[1])
            for one in _training_sets(run)
            if (found := _PARTIAL.search(str(one.get("note")))) and "+" not in str(one.get("name"))
        }
    ):
        yield f"trained on {count(rows)} of {whole} rows"


def _augmented(run: Reproduction) -> Iterator[str]:
    """How many texts were attacked for augmentation."""
    for one in _training_sets(run):
        if found := _ATTACKED.search(str(one.get("note"))):
            yield f"{found[1]} training texts attacked for augmentation"


def _victims(run: Reproduction) -> Iterator[tuple[Step, Trained]]:
    """Trainings, but for those of an attacker's language model."""
    for step, result in run.finished(Trained):
        if "--kind mlm" not in step.command:
            yield step, result


def _training_sets(run: Reproduction) -> Iterator[Mapping[str, Any]]:
    for _, result in _victims(run):
        found = result.run.get("train")
        if isinstance(found, Mapping) and isinstance(found.get("rows"), int):
            yield found


def _usual(run: Reproduction, option: str, read: Any) -> Any:
    """An option's value in most trainings, with those that have another one by name."""
    found = {
        step.name: read(value[1])
        for step, _ in _victims(run)
        if (value := re.search(rf"{option} (\S+)", step.command))
    }
    if not found:
        return None
    [(usual, _)] = Counter(found.values()).most_common(1)
    others = [f"{name}: {value}" for name, value in found.items() if value != usual]
    return f"{usual}, {', '.join(others)}" if others else usual


def _power(value: str | float) -> str:
    """A learning rate as people write it: 5e-5."""
    digits, power = f"{float(value):e}".split("e")
    return f"{float(digits):g}e{int(power)}"
