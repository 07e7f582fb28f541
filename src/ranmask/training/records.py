"""The folder of a training run: what it is, how far it got, its log and its card.

``training.json`` describes the run and, once it is complete, what was measured; the same run is
resumed, another one is refused.  ``training.jsonl`` is the log: that of one run, however often it
was interrupted.  ``checkpoints/`` is the Trainer's own and goes away at the end.
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
from ranmask.data import Corpus
from ranmask.errors import DataError, OptionError, OutputError
from ranmask.results.files import DRAFT, read_json, write_file, write_json, writing
from ranmask.training.card import model_card

RECORD, LOG, CHECKPOINTS, CARD = "training.json", "training.jsonl", "checkpoints", "README.md"
COMPLETE = "complete"
"""The phase of the log's last line; and a file that marks a checkpoint as wholly written."""

TRAINING_FORMAT: dict[str, Any] = {"format": "ranmask-training", "version": 1}

Report: TypeAlias = Callable[[dict[str, Any]], None]
"""Called with every line of a training log as it is written."""


def check_rows(*corpora: Corpus) -> None:
    """Refuse corpora without a text."""
    for corpus in corpora:
        if not corpus.texts:
            raise DataError(f"{corpus.name} {corpus.split} has no rows")


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


def single_texts(train: Corpus, reader: str) -> list[str]:
    """The texts of a corpus; one of pairs is refused, for its ``reader``."""
    texts = [text for text in train.texts if isinstance(text, str)]
    if len(texts) < len(train.texts):
        raise DataError(f"{train.name} holds pairs; {reader} reads single texts only")
    return texts


def check_one_process(what: str, instead: str = "start it without torchrun") -> None:
    """Refuse several processes, as ``torchrun`` starts them."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise OptionError(f"{what} by one process: {instead}")


def description(
    kind: str, base: str | None, train: Corpus, validation: Corpus, options: Mapping[str, Any]
) -> dict[str, Any]:
    """What determines a training run."""
    data = {"train": train.description(), "validation": validation.description()}
    return {"kind": kind, "base": base, **data, "options": options}


class RunFolder:
    """Keeps a training run in a folder.  Of several processes that train, one may write."""

    def __init__(
        self, folder: Path, description: Mapping[str, Any], report: Report | None = None
    ) -> None:
        self.folder = folder
        self._description = json.loads(json.dumps(dict(description)))
        self._report = report

    def check(self, *, in_part: bool = False, finished: bool = False) -> bool:
        """Raise where the folder holds something else than this run; nothing is written.

        Returns whether the run is complete, which is refused unless ``finished``.  ``in_part``: the
        description is what is known of the run by now, and all that is compared.
        """
        path = self.folder / RECORD
        if not path.is_file():
            begun = RECORD + DRAFT  # by a run that was killed at its first line
            files = self.folder.iterdir() if self.folder.is_dir() else [self.folder]
            if self.folder.exists() and any(file.name != begun for file in files):
                raise OutputError(
                    f"{self.folder} exists and holds no training run: name another folder"
                )
            return False
        record = read_json(path, **TRAINING_FORMAT, error=OutputError)
        complete = bool(record.get("complete"))
        if complete and not finished:
            raise OutputError(
                f"{self.folder} holds a finished training run: name another folder, or delete it"
            )
        differing = _differences(record.get("run", {}), self._description, in_part)
        if differing:
            raise OutputError(
                f"{self.folder} holds another training run, which differs in "
                f"{'; '.join(differing)}: name another folder, or delete it"
            )
        return complete

    def begin(self) -> None:
        """Begin or resume.  From here on the folder belongs to this run."""
        self.check()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / RECORD).is_file():
                self._write({"run": self._description, "complete": False})
            self._keep_log(lambda line: line["phase"] != COMPLETE)

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
        partial = final.with_name(final.name + DRAFT)
        shutil.rmtree(partial, ignore_errors=True)
        save(partial)
        partial.rename(final)
        shutil.rmtree(self.checkpoints(phase), ignore_errors=True)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to the log and report it."""
        with writing(self.folder), (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._report is not None:
            self._report(dict(line))

    def rewind(self, phase: str, step: int) -> float:
        """Drop what the log says of a phase beyond ``step``; returns the seconds up to there.

        A phase that counts no steps, as a word table's, counts epochs.
        """
        lines = self._keep_log(
            lambda line: line["phase"] != phase or line.get("step", line["epoch"]) <= step
        )
        return max((line["seconds"] for line in lines if line["phase"] == phase), default=0.0)

    def timed(self, phase: str) -> Callable[..., None]:
        """Begin a phase anew; what is returned logs an epoch of it, of how many, and its loss."""
        self.rewind(phase, 0)
        started = time.monotonic()

        def log(epoch: int, epochs: int, loss: float | None = None) -> None:
            line = {"phase": phase, "epoch": epoch, "epochs": epochs}
            line |= {} if loss is None else {"loss": loss}
            self.log({**line, "seconds": round(time.monotonic() - started, 1)})

        return log

    def _keep_log(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Drop lines of the log that are not wanted, and one that a killed run wrote half of."""
        path = self.folder / LOG
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        whole = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        kept = [(line, parsed) for line in whole if wanted(parsed := json.loads(line))]
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
            write_file(self.folder / CARD, model_card(self._description, measured))
            self.log({"phase": COMPLETE, **measured})
            # Last: a folder whose record says so lacks nothing.
            self._write(
                {"run": self._description, "complete": True, "validation": dict(measured), **more}
            )
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        write_json(self.folder / RECORD, {**TRAINING_FORMAT, "ranmask": __version__, **record})


def _differences(there: Any, here: Any, in_part: bool, name: str = "") -> list[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        keys = here.keys() if in_part else there.keys() | here.keys()
        return [
            found
            for key in sorted(keys)
            for found in _differences(there.get(key), here.get(key), in_part, f"{name}.{key}")
        ]
    return [] if there == here else [f"{name.lstrip('.')} ({there!r} there, {here!r} here)"]
