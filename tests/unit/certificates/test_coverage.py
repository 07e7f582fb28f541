"""The search against brute force: never a wrong proof, never a wrong answer."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates.coverage import Coverage, OutOfWorkError
from ranmask.certificates.families import family


@st.composite
def problems(draw):
    words = draw(st.integers(2, 9))
    kept = draw(st.integers(1, words))
    chosen = family(
        words,
        kept,
        choice=draw(st.sampled_from(["sampled", "windows"])),
        masks=draw(st.integers(1, 40)),
        seed=draw(st.integers(0, 3)),
    )
    most = draw(st.sampled_from([1, 2, 2000]))
    weights = draw(st.lists(st.integers(0, most), min_size=len(chosen), max_size=len(chosen)))
    return words, chosen.sets, np.array(weights, dtype=np.int64)


def cost(sets, weights, positions):
    return int(weights[np.isin(sets, list(positions)).any(axis=1)].sum())


@settings(max_examples=400)
@given(problems(), st.integers(1, 6), st.integers(-2, 3))
def test_search_agrees_with_brute_force(problem, size, offset):
    words, sets, weights = problem
    size = min(size, words)
    best = max(cost(sets, weights, chosen) for chosen in itertools.combinations(range(words), size))
    target = best + offset
    answer = Coverage(sets, weights, words).search(size, target)
    if target > best:
        assert answer is None
    else:
        assert len(answer) <= size
        assert cost(sets, weights, answer) >= target


@settings(max_examples=100)
@given(problems(), st.integers(1, 6))
def test_greedy_tells_its_true_cost(problem, most):
    words, sets, weights = problem
    chosen, total = Coverage(sets, weights, words).greedy(10**9, min(most, words))
    assert len(set(chosen)) == len(chosen) == min(most, words)
    assert total == cost(sets, weights, chosen)


def test_out_of_work_is_never_a_proof():
    sets = family(40, 4, masks=2000).sets
    problem = Coverage(sets, np.full(2000, 2, dtype=np.int64), 40, work=0)
    _, total = problem.greedy(10**9, 12)
    with pytest.raises(OutOfWorkError):
        problem.search(12, total + 1)


def test_weights_that_doubles_cannot_add_are_refused():
    sets = family(6, 2).sets
    with pytest.raises(ValueError, match="too large"):
        Coverage(sets, np.full(len(sets), 2**50, dtype=np.int64), 6)


def test_negative_weights_are_refused():
    sets = family(6, 2).sets
    with pytest.raises(ValueError, match="non-negative"):
        Coverage(sets, np.full(len(sets), -1, dtype=np.int64), 6)


def test_many_positions_stay_bounded():
    """Far more candidates than the overlap table holds: answered, and never wrongly proved."""
    sets = family(20_000, 2, masks=3000).sets
    weights = np.full(3000, 2, dtype=np.int64)
    problem = Coverage(sets, weights, 20_000)
    chosen, total = problem.greedy(10**9, 5)
    assert cost(sets, weights, chosen) == total
    assert problem.search(5, total) is not None
    assert problem.search(5, 10**6) is None
