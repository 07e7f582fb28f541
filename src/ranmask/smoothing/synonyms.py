"""`SynonymSmoothedClassifier`: SAFER, a vote over copies whose words are random synonyms.

The path of one text:

    words -> random copies -> their scores -> ballots -> certificate -> result

as in `smoothed`, but for the copies: they hide no word, and replace every word at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError, blaming
from ranmask.models.base import BaseClassifier, Scores
from ranmask.models.synonyms import DrawnCopies, Stream, SynonymSets
from ranmask.options import (
    DEFAULT_ALPHA,
    DEFAULT_SELECTION_MASKS,
    SAFER,
    SYNONYMS,
    Ensemble,
    SynonymOptions,
)
from ranmask.results import Certificate, Prediction
from ranmask.smoothing import certifying
from ranmask.smoothing.scoring import Panel, together
from ranmask.smoothing.votes import Ballots
from ranmask.words import Document, Text, documents

_COPIES_AT_ONCE = 1 << 15  # copies of several texts that are scored together


class SynonymSmoothedClassifier:
    """Wraps a base classifier; its label survives ``radius`` words replaced *from a table*.

    Guarantee, with probability at least ``1 - alpha`` over the random copies that it is estimated
    from: the most likely label of a random copy stays the same when at most ``radius`` words are
    replaced, each by a word that the table of ``synonyms`` lists for it.  **Nothing is said of any
    other word.**  ``Certificate.assumes`` lists what it rests on; `ranmask.certificates.safer`
    proves it.

    Use:

    1. Build it from a function or a `BaseClassifier` and `SynonymSets`, or load it by
       `from_pretrained`.
    2. `certify` texts for labels with radii; `predict` for labels alone.
    3. `save_pretrained` keeps the model together with its synonyms.

    Args:
        base: A function ``list of texts -> scores (texts, classes)``, or a `BaseClassifier`.
        synonyms: Which words may take a word's place.
        masks: How many random copies `predict` draws of a text (100), and how many a certificate
            is estimated from (5,000).
        selection_masks: How many copies select the label that is certified (1,000).
        ensemble: ``vote`` (default); ``score`` or ``logit``, which are never certified.
        alpha: Probability of error of a certificate.
        seed: Fixes the copies of every text.
        labels: Names of the classes; the model's own by default, else their numbers.
        tolerance: How far the difference of two outputs for one copy may move between
            computations.  Default: 0 for functions, measured for models.
        recheck: How many copies are scored a second time, as in `SmoothedClassifier`.

    >>> def classify(texts):
    ...     return [[("good" in text), not ("good" in text)] for text in texts]
    >>> films = SynonymSets({"film": ["movie"], "movie": ["film"]})
    >>> smoothed = SynonymSmoothedClassifier(classify, films, labels=["positive", "negative"])
    >>> [result] = smoothed.certify(["a good film"])
    >>> result.label, result.radius
    ('positive', 3)
    """

    def __init__(
        self,
        base: BaseClassifier | Callable[[list[Any]], Any],
        synonyms: SynonymSets,
        *,
        masks: int | None = None,
        selection_masks: int | None = None,
        ensemble: Ensemble = "vote",
        alpha: float = DEFAULT_ALPHA,
        seed: int = 0,
        labels: Sequence[str] | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
    ) -> None:
        if not isinstance(synonyms, SynonymSets):
            raise OptionError(
                f"synonyms must be SynonymSets, not a {type(synonyms).__name__}: build them with "
                "SynonymSets(table), where table gives each word its synonyms"
            )
        self.options = SynonymOptions(masks, selection_masks, ensemble, alpha, seed)
        self.synonyms = synonyms
        self._panel = Panel.of(base, ensemble, labels=labels, tolerance=tolerance, recheck=recheck)

    @classmethod
    def from_pretrained(
        cls,
        folder: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        certificate: str = SAFER,
        masks: int | None = None,
        selection_masks: int | None = None,
        ensemble: Ensemble | None = None,
        alpha: float | None = None,
        seed: int | None = None,
        labels: Sequence[str] | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
        **refused: Any,
    ) -> SynonymSmoothedClassifier:
        """Load a folder that `save_pretrained` wrote; what is given overrides what was saved.

        Options that belong to masks are refused by name.
        """
        from ranmask.models import pretrained, record

        if certificate != SAFER:
            refused["certificate"] = certificate
        for name, value in refused.items():
            raise OptionError(
                f"{name}={value!r} means nothing for {str(folder)!r}, which is smoothed by "
                f"synonyms and certified by {SAFER!r}: leave it out"
            )
        if not Path(folder).is_dir():
            raise ModelError(f"there is no folder {str(folder)!r}")
        known = pretrained.saved_record(str(folder))
        if known.kind != record.SYNONYMS:
            raise ModelError(
                f"{str(folder)!r} holds no classifier that is smoothed by synonyms: load it with "
                "SmoothedClassifier.from_pretrained, or give a BaseClassifier and SynonymSets"
            )
        saved = dict(known.smoothing)
        hiding = {name: saved.pop(name, None) for name in ("hide", "mask_token")}
        if device is not None or dtype is not None:
            saved.pop("tolerance", None)  # it was given for another computation
        given = {
            "masks": masks,
            "selection_masks": selection_masks,
            "ensemble": ensemble,
            "alpha": alpha,
            "seed": seed,
            "labels": labels,
            "tolerance": tolerance,
            "recheck": recheck,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        synonyms = SynonymSets.load(Path(folder))
        base = pretrained.load(str(folder), **hiding, device=device, dtype=dtype)
        return cls(base, synonyms, **{**saved, **wanted})

    def save_pretrained(self, folder: str) -> None:
        """Save the model, its synonyms and how it votes; `from_pretrained` loads them again."""
        from ranmask.models import pretrained, record

        options = {**self.options.to_dict(), "tolerance": self._panel.given_tolerance}
        pretrained.save(
            self.base, folder, options=options, labels=self.labels, kind=record.SYNONYMS
        )
        self.synonyms.save(Path(folder))

    @property
    def base(self) -> BaseClassifier:
        """The base classifier that every copy is shown to."""
        return self._panel.base

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""
        return self._panel.labels

    @property
    def tolerance(self) -> float:
        """The tolerance in force: what was given, else what the base classifier measured."""
        return self._panel.tolerance

    @property
    def recheck(self) -> int | None:
        """How many copies are scored a second time, as it was given; None: the default."""
        return self._panel.given_recheck

    def description(self) -> dict[str, Any]:
        """What determines the results of this classifier, as plain JSON values."""
        return {
            **self._panel.description(),
            "options": self.options.resolved(),
            "synonyms": self.synonyms.description(),
        }

    def reseeded(self, seed: int) -> SynonymSmoothedClassifier:
        """This classifier with copies from another seed."""
        return SynonymSmoothedClassifier(
            self.base,
            self.synonyms,
            **{**self.options.to_dict(), "seed": seed},
            labels=self.labels,
            tolerance=self._panel.given_tolerance,
            recheck=self.recheck,
        )

    def check_certifiable(self) -> None:
        """Refuse to certify anything but votes."""
        self.options.check_certifiable()

    def predict(self, texts: Sequence[Text]) -> list[Prediction]:
        """The label of each text: a vote of random copies, without a certificate."""
        polls = self._polls(documents(texts), self.options.voting_masks, "vote")
        return [Prediction(**self._common(poll, poll.ballots.winner)) for poll in polls]

    def certify(self, texts: Sequence[Text]) -> list[Certificate]:
        """The label of each text, and how many words can be replaced from the table.

        All texts are checked before the first is classified; one that cannot be used raises
        `TextError` with its index.
        """
        self.check_certifiable()
        read = documents(texts)
        selection = self.options.selection_masks or DEFAULT_SELECTION_MASKS
        labels = [poll.ballots.winner for poll in self._polls(read, selection, "selection")]
        estimated = self._polls(read, self.options.estimation_masks, "estimation")
        return [
            self._certificate(poll, label) for poll, label in zip(estimated, labels, strict=True)
        ]

    # -- from words to ballots -----------------------------------------------------------------

    def voters(self, documents: Sequence[Document]) -> Iterator[DrawnCopies]:
        """The copies that decide the label, for each document; to score many variations of it."""
        for document in documents:
            yield self._drawn(document, self.options.voting_masks, "vote")

    def score(self, drawn: Sequence[DrawnCopies]) -> list[Scores]:
        """The base classifier's scores of every copy; equal copies of a text are scored once."""
        parts = [one.distinct for one in drawn]
        scored = self._panel.score_drawn([copies for copies, _ in parts])
        return [rows[which] for rows, (_, which) in zip(scored, parts, strict=True)]

    def count(self, scores: Scores) -> Ballots:
        """What all `voters` of one document say, from the base classifier's scores of them."""
        return self._panel.count(scores)

    def _drawn(self, document: Document, copies: int, stream: Stream) -> DrawnCopies:
        # What no copy can show has no say in which copies there are either.
        read = self.base.words_read(document)
        shown = Document(document.words[:read], document.premise)
        return self.synonyms.draw(shown, copies, self.options.seed, stream)

    def _polls(self, documents: Iterable[Document], copies: int, stream: Stream) -> Iterator[_Poll]:
        drawn = ((one, self._drawn(one, copies, stream)) for one in documents)
        before = 0
        for group in together(drawn, lambda one: len(one[1]), _COPIES_AT_ONCE):
            with blaming(range(before, before + len(group))):
                scored = self.score([copies for _, copies in group])
            before += len(group)
            for (document, one), scores in zip(group, scored, strict=True):
                yield _Poll(document, len(one.sets), self.count(scores))

    # -- from ballots to results ---------------------------------------------------------------

    def _certificate(self, poll: _Poll, label: int) -> Certificate:
        alpha = self.options.alpha
        radius = certifying.synonym_radius(poll.ballots, label, self._overlaps(poll), alpha=alpha)
        pair = poll.document.premise is not None
        assumes = certifying.synonym_assumptions(
            self.synonyms.name,
            self.tolerance,
            self.options.seed,
            pair=pair,
            rechecked=self._panel.rechecked,
        )
        return Certificate(
            **self._common(poll, label),
            radius=radius.words,
            threat=SYNONYMS,
            uncertain=int(poll.ballots.uncertain.sum()),
            certificate=SAFER,
            guarantee=True,
            alpha=alpha,
            tight=radius.tight,
            critical_words=radius.worst,
            assumes=assumes + self.base.assumes,
        )

    def _overlaps(self, poll: _Poll) -> list[Fraction]:
        """Of every word of the text.  A word that no copy shows may be any other as well."""
        words = poll.document.words
        shown = [self.synonyms.overlap(word) for word in words[: poll.words_read]]
        return shown + [Fraction(1)] * (len(words) - poll.words_read)

    def _common(self, poll: _Poll, label: int) -> dict[str, Any]:
        [fields] = self._panel.answers(poll.ballots.alone, [label])
        return {
            **fields,
            "words": len(poll.document.words),
            "words_read": poll.words_read,
            "kept": poll.words_read,
            "family": SYNONYMS,
        }


@dataclass(frozen=True, eq=False)
class _Poll:
    """One text after its copies were scored: they show its first ``words_read`` words."""

    document: Document
    words_read: int
    ballots: Ballots
