"""Training a masked language model on the texts of a corpus: `train_mlm`.

Such a model says which words fit a place in a text.  Attacks ask it for substitutes, and masking
may weigh words by it.  It is an ordinary Hugging Face model and no classifier: labels are not
looked at, and nothing can be certified with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import MissingDependencyError, ModelError, OptionError
from ranmask.results.files import writing
from ranmask.training.mlm_options import MlmOptions
from ranmask.training.records import Report, RunFolder, check_rows
from ranmask.words import documents

try:
    import torch
    import transformers

    from ranmask.training import bases, processes
    from ranmask.training.mlm_trainer import PHASE, HeldOutLoss, HidingCollator, best_checkpoint
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

if TYPE_CHECKING:
    from ranmask.data import Corpus


def train_mlm(
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: MlmOptions,
    *,
    report: Report | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Train ``base`` to predict hidden tokens of ``train``; returns what validation measured.

    The folder ``output`` ends with model and tokenizer, which ``AutoModelForMaskedLM`` and
    ``AutoTokenizer`` load, a model card (README.md), ``training.json`` and the log
    ``training.jsonl``.  The same call again resumes after an interruption, to the same result; a
    folder that holds another run is refused.

    Args:
        base: Folder or hub id of an encoder.  A masked language model keeps its head; any other
            gets a new one, with the word embeddings as its last layer where the architecture
            ties them.
        train: What it learns from; of pairs, both texts.
        validation: What the best checkpoint is chosen by.
        output: The folder to write.
        options: How it is trained.
        report: Called with every line of the log.
        device: ``cpu`` keeps it off a GPU.
    """
    check_rows(train, validation)
    if processes.count() > 1:
        raise OptionError(
            "a masked language model is trained by one process: start it without torchrun"
        )
    on_gpu = bases.on_gpu(device)
    texts, held_out = documents(train.texts), documents(validation.texts)
    run = RunFolder(output, _description(base, train, validation, options), report)
    run.check()
    finished = run.finished(PHASE)
    model, tokenizer = _loaded(run.phase_folder(PHASE)) if finished else _new_model(base, options)
    collate = HidingCollator(model, tokenizer, texts, options)
    collate_held_out = HidingCollator(model, tokenizer, held_out, options, held_out=True)
    # Whatever can be refused was, so that a corrected run finds the folder free.
    run.begin()

    if not finished:
        rows = min(options.validation_rows, len(held_out))
        measure = HeldOutLoss(collate_held_out, rows, options)
        best = best_checkpoint(model, collate, len(texts), measure, run, options, on_gpu=on_gpu)

        def save(folder: Path) -> None:
            _model(best).save_pretrained(folder)
            tokenizer.save_pretrained(folder)

        run.finish_phase(PHASE, save)
        model = _model(run.phase_folder(PHASE))

    model.to("cuda" if on_gpu else "cpu").train(False)
    if options.weights == "float16":
        model.half().float()  # what is measured is what is stored
    measured = HeldOutLoss(collate_held_out, len(held_out), options)(model)
    model.to(torch.float16 if options.weights == "float16" else torch.float32)
    with writing(output):
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
    run.complete(measured, validation_rows=len(held_out))
    return measured


def _new_model(base: str, options: MlmOptions) -> tuple[Any, Any]:
    """The base with its head, or a new one."""
    transformers.set_seed(options.seed)  # fixes a new head
    model, tokenizer, lacking = bases.load_base(base, "AutoModelForMaskedLM")
    if tokenizer.mask_token_id is None:
        raise ModelError(f"the tokenizer of {base!r} has no mask token: name another base")
    known = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:
        raise ModelError(
            f"the tokenizer of {base!r} knows {len(tokenizer)} tokens, the model only {known}: "
            "they do not belong together"
        )
    inner = f"{model.base_model_prefix}."
    missing = [key for key in lacking if key.startswith(inner)]
    if missing:
        raise ModelError(
            f"{base!r} is not a trained encoder: it has no weights for {', '.join(missing[:4])}"
            f"{' ...' if len(missing) > 4 else ''}"
        )
    return model, tokenizer


def _loaded(folder: Path) -> tuple[Any, Any]:
    return _model(folder), transformers.AutoTokenizer.from_pretrained(folder)


def _model(folder: Path) -> Any:
    return transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)


def _description(
    base: str, train: Corpus, validation: Corpus, options: MlmOptions
) -> dict[str, Any]:
    return {
        "kind": "mlm",
        "base": base,
        "train": train.description(),
        "validation": validation.description(),
        "options": options.to_dict(),
    }


__all__ = ["train_mlm"]
