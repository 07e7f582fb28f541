"""What is open in the paper's tables: the commands that fill it, and what they will cost.

    python -m benchmarks.reproduction_cost
    python -m benchmarks.reproduction_cost --run RUNS --lines 1 2 --jobs 18

The first prints the table that ``results/reproduced/findings.md`` has.  Everything is counted from
the records in ``results/reproduced``.  A step costs its share of an H200: its seconds over the
number of steps that ran at a time.  See `Pace`.  The second runs lines of the table in one pool,
so that no process waits while another line has work; ``benchmarks.reproduced_page --fill RUNS``
takes what they made.  Where there is no hub, start it in a folder that holds the encoders under
their hub ids, as ``sentence-transformers/all-MiniLM-L6-v2``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.reproduced_page import REPRODUCED
from ranmask.cli.main import run_command
from ranmask.cli.reproduce_printing import ReproductionDisplay
from ranmask.paper.reading import read_several
from ranmask.paper.reproduction.plan import Planned, chosen, plan
from ranmask.paper.reproduction.recipe import Recipe, load_recipe
from ranmask.paper.reproduction.running import reproduce
from ranmask.paper.run_data import Attacked, Certified, Reproduction, Step, Trained

SMALL, LARGE = "all-MiniLM-L6-v2", "all-mpnet-base-v2"
HUB = "sentence-transformers"
ENGINE = {SMALL: 1_922_062, LARGE: 385_131}  # docs/performance.md: copies a second, drop, k=4
BESIDE = {"attacks": 18, "certificates": 16}  # steps at a time, in runs 6 and 5
TOKENS_A_WORD = 1.3
_RIVAL = re.compile("-(pgd|freelb|hotflip|augment)")
_Amounts: TypeAlias = dict[str, list[tuple[float, float]]]
RIVALS = "*-pgd*,*-freelb*,*-hotflip*,*-augment*"
LARGER = {
    "base": f"{HUB}/{LARGE}",
    "attack_base": f"{HUB}/{SMALL}",
    "learning_rate": 5e-5,
}


@dataclass(frozen=True)
class Line:
    """What is open, and the `ranmask reproduce` command that fills it."""

    about: str
    recipes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1
    steps: str | None = None
    jobs: int = 16

    @property
    def command(self) -> str:
        """As one types it."""
        words = ["ranmask", "reproduce", *self.recipes]
        for key, value in self.settings.items():
            words += ["--base", value] if key == "base" else ["--set", f"{key}={value}"]
        words += ["--seeds", str(self.seeds)] if self.seeds > 1 else []
        words += ["--steps", self.steps] if self.steps else []
        return shlex.join([*words, "--jobs", str(self.jobs)])

    def planned(self, runs: Path = Path("runs")) -> list[tuple[Recipe, list[Planned]]]:
        """Its recipes, one for each seed, with the steps that are wanted of each."""
        first = self.settings.get("seed", 0)
        recipes = [
            load_recipe(name, overrides={**self.settings, "seed": seed})
            for seed in range(first, first + self.seeds)
            for name in self.recipes
        ]
        plans = [plan(recipe, runs) for recipe in recipes]
        wanted = chosen([step for steps in plans for step in steps], self.steps)
        return [
            (recipe, [step for step in steps if step.key in wanted])
            for recipe, steps in zip(recipes, plans, strict=True)
        ]


LONGER = {"longest": 256, "masks": 100, "texts": 300}
LINES = (
    Line(
        "IMDB: 256 tokens, 100 masks, 300 texts, no defence and RanMASK",
        ("imdb-empirical",),
        LONGER,
        steps="*-none*,*-mask0.3-*",
    ),
    Line("four rival defences on IMDB: the same", ("imdb-empirical",), LONGER, steps=RIVALS),
    Line(
        "all-mpnet-base-v2 by vote under BERT-Attack on AG News",
        ("agnews-empirical",),
        {**LARGER, "texts": 300},
        steps="*-vote-bert-attack,*-fixed-bert-attack",
        jobs=6,
    ),
    Line(
        "all-mpnet-base-v2 under attack on SST2",
        ("sst2-empirical",),
        {**LARGER, "texts": 300},
        steps="*-mask0.3-*",
        jobs=6,
    ),
    Line(
        "figure of masking rates: two more seeds, 300 texts",
        ("rate-ablation",),
        {"texts": 300, "seed": 1},
        seeds=2,
    ),
    Line("SNLI: 1,000 texts", ("snli-empirical",), {"texts": 1000}),
    Line("SAFER: 1,000 texts", ("safer",), {"texts": 1000}),
    Line("figure of masking rates: 1,000 texts", ("rate-ablation",), {"texts": 1000}),
)


@dataclass(frozen=True)
class Cost:
    """``copies``: masked ones. ``learned``: training texts, each as often as it is read."""

    copies: float = 0
    learned: float = 0
    seconds: float = 0


class Pace:
    """What steps cost on an H200, by the records.

    - A training: the seconds for each text read that the same training had in run 6, for a rival
      on SST2 alone.
    - An attack on a plain classifier: the seconds for each query that the same attack had in run 6.
    - An attack on a smoothed one: the words that its copies show, over those that copies showed a
      second in run 6; times five for the larger base, as the engine computes fewer of its copies.
    - A certified step: its seconds in run 5, seed 1.

    How often an attack asks is the mean of its cell in the records, whatever the settings.
    """

    def __init__(self, runs: Sequence[Reproduction]) -> None:
        self._runs = runs
        self._cells: dict[tuple[str, str], list[Attacked]] = defaultdict(list)
        for run in runs:
            for step, result in run.finished(Attacked):
                self._cells[run.name, _cell(step)].append(result)

    def of(self, line: Line) -> Cost:
        """Of all steps of a line; those that recipes share once."""
        costs = {
            step.key: astuple(self._step(recipe.name, step, line.settings))
            for recipe, steps in line.planned()
            for step in steps
        }
        return Cost(*map(sum, zip(*costs.values(), strict=True)))

    def _step(self, recipe: str, step: Planned, settings: Mapping[str, Any]) -> Cost:
        large = str(settings.get("base", "")).endswith(LARGE)
        if step.step.measures == "training":
            turns = self._turns(step)
            each = self._a_text_read[_defence(step.step.command)]
            return Cost(0, turns, turns * each * (self._larger if large else 1))
        texts = step.texts or 0
        if step.step.measures == "certified":
            seconds = self._certified[recipe, step.step.name]
            return Cost(texts * step.copies, 0, seconds)
        if step.step.measures != "attack":
            return Cost()
        cell = self._cells[recipe, _cell(step.step)]
        queries = texts * statistics.fmean(asked for one in cell for asked in one.queries)
        if "--plain" in step.words:
            return Cost(0, 0, queries * self._a_query[step.step.place["attack"]])
        copies = queries * step.copies
        whole = settings.get("hide") == "mask"
        counts = [_asked_and_shown(one, settings.get("longest"), whole) for one in cell]
        asked, shown = map(sum, zip(*counts, strict=True))
        slower = ENGINE[SMALL] / ENGINE[LARGE] if large else 1
        return Cost(copies, 0, copies * shown / asked / self.words_a_second * slower)

    def _turns(self, step: Planned) -> float:
        """How many texts a training reads."""
        given = dict(zip(step.words, step.words[1:], strict=False))
        rows = given.get("--rows") or self._rows[given["--data"]]
        return int(rows) * int(given["--epochs"])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {
            result.run["train"]["name"]: result.run["train"]["rows"]
            for run in self._runs
            for step, result in run.finished(Trained)
            if _defence(step.command) == "none"
        }

    def of_run_6(self) -> Iterator[tuple[Step, float]]:
        """Its steps, each with its share of the GPU's seconds."""
        for run in self._runs:
            rivals = run.name == "sst2-empirical"
            if (rivals or run.name == "agnews-empirical") and not run.configuration:
                for step in run.steps:
                    if step.state == "done" and (rivals or not _RIVAL.search(step.name)):
                        yield step, (step.seconds or 0) / BESIDE["attacks"]

    @cached_property
    def _a_text_read(self) -> dict[str, float]:
        found: _Amounts = defaultdict(list)
        for step, seconds in self.of_run_6():
            if isinstance(step.result, Trained):
                run = step.result.run
                read = run["train"]["rows"] * run["options"]["epochs"]
                found[_defence(step.command)].append((seconds, read))
        [beside] = [run for run in self._runs if run.name == "safer"]
        took = {_defence(step.command): step.seconds or 0 for step, _ in beside.finished(Trained)}
        each = _for_each(found)
        return {**each, "safer": each["none"] * took["safer"] / took["none"]}

    @cached_property
    def _a_query(self) -> dict[str, float]:
        found: _Amounts = defaultdict(list)
        for step, seconds in self.of_run_6():
            if isinstance(step.result, Attacked) and step.result.victim is None:
                found[step.place["attack"]].append((seconds, sum(step.result.queries)))
        return _for_each(found)

    @cached_property
    def words_a_second(self) -> float:
        """What copies of the small base showed in run 6, by the share of the attacks on them."""
        words = seconds = 0.0
        for step, share in self.of_run_6():
            result = step.result
            if isinstance(result, Attacked) and result.victim is not None:
                words += result.victim["options"]["masks"] * _asked_and_shown(result)[1]
                seconds += share
        return words / seconds

    @cached_property
    def _certified(self) -> dict[tuple[str, str], float]:
        return {
            (run.name, step.name): (step.seconds or 0) / BESIDE["certificates"]
            for run in self._runs
            if run.variant == {"seed": 1}
            for step, _ in run.finished(Certified)
        }

    @cached_property
    def _larger(self) -> float:
        """How much longer the larger base trains, by run 5."""
        large, small = (
            sum(
                step.seconds or 0
                for run in self._runs
                if run.kind == "certified" and matches(run.variant)
                for step, _ in run.finished(Trained)
            )
            for matches in (lambda variant: "base" in variant, {"seed": 1}.__eq__)
        )
        return large / small


def table() -> str:
    """As Markdown."""
    pace = Pace(list(read_several([REPRODUCED])))
    lines = [
        "| open | command | copies | texts learned | GPU seconds |",
        "|---|---|---:|---:|---:|",
    ]
    for line in LINES:
        cost = pace.of(line)
        copies, learned = (f"{number / 1e6:,.1f} M" for number in (cost.copies, cost.learned))
        lines.append(
            f"| {line.about} | `{line.command}` | {copies} | {learned} | {cost.seconds:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def narrowed(lines: Sequence[Line], runs: Path) -> list[Recipe]:
    """The recipes of lines, each once, with the steps that some line wants of it."""
    recipes: dict[str, Recipe] = {}
    wanted: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for recipe, steps in line.planned(runs):
            recipes[recipe.folder_name] = recipe
            wanted[recipe.folder_name] |= {step.step.name for step in steps}
    return [
        replace(recipe, steps=tuple(step for step in recipe.steps if step.name in wanted[name]))
        for name, recipe in recipes.items()
    ]


def _for_each(found: _Amounts) -> dict[str, float]:
    """Seconds for each of what was counted beside them."""
    sums = {name: map(sum, zip(*amounts, strict=True)) for name, amounts in found.items()}
    return {name: seconds / count for name, (seconds, count) in sums.items()}


def _defence(command: str) -> str:
    return "mlm" if "--kind mlm" in command else re.findall(r"--defence (\S+)", command)[0]


def _cell(step: Step) -> str:
    return json.dumps({key: value for key, value in step.place.items() if key != "seed"})


def _asked_and_shown(
    result: Attacked, longest: int | None = None, whole: bool = False
) -> tuple[float, float]:
    """Queries, and the words that one copy for each shows; ``whole``: hidden ones are masked."""
    options = (result.victim or {}).get("options", {})
    whole = whole or options.get("sampling") == "lm"
    share = 1 if whole else 1 - (options.get("mask_rate") or 0)
    most = (longest or 10**6) / TOKENS_A_WORD
    pairs = zip(result.queries, result.words, strict=True)
    shown = sum(asked * max(1.0, min(words, most) * share) for asked, words in pairs)
    return sum(result.queries), shown


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", type=Path, metavar="RUNS", help="run lines, in this folder")
    parser.add_argument("--lines", type=int, nargs="+", help="numbers in the table, from 1 on")
    parser.add_argument("--jobs", type=int, default=1, help="steps at a time")
    options = parser.parse_args()
    if options.run is None:
        print(table(), end="")
        return
    lines = [LINES[number - 1] for number in options.lines or range(1, 1 + len(LINES))]
    with ReproductionDisplay() as display:
        reproduce(
            narrowed(lines, options.run),
            options.run,
            run_command,
            jobs=options.jobs,
            display=display,
        )


if __name__ == "__main__":
    main()
