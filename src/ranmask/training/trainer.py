"""One phase of training: the transformers Trainer with our batches, losses and measure.

Checkpoints, bf16, clipping, schedules and several devices are the Trainer's business.  Every
batch is a pure function of seed and step, and the Trainer restores optimiser, schedule and
dropout, so that a phase that was killed ends where an uninterrupted one does.  What it does not
restore is kept out of memory: whether to stop early is read from the history of the run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from ranmask.errors import MissingDependencyError
from ranmask.metrics import CertifiedSummary
from ranmask.training.evaluating import certified_score
from ranmask.training.masking import MaskingPlan, Turns
from ranmask.training.options import TrainingOptions
from ranmask.training.records import COMPLETE, RunFolder, figures
from ranmask.words import Document

try:
    import torch
    import transformers
    from torch.nn import functional
    from transformers import Trainer, TrainerCallback, TrainerState, TrainingArguments

    from ranmask.classifiers.huggingface import HuggingFaceClassifier
    from ranmask.training import processes
    from ranmask.training.collation import Collator
    from ranmask.training.losses import MARGIN_WIDTH, certified_loss, margin_loss
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

Measure: TypeAlias = Callable[[Any], CertifiedSummary]
"""What a model proves on the held-out rows."""

_WARMUP = 0.06  # share of the steps
_GPU_WORKERS = 8


@dataclass(frozen=True)
class Phase:
    """One run of the Trainer.  ``number`` keeps the random draws of phases apart."""

    name: str
    number: int
    epochs: int
    copies: int
    learning_rate: float
    ramp: float
    patience: int | None
    votes: bool


def phases(options: TrainingOptions) -> list[Phase]:
    """The phases that the options ask for, in their order."""
    planned = [
        Phase(
            "masked",
            0,
            options.epochs,
            options.copies,
            options.learning_rate,
            options.ramp,
            options.patience,
            votes=False,
        ),
        Phase(
            "votes",
            1,
            options.vote_epochs,
            options.vote_copies,
            options.vote_learning_rate or options.learning_rate,
            0.0,
            None,
            votes=True,
        ),
    ]
    return [phase for phase in planned if phase.epochs]


def best_checkpoint(
    phase: Phase,
    base: HuggingFaceClassifier,
    texts: Sequence[Document],
    labels: Sequence[int],
    measure: Measure,
    run: RunFolder,
    options: TrainingOptions,
    *,
    commonest: Fraction,
    on_gpu: bool,
) -> Path:
    """Train ``base`` through one phase, or the rest of it; returns its best checkpoint.

    Best is what `measure` certifies most of, among those that are more accurate than always
    naming the commonest class, whose share is ``commonest``.
    """
    turns = Turns(
        len(texts), phase.epochs, options.batch_size * _devices(on_gpu), options.seed, phase.number
    )
    plan = MaskingPlan(
        options.retentions, options.family, phase.copies, phase.ramp, options.seed, phase.number
    )
    last = processes.by_the_first(lambda: run.last_checkpoint(phase.name))
    state = None if last is None else TrainerState.load_from_json(str(last / "trainer_state.json"))
    if state is None or not _is_over(state, phase):
        trainer = _MaskedTrainer(
            phase,
            options,
            measure,
            commonest,
            model=base.model,
            args=_arguments(phase, turns, run, options, on_gpu),
            train_dataset=turns,
            eval_dataset=[0],  # not looked at: `measure` has its own rows
            data_collator=Collator(base, texts, labels, plan, options.target_words),
            callbacks=[_Watcher(phase, turns.steps_per_epoch, run)],
        )
        trainer.remove_callback(transformers.ProgressCallback)
        trainer.remove_callback(transformers.PrinterCallback)
        with warnings.catch_warnings():
            # The Trainer has no other name yet for what `_arguments` says of buffers.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        state = trainer.state
    return run.checkpoints(phase.name) / f"checkpoint-{state.best_global_step}"


class _MaskedTrainer(Trainer):
    """The Trainer with our order of rows, our losses and our measure of what is best."""

    def __init__(
        self,
        phase: Phase,
        options: TrainingOptions,
        measure: Measure,
        commonest: Fraction,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._phase = phase
        self._options = options
        self._measure = measure
        self._commonest = commonest

    def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
        turns: Any = self.train_dataset
        return torch.utils.data.SequentialSampler(turns)  # they are shuffled already

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        logits = torch.cat([model(**part).logits.float() for part in inputs["parts"]])
        classes, text = inputs["classes"], inputs["text"]
        if not self._phase.votes:
            return _copy_loss(logits, classes[text], self._options)
        scores = logits.sigmoid() if self._options.head == "approval" else logits.softmax(-1)
        present = inputs["present"]
        table = scores.new_zeros(*present.shape, scores.shape[-1])
        table = table.index_put((text, inputs["copy"]), scores)
        if self._options.vote_loss == "margin":
            return margin_loss(table, present, classes, self._options.margin, MARGIN_WIDTH)
        return certified_loss(
            table,
            present,
            classes,
            inputs["met"],
            inputs["words_per_copy"].to(table.dtype),
            self._options.step_width,
            self._options.accuracy_weight,
        )

    def evaluate(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What is certified of the held-out rows, measured by the first process for all."""
        summary = processes.by_the_first(lambda: self._measure(_plain_copy(self.model)))
        metrics = {
            f"eval_{name}": value
            for name, value in {
                "score": certified_score(summary, self._options.target_words, self._commonest),
                **figures(summary),
            }.items()
        }
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


class _Watcher(TrainerCallback):
    """Keeps the log, marks whole checkpoints, and stops early."""

    def __init__(self, phase: Phase, steps_per_epoch: int, run: RunFolder) -> None:
        self._phase = phase
        self._steps_per_epoch = steps_per_epoch
        self._run = run
        self._started = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self._started -= self._run.rewind(self._phase.name, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, **given: Any) -> None:
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
        if _is_over(state, self._phase):
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Every process writes its part; when all are here, all have.
        processes.by_the_first(lambda: None)
        if state.is_world_process_zero:
            folder = self._run.checkpoints(self._phase.name) / f"checkpoint-{state.global_step}"
            (folder / COMPLETE).touch()


def _is_over(state: Any, phase: Phase) -> bool:
    """Whether a phase has had all its steps, or too many evaluations without gain."""
    scores = [line["eval_score"] for line in state.log_history if "eval_score" in line]
    stale = len(scores) - 1 - scores.index(max(scores)) if scores else 0
    return state.global_step >= state.max_steps or (
        phase.patience is not None and stale >= phase.patience
    )


def _copy_loss(logits: torch.Tensor, classes: torch.Tensor, options: TrainingOptions) -> Any:
    if options.head == "choice":
        return functional.cross_entropy(logits, classes)
    wanted = functional.one_hot(classes, logits.shape[-1]).to(logits.dtype)
    return functional.binary_cross_entropy_with_logits(logits, wanted)


def _arguments(
    phase: Phase, turns: Turns, run: RunFolder, options: TrainingOptions, on_gpu: bool
) -> TrainingArguments:
    every = options.evaluate_every or turns.steps_per_epoch
    return TrainingArguments(
        output_dir=str(run.checkpoints(phase.name)),
        num_train_epochs=1,  # all epochs are one sequence, see `masking.Turns`
        per_device_train_batch_size=options.batch_size,
        learning_rate=phase.learning_rate,
        weight_decay=options.weight_decay,
        max_grad_norm=options.gradient_clip,
        lr_scheduler_type="cosine",
        warmup_steps=int(_WARMUP * turns.steps_per_epoch * phase.epochs),
        optim="adamw_torch",
        bf16=on_gpu and torch.cuda.is_bf16_supported(),
        use_cpu=not on_gpu,
        seed=options.seed,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        metric_for_best_model="score",
        greater_is_better=True,
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


def _devices(on_gpu: bool) -> int:
    """How many batches make a step."""
    if processes.count() > 1 or not on_gpu:
        return processes.count()
    return torch.cuda.device_count()


def _plain_copy(model: Any) -> Any:
    """The same weights without what the Trainer wraps around a model's forward."""
    with torch.random.fork_rng(devices=[]):  # weights are drawn, and must not move dropout
        plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    return plain.to(device=model.device, dtype=torch.float32).train(False)


__all__ = ["Measure", "Phase", "best_checkpoint", "phases"]
