"""What is flagged stays flagged: every placement of edits in short texts, by brute force."""

import itertools
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates.detectors import (
    MOST_EDITS,
    disjoint_segments,
    disjoint_windows,
    segment_radii,
    window_radii,
    word_radius,
)
from ranmask.models.word_features import features
from ranmask.models.word_table import ONE, WordTable
from ranmask.smoothing.detectors import SegmentDetector, WordDetector
from ranmask.smoothing.window_detector import WindowDetector

NEW = "@"  # no text has it


def window_detector(flags, sizes, **options):
    """Flags the windows that ``flags`` names, as strings."""

    def scores(texts):
        return [[0.0, 1.0] if flags(text) else [1.0, 0.0] for text in texts]

    return WindowDetector(scores, sizes=sizes, labels=("ham", "spam"), **options)


def flagged(detector, texts):
    return [found.flagged for found in detector.detect([" ".join(words) for words in texts])]


def changes(words, blocks=((NEW,), (NEW, NEW, NEW))):
    """Every text that one point makes: a word replaced or deleted, or a block put in."""
    for place in range(len(words)):
        yield (*words[:place], NEW, *words[place + 1 :])
        yield words[:place] + words[place + 1 :]
    yield from insertions(words, blocks)


def insertions(words, blocks=((NEW,), (NEW, NEW, NEW))):
    for place in range(len(words) + 1):
        for block in blocks:
            yield words[:place] + block + words[place:]


def after(words, times, step):
    """Every text with at least one word that at most so many steps make."""
    reached = {tuple(words)}
    for _ in range(times):
        reached |= {new for old in reached for new in step(old)}
    return sorted(text for text in reached if text)


def replaced(words, times):
    """Every text in which so many words are replaced."""
    for places in itertools.combinations(range(len(words)), min(times, len(words))):
        yield tuple(NEW if place in places else word for place, word in enumerate(words))


def spread(words):
    """A text with a new word before, behind and between all of its words."""
    return (NEW, *(part for word in words for part in (word, NEW)))


def characters(text, alphabet="ab "):
    for place in range(len(text) + 1):
        for new in alphabet:
            yield text[:place] + new + text[place:]
            if place < len(text):
                yield text[:place] + new + text[place + 1 :]
        if place < len(text):
            yield text[:place] + text[place + 1 :]


def some_windows(words, sizes, rng, share):
    """Windows of a text of different words, drawn at random, and the strings that they are."""
    places = [(s, s + size) for size in sizes for s in range(len(words) - size + 1)]
    chosen = [window for window in places if rng.random() < share]
    return chosen, {" ".join(words[a:b]) for a, b in chosen}


@pytest.mark.parametrize("seed", range(40))
def test_windows_under_every_placement_of_changes(seed):
    rng = np.random.default_rng(seed)
    words = tuple("abcdef"[: rng.integers(2, 7)])
    sizes = sorted({int(size) for size in rng.integers(1, 4, 2)})
    chosen, strings = some_windows(words, sizes, rng, rng.choice([0.3, 0.6, 0.9]))
    detector = window_detector(strings.__contains__, sizes)
    [found] = detector.detect([" ".join(words)])
    if len(words) < sizes[0]:
        return
    assert found.flagged == bool(chosen)
    if not chosen:
        assert found.radius is found.insertions is found.characters is None
        return
    # No break within the radius, and one beyond it: the classifier flags nothing else.
    most = min(found.radius, 2)
    assert all(flagged(detector, after(words, most, changes)))
    if found.radius < 2:
        assert not all(flagged(detector, after(words, found.radius + 1, changes)))
    if found.insertions is None:
        assert any(b - a == 1 for a, b in chosen)
        assert all(flagged(detector, after(words, 3, insertions)))
        # Blocks in every gap, and changed words at the same time.
        if found.radius <= 2:
            cut = map(spread, replaced(words, found.radius))
            assert all(flagged(detector, cut)) == (found.additions == "anywhere")
    else:
        assert found.additions == "ends" and found.insertions >= found.radius
        assert all(flagged(detector, after(words, min(found.insertions, 3), insertions)))
        if found.insertions < 3:
            assert not all(flagged(detector, after(words, found.insertions + 1, insertions)))


@pytest.mark.parametrize("seed", range(12))
def test_windows_with_text_before_and_after_and_changes_at_once(seed):
    """Added text may hold anything, also what a hostile classifier makes of new windows."""
    rng = np.random.default_rng(seed)
    words = tuple(rng.choice(list("xyz"), 5).tolist())

    def flags(text):  # arbitrary in every word and place
        return zlib.crc32(f"{seed} {text}".encode()) % 3 == 0

    detector = window_detector(flags, (2, 3))
    [found] = detector.detect([" ".join(words)])
    if not found.flagged:
        return
    for before, behind in itertools.product((0, 1, 4), repeat=2):
        first, last = (rng.choice(list("xyz@"), size).tolist() for size in (before, behind))
        changed = after(words, min(found.radius, 1), changes)
        added = [(*first, *text, *last) for text in changed]
        assert all(flagged(detector, added))


@pytest.mark.parametrize("seed", range(40))
def test_windows_under_every_edit_of_characters(seed):
    rng = np.random.default_rng(seed)
    words = ("ab", "ba", "aab", "bb", "abb", "a")[: rng.integers(2, 7)]
    sizes = (1, 2) if seed % 2 else (2,)
    chosen, strings = some_windows(words, sizes, rng, 0.7)
    detector = window_detector(strings.__contains__, sizes)
    [found] = detector.detect([" ".join(words)])
    if not chosen:
        return
    reached = {" ".join(words)}
    for _ in range(min(found.characters, 1)):
        reached |= {new for old in reached for new in characters(old) if new.split()}
    assert all(result.flagged for result in detector.detect(sorted(reached)))


def test_the_bound_on_characters_is_attained():
    """Two windows side by side: a lost blank breaks both, two changed words would be needed."""
    words = ("ab", "ba", "aab", "bb")
    strings = {"ab ba", "aab bb"}
    detector = window_detector(strings.__contains__, (2,))
    [found] = detector.detect([" ".join(words)])
    assert (found.radius, found.characters) == (1, 0)
    assert not all(result.flagged for result in detector.detect(list(characters(" ".join(words)))))


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=12),
    st.sampled_from([-1, 0, 1]),
)
def test_no_more_windows_lie_apart(windows, apart):
    intervals = {(start, start + size) for start, size in windows if apart >= 0 or size > 1}
    chosen = disjoint_windows(intervals, apart)

    def lie_apart(some):
        ordered = sorted(some)
        return all(b[0] - a[1] >= apart for a, b in itertools.pairwise(ordered))

    assert lie_apart(chosen) and set(chosen) <= intervals
    for size in range(len(chosen) + 1, min(len(intervals), len(chosen) + 2) + 1):
        assert not any(lie_apart(some) for some in itertools.combinations(intervals, size))


def test_a_text_shorter_than_every_window_is_read_whole_and_nothing_is_proved():
    detector = window_detector(lambda text: "x" in text.split(), (3, 4))
    short, long = detector.detect(["x y", "x y z"])
    assert short.flagged and short.radius is short.characters is short.insertions is None
    assert short.additions == "nowhere" and not short.certified(0)
    assert long.radius == 0 and long.additions == "ends"
    # Why: a word more may unflag it.
    fickle = window_detector({"x y"}.__contains__, (3, 4))
    assert [found.flagged for found in fickle.detect(["x y", "x y z"])] == [True, False]


def test_no_window_no_proof():
    found = window_radii([])
    assert (found.changed, found.insertions, found.characters) == (None, None, None)
    assert found.additions == "nowhere"


def test_a_window_near_the_threshold_is_no_proof():
    said = {"a b": 0.50004, "c d": 0.9, "b c": 0.1}
    detector = WindowDetector(
        lambda texts: [[1 - said[text], said[text]] for text in texts],
        sizes=(2,),
        labels=("ham", "spam"),
        threshold=0.5,
    )
    near, both = detector.detect(["a b", "a b c d"])
    assert near.flagged and near.radius is None and near.spans == ((0, 2),)
    assert both.radius == 0 and both.spans == ((2, 4),)


# ---- never less ----

STEPS = 8
BUCKETS = 65_521


def table_of(weights):
    """A table that gives each word this weight, in eighths, and all others 0."""
    entries = np.zeros((BUCKETS, 2), dtype=np.int16)
    for word, weight in weights.items():
        entries[features([word])[0][2] % BUCKETS, 1] = weight
    return WordTable(
        entries,
        np.zeros(2, dtype=np.int64),
        labels=("ham", "spam"),
        shift=8,
        curve=np.concatenate([np.zeros(STEPS), np.arange(STEPS + 1) * (ONE // STEPS)]).astype(
            np.int32
        ),
    )


def texts_by_changes(words, times):
    """Texts in which so many words are replaced by nothing that counts, or deleted."""

    def step(old):
        for place in range(len(old)):
            yield (*old[:place], NEW, *old[place + 1 :])
            yield old[:place] + old[place + 1 :]

    return after(words, times, step)


@pytest.mark.parametrize("seed", range(40))
def test_tables_under_every_choice_of_changes_and_insertions(seed):
    rng = np.random.default_rng(seed)
    weights = {word: int(rng.integers(0, STEPS + 1)) for word in "abcd"}
    words = tuple(rng.choice(list("abcde"), rng.integers(1, 7), p=(0.3, 0.3, 0.2, 0.1, 0.1)))
    words = tuple(map(str, words))
    detector = WordDetector(table_of(weights), threshold=int(rng.integers(1, 17)) / STEPS)
    [found] = detector.detect([" ".join(words)])
    total = sum(weights.get(word, 0) for word in set(words))
    assert found.score == total / STEPS and found.flagged == (total / STEPS >= detector.threshold)
    if not found.flagged:
        assert found.radius is None and found.additions == "nowhere"
        return
    assert found.additions == "anywhere" and found.insertions is None
    harmless = texts_by_changes(words, min(found.radius, 3))
    assert all(flagged(detector, harmless))
    # Whatever is added, wherever, at the same time.
    for text in harmless[:: max(1, len(harmless) // 20)]:
        assert all(flagged(detector, after(text, 2, lambda old: insertions(old, (("e",), ("a",))))))
    if found.radius < 3:  # exact
        assert found.radius + 1 >= len(words) or not all(
            flagged(detector, texts_by_changes(words, found.radius + 1))
        )
    spans = [words[start] for start, stop in found.spans if stop == start + 1]
    assert len(spans) == len(found.spans) == len(set(spans))
    assert sum(weights.get(word, 0) for word in spans) / STEPS >= detector.threshold


@pytest.mark.parametrize("seed", range(20))
def test_tables_under_every_edit_of_characters(seed):
    rng = np.random.default_rng(seed)
    vocabulary = ("ab", "ba", "aab", "bb", "a")
    weights = {word: int(rng.integers(0, STEPS + 1)) for word in vocabulary}
    text = " ".join(rng.choice(vocabulary, 5).tolist())
    detector = WordDetector(table_of(weights), threshold=int(rng.integers(1, 6)) / STEPS)
    [found] = detector.detect([text])
    if not found.flagged:
        return
    reached = {text}
    for _ in range(min(found.characters, 2)):
        reached |= {new for old in reached for new in characters(old) if new.split()}
    assert all(result.flagged for result in detector.detect(sorted(reached)))


def test_a_lost_blank_takes_two_words_out():
    detector = WordDetector(table_of({"ab": 4, "ba": 4, "bb": 4}), threshold=8 / STEPS)
    [found] = detector.detect(["ab ba bb"])
    assert (found.radius, found.characters) == (1, 0)
    [joined] = detector.detect(["abba bb"])
    assert not joined.flagged


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_a_word_is_gone_only_when_all_its_occurrences_are(words, threshold):
    weights = np.array([weight for weight, _ in words])
    counts = np.array([count for _, count in words])
    found = word_radius(weights, counts, threshold)
    if weights.sum() < threshold:
        assert found.changed is None
        return

    def fewest(gone):
        return int(counts[list(gone)].sum())

    breaking = [
        fewest(gone)
        for size in range(len(words) + 1)
        for gone in itertools.combinations(range(len(words)), size)
        if weights.sum() - weights[list(gone)].sum() < threshold
    ]
    assert found.changed == min(breaking) - 1
    assert found.characters == found.changed // 2


# ---- segments ----


def reaches(values, threshold):
    """The definition: some neighbours add up to the threshold."""
    sums = [0, *itertools.accumulate(values)]
    return any(b - a >= threshold for a, b in itertools.combinations(sums, 2))


def edited(values, worst):
    """One word replaced by the worst there is, inserted, or deleted."""
    for place in range(len(values) + 1):
        yield (*values[:place], worst, *values[place:])
        if place < len(values):
            yield (*values[:place], worst, *values[place + 1 :])
            yield values[:place] + values[place + 1 :]


@settings(max_examples=300)
@given(
    st.lists(st.integers(-3, 4), min_size=1, max_size=6).map(tuple),
    st.integers(1, 6),
    st.integers(3, 4),
)
def test_segments_under_every_choice_of_edits(values, threshold, bound):
    [found] = segment_radii([values], threshold, bound)
    if not reaches(values, threshold):
        assert found.changed is found.insertions is None and found.additions == "nowhere"
        return
    reached = {values}
    for edits in range(3):  # exact: the fewest edits that unflag, where those are at most 2
        broken = not all(reaches(one, threshold) for one in reached)
        assert broken == (found.changed < edits)
        reached |= {new for old in reached for new in edited(old, -bound)}


@settings(max_examples=300)
@given(st.lists(st.integers(-3, 4), min_size=1, max_size=7).map(tuple), st.integers(1, 6))
def test_segments_under_every_placement_of_blocks(values, threshold):
    [found] = segment_radii([values], threshold, 3)
    if found.changed is None:
        return
    endless = -100  # a block as long as needed
    gaps = range(len(values) + 1)
    for blocks in range(len(values)):
        broken = False
        for places in itertools.combinations(gaps, blocks):
            parts = itertools.pairwise([0, *places, len(values)])
            text = [value for a, b in parts for value in (*values[a:b], endless)]
            broken |= not reaches(text, threshold)
        if found.insertions is None:
            assert not broken and max(values) >= threshold
        else:
            assert broken == (found.insertions < blocks) and found.additions == "ends"
    if found.insertions is None:  # blocks in every gap, and changed words at the same time
        cut = []
        for places in itertools.combinations(range(len(values)), found.changed):
            left = [endless if at in places else value for at, value in enumerate(values)]
            cut.append([part for value in left for part in (value, endless)])
        assert all(reaches(text, threshold) for text in cut) == (found.additions == "anywhere")


def test_added_anywhere_and_changed_at_the_same_time():
    """A word that is flagged alone, and a window: text put into the window takes that one away."""
    detector = window_detector({"a", "d e"}.__contains__, (1, 2))
    [found] = detector.detect(["a b c d e"])
    assert (found.radius, found.insertions, found.additions) == (1, None, "ends")
    assert not any(flagged(detector, [("x", "b", "c", "d", "x", "e")]))
    assert found.proved == (
        "stays flagged whatever is added before or after; inside, at least 2 words must be changed "
        "or texts put in, and at least 1 word changed"
    )
    segments = SegmentDetector(signed_table({"a": 8, "d": 4, "e": 4, "x": -8}), threshold=1)
    [found] = segments.detect(["a b c d e"])
    assert (found.radius, found.insertions, found.additions) == (1, None, "ends")
    assert not any(flagged(segments, [("x", "b", "c", "d", "x", "e")]))
    [found] = segments.detect(["a b a"])
    assert (found.radius, found.additions) == (1, "anywhere")
    assert found.proved.endswith("is added anywhere; at least 2 words must be changed")


def test_a_changed_word_and_a_place_undo_what_neither_does_twice():
    words = tuple("abcdefg")
    detector = window_detector({"a b c", "c d e", "e f g"}.__contains__, (3,))
    [found] = detector.detect([" ".join(words)])
    assert (found.radius, found.insertions) == (1, 2)
    assert not any(flagged(detector, [("a", "b", "x", "d", "e", "f", "x", "g")]))
    assert found.proved == (
        "stays flagged whatever is added before or after; inside, at least 2 words must be changed "
        "or texts put in, at 3 places if no word is changed"
    )
    segments = SegmentDetector(signed_table(dict.fromkeys("abcde", 2)), threshold=0.5)
    [found] = segments.detect(["a b c d e"])
    assert (found.radius, found.insertions, found.additions) == (1, 3, "ends")
    assert found.proved == (
        "stays flagged whatever is added before or after; inside, at least 2 words must be changed "
        "or put in, at 4 places if no word is changed"
    )


@given(st.lists(st.integers(-3, 4), min_size=1, max_size=8).map(tuple), st.integers(1, 6))
def test_no_more_segments_are_disjoint(values, threshold):
    every = [
        (a, b)
        for a, b in itertools.combinations(range(len(values) + 1), 2)
        if sum(values[a:b]) >= threshold
    ]
    chosen = disjoint_segments(values, threshold)
    assert set(chosen) <= set(every) and len(chosen) == len(disjoint_windows(every))
    longer = [window for window in every if window[1] - window[0] > 1]
    if longer == every:
        shared = disjoint_segments(values, threshold, shared=1)
        assert len(shared) == len(disjoint_windows(every, -1)) and set(shared) <= set(every)


def signed_table(values):
    """A table whose words have these values, in eighths, and all others 0."""
    entries = np.zeros((BUCKETS, 2), dtype=np.int16)
    for word, value in values.items():
        entries[features([word])[0][2] % BUCKETS] = [-value, value]
    curve = (np.arange(2 * STEPS + 1) * (ONE // (2 * STEPS))).astype(np.int32)
    zeros = np.zeros(2, dtype=np.int64)
    return WordTable(entries, zeros, labels=("ham", "spam"), shift=8, curve=curve)


@pytest.mark.parametrize("seed", range(25))
def test_a_segment_detector_under_edits_characters_and_additions(seed):
    rng = np.random.default_rng(seed)
    vocabulary = ("ab", "ba", "aab", "bb", "a")
    values = {word: int(rng.integers(-STEPS, STEPS + 1)) for word in vocabulary}
    values |= {NEW: -STEPS, "abba": -STEPS, "b": -STEPS}
    words = tuple(rng.choice(vocabulary, 6).tolist())
    detector = SegmentDetector(signed_table(values), threshold=int(rng.integers(1, 9)) / STEPS)
    [found] = detector.detect([" ".join(words)])
    said = [values[word] for word in words]
    assert found.flagged == reaches(said, detector.points * STEPS // ONE)
    if not found.flagged:
        return
    steps = min(found.radius, 2)
    harmless = after(words, steps, lambda old: changes(old, ((NEW,),)))
    assert all(flagged(detector, harmless))
    ends = [(NEW, NEW, *text, "ab", NEW) for text in harmless[:: 1 + len(harmless) // 50]]
    assert all(flagged(detector, ends))
    reached = {" ".join(words)}
    for _ in range(min(found.characters, 1)):
        reached |= {new for old in reached for new in characters(old) if new.split()}
    assert all(result.flagged for result in detector.detect(sorted(reached)))
    for start, stop in found.spans:
        assert sum(said[start:stop]) / STEPS >= detector.threshold


@given(st.lists(st.lists(st.integers(-3, 4), max_size=12), max_size=6), st.integers(1, 3))
def test_texts_beside_each_other_do_not_matter(texts, threshold):
    """Of many texts, some need more edits than are tried at first."""
    texts = [*texts, [4] * 30]
    together = segment_radii(texts, threshold, 3)
    assert together == [segment_radii([values], threshold, 3)[0] for values in texts]
    assert together[-1].changed == 29


def test_a_word_repeated_without_end_takes_no_time_without_end():
    """Time grows with the words, not with their square; what is said is less, and true."""
    few, many = segment_radii([[4] * (MOST_EDITS + 1), [4] * 200_000], 3, 3)
    assert few.changed == many.changed == MOST_EDITS and many.additions == "anywhere"
    [exact] = segment_radii([[4] * MOST_EDITS], 3, 3)
    assert exact.changed == MOST_EDITS - 1


def test_a_lost_blank_costs_a_segment_two_words():
    words = ("ab", "ba", "bb", "aa")
    table = signed_table(dict.fromkeys(words, 4) | {"babb": -STEPS})
    detector = SegmentDetector(table, threshold=8 / STEPS)
    [found] = detector.detect([" ".join(words)])
    assert (found.radius, found.characters, found.additions) == (1, 0, "ends")
    [joined] = detector.detect(["ab babb aa"])
    assert not joined.flagged
