"""Training a masked language model on the texts of a corpus: `train_mlm`.

Such a model says which words fit a place in a text.  Attacks ask it for substitutes, and masking
may weigh words by it.  It is an ordinary Hugging Face model and no classifier: labels are not
looked at, and nothing can be certified with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.data import Corpus
from ranmask.errors import DataError, MissingDependencyError, ModelError, OptionError
from ranmask.models.base import whole_copy
from ranmask.models.batching import batches
from ranmask.models.encoding import WordEncoder
from ranmask.models.tokenizing import RowFormat
from ranmask.results.files import writing
from ranmask.training.masking import TokenMasking, Turn
from ranmask.training.options import MlmOptions
from ranmask.training.records import Report, RunFolder, check_one_process, check_rows, description
from ranmask.words import Document, documents

try:
    import torch
    import transformers
    from accelerate.utils import send_to_device  # type: ignore[import-untyped]
    from torch.nn import functional

    from ranmask.models import hub
    from ranmask.training import processes
    from ranmask.training.trainer import Phase, train_phase
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

_KIND = "AutoModelForMaskedLM"
_PHASE = "mlm"
_PARTS = 4  # most forward passes a step: more waste less padding, and take more launches
_NO_LIMIT = 1 << 40
_LARGEST_LOSS = 700.0  # whose exponential is still a number


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

    Arguments are those of `train_encoder`, and so is what becomes of an interruption and of another
    run's folder.  ``output`` ends with model and tokenizer, which ``AutoModelForMaskedLM`` and
    ``AutoTokenizer`` load, a model card (README.md), ``training.json`` and ``training.jsonl``.

    A base that is a masked language model keeps its head; any other gets a new one, with the word
    embeddings as its last layer where the architecture ties them.  Of pairs, both texts are read.
    """
    check_rows(train, validation)
    check_one_process("a masked language model is trained")
    on_gpu = processes.on_gpu(device)
    texts, held_out = documents(train.texts), documents(validation.texts)
    run = RunFolder(output, description("mlm", base, train, validation, options.to_dict()), report)
    run.check()
    if finished := run.finished(_PHASE):
        model, tokenizer, _ = hub.load_pretrained(_KIND, str(run.phase_folder(_PHASE)))
    else:
        model, tokenizer = _new_model(base, options)
    objective = HiddenTokenLoss(
        HidingCollator(model, tokenizer, texts, options),
        HidingCollator(model, tokenizer, held_out, options, held_out=True),
        min(options.validation_rows, len(held_out)),
        options,
    )
    # Whatever can be refused was, so that a corrected run finds the folder free.
    run.begin()

    if not finished:
        how: dict[str, Any] = {"best": "validation_loss", "smaller_is_better": True}
        phase = Phase(_PHASE, options.epochs, options.learning_rate, warmup=options.warmup, **how)
        model = train_phase(
            phase, model, tokenizer, objective, len(texts), run, options, on_gpu=on_gpu
        )

    model.to("cuda" if on_gpu else "cpu").train(False)
    if options.weights == "float16":
        model.half().float()  # what is measured is what is stored
    measured = replace(objective, rows=len(held_out)).measured(model)
    model.to(torch.float16 if options.weights == "float16" else torch.float32)
    with writing(output):
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
    run.complete(measured, validation_rows=len(held_out))
    return measured


def _new_model(base: str, options: MlmOptions) -> tuple[Any, Any]:
    """The base with its head, or a new one."""
    transformers.set_seed(options.seed)  # fixes a new head
    model, tokenizer, lacking = hub.load_pretrained(_KIND, base, called="the base encoder ")
    if tokenizer.mask_token_id is None:
        raise ModelError(f"the tokenizer of {base!r} has no mask token: name another base")
    inner = f"{model.base_model_prefix}."
    missing = [key for key in lacking if key.startswith(inner)]
    if missing:
        raise ModelError(
            f"{base!r} is not a trained encoder: it has no weights for {hub.listed(missing)}"
        )
    return model, tokenizer


class HidingCollator:
    """Builds the batch of a step: the tokens of some texts, of which some are hidden.

    A batch holds ``parts``, of rows of similar length.  Each has ``inputs`` (of the model's
    forward), ``places`` (whether a token is predicted; rows by width) and ``targets`` (those
    tokens, row by row; not ``labels``: the trainer must not count them).
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        documents: Sequence[Document],
        options: MlmOptions,
        held_out: bool = False,
    ) -> None:
        takes = RowFormat.of(model, tokenizer)
        takes = replace(takes, longest=min(options.longest, takes.longest))
        self._encoder = WordEncoder(tokenizer, takes, "mask")
        self._documents = documents
        ordinary = np.zeros(model.get_input_embeddings().num_embeddings, dtype=bool)
        ordinary[list(tokenizer.get_vocab().values())] = True
        ordinary[tokenizer.all_special_ids] = False
        self._masking = TokenMasking(
            ordinary, self._encoder.mask_id, options.mask_rate, options.seed, held_out
        )

    def __call__(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The batch of these texts' turns."""
        texts = [self._documents[turn.row] for turn in turns]
        whole = [whole_copy(text, self._encoder.words_read(text)) for text in texts]
        rows = self._encoder.rows_of_each(whole)
        hidden = [
            self._masking.hide(row.ids[0], turn) for row, turn in zip(rows, turns, strict=True)
        ]
        rows = [replace(row, ids=one.shown[None]) for row, one in zip(rows, hidden, strict=True)]
        least_rows, pad_id = -(-len(rows) // _PARTS), self._encoder.pad_id
        parts = []
        for batch in batches(rows, tokens=_NO_LIMIT, least_rows=least_rows, pad_id=pad_id):
            of_rows = [hidden[place] for place in batch.places]
            places = np.zeros(batch.ids.shape, dtype=bool)
            for row_places, of_row in zip(places, of_rows, strict=True):
                row_places[of_row.places] = True
            targets = torch.from_numpy(np.concatenate([of_row.targets for of_row in of_rows]))
            inputs = batch.inputs(self._encoder.types)
            parts.append({"inputs": inputs, "places": torch.from_numpy(places), "targets": targets})
        return {"parts": parts}


def hidden_loss(model: Any, batch: Mapping[str, Any]) -> tuple[torch.Tensor, int]:
    """What the hidden tokens of a batch cost together, in nats; and how many they are."""
    losses = []
    for part in batch["parts"]:
        with _scored_only(model, part["places"]):
            logits = model(**part["inputs"]).logits
        if logits.dim() == 3:  # a model that scores every place
            logits = logits[part["places"]]
        losses.append(functional.cross_entropy(logits.float(), part["targets"], reduction="sum"))
    return torch.stack(losses).sum(), sum(len(part["targets"]) for part in batch["parts"])


def _scored_only(model: Any, places: torch.Tensor) -> AbstractContextManager[Any]:
    """Let the model's last layer score these places alone.

    It is as wide as the vocabulary: scoring every place would be half the work of a small model.
    """
    last = getattr(model, "get_output_embeddings", lambda: None)()
    if not isinstance(last, torch.nn.Module):
        return nullcontext()
    return last.register_forward_pre_hook(lambda _, given: (given[0][places],))


@dataclass(frozen=True)
class HiddenTokenLoss:
    """The mean loss of hidden tokens; the best checkpoint has the lowest on held-out texts.

    Of those, ``rows`` are measured; the same tokens are hidden every time.
    """

    collate: HidingCollator
    collate_held_out: HidingCollator
    rows: int
    options: MlmOptions

    def loss(self, model: Any, batch: Any, _: Callable[[torch.Tensor], None]) -> torch.Tensor:
        """The loss of a batch."""
        loss, count = hidden_loss(model, batch)
        return loss / max(count, 1)  # a batch of nothing but unknown words has none to predict

    def measured(self, model: Any) -> dict[str, Any]:
        """Mean loss of a hidden token, and the perplexity that is its exponential."""
        total, tokens = 0.0, 0
        turns = [Turn(row, 0, 0.0) for row in range(self.rows)]
        for start in range(0, len(turns), self.options.batch_size):
            batch = self.collate_held_out(turns[start : start + self.options.batch_size])
            with torch.inference_mode():
                loss, count = hidden_loss(model, send_to_device(batch, model.device))
            total += loss.item()
            tokens += count
        if not tokens:
            raise DataError("the tokenizer knows no word of validation: nothing can be predicted")
        mean = total / tokens
        if not mean < _LARGEST_LOSS:  # nor is it where a weight is no number any more
            raise OptionError(
                f"the validation loss has become {mean:g}: learning_rate="
                f"{self.options.learning_rate:g} is too large"
            )
        measured = {"texts": self.rows, "tokens": tokens, "validation_loss": mean}
        return {**measured, "perplexity": math.exp(mean)}
