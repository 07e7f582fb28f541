"""A first certificate, offline, in seconds: `make demo`.

Certifies headlines with the model that comes with ranmask (a word table, and beside it a compact
encoder that reads the whole text, trained on AG News), and then attacks one of them with the word
that the model scores worst for its label: within the radius the label stays, beyond it the label
changes.
"""

from __future__ import annotations

import itertools
import time

from rich.console import Console

from ranmask import Certificate, SmoothedClassifier, load_default
from ranmask.cli.printing import add_outcome, explain, result_table
from ranmask.data.rows import Row
from ranmask.runs.task import Outcome
from ranmask.words import distance, join, split

HEADLINES = (
    "Striker scores twice as the home side wins the cup final after extra time , and the coach "
    "praises his players and the goalkeeper for a season of hard work",
    "Oil prices soared to a record high on Monday as traders feared supply cuts by OPEC producers "
    "and shares of airlines fell on the stock exchange",
    "NASA scientists say the spacecraft will send images of Saturn and its moons back to Earth "
    "after a seven year journey through the solar system",
    "The prime minister met rebel leaders for peace talks as troops patrolled the capital after "
    "a bomb killed at least twelve people near the embassy",
    "Microsoft bought a football club",
)
TRIES = 300


def most_harmful_word(smoothed: SmoothedClassifier, text: str, label: int) -> str:
    """The word of the other headlines whose best score exceeds that of the label by most."""
    others = sorted({word for line in HEADLINES if line != text for word in split(line)})
    scores = [one.scores or () for one in smoothed.predict(others)]
    against = {w: max(s) - s[label] for w, s in zip(others, scores, strict=True)}
    return max(against, key=against.__getitem__)


def planted(text: str, positions: tuple[int, ...], word: str) -> str:
    words = list(split(text))
    for position in positions:
        words[position] = word
    return join(words)


def attack(console: Console, smoothed: SmoothedClassifier, text: str, result: Certificate) -> None:
    radius = result.radius or 0
    word = most_harmful_word(smoothed, text, result.label_id)
    choices = itertools.combinations(range(result.words), radius)
    step = max(1, -(-sum(1 for _ in choices) // TRIES))
    chosen = itertools.islice(itertools.combinations(range(result.words), radius), 0, None, step)
    edits = [planted(text, positions, word) for positions in chosen]
    labels = {one.label for one in smoothed.predict(edits)}
    console.print(f"\nattacking text 1 ({result.label}, radius {radius}) with the word {word!r}:")
    console.print(f"  {len(edits)} ways to plant it {radius} times: label {', '.join(labels)}")
    order = [*result.critical_words, *range(result.words)]
    for changed in range(radius + 1, result.words + 1):
        beyond = planted(text, tuple(dict.fromkeys(order))[:changed], word)
        [broken] = smoothed.predict([beyond])
        if broken.label != result.label:
            console.print(f"  planted {distance(text, beyond)} times: label {broken.label}")
            console.print(f"  [dim]{beyond}[/]")
            break


def main() -> None:
    console = Console(width=100)
    smoothed = load_default()
    smoothed.certify(HEADLINES[:1])  # the encoder's numbers are measured once, for this machine
    started = time.perf_counter()
    results = smoothed.certify(HEADLINES)
    seconds = (time.perf_counter() - started) / len(HEADLINES)
    table = result_table(certified=True)
    for number, (text, result) in enumerate(zip(HEADLINES, results, strict=True), 1):
        add_outcome(table, Outcome(Row(number, text), result))
    console.print(table)
    console.print(f"{1000 * seconds:.0f} ms a text, on this machine")
    explain(console, results[0])
    attack(console, smoothed, HEADLINES[0], results[0])


if __name__ == "__main__":
    main()
