"""What radii against several threats cost beside those against replaced words alone.

    python -m benchmarks.threat_speed

Processor time of one thread, the best of four passes over AG News texts that were read before;
ratios of one run.  The table with a closed vocabulary is trained first, in a quarter of a minute.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.settings import data_folder
from ranmask import SmoothedClassifier, load_default
from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.data import load_corpus
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

TEXTS, TEXTS_A_CALL, PASSES = 20_000, 5_000, 4
OTHERS = ("edits", "insertions", "deletions", "characters", "span")


def seconds(classifier: SmoothedClassifier, texts: Sequence[str], threats: Sequence[str]) -> float:
    """Processor time of a pass, the best of a few."""
    asked = classifier.with_options(threat="substitutions", threats=tuple(threats))
    best = float("inf")
    for _ in range(PASSES):
        start = time.process_time()
        for first in range(0, len(texts), TEXTS_A_CALL):
            asked.certify(texts[first : first + TEXTS_A_CALL])
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Measure, and print ratios."""
    data_folder()
    rows = load_corpus("agnews", "train")
    texts = rows.texts[:TEXTS]
    open_table = load_default("news-words", synonyms=load_synonyms("jia2019"))
    options = WordTableOptions(threat="characters")
    table = train_word_table(rows.texts, rows.labels, rows.label_names, options=options)
    closed = SmoothedClassifier(table, **table_smoothing(options.resolved(rows.texts)))
    for name, classifier, cases in (
        ("news-words", open_table, (OTHERS, (*OTHERS, "synonyms"))),
        ("closed vocabulary", closed, (("characters",), OTHERS)),
    ):
        alone = seconds(classifier, texts, ())
        print(f"{name}: substitutions alone, {len(texts) / alone:,.0f} texts a second", flush=True)
        for threats in cases:
            ratio = seconds(classifier, texts, threats) / alone
            print(f"  with {', '.join(threats)}: {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
