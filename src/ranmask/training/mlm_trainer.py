"""Masked language modelling: batches of hidden tokens, their loss, and `running` with both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.errors import DataError, MissingDependencyError, OptionError
from ranmask.models.base import MaskedCopies
from ranmask.models.batching import Batch, batches
from ranmask.models.encoding import WordEncoder
from ranmask.models.row_format import RowFormat
from ranmask.training.masking import Turn, Turns
from ranmask.training.mlm_masking import HiddenTokens, TokenMasking
from ranmask.training.mlm_options import MlmOptions
from ranmask.training.records import RunFolder
from ranmask.words import Document

try:
    import torch
    from torch.nn import functional

    from ranmask.training import running
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

PHASE = "mlm"
_PARTS = 4  # most forward passes a step: more waste less padding, and take more launches
_NO_LIMIT = 1 << 40
_LARGEST_LOSS = 700.0  # whose exponential is still a number


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
        *,
        held_out: bool = False,
    ) -> None:
        takes = RowFormat.of(model, tokenizer)
        longest = min(options.longest, takes.longest)
        self._encoder = WordEncoder(
            tokenizer, longest, "mask", pad_id=takes.pad_id, types=takes.types
        )
        self._documents = documents
        ordinary = np.zeros(model.get_input_embeddings().num_embeddings, dtype=bool)
        ordinary[list(tokenizer.get_vocab().values())] = True
        ordinary[tokenizer.all_special_ids] = False
        self._masking = TokenMasking(
            ordinary, self._encoder.mask_id, options.mask_rate, options.seed, held_out
        )

    def __call__(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The batch of these texts' turns."""
        rows, hidden = [], []
        for turn in turns:
            document = self._documents[turn.row]
            words = self._encoder.words_read(document)
            every = np.arange(words, dtype=np.int32)[None]
            row = self._encoder.rows(MaskedCopies(document, words, every))
            hidden.append(self._masking.hide(row.ids[0], turn))
            rows.append(replace(row, ids=hidden[-1].shown[None]))
        parts = batches(
            rows,
            tokens=_NO_LIMIT,
            least_rows=-(-len(rows) // _PARTS),
            pad_id=self._encoder.pad_id,
        )
        return {
            "parts": [
                self._part(batch, [hidden[place] for place in batch.places]) for batch in parts
            ]
        }

    def _part(self, batch: Batch, hidden: Sequence[HiddenTokens]) -> dict[str, Any]:
        places = np.zeros(batch.ids.shape, dtype=bool)
        for row_places, one in zip(places, hidden, strict=True):
            row_places[one.places] = True
        return {
            "inputs": batch.inputs(self._encoder.types),
            "places": torch.from_numpy(places),
            "targets": torch.from_numpy(np.concatenate([one.targets for one in hidden])),
        }


def hidden_loss(model: Any, batch: Mapping[str, Any]) -> tuple[torch.Tensor, int]:
    """What the hidden tokens of a batch cost together, in nats; and how many they are."""
    losses = [_part_loss(model, **part) for part in batch["parts"]]
    return torch.stack(losses).sum(), sum(len(part["targets"]) for part in batch["parts"])


def _part_loss(
    model: Any, inputs: Mapping[str, Any], places: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    with _scored_only(model, places):
        logits = model(**inputs).logits
    if logits.dim() == 3:  # a model that scores every place
        logits = logits[places]
    return functional.cross_entropy(logits.float(), targets, reduction="sum")


@contextmanager
def _scored_only(model: Any, places: torch.Tensor) -> Iterator[None]:
    """Let the model's last layer score these places alone.

    It is as wide as the vocabulary: scoring every place would be half the work of a small model.
    """
    last = getattr(model, "get_output_embeddings", lambda: None)()
    if not isinstance(last, torch.nn.Module):
        yield
        return
    handle = last.register_forward_pre_hook(lambda _, given: (given[0][places],))
    try:
        yield
    finally:
        handle.remove()


class HeldOutLoss:
    """Measures a model on held-out texts, in which the same tokens are hidden every time."""

    def __init__(self, collate: HidingCollator, rows: int, options: MlmOptions) -> None:
        self._collate = collate
        self._rows = rows
        self._options = options

    def __call__(self, model: Any) -> dict[str, Any]:
        """Mean loss of a hidden token, and the perplexity that is its exponential."""
        total, tokens = 0.0, 0
        turns = [Turn(row, 0, 0.0) for row in range(self._rows)]
        for start in range(0, len(turns), self._options.batch_size):
            batch = self._collate(turns[start : start + self._options.batch_size])
            with torch.inference_mode():
                loss, count = hidden_loss(model, _moved(batch, model.device))
            total += loss.item()
            tokens += count
        if not tokens:
            raise DataError("the tokenizer knows no word of validation: nothing can be predicted")
        mean = total / tokens
        if not mean < _LARGEST_LOSS:  # nor is it where a weight is no number any more
            raise OptionError(
                f"the validation loss has become {mean:g}: learning_rate="
                f"{self._options.learning_rate:g} is too large"
            )
        return {
            "texts": self._rows,
            "tokens": tokens,
            "validation_loss": mean,
            "perplexity": math.exp(mean),
        }


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, dict):
        return {name: _moved(value, device) for name, value in batch.items()}
    if isinstance(batch, list):
        return [_moved(part, device) for part in batch]
    return batch.to(device)


def best_checkpoint(
    model: Any,
    collate: HidingCollator,
    rows: int,
    measure: HeldOutLoss,
    run: RunFolder,
    options: MlmOptions,
    *,
    on_gpu: bool,
) -> Path:
    """Train on ``rows`` texts, or go on; returns the checkpoint with the lowest held-out loss."""
    phase = running.Phase(
        name=PHASE,
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        warmup=options.warmup,
        best="validation_loss",
        smaller_is_better=True,
    )
    batch = running.rows_a_step(options, on_gpu)
    turns = Turns(rows, options.epochs, batch, options.seed)

    def trainer() -> running.PhaseTrainer:
        return _MlmTrainer(
            measure,
            model=model,
            args=running.arguments(phase, turns, run, options, on_gpu),
            train_dataset=turns,
            eval_dataset=[0],  # not looked at: `measure` has its own rows
            data_collator=collate,
            callbacks=[running.Watcher(phase, turns.steps_per_epoch, run)],
        )

    return running.best_of(phase, run, trainer)


class _MlmTrainer(running.PhaseTrainer):
    """The loss of hidden tokens, and the same on held-out texts as the measure."""

    def __init__(self, measure: HeldOutLoss, **given: Any) -> None:
        super().__init__(**given)
        self._measure = measure

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        loss, count = hidden_loss(model, inputs)
        return loss / max(count, 1)  # a batch of nothing but unknown words has none to predict

    def measured(self, model: Any) -> dict[str, Any]:
        """The loss on the held-out texts."""
        return self._measure(model)


__all__ = ["PHASE", "HeldOutLoss", "HidingCollator", "best_checkpoint", "hidden_loss"]
