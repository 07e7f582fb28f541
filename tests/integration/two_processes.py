"""Run by torchrun in each of two processes; see test_training.py.  A failed assertion fails it."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import made_up
import transformers

from ranmask.errors import OutputError
from ranmask.training import encoder, trainer
from ranmask.training.defences.hotflip import HotFlip
from ranmask.training.defences.perturbation import FreeLb, Pgd
from ranmask.training.encoder import train_encoder
from ranmask.training.options import TrainingOptions
from ranmask.training.records import RunFolder

RANK = os.environ.get("RANK")  # pytest looks for doctests here, and has none
# Texts of two lengths: in a step, one process may run the model once and the other twice.
TRAIN = made_up.corpus(48, varied=True)
HELD_OUT = made_up.corpus(12, "validation", seed=1)
OPTIONS = TrainingOptions(
    keep=(2,),
    hide="mask",
    epochs=1,
    vote_epochs=1,
    vote_copies=3,
    batch_size=8,
    evaluate_every=2,
    learning_rate=1e-3,
    target_words=1,
)


class Killed(Exception):  # noqa: N818
    pass


def seen(owner, name, note):
    """Note every call, and do it."""
    original = getattr(owner, name)

    def stand_in(self, *args, **given):
        result = original(self, *args, **given)
        note(result, *args)
        return result

    setattr(owner, name, stand_in)


def main(base, folder):
    transformers.logging.disable_progress_bar()
    rows, parts, written = [], [], []

    def collated(batch, turns):
        rows.append([turn.row for turn in turns])
        parts.append(len(batch["parts"]))

    seen(encoder.Collator, "__call__", collated)
    for name in ("begin", "finish_phase", "complete"):
        seen(RunFolder, name, lambda *_, name=name: written.append(name))

    def train(output, options=OPTIONS, **given):
        return train_encoder(base, TRAIN, HELD_OUT, output, options, device="cpu", **given)

    classifier = train(folder / "quiet")
    wrote = ["begin", "finish_phase", "finish_phase", "complete"]
    assert written == (wrote if RANK == "0" else [])
    record = json.loads((folder / "quiet" / "training.json").read_text())
    assert record["complete"] and record["run"]["processes"] == 2
    (folder / f"{RANK}.json").write_text(
        json.dumps({"rows": rows, "parts": parts, "sha256": classifier.description()["base"]})
    )
    # Passes back within a step: as many in every process, however many parts it has.
    defences = [FreeLb(max_norm=1.0), HotFlip(change_rate=0.5), Pgd(steps=2, max_norm=1.0)]
    sums = [
        train(folder / one.name, replace(OPTIONS, vote_epochs=0), defence=one).description()["base"]
        for one in defences
    ]
    (folder / f"{RANK}-defended.json").write_text(json.dumps(sums))

    def killed(self, args, state, *_, **__):
        if self._phase.name == "votes" and state.global_step == 2:
            raise Killed

    trainer.Watcher.on_step_begin = killed
    try:
        train(folder / "killed")
    except Killed:
        del trainer.Watcher.on_step_begin
    else:
        raise AssertionError("it was not killed")
    train(folder / "killed")

    try:
        train(folder / "killed", replace(OPTIONS, seed=1))
    except OutputError as error:
        assert "finished training run" in str(error)
    else:
        raise AssertionError("the folder was not refused")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
