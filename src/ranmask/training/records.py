"""The folder of a training run: what it is, how far it got, its log and its card.

``training.json`` describes the run and, once it is complete, what was measured; the same run is
resumed, another one is refused.  ``training.jsonl`` is the log.  ``checkpoints/`` is the Trainer's
own and goes away at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ranmask import __version__
from ranmask.errors import OutputError
from ranmask.metrics import CertifiedSummary
from ranmask.training.card import model_card

RECORD, LOG, CHECKPOINTS, CARD = "training.json", "training.jsonl", "checkpoints", "README.md"
RECORD_VERSION = 1

Report: TypeAlias = Callable[[dict[str, Any]], None]
"""Called with every line of a training log as it is written."""


def figures(summary: CertifiedSummary) -> dict[str, Any]:
    """What is reported of a set of certificates: plain JSON values."""
    largest = max(summary.largest_radius, 1)
    return {
        "texts": summary.texts,
        "accuracy": float(summary.accuracy),
        "median_radius": summary.median_radius,
        "certified_accuracy": [
            float(summary.certified_accuracy(changed)) for changed in range(largest + 1)
        ],
    }


class RunFolder:
    """Keeps a training run in a folder.  In a run of several processes, the first one writes."""

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, Any],
        report: Report | None = None,
    ) -> None:
        self.folder = folder
        self.is_main_process = os.environ.get("RANK", "0") == "0"
        self._description = json.loads(json.dumps(dict(description)))
        self._report = report

    def start(self) -> None:
        """Begin or resume; raises where the folder holds something else."""
        record = self.folder / RECORD
        if record.is_file():
            self._check_same(record)
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise OutputError(
                f"{self.folder} exists and holds no training run: name another folder"
            )
        if self.is_main_process:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write({"run": self._description, "complete": False})

    def _check_same(self, path: Path) -> None:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot read {path}: {error}") from error
        if record.get("version") != RECORD_VERSION:
            raise OutputError(f"{path} has version {record.get('version')!r}, not {RECORD_VERSION}")
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

    def phase_folder(self, phase: str, partial: bool = False) -> Path:
        """Where the best model of a finished phase is; ``partial`` while it is being written."""
        return self.folder / CHECKPOINTS / (f"{phase}-best" + (".partial" if partial else ""))

    def finished(self, phase: str) -> bool:
        """Whether a phase is over."""
        return self.phase_folder(phase).is_dir()

    def finish_phase(self, phase: str) -> None:
        """Turn what was written into a finished phase, in one step."""
        self.phase_folder(phase, partial=True).rename(self.phase_folder(phase))
        shutil.rmtree(self.checkpoints(phase), ignore_errors=True)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to the log and report it."""
        if not self.is_main_process:
            return
        full = dict(line)
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(full) + "\n")
        if self._report is not None:
            self._report(full)

    def callback(self, phase: str, steps_per_epoch: int) -> Any:
        """A Trainer callback that logs here."""
        from transformers import TrainerCallback

        run = self
        started = time.monotonic()

        class _Log(TrainerCallback):
            def on_log(self, args: Any, state: Any, control: Any, **given: Any) -> None:
                kept = {
                    key.removeprefix("eval_"): value
                    for key, value in given["logs"].items()
                    if key not in ("epoch", "total_flos") and not key.startswith("train_")
                }
                if kept and state.is_world_process_zero:
                    run.log(
                        {
                            "phase": phase,
                            "step": state.global_step,
                            "steps": state.max_steps,
                            "epoch": round(state.global_step / steps_per_epoch, 3),
                            "seconds": round(time.monotonic() - started, 1),
                            **kept,
                        }
                    )

        return _Log()

    def complete(self, measured: Mapping[str, Any], **more: Any) -> None:
        """Record what was measured, write the card, and remove the checkpoints."""
        self._write(
            {"run": self._description, "complete": True, "validation": dict(measured), **more}
        )
        card = model_card(self._description, measured)
        (self.folder / CARD).write_text(card, encoding="utf-8")
        self.log({"phase": "complete", **measured})
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        full = {
            "format": "ranmask-training",
            "version": RECORD_VERSION,
            "ranmask": __version__,
            **record,
        }
        path = self.folder / RECORD
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(full, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)


def _differences(one: Any, other: Any, name: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            found
            for key in sorted(set(one) | set(other))
            for found in _differences(one.get(key), other.get(key), f"{name}.{key}".lstrip("."))
        ]
    return [] if one == other else [f"{name} ({one!r} there, {other!r} here)"]
