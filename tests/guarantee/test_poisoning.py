"""Tables that are trained apart: trained again after every poisoning of small training sets."""

import itertools
import random

import numpy as np
import pytest

from ranmask.models.word_table import WordTable
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.training import partitions
from ranmask.training.partitions import part_of, train_partition_tables
from ranmask.training.table_options import WordTableOptions

NAMES = ("no", "yes")
TABLES = 7
OPTIONS = WordTableOptions(partitions=TABLES, buckets=16, epochs=2, learning_rate=0.5)


def all_texts(words, longest):
    lengths = range(1, longest + 1)
    return [" ".join(some) for size in lengths for some in itertools.product(words, repeat=size)]


READ = all_texts("abc", 4)
"""Texts that are classified; no training text has the word c, but a poisoned one may."""
ROWS = {text: (int(text.count("a") * 2 > len(text.split())),) for text in all_texts("ab", 3)}
"""The training rows: each text with the labels of its rows."""
POISONS = ((), (0,), (1,), (0, 1), (1, 1, 1, 1))
"""What may become of the rows of a text."""


def classifier(rows):
    drawn = [(text, label) for text, labels in rows.items() for label in labels]
    random.Random(len(drawn)).shuffle(drawn)
    texts, labels = zip(*drawn, strict=True)
    return PartitionedClassifier(train_partition_tables(texts, labels, NAMES, OPTIONS))


def poisoned_sets(texts):
    """Training sets that differ in the rows of so many texts: of one, all; of more, many."""
    new = ("c", "c a", "b c c")
    changes = [
        (text, rows)
        for text, rows in itertools.product((*ROWS, *new), POISONS)
        if rows != ROWS.get(text, ())
    ]
    chosen = itertools.combinations(changes, texts)
    if texts > 1:
        chosen = random.Random(texts).sample(list(chosen), 200)
    for some in chosen:
        if len(dict(some)) == texts:
            yield {**ROWS, **dict(some)}


def within(words):
    """Pairs of texts that differ in at most so many words, replaced one for one."""
    split = [text.split() for text in READ]
    return [
        (first, second)
        for first, second in itertools.product(range(len(READ)), repeat=2)
        if len(split[first]) == len(split[second])
        and sum(map(str.__ne__, split[first], split[second])) <= words
    ]


@pytest.fixture(scope="module")
def certified():
    found = classifier(ROWS).certify(READ)
    assert all(result.poisoned[0] <= TABLES // 2 for result in found)
    return found


@pytest.fixture
def trained_once(monkeypatch):
    """A table is trained once for the same rows in the same order."""
    known = {}

    def trained(texts, labels, *more, **how):
        if (texts, labels) not in known:
            known[texts, labels] = train_word_table(texts, labels, *more, **how)
        return known[texts, labels]

    train_word_table = partitions.train_word_table
    monkeypatch.setattr(partitions, "train_word_table", trained)


def differing(before, after):
    """The parts whose tables are others."""
    return {part for part in range(TABLES) if before[part] != after[part]}


def labels_of(model):
    return [result.label_id for result in model.predict(READ)]


@pytest.mark.usefixtures("trained_once")
@pytest.mark.parametrize("texts", [0, 1, 2])
def test_no_poisoning_and_no_changed_words_break_what_is_proved(certified, texts):
    proved = [
        (first, second, words)
        for words in range(3)
        for first, second in within(words)
        if certified[first].certified(words, poisoned=texts)
    ]
    assert sum(words > 0 for *_, words in proved) > 20  # both at once, and not in vain
    own = [result.label_id for result in certified]
    turned = 0
    for rows in poisoned_sets(texts) if texts else [ROWS]:
        labels = labels_of(classifier(rows))
        assert all(labels[second] == own[first] for first, second, _ in proved)
        turned += labels != own
    assert turned or not texts  # what is not proved does break


@pytest.mark.usefixtures("trained_once")
def test_a_changed_text_is_two_poisoned_ones(certified):
    """It may reach two tables; one that is added, removed or relabelled reaches one."""
    before = [table.base.digest for table in classifier(ROWS).tables]
    reached = set()
    for old, new in itertools.product(ROWS, ("c", "c c", "c a", "a c b")):
        rows = {text: labels for text, labels in ROWS.items() if text != old}
        changed = classifier({**rows, new: ROWS[old]})
        after = [table.base.digest for table in changed.tables]
        touched = differing(before, after)
        assert touched <= {part_of(old, TABLES), part_of(new, TABLES)}
        reached.add(len(touched))
        labels = labels_of(changed)
        for result, label in zip(certified, labels, strict=True):
            assert label == result.label_id or not result.certified(0, poisoned=2)
    assert reached == {1, 2}


def test_poison_reaches_the_table_of_its_text_alone():
    """Whatever the rows: many copies, a class that is gone from its part, an empty part."""
    before = [table.base.digest for table in classifier(ROWS).tables]
    for rows in poisoned_sets(1):
        [text] = {one for one in {*rows, *ROWS} if rows.get(one, ()) != ROWS.get(one, ())}
        after = [table.base.digest for table in classifier(rows).tables]
        assert differing(before, after) <= {part_of(text, TABLES)}
    alone = {text: labels for text, labels in ROWS.items() if part_of(text, TABLES) == 0}
    lonely = classifier(alone)
    assert lonely.tables[0].base.digest == before[0]
    assert len({table.base.digest for table in lonely.tables[1:]}) == 1  # they have no rows
    assert {np.ptp(table.base.word_scores("a")) for table in lonely.tables[1:]} == {0}


def test_without_changed_words_the_bound_is_attained(certified):
    """One poisoned table more, and a vote for the other class takes the label."""
    tables = classifier(ROWS).tables
    for number, result in enumerate(certified):
        rival = 1 - result.label_id
        says = [table.predict([READ[number]])[0].label_id for table in tables]
        for poisoned in (result.poisoned[0], result.poisoned[0] + 1):
            turned = [place for place, said in enumerate(says) if said != rival][:poisoned]
            votes = [rival if place in turned else said for place, said in enumerate(says)]
            label = int(np.bincount(votes, minlength=2).argmax())
            assert (label == result.label_id) == (poisoned == result.poisoned[0])


@pytest.mark.parametrize("seed", [0, 1, 3, 5])  # others are proved too little
def test_three_classes_whatever_poisoned_tables_say(seed):
    """Every changed word of short texts, and every vote of poisoned tables, in a tie too."""
    rng = np.random.default_rng(seed)
    steps = np.linspace(0, 2**20, 5).astype(np.int32)
    alike = rng.integers(-3, 4, (31, 3))
    tables = [
        WordTable(
            (alike + rng.integers(-1, 2, alike.shape)).astype(np.int8),
            np.zeros(3, dtype=np.int64),
            labels=("x", "y", "z"),
            shift=8,
            curve=steps,
        )
        for _ in range(5 + seed % 2)
    ]
    model = PartitionedClassifier(tables)
    texts = [" ".join(words) for words in itertools.product("abc", repeat=5)]
    split = np.array([text.split() for text in texts])
    said = np.array([[one.label_id for one in table.predict(texts)] for table in model.tables])
    votes = np.array(list(itertools.product(range(3), repeat=len(tables))))
    winners = np.array([np.bincount(one, minlength=3).argmax() for one in votes])
    # Of each text, how many tables must be poisoned for each label.
    needed = (votes[:, None, :] != said.T[None]).sum(axis=2)
    fewest = np.stack([needed[winners == label].min(axis=0) for label in range(3)])
    results = model.certify(texts)
    for number, result in enumerate(results):
        apart = (split != split[number]).sum(axis=1)
        others = np.delete(fewest, result.label_id, axis=0).min(axis=0)
        for words, poisoned in enumerate(result.poisoned):
            assert others[apart <= words].min() > poisoned
    assert any(result.certified(1, poisoned=1) for result in results)
    assert len({result.radius for result in results}) > 1
