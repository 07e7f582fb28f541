"""Runs of one recipe beside each other: several seeds, and other settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ranmask.paper.run_data import Reproduction, Step, model_name

_Result = TypeVar("_Result")
_HIDDEN = {"mask": "hidden words masked", "drop": "hidden words left out"}
_SPELT = {
    "base": "{}",
    "longest": "cut at {} tokens",
    "masks": "{} masks",
    "most_queries": "at most {} queries",
    "texts": "{} texts",
}


@dataclass(frozen=True)
class Configuration:
    """Runs of one recipe with the same settings but for the seed.

    ``full``: in what they differ from the experiment's first configuration, which has none;
    ``label``: so much of it that no other one has it.
    """

    label: str
    full: str
    runs: tuple[Reproduction, ...]

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
    ``runs``: as they were given, in the order of their configurations.
    """

    configurations: tuple[Configuration, ...]
    runs: tuple[Reproduction, ...]

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
        return self.runs[0]


def experiments(runs: Iterable[Reproduction]) -> list[Experiment]:
    """The experiments that runs belong to, in the order in which they were given."""
    grouped: dict[tuple[str, str], list[Reproduction]] = {}
    for run in runs:
        grouped.setdefault((run.name, run.size), []).append(run)
    return [_experiment(found) for found in grouped.values()]


def _experiment(given: Sequence[Reproduction]) -> Experiment:
    by_key: dict[str, list[Reproduction]] = {}
    for run in sorted(given, key=lambda run: (len(run.seed), run.seed)):
        by_key.setdefault(_key(run.configuration), []).append(run)
    done = {
        key
        for key, same in by_key.items()
        if any(step.state == "done" for run in same for step in run.steps)
    }
    keys = sorted(by_key, key=lambda key: (key not in done, len(by_key[key][0].configuration)))
    own: dict[str, list[Reproduction]] = {key: [] for key in keys}
    lent: dict[str, list[Reproduction]] = {key: [] for key in keys}
    runs = [run for key in keys for run in by_key[key]]
    for run in runs:
        homes: dict[str, list[Step]] = {_key(run.configuration): []}
        for step in run.steps:
            homes.setdefault(_home(run, step, done), []).append(step)
        for key, steps in homes.items():
            part = replace(run, steps=tuple(steps))
            (own if key == _key(run.configuration) else lent)[key].append(part)
    differences = {key: _differences(own[key][0], runs[0]) for key in keys}
    configurations = [
        Configuration(
            _shortest(differences[key], [differences[other] for other in keys if other != key]),
            ", ".join(differences[key]),
            # Of a seed that is there twice, the run that was made for it comes first.
            (*own[key], *lent[key]),
        )
        for key in keys
    ]
    return Experiment(tuple(configurations), tuple(runs))


def _key(configuration: Mapping[str, Any]) -> str:
    return json.dumps(configuration, sort_keys=True)


def _home(run: Reproduction, step: Step, known: set[str]) -> str:
    """The configuration that a step's result belongs to: of the settings that it depends on.

    A classifier that hides no words is the same whichever way others hide them.  Where nobody ran
    that configuration, the step stays with its own run.
    """
    own = run.configuration
    found = {key: own[key] for key in own if step.uses is None or key in step.uses}
    return _key(found if _key(found) in known else own)


def _differences(run: Reproduction, first: Reproduction) -> list[str]:
    """In what a run differs from the first, its base before all: all-mpnet-base-v2, 100 masks."""
    keys = dict.fromkeys([*run.configuration, *first.configuration])
    return [
        _spelt(key, run.configuration.get(key, run.settings.get(key)))
        for key in sorted(keys, key=lambda key: key != "base")
        if run.configuration.get(key) != first.configuration.get(key)
    ]


def _shortest(parts: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    """The first parts, as many as tell them from all others."""
    for number in range(1, len(parts)):
        if all(list(parts[:number]) != list(other[:number]) for other in others):
            return ", ".join(parts[:number])
    return ", ".join(parts)


def variant_label(run: Reproduction) -> str:
    """What was set otherwise than in the recipe; nothing where nothing was."""
    return ", ".join(_spelt(*pair) for pair in run.variant.items())


def _spelt(key: str, value: Any) -> str:
    spelt = ", ".join(map(str, value)) if isinstance(value, list) else model_name(str(value))
    if key == "hide" and spelt in _HIDDEN:
        return _HIDDEN[spelt]
    if key in _SPELT:
        return _SPELT[key].format(spelt)
    return f"{key.replace('_', ' ')} {spelt or 'none'}"
