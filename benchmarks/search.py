"""Milliseconds for the exact search, on votes that make it hard.

Hard: the target is one above the best cost that exists, so that the answer *no* must be proved
with the least slack there is.  Votes lean on words: each word speaks for a class, and a copy
votes for the class that its words speak for most.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ranmask.certificates.coverage import Coverage
from ranmask.certificates.exact import exact_radius
from ranmask.certificates.families import family
from ranmask.certificates.votes import vote_differences

CASES = [(43, 4, 1000, 5), (43, 4, 5000, 5), (43, 4, 20_000, 5), (43, 4, 20_000, 8)]
LEANINGS = [0.5, 1.0, 2.0, 4.0]


def run(quick: bool) -> dict[str, Any]:
    """Measure every case with votes from mixed to nearly unanimous."""
    rows = []
    for words, kept, masks, changed in CASES:
        for leaning in LEANINGS[-2:] if quick else LEANINGS:
            rows.append(_hardest(words, kept, masks, changed, leaning))
            print(f"  {rows[-1]}", flush=True)
    rows.append(_whole_certificate())
    print(f"  {rows[-1]}", flush=True)
    return {"cases": rows}


def _hardest(words: int, kept: int, masks: int, changed: int, leaning: float) -> dict[str, Any]:
    sets = family(words, kept, masks=masks).sets
    votes = _votes(sets, words, leaning)
    label = int(np.bincount(votes, minlength=4).argmax())
    differences = vote_differences(votes, np.zeros(len(votes), dtype=bool), label, 4)
    weights = differences[int(differences.sum(axis=1).argmin())] + 1
    _, best = Coverage(sets, weights, words).greedy(10**9, changed)
    while True:
        problem = Coverage(sets, weights, words)
        start = time.perf_counter()
        answer = problem.search(changed, best + 1)
        seconds = time.perf_counter() - start
        if answer.positions is None:
            break
        met = np.isin(sets, answer.positions).any(axis=1)
        best = int(weights[met].sum())
    return {
        "words": words,
        "kept": kept,
        "sets": masks,
        "changed": changed,
        "vote_share": round(float((votes == label).mean()), 2),
        "milliseconds": round(1000 * seconds, 1),
        "proved": answer.proved,
    }


def _whole_certificate() -> dict[str, Any]:
    """A case that exhausts the work limit: bounded time, and a radius that is still proved."""
    words, kept, masks = 200, 4, 20_000
    sets = family(words, kept, masks=masks).sets
    votes = _votes(sets, words, 4.0)
    label = int(np.bincount(votes, minlength=4).argmax())
    differences = vote_differences(votes, np.zeros(len(votes), dtype=bool), label, 4)
    start = time.perf_counter()
    radius = exact_radius(sets, differences, words)
    return {
        "words": words,
        "kept": kept,
        "sets": masks,
        "changed": "largest",
        "vote_share": round(float((votes == label).mean()), 2),
        "milliseconds": round(1000 * (time.perf_counter() - start), 1),
        "proved": f"radius {radius.words}, tight {radius.tight}",
    }


def _votes(sets: np.ndarray, words: int, leaning: float) -> np.ndarray:
    random = np.random.default_rng(0)
    speaks = random.normal(0, 1.2, (words, 4))
    speaks[:, 0] += leaning * random.random(words)
    scores: np.ndarray = speaks[sets].sum(axis=1)
    return scores.argmax(axis=1)
