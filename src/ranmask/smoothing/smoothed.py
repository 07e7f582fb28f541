"""`SmoothedClassifier`: any classifier, made provable by voting over masked copies.

The path of one text:

    words -> voters (kept sets) -> scores of the copies -> ballots -> certificate -> result

Each arrow is one call in one direction, for many texts at once.  This module knows no model, no
tokens and no files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ranmask.certificates import Radius
from ranmask.certificates.kept import FamilyChoice, Sampling
from ranmask.errors import ClassifierError, ModelError, OptionError, blaming
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores
from ranmask.options import (
    CERTIFICATES,
    DEFAULT_ALPHA,
    CertificateKind,
    Ensemble,
    SmoothingOptions,
    Threat,
    for_certificate,
    overridden,
)
from ranmask.results import Certificate, Prediction, ShownCertificate
from ranmask.smoothing import certifying
from ranmask.smoothing.masks import Electorate, Poll, Polls, Voters, WordLosses
from ranmask.smoothing.scoring import Panel, together
from ranmask.smoothing.votes import Ballots
from ranmask.words import Document, Hiding, Text, documents

COMPARED: tuple[CertificateKind, ...] = ("exact", "ablation", "paper", "paper-as-printed")
"""The certificates that tables set side by side."""

_COPIES_AT_ONCE = 1 << 15  # copies of several texts that are scored together


class SmoothedClassifier:
    """Wraps a base classifier; its label survives any change of ``radius`` words.

    Guarantee (``certificate="exact"``, the default): every text with the same number of words
    that differs in at most ``radius`` of them gets the same label from `predict`, or an error where
    a function raises one or the text is no valid Unicode, but never another label.  With
    ``threat="edits"`` that holds for every text that ``radius`` words replaced, inserted or
    deleted make of it.  It is a statement about this smoothed classifier, not about the base
    classifier.  ``Certificate.assumes`` lists what it rests on.

    Use:

    1. Build it from a function (below), or `from_pretrained` from a Hugging Face model or a
       word table.
    2. `certify` texts for labels with radii; `predict` for labels alone.
    3. `save_pretrained` keeps a model together with how it is smoothed.

    To score many variations of a text, as an attack does: `voters`, `score` and `count` are
    the three steps of `predict`, and `ballots` is all of them at once.

    Args:
        base: A function ``list of texts -> scores (texts, classes)``, or a `BaseClassifier`.
        keep: How many words each copy shows; or ``mask_rate``, the share that it hides.
        family: Which kept sets vote: ``auto`` (the default), ``all``, ``sampled``, ``windows``; or
            ``distinct``, each distinct word once, however often it is repeated (``keep=1``, and
            base classifiers that are blind to order, as for ``threat="edits"``).
        masks: Largest family (exact, 1,000), or size of the estimation sample (others, 5,000); or
            how many sets are drawn for each text (``sampling``, 100).
        selection_masks: Size of the sample that selects the label (not for exact; 1,000).
        ensemble: ``vote`` (default), ``score`` or ``logit``.
        certificate: ``exact`` (default), ``ablation``, ``ablation-runner-up``; and, without any
            guarantee, ``paper``, ``paper-as-printed``, ``paper-estimated-beta``.
        alpha: Probability of error that ablation may have (0.05); exact has none.
        seed: Fixes the sampled family, or the random samples.
        threat: ``substitutions`` (default) or ``edits``, which also inserts and deletes words;
            for ``keep=1`` and base classifiers that are blind to order only (`WordTable`, or
            functions with ``hide="drop"``).
        sampling: ``fixed`` (default), kept sets that depend on the number of words only.  Drawn
            for each text, and **refused by every certificate**: ``fresh``, uniform; ``lm``, by
            ``word_losses``, the likelier to hide a word the larger its loss.
        word_losses: For ``sampling="lm"``: the ``word_losses`` of a `MaskedLM`, or any function
            from documents to arrays of one loss a word.
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

    >>> def classify(texts):
    ...     return [[("good" in text), not ("good" in text)] for text in texts]
    >>> smoothed = SmoothedClassifier(classify, keep=1, labels=["positive", "negative"])
    >>> [result] = smoothed.certify(["good good good good bad"])
    >>> result.label, result.radius, result.critical_words
    ('positive', 1, (0, 1))
    """

    def __init__(
        self,
        base: BaseClassifier | Callable[[list[Any]], Any],
        *,
        keep: int | None = None,
        mask_rate: float | None = None,
        family: FamilyChoice | None = None,
        masks: int | None = None,
        selection_masks: int | None = None,
        ensemble: Ensemble = "vote",
        certificate: CertificateKind = "exact",
        alpha: float | None = None,
        seed: int = 0,
        threat: Threat = "substitutions",
        sampling: Sampling = "fixed",
        word_losses: WordLosses | None = None,
        labels: Sequence[str] | None = None,
        mask_token: str | None = None,
        hide: Hiding | None = None,
        tolerance: float | None = None,
        recheck: int | None = None,
    ) -> None:
        self.options = SmoothingOptions(
            keep=keep,
            mask_rate=mask_rate,
            family=family,
            masks=masks,
            selection_masks=selection_masks,
            ensemble=ensemble,
            certificate=certificate,
            alpha=alpha,
            seed=seed,
            threat=threat,
            sampling=sampling,
        )
        self._panel = Panel.of(
            base,
            ensemble,
            labels=labels,
            tolerance=tolerance,
            recheck=recheck,
            hide=hide,
            mask_token=mask_token,
        )
        self._electorate = Electorate(self.options, self.base, word_losses)
        for wanted, asked, instead in (
            ("threat='edits'", threat == "edits", "threat='substitutions'"),
            ("family='distinct'", family == "distinct", "family='auto'"),
        ):
            if asked and not self.base.order_free:
                raise OptionError(
                    f"{wanted} needs a base classifier that is blind to the order and number of "
                    f"words, which this {type(self.base).__name__} is not: use a word table, or a "
                    f"function with hide='drop'; or {instead}"
                )

    @classmethod
    def from_pretrained(
        cls,
        folder_or_id: str,
        *,
        keep: int | None = None,
        mask_rate: float | None = None,
        hide: Hiding | None = None,
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        **options: Any,
    ) -> SmoothedClassifier:
        """Load a word table or a blend from a folder, or a Hugging Face model from one or the hub.

        How it was trained to be smoothed (``ranmask.json`` beside the model) gives the defaults;
        arguments override them, and what was saved for another certificate (exact, or one that
        estimates), sampling, number of words or computation is then left out.  Weights are read
        from safetensors only and no code that comes with a model is run.  ``options`` are those
        of `SmoothedClassifier`.
        """
        from ranmask.models import pretrained, record

        known = pretrained.saved_record(str(folder_or_id), revision)
        if known.kind == record.SYNONYMS:
            raise ModelError(
                f"{str(folder_or_id)!r} holds a classifier that is smoothed by synonyms, not by "
                "masks: load its folder with SynonymSmoothedClassifier.from_pretrained, or "
                "with ranmask.smoothing.store.load_classifier"
            )
        saved = known.smoothing
        if device is not None or dtype is not None or hide is not None:
            saved.pop("tolerance", None)  # it was given for another computation
        named = {"keep": keep, "mask_rate": mask_rate, "hide": hide}
        given = {name: value for name, value in named.items() if value is not None}
        merged = overridden(saved, {**given, **options})
        base = pretrained.load(
            str(folder_or_id),
            hide=merged.pop("hide", None),
            mask_token=merged.pop("mask_token", None),
            device=device,
            dtype=dtype,
            revision=revision,
        )
        return cls(base, **merged)

    def save_pretrained(self, folder: str) -> None:
        """Save the model and how it is smoothed; `from_pretrained` loads them again."""
        from ranmask.models import pretrained

        if self.options.sampling == "lm":
            raise OptionError(
                "sampling='lm' cannot be saved, for its language model is no part of this one: "
                "save the classifier with sampling='fixed', and give sampling='lm' and "
                "word_losses when loading"
            )
        options = {**self.options.to_dict(), "tolerance": self._panel.given_tolerance}
        pretrained.save(self.base, folder, options=options, labels=self.labels)

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
        described = {**self._panel.description(), "options": self.options.resolved().to_dict()}
        if self.options.sampling == "lm":
            described["language_model"] = self._electorate.language_model()
        return described

    def reseeded(self, seed: int) -> SmoothedClassifier:
        """This classifier with kept sets from another seed, where they are drawn at random."""
        return self._with({**self.options.to_dict(), "seed": seed})

    def choosing(self, certificate: CertificateKind, **options: Any) -> SmoothedClassifier:
        """This classifier with another certificate, as `from_pretrained` loads it with that one.

        What was chosen for the exact certificate (``ensemble``, ``family``, ``masks``) is not what
        one that estimates takes, which counts votes, and the other way round; give ``options`` to
        choose again.  Those that mean nothing to this certificate are left out.
        """
        given = for_certificate(certificate, options)
        return self._with(overridden(self.options.to_dict(), given))

    def _with(self, options: dict[str, Any]) -> SmoothedClassifier:
        return SmoothedClassifier(
            self.base,
            **options,
            word_losses=self._electorate.word_losses,
            labels=self.labels,
            tolerance=self._panel.given_tolerance,
            recheck=self.recheck,
        )

    def check_certifiable(self) -> None:
        """Refuse to certify where the kept sets prove nothing."""
        self.options.check_certifiable()

    def predict(self, texts: Sequence[Text]) -> list[Prediction]:
        """The label of each text: a plain vote, without a certificate."""
        return [
            Prediction(**fields)
            for polls in self._count(self._electorate.voters(documents(texts)))
            for fields in self._answers(polls, polls.box.winners.tolist())
        ]

    def certify(self, texts: Sequence[Text]) -> list[Certificate]:
        """The label of each text, and how many of its words can be changed without changing it.

        All texts are checked before the first is classified; one that cannot be used raises
        `TextError` with its index.  One that the base classifier fails on raises
        `ClassifierError` with its index.  Refused unless ``sampling="fixed"``.
        """
        self.check_certifiable()
        kind = self.options.certificate
        if kind == "exact":
            polled = self._count(self._electorate.voters(documents(texts)))
            return list(chain.from_iterable(map(self._exact, polled)))
        return [
            self._from_sample(poll, kind, label)
            for label, poll in self._estimated(documents(texts))
        ]

    def certify_showing(self, texts: Sequence[Text], copies: int) -> list[ShownCertificate]:
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
        return [
            ShownCertificate.of(
                certificate,
                one.family.shown(copies),
                one.ballots.votes[:copies].tolist(),
            )
            for polls in self._count(self._electorate.voters(documents(texts)))
            for certificate, one in zip(self._exact(polls), polls.each(), strict=True)
        ]

    def compare(
        self,
        texts: Sequence[Text],
        kinds: Sequence[CertificateKind] = CERTIFICATES,
        **options: Any,
    ) -> list[dict[CertificateKind, Certificate]]:
        """Several certificates of each text, **each as choosing it alone gives it**.

        The certificate of a kind is that of ``choosing(kind, **options).certify``.  So ``exact``
        is about the vote that `predict` counts, over its own family and by its own ensemble; the
        others are about a vote of random copies, and their result says of how many (``ensemble``,
        ``masks``).  With ``family="sampled"`` and as many ``masks`` the exact family *is* the
        estimation sample of the others: all then read the same votes, which are counted once.
        """
        self.check_certifiable()
        chosen = {kind: self.choosing(kind, **options) for kind in kinds}
        exact = chosen.get("exact")
        estimating = [kind for kind in chosen if kind != "exact"]
        if not estimating:
            return (
                [{"exact": one} for one in exact.certify(texts)] if exact else [{} for _ in texts]
            )
        sample = chosen[estimating[0]]  # they differ in nothing but how they read it
        return list(sample._beside(exact, documents(texts), tuple(chosen)))

    # -- from words to ballots -----------------------------------------------------------------

    def voters(self, documents: Sequence[Document]) -> list[MaskedCopies]:
        """The copies whose scores decide the label, for each document.

        With ``sampling="fixed"`` the kept sets are the same for all documents of one length (and
        one premise); otherwise, and with ``family="distinct"``, they are those of this document,
        every time that it is asked for.
        """
        return [one.copies for one in self._electorate.voters(documents)]

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """The base classifier's scores of every copy of each text; a few are computed twice.

        Raises `ClassifierError`, with the index of the text where it is known, if the base
        classifier fails, or gives a copy another answer when it is asked again (``recheck``).
        """
        return self._panel.score(copies)

    def count(self, scores: Scores) -> Ballots:
        """What all `voters` of one document say, from the base classifier's scores of them."""
        return self._panel.count(scores)

    def ballots(self, texts: Sequence[Text]) -> Iterator[Poll]:
        """What the copies of each text say, in the order of the texts.

        All texts are checked at once; they are scored as the results are asked for.
        """
        return _one_by_one(self._count(self._electorate.voters(documents(texts))))

    def estimation_ballots(self, texts: Sequence[Text]) -> Iterator[Poll]:
        """As `ballots`, of the random sample that certificates are estimated from (`compare`)."""
        return _one_by_one(self._count(self._electorate.estimation(documents(texts))))

    def _count(self, voters: Iterable[Voters]) -> Iterator[Polls]:
        """Score and count the copies of the texts, several texts together, in their order."""
        before = 0
        for group in together(voters, lambda one: len(one.family), _COPIES_AT_ONCE):
            with blaming(range(before, before + len(group))):
                scored = self.score([one.copies for one in group])
            before += len(group)
            yield Polls(group, self._panel.count_all(scored))

    # -- from ballots to results ---------------------------------------------------------------

    def _exact(self, polls: Polls) -> list[Certificate]:
        threat = self.options.threat
        for text in polls.voters if threat == "edits" else ():
            if text.words_read != len(text.document.words):
                raise ClassifierError(
                    f"the base classifier says that it is blind to the number of words, but reads "
                    f"{text.words_read} of {len(text.document.words)}: an insertion could push "
                    "words out of sight"
                )
        radii = certifying.exact_radii(polls.box, [one.family for one in polls.voters], threat)
        return self._certificates(polls, "exact", polls.box.winners.tolist(), radii)

    def _estimated(self, texts: Sequence[Document]) -> Iterator[tuple[int, Poll]]:
        """The label of each text, selected by one sample, and what another one says."""
        selections = _one_by_one(self._count(self._electorate.selection(texts)))
        estimations = _one_by_one(self._count(self._electorate.estimation(texts)))
        for selected, estimated in zip(selections, estimations, strict=True):
            yield selected.ballots.winner, estimated

    def _beside(
        self,
        exact: SmoothedClassifier | None,
        texts: Sequence[Document],
        kinds: tuple[CertificateKind, ...],
    ) -> Iterator[dict[CertificateKind, Certificate]]:
        """Certificates from this one's samples, and the exact ones of another beside them."""
        voters = list(exact._electorate.voters(texts)) if exact else []
        votes = exact is not None and exact.options.ensemble == "vote"
        shared = [votes and self._electorate.estimates_from(one.family) for one in voters]
        apart = (one for one, same in zip(voters, shared, strict=True) if not same)
        fixed = _one_by_one(exact._count(apart)) if exact else iter(())
        for place, (label, poll) in enumerate(self._estimated(texts)):
            found: dict[CertificateKind, Certificate] = {}
            for kind in kinds:
                if kind != "exact":
                    found[kind] = self._from_sample(poll, kind, label)
                elif exact:
                    [found[kind]] = exact._exact((poll if shared[place] else next(fixed)).alone)
            yield found

    def _from_sample(self, text: Poll, kind: CertificateKind, label: int) -> Certificate:
        alpha = self.options.alpha or DEFAULT_ALPHA
        radius = certifying.sampled_radius(
            kind, text.ballots, text.family, label, alpha=alpha, seed=self.options.seed
        )
        [certificate] = self._certificates(text.alone, kind, [label], [radius], alpha=alpha)
        return certificate

    def _certificates(
        self,
        polls: Polls,
        kind: CertificateKind,
        labels: Sequence[int],
        radii: Sequence[Radius],
        alpha: float | None = None,
    ) -> list[Certificate]:
        pairs = {text.document.premise is not None for text in polls.voters}
        assumes = {pair: self._assumes(kind, pair) for pair in pairs}
        guarantee = not kind.startswith("paper")
        answers = self._answers(polls, labels)
        texts = zip(polls.voters, answers, radii, polls.box.uncertain.tolist(), strict=True)
        return [
            Certificate(
                **fields,
                radius=radius.words,
                threat=self.options.threat,
                uncertain=uncertain,
                certificate=kind,
                guarantee=guarantee,
                alpha=alpha,
                tight=radius.tight,
                critical_words=radius.worst,
                assumes=assumes[text.document.premise is not None],
            )
            for text, fields, radius, uncertain in texts
        ]

    def _assumes(self, kind: CertificateKind, pair: bool) -> tuple[str, ...]:
        assumes = certifying.assumptions(
            kind, self.options, self.tolerance, pair=pair, rechecked=self._panel.rechecked
        )
        return assumes + self.base.assumes if assumes else ()

    def answer(self, text: Poll, label: int) -> dict[str, Any]:
        """The fields that every result of a text has, where its label is ``label``."""
        [fields] = self._answers(text.alone, [label])
        return fields

    def _answers(self, polls: Polls, labels: Sequence[int]) -> Iterator[dict[str, Any]]:
        for text, fields in zip(polls.voters, self._panel.answers(polls.box, labels), strict=True):
            fields["words"] = len(text.document.words)
            fields["words_read"] = text.words_read
            fields["kept"] = text.family.kept
            fields["family"] = text.family.kind
            yield fields


def _one_by_one(polled: Iterable[Polls]) -> Iterator[Poll]:
    return chain.from_iterable(polls.each() for polls in polled)
