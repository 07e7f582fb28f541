"""The detectors that come with ranmask: made from the data folder, and measured once on test.

Three quarters of the training rows train, one quarter sets the threshold: at most 1 % false
positives on the harmless texts of *each* set, so that long and short texts both keep it.

    python -m benchmarks.guards            # both kinds of each guard, on that quarter
    python -m benchmarks.guards --make     # weights, results/detectors/guards.json, and the cards
    python -m benchmarks.guards --cards    # the cards again, from that file

The same data give the same bytes on one machine.  Needs scikit-learn, for the free classifier.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.detectors import (
    Texts,
    Victim,
    free,
    measured,
    of_detector,
    pipeline,
    shown,
    test_texts,
)
from benchmarks.guard_cards import FIGURES, write_cards
from benchmarks.settings import data_folder
from ranmask import SegmentDetector, WordDetector
from ranmask.attacks.appending import harmless_words
from ranmask.data import joined, load_corpus, load_splits
from ranmask.data.corpus import permutation
from ranmask.data.rows import Columns, file_rows
from ranmask.models import SHIPPED_FOLDER
from ranmask.runs.flag_counts import counted
from ranmask.training.detector_options import Additions, DetectorTraining
from ranmask.training.detector_tables import train_detector_table

_ALIKE = 0.9
_PARTS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Guard:
    """How a guard is made.

    ``sets`` are learned from; of ``others`` so many harmless texts, too.  ``plain``: sets whose
    texts are also learned in lower case and with punctuation set apart, for some mails come so.
    """

    sets: tuple[str, ...]
    labels: tuple[str, str]
    options: DetectorTraining
    tests: tuple[str, ...]
    others: Mapping[str, int] = field(default_factory=dict)
    plain: tuple[str, ...] = ()


GUARDS = {
    "spam": Guard(
        ("sms_spam", "spamassassin"),
        ("ham", "spam"),
        DetectorTraining(additions="ends", word_limit=4.0, batch_size=256, buckets=1 << 17),
        ("sms_spam", "spamassassin", "enron_spam", "nazario_phishing"),
        plain=("spamassassin",),
    ),
    "spam-sms": Guard(
        ("sms_spam",),
        ("ham", "spam"),
        DetectorTraining(additions="anywhere", buckets=1 << 16),
        ("sms_spam", "spamassassin"),
        plain=("sms_spam",),
    ),
    "toxicity": Guard(
        ("jigsaw_part",),
        ("not toxic", "toxic"),
        DetectorTraining(additions="ends", word_limit=8.0, buckets=1 << 17),
        ("jigsaw_part", "hate"),
    ),
    "injection": Guard(
        ("injection",),
        ("benign", "injection"),
        DetectorTraining(additions="ends", word_limit=8.0, buckets=1 << 17),
        ("injection", "injection_hardbenign", "injection_ood", "enron_spam"),
        others={"jigsaw_part": 4000, "spamassassin": 4000},
    ),
}
HARMLESS_ONLY = {("injection", "enron_spam")}
"""Sets of another task, of which only the harmless texts are asked about."""

RECIPE = ("spamassassin", "sms_spam", "enron_spam")
"""What `ranmask train --data ... --also ... --also ...` of the card learns from."""


def training_rows(name: str) -> tuple[Texts, Texts]:
    """What is learned from, and what sets thresholds, with sources."""
    if name == "sms_spam":
        parts = [load_corpus(name, part) for part in ("train", "validation")]
        rows = [
            (text, label == 1, name)
            for part in parts
            for text, label in zip(part.texts, part.labels, strict=True)
        ]
    else:
        columns = Columns("text", None, "label", ("source",))
        found = file_rows(data_folder() / name / "train.parquet", columns).rows
        rows = [
            (row.text, int(row.label) == 1, row.kept["source"])
            for row in found
            if row.text and row.text.split()
        ]
    order = permutation(len(rows))
    cut = len(order) // 4

    def taken(places: Sequence[int]) -> Texts:
        texts, flags, sources = zip(*(rows[place] for place in places), strict=True)
        return Texts(list(texts), list(flags), list(sources))

    return taken(order[cut:]), taken(order[:cut])


def tests_of(guard: str, name: str) -> Texts:
    """The test part of a set, as a guard is asked about it."""
    if name == "hate":  # hate speech and offensive, against neither
        corpus = load_corpus("hate", "test")
        sources = [corpus.label_names[label] for label in corpus.labels]
        return Texts(list(corpus.texts), [label != 2 for label in corpus.labels], sources)
    texts = test_texts(name)
    if (guard, name) not in HARMLESS_ONLY:
        return texts
    kept = [place for place, flag in enumerate(texts.flags) if not flag]
    return Texts(
        [texts.texts[place] for place in kept],
        [False] * len(kept),
        [texts.sources[place] for place in kept],
    )


def unlike_training(name: str, victim: Victim) -> dict[str, Any]:
    """The same for the test texts whose cosine to every training text is below 0.9."""
    columns = Columns("text", None, "label", ("sim_train",))
    found = file_rows(data_folder() / name / "test.parquet", columns).rows
    rows = [row for row in found if row.text and row.kept["sim_train"] < _ALIKE]
    assert victim.detector is not None
    flags = [int(row.label) == 1 for row in rows]
    values = counted(victim.detector.detect([row.text for row in rows]), flags).values()
    return {key: values[key] for key in ("recall", "false_positives")}


def together(parts: Sequence[Texts]) -> Texts:
    return Texts(
        [text for part in parts for text in part.texts],
        [flag for part in parts for flag in part.flags],
        [source for part in parts for source in part.sources],
    )


def learned_rows(guard: Guard) -> Texts:
    """All that a guard learns from, without the plain copies."""
    parts = [training_rows(name)[0] for name in guard.sets]
    for name, most in guard.others.items():
        rows = training_rows(name)[0]
        pairs = zip(rows.texts, rows.flags, strict=True)
        harmless = [text for text, flag in pairs if not flag][:most]
        parts.append(Texts(harmless, [False] * len(harmless), [name] * len(harmless)))
    return together(parts)


def plain_copies(guard: Guard) -> Texts:
    """Texts in lower case, each of their marks a word."""
    rows = together([training_rows(name)[0] for name in guard.plain])
    texts = [" ".join(_PARTS.findall(text.lower())) or text for text in rows.texts]
    return replace(rows, texts=texts)


def made(guard: Guard, train: Texts, held_out: Sequence[Texts]) -> Victim:
    """A guard, trained, with the largest threshold that one of its sets asks for."""
    rows = together([train, plain_copies(guard)])
    table = train_detector_table(rows.texts, rows.flags, guard.labels, options=guard.options)
    kind = WordDetector if guard.options.additions == "anywhere" else SegmentDetector
    name = "words, anywhere" if guard.options.additions == "anywhere" else "segments, ends"
    found = [of_detector(name, kind(table, threshold=1), part) for part in held_out]
    return max(found, key=lambda victim: victim.threshold)


def free_one(train: Texts, held_out: Sequence[Texts]) -> Victim:
    model = pipeline(train)
    place = list(model.classes_).index("flag")

    def scores(texts: list[str]) -> Any:
        return model.predict_proba(texts)[:, place]

    found = [free("TF-IDF, free", scores, part) for part in held_out]
    return max(found, key=lambda victim: victim.threshold)


def on_validation(name: str, guard: Guard) -> list[dict[str, Any]]:
    """Both kinds on the rows that set thresholds, set by set: what the choice was made by."""
    train, held_out = learned_rows(guard), [training_rows(one)[1] for one in guard.sets]
    appended = harmless_words(train.texts, train.flags)
    rows = []
    kinds: tuple[Additions, ...] = ("anywhere", "ends")
    for additions in kinds:
        limit = guard.options.word_limit if additions == "ends" else None
        options = replace(guard.options, additions=additions, word_limit=limit)
        victim = made(replace(guard, options=options), train, held_out)
        for one, part in zip(guard.sets, held_out, strict=True):
            values = measured(victim, part, appended)
            rows.append({"test": one, "detector": victim.name, **values})
            print(line(name, rows[-1]), flush=True)
    return rows


def on_test(name: str, guard: Guard, shipped: Path) -> dict[str, Any]:
    """Make a guard, write its weights, and measure it beside a free classifier."""
    train, held_out = learned_rows(guard), [training_rows(one)[1] for one in guard.sets]
    appended = harmless_words(train.texts, train.flags)
    judged = [made(guard, train, held_out), free_one(train, held_out)]
    detector = judged[0].detector
    assert detector is not None
    detector.save_pretrained(shipped / name)
    rows = []
    for test in guard.tests:
        texts = tests_of(name, test)
        for victim in judged:
            values = measured(victim, texts, appended)
            if test in guard.sets and test != "sms_spam" and victim.detector is not None:
                values["unlike_training"] = unlike_training(test, victim)
            rows.append({"test": test, "detector": victim.name, **values})
            print(line(name, rows[-1]), flush=True)
    return {
        "learned": counts(train),
        "threshold_rows": [counts(part) for part in held_out],
        "threshold": detector.threshold,
        "positive": detector.positive,
        "tests": rows,
    }


def by_recipe() -> list[dict[str, Any]]:
    """The detector of the card's command, which learns from Enron too and does not ship."""
    learned, held_out = load_splits(RECIPE[0])
    for name in RECIPE[1:]:
        learned = joined(learned, load_corpus(name, "train"), without=held_out)
    train = Texts(list(learned.texts), [label == 1 for label in learned.labels])
    part = Texts(list(held_out.texts), [label == 1 for label in held_out.labels])
    guard = Guard(RECIPE, ("ham", "spam"), DetectorTraining(additions="ends"), RECIPE)
    victim = made(guard, train, [part])
    appended = harmless_words(train.texts, train.flags)
    rows = []
    for test in guard.tests:
        rows.append({"test": test, **measured(victim, test_texts(test), appended)})
        print(line("recipe", {"detector": victim.name, **rows[-1]}), flush=True)
    return rows


def counts(texts: Texts) -> dict[str, list[int]]:
    """Rows of each source: harmless, and to be flagged."""
    found: dict[str, list[int]] = {}
    for source, flag in zip(texts.sources, texts.flags, strict=True):
        found.setdefault(source, [0, 0])[flag] += 1
    return dict(sorted(found.items()))


def line(name: str, row: Mapping[str, Any]) -> str:
    """What was measured, in one line."""
    proved = " ".join(shown(share) for share in row["certified_recall"].values())
    return (
        f"{name} {row['test']} {row['detector']}: false positives "
        f"{shown(row['false_positives'])}, recall {shown(row['recall'])}, after appending "
        f"{shown(row['recall_after'])}, certified {proved}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("guards", nargs="*", help="by default all")
    parser.add_argument("--make", action="store_true", help="write weights, figures and cards")
    parser.add_argument("--cards", action="store_true", help="write the cards, from the figures")
    parser.add_argument("--weights", type=Path, default=SHIPPED_FOLDER, help="folder for --make")
    given = parser.parse_args()
    names = given.guards or list(GUARDS)
    if given.make:
        figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        for name in names:
            chosen = {"validation": on_validation(name, GUARDS[name])}
            figures[name] = {**chosen, **on_test(name, GUARDS[name], given.weights)}
        if "spam" in names:
            figures["spam"]["recipe"] = by_recipe()
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    elif not given.cards:
        for name in names:
            on_validation(name, GUARDS[name])
    if given.make or given.cards:
        write_cards(given.weights)


if __name__ == "__main__":
    main()
