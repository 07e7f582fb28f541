"""What a defence may change of training.

`Defence` itself changes nothing: it is plain training.  The defences in `ranmask.training.defences`
override what they change.
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.options import TrainingOptions
from ranmask.words import Document

if TYPE_CHECKING:
    from torch import Tensor

    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.training.step import Step


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
        self, base: HuggingFaceClassifier, options: TrainingOptions, *, final: bool = False
    ) -> CertifiedClassifier:
        """What is measured on held-out rows: at every evaluation, and at the end (``final``)."""
        if final:
            return self.classifier(base, options)
        # Near ties are not worth measuring a tolerance for at every evaluation.
        return SmoothedClassifier(base, tolerance=0.0, **options.smoothing())

    def classifier(
        self, base: HuggingFaceClassifier, options: TrainingOptions
    ) -> CertifiedClassifier:
        """What is saved."""
        return SmoothedClassifier(base, **options.smoothing())


def _plain(value: Any) -> Any:
    if not hasattr(value, "description"):
        return value
    # A table is the same wherever it lies.
    return {key: what for key, what in value.description().items() if key != "source"}
