"""`DeletionSmoothedClassifier`: CERT-ED and AdaptDel, a vote over copies that lack words at random.

The path of a batch of texts is that of `smoothed`, but for the copies: a deleted word is gone, as
if it had never been there, and a copy is a shorter text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ranmask.certificates.deletion import Stream, deletion_radius, kept_words
from ranmask.certificates.exact import Radius
from ranmask.certificates.kept import DeletionRates
from ranmask.errors import ModelError, OptionError
from ranmask.models import model_config, pretrained
from ranmask.models.base import DeletedCopies, Scores
from ranmask.models.synonyms import Sample
from ranmask.options import DeletionOptions, ModelOptions, SmoothingOptions
from ranmask.options.fields import check_saved, option_fields
from ranmask.smoothing.voting import DrawnClassifier, load_base
from ranmask.words import Document


class DeletionSmoothedClassifier(DrawnClassifier[DeletionOptions, DeletedCopies]):
    """Wraps a base classifier; its label survives ``radius`` edits, of any order-keeping kind.

    Guarantee, with probability at least ``1 - alpha`` over the random copies that it is estimated
    from: the most likely label of a random copy stays the same when at most ``radius`` words are
    replaced, inserted or deleted, the others keeping their order.  ``Certificate.assumes`` lists
    what it rests on.  Any classifier will do: it is shown what is left of a text and no trace of
    what is not; where nothing is left, the one word ``[MASK]``.

    Args:
        base, labels, tolerance, recheck: As for `SmoothedClassifier`.
        options: The fields of `DeletionOptions`, by name: ``mask_rate`` (the chance that a word is
            deleted; with ``keep``, more in long texts, see `DeletionOptions`), ``masks``,
            ``selection_masks``, ``alpha``, ``seed``, ...

    >>> def classify(texts):
    ...     return [[("good" in text), not ("good" in text)] for text in texts]
    >>> smoothed = DeletionSmoothedClassifier(classify, mask_rate=0.9, labels=["yes", "no"])
    >>> [result] = smoothed.certify([" ".join(["good"] * 60)])
    >>> result.label, result.radius
    ('yes', 6)
    """

    _KIND = model_config.DELETION

    def __init__(
        self,
        base: object,
        *,
        labels: Sequence[str] | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
        **options: Any,
    ) -> None:
        for name in options.keys() - option_fields(DeletionOptions).keys():
            raise OptionError(
                f"{name}={options[name]!r} means nothing with certificate='deletion', which "
                "deletes each word with a chance: leave it out",
                name,
            )
        chosen = DeletionOptions(**options)
        super().__init__(chosen, base, labels=labels, tolerance=tolerance, recheck=recheck)
        self._covered = {"threats": (self.options.resolved()["threat"],)}
        self._rates = DeletionRates(chosen.least_rate, chosen.keep)

    @classmethod
    def from_pretrained(
        cls,
        folder_or_id: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        **options: Any,
    ) -> DeletionSmoothedClassifier:
        """Load what `save_pretrained` wrote; or a word table, a blend or another encoder.

        What is given overrides what was saved.  Of models that were not to be smoothed so, only
        ``mask_rate`` is taken.
        """
        known = pretrained.saved_config(folder_or_id, revision)
        others = (model_config.ENCODER, model_config.WORDS, model_config.BLEND)
        if known.kind not in (model_config.DELETION, *others):
            raise ModelError(
                f"{folder_or_id!r} holds a model of kind {known.kind!r}, which is not smoothed by "
                "deletion: give an encoder, a word table or a blend, as one of its parts"
            )
        saved = dict(known.smoothing)
        if known.kind == model_config.DELETION:
            check_saved(known.path, saved, DeletionOptions, ModelOptions)
            if device is not None or dtype is not None:
                saved.pop("tolerance", None)  # it was given for another computation
        else:
            check_saved(known.path, saved, SmoothingOptions, ModelOptions)
            kept = ("mask_rate", "hide", "mask_token")
            saved = {name: saved[name] for name in kept if name in saved}
        base = load_base(folder_or_id, saved, device=device, dtype=dtype, revision=revision)
        return cls(base, **{**saved, **options})

    def copies(
        self, documents: Sequence[Document], sample: Sample = "vote"
    ) -> Iterator[DeletedCopies]:
        """Random copies of each document: those that select the label, by which `predict` votes.

        Or those of the estimation sample.
        """
        options, estimates = self.options, sample == "estimation"
        size = options.resolved()["masks" if estimates else "selection_masks"]
        stream: Stream = "estimation" if estimates else "selection"
        for document in documents:
            words = len(document.words)
            stays = kept_words(words, self._rates.of(words), size, options.seed, stream)
            yield DeletedCopies(document, self.base.words_read(document), stays)

    def _scores_of(self, copies: Sequence[DeletedCopies]) -> list[Scores]:
        return self.base.score_deleted(copies)

    def _radius(self, counts: Sequence[int], label: int, copies: DeletedCopies) -> Radius:
        sizes, options = (len(copies), len(copies.document.words)), self.options
        return deletion_radius(
            options.certificate, counts, label, *sizes, self._rates, alpha=options.alpha
        )
