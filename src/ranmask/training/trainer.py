"""Phases of training, as the transformers Trainer runs them; an `Objective` says what is learned.

Every batch is a pure function of seed and step (`masking.Turns`), and the Trainer restores
optimiser, schedule and dropout, so that a phase that was killed ends where an uninterrupted one
does.  Whether to stop early is read from the history, which the Trainer restores as well.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainerState, TrainingArguments

from ranmask.errors import OptionError
from ranmask.training import processes
from ranmask.training.masking import Turn, Turns
from ranmask.training.options import MlmOptions, TrainingOptions
from ranmask.training.records import COMPLETE, RunFolder

_GPU_WORKERS = 4  # at most; fewer where processes share the cores (OMP_NUM_THREADS)
_CORES_A_WORKER = 4  # a batch takes a fraction of the time of its step


@dataclass(frozen=True)
class Phase:
    """One run of the Trainer.

    The best checkpoint has the largest ``best`` of what is measured, or the smallest where
    ``smaller_is_better``.  ``patience``: evaluations without a larger score before it stops.
    ``warmup``: the share of the steps in which the learning rate rises.  ``number`` keeps the
    random draws of phases apart.  ``rate_option``: the option that says its learning rate.
    """

    name: str
    epochs: int
    learning_rate: float | None
    _: KW_ONLY
    number: int = 0
    patience: int | None = None
    warmup: float = 0.06
    rate_option: str = "learning_rate"
    best: str = "score"
    smaller_is_better: bool = False


class Objective(Protocol):
    """What a phase learns: its batches, its loss, and what its checkpoints are compared by."""

    def collate(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The batch of these texts' turns."""

    def loss(
        self, model: Any, batch: Any, backward: Callable[[torch.Tensor], None]
    ) -> torch.Tensor:
        """The loss of a batch; ``backward`` adds the gradients of another one to the step."""

    def measured(self, model: Any) -> dict[str, Any]:
        """What ``model``, in single precision, does on the held-out rows: plain JSON values.

        It is the same object at every evaluation of a phase, with the weights that it has by then.
        """


def train_phase(
    phase: Phase,
    model: Any,
    tokenizer: Any,
    objective: Objective,
    rows: int,
    run: RunFolder,
    options: TrainingOptions | MlmOptions,
    *,
    on_gpu: bool,
) -> Any:
    """Train on so many rows through a phase, or the rest of it; returns its best model.

    It is kept in the run's folder, with the tokenizer, as the outcome of the phase.
    """
    last = processes.by_the_first(lambda: run.last_checkpoint(phase.name))
    state = None if last is None else TrainerState.load_from_json(str(last / "trainer_state.json"))
    if state is None or not _is_over(state, phase):
        batch = options.batch_size * options.accumulate * processes.devices(on_gpu)
        turns = Turns(rows, phase.epochs, batch, options.seed, phase.number)
        trainer = PhaseTrainer(
            objective,
            phase.rate_option,
            model=model,
            args=_arguments(phase, turns, run, options, on_gpu),
            train_dataset=turns,
            callbacks=[Watcher(phase, turns.steps_per_epoch, run)],
        )
        trainer.remove_callback(transformers.ProgressCallback)
        trainer.remove_callback(transformers.PrinterCallback)
        with warnings.catch_warnings():
            # The Trainer has no other name yet for what `_arguments` says of buffers.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        state = trainer.state
    best = run.checkpoints(phase.name) / f"checkpoint-{state.best_global_step}"

    def save(folder: Path) -> None:
        type(model).from_pretrained(best, dtype=torch.float32).save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    processes.by_the_first(lambda: run.finish_phase(phase.name, save))
    return type(model).from_pretrained(run.phase_folder(phase.name), dtype=torch.float32)


class PhaseTrainer(Trainer):
    """The Trainer with our order of rows, and the loss and the measure of an objective."""

    objective: Objective
    _plain: Any = None  # what is measured, once it was

    def __init__(self, objective: Objective, rate_option: str, **given: Any) -> None:
        # The objective has held-out rows of its own; the Trainer only asks whether there are any.
        super().__init__(data_collator=objective.collate, eval_dataset=[0], **given)
        self.objective = objective
        self._rate_option = rate_option
        self._losses: list[tuple[int, torch.Tensor]] = []  # with their steps; nobody looked yet

    def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
        turns: Any = self.train_dataset
        return torch.utils.data.SequentialSampler(turns)  # they are shuffled already

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        """The objective's loss."""
        # Weights that a pass casts to bf16 are kept until the outermost context ends: so all
        # passes of a step share them, as those of an ascent do.
        with torch.autocast(self.args.device.type, enabled=False):
            loss = self.objective.loss(model, inputs, self._backward)
        self._losses.append((self.state.global_step + 1, loss.detach()))
        return loss

    def log(self, logs: dict[str, float], *given: Any) -> None:
        """Write a line of the log; raises where training has diverged."""
        super().log(logs, *given)
        self._check_losses()

    def _check_losses(self) -> None:
        """Raise where a loss since the last look was no number, or where a weight is none now.

        Looking makes the host wait for a GPU, so it is done where something is logged anyway.
        """
        losses, self._losses = self._losses, []
        model: Any = self.model
        finite = [loss.isfinite() for _, loss in losses]
        finite += [weight.isfinite().all() for weight in model.parameters()]
        seen = torch.stack(finite).tolist()
        if all(seen):
            return
        steps = [step for (step, _), good in zip(losses, seen, strict=False) if not good]
        step = steps[0] if steps else self.state.global_step
        args = self.args
        which = "the loss is no number" if steps else "weights are no numbers"
        raise OptionError(
            f"{which} since step {step} of {self.state.max_steps}: training diverged "
            f"with {self._rate_option}={args.learning_rate:g} and "
            f"gradient_clip={args.max_grad_norm:g}. Lower the learning rate first, in another "
            "output folder"
        )

    def _backward(self, loss: torch.Tensor) -> None:
        """What the Trainer does with the loss that it is given in the end."""
        self.accelerator.backward(loss / self.current_gradient_accumulation_steps)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What the objective measures, by the first process for all."""
        self._check_losses()
        found = processes.by_the_first(lambda: self.objective.measured(self._plain_copy()))
        metrics = {f"eval_{name}": value for name, value in found.items()}
        self.log(metrics)
        state, control = self.state, self.control
        self.control = self.callback_handler.on_evaluate(self.args, state, control, metrics)
        return metrics

    def _plain_copy(self) -> Any:
        """The same weights without what the Trainer wraps around a model's forward."""
        model: Any = self.model
        if self._plain is None:
            with torch.random.fork_rng(devices=[]):  # weights are drawn, and must not move dropout
                plain = type(model)(model.config)
            self._plain = plain.to(device=model.device, dtype=torch.float32).train(False)
        self._plain.load_state_dict(model.state_dict())
        return self._plain


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
            step = {"step": state.global_step, "steps": state.max_steps}
            epoch = round(state.global_step / self._steps_per_epoch, 3)
            times = {"epoch": epoch, "seconds": round(time.monotonic() - self._started, 1)}
            finite = {
                key: None if isinstance(value, float) and not math.isfinite(value) else value
                for key, value in kept.items()
            }  # JSON has no other word for the loss of weights that are no numbers any more
            self._run.log({"phase": self._phase.name, **step, **times, **finite})

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


def _arguments(
    phase: Phase, turns: Turns, run: RunFolder, options: TrainingOptions | MlmOptions, on_gpu: bool
) -> TrainingArguments:
    every = options.evaluate_every or turns.steps_per_epoch
    assert phase.learning_rate is not None, "see TrainingOptions.settled"
    if on_gpu:  # a forked worker that tokenises in several threads waits for ever
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
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
        optim="adamw_torch_fused" if on_gpu else "adamw_torch",
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
        logging_first_step=True,  # how long it will take is known from it
        remove_unused_columns=False,
        dataloader_num_workers=_workers() if on_gpu else 0,
        dataloader_pin_memory=on_gpu,
        # Neither a batch on its way nor a look at the loss of a step makes the host wait for a GPU.
        accelerator_config={"non_blocking": on_gpu},
        logging_nan_inf_filter=False,  # a loss that is no number would be logged as 0
        # A step runs the model on several parts, and not every process on as many.
        ddp_broadcast_buffers=False,
        ddp_find_unused_parameters=False,
        report_to="none",
        disable_tqdm=True,
    )


def _workers() -> int:
    return max(1, min(_GPU_WORKERS, torch.get_num_threads() // _CORES_A_WORKER))
