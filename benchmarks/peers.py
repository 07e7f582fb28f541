"""Our own rows of docs/peers.md: ``results/peers/*.json`` of word tables, measured in one sitting.

    python -m benchmarks.peers run [--corpus imdb] [--table several] [--split validation]
    python -m benchmarks.peers gather

``run`` trains each table, certifies the test rows against all threats at once, and writes a file a
threat.  What is there already is left alone, so that it goes on where it was interrupted;
``--split validation`` prints figures to choose by, and writes nothing.  ``gather`` writes files
from other committed results: models that need a GPU, detectors, other certificates.  The page:
``python -m benchmarks.peers_page``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers_gather import gathered
from benchmarks.peers_records import (
    ALL,
    FOLDER,
    PeerRecord,
    Texts,
    certified_by_size,
    versions,
    write,
)
from benchmarks.settings import data_folder, machine
from ranmask import SmoothedClassifier, load_default
from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.data import Corpus, joined, load_corpus
from ranmask.results import Certificate
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

SYNONYMS = "jia2019"
MOST = {"substitutions": 10, "edits": 10, "characters": 10, "synonyms": 5}
ALSO = {"sst2": ("sst2_glue",)}  # more training texts
_EVERY_SYNONYM: dict[str, Any] = {"threat": "synonyms", "synonyms": SYNONYMS, "normalise": "case"}
_SEVERAL = {"threats": ("characters", "synonyms"), "synonyms": SYNONYMS}


@dataclass(frozen=True)
class Table:
    """A row: a model that ships (``model``), or a table that is trained with ``options``.

    ``threats``: those that it is shown under.  ``rows`` and ``texts``: so many training rows and
    test texts alone, as a peer had.
    """

    name: str
    corpus: str
    title: str
    threats: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    rows: int | None = None
    texts: int | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """What makes the figures again."""
        certify = f"ranmask certify --data {self.corpus} --split test --synonyms {SYNONYMS}"
        threats = ",".join(MOST)
        if self.model is not None:
            return (f"{certify} --model {self.model} --threat {threats} --output OUT.jsonl",)
        chosen = {key: value for key, value in self.options.items() if key != "threats"}
        if "threats" in self.options:
            chosen["threat"] = ",".join(("substitutions", *self.options["threats"]))
        flags = [f"--also {name}" for name in ALSO.get(self.corpus, ())]
        flags += [f"--rows {self.rows}"] if self.rows else []
        flags += [f"--{key.replace('_', '-')} {value}" for key, value in chosen.items()]
        train = " ".join([f"ranmask train --data {self.corpus} --kind words", *flags])
        certify += f" --rows {self.texts}" if self.texts else ""
        shown = f"{certify} --model DIR --threat {threats} --output OUT.jsonl"
        return (f"{train} --output DIR", shown)


def _tables() -> Iterator[Table]:
    words = ("substitutions", "edits", "characters", "synonyms")
    yield Table("words", "agnews", "word table `news-words`", words, model="news-words")
    title = "shipped default `news`: word table and 1-layer encoder"
    yield Table("default", "agnews", title, ("edits", "characters", "synonyms"), model="news")
    yield Table("words", "imdb", "word table `reviews-words`", words, model="reviews-words")
    yield Table("words", "sst2", "word table", words, {"target_words": 2})
    for corpus in ("agnews", "sst2", "imdb"):
        few = {"target_words": 2} if corpus == "sst2" else {}
        yield Table("edits", corpus, "word table for edits", ("edits",), {"threat": "edits", **few})
        yield Table(
            "characters", corpus, "word table for characters", words[:3], {"threat": "characters"}
        )
        buckets = {"buckets": 1 << 20} if corpus == "imdb" else {}
        yield Table(
            "synonyms",
            corpus,
            "word table for all synonyms",
            ("synonyms",),
            _EVERY_SYNONYM | buckets,
        )
        if corpus == "imdb":
            yield Table(
                "synonyms-8000",
                corpus,
                "word table for all synonyms, 8,000 training rows",
                ("synonyms",),
                _EVERY_SYNONYM | buckets,
                rows=8000,
                texts=2000,
            )
        yield Table("several", corpus, "word table for three threats", words, _SEVERAL)


TABLES = tuple(_tables())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("run", "gather"))
    parser.add_argument("--corpus", choices=("agnews", "sst2", "imdb"))
    parser.add_argument("--table", choices=sorted({table.name for table in TABLES}))
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    given = parser.parse_args()
    if given.what == "gather":
        for name, record in gathered():
            print(write(name, record))
        return
    data_folder()
    for table in TABLES:
        if given.corpus in (None, table.corpus) and given.table in (None, table.name):
            measure(table, given.split)
            if table.name == "words" and given.split == "test":
                measure_votes(table)


def file_name(table: Table, threat: str) -> str:
    return f"{table.corpus}-{threat}-ours-{table.name}"


def measure(table: Table, split: str) -> None:
    """Train, certify, write; nothing where all files are there."""
    missing = [
        threat
        for threat in table.threats
        if not (FOLDER / f"{file_name(table, threat)}.json").is_file()
    ]
    if split == "test" and not missing:
        return
    print(f"{table.corpus}, {table.title}", flush=True)
    start = time.process_time()
    classifier, training = made(table)
    trained = None if table.model else round(time.process_time() - start, 1)
    rows = load_corpus(table.corpus, split).take(table.texts)
    results = classifier.certify(rows.texts)
    for threat in table.threats if split == "validation" else missing:
        accuracy, certified = figures(results, rows.labels, threat)
        shown = " ".join(f"{share:.3f}" for share in certified.values())
        print(f"  {threat}: {accuracy:.3f}, {shown}", flush=True)
        if split == "test":
            record = PeerRecord(
                method="ranmask",
                threat=threat,  # type: ignore[arg-type]
                corpus=table.corpus,  # type: ignore[arg-type]
                guarantee="proof",
                source="measured here, our code",
                ours=True,
                accuracy=accuracy,
                certified=certified,
                model=table.title,
                texts=Texts(len(rows.texts), _which(table, len(rows.texts)), rows.sha256),
                setting=table.title,
                seconds=pace(classifier, threat, rows),
                training=training,
                training_seconds=trained,
                seed=0,
                versions=versions("numpy"),
                hardware=f"{machine()}, one thread",
                commands=table.commands,
            )
            write(file_name(table, threat), record)


def _which(table: Table, texts: int) -> str:
    return f"{'the first' if table.texts else 'all'} {texts:,} test rows here"


def measure_votes(table: Table) -> None:
    """Levine and Feizi's certificate of the same table: what sampling costs, all else equal."""
    name = f"{table.corpus}-substitutions-levine-feizi-words"
    if (FOLDER / f"{name}.json").is_file():
        return
    classifier, training = made(table)
    sampled = {"certificate": "ablation", "ensemble": "vote", "family": None, "masks": None}
    votes = classifier.with_options(**sampled, threat="substitutions", threats=None)
    rows = load_corpus(table.corpus, "test")
    start = time.process_time()
    results = votes.certify(rows.texts)
    spent = time.process_time() - start
    # A vote that is not certified at 0 words abstains, and is not right.
    labels = [
        -1 if result.radius is None else label
        for result, label in zip(results, rows.labels, strict=True)
    ]
    accuracy, certified = figures(results, labels, "substitutions")
    print(f"  votes: {accuracy:.3f}, {' '.join(map(str, certified.values()))}", flush=True)
    certify = table.commands[-1].replace(f" --synonyms {SYNONYMS}", "").split(" --threat")[0]
    record = PeerRecord(
        method="Levine-Feizi votes",
        threat="substitutions",
        corpus=table.corpus,  # type: ignore[arg-type]
        guarantee="1 - alpha",
        alpha=results[0].alpha,
        source="measured here, our code",
        ours=False,
        accuracy=accuracy,
        certified=certified,
        model=table.title,
        texts=Texts(len(rows.texts), f"all {len(rows.texts):,} test rows here", rows.sha256),
        setting=f"`ablation` on our {table.title}, 5,000 copies",
        seconds=float(f"{spent / len(rows.texts):.2g}"),
        training=training,
        seed=0,
        versions=versions("numpy"),
        hardware=f"{machine()}, one thread",
        commands=(
            *table.commands[:-1],
            f"{certify} --certificate ablation --ensemble vote --output OUT.jsonl",
        ),
        note="the table is trained for sums of scores, not for votes, of which more than half must "
        "agree; accuracy counts texts with a label that is certified at 0 words",
    )
    write(name, record)


def made(table: Table) -> tuple[SmoothedClassifier, str]:
    """The classifier, certifying every threat, and what it was trained on."""
    listed = load_synonyms(SYNONYMS)
    asked: dict[str, Any] = {"threat": "substitutions", "threats": tuple(MOST)[1:]}
    if table.model is not None:
        classifier = load_default(table.model, synonyms=listed)
        return classifier.with_options(**asked), "as shipped: docs/results.md"
    corpus, held = (load_corpus(table.corpus, part) for part in ("train", "validation"))
    for name in ALSO.get(table.corpus, ()):
        more = load_corpus(name, "train", label_names=corpus.label_names)
        corpus = joined(corpus, more, without=held)
    corpus, options = corpus.take(table.rows), WordTableOptions(**table.options)
    texts = [str(text) for text in corpus.texts]
    learned = train_word_table(texts, corpus.labels, corpus.label_names, options=options)
    smoothing = table_smoothing(options.resolved(texts)) | asked
    return (
        SmoothedClassifier(learned, **smoothing, synonyms=listed),
        f"{corpus.name}, {len(texts):,} rows",
    )


def figures(
    results: Sequence[Certificate], labels: Sequence[int], threat: str
) -> tuple[float, dict[str, float]]:
    """Accuracy, and certified accuracy by size.

    Where all words may be replaced by synonyms, any number may.
    """
    right = [result.label_id == label for result, label in zip(results, labels, strict=True)]
    radii = [result.radii[threat] if result.radii else result.radius for result in results]
    proved = [
        -1 if radius is None or not ok else radius for ok, radius in zip(right, radii, strict=True)
    ]
    whole = [
        threat == "synonyms" and radius >= result.words
        for radius, result in zip(proved, results, strict=True)
    ]
    shares = [
        sum(radius >= size or every for radius, every in zip(proved, whole, strict=True))
        / len(right)
        for size in range(MOST[threat] + 1)
    ]
    certified = certified_by_size(shares, MOST[threat])
    if threat == "synonyms":
        certified[ALL] = round(sum(whole) / len(right), 4)
    return round(sum(right) / len(right), 4), certified


def pace(classifier: SmoothedClassifier, threat: str, rows: Corpus, texts: int = 1000) -> float:
    """Seconds of one thread for a text, this threat alone."""
    asked = classifier.with_options(threat=threat, threats=None)
    asked.certify(rows.texts[:10])
    start = time.process_time()
    asked.certify(rows.texts[:texts])
    return float(f"{(time.process_time() - start) / min(texts, len(rows.texts)):.2g}")


if __name__ == "__main__":
    main()
