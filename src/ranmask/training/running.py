"""One phase of training as the transformers Trainer runs it; what it learns is said elsewhere.

Checkpoints, bf16, clipping, schedules and several devices are the Trainer's business.  Every
batch is a pure function of seed and step (`masking.Turns`), and the Trainer restores optimiser,
schedule and dropout, so that a phase that was killed ends where an uninterrupted one does.  What
it does not restore is kept out of memory: whether to stop early is read from the history of the
run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ranmask.errors import MissingDependencyError
from ranmask.training.masking import Turns
from ranmask.training.records import COMPLETE, RunFolder

try:
    import torch
    import transformers
    from transformers import Trainer, TrainerCallback, TrainerState, TrainingArguments

    from ranmask.training import processes
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

_WARMUP = 0.06
_GPU_WORKERS = 8


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One run of the Trainer.

    The best checkpoint has the largest ``best`` of what is measured, or the smallest where
    ``smaller_is_better``.  ``patience``: evaluations without a larger score before it stops.
    ``warmup``: the share of the steps in which the learning rate rises.
    """

    name: str
    epochs: int
    learning_rate: float
    patience: int | None = None
    warmup: float = _WARMUP
    best: str = "score"
    smaller_is_better: bool = False


class StepOptions(Protocol):
    """The options that all kinds of training have."""

    @property
    def batch_size(self) -> int: ...  # noqa: D102
    @property
    def accumulate(self) -> int: ...  # noqa: D102
    @property
    def weight_decay(self) -> float: ...  # noqa: D102
    @property
    def gradient_clip(self) -> float: ...  # noqa: D102
    @property
    def evaluate_every(self) -> int | None: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102


def best_of(phase: Phase, run: RunFolder, make: Callable[[], PhaseTrainer]) -> Path:
    """Train through a phase, or the rest of it; returns its best checkpoint.

    ``make`` builds the trainer, and is not called where the phase is over.
    """
    last = processes.by_the_first(lambda: run.last_checkpoint(phase.name))
    state = None if last is None else TrainerState.load_from_json(str(last / "trainer_state.json"))
    if state is None or not _is_over(state, phase):
        trainer = make()
        trainer.remove_callback(transformers.ProgressCallback)
        trainer.remove_callback(transformers.PrinterCallback)
        with warnings.catch_warnings():
            # The Trainer has no other name yet for what `arguments` says of buffers.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        state = trainer.state
    return run.checkpoints(phase.name) / f"checkpoint-{state.best_global_step}"


class PhaseTrainer(Trainer):
    """The Trainer with our order of rows, and our measure of what is best."""

    def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
        turns: Any = self.train_dataset
        return torch.utils.data.SequentialSampler(turns)  # they are shuffled already

    def measured(self, model: Any) -> dict[str, Any]:
        """What ``model``, in single precision, does on the held-out rows: plain JSON values."""
        raise NotImplementedError

    def evaluate(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What is `measured`, by the first process for all."""
        found = processes.by_the_first(lambda: self.measured(_plain_copy(self.model)))
        metrics = {f"eval_{name}": value for name, value in found.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


class Watcher(TrainerCallback):
    """Keeps the log, marks whole checkpoints, and stops early."""

    def __init__(self, phase: Phase, steps_per_epoch: int, run: RunFolder) -> None:
        self._phase = phase
        self._steps_per_epoch = steps_per_epoch
        self._run = run
        self._started = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop what the log says of steps that are taken again."""
        if state.is_world_process_zero:
            self._started -= self._run.rewind(self._phase.name, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Write a line of the log."""
        kept = {
            key.removeprefix("eval_"): value
            for key, value in given["logs"].items()
            if key not in ("epoch", "total_flos") and not key.startswith("train_")
        }
        if kept and state.is_world_process_zero:
            self._run.log(
                {
                    "phase": self._phase.name,
                    "step": state.global_step,
                    "steps": state.max_steps,
                    "epoch": round(state.global_step / self._steps_per_epoch, 3),
                    "seconds": round(time.monotonic() - self._started, 1),
                    **kept,
                }
            )

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop where nothing was gained for long enough."""
        if _is_over(state, self._phase):
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Mark the checkpoint as whole."""
        # Every process writes its part; when all are here, all have.
        processes.by_the_first(lambda: None)
        if state.is_world_process_zero:
            folder = self._run.checkpoints(self._phase.name) / f"checkpoint-{state.global_step}"
            (folder / COMPLETE).touch()


def _is_over(state: Any, phase: Phase) -> bool:
    """Whether a phase has had all its steps, or too many evaluations without gain.

    Patience begins when something was learned: a score below 0 (`certified_score`) is that of a
    classifier which still says always the same.
    """
    scores = [line["eval_score"] for line in state.log_history if "eval_score" in line]
    learned = bool(scores) and max(scores) >= 0
    stale = len(scores) - 1 - scores.index(max(scores)) if learned else 0
    return state.global_step >= state.max_steps or (
        phase.patience is not None and stale >= phase.patience
    )


def arguments(
    phase: Phase, turns: Turns, run: RunFolder, options: StepOptions, on_gpu: bool
) -> TrainingArguments:
    """What the Trainer is told of a phase."""
    every = options.evaluate_every or turns.steps_per_epoch
    return TrainingArguments(
        output_dir=str(run.checkpoints(phase.name)),
        num_train_epochs=1,  # all epochs are one sequence, see `masking.Turns`
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=phase.learning_rate,
        weight_decay=options.weight_decay,
        max_grad_norm=options.gradient_clip,
        lr_scheduler_type="cosine",
        warmup_steps=int(phase.warmup * turns.steps_per_epoch * phase.epochs),
        optim="adamw_torch",
        bf16=on_gpu and torch.cuda.is_bf16_supported(),
        use_cpu=not on_gpu,
        seed=options.seed,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        metric_for_best_model=phase.best,
        greater_is_better=not phase.smaller_is_better,
        logging_strategy="steps",
        logging_steps=min(every, 100),
        remove_unused_columns=False,
        dataloader_num_workers=_GPU_WORKERS if on_gpu else 0,
        dataloader_pin_memory=on_gpu,
        # A step runs the model on several parts, and not every process on as many.
        ddp_broadcast_buffers=False,
        ddp_find_unused_parameters=False,
        report_to="none",
        disable_tqdm=True,
    )


def rows_a_step(options: StepOptions, on_gpu: bool) -> int:
    """How many rows of the data a step takes."""
    return options.batch_size * options.accumulate * _devices(on_gpu)


def shares_a_batch(on_gpu: bool) -> bool:
    """Whether one process computes a batch on several GPUs, which is the Trainer's old way."""
    return on_gpu and processes.count() == 1 and torch.cuda.device_count() > 1


def _devices(on_gpu: bool) -> int:
    """How many devices compute a batch each."""
    if processes.count() > 1 or not on_gpu:
        return processes.count()
    return torch.cuda.device_count()


def _plain_copy(model: Any) -> Any:
    """The same weights without what the Trainer wraps around a model's forward."""
    with torch.random.fork_rng(devices=[]):  # weights are drawn, and must not move dropout
        plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    return plain.to(device=model.device, dtype=torch.float32).train(False)


__all__ = [
    "Phase",
    "PhaseTrainer",
    "StepOptions",
    "Watcher",
    "arguments",
    "best_of",
    "rows_a_step",
    "shares_a_batch",
]
