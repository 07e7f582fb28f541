"""`DeletionSmoothedClassifier`: CERT-ED and AdaptDel, a vote over copies that lack words at random.

The path of a batch of texts is that of `smoothed`, but for the copies: a deleted word is gone, as
if it had never been there, and a copy is a shorter text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ranmask.certificates.deletion import Stream, deletion_radius, kept_words
from ranmask.certificates.kept import DeletionRates
from ranmask.errors import ModelError, OptionError
from ranmask.models import model_config
from ranmask.models.base import BaseClassifier, DeletedCopies, Scores
from ranmask.models.synonyms import Sample
from ranmask.options import DeletionOptions, ModelOptions, SmoothingOptions
from ranmask.options.fields import check_saved, option_fields
from ranmask.results import Certificate
from ranmask.smoothing.voting import VotingClassifier, load_base
from ranmask.words import Document, Text, documents

_THREAT = "edit-distance"


class DeletionSmoothedClassifier(VotingClassifier[DeletionOptions, DeletedCopies]):
    """Wraps a base classifier; its label survives ``radius`` edits, of any order-keeping kind.

    Guarantee, with probability at least ``1 - alpha`` over the random copies that it is estimated
    from: the most likely label of a random copy stays the same when at most ``radius`` words are
    replaced, inserted or deleted, the others keeping their order.  ``Certificate.assumes`` lists
    what it rests on.  Any classifier will do: it is shown what is left of a text and no trace of
    what is not; where nothing is left, the one word ``[MASK]``.

    Args:
        base: A function ``list of texts -> scores (texts, classes)``, or a `BaseClassifier`.
        labels: Names of the classes; the model's own by default, else their numbers.
        tolerance: How far the difference of two outputs for one copy may move between
            computations.  Default: 0 for functions, measured for models.
        recheck: How many copies are scored a second time, as in `SmoothedClassifier`.
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
        base: BaseClassifier | Callable[[list[Any]], Any],
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
        self._covered = {"threats": (_THREAT,)}
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
        from ranmask.models import pretrained

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

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """The label of each text, and how many edits leave it.

        All texts are checked before the first is classified; one that cannot be used raises
        `TextError` with its index.
        """
        options = self.options
        found: list[Certificate] = []
        alpha = options.alpha
        for scored, labels in self._estimated(documents(texts)):
            votes = scored.votes
            rows = zip(votes.against(labels).tolist(), labels, scored.texts, strict=True)
            radii = [
                deletion_radius(
                    options.certificate,
                    counts,
                    label,
                    len(copies),
                    len(copies.document.words),
                    self._rates,
                    alpha=alpha,
                )
                for counts, label, copies in rows
            ]
            found += self._certificates(
                scored, options.certificate, labels, radii, threat=_THREAT, alpha=alpha
            )
        return found

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

    def score(self, copies: Sequence[DeletedCopies]) -> list[Scores]:
        """The base classifier's scores of every copy; equal copies of a text are scored once."""
        parts = [deleted.distinct for deleted in copies]
        distinct = [some for some, _ in parts]
        scores = self.base.score_deleted(distinct)
        if self._recheck.copies:
            scores = self._asked_again(distinct, scores)
        return [rows[which] for rows, (_, which) in zip(scores, parts, strict=True)]

    def _overridden(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**self.options.to_dict(), **given}
