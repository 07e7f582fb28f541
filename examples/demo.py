"""A first certificate, offline, in seconds: `make demo`.

Until a trained model ships with ranmask, this trains a small word-score classifier (naive Bayes)
on a few hundred sentences that it writes itself from templates.  It then certifies sentences it
has not seen, and shoots at one of them: any words within the radius, then beyond it.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
from rich.console import Console

from ranmask import FunctionClassifier, SmoothedClassifier
from ranmask.data import Row
from ranmask.rendering import add_outcome, explain, result_table
from ranmask.runs import Outcome
from ranmask.words import distance

LABELS = ("sports", "business", "science")
TEMPLATES = (
    "the {a} and the {b} after a {c} week",
    "{b} says the {a} could {d} by {c} morning",
    "why every {a} now talks about {b} and {c}",
    "{c} {a} set to {d} as {b} grows",
)
WORDS = {
    "sports": (
        ["team", "coach", "striker", "goalkeeper", "champion", "squad"],
        ["league", "stadium", "tournament", "season", "penalty", "playoff"],
        ["winning", "injured", "olympic", "unbeaten", "home", "final"],
        ["score", "win", "train", "defend"],
    ),
    "business": (
        ["bank", "company", "investor", "retailer", "airline", "trader"],
        ["profit", "market", "merger", "inflation", "debt", "shares"],
        ["quarterly", "record", "bankrupt", "corporate", "fiscal", "private"],
        ["invest", "sell", "borrow", "hire"],
    ),
    "science": (
        ["telescope", "physicist", "laboratory", "satellite", "astronaut", "researcher"],
        ["gene", "planet", "molecule", "virus", "climate", "particle"],
        ["lunar", "quantum", "genetic", "solar", "marine", "neural"],
        ["orbit", "measure", "evolve", "discover"],
    ),
}
NEW_SENTENCES = (
    "coach of the unbeaten squad says the striker could win the league final",
    "investor fears grow as the bankrupt airline could sell shares to a private bank",
    "the lunar satellite and the solar telescope could measure every planet in orbit",
    "the company and the team talk about the stadium",
)


def written_sentences(seed: int = 0) -> list[tuple[str, int]]:
    """450 sentences, 150 a class."""
    draw = random.Random(seed)  # noqa: S311  # not for secrets
    sentences = []
    for label, name in enumerate(LABELS):
        a, b, c, d = WORDS[name]
        for template in itertools.islice(itertools.cycle(TEMPLATES), 150):
            words = {"a": draw.choice(a), "b": draw.choice(b), "c": draw.choice(c)}
            sentences.append((template.format(**words, d=draw.choice(d)), label))
    return sentences


class NaiveBayes:
    """Scores of a text: how much more often each class uses its words.  Unknown words: nothing."""

    def __init__(self, sentences: list[tuple[str, int]]) -> None:
        vocabulary = sorted({word for text, _ in sentences for word in text.split()})
        self.index = {word: i for i, word in enumerate(vocabulary)}
        counts = np.full((len(vocabulary), len(LABELS)), 0.5)
        for text, label in sentences:
            for word in text.split():
                counts[self.index[word], label] += 1
        self.log_odds = np.log(counts / counts.sum(axis=0))
        self.log_odds -= self.log_odds.mean(axis=1, keepdims=True)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Scores of shape (texts, classes)."""
        rows = [
            sum(
                (self.log_odds[self.index[w]] for w in text.split() if w in self.index), np.zeros(3)
            )
            for text in texts
        ]
        return np.array(rows)


def attacked(words: list[str], positions: tuple[int, ...], label: int, model: NaiveBayes) -> str:
    """The words at ``positions`` replaced by those that speak loudest against the label."""
    against = int(np.argmin(model.log_odds[:, label]))
    loudest = next(word for word, i in model.index.items() if i == against)
    changed = list(words)
    for position in positions:
        changed[position] = loudest
    return " ".join(changed)


def main() -> None:
    console = Console(width=100)
    model = NaiveBayes(written_sentences())
    console.print(f"trained on {len(written_sentences())} sentences that this file writes itself\n")

    # Each copy shows one word; the copies' probabilities are averaged.
    base = FunctionClassifier(model, outputs="logits")
    smoothed = SmoothedClassifier(base, keep=1, ensemble="score", labels=LABELS)
    results = smoothed.certify(NEW_SENTENCES)
    table = result_table(certified=True)
    for number, (text, result) in enumerate(zip(NEW_SENTENCES, results, strict=True), 1):
        add_outcome(table, Outcome(Row(number, text), result), certified=True)
    console.print(table)
    explain(console, results[0])

    text, result = NEW_SENTENCES[0], results[0]
    words, radius = text.split(), result.radius or 0
    console.print(f"\nshooting at sentence 1 ({result.label}, radius {radius}):")
    edits = [
        attacked(words, positions, result.label_id, model)
        for positions in itertools.combinations(range(len(words)), radius)
    ]
    labels = {one.label for one in smoothed.predict(edits)}
    console.print(f"  {len(edits)} ways to plant {radius} hostile words: label {labels}")
    beyond = attacked(words, result.critical_words, result.label_id, model)
    [broken] = smoothed.predict([beyond])
    console.print(f"  {distance(text, beyond)} critical words replaced: label {broken.label!r}")
    console.print(f"  [dim]{beyond}[/]")


if __name__ == "__main__":
    main()
