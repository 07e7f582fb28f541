"""What a defence may change of training; those in `ranmask.training.defences` override it.

A defence may ask for the loss of a step's batch as often as it likes: as it is, with something
added to the embeddings of its words, or with other tokens.  What is added reaches the model by a
hook on its embedding layer, so that any encoder takes it, and all else as in plain training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, TypeAlias

from ranmask.errors import MissingDependencyError
from ranmask.models.base import BaseClassifier
from ranmask.smoothing.deletion import DeletionSmoothedClassifier
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.options import DELETION_VALIDATION, TrainingOptions
from ranmask.words import Document

try:
    import torch
    from torch import Tensor

    from ranmask.models.huggingface import HuggingFaceClassifier
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

Part: TypeAlias = Mapping[str, Tensor]
"""What the model's forward takes for some rows of the batch."""


@dataclass(eq=False)
class Step:
    """A batch of a training step, and the model that learns from it.

    ``model`` is what is called, with all that the Trainer wraps around it.  ``bodies``: where the
    rows of a part hold the text itself, not the premise of a pair, which no attack and no
    certificate here changes: (rows, width).  ``plain_loss``: from the logits of all rows to what is
    minimised.  ``backward`` adds the gradients of a loss to those of this step.
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

        ``shifts``: for each part, what is added to its embeddings, (rows, width, dimensions);
        ``parts``: other rows in the place of the step's own, as many and in the same order.
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


class Defence:
    """Plain training: every method is what happens without a defence."""

    name = "none"

    def description(self) -> dict[str, Any]:
        """What determines it, for the record of a run: plain JSON values."""
        own: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        options = {field.name: _plain(getattr(self, field.name)) for field in own if field.init}
        return {"name": self.name, **options}

    def begin(self, base: HuggingFaceClassifier) -> None:
        """Told what learns, before its first step: the tokens of its vocabulary, for one."""

    def reads(self, document: Document, seed: int) -> Document:
        """The text that is read in the place of ``document`` in one of its turns.

        A pure function: what is drawn at random follows from the turn's own ``seed``.
        """
        return document

    def loss(self, step: Step) -> Tensor:
        """The loss whose gradients, with those of `Step.backward`, make the step."""
        return step.loss()

    def validator(
        self, base: BaseClassifier, options: TrainingOptions, *, final: bool = False
    ) -> CertifiedClassifier:
        """What is measured on held-out rows: at every evaluation, and at the end (``final``)."""
        if options.deletes_words:
            few = {**options.smoothing(), **DELETION_VALIDATION}
            return DeletionSmoothedClassifier(base, tolerance=0.0, **few)
        if final:
            return self.classifier(base, options)
        # Near ties are not worth measuring a tolerance for at every evaluation.
        return SmoothedClassifier(base, tolerance=0.0, **options.smoothing())

    def classifier(self, base: BaseClassifier, options: TrainingOptions) -> CertifiedClassifier:
        """What is saved."""
        if options.deletes_words:
            return DeletionSmoothedClassifier(base, **options.smoothing())
        return SmoothedClassifier(base, **options.smoothing())


def _plain(value: Any) -> Any:
    if not hasattr(value, "description"):
        return value
    # A table is the same wherever it lies.
    return {key: what for key, what in value.description().items() if key != "source"}
