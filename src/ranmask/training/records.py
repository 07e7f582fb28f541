"""The folder of a training run: what it is, how far it got, its log and its card.

``training.json`` describes the run and, once it is complete, what was measured; the same run is
resumed, another one is refused.  ``training.jsonl`` is the log: that of one run, however often it
was interrupted.  ``checkpoints/`` is the Trainer's own and goes away at the end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ranmask import __version__
from ranmask.errors import DataError, OptionError, OutputError
from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.results.files import DRAFT, draft, read_json, write_file, write_json, writing
from ranmask.training.balance import ClassWeights
from ranmask.training.card import model_card

if TYPE_CHECKING:
    from ranmask.data import Corpus

RECORD, LOG, CHECKPOINTS, CARD = "training.json", "training.jsonl", "checkpoints", "README.md"
RECORD_VERSION = 1
COMPLETE = "complete"
"""The phase of the log's last line; and a file that marks a checkpoint as wholly written."""

Report: TypeAlias = Callable[[dict[str, Any]], None]
"""Called with every line of a training log as it is written."""


def figures(
    summary: CertifiedSummary, names: Sequence[str], class_weights: ClassWeights = "none"
) -> dict[str, Any]:
    """What is reported of a set of certificates: plain JSON values.

    ``beats_majority``: by the measure that was trained for.
    """
    largest = max(summary.largest_radius, 1)
    return {
        "texts": summary.texts,
        "accuracy": float(summary.accuracy),
        "median_radius": summary.median_radius,
        "certified_accuracy": [
            float(summary.certified_accuracy(changed)) for changed in range(largest + 1)
        ],
        **certified_values(summary, names),
        "beats_majority": summary.beats_majority(balanced=class_weights == "balanced"),
    }


def check_rows(*corpora: Corpus) -> None:
    """Refuse corpora without a text."""
    for one in corpora:
        if not one.texts:
            raise DataError(f"{one.name} {one.split} has no rows")


def check_corpora(train: Corpus, validation: Corpus) -> None:
    """Refuse corpora that no classifier can be trained on and validated by."""
    check_rows(train, validation)
    present = set(train.labels)
    missing = [name for place, name in enumerate(train.label_names) if place not in present]
    if missing:
        raise DataError(
            f"{train.name} {train.split} has no row of the class {missing[0]!r} among the "
            f"{len(train.texts):,} that are used: use more rows"
        )
    if train.label_names != validation.label_names:
        raise OptionError(
            f"train has the classes {', '.join(train.label_names)}, validation "
            f"{', '.join(validation.label_names)}: they must be the same"
        )


class RunFolder:
    """Keeps a training run in a folder.  Of several processes that train, one may write."""

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, Any],
        report: Report | None = None,
    ) -> None:
        self.folder = folder
        self._description = json.loads(json.dumps(dict(description)))
        self._report = report

    def check(self) -> None:
        """Raise where the folder holds something else than this run; nothing is written."""
        record = self.folder / RECORD
        if record.is_file():
            self._check_same(record)
        elif self.folder.exists() and not self._is_empty():
            raise OutputError(
                f"{self.folder} exists and holds no training run: name another folder"
            )

    def _is_empty(self) -> bool:
        # A draft is left by a run that was killed at its first line.
        return self.folder.is_dir() and all(path.suffix == DRAFT for path in self.folder.iterdir())

    def begin(self) -> None:
        """Begin or resume.  From here on the folder belongs to this run."""
        self.check()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / RECORD).is_file():
                self._write({"run": self._description, "complete": False})
            self._keep_log(lambda line: line["phase"] != COMPLETE)

    def _check_same(self, path: Path) -> None:
        record = read_json(
            path, format="ranmask-training", version=RECORD_VERSION, error=OutputError
        )
        if record.get("complete"):
            raise OutputError(
                f"{self.folder} holds a finished training run: name another folder, or delete it"
            )
        differing = _differences(record.get("run", {}), self._description)
        if differing:
            raise OutputError(
                f"{self.folder} holds another training run, which differs in "
                f"{'; '.join(differing)}: name another folder, or delete it"
            )

    def checkpoints(self, phase: str) -> Path:
        """Where the Trainer keeps the checkpoints of a phase."""
        return self.folder / CHECKPOINTS / phase

    def last_checkpoint(self, phase: str) -> Path | None:
        """The last checkpoint of a phase; those that were not wholly written are removed."""
        whole = {}
        for path in self.checkpoints(phase).glob("checkpoint-*"):
            if (path / COMPLETE).is_file():
                whole[int(path.name.rpartition("-")[2])] = path
            else:
                shutil.rmtree(path)
        return whole[max(whole)] if whole else None

    def phase_folder(self, phase: str) -> Path:
        """Where the best model of a finished phase is."""
        return self.folder / CHECKPOINTS / f"{phase}-best"

    def finished(self, phase: str) -> bool:
        """Whether a phase is over."""
        return self.phase_folder(phase).is_dir()

    def finish_phase(self, phase: str, save: Callable[[Path], None]) -> None:
        """Keep what ``save`` writes as the outcome of a phase: all of it, or nothing."""
        final = self.phase_folder(phase)
        with draft(final) as place:
            shutil.rmtree(place, ignore_errors=True)
            save(place)
        shutil.rmtree(self.checkpoints(phase), ignore_errors=True)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to the log and report it."""
        full = dict(line)
        with writing(self.folder), (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(full) + "\n")
        if self._report is not None:
            self._report(full)

    def rewind(self, phase: str, step: int) -> float:
        """Drop what the log says of a phase beyond ``step``; returns the seconds up to there.

        A phase that counts no steps, as a word table's, counts epochs.
        """
        lines = self._keep_log(
            lambda line: line["phase"] != phase or line.get("step", line["epoch"]) <= step
        )
        return max((line["seconds"] for line in lines if line["phase"] == phase), default=0.0)

    def _keep_log(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Drop lines of the log that are not wanted, and one that a killed run wrote half of."""
        path = self.folder / LOG
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        whole = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        lines = [(line, json.loads(line)) for line in whole]
        kept = [(line, parsed) for line, parsed in lines if wanted(parsed)]
        shorter = "".join(line for line, _ in kept)
        if shorter != text:
            write_file(path, shorter)
        return [parsed for _, parsed in kept]

    def settle(self, **options: Any) -> None:
        """Say what a default came to, for the card and the record of the finished run."""
        self._description["options"] |= options

    def complete(self, measured: Mapping[str, Any], **more: Any) -> None:
        """Write the card, record what was measured, and remove the checkpoints."""
        with writing(self.folder):
            card = model_card(self._description, measured)
            write_file(self.folder / CARD, card)
            self.log({"phase": COMPLETE, **measured})
            # Last: a folder whose record says so lacks nothing.
            self._write(
                {"run": self._description, "complete": True, "validation": dict(measured), **more}
            )
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        full = {
            "format": "ranmask-training",
            "version": RECORD_VERSION,
            "ranmask": __version__,
            **record,
        }
        write_json(self.folder / RECORD, full)


def _differences(one: Any, other: Any, name: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            found
            for key in sorted(set(one) | set(other))
            for found in _differences(one.get(key), other.get(key), f"{name}.{key}".lstrip("."))
        ]
    return [] if one == other else [f"{name} ({one!r} there, {other!r} here)"]
