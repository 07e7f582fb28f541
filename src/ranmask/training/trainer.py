"""The two phases of an encoder's training: `running` with our batches, losses and measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ranmask.errors import MissingDependencyError, OptionError
from ranmask.metrics import CertifiedSummary
from ranmask.training.defence import Defence
from ranmask.training.evaluating import certified_score
from ranmask.training.masking import MaskingPlan, Turns
from ranmask.training.options import TrainingOptions
from ranmask.training.records import RunFolder, figures
from ranmask.words import Document

try:
    import torch
    from torch.nn import functional

    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.training import running
    from ranmask.training.collation import Collator
    from ranmask.training.losses import (
        MARGIN_WIDTH,
        certified_loss,
        class_weights,
        margin_loss,
        weighted_mean,
    )
    from ranmask.training.step import Step
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

Measure: TypeAlias = Callable[[Any], CertifiedSummary]
"""What a model proves on the held-out rows."""

_VOTES = "votes"


@dataclass(frozen=True, kw_only=True)
class Phase(running.Phase):
    """Masked training, or vote training.  ``number`` keeps the random draws of phases apart."""

    number: int
    copies: int
    ramp: float
    votes: bool


def phase_names(options: TrainingOptions) -> list[str]:
    """The names of the phases that the options ask for, in their order."""
    masked = "masked" if options.hides_words else "plain"
    return [masked] * bool(options.epochs) + [_VOTES] * bool(options.vote_epochs)


def phases(options: TrainingOptions) -> list[Phase]:
    """The phases that the options ask for, in their order; a learning rate must be among them."""
    learning_rate = options.learning_rate
    assert learning_rate is not None, "see TrainingOptions.settled"
    planned = [
        Phase(
            name="masked" if options.hides_words else "plain",
            number=0,
            epochs=options.epochs,
            copies=options.copies,
            learning_rate=learning_rate,
            ramp=options.ramp,
            patience=options.patience,
            votes=False,
        ),
        Phase(
            name=_VOTES,
            number=1,
            epochs=options.vote_epochs,
            copies=options.vote_copies,
            learning_rate=options.vote_learning_rate or learning_rate,
            ramp=0.0,
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
    defence: Defence,
    names: Sequence[str],
    on_gpu: bool,
) -> Path:
    """Train ``base`` through one phase, or the rest of it; returns its best checkpoint.

    Best is what `measure` certifies most of, among those that are more accurate than always
    naming the commonest class (`certified_score`).  ``names``: of the classes.
    """
    batch = running.rows_a_step(options, on_gpu)
    turns = Turns(len(texts), phase.epochs, batch, options.seed, phase.number)
    plan = MaskingPlan(
        options.retentions, options.family, phase.copies, phase.ramp, options.seed, phase.number
    )

    if running.shares_a_batch(on_gpu) and type(defence).loss is not Defence.loss:
        raise OptionError(
            f"the defence {defence.name} cannot be trained on several GPUs by one process: start "
            "one for each with torchrun, or choose one GPU with CUDA_VISIBLE_DEVICES"
        )

    def trainer() -> running.PhaseTrainer:
        defence.begin(base)
        return _MaskedTrainer(
            phase,
            options,
            base,
            defence,
            measure,
            names,
            class_weights(labels, len(names), options.class_weights),
            model=base.model,
            args=running.arguments(phase, turns, run, options, on_gpu),
            train_dataset=turns,
            eval_dataset=[0],  # not looked at: `measure` has its own rows
            data_collator=Collator(
                base, texts, labels, plan, options.target_words, defence, on_gpu=on_gpu
            ),
            callbacks=[running.Watcher(phase, turns.steps_per_epoch, run)],
        )

    return running.best_of(phase, run, trainer)


class _MaskedTrainer(running.PhaseTrainer):
    """Our losses, and certified accuracy as the measure of what is best."""

    def __init__(
        self,
        phase: Phase,
        options: TrainingOptions,
        base: HuggingFaceClassifier,
        defence: Defence,
        measure: Measure,
        names: Sequence[str],
        weights: torch.Tensor | None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._phase = phase
        self._options = options
        self._base = base
        self._defence = defence
        self._measure = measure
        self._names = names
        self._weights = weights

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        step = Step(
            model,
            self._base,
            inputs["parts"],
            inputs["bodies"],
            lambda logits: self._loss(logits, inputs),
            self._backward,
            int(inputs["seed"]),
        )
        return self._defence.loss(step)

    def _backward(self, loss: torch.Tensor) -> None:
        """What the Trainer does with the loss that it is given in the end."""
        self.accelerator.backward(loss / self.current_gradient_accumulation_steps)

    def _loss(self, logits: torch.Tensor, inputs: Any) -> torch.Tensor:
        """What plain training minimises, from the logits of all rows."""
        classes, text = inputs["classes"], inputs["text"]
        counts = None if self._weights is None else self._weights.to(logits.device)[classes]
        if not self._phase.votes:
            of_copies = None if counts is None else counts[text]
            return _copy_loss(logits, classes[text], self._options, of_copies)
        scores = logits.sigmoid() if self._options.head == "approval" else logits.softmax(-1)
        present = inputs["present"]
        table = scores.new_zeros(*present.shape, scores.shape[-1])
        table = table.index_put((text, inputs["copy"]), scores)
        if self._options.vote_loss == "margin":
            target = self._options.margin
            return margin_loss(table, present, classes, target, MARGIN_WIDTH, counts)
        return certified_loss(
            table,
            present,
            classes,
            inputs["met"],
            inputs["words_per_copy"].to(table.dtype),
            self._options.step_width,
            self._options.accuracy_weight,
            counts,
        )

    def measured(self, model: Any) -> dict[str, Any]:
        """What is certified of the held-out rows."""
        summary = self._measure(model)
        weights = self._options.class_weights
        score = certified_score(summary, self._options.target_words, weights)
        return {"score": score, **figures(summary, self._names, weights)}


def _copy_loss(
    logits: torch.Tensor,
    classes: torch.Tensor,
    options: TrainingOptions,
    counts: torch.Tensor | None,
) -> torch.Tensor:
    """The mean loss of copies; ``counts``: what each counts."""
    if options.head == "choice":
        return weighted_mean(functional.cross_entropy(logits, classes, reduction="none"), counts)
    wanted = functional.one_hot(classes, logits.shape[-1]).to(logits.dtype)
    losses = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    return weighted_mean(losses.mean(1), counts)


__all__ = ["Measure", "Phase", "best_checkpoint", "phase_names", "phases"]
