"""From turns to tensors: the masked copies of a batch of texts, in few parts of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ranmask.models.base import MaskedCopies
from ranmask.models.batching import batches
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.training.defence import Defence
from ranmask.training.masking import MaskingPlan, Turn
from ranmask.words import Document

_PARTS = 6  # most forward passes a step: more waste less padding, and take more launches
_GPU_ROWS = 64  # fewer rows keep a GPU waiting for the next launch
_NO_LIMIT = 1 << 40


@dataclass(frozen=True, eq=False)
class Collator:
    """Builds the batch of a training step.

    A batch holds ``parts`` (inputs of the model's forward) with their ``bodies`` (where a row holds
    the text itself, and not its premise), and for the rows of all parts in their order ``text``
    and ``copy``; for each text its ``classes`` (not ``labels``: the trainer must not count them),
    ``present``, ``met`` and ``words_per_copy``, as `losses` takes them; and a ``seed``.
    """

    base: HuggingFaceClassifier
    documents: Sequence[Document]
    labels: Sequence[int]
    plan: MaskingPlan
    target_words: int
    defence: Defence
    on_gpu: bool = False

    def __call__(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The batch of these texts' turns."""
        draws, rows = [], []
        for turn in turns:
            document = self.defence.reads(self.documents[turn.row], self.plan.text_seed(turn))
            words = self.base.words_read(document)
            draw = self.plan.draw(words, turn)
            draws.append(draw)
            rows.append(self.base.encoder.rows(MaskedCopies(document, words, draw.sets)))
        sizes = np.array([len(draw.sets) for draw in draws])
        least_rows = max(_GPU_ROWS if self.on_gpu else 1, -(-int(sizes.sum()) // _PARTS))
        pad_id = self.base.encoder.pad_id
        plan = list(batches(rows, tokens=_NO_LIMIT, least_rows=least_rows, pad_id=pad_id))
        order = np.concatenate([batch.places for batch in plan])
        text = np.repeat(np.arange(len(turns)), sizes)
        copy = np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        starts = torch.tensor([of_text.first_body_place for of_text in rows])[text]
        met = [[draw.met(changed) for changed in range(self.target_words + 1)] for draw in draws]
        return {
            "parts": [self.base.inputs(batch) for batch in plan],
            "bodies": [
                torch.arange(batch.ids.shape[1]) >= starts[batch.places][:, None] for batch in plan
            ],
            "text": torch.from_numpy(text[order]),
            "copy": torch.from_numpy(copy[order]),
            "classes": torch.tensor([self.labels[turn.row] for turn in turns]),
            "present": torch.from_numpy(np.arange(sizes.max()) < sizes[:, None]),
            "met": torch.tensor(met),
            "words_per_copy": torch.tensor([draw.words_per_copy for draw in draws]),
            "seed": torch.tensor(self.plan.step_seed(turns[0])),
        }
