"""Runs of one recipe beside each other: several seeds, and other settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ranmask.paper.run_data import Reproduction, Step, model_name

_Result = TypeVar("_Result")
_SPELT = {
    "hide": {"mask": "hidden words masked", "drop": "hidden words left out"},
}


@dataclass(frozen=True)
class Configuration:
    """Runs of one recipe with the same settings but for the seed.

    ``label``: in what they differ from the experiment's first configuration, which has none.
    """

    label: str
    runs: tuple[Reproduction, ...]

    @property
    def first(self) -> Reproduction:
        """The run whose settings stand for all."""
        return self.runs[0]

    @property
    def seeds(self) -> list[str]:
        """All seeds, each once."""
        return list(dict.fromkeys(run.seed for run in self.runs))

    def finished(self, sort: type[_Result]) -> Iterator[tuple[str, Step, _Result]]:
        """Steps that are done and have a result of this sort, each with its seed."""
        for run in self.runs:
            for step, result in run.finished(sort):
                yield str(step.place.get("seed", run.seed)), step, result


@dataclass(frozen=True)
class Experiment:
    """All runs of one recipe in one size.

    First comes the configuration that is nearest to the recipe, of those with something done.
    """

    configurations: tuple[Configuration, ...]

    @property
    def main(self) -> Configuration:
        """The first configuration."""
        return self.configurations[0]

    @property
    def others(self) -> tuple[Configuration, ...]:
        """The other ones."""
        return self.configurations[1:]

    @property
    def run(self) -> Reproduction:
        """The run that names the experiment."""
        return self.main.first

    @property
    def runs(self) -> list[Reproduction]:
        """All runs, the first configuration's first."""
        return [run for configuration in self.configurations for run in configuration.runs]


def experiments(runs: Iterable[Reproduction]) -> list[Experiment]:
    """The experiments that runs belong to, in the order in which they were given."""
    grouped: dict[tuple[str, str], dict[str, list[Reproduction]]] = {}
    for run in runs:
        same = grouped.setdefault((run.name, run.size), {})
        same.setdefault(json.dumps(run.configuration, sort_keys=True), []).append(run)
    return [_experiment(list(found.values())) for found in grouped.values()]


def _experiment(found: Sequence[Sequence[Reproduction]]) -> Experiment:
    ordered = sorted(found, key=lambda runs: (_nothing_done(runs), len(runs[0].configuration)))
    configurations = [
        Configuration(
            _label(runs[0], ordered[0][0]) if runs is not ordered[0] else "",
            tuple(sorted(runs, key=lambda run: (len(run.seed), run.seed))),
        )
        for runs in ordered
    ]
    return Experiment(tuple(configurations))


def _nothing_done(runs: Sequence[Reproduction]) -> bool:
    return not any(step.state == "done" for run in runs for step in run.steps)


def _label(run: Reproduction, first: Reproduction) -> str:
    """In what a run differs from the first: ``all-mpnet-base-v2, masks 100``."""
    return ", ".join(
        _spelt(key, run.configuration.get(key, run.settings.get(key)))
        for key in dict.fromkeys([*run.configuration, *first.configuration])
        if run.configuration.get(key) != first.configuration.get(key)
    )


def variant_label(run: Reproduction) -> str:
    """What was set otherwise than in the recipe; nothing where nothing was."""
    return ", ".join(_spelt(*pair) for pair in run.variant.items())


def _spelt(key: str, value: Any) -> str:
    if key == "base":
        return model_name(str(value))
    known = _SPELT.get(key, {})
    if isinstance(value, str) and value in known:
        return known[value]
    value = ", ".join(map(str, value)) if isinstance(value, list) else model_name(str(value))
    return f"{key.replace('_', ' ')} {value or 'none'}"
