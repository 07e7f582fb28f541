"""Changed characters where the words that say something are known: every edit of short texts."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranmask import SmoothedClassifier
from ranmask.certificates import characters
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import LETTERS, Normaliser, letters
from ranmask.models.word_table import CURVE_END, ONE, WordTable, spelt
from ranmask.smoothing import spellings
from ranmask.smoothing.spellings import KnownSpellings

ALPHABET = "ab -"  # a blank, and a character that is not read
BOUND = 8


def edited(text: str) -> set[str]:
    """All texts that are one character away."""
    made = {text[:at] + text[at + 1 :] for at in range(len(text))}
    for at, one in itertools.product(range(len(text) + 1), ALPHABET):
        made.add(text[:at] + one + text[at:])
        made.add(text[:at] + one + text[at + 1 :])
    return made


def within(text: str, edits: int) -> list[set[str]]:
    """Texts that are at most 0, 1, ... characters away."""
    reached = [{text}]
    for _ in range(edits):
        reached.append(reached[-1] | {new for old in reached[-1] for new in edited(old)})
    return reached


def costs(text: str, said: dict[str, int], most: int) -> list[int]:
    """What the certificate says that 0, 1, ... edits cost, of a label and one rival."""
    known = KnownWords(sorted(said))
    points = np.array([[max(said[word], 0), max(-said[word], 0)] for word in known.words])
    words = text.split()
    found = KnownSpellings(known, points).of([words], np.array([0]))
    differences = np.array([[said.get(letters(word), 0) for word in words]])
    against = found.against(np.zeros(len(words), dtype=np.int64))
    one = np.array([len(words)]), np.array([0])
    # With a margin of m + 1, d edits are proved if they cost at most m.
    proved = [
        int(
            characters.characters_proved(
                differences, against, np.array([[m + 1]]), *one, found.bound
            )[0, 0]
        )
        for m in range(4 * BOUND * most)
    ]
    return [next((m for m, d in enumerate(proved) if d >= edits), 0) for edits in range(most + 1)]


WORDS = ["".join(word) for size in (1, 2, 3) for word in itertools.product("ab", repeat=size)]
said_of_words = st.dictionaries(
    st.sampled_from(WORDS), st.integers(-BOUND, BOUND), min_size=1, max_size=8
)
short_texts = st.text(ALPHABET, min_size=1, max_size=7).filter(lambda text: text.split())


def lost(text: str, said: dict[str, int], edits: int) -> list[int]:
    """What 0, 1, ... edits take from the sum of a text's words, at most, by trying all."""

    def total(one: str) -> int:
        return sum(said.get(letters(word), 0) for word in one.split())

    return [total(text) - min(map(total, reached)) for reached in within(text, edits)]


@settings(max_examples=300, deadline=None)
@given(short_texts, said_of_words)
@example("a b", {"a": 8, "b": 8, "ab": -8, "aab": -8})
@example("ab ab", {"ab": 8, "a": -8, "b": -8})
@example("a-b", {"ab": 8, "a": -8, "b": -8})
@example("aba", {"a": -8, "b": -8, "aba": 3})
@example("a b a b", {"a": 7, "b": 6})
@example("a b a", {"a": 8, "b": 8, "aba": -8})
@example("aabbaa", {"aabbaa": 8, "aa": -8, "bb": -8})
@example("abba bbbb", {"abba": 8, "bbbb": 8, "ab": -4, "babbbb": -8})  # a blank that moves
@example("bbbb abba", {"abba": 8, "bbbb": 8, "ba": -4, "bbbbab": -8})
def test_no_edit_takes_more_than_it_costs(text: str, said: dict[str, int]) -> None:
    for found, bound in zip(lost(text, said, 2), costs(text, said, 2), strict=True):
        assert found <= bound


@settings(max_examples=15, deadline=None)
@given(st.text(ALPHABET, min_size=1, max_size=5).filter(lambda text: text.split()), said_of_words)
@example("a b a", {"a": 8, "b": 8, "abaa": -8, "ba": -8})
def test_nor_do_three(text: str, said: dict[str, int]) -> None:
    for found, bound in zip(lost(text, said, 3), costs(text, said, 3), strict=True):
        assert found <= bound


def least_left(text: str, said: dict[str, int], edits: int) -> list[int]:
    """The least sum that 0, 1, ... edits leave, exactly: by the word that is being written.

    As far as known words begin like it; the others are one, ``?``.
    """
    starts = {word[:size] for word in said for size in range(len(word) + 1)}

    def written(sums: dict[str, int], ones: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for (word, total), one in itertools.product(sums.items(), ones):
            if one == " ":
                new, total = "", total + said.get(word, 0)
            else:
                new = word if one == "-" else word + one if word + one in starts else "?"
            found[new] = min(total, found.get(new, total))
        return found

    def least(*parts: dict[str, int]) -> dict[str, int]:
        words = set().union(*parts)
        return {word: min(part[word] for part in parts if word in part) for word in words}

    rows: list[dict[str, int]] = [{"": 0}]
    for _ in range(edits):
        rows.append(written(rows[-1], ALPHABET))
    for one in text:
        read, rows = rows, []
        for edit, row in enumerate(read):
            reached = [written(row, one)]
            if edit:  # deleted, replaced; inserted behind
                before = read[edit - 1]
                reached += [before, written(before, ALPHABET), written(rows[-1], ALPHABET)]
            rows.append(least(*reached))
    found = [min(written(row, " ").values()) for row in rows]
    return list(itertools.accumulate(found, min))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "-"]), min_size=1, max_size=9), said_of_words)
@example(["a"] * 9, {"a": 8, "aa": -3, "b": -8})
def test_nor_do_five_edits_of_longer_texts(words: list[str], said: dict[str, int]) -> None:
    text = " ".join(words)
    left = least_left(text, said, 5)
    for least, bound in zip(left, costs(text, said, 5), strict=True):
        assert left[0] - least <= bound
    if len(text) < 4:
        assert [left[0] - one for one in left[:3]] == lost(text, said, 2)


def test_joined_words_are_what_it_costs_where_nothing_else_is_known() -> None:
    said = {"aa": 8, "ab": 7, "ba": 5}
    assert lost("aa ab ba aa", said, 2) == [0, 15, 28] == costs("aa ab ba aa", said, 2)


def test_any_part_of_a_very_long_word_is_reckoned_with() -> None:
    part = "ab" * 40  # two blanks make three words of it
    assert costs(3 * part, {part: -BOUND}, 2)[2] >= 3 * BOUND


def closed_table(said: dict[str, tuple[int, ...]]) -> WordTable:
    words = sorted(said)
    entries = np.array([said[word] for word in words], dtype=np.int16)
    labels = [str(number) for number in range(entries.shape[1])]
    curve = np.clip(np.arange(-CURVE_END * 16, CURVE_END * 16 + 1) + CURVE_END * 16, 0, None)
    curve = (curve * (ONE // (CURVE_END * 32))).astype(np.int32)
    return WordTable(
        entries,
        np.zeros(len(labels), dtype=np.int64),
        labels=labels,
        shift=8,
        curve=curve,
        normaliser=Normaliser(LETTERS),
        vocabulary=spelt(words),
    )


def test_labels_stay_within_the_radius_with_three_classes() -> None:
    rng, most, proved = np.random.default_rng(0), CURVE_END * 16, 0
    for _ in range(30):
        chosen = rng.choice(WORDS, size=int(rng.integers(2, 6)), replace=False).tolist()
        said = [(most, *rng.choice([-most, 0, most // 2, most], size=2).tolist()) for _ in chosen]
        table = closed_table(dict(zip(chosen, said, strict=True)))
        smoothed = SmoothedClassifier(table, **WordTable.smoothing, threat="characters")
        texts = [" ".join(rng.choice(chosen, size=4)) for _ in range(3)]
        for text, result in zip(texts, smoothed.certify(texts), strict=True):
            if result.radius is not None and result.radius > 0:
                proved += result.radius
                radius = min(result.radius, 2 if len(text) < 9 else 1)
                others = sorted(one for one in within(text, radius)[radius] if one.split())
                assert {other.label for other in smoothed.predict(others)} == {result.label}
    assert proved >= 20


def test_labels_stay_whatever_synonyms_are_put_in() -> None:
    """Known and unknown words, with known and unknown synonyms: every text of them."""
    rng, most, proved, tight = np.random.default_rng(0), CURVE_END * 16, 0, 0
    names = [f"word{letter}" for letter in "abcdef"]
    for _ in range(80):
        known = rng.choice(names, size=4, replace=False).tolist()
        table = closed_table({name: tuple(rng.integers(-most, most, 3)) for name in known})
        synonyms = {name: rng.choice(names, size=2, replace=False).tolist() for name in names}
        synonyms = {name: [o for o in others if o != name] for name, others in synonyms.items()}
        smoothed = SmoothedClassifier(
            table, **WordTable.smoothing, threats=["synonyms", "characters"], synonyms=synonyms
        )
        words = rng.choice(names, size=4).tolist()
        [result] = smoothed.certify([" ".join(words)])
        radius = result.radii["synonyms"]
        if radius is None:
            continue
        texts: dict[int, list[str]] = {}
        for chosen in itertools.product(*([word, *synonyms[word]] for word in words)):
            changed = sum(a != b for a, b in zip(words, chosen, strict=True))
            texts.setdefault(changed, []).append(" ".join(chosen))
        for changed, others in texts.items():
            if changed <= radius:
                assert {one.label for one in smoothed.predict(others)} == {result.label}
                proved += changed > 0
            elif changed == radius + 1:
                tight += {one.label for one in smoothed.predict(others)} != {result.label}
    assert proved >= 40
    assert tight >= 5


def test_a_vocabulary_proves_more_characters_than_any_table_does() -> None:
    most = CURVE_END * 16
    said = {"goal": (most, -most), "match": (most, -most), "bank": (-most, most)}
    table = closed_table(said)
    text = "goal match goal match goal match goal match"
    closed = SmoothedClassifier(table, **WordTable.smoothing, threats=["characters"])
    voted = SmoothedClassifier(
        table, **{**WordTable.smoothing, "ensemble": "vote"}, threats=["characters"]
    )
    assert closed.certify([text])[0].radii["characters"] == 3  # every two are joined by a fourth
    assert voted.certify([text])[0].radii["characters"] == 2  # an unknown word votes for the first
    assert closed.predict(["goalmatch goalmatch goalmatch goalmatch bank"])[0].label == "1"


def test_a_new_word_costs_what_the_loudest_known_word_says() -> None:
    quiet = closed_table({"goal": (40, -40), "bank": (-40, 40)})
    smoothed = SmoothedClassifier(quiet, **WordTable.smoothing, threat="characters")
    # Every two are joined by an edit; of a word that could say anything, one would be enough.
    assert smoothed.certify(["goal goal goal goal goal"])[0].radius == 2


def test_votes_that_may_move_are_proved_as_of_any_table() -> None:
    most = CURVE_END * 16
    table = closed_table({"goal": (most, -most), "match": (most, -most), "bank": (-most, most)})
    how = {**WordTable.smoothing, "threat": "characters", "tolerance": 0.01}
    [proved] = SmoothedClassifier(table, **how).certify(["goal match goal match goal match goal"])
    assert proved.radius == 2  # as in a table that says something of every word


def test_what_is_kept_of_a_word_grows_with_the_classes_not_with_their_square() -> None:
    known, classes = KnownWords(["ab", "abb", "b"]), 60
    points = np.random.default_rng(0).integers(0, 9, (3, classes))
    spellings = KnownSpellings(known, points)
    words = ["ab", "a", "ab", "xab"]
    for label in (7, 59, 7):
        found = spellings.of([words[:2], words[2:]], np.array([label, 3]))
        for row, (word, own) in enumerate(zip(words, (label, label, 3, 3), strict=True)):
            near = [*known.changed(word)]
            cut = [sum(points[one] for one in pair if one >= 0) for pair in known.cuts(word)]
            said = np.array([0 * points[0], *points[near], *cut])
            assert (found.made[row] == (said - said[:, [own]]).max(axis=0)).all()
    assert spellings._made.size == 6 * classes  # pairs of a word and a label


def test_known_words_are_found_by_their_definition() -> None:
    known = KnownWords(["a", "ab", "abb", "bab", "ba"])
    for size in range(6):
        for word in map("".join, itertools.product("abc", repeat=size)):
            near = {letters(one) for one in edited(word)} - {word}
            assert {known.words[place] for place in known.changed(word)} == near & {*known.words}
            cut = {
                tuple(part if part in known.places else "" for part in pair)
                for at in range(1, size)
                for pair in ((word[:at], word[at:]), (word[:at], word[at + 1 :]))
            } - {("", "")}
            named = [*known.words, ""]
            assert {(named[one], named[two]) for one, two in known.cuts(word)} == cut
            parts = {word[i:j] for i in range(size) for j in range(i + 1, size + 1)}
            assert {known.words[place] for place in known.parts(word)} == parts & {*known.words}


@settings(max_examples=100, deadline=None)
@given(st.lists(short_texts, min_size=1, max_size=6), said_of_words, st.data())
def test_what_is_remembered_changes_nothing(
    texts: list[str], said: dict[str, int], data: st.DataObject
) -> None:
    known = KnownWords(sorted(said))
    points = np.array([[max(said[word], 0), max(-said[word], 0), 3] for word in known.words])
    winners = np.array([data.draw(st.integers(0, 2)) for _ in texts])
    words = [text.split() for text in texts]
    remembering = KnownSpellings(known, points)
    with mock.patch.object(spellings, "_MOST_KEPT", 3):
        for own, winner in zip(words, winners, strict=True):
            remembering.of([own], np.array([winner]))
        together = remembering.of(words, winners)
    end = np.cumsum([*map(len, words)])
    for own, winner, last in zip(words, winners, end, strict=True):
        alone = KnownSpellings(known, points).of([own], np.array([winner]))
        first = last - len(own)
        for name, inner in (("made", last), ("part", last), ("joined", last - 1)):
            there = getattr(together, name)[first:inner]
            assert (there == getattr(alone, name)[: inner - first]).all()
