"""``protect.json``: what protecting a model came to, and the choice that was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ranmask import __version__
from ranmask.errors import DataError, OptionError, OutputError, RanmaskError
from ranmask.models import model_config
from ranmask.results.files import DRAFT, read_json, write_json, writing
from ranmask.training.choosing import Weighed, chosen

RECORD, ANSWERS = "protect.json", "answers.jsonl"
FORMAT: dict[str, Any] = {"format": "ranmask-protect", "version": 2}

Measure: TypeAlias = Literal["accuracy", "agreement"]


@dataclass(frozen=True)
class Protection:
    """A protected model as it was measured.

    ``run``: what determines it.  ``measure``: whether the texts had labels, or were compared with
    the model's own; ``balanced``: each class counts the same.  ``alone``: the model by itself, on
    the texts to choose by and on those for the figures; ``choosing`` and ``figures``: all weights
    on these, those of the whole text alone first.  ``learning``: tables that learned from a
    quarter, a half and all of the texts, on those for the figures.
    """

    run: Mapping[str, Any]
    measure: Measure
    balanced: bool
    alone: tuple[Weighed, Weighed]
    choosing: Sequence[Weighed]
    figures: Sequence[Weighed]
    learning: Sequence[tuple[int, Weighed]]
    words: tuple[int, ...]
    give_up: float
    weights: tuple[float, ...]
    reached: bool
    command: str | None = None

    @property
    def measure_name(self) -> str:
        """What is shown beside the weights."""
        return f"balanced {self.measure}" if self.balanced else self.measure

    @property
    def given_up(self) -> float:
        """Points that the choice gives up against the model alone."""
        model, best = self.alone[1], self.at()
        return 100 * float(model.accuracy(self.balanced) - best.accuracy(self.balanced))

    @property
    def levels(self) -> int:
        """How many levels the model was asked about."""
        return int(self.run["options"]["levels"])

    def at(self, weights: tuple[float, ...] | None = None) -> Weighed:
        """The figures of some weights; None: of those that were chosen."""
        wanted = self.weights if weights is None else weights
        return next(one for one in self.figures if one.weights == wanted)

    def redrawn(self, words: Sequence[int] | None, give_up: float | None) -> Protection:
        """The same measurements with another choice."""
        asked = tuple(words or self.words)
        points = self.give_up if give_up is None else give_up
        best, reached = chosen(self.choosing, self.alone[0], asked, points, self.balanced)
        return replace(self, words=asked, give_up=points, weights=best.weights, reached=reached)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        names = ("run", "measure", "balanced", "give_up", "reached", "command")
        return {
            **{name: getattr(self, name) for name in names},
            "words": list(self.words),
            "weights": list(self.weights),
            "calls": self.at().calls,
            "alone": [one.to_dict() for one in self.alone],
            "learning": [{"learned": texts, **one.to_dict()} for texts, one in self.learning],
            "choosing": [one.to_dict() for one in self.choosing],
            "figures": [one.to_dict() for one in self.figures],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str) -> Protection:
        """What `to_dict` gave; ``where`` it was read, for the error."""
        try:
            first, second = map(Weighed.from_dict, values["alone"])
            learning = [(int(one["learned"]), Weighed.from_dict(one)) for one in values["learning"]]
            found = cls(
                run=values["run"],
                measure=values["measure"],
                balanced=bool(values["balanced"]),
                alone=(first, second),
                choosing=[Weighed.from_dict(one) for one in values["choosing"]],
                figures=[Weighed.from_dict(one) for one in values["figures"]],
                learning=learning,
                words=tuple(map(int, values["words"])),
                give_up=float(values["give_up"]),
                weights=tuple(map(float, values["weights"])),
                reached=bool(values["reached"]),
                command=values["command"],
            )
            found.at(), found.levels
        except (KeyError, TypeError, ValueError, StopIteration) as error:
            raise DataError(f"{where} is damaged ({type(error).__name__}: {error})") from error
        return found


def read_protection(folder: Path) -> Protection:
    """What `ranmask protect` measured of the model in a folder."""
    path = folder / RECORD
    if not path.is_file():
        raise OptionError(
            f"{str(folder)!r} has no {RECORD}: only what `ranmask protect` wrote can be chosen "
            "anew without the model's answers"
        )
    values = read_json(path, format=FORMAT["format"], version=FORMAT["version"])
    if not values.get("complete"):
        raise DataError(f"{path} is that of a run that was not finished: run it again to resume")
    found = Protection.from_dict(values, str(path))
    # What the model weighs is in its own file: whoever wrote that last may not have come to this.
    known = model_config.of_folder(folder)
    weights = tuple(known.smoothing.get("reader_weights") or ()) if known else ()
    measured = any(one.weights == weights for one in found.figures)
    return replace(found, weights=weights) if measured else found


def began(folder: Path) -> dict[str, Any] | None:
    """The record of a run in a folder, finished or not; None where there is none."""
    path = folder / RECORD
    if not path.is_file():
        return None
    try:
        return read_json(path, format=FORMAT["format"], version=FORMAT["version"])
    except RanmaskError as error:
        raise DataError(f"{error}. Name another folder, or delete this one") from error


def begin(folder: Path, run: Mapping[str, Any]) -> bool:
    """Refuse a folder of something else; from here on it belongs to this run.

    Returns whether it was begun with other texts: answers to those that are the same still count.
    """
    record = began(folder)
    if record is None and folder.exists():
        files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
        if any(file.name != ANSWERS and not file.name.endswith(DRAFT) for file in files):
            raise OutputError(f"{folder} exists and holds no protected model: name another folder")
    there: Mapping[str, Any] = {}
    if record is not None:
        if record.get("complete"):
            raise OutputError(
                f"{folder} holds a protected model: name another folder, or delete it. To choose "
                f"another weight, use `ranmask tune --model {folder}`"
            )
        there = record.get("run", {})
        if (there.get("model"), there.get("labels")) != (run["model"], run["labels"]):
            raise OutputError(
                f"{folder} holds answers of another model: name another folder, or delete it"
            )
        _check_options(folder, there.get("options", {}), run["options"])
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RECORD, {**FORMAT, "ranmask": __version__, "complete": False, "run": run})
    return bool(there) and there["texts"]["sha256"] != run["texts"]["sha256"]


def _check_options(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with other options than a run was begun with."""
    other = []
    for name in now:
        if (value := before.get(name)) != now[name]:
            spelt = ",".join(map(str, value)) if isinstance(value, list) else value
            other.append(f"{name}={spelt}")
    if other:
        raise OutputError(
            f"{folder} was begun with {', '.join(other)}: give the same options to resume it, or "
            f"name another folder. To begin anew with the answers in it, delete {folder / RECORD}"
        )
