"""`SmoothedClassifier`: any classifier, made provable by voting over masked copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ranmask.certificates.exact import exact_radii
from ranmask.certificates.families import FRESH_DRAWS, Family, distinct_family
from ranmask.certificates.pyramid import pyramid_radii
from ranmask.certificates.sampled import radius_of, sampled_margin
from ranmask.certificates.votes import Votes, count_votes
from ranmask.errors import OptionError
from ranmask.models import model_config, pretrained
from ranmask.models.base import MaskedCopies, Scores
from ranmask.models.synonyms import Sample, SynonymSets
from ranmask.options import (
    CERTIFICATES,
    DEFAULT_ALPHA,
    DEFAULT_ESTIMATION_MASKS,
    DEFAULT_MASKS,
    SYNONYMS,
    CertificateKind,
    ModelOptions,
    SmoothingOptions,
    Threat,
    for_certificate,
    overridden,
)
from ranmask.options.fields import check_saved
from ranmask.results import Certificate, MarginCertificate, ShownCertificate
from ranmask.smoothing.class_scores import check_margins, class_index, has_margins, with_margins
from ranmask.smoothing.masks import (
    MaskedText,
    WordLosses,
    check_word_losses,
    drawn_copies,
    fixed_family,
    function_description,
)
from ranmask.smoothing.threatened import (
    ThreatProver,
    as_synonyms,
    check_threats,
    covered,
    with_saved_synonyms,
)
from ranmask.smoothing.voting import ScoredTexts, VotingClassifier, check_masked, load_base
from ranmask.words import Document, Hiding, Text, documents

COMPARED: tuple[CertificateKind, ...] = ("exact", "ablation", "paper", "paper-as-printed")
"""The certificates that tables set side by side."""


class SmoothedClassifier(VotingClassifier[SmoothingOptions, MaskedText]):
    """Wraps a base classifier; its label survives any change of ``radius`` words.

    Guarantee (``certificate="exact"``, the default): every text with the same number of words
    that differs in at most ``radius`` of them gets the same label from `predict`, or an error where
    a function raises one or the text is no valid Unicode, but never another label.  With another
    ``threat`` that holds for every text that ``radius`` of its steps make of it, as ``edits``,
    ``insertions`` or ``characters``; and with ``threats`` for each of them, up to its own of
    ``Certificate.radii``.  It is a statement about this smoothed classifier, not about the base
    classifier.  ``Certificate.assumes`` lists what it rests on.

    Build it from a function (below), or `from_pretrained` from a model or a word table; `certify`
    texts for labels with radii, `predict` for labels alone; `save_pretrained` keeps it
    with the way it is smoothed; `with_options` gives it with another certificate, seed, ...

    To score many variations of a text, as an attack does: `copies`, `score` and `count` are
    the three steps of `predict`, and `scored` is all of them at once.

    Args:
        base: A function ``list of texts -> scores (texts, classes)``, a scikit-learn or Hugging
            Face pipeline, or a `BaseClassifier`; docs/models.md lists what may be returned.
        word_losses: For ``sampling="lm"``: from documents to one loss a word, as `MaskedLM` has.
        synonyms: For ``threat="synonyms"``: `SynonymSets`, or words and lists of replacements.
        labels: Names of the classes; the model's own by default, else their numbers.
        mask_token: What a function sees in place of a hidden word (``[MASK]``).
        hide: ``mask`` shows the mask token for a hidden word, ``drop`` leaves it out.
        tolerance: How far the difference of two outputs for one copy may move between
            computations, each output by half of it.  Default: 0 for functions, measured for
            models.
        recheck: Of the copies that are scored together (up to 32,768), how many are scored a
            second time, in another batch, and must get the same answer (within the tolerance).
            Default: 4 for functions and other classifiers that are not ranmask's own, fewer for
            texts with few copies; 0 for ranmask's own.  0 for functions whose every call is dear:
            ``Certificate.assumes`` then says that nothing was checked.
        options: The fields of `SmoothingOptions`, by name: ``keep`` or ``mask_rate``, ``family``,
            ``masks``, ``ensemble``, ``certificate``, ``seed``, ``threat``, ``threats``, ...

    >>> def classify(texts):
    ...     return [[("good" in text), not ("good" in text)] for text in texts]
    >>> smoothed = SmoothedClassifier(classify, keep=1, labels=["positive", "negative"])
    >>> [result] = smoothed.certify(["good good good good bad"])
    >>> result.label, result.radius, result.critical_words
    ('positive', 1, (0, 1))
    """

    _READS: ClassVar[bool] = False  # whether a model reads whole texts beside the copies

    def __init__(
        self,
        base: object,
        *,
        word_losses: WordLosses | None = None,
        synonyms: SynonymSets | Mapping[str, Sequence[str]] | None = None,
        labels: Sequence[str] | None = None,
        mask_token: str | None = None,
        hide: Hiding | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
        **options: Any,
    ) -> None:
        chosen = SmoothingOptions(**options)
        hiding: dict[str, Any] = {"hide": hide, "mask_token": mask_token}
        checks: dict[str, Any] = {"tolerance": tolerance, "recheck": recheck}
        super().__init__(chosen, base, labels=labels, **checks, **hiding)
        if chosen.reader_weights is not None and not self._READS:
            raise OptionError(
                f"reader_weights={chosen.reader_weights!r} are those of a reader, and this model "
                "has none: give one, --reader on the command line, in Python ProtectedClassifier"
            )
        check_word_losses(chosen.sampling, word_losses)
        self._word_losses = word_losses
        self._drawn = chosen.sampling != "fixed"  # for good: such copies are never certified
        self.synonyms = as_synonyms(synonyms)
        check_threats(chosen, self.base, self.synonyms)
        self._covered = covered(chosen, self.synonyms)
        self._prover = ThreatProver(chosen, self.base, self.synonyms, self._votes_of)
        self._asked: dict[tuple[str, ...], Self] = {}  # this classifier with other threats

    @classmethod
    def from_pretrained(
        cls,
        folder_or_id: str,
        *,
        hide: Hiding | None = None,
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        **options: Any,
    ) -> SmoothedClassifier:
        """Load a word table, a blend or a Hugging Face model from a folder or the hub.

        How it was trained to be smoothed (``ranmask.json`` beside the model) gives the defaults;
        arguments override them, and what was saved for another certificate (exact, or one that
        estimates), sampling, number of words or computation is then left out.  Weights are read
        from safetensors only and no code that comes with a model is run.  ``options`` are those
        of `SmoothedClassifier`.
        """
        folder_or_id, revision = pretrained.local_folder(str(folder_or_id), revision)
        known = pretrained.saved_config(folder_or_id, revision)
        check_masked(known.kind, folder_or_id)
        saved = known.smoothing
        if known.kind not in (model_config.CASCADE, model_config.DETECTOR):  # `load_base` refuses
            check_saved(known.path, saved, SmoothingOptions, ModelOptions)
        if device is not None or dtype is not None or hide is not None:
            saved.pop("tolerance", None)  # it was given for another computation
        named = {"keep", "mask_rate", "hide"}  # where None says nothing
        given = {**options, "hide": hide}.items()
        merged = overridden(
            saved, {key: value for key, value in given if value is not None or key not in named}
        )
        base = load_base(folder_or_id, merged, device=device, dtype=dtype, revision=revision)
        return cls(base, **with_saved_synonyms(folder_or_id, merged))

    def save_pretrained(self, folder: str) -> None:
        """Save the model and how it is smoothed; `from_pretrained` loads them again."""
        if self.options.sampling == "lm":
            raise OptionError(
                "sampling='lm' cannot be saved, for its language model is no part of this one: "
                "save the classifier with sampling='fixed', and give sampling='lm' and "
                "word_losses when loading"
            )
        super().save_pretrained(folder)
        if self.synonyms is not None:
            self.synonyms.save(Path(folder))

    def description(self) -> dict[str, Any]:
        """What determines the results of this classifier, as plain JSON values."""
        described = super().description()
        if self.synonyms is not None and SYNONYMS in self.options.all_threats:
            described["synonyms"] = self.synonyms.description()
        if self.options.sampling == "fresh":
            described["draws"] = FRESH_DRAWS
        if self.options.sampling == "lm":
            described["language_model"] = function_description(self._word_losses)
        return described

    def certify(
        self, texts: Sequence[Text | Document], threats: Sequence[Threat] | None = None
    ) -> list[Certificate]:
        """The label of each text, and how many of its words can be changed without changing it.

        ``threats``: others whose radii are wanted too, as ``["insertions", "characters"]``; all
        stand in ``Certificate.radii``, from one pass.  All texts are checked before the first is
        classified: one that cannot be used raises `TextError`, one that the base classifier fails
        on `ClassifierError`, each with its index.  Refused unless ``sampling="fixed"``.
        """
        if threats is not None:
            return self._with_threats(threats).certify(texts)
        if self.options.sampling != "fixed":
            self.check_certifiable()
        kind = self.options.certificate
        if kind == "exact":
            batches = self._scored(self.copies(documents(texts)))
            return list(chain.from_iterable(map(self._exact, batches)))
        estimated = self._estimated(documents(texts))
        return list(chain.from_iterable(self._sampled(*part, kind) for part in estimated))

    def certify_showing(
        self, texts: Sequence[Text | Document], copies: int
    ) -> list[ShownCertificate]:
        """As `certify`, with what the first ``copies`` copies of each text show and vote for.

        For the exact certificate only: its copies are the vote.
        """
        if self.options.certificate != "exact":
            raise OptionError(
                f"the copies of certificate={self.options.certificate!r} are a sample that did not "
                "choose the label: show those of certificate='exact'"
            )
        if copies < 1:
            raise OptionError(f"copies must be a whole number of at least 1, not {copies!r}")
        self.check_certifiable()
        found = []
        for scored in self.scored(texts):
            for place, certificate in enumerate(self._exact(scored)):
                text, votes = scored.texts[place], scored.votes.part(place, place + 1)
                shown = text.family.shown(copies), votes.named(copies)
                found.append(ShownCertificate.of(certificate, *shown))
        return found

    @property
    def gives_margins(self) -> bool:
        """Whether `certify_margins` proves anything as things are set."""
        return has_margins(self.options)

    def certify_margins(
        self, texts: Sequence[Text | Document], positive: int | str
    ) -> list[MarginCertificate]:
        """As `certify`, with what is proved about the score of one class, by its name or number.

        For the exact certificate against substitutions, of up to ten words.
        """
        self.check_certifiable()
        check_margins(self.options)
        number = class_index(positive, self.labels)
        proved = ((scored, list(self._exact(scored))) for scored in self.scored(texts))
        return [found for part in proved for found in with_margins(*part, number)]

    def compare(
        self,
        texts: Sequence[Text | Document],
        kinds: Sequence[CertificateKind] = CERTIFICATES,
        **options: Any,
    ) -> list[dict[CertificateKind, Certificate]]:
        """Several certificates of each text, **each as choosing it alone gives it**.

        The certificate of a kind is that of ``with_options(certificate=kind, **options).certify``,
        with those of ``options`` that mean something to it.  With ``family="sampled"`` and as many
        ``masks`` the exact family *is* the estimation sample of the others: all then read the same
        votes, which are counted once.
        """
        self.check_certifiable()
        chosen = {kind: self.with_options(**for_certificate(kind, options)) for kind in kinds}
        exact, estimating = chosen.get("exact"), [kind for kind in chosen if kind != "exact"]
        if not estimating:
            proved = exact.certify(texts) if exact else []
            return [{"exact": result} for result in proved] if exact else [{} for _ in texts]
        read = documents(texts)
        sample = chosen[estimating[0]]  # they differ in nothing but how they read it
        masked = list(exact.copies(read)) if exact else []
        shared = iter([exact is not None and exact._votes_as(sample, text) for text in masked])
        apart = (text for text in masked if exact and not exact._votes_as(sample, text))
        proofs = map(exact._exact, exact._scored(apart)) if exact else iter(())
        proved_apart = chain.from_iterable(proofs)
        results: list[dict[CertificateKind, Certificate]] = []
        for scored, labels in sample._estimated(read):
            found = {kind: list(sample._sampled(scored, labels, kind)) for kind in estimating}
            for place, text in enumerate(scored.texts):
                row: dict[CertificateKind, Certificate] = {
                    kind: found[kind][place] for kind in estimating
                }
                if exact and next(shared):
                    alone = ScoredTexts([text], scored.votes.part(place, place + 1))
                    [row["exact"]] = exact._exact(alone)
                elif exact:
                    row["exact"] = next(proved_apart)
                results.append({kind: row[kind] for kind in chosen})
        return results

    def copies(
        self, documents: Sequence[Document], sample: Sample = "vote"
    ) -> Iterator[MaskedText]:
        """The copies whose scores decide the label, for each document; or those of a sample.

        The same every time; with a fixed family, of the same positions for all texts of a length.
        """
        options = self.options
        if self._drawn:
            yield from drawn_copies(options, self.base, documents, self._word_losses)
            return
        known: dict[int, Family] = {}
        once = sample == "vote" and options.family == "distinct"
        for document in documents:
            read = self.base.words_read(document)
            if once:
                masks, words = options.masks or DEFAULT_MASKS, document.words[:read]
                family = distinct_family(words, masks, blank=self.base.blank)
            elif read in known:
                family = known[read]
            else:
                family = known[read] = fixed_family(options, sample, read)
            yield MaskedText(document, read, family.sets, family)

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """The base classifier's scores of every copy of each text; a few are computed twice.

        Raises `ClassifierError`, with the text's index where it is known, if it fails or disagrees.
        """
        scores = self.base.score(copies)
        return self._asked_again(copies, scores) if self._recheck.copies else scores

    def score_each(self, batches: Iterable[Sequence[MaskedCopies]]) -> Iterator[list[Scores]]:
        """`score` of one batch after another; some models begin a batch ahead."""
        if self._recheck.copies:
            return map(self.score, batches)
        return self.base.score_each(batches)

    # -- from votes to results -----------------------------------------------------------------

    def _exact(self, scored: ScoredTexts[MaskedText]) -> Iterator[Certificate]:
        threat, labels = self.options.threat, scored.votes.winners.tolist()
        families, texts = [text.family for text in scored.texts], scored.texts
        own = threat not in ("substitutions", "edits") or self.options.family == "distinct"
        others: dict[str, list[int | None]] | None = None
        if threat == "edits":
            self._prover.check((threat,), texts)
        if own or self.options.threats is not None:
            proofs = self._prover.proofs(scored)
            own = own or proofs.sorted
            if self.options.threats is not None:
                names = self.options.all_threats[1:]
                others = {name: self._prover.numbers(name, proofs, texts) for name in names}
        if own:
            radii = self._prover.radii(threat, proofs, texts)
        elif scored.votes.readings is not None:
            radii = pyramid_radii(scored.votes, families, edits=threat == "edits")
        else:
            radii = exact_radii(scored.votes, families, threat)
        return self._certificates(scored, "exact", labels, radii, threat=threat, others=others)

    def _votes_of(self, copies: Sequence[MaskedCopies]) -> Votes:
        """What is said of copies alone, whoever else reads the texts."""
        scores = np.concatenate(self.score(copies))
        return count_votes(scores, self.options.ensemble, self.base.outputs, self.tolerance)

    def _with_threats(self, threats: Sequence[Threat]) -> Self:
        """This classifier, asked about other threats too; it remembers what it scored for them."""
        listed = isinstance(threats, Sequence) and not isinstance(threats, str)
        if not listed or not all(isinstance(name, str) for name in threats):
            raise OptionError(f"threats must be a list of names, not {threats!r}")
        if tuple(threats) not in self._asked:
            self._asked[tuple(threats)] = self.with_options(threats=tuple(threats))
        return self._asked[tuple(threats)]

    def _sampled(
        self, scored: ScoredTexts[MaskedText], labels: Sequence[int], kind: CertificateKind
    ) -> Iterator[Certificate]:
        alpha, seed = self.options.alpha or DEFAULT_ALPHA, self.options.seed
        radii = []
        for place, (text, label) in enumerate(zip(scored.texts, labels, strict=True)):
            votes = scored.votes.part(place, place + 1)
            margin = sampled_margin(kind, votes, text.family, label, alpha=alpha, seed=seed)
            radii.append(radius_of(kind, text.family.words, margin))
        threat = self.options.threat
        return self._certificates(scored, kind, labels, radii, threat=threat, alpha=alpha)

    def _votes_as(self, sample: SmoothedClassifier, text: MaskedText) -> bool:
        """Whether the exact vote on a text is the very sample that ``sample`` estimates from."""
        masks = sample.options.masks or DEFAULT_ESTIMATION_MASKS
        votes = self.options.ensemble == "vote" and text.family.kind == "sampled"
        return votes and len(text) == masks

    def _overridden(self, given: dict[str, Any]) -> dict[str, Any]:
        return overridden(self.options.to_dict(), given)

    def _settings(self) -> dict[str, Any]:
        kept = {"word_losses": self._word_losses, "synonyms": self.synonyms}
        return {**super()._settings(), **kept}
