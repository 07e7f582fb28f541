"""Training an encoder to be smoothed: `train_encoder`.

Two phases (`trainer`): masked training, then vote training from its best checkpoint.  Ours is
what is fed in (`masking`, `collation`), what is minimised (`losses`), and what "best" means:
certified accuracy on validation.  A run that was killed ends where an uninterrupted one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import DataError, MissingDependencyError, OptionError
from ranmask.metrics import CertifiedSummary
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.training.defence import Defence
from ranmask.training.evaluating import certified_summary
from ranmask.training.options import TrainingOptions
from ranmask.training.records import Report, RunFolder, check_corpora, figures
from ranmask.words import Document, documents

try:
    import torch
    import transformers

    from ranmask.models import pair_head
    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.training import bases, compact, processes
    from ranmask.training.trainer import best_checkpoint, phase_names, phases
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

if TYPE_CHECKING:
    from ranmask.data import Corpus


def train_encoder(
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: TrainingOptions,
    *,
    defence: Defence | None = None,
    report: Report | None = None,
    device: str | None = None,
) -> CertifiedClassifier:
    """Train ``base`` on ``train`` and save it, smoothed, in the folder ``output``.

    The same call again resumes after an interruption, to the same result; a folder that holds
    another run is refused.  ``output`` ends with model, tokenizer, ``ranmask.json``, a model card
    (README.md), ``training.json`` and the log ``training.jsonl``.

    Started by ``torchrun``, all processes train one model, and the first one writes it.

    Args:
        base: Folder or hub id of an encoder, with or without a classification head.
        train: What it learns from.
        validation: What the best checkpoint is chosen by; its labels are those of ``train``.
        output: The folder to write.
        options: How it is trained.
        defence: What training does against attacks besides masking; nothing by default.
        report: Called with every line of the log.
        device: ``cpu`` keeps it off a GPU.
    """
    defence = defence or Defence()
    check_corpora(train, validation)
    on_gpu = bases.on_gpu(device)
    texts = documents(train.texts)
    processes.meet(cpu=not on_gpu)
    run = RunFolder(output, _description(base, train, validation, options, defence), report)
    processes.by_the_first(run.check)
    names = phase_names(options)
    done = processes.by_the_first(lambda: sum(run.finished(name) for name in names))
    if done:
        model, tokenizer = _loaded(run.phase_folder(names[done - 1]))
    else:
        model, tokenizer = _new_model(base, texts, train.label_names, options)
    options = options.settled(model.num_parameters())

    def classifier_of(model: Any) -> HuggingFaceClassifier:
        instead = None if options.hides_words else _any_token(tokenizer)
        return HuggingFaceClassifier(model, tokenizer, hide=options.hide, mask_token=instead)

    learner = classifier_of(model)
    learner.words_read(texts[0])
    defence.begin(learner)
    # Whatever can be refused was, so that a corrected run finds the folder free.
    processes.by_the_first(run.begin)

    rows = slice(options.validation_rows)

    def measure(model: Any) -> CertifiedSummary:
        classifier = defence.validator(classifier_of(model), options)
        return certified_summary(classifier, validation.texts[rows], validation.labels[rows])

    for phase in phases(options)[done:]:
        best = best_checkpoint(
            phase,
            learner,
            texts,
            train.labels,
            measure,
            run,
            options,
            defence=defence,
            names=train.label_names,
            on_gpu=on_gpu,
        )
        _finish_phase(run, phase.name, best, tokenizer)
        learner = classifier_of(_model(run.phase_folder(phase.name)))

    model = learner.model.to("cuda" if on_gpu else "cpu")
    if options.weights == "float16":
        model.half().float()  # what is measured is what is stored
    trained = classifier_of(model)
    classifier = defence.classifier(trained, options)

    def finish() -> None:
        final = defence.validator(trained, options, final=True)
        summary = certified_summary(final, validation.texts, validation.labels)
        measured = figures(summary, train.label_names, options.class_weights)
        model.to(torch.float16 if options.weights == "float16" else torch.float32)
        classifier.save_pretrained(str(output))
        model.to(torch.float32)
        run.settle(learning_rate=options.learning_rate)
        run.complete(measured, validation_rows=len(validation.texts))

    processes.by_the_first(finish)
    return classifier


def _finish_phase(run: RunFolder, phase: str, best: Path, tokenizer: Any) -> None:
    def save(folder: Path) -> None:
        _model(best).save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    processes.by_the_first(lambda: run.finish_phase(phase, save))


def _new_model(
    base: str, texts: Sequence[Document], names: Sequence[str], options: TrainingOptions
) -> tuple[Any, Any]:
    """The base encoder with a new head, made smaller if asked for."""
    transformers.set_seed(options.seed)  # fixes the new head
    several = options.head == "approval"
    _check_pair_head(options, texts)
    model, tokenizer, _ = bases.load_base(
        base,
        "AutoModel" if options.pair_head else "AutoModelForSequenceClassification",
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
        problem_type="multi_label_classification" if several else "single_label_classification",
        ignore_mismatched_sizes=True,
    )
    if isinstance(model, pair_head.PairHeadModel) and not options.pair_head:
        raise OptionError(f"the base {base!r} has a pair head: train it with pair_head")
    if options.layers is not None:
        compact.keep_layers(model, options.layers)
    if options.vocabulary is not None:
        words = (word for text in texts for word in (*text.words, *(text.premise or "").split()))
        tokenizer = compact.keep_tokens(model, tokenizer, words, options.vocabulary)
    if options.longest is not None:
        # Saved with the tokenizer, and read by `RowFormat` wherever the model is loaded.
        tokenizer.model_max_length = min(options.longest, tokenizer.model_max_length)
    if options.pair_head:
        model = pair_head.with_pair_head(model, tokenizer)
    return model, tokenizer


def _check_pair_head(options: TrainingOptions, texts: Sequence[Document]) -> None:
    for row, text in enumerate(texts if options.pair_head else (), 1):
        if text.premise is None:
            raise DataError(
                "pair_head reads pairs of premise and hypothesis, and this text is a single one: "
                "train without pair_head, or on pairs",
                row,
            )


def _any_token(tokenizer: Any) -> str | None:
    """A token for hidden words where there are none to hide and the tokenizer has no mask token."""
    if tokenizer.mask_token is not None:
        return None
    found: str | None = tokenizer.unk_token or tokenizer.pad_token
    return found


def _loaded(folder: Path) -> tuple[Any, Any]:
    return _model(folder), transformers.AutoTokenizer.from_pretrained(folder)


def _model(folder: Path) -> Any:
    pair_head.register()
    return transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float32
    )


def _description(
    base: str, train: Corpus, validation: Corpus, options: TrainingOptions, defence: Defence
) -> dict[str, Any]:
    return {
        "kind": "encoder",
        "base": base,
        "train": train.description(),
        "validation": validation.description(),
        "options": options.to_dict(),
        "defence": defence.description(),
        "processes": processes.count(),
    }


__all__ = ["train_encoder"]
