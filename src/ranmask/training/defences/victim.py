"""The plain model whose mistakes augmentation learns from, and the folders it may use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranmask.data import Corpus
from ranmask.errors import OutputError
from ranmask.training.defence import Defence
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions
from ranmask.training.records import RECORD, Report, RunFolder


def victim_options(options: TrainingOptions) -> TrainingOptions:
    """The same training, on whole texts: no word is hidden, and nothing is voted on."""
    masking: dict[str, Any] = {"keep": (), "vote_epochs": 0, "copies": 1, "ramp": 0.0}
    plain = {**masking, "family": "auto", "masks": None, **WHOLE_TEXTS}
    return replace(options, epochs=max(1, options.epochs), **plain)


def train_victim(
    base: str,
    train: Corpus,
    validation: Corpus,
    folder: Path,
    options: TrainingOptions,
    *,
    report: Report | None = None,
    device: str | None = None,
) -> None:
    """Train the plain model that is attacked; one that is complete in ``folder`` is left there."""
    from ranmask.training.encoder import train_encoder

    plain = victim_options(options)
    found = _finished_run(folder)
    if found is None:
        train_encoder(base, train, validation, folder, plain, report=report, device=device)
        return
    wanted = {
        "base": base,
        "train": train.sha256,
        "validation": validation.sha256,
        "options": as_recorded(plain),
        "defence": Defence().description(),
    }
    there = {
        **{key: found.get(key) for key in ("base", "options", "defence")},
        **{key: found.get(key, {}).get("sha256") for key in ("train", "validation")},
    }
    differing = [key for key, value in wanted.items() if there[key] != value]
    if differing:
        raise OutputError(
            f"{folder} holds the victim of another run, with another {', '.join(differing)}: "
            "name another output, or delete it"
        )


def _finished_run(folder: Path) -> dict[str, Any] | None:
    """The description of a training run that is complete; None of any other folder."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # training says what is wrong with it
    complete = isinstance(record, dict) and record.get("complete") is True
    return record.get("run", {}) if complete else None


def check_free(output: Path, known: Mapping[str, Any]) -> None:
    """Refuse a folder that the third step would refuse, before anything is trained.

    ``known`` is what is known of that run by now: its data are not.
    """
    run = RunFolder(output, {})
    if _finished_run(output) is not None or not (output / RECORD).is_file():
        run.check()
        return
    try:
        there = json.loads((output / RECORD).read_text(encoding="utf-8")).get("run", {})
    except (OSError, ValueError, AttributeError) as error:
        raise OutputError(f"cannot read {output / RECORD}: {error}") from error
    differing = [key for key, value in known.items() if there.get(key) != value]
    if differing:
        raise OutputError(
            f"{output} holds another training run, which differs in {', '.join(differing)}: name "
            "another folder, or delete it"
        )


def as_recorded(options: TrainingOptions) -> Any:
    """As a record holds them."""
    return json.loads(json.dumps(options.to_dict()))
