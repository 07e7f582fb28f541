"""What the page shows of one text: its certificate, copies that vote, and how far proofs reach."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ranmask.attacks.api import attack
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.recipe import AttackRecipe, Budget
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.replacements import AnyWord
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.search import AnyWords
from ranmask.attacks.victims import counting
from ranmask.certificates.families import Family
from ranmask.certificates.margins import exact_margins, sampled_margins
from ranmask.certificates.readings import SCALE, segment_borders
from ranmask.certificates.votes import Votes
from ranmask.errors import OptionError
from ranmask.models.synonyms import SynonymSets
from ranmask.options import DEFAULT_ALPHA
from ranmask.results import Certificate
from ranmask.serving.attack_vocabulary import most_telling
from ranmask.serving.caching import CachingClassifier
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.smoothing.voting import ScoredTexts
from ranmask.words import Document, Text, document

_COPIES_A_ROUND = 20_000  # that one round of an attack may compute, about
_FEWEST_QUERIES, _MOST_QUERIES = 90, 900  # what makes sense, and what still helps
_ROUNDS = 4
_MOST_PLACES = 24


def explain(
    smoothed: CertifiedClassifier, text: Text | Document, copies: int = 12
) -> dict[str, Any]:
    """The certificate of a text and what it rests on, as plain JSON values.

    ``result``: what `certify` says.  ``words`` and ``labels``: what its positions and numbers
    mean.  ``copies``: the first copies that it was read from, with ``kept``, the positions of the
    words that each shows, and its vote ``label_id``, None where it votes for no class.
    ``word_votes``: of each word that is read, what the copies that show it say on average: their
    class, and its ``lead`` over the next one, up to 1; None where no copy shows the word, or all
    classes have the same.  ``readings``: of a classifier with a reader, its
    vote on the whole text and on segments, from word ``start`` up to ``stop``, with the ``weight``
    of each in copies; ``label_id`` None where nothing was said.  ``curves``: what
    `certificates.margins` says of the certificate, as floating-point numbers for drawing.

    All but the first three are empty for classifiers that are not smoothed by masks, and curves
    where the certificate is against a span or synonyms, or characters of known words;
    ``replacements`` lists, where it is against synonyms, word by word, what may take its place.
    """
    if copies < 1:
        raise OptionError(f"copies must be a whole number of at least 1, not {copies!r}")
    text = document(text)
    words = list(text.words)
    if not isinstance(smoothed, SmoothedClassifier):
        [result] = smoothed.certify([text])
        answer = _answer(smoothed, result, words)
        if isinstance(smoothed, SynonymSmoothedClassifier):
            answer["replacements"] = _replacements(smoothed.synonyms, words)
        return answer
    smoothed.check_certifiable()
    base = CachingClassifier(smoothed.base)
    once = smoothed.with_options(base=base)
    [certificate] = once.certify([text])
    exact = smoothed.options.certificate == "exact"
    scored = next(once.scored([text], "vote" if exact else "estimation"))
    votes, family = scored.votes, scored.texts[0].family
    answer = _answer(smoothed, certificate, words)
    threat, known = certificate.threat, base.known is not None
    if threat not in ("span", "synonyms") and not (threat == "characters" and known):
        answer["curves"] = {certificate.certificate: _curve(once, scored, certificate)}
    shown = zip(family.shown(copies), votes.named(copies), strict=True)
    answer["copies"] = [{"kept": kept, "label_id": vote} for kept, vote in shown]
    answer["word_votes"] = _word_votes(votes, family)
    answer["readings"] = _readings(votes, family.words, len(words))
    if threat == "synonyms" and smoothed.synonyms is not None:
        answer["replacements"] = _replacements(smoothed.synonyms, words)
    return answer


def _word_votes(votes: Votes, family: Family) -> list[dict[str, Any] | None]:
    """Of each word, the class that the copies which show it are for, if any, and by how much."""
    points = np.eye(votes.classes)[votes.best] if votes.points is None else votes.points / SCALE
    places = np.arange(family.words)[:, None]
    seen = np.ones(family.words, dtype=np.int64)
    if family.places is not None:  # a word that stands several times has one copy
        means = points[family.places]
    else:
        seen = np.bincount(family.sets.ravel(), minlength=family.words)
        sums = np.zeros((family.words, votes.classes))
        for shown in family.sets.T:
            np.add.at(sums, shown, points)
        means = sums / np.maximum(seen, 1)[:, None]
    best = means.argmax(axis=1)
    others = means.copy()
    others[places, best[:, None]] = -np.inf
    second = others.max(axis=1) if votes.classes > 1 else np.zeros(family.words)
    leads = np.clip(means[places, best[:, None]][:, 0] - second, 0, 1).round(4)
    speaking = (seen > 0) & (means != means[:, :1]).any(axis=1)
    return [
        {"label_id": label, "lead": lead} if says else None
        for label, lead, says in zip(best.tolist(), leads.tolist(), speaking.tolist(), strict=True)
    ]


def _readings(votes: Votes, read: int, words: int) -> list[dict[str, Any]]:
    """What a reader says of the whole text, and of its segments."""
    said = votes.readings
    if said is None:
        return []
    borders = [
        (0, words) if pieces == 1 else pair
        for pieces in said.levels
        for pair in pairwise(segment_borders(np.array([read]), pieces)[0].tolist())
    ]
    nodes = zip(borders, (said.bounds / SCALE).tolist(), said.points[0], strict=True)
    return [
        {
            "start": start,
            "stop": stop,
            "weight": round(weight, 4),
            "label_id": int(points.argmax()) if points.any() else None,
        }
        for (start, stop), weight, points in nodes
    ]


def _replacements(synonyms: SynonymSets, words: list[str]) -> list[list[str]]:
    return [list(synonyms.replacements(word)[1:]) for word in words]


def _answer(smoothed: CertifiedClassifier, result: Certificate, words: list[str]) -> dict[str, Any]:
    names = smoothed.labels or tuple(map(str, range(len(result.votes))))
    return {
        "result": result.to_dict(),
        "words": words,
        "labels": list(names),
        "copies": [],
        "word_votes": [],
        "readings": [],
        "curves": {},
    }


def _curve(
    smoothed: SmoothedClassifier, scored: ScoredTexts[MaskedText], certificate: Certificate
) -> dict[str, Any]:
    options, votes, family = smoothed.options, scored.votes, scored.texts[0].family
    if certificate.certificate == "exact":
        curve = exact_margins(votes, family, certificate.radius, options.threat)
    else:
        curve = sampled_margins(
            certificate.certificate,
            votes,
            family,
            certificate.label_id,
            certificate.radius,
            alpha=options.alpha or DEFAULT_ALPHA,
            seed=options.seed,
        )
    said = ("guarantee", "alpha", "label_id", "ensemble", "masks")
    return {
        "radius": curve.radius,
        **{name: getattr(certificate, name) for name in said},
        "margins": [float(margin) for margin in curve.margins],
        "known": list(curve.known),
    }


def attack_once(
    smoothed: CertifiedClassifier,
    text: Text,
    label_id: int | None = None,
    budget: Budget = "radius",
    seconds: float = 10.0,
) -> AttackOutcome:
    """Try to change a label by putting any words anywhere, a few times over.

    First at the words that the certificate names as the worst, then wherever it hurts; with the
    words of `most_telling` that hurt most.  The best attempt is returned, with the queries of
    all.  Within the radius of a guarantee none succeeds.

    Args:
        smoothed: The victim; it must be smoothed by masks, for only that covers any words.
        text: What is attacked.
        label_id: The label to change; by default, what the victim says.
        budget: Most words that may change: a number, ``radius`` or ``radius+1``.
        seconds: No new round is begun after so many.
    """
    if not isinstance(smoothed, SmoothedClassifier):
        raise OptionError(
            "this model is not smoothed by masks: its radius does not cover the words that this "
            "attack tries, or it has none; attack it with `ranmask attack --recipe`"
        )
    end = time.monotonic() + seconds
    [certificate] = counting(smoothed).certify([text])
    label = certificate.label_id if label_id is None else label_id
    if not 0 <= label < len(certificate.votes):
        raise OptionError(
            f"label_id must be a number from 0 to {len(certificate.votes) - 1}, not {label_id!r}"
        )
    words = most_telling(smoothed.base, label, document(text).premise)
    outcomes: list[AttackOutcome] = []
    rounds = _rounds(certificate, words, _words_of(budget, certificate))
    for recipe, most_queries in rounds:
        outcomes += attack(
            smoothed, [text], [label], recipe, budget=budget, most_queries=most_queries
        )
        if outcomes[-1].status != "failed" or time.monotonic() >= end:
            break
    best = min(outcomes, key=lambda end: (end.status != "succeeded", end.final_share or 0.0))
    return replace(best, queries=sum(outcome.queries for outcome in outcomes))


def _words_of(budget: Budget, certificate: Certificate) -> int:
    """How many words a budget allows, at most those of the text."""
    radius = certificate.radius or 0
    most = {"radius": radius, "radius+1": radius + 1, None: certificate.words}
    return min(certificate.words, budget if isinstance(budget, int) else most[budget])


def _rounds(
    certificate: Certificate, words: list[str], budget: int
) -> Iterator[tuple[AttackRecipe, int]]:
    """Recipes, each with the queries that it needs, of about as many copies each.

    A changed word is shown by its share of the copies, and only those are computed again.
    """
    copies = max(1, certificate.masks * certificate.kept // certificate.words)
    queries = min(_MOST_QUERIES, max(_FEWEST_QUERIES, _COPIES_A_ROUND // copies))
    tried = min(len(words), queries // 3)
    places = min(certificate.words, _MOST_PLACES, budget + 4)
    best = max(1, min(8, (queries - tried) // max(1, budget * places)))
    needed = tried + budget * best * places + certificate.words + 1
    for number in range(_ROUNDS):
        begin = 0 if number < 2 else (number - 1) * tried
        some = tuple(words[begin : begin + tried])
        if not some:
            return
        resources = AttackResources(vocabulary=Vocabulary("telling words", some))
        recipe = build_recipe("anywords" if number else "critical", resources)
        yield (
            replace(
                recipe,
                candidates=AnyWord(some, count=len(some)),
                search=AnyWords(best=best, places=places),
            ),
            needed,
        )
