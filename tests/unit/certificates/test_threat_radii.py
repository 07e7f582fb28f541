"""What each threat costs, against its definition: all choices of steps, by brute force."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates.families import distinct_family, family
from ranmask.certificates.readings import levels_of, read_scores, segment_borders
from ranmask.certificates.replacements import Replacements, least_said
from ranmask.certificates.threat_radii import ThreatProofs
from ranmask.certificates.threats import MOVING, THREATS, step_costs
from ranmask.certificates.votes import SCALE, count_votes

QUARTER = SCALE // 4


def votes_of(rows, copies=None):
    """Scores in quarters as votes of a score ensemble."""
    return count_votes(np.array(rows) / 4, "score", "scores", 0, copies)


@st.composite
def some_texts(draw, most=6):
    """Rows of scores, in quarters, that mostly speak for class 0."""
    classes = draw(st.integers(2, 3))
    row = st.tuples(st.integers(1, 4), *[st.integers(0, 3)] * (classes - 1))
    return draw(st.lists(st.lists(row, min_size=1, max_size=most), min_size=1, max_size=4))


def rivals_of(rows):
    """Label, and what each copy says for it minus for each rival, in quarters."""
    rows = np.array(rows)
    label = int(rows.sum(axis=0).argmax())
    return label, [rows[:, label] - rows[:, c] for c in range(rows.shape[1]) if c != label]


def smallest_breaking(threat, values, lowest=None):
    """How many steps reach a margin, by trying all, where every word counts; None: not any."""
    words, margin = len(values), int(values.sum())
    if margin <= 0:
        return 0
    places = range(words)
    for steps in range(1, words + 2):
        if threat == "span":
            chosen = [range(s, s + steps) for s in range(words - steps + 1)]
            costs = [sum(values[i] + 4 for i in run) for run in chosen]
        else:
            costs = []
            for size in range(min(steps, words) + 1):
                for gone in itertools.combinations(places, size):
                    out = sum(int(values[i]) for i in gone)
                    if threat == "substitutions":
                        costs.append(out + 4 * size)
                    elif threat == "edits":
                        costs.append(out + 4 * steps)
                    elif threat == "insertions":
                        costs.append(4 * steps)
                    elif threat == "deletions":
                        costs += [out] * (size < words)
                    elif threat == "synonyms":
                        costs.append(sum(int(values[i] - lowest[i]) for i in gone))
                    else:  # one step: 3 words, at most 2 out and at most 2 in
                        costs.append(out + 4 * 2 * steps)
            if threat == "characters":
                for size in range(steps, min(2 * steps, words) + 1):
                    for gone in itertools.combinations(places, size):
                        costs.append(sum(int(values[i]) for i in gone) + 4 * (3 * steps - size))
        if costs and max(costs) >= margin:
            return steps
        if threat == "deletions" and steps == words:
            return steps  # nothing is left
        if threat == "synonyms" and steps == words:
            return None
    raise AssertionError(threat)


@settings(max_examples=150, deadline=None)
@given(some_texts(), st.randoms(use_true_random=False))
def test_every_word_counts(texts, random):
    copies = np.array([len(text) for text in texts])
    votes = votes_of([row for text in texts for row in text], copies)
    families = [family(len(text), 1, choice="all") for text in texts]
    listed = [[random.choice([0, 0, 1, 2]) for _ in text] for text in texts]
    rows = [
        [[random.randrange(5) for _ in text[0]] for _ in range(sum(sizes))]
        for text, sizes in zip(texts, listed, strict=True)
    ]
    flat = [row for text in rows for row in text] or [[0] * len(texts[0][0])]
    said = count_votes(np.array(flat) / 4, "score", "scores", 0, np.array([len(r) for r in rows]))
    said = said if any(rows) else replace(said, points=said.points[:0])
    sizes = np.array([size for text in listed for size in text])
    replacements = Replacements(sizes, least_said(said, sizes, votes.winners))
    proofs = ThreatProofs(votes, families, replacements)
    for threat in THREATS:
        radii = proofs.radii(threat)
        assert proofs.numbers(threat) == [radius.words for radius in radii]
        for text, radius, own, more in zip(texts, radii, listed, rows, strict=True):
            label, differences = rivals_of(text)
            worst = []
            for number, values in enumerate(differences):
                rival = number + (number >= label)
                left, lowest = iter(more), []
                for value, size in zip(values, own, strict=True):
                    synonyms = [next(left) for _ in range(size)]
                    lowest.append(min([value, *(s[label] - s[rival] for s in synonyms)]))
                worst.append(smallest_breaking(threat, values, lowest))
            expected = min((len(text) if steps is None else steps - 1) for steps in worst)
            assert radius.words == (None if expected < 0 else expected), (threat, text)
            named = (
                0 if radius.words in (None, len(text)) or threat == "insertions" else expected + 1
            )
            assert len(set(radius.worst)) == len(radius.worst) == named


@settings(max_examples=100, deadline=None)
@given(some_texts(), st.data())
def test_a_span_over_any_family_and_segments(texts, data):
    text = texts[0]
    words = len(text) + 1
    kept = data.draw(st.integers(1, min(3, words)))
    kept_sets = family(words, kept, choice="sampled", masks=7, seed=data.draw(st.integers(0, 9)))
    rows = np.array([text[i % len(text)] for i in range(len(kept_sets))])
    weights = data.draw(st.sampled_from([None, (1.0,), (0, 0.5), (1.0, 0.25, 0.5)]))
    votes, reserve = votes_of(rows), 0
    label, differences = rivals_of(rows)
    nodes, falls, leads = [], [], np.zeros(len(differences))
    if weights is not None:
        if len(weights) > 1 and kept > 1:
            return
        levels = levels_of(weights)
        said = np.array([[data.draw(st.sampled_from(text)) for _ in range(sum(levels))]]) / 4
        bounds = []
        for pieces, weight in zip(levels, [w for w in weights if w], strict=True):
            borders = segment_borders(np.array([words]), pieces)[0].tolist()
            nodes += [set(range(a, b)) for a, b in itertools.pairwise(borders)]
            bounds += [weight] * pieces
        for node, held in enumerate(nodes):
            if not held:
                said[0, node] = 0
        votes = votes.beside(read_scores(said, weights, repeatable=False))
        reserve = 4 * weights[0]
        label = int(votes.winners[0])
        rivals = [c for c in range(rows.shape[1]) if c != label]
        differences = [rows[:, label] - rows[:, c] for c in rivals]
        first = 1 if weights[0] else 0
        nodes, bounds = nodes[first:], bounds[first:]
        of_nodes = np.array(
            [
                [
                    4 * b * (row[label] - row[c])
                    for b, row in zip(bounds, said[0, first:], strict=True)
                ]
                for c in rivals
            ]
        ).reshape(len(rivals), -1)
        falls, leads = of_nodes + 4 * np.array(bounds), of_nodes.sum(axis=1)
    [radius] = ThreatProofs(votes, [kept_sets]).radii("span")
    proved = []
    for number, values in enumerate(differences):
        margin = values.sum() + leads[number] - reserve
        steps = 0
        while margin > 0 and steps < words:
            costs = []
            for start in range(words - steps):
                run = set(range(start, start + steps + 1))
                met = np.isin(kept_sets.sets, list(run)).any(axis=1)
                cost = (values[met] + 4).sum()
                cost += sum(falls[number][n] for n, held in enumerate(nodes) if held & run)
                costs.append(cost)
            if max(costs) >= margin:
                break
            steps += 1
        proved.append(steps if margin > 0 else -1)
    expected = min(proved)
    assert radius.words == (None if expected < 0 else expected)
    if radius.words is not None and radius.words < words:
        first, *_, last = [*radius.worst, radius.worst[-1]]
        assert radius.worst == tuple(range(first, last + 1)) and len(radius.worst) == expected + 1


def brute_once(threat, values, places, blank):
    """Steps that reach a margin where each distinct word counts once, by all sets of positions."""
    words, margin = len(places), int(values.sum())
    if margin <= 0:
        return 0
    for steps in range(1, 2 * words + 3):
        costs = []
        for size in range(min(words, 2 * steps) + 1):
            runs = [range(s, s + size) for s in range(words - size + 1)]
            sets = runs if threat == "span" else itertools.combinations(range(words), size)
            for gone in sets:
                left = {places[i] for i in range(words) if i not in gone}
                out = sum(int(values[w]) for w in set(places) - left)
                if threat == "span" and size == steps:
                    costs.append(out + 4 * steps)
                elif threat == "deletions" and size <= steps and size < words:
                    costs.append(out)
                elif threat in ("edits", "substitutions") and size <= steps:
                    costs.append(out + 4 * steps)
                elif threat == "insertions":
                    costs.append(4 * steps)
                elif threat == "characters":
                    costs.append(out + 4 * min(2 * steps, 3 * steps - size))
        if max(costs, default=0) >= margin or (threat == "deletions" and steps == words):
            return steps
    raise AssertionError(threat)


@settings(max_examples=150, deadline=None)
@given(some_texts(most=4), st.booleans(), st.data())
def test_each_distinct_word_counts_once(texts, blank, data):
    families, rows, copies = [], [], []
    for text in texts:
        more = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=4))
        words = data.draw(st.permutations([*range(len(text)), *more]))
        order = list(dict.fromkeys(words))
        families.append(distinct_family(words, 99, blank=blank))
        own = [text[w] for w in order] + ([text[0]] if blank else [])
        rows += own
        copies.append(len(own))
    votes = votes_of(rows, np.array(copies))
    proofs = ThreatProofs(votes, families)
    for threat in ("substitutions", *MOVING, "span"):
        radii = proofs.radii(threat)
        assert proofs.numbers(threat) == [radius.words for radius in radii]
        start = 0
        for one, count, radius in zip(families, copies, radii, strict=True):
            own = rows[start : start + count]
            start += count
            _, differences = rivals_of(own)
            places = one.places.tolist()
            expected = min(brute_once(threat, values, places, blank) for values in differences) - 1
            assert radius.words == (None if expected < 0 else expected), (threat, own, places)
            assert radius.words is None or radius.tight
            if radius.words is not None and threat != "insertions" and radius.words < one.words:
                assert len(set(radius.worst)) == radius.words + 1


@settings(max_examples=600, deadline=None)
@given(some_texts(most=4), st.data())
def test_synonyms_of_words_that_count_once(texts, data):
    """No choice of synonyms costs more, those that stand in the text already among them."""
    text, classes = texts[0], len(texts[0][0])
    more = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=2))
    words = data.draw(st.permutations([*range(len(text)), *more]))
    order = list(dict.fromkeys(words))
    one = distinct_family(words, 99)
    rows = [text[w] for w in order]
    scores = {w: text[w] for w in order}
    new = [f"z{n}" for n in range(3)]
    scores |= {z: tuple(data.draw(st.integers(0, 4)) for _ in range(classes)) for z in new}
    table = {
        w: data.draw(st.lists(st.sampled_from([*order, *new]), unique=True, max_size=3))
        for w in order
    }
    table = {w: [z for z in listed if z != w] for w, listed in table.items()}
    listed = [z for w in order for z in table[w]]
    said = votes_of([scores[z] for z in listed] or [[0] * classes])
    if not listed:
        said = replace(said, points=said.points[:0], copies=np.array([0]))
    sizes = np.array([len(table[w]) for w in order])
    numbers = {word: number for number, word in enumerate([*order, *new])}
    names = np.array([numbers[z] for z in listed], dtype=np.int64)
    votes = votes_of(rows)
    given = Replacements(sizes, None, said, names, np.arange(len(order)))
    [radius] = ThreatProofs(votes, [one], given).radii("synonyms")
    label = int(votes.winners[0])
    only = (np.array(rows).sum(axis=0) == np.array(rows).sum(axis=0).max()).sum() == 1
    assert (radius.words is not None) == only
    if radius.words is None:
        return
    for choice in itertools.product(*([w, *table[w]] for w in words)):
        changed = sum(a != b for a, b in zip(choice, words, strict=True))
        totals = np.array([scores[w] for w in set(choice)]).sum(axis=0)
        kept = (np.delete(totals, label) < totals[label]).all()
        assert kept or changed > radius.words


def test_the_table_of_costs():
    values = np.array([3, -2, 0, 4])
    costs = {
        threat: step_costs(threat, values, 4, np.array([1, -2, -4, 4])).tolist()
        for threat in THREATS
    }
    assert costs == {
        "substitutions": [7, 2, 4, 8],
        "edits": [7, 4, 4, 8],
        "insertions": [4, 4, 4, 4],
        "deletions": [3, 0, 0, 4],
        "characters": [11, 8, 8, 12],
        "span": [7, 2, 4, 8],
        "synonyms": [2, 0, 4, 0],
    }


def test_what_families_do_not_go_with():
    votes = votes_of([(4, 0)] * 3)
    for threat in (*MOVING, "synonyms"):
        with pytest.raises(ValueError, match="each copy shows one word"):
            ThreatProofs(votes, [family(3, 2, choice="all")]).numbers(threat)
    with pytest.raises(ValueError, match="give replacements"):
        ThreatProofs(votes, [family(3, 1, choice="all")]).numbers("synonyms")
    read = votes.beside(read_scores(np.zeros((1, 2, 2)), (0, 1.0), repeatable=True))
    with pytest.raises(ValueError, match="cut by position"):
        ThreatProofs(read, [family(3, 1, choice="all")]).numbers("insertions")
