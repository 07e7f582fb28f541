"""One step of training, as a defence sees it.

A defence may ask for the loss of the step's batch as often as it likes: as it is, with something
added to the embeddings of its words, or with other tokens.  What is added reaches the model by a
hook on its embedding layer, so that any encoder takes it, and takes everything else (positions,
token types, masks) exactly as in plain training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ranmask.models.huggingface import HuggingFaceClassifier

Part: TypeAlias = Mapping[str, Tensor]
"""What the model's forward takes for some rows of the batch."""


@dataclass(eq=False)
class Step:
    """A batch of a training step, and the model that learns from it.

    Args:
        model: What is called, with everything that the Trainer wraps around it.
        base: The classifier whose model it is.
        parts: The rows of the batch, in parts of similar length.
        bodies: For each part, where its rows hold the text itself: (rows, width).  Not the premise
            of a pair, which no attack and no certificate here changes.
        plain_loss: From the logits of all rows to what is minimised.
        backward: Adds the gradients of a loss to those of this step, as is done with the loss that
            the defence returns: several together are one step.
        seed: Fixes whatever the defence draws at random.
    """

    model: Callable[..., Any]
    base: HuggingFaceClassifier
    parts: Sequence[Part]
    bodies: Sequence[Tensor]
    plain_loss: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor], None]
    seed: int

    @property
    def embeddings(self) -> torch.nn.Embedding:
        """The layer that turns tokens into vectors."""
        layer: torch.nn.Embedding = self.base.model.get_input_embeddings()
        return layer

    @cached_property
    def words(self) -> list[Tensor]:
        """Where the tokens of words are in each part: (rows, width).

        Neither special tokens nor padding.  A token for what the vocabulary does not know stands
        for a word; one for a hidden word does not.
        """
        special = torch.tensor(self.base.encoder.wordless_ids)
        return [
            body & ~torch.isin(part["input_ids"], special.to(body.device))
            for part, body in zip(self.parts, self.bodies, strict=True)
        ]

    def loss(
        self, shifts: Sequence[Tensor] | None = None, parts: Sequence[Part] | None = None
    ) -> Tensor:
        """The loss of this batch: plain training's, where nothing is given.

        Args:
            shifts: For each part, what is added to its embeddings: (rows, width, dimensions).
            parts: Other rows in the place of the step's own, as many and in the same order.
        """
        rows = []
        for place, part in enumerate(self.parts if parts is None else parts):
            with nullcontext() if shifts is None else self._shifted(shifts[place]):
                logits = self.model(**part).logits
            # Losses are computed in single precision, whatever the model computes in.
            half = logits.dtype in (torch.float16, torch.bfloat16)
            rows.append(logits.float() if half else logits)
        return self.plain_loss(torch.cat(rows))

    def _shifted(self, shift: Tensor) -> AbstractContextManager[Any]:
        """Let the embedding layer return its vectors with ``shift`` added."""
        return self.embeddings.register_forward_hook(
            lambda _layer, _ids, vectors: vectors + shift.to(vectors.dtype)
        )

    def generator(self) -> torch.Generator:
        """Random numbers of this step: the same, whenever and wherever it is taken."""
        device = self.parts[0]["input_ids"].device
        return torch.Generator(device=device).manual_seed(self.seed)
