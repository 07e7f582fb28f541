"""A reader beside the copies: nothing that is certified changes, whatever the reader says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates.families import family
from ranmask.certificates.pyramid import pyramid_radii
from ranmask.certificates.readings import SCALE, levels_of, read_scores, segment_borders
from ranmask.certificates.votes import count_votes
from ranmask.errors import ClassifierError, OptionError, ReaderWarning
from ranmask.models.base import checked_scores
from ranmask.models.function import FunctionClassifier
from ranmask.models.readers import FunctionReader
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier

CLASSES = 3
NEW = "zzz"  # a word that no text here has: whoever changes a word may say anything of it


class Adversary:
    """Says of words and segments what it was told; of whatever holds a new word, the worst."""

    def __init__(self, seed: int, *, quarters: bool) -> None:
        self._rng = np.random.default_rng(seed)
        self._quarters = quarters
        self._known: dict[object, list[float]] = {}
        self.worst: int | None = None

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [self._said(text) for text in texts]

    def _said(self, text: str) -> list[float]:
        if NEW in text.split() and self.worst is not None:
            return [float(place == self.worst) for place in range(CLASSES)]
        if text not in self._known:
            drawn = np.eye(CLASSES)[self._rng.choice(CLASSES, p=[0.9, 0.07, 0.03])]
            if self._quarters:
                drawn = np.minimum(drawn + self._rng.integers(0, 3, CLASSES) / 4, 1)
            self._known[text] = drawn.tolist()
        return self._known[text]


def changed(words: Sequence[str], radius: int) -> Iterator[str]:
    for size in range(1, min(radius, len(words)) + 1):
        for places in itertools.combinations(range(len(words)), size):
            yield " ".join(NEW if at in places else word for at, word in enumerate(words))


def only_winner(protected: ProtectedClassifier, texts: Sequence[str], label: int) -> list[bool]:
    alone = []
    for scored in protected.scored(texts):
        for totals in scored.votes.totals:
            rivals = np.delete(totals, label)
            alone.append(bool((totals[label] > rivals).all()))
    return alone


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize(
    "weights", [(1.5,), (2,), (0.5, 0.75), (0, 1), (1, 0, 0.5), (0.25, 0.5, 1)]
)
@pytest.mark.parametrize("length", [1, 3, 4, 6])
def test_no_change_within_the_radius_and_one_beyond_it(
    ensemble: str, weights: tuple[float, ...], length: int
) -> None:
    proved = 0
    for seed in range(12):
        says = Adversary(seed, quarters=ensemble == "score")
        reads = Adversary(100 + seed, quarters=True)
        protected = ProtectedClassifier(
            says,
            reader=FunctionReader(reads, repeatable=True),
            reader_weights=weights,
            keep=1,
            ensemble=ensemble,
            labels=["a", "b", "c"],
            recheck=0,
        )
        words = [f"w{place}" for place in range(length)]
        [result] = protected.certify([" ".join(words)])
        if result.radius is None:
            continue
        proved += result.radius > 0
        within, beyond = [], []
        for rival in {0, 1, 2} - {result.label_id}:
            says.worst = reads.worst = rival
            within += only_winner(
                protected, list(changed(words, result.radius)) or [" ".join(words)], result.label_id
            )
            beyond += only_winner(
                protected, list(changed(words, result.radius + 1)), result.label_id
            )
        assert all(within)
        if result.radius < length:
            assert not all(beyond)  # tight: a classifier that says the same breaks one word later
    assert proved or length < 6


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize("keep", [1, 2])
def test_a_reader_that_says_what_hurts_most_each_time(ensemble: str, keep: int) -> None:
    vocabulary = ["a", "b", "c"]
    rng = np.random.default_rng(5)
    checked = 0
    for seed in range(8):
        says = Adversary(seed, quarters=ensemble == "score")
        answer = [0.0, 0.0, 0.0]
        protected = ProtectedClassifier(
            says,
            reader=lambda texts, answer=answer: [list(answer) for _ in texts],
            reader_weights=(rng.choice([0.5, 1, 1.5]),),
            keep=keep,
            ensemble=ensemble,
            labels=["x", "y", "z"],
        )
        texts = [" ".join(words) for words in itertools.product(vocabulary, repeat=3 + keep)]
        answer[:] = rng.integers(0, 5, 3) / 4
        results = protected.certify(texts)
        labels = {}
        for said in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]):
            answer[:] = said
            labels[tuple(said)] = [p.label_id for p in protected.predict(texts)]
        for place, result in enumerate(results):
            if not result.radius:
                continue
            own = texts[place].split()
            for other, text in enumerate(texts):
                if sum(map(str.__ne__, own, text.split())) <= result.radius:
                    checked += 1
                    assert all(found[other] == result.label_id for found in labels.values())
    assert checked > 100 or (keep == 2 and ensemble == "score")


def test_edits_with_a_reader() -> None:
    vocabulary = ["a", "b", "c"]
    answer = [1.0, 0.0]
    known = {"a": [1, 0], "b": [0.75, 0.25], "c": [0, 1]}
    for family_choice in (None, "distinct"):
        protected = ProtectedClassifier(
            FunctionClassifier(lambda texts: [known[text] for text in texts], hide="drop"),
            reader=lambda texts: [list(answer) for _ in texts],
            reader_weights=(0.75,),
            keep=1,
            ensemble="score",
            threat="edits",
            family=family_choice,
        )
        everything = [
            words for n in range(1, 7) for words in itertools.product(vocabulary, repeat=n)
        ]
        labels = {}
        for answer[:] in ([1.0, 0.0], [0.0, 1.0]):
            predicted = protected.predict([" ".join(words) for words in everything])
            labels[tuple(answer)] = dict(
                zip(everything, (p.label_id for p in predicted), strict=True)
            )
        answer[:] = [0.5, 0.5]
        texts = [words for words in everything if len(words) <= 5]
        seen = 0
        for words, result in zip(
            texts, protected.certify([" ".join(w) for w in texts]), strict=True
        ):
            if result.radius is None:
                continue
            assert result.radius > 0 or len(set(words)) >= 1
            for other in one_edit(words, vocabulary) if result.radius else [words]:
                for arranged in set(itertools.permutations(other)) if len(other) < 5 else [other]:
                    seen += 1
                    assert {found[arranged] for found in labels.values()} == {result.label_id}
        assert seen


def test_an_unchanged_text_under_edits_may_be_reordered() -> None:
    def says(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def reads(texts: list[str]) -> list[list[float]]:  # it tells orders apart
        return [[0.0, 1.0] if text == "one two three" else [1.0, 0.0] for text in texts]

    for family_choice in (None, "distinct"):
        protected = ProtectedClassifier(
            FunctionClassifier(says, hide="drop"),
            reader=FunctionReader(reads, repeatable=True),
            reader_weights=(4,),
            keep=1,
            threat="edits",
            family=family_choice,
        )
        one, other = protected.certify(["one two three", "three two one"])
        assert one.label != other.label
        assert one.radius is None and other.radius is None


def one_edit(words: tuple[str, ...], vocabulary: Sequence[str]) -> set[tuple[str, ...]]:
    found = {words}
    for at in range(len(words) + 1):
        found |= {(*words[:at], new, *words[at:]) for new in vocabulary}
        if at < len(words):
            found |= {(*words[:at], new, *words[at + 1 :]) for new in vocabulary}
            if len(words) > 1:
                found.add((*words[:at], *words[at + 1 :]))
    return found


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_tree_costs_what_an_exhaustive_search_finds(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 7))
    classes = data.draw(st.integers(2, 3))
    weights = tuple(data.draw(st.lists(st.sampled_from([0, 0.25, 1, 2.5]), min_size=1, max_size=4)))
    if not any(weights):
        weights = (*weights[:-1], 1.0)
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    levels = levels_of(weights)
    # One copy a word, or copies that show some words twice and others never.
    repeated = data.draw(st.booleans())
    copies = family(length, 1, choice="sampled" if repeated else "all", masks=9, seed=seed % 7)
    scores = rng.integers(0, 5, (len(copies), classes)) / 4
    scores[:, 0] = np.minimum(scores[:, 0] + 0.5, 1)
    said = rng.integers(0, 5, (1, sum(levels), classes)) / 4
    said[:, :, 0] = np.minimum(said[:, :, 0] + 0.25, 1)
    nodes: list[tuple[int, ...]] = []
    bounds: list[float] = []
    for pieces, weight in zip(levels, [w for w in weights if w], strict=True):
        borders = segment_borders(np.array([length]), pieces)[0].tolist()
        nodes += [tuple(range(a, b)) for a, b in itertools.pairwise(borders)]
        bounds += [weight] * pieces
    for node, held in enumerate(nodes):
        if not held:
            said[0, node] = 0
    if levels[0] == 1:  # of the whole text the named class counts, in full
        said[0, 0] = np.eye(classes)[said[0, 0].argmax()]
    votes = count_votes(scores, "score", "scores", 0).beside(
        read_scores(said, weights, repeatable=True)
    )
    [radius] = pyramid_radii(votes, [copies])
    label = int(votes.winners[0])
    total = scores.sum(axis=0) + (said[0] * np.array(bounds)[:, None]).sum(axis=0)
    worst = [0.0] * (length + 1)  # the least lead of the label after so many changed words
    for size in range(length + 1):
        leads = []
        for rival in set(range(classes)) - {label}:
            for places in itertools.combinations(range(length), size):
                met = np.isin(copies.sets[:, 0], places)
                lead = total[label] - total[rival]
                lead -= (scores[met, label] - scores[met, rival] + 1).sum()
                for held, bound, row in zip(nodes, bounds, said[0], strict=True):
                    if set(held) & set(places):
                        lead -= bound * (1 + row[label] - row[rival])
                leads.append(lead)
        worst[size] = min(leads)
    proved = [size for size in range(length + 1) if min(worst[: size + 1]) > 1e-9]
    assert radius.words == (max(proved) if proved else None)
    if radius.words is not None and radius.words < length:
        assert len(radius.worst) == radius.words + 1 and radius.tight


def test_borders_are_nested_and_cover_every_word() -> None:
    words = np.arange(1, 200)
    for pieces in (1, 2, 4, 8, 16, 32):
        borders = segment_borders(words, pieces)
        assert (borders[:, 0] == 0).all() and (borders[:, -1] == words).all()
        assert (np.diff(borders) >= 0).all()
        finer = segment_borders(words, 2 * pieces)
        assert (finer[:, ::2] == borders).all()


class Broken:
    """A model that fails in some way for some texts."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, texts: list[str]) -> Any:
        if not any("bad" in text for text in texts):
            return [[0.0, 1.0]] * len(texts)
        return {
            "raises": lambda: 1 / 0,
            "nan": lambda: [[float("nan"), 1.0]] * len(texts),
            "infinite": lambda: [[float("inf"), 0.0]] * len(texts),
            "above one": lambda: [[3.0, 0.0]] * len(texts),
            "three classes": lambda: [[0.0, 0.0, 1.0]] * len(texts),
            "too few rows": lambda: [[0.0, 1.0]] * (len(texts) - 1),
            "nothing": lambda: None,
            "words": lambda: ["positive"] * len(texts),
        }[self.how]()


@pytest.mark.parametrize(
    "how",
    ["raises", "nan", "infinite", "above one", "three classes", "too few rows", "nothing", "words"],
)
def test_a_text_without_an_answer_is_decided_by_its_copies(how: str) -> None:
    def says(texts: list[str]) -> list[list[float]]:
        return [[0.0, 1.0] if text.split()[0] == "no" else [1.0, 0.0] for text in texts]

    base = FunctionClassifier(says, hide="drop", labels=["yes", "no"])
    plain = SmoothedClassifier(base, keep=1)
    protected = ProtectedClassifier(base, reader=Broken(how), reader_weights=(3,), keep=1)
    bad, good, clear = "bad day so far", "a good day", " ".join(["bad"] * 9)
    with pytest.warns(ReaderWarning, match="did not answer for 2 of 3 texts"):
        results = protected.certify([bad, good, clear])
    assert [result.reader for result in results] == ["failed", "answered", "failed"]
    alone = plain.certify([bad, good, clear])
    assert results[0].label == alone[0].label == "yes"
    # 4 votes lead by 4, and 3 of them are the reader's, whatever it says another time.
    assert results[0].radius == 0 and alone[0].radius == 1
    # 9 votes: 9 > 3 + 2 d holds for d = 2, whoever fails.
    assert results[2].radius == 2 and alone[2].radius == 4
    assert results[1].label == "yes" and results[1].radius is None  # a tie, 3 copies against 3


def test_radius_0_needs_a_reader_that_says_the_same_again() -> None:
    def says(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def reads(texts: list[str]) -> list[list[float]]:
        return [[0.0, 1.0] for _ in texts]

    def proved(reader: object, weight: float) -> tuple[str, int | None]:
        protected = ProtectedClassifier(says, reader=reader, reader_weights=(weight,), keep=1)
        [result] = protected.certify(["one two three"])
        return result.label, result.radius

    sure = FunctionReader(reads, repeatable=True)
    assert proved(reads, 1) == ("0", 0)  # 3 > 1, but not 3 > 1 + 2
    assert proved(reads, 4) == ("1", None)  # the reader decides, and may say something else
    assert proved(sure, 4) == ("1", 0)
    assert proved(sure, 3) == ("0", None)  # a tie
    moves = FunctionReader(lambda texts: [[0.4, 0.6] for _ in texts], repeatable=True)
    moves.tolerance = 0.05
    assert proved(moves, 4) == ("1", 0)
    moves.tolerance = 0.1
    assert proved(moves, 4) == ("1", None)  # 0.6 - 0.4 is no more than two scores may move
    assert proved(moves, 1) == ("0", 0)  # and here its vote does not matter


def test_segments_need_a_reader_that_is_repeatable_and_answers() -> None:
    def says(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def reads(texts: list[str]) -> list[list[float]]:
        if any(text == "three" for text in texts):
            raise RuntimeError("no")
        return [[1.0, 0.0] for _ in texts]

    with pytest.raises(OptionError, match="repeatable=True"):
        ProtectedClassifier(says, reader=reads, reader_weights=(1, 1), keep=1)
    reader = FunctionReader(reads, repeatable=True)
    protected = ProtectedClassifier(says, reader=reader, reader_weights=(1, 1), keep=1)
    with pytest.warns(ReaderWarning), pytest.raises(ClassifierError, match="segment") as caught:
        protected.certify(["one two", "one two three"])
    assert caught.value.index == 1


def test_weights_are_rounded_once() -> None:
    rows = checked_scores([[0.3, 0.7]], 1, 2)[None]
    readings = read_scores(rows, (1 / 3,))
    assert readings.bounds.tolist() == [round(SCALE / 3)]
    assert readings.points.tolist() == [[[0, round(SCALE / 3)]]]  # a vote, counted in full
    assert abs(readings.differences(np.array([0]))).max() <= readings.reserve


@pytest.mark.parametrize(
    ("weights", "keep"), [((1.5,), 1), ((0, 0.5), 1), ((1, 0.5, 0.25), 1), ((1.5,), 2)]
)
def test_a_curve_is_above_zero_exactly_up_to_the_radius(
    weights: tuple[float, ...], keep: int
) -> None:
    from ranmask.certificates.margins import exact_margins

    for seed in range(10):
        protected = ProtectedClassifier(
            Adversary(seed, quarters=True),
            reader=FunctionReader(
                Adversary(50 + seed, quarters=True), repeatable=len(weights) > 1 or seed % 2 == 0
            ),
            reader_weights=weights,
            keep=keep,
            ensemble="score",
            labels=["a", "b", "c"],
            recheck=0,
        )
        [scored] = protected.scored(["w0 w1 w2 w3 w4 w5 w6"])
        [result] = protected.certify(["w0 w1 w2 w3 w4 w5 w6"])
        curve = exact_margins(scored.votes, scored.texts[0].family, result.radius)
        proved = -1 if result.radius is None else result.radius
        above = [margin > 0 for margin in curve.margins]
        assert above == [words <= proved for words in range(len(above))]
