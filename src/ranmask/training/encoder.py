"""Training an encoder to be smoothed: `train_encoder`.

Two phases, each one run of the transformers Trainer (checkpoints, bf16, clipping, schedules and
several devices are its business): masked training, then vote training from its best checkpoint.
Ours is what is fed in (`masking`, `collation`), what is minimised (`losses`), and what "best"
means: certified accuracy on validation.

Every batch is a pure function of seed and step, and the Trainer restores optimiser, schedule and
dropout, so a run that was killed ends where an uninterrupted one does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import MissingDependencyError, ModelError, OptionError
from ranmask.smoothing import SmoothedClassifier
from ranmask.training import compact
from ranmask.training.evaluating import certified_summary
from ranmask.training.masking import MaskingPlan, Turns
from ranmask.training.options import TrainingOptions
from ranmask.training.records import Report, RunFolder, figures
from ranmask.words import Document, Text, documents

try:
    import torch
    import transformers
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from ranmask.classifiers.huggingface import HuggingFaceClassifier
    from ranmask.training.collation import Collator
    from ranmask.training.losses import certified_loss, margin_loss
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

if TYPE_CHECKING:
    from ranmask.corpora import Corpus

_MARGIN_WIDTH = 0.1  # of the margin loss's hinge
_WARMUP = 0.06  # share of the steps
_GPU_WORKERS = 8


@dataclass(frozen=True)
class Phase:
    """One run of the Trainer."""

    name: str
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
            options.epochs,
            options.copies,
            options.learning_rate,
            options.ramp,
            options.patience,
            votes=False,
        ),
        Phase(
            "votes",
            options.vote_epochs,
            options.vote_copies,
            options.vote_learning_rate or options.learning_rate,
            0.0,
            None,
            votes=True,
        ),
    ]
    return [phase for phase in planned if phase.epochs]


def train_encoder(
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: TrainingOptions,
    *,
    report: Report | None = None,
    device: str | None = None,
) -> SmoothedClassifier:
    """Train ``base`` on ``train`` and save it, smoothed, in the folder ``output``.

    The same call again resumes after an interruption, to the same result; a folder that holds
    another run is refused.  ``output`` ends with model, tokenizer, ``ranmask.json``, a model card
    (README.md), ``training.json`` and the log ``training.jsonl``.

    Args:
        base: Folder or hub id of an encoder, with or without a classification head.
        train: What it learns from.
        validation: What the best checkpoint is chosen by; its labels are those of ``train``.
        output: The folder to write.
        options: How it is trained.
        report: Called with every line of the log.
        device: ``cpu`` keeps it off a GPU.
    """
    _check_labels(train, validation)
    run = RunFolder(output, _description(base, train, validation, options), report)
    run.start()
    held_out = validation.texts[: options.validation_rows]
    texts = documents(train.texts)
    for place, phase in enumerate(phases(options)):
        if run.finished(phase.name):
            continue
        previous = phases(options)[place - 1].name if place else None
        if previous is None:
            model, tokenizer = _new_model(base, texts, train.label_names, options)
        else:
            model, tokenizer = _loaded(run.phase_folder(previous))
        best = _run_phase(
            phase, model, tokenizer, texts, train.labels, held_out, validation, run, options, device
        )
        if run.is_main_process:
            best.save_pretrained(run.phase_folder(phase.name, partial=True))
            tokenizer.save_pretrained(run.phase_folder(phase.name, partial=True))
            run.finish_phase(phase.name)
    model, tokenizer = _loaded(run.phase_folder(phases(options)[-1].name))
    if options.weights == "float16":
        model.half()
    classifier = SmoothedClassifier(
        HuggingFaceClassifier(model.float().to(_device(device)), tokenizer, hide=options.hide),
        **options.smoothing(),
    )
    if run.is_main_process:
        measured = figures(certified_summary(classifier, validation.texts, validation.labels))
        classifier.save_pretrained(str(output))
        if options.weights == "float16":
            _store_as_half(output, model)
        run.complete(measured, validation_rows=len(validation.texts))
    return classifier


def _run_phase(
    phase: Phase,
    model: Any,
    tokenizer: Any,
    texts: Sequence[Document],
    labels: Sequence[int],
    held_out: Sequence[Text],
    validation: Corpus,
    run: RunFolder,
    options: TrainingOptions,
    device: str | None,
) -> Any:
    """The best model of one phase."""
    arguments = _arguments(phase, len(texts), run, options, device)
    base = HuggingFaceClassifier(model, tokenizer, hide=options.hide)
    turns = Turns(
        len(texts),
        phase.epochs,
        arguments.train_batch_size * arguments.world_size,
        options.seed,
    )
    plan = MaskingPlan(options.retentions, options.family, phase.copies, phase.ramp, options.seed)
    collator = Collator(base, texts, labels, plan, options.target_words)
    callbacks: list[TrainerCallback] = [run.callback(phase.name, turns.steps_per_epoch)]
    if phase.patience is not None:
        callbacks.append(transformers.EarlyStoppingCallback(phase.patience))
    trainer = _MaskedTrainer(
        model=model,
        args=arguments,
        train_dataset=turns,
        eval_dataset=held_out,
        data_collator=collator,
        callbacks=callbacks,
    )
    trainer.remove_callback(transformers.ProgressCallback)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.configure(phase, tokenizer, validation.labels[: len(held_out)], options)
    last: Any = transformers.trainer_utils.get_last_checkpoint
    checkpoint = last(arguments.output_dir)
    trainer.train(resume_from_checkpoint=checkpoint)
    return _plain_copy(trainer.model)


class _MaskedTrainer(Trainer):
    """The Trainer with our batches, our losses and our measure of what is best."""

    def configure(
        self,
        phase: Phase,
        tokenizer: Any,
        labels: Sequence[int],
        options: TrainingOptions,
    ) -> None:
        self._phase = phase
        self._tokenizer = tokenizer
        self._held_out_labels = labels
        self._options = options

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
            return margin_loss(table, present, classes, self._options.margin, _MARGIN_WIDTH)
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
        """Certified accuracy on the held-out rows, by the smoothed classifier itself."""
        classifier = SmoothedClassifier(
            HuggingFaceClassifier(
                _plain_copy(self.model), self._tokenizer, hide=self._options.hide
            ),
            # Near ties are not worth measuring a tolerance for at every evaluation.
            tolerance=0.0,
            **self._options.smoothing(),
        )
        held_out: Any = self.eval_dataset
        summary = certified_summary(classifier, held_out, self._held_out_labels)
        score = sum(
            summary.certified_accuracy(changed) for changed in range(self._options.target_words + 1)
        ) / (self._options.target_words + 1)
        metrics: dict[str, Any] = {"eval_score": float(score)}
        for name, value in figures(summary).items():
            metrics[f"eval_{name}"] = value
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def _copy_loss(logits: torch.Tensor, classes: torch.Tensor, options: TrainingOptions) -> Any:
    functional = torch.nn.functional
    if options.head == "choice":
        return functional.cross_entropy(logits, classes)
    wanted = functional.one_hot(classes, logits.shape[-1]).to(logits.dtype)
    return functional.binary_cross_entropy_with_logits(logits, wanted)


def _arguments(
    phase: Phase, rows: int, run: RunFolder, options: TrainingOptions, device: str | None
) -> TrainingArguments:
    on_gpu = torch.cuda.is_available() and device != "cpu"
    world = int(os.environ.get("WORLD_SIZE", "1"))
    every = options.evaluate_every or max(1, rows // (options.batch_size * world))
    steps = max(1, rows // (options.batch_size * world)) * phase.epochs
    return TrainingArguments(
        output_dir=str(run.checkpoints(phase.name)),
        num_train_epochs=1,  # all epochs are one sequence, see `masking.Turns`
        per_device_train_batch_size=options.batch_size,
        learning_rate=phase.learning_rate,
        weight_decay=options.weight_decay,
        max_grad_norm=options.gradient_clip,
        lr_scheduler_type="cosine",
        warmup_steps=int(_WARMUP * steps),
        optim="adamw_torch",
        bf16=on_gpu,
        use_cpu=not on_gpu,
        seed=options.seed,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="score",
        greater_is_better=True,
        logging_strategy="steps",
        logging_steps=max(1, min(every, 100)),
        remove_unused_columns=False,
        dataloader_num_workers=_GPU_WORKERS if on_gpu else 0,
        dataloader_pin_memory=on_gpu,
        report_to="none",
        disable_tqdm=True,
    )


def _new_model(
    base: str, texts: Sequence[Document], names: Sequence[str], options: TrainingOptions
) -> tuple[Any, Any]:
    """The base encoder with a new head, made smaller if asked for."""
    transformers.set_seed(options.seed)  # fixes the new head
    problem = "multi_label_classification" if options.head == "approval" else None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(base, trust_remote_code=False)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            base,
            id2label=dict(enumerate(names)),
            label2id={name: index for index, name in enumerate(names)},
            problem_type=problem or "single_label_classification",
            ignore_mismatched_sizes=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
        )
    except Exception as error:  # loaders raise all sorts of things over a damaged folder
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"cannot load the base encoder {base!r}: {lines[0]}") from error
    if options.layers is not None:
        compact.keep_layers(model, options.layers)
    if options.vocabulary is not None:
        words = (word for text in texts for word in text.words)
        tokenizer = compact.keep_tokens(model, tokenizer, words, options.vocabulary)
    return model, tokenizer


def _loaded(folder: Path) -> tuple[Any, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float32
    )
    return model, tokenizer


def _plain_copy(model: Any) -> Any:
    """The same weights without what the Trainer wraps around a model's forward."""
    while hasattr(model, "module"):
        model = model.module
    plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    return plain.to(device=model.device, dtype=torch.float32).train(False)


def _store_as_half(folder: Path, model: Any) -> None:
    """Replace the saved weights by half-precision ones; the model already has their values."""
    import copy

    copy.deepcopy(model).half().save_pretrained(folder)


def _device(device: str | None) -> str:
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def _check_labels(train: Corpus, validation: Corpus) -> None:
    if train.label_names != validation.label_names:
        raise OptionError(
            f"train has the classes {', '.join(train.label_names)}, validation "
            f"{', '.join(validation.label_names)}: they must be the same"
        )


def _description(
    base: str, train: Corpus, validation: Corpus, options: TrainingOptions
) -> dict[str, Any]:
    return {
        "kind": "encoder",
        "base": base,
        "train": train.description(),
        "validation": validation.description(),
        "options": options.to_dict(),
    }


__all__ = ["Phase", "phases", "train_encoder"]
