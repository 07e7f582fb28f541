"""`SynonymSmoothedClassifier`: SAFER, a vote over copies whose words are random synonyms.

The path of a batch of texts is that of `smoothed`, but for the copies: they hide no word, and
replace every word at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ranmask.certificates.exact import Radius
from ranmask.certificates.safer import synonym_radius
from ranmask.errors import ModelError, OptionError
from ranmask.models import model_config, pretrained
from ranmask.models.base import DrawnCopies, Scores
from ranmask.models.synonyms import Sample, SynonymSets
from ranmask.options import (
    SAFER,
    SYNONYMS,
    ModelOptions,
    SynonymOptions,
)
from ranmask.options.fields import check_saved
from ranmask.smoothing.voting import DrawnClassifier, load_base
from ranmask.words import Document


class SynonymSmoothedClassifier(DrawnClassifier[SynonymOptions, DrawnCopies]):
    """Wraps a base classifier; its label survives ``radius`` words replaced *from a table*.

    Guarantee, with probability at least ``1 - alpha`` over the random copies that it is estimated
    from: the most likely label of a random copy stays the same when at most ``radius`` words are
    replaced, each by a word that the table of ``synonyms`` lists for it.  **Nothing is said of any
    other word.**  ``Certificate.assumes`` lists what it rests on.

    Use:

    1. Build it from a function or a `BaseClassifier` and `SynonymSets`, or load it by
       `from_pretrained`.
    2. `certify` texts for labels with radii; `predict` for labels alone.
    3. `save_pretrained` keeps the model together with its synonyms.

    Args:
        base, labels, tolerance, recheck: As for `SmoothedClassifier`.
        synonyms: Which words may take a word's place.
        options: The fields of `SynonymOptions`, by name: ``masks``, ``ensemble``, ``seed``, ...

    >>> def classify(texts):
    ...     return [[("good" in text), not ("good" in text)] for text in texts]
    >>> films = SynonymSets({"film": ["movie"], "movie": ["film"]})
    >>> smoothed = SynonymSmoothedClassifier(classify, films, labels=["positive", "negative"])
    >>> [result] = smoothed.certify(["a good film"])
    >>> result.label, result.radius
    ('positive', 3)
    """

    _KIND = model_config.SYNONYMS

    def __init__(
        self,
        base: object,
        synonyms: SynonymSets,
        *,
        labels: Sequence[str] | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(synonyms, SynonymSets):
            raise OptionError(
                f"synonyms must be SynonymSets, not a {type(synonyms).__name__}: build them with "
                "SynonymSets(table), where table gives each word its synonyms"
            )
        chosen = SynonymOptions(**options)
        super().__init__(chosen, base, labels=labels, tolerance=tolerance, recheck=recheck)
        self.synonyms = synonyms
        self._covered = {"threats": (SYNONYMS,), "table": synonyms.name}

    @classmethod
    def from_pretrained(
        cls,
        folder: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        certificate: str = SAFER,
        **options: Any,
    ) -> SynonymSmoothedClassifier:
        """Load a folder that `save_pretrained` wrote; what is given overrides what was saved.

        Options that belong to masks are refused by name.
        """
        known_options = {"labels", "tolerance", "recheck"} | {
            field.name for field in fields(SynonymOptions)
        }
        refused = {name: value for name, value in options.items() if name not in known_options}
        if certificate != SAFER:
            refused["certificate"] = certificate
        for name, value in refused.items():
            raise OptionError(
                f"{name}={value!r} means nothing for {str(folder)!r}, which is smoothed by "
                f"synonyms and certified by {SAFER!r}: leave it out"
            )
        if not Path(folder).is_dir():
            raise ModelError(f"there is no folder {str(folder)!r}")
        known = pretrained.saved_config(str(folder))
        if known.kind != model_config.SYNONYMS:
            raise ModelError(
                f"{str(folder)!r} holds no classifier that is smoothed by synonyms: load it with "
                "SmoothedClassifier.from_pretrained, or give a BaseClassifier and SynonymSets"
            )
        saved = dict(known.smoothing)
        check_saved(known.path, saved, SynonymOptions, ModelOptions)
        if device is not None or dtype is not None:
            saved.pop("tolerance", None)  # it was given for another computation
        saved |= {name: value for name, value in options.items() if value is not None}
        synonyms = SynonymSets.load(Path(folder))
        base = load_base(str(folder), saved, device=device, dtype=dtype)
        return cls(base, synonyms, **saved)

    def save_pretrained(self, folder: str) -> None:
        """Save the model, its synonyms and how it votes; `from_pretrained` loads them again."""
        super().save_pretrained(folder)
        self.synonyms.save(Path(folder))

    def description(self) -> dict[str, Any]:
        """What determines the results of this classifier, as plain JSON values."""
        return {**super().description(), "synonyms": self.synonyms.description()}

    def copies(
        self, documents: Sequence[Document], sample: Sample = "vote"
    ) -> Iterator[DrawnCopies]:
        """The copies that decide the label, for each document; or those of a sample."""
        name = "masks" if sample == "vote" else f"{sample}_masks"
        size = self.options.resolved()[name]
        for document in documents:
            # What no copy can show has no say in which copies there are either.
            read = self.base.words_read(document)
            shown = Document(document.words[:read], document.premise)
            drawn = self.synonyms.draw(shown, size, self.options.seed, sample)
            yield replace(drawn, document=document)

    def _scores_of(self, copies: Sequence[DrawnCopies]) -> list[Scores]:
        return self.base.score_drawn(copies)

    def _radius(self, counts: Sequence[int], label: int, copies: DrawnCopies) -> Radius:
        alpha = self.options.alpha
        return synonym_radius(counts, label, len(copies), self._overlaps(copies), alpha=alpha)

    def _overlaps(self, copies: DrawnCopies) -> list[Fraction]:
        """Of every word of the text.  A word that no copy shows may be any other as well."""
        words, read = copies.document.words, len(copies.sets)
        return [*map(self.synonyms.overlap, words[:read]), *[Fraction(1)] * (len(words) - read)]

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "synonyms": self.synonyms}
