"""What commands, training and attacks need of a classifier of texts, however it is smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ranmask.models.base import BaseClassifier
from ranmask.results import Certificate, Prediction
from ranmask.words import Document, Text


class CertifiedClassifier(Protocol):
    """Labels texts, and proves what it can about its labels."""

    @property
    def base(self) -> BaseClassifier:
        """The classifier that every copy of a text is shown to."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""

    def predict(self, texts: Sequence[Text | Document]) -> Sequence[Prediction]:
        """The label of each text, without a certificate."""

    def certify(self, texts: Sequence[Text | Document]) -> Sequence[Certificate]:
        """The label of each text, and what is proved about it."""

    def check_certifiable(self) -> None:
        """Raise `OptionError` where nothing can be certified as things are set."""

    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""

    def save_pretrained(self, folder: str) -> None:
        """Save the model and how it is smoothed."""
