"""`ProtectedClassifier`: a model that you have, and copies beside it that prove what they can.

    g(text) = argmax over classes of  what the copies say  +  B * what the model says of the text

The model is one more copy, of weight ``B``, that shows every word.  At ``B = 0`` it is the smoothed
classifier; the larger ``B``, the more often the label is the model's, and the less is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.certificates.readings import levels_of, read_scores, segment_borders
from ranmask.certificates.votes import Scores, Votes
from ranmask.errors import ClassifierError, ModelError, OptionError, blaming
from ranmask.models import model_config, pretrained
from ranmask.models.readers import as_reader, in_order
from ranmask.options import ModelOptions, SmoothingOptions, overridden
from ranmask.options.fields import check_saved
from ranmask.smoothing import reader_store
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.threatened import with_saved_synonyms
from ranmask.smoothing.voting import ScoredTexts
from ranmask.words import Document


class ProtectedClassifier(SmoothedClassifier):
    """A `SmoothedClassifier` with a *reader* beside its copies: any model, which reads whole texts.

    Guarantee: that of `SmoothedClassifier`, for this classifier's label; and for a radius of one
    word or more, whatever the reader says, which may be remote, random or hostile.  A text that it
    does not answer for is decided by the copies alone (``reader="failed"`` in the result).

    Args:
        base: What is shown the copies: best a word table that was trained for this
            (``ranmask protect``).
        reader: A `Reader`; a Hugging Face or scikit-learn pipeline; a base classifier; or a
            function from a list of texts to scores from 0 to 1 (docs/models.md).
        reader_weights: What it weighs, in copies: of the whole text; then of each half, quarter,
            eighth, ..., which need a reader that is ``repeatable``, and copies of one word each.
        settings: As for `SmoothedClassifier`.

    >>> def words(texts):
    ...     return [["good" in text, "good" not in text] for text in texts]
    >>> def model(texts):
    ...     return [[0.1, 0.9] for text in texts]
    >>> protected = ProtectedClassifier(words, reader=model, reader_weights=(2,), keep=1)
    >>> [result] = protected.certify(["good good good good good"])
    >>> result.label, result.radius
    ('0', 1)
    """

    _READS = True

    def __init__(
        self,
        base: object,
        *,
        reader: object,
        reader_weights: Sequence[float] | None = None,
        **settings: Any,
    ) -> None:
        kind = settings.get("certificate", "exact")
        if kind != "exact":
            raise OptionError(
                f"certificate={kind!r} is estimated from copies alone: with a reader beside them, "
                "as news has, use certificate='exact', or a model without one, as news-words"
            )
        if not isinstance(reader_weights, Sequence) or isinstance(reader_weights, str):
            raise OptionError(
                "a reader needs reader_weights, a list of numbers: one of them, 2, lets it weigh "
                f"as much as two copies; not {reader_weights!r}"
            )
        super().__init__(base, reader_weights=tuple(reader_weights), **settings)
        self.reader = as_reader(reader, self.labels)
        if self.labels is None:
            self.labels = self.reader.labels
        self._columns = in_order(self.reader, self.labels)
        weights = self.options.reader_weights
        assert weights is not None
        self._levels = levels_of(weights)
        segments = self._levels[-1] > 1
        self._covered = {**self._covered, "reader": True, "segments": segments}
        if segments and not self.reader.repeatable:
            raise OptionError(
                f"reader_weights={weights!r} weighs segments, which a reader must read alike each "
                "time: use a model, or FunctionReader(..., repeatable=True); or give one weight, "
                "that of the whole text"
            )

    @classmethod
    def beside(
        cls,
        smoothed: SmoothedClassifier,
        reader: object,
        reader_weights: Sequence[float] | None,
    ) -> ProtectedClassifier:
        """A smoothed classifier with a reader beside its copies."""
        options = {**smoothed.options.to_dict(), "reader_weights": reader_weights}
        return cls(smoothed.base, reader=reader, **{**smoothed._settings(), **options})

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        folder: str,
        *,
        reader: object = None,
        device: str | None = None,
        dtype: str | None = None,
        **options: Any,
    ) -> ProtectedClassifier:
        """Load what `save_pretrained` wrote; ``reader`` takes the place of the saved one.

        Options are those of `SmoothedClassifier.from_pretrained`.
        """
        folder, revision = pretrained.local_folder(str(folder), options.pop("revision", None))
        place = Path(folder)
        known = model_config.of_folder(place)
        if known is None or known.kind != model_config.PROTECTED:
            raise ModelError(f"{folder!r} holds no classifier with a reader beside its copies")
        check_saved(known.path, known.smoothing, SmoothingOptions, ModelOptions)
        refused = {"hide": None, "mask_token": None, "revision": revision}
        for name, value in refused.items():
            if options.pop(name, value) is not None:
                raise OptionError(f"{name} means nothing for {folder!r}: leave it out")
        computed = {"device": device, "dtype": dtype}
        parts = ("copies",) if reader is not None else model_config.PROTECTED_PARTS
        pretrained.check_computed(place, parts, computed)
        base = pretrained.load_part(place, "copies", computed)
        if reader is None:
            reader = reader_store.load(place / "reader", computed)
        merged = with_saved_synonyms(folder, overridden(known.smoothing, options))
        return cls(base, reader=reader, **merged)

    def save_pretrained(self, folder: str) -> None:
        """Save copies and reader; a reader in memory must be given again when they are loaded."""
        place = Path(folder)
        options = {**self.options.to_dict(), "tolerance": self.given_tolerance}
        alone = {**options, "reader_weights": None}
        pretrained.save(self.base, str(place / "copies"), options=alone, labels=self.labels)
        reader_store.save(self.reader, place / "reader", self.reader.labels or self.labels)
        kind, parts = model_config.PROTECTED, model_config.PROTECTED_PARTS
        model_config.write(place, kind, options, parts)
        if self.synonyms is not None:
            self.synonyms.save(place)

    @property
    def calls(self) -> int:
        """How many texts and segments the reader is asked about, for each text."""
        return sum(self._levels)

    def description(self) -> dict[str, Any]:
        """What determines the results of this classifier, as plain JSON values."""
        return {**super().description(), "reader": self.reader.description()}

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "reader": self.reader}

    def count(self, scores: Sequence[Scores], texts: Sequence[Document] = ()) -> Votes:
        """What copies and reader say of texts; the texts are read here."""
        votes = super().count(scores, texts)
        weights = self.options.reader_weights or ()
        tolerance, repeatable = self.reader.tolerance, self.reader.repeatable
        said = self._said_of(texts, votes.classes)
        return votes.beside(read_scores(said, weights, tolerance=tolerance, repeatable=repeatable))

    def answers(
        self, scored: ScoredTexts[MaskedText], labels: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """The fields that every result of a text has, where these are the labels."""
        readings = scored.votes.readings
        assert readings is not None
        for fields, heard in zip(super().answers(scored, labels), readings.heard, strict=True):
            yield {**fields, "reader": "answered" if heard else "failed"}

    # -- the reader ----------------------------------------------------------------------------

    def _said_of(self, texts: Sequence[Document], classes: int) -> Scores:
        """What is said of every node of each text, shape (texts, nodes, classes)."""
        parts, places, nodes = [], [], []
        for place, text in enumerate(texts):
            for node, part in enumerate(self._nodes(text)):
                if part is not None:
                    parts.append(part)
                    places.append(place)
                    nodes.append(node)
        with blaming(places):
            rows = self.reader.read(parts, classes)
        if self._columns is not None:
            rows = rows[:, self._columns]
        whole = self._levels[0] == 1
        silent = np.isnan(rows).any(axis=1)
        for place, node in zip(np.array(places)[silent], np.array(nodes)[silent], strict=True):
            if node or not whole:
                raise ClassifierError(
                    "the reader did not answer for a segment of the text, which must be read "
                    "alike each time",
                    int(place),
                )
        said = np.zeros((len(texts), self.calls, classes))  # an empty segment says nothing
        said[places, nodes] = rows
        return said

    def _nodes(self, text: Document) -> Iterator[Document | None]:
        """The text as a whole, its halves, ..., as they are weighed; None for an empty segment."""
        for pieces in self._levels:
            if pieces == 1:
                yield text
                continue
            yield from segments_of(text, self.base.words_read(text), pieces)


def segments_of(text: Document, words: int, pieces: int) -> Iterator[Document | None]:
    """The first ``words`` words of a text in so many segments; None for one that is empty."""
    for start, stop in pairwise(segment_borders(np.array([words]), pieces)[0].tolist()):
        yield Document(text.words[start:stop], text.premise) if start < stop else None
