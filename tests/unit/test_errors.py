"""Long computations stop where they are told to, and are the same where nobody tells them."""

import threading

import numpy as np
import pytest

from ranmask.certificates import families
from ranmask.certificates.characters import characters_proved
from ranmask.certificates.exact import exact_radius
from ranmask.certificates.paper import Overlaps
from ranmask.errors import check_cancelled, interruptible


class EnoughError(Exception):
    pass


def stopper(after):
    calls = []

    def check():
        calls.append(1)
        if len(calls) > after:
            raise EnoughError

    return calls, check


def test_nothing_happens_where_nobody_asked():
    check_cancelled()


def test_only_this_thread_and_only_inside():
    calls, check = stopper(100)
    with interruptible(check):
        check_cancelled()
        other = threading.Thread(target=check_cancelled)
        other.start()
        other.join()
        assert len(calls) == 1
        with interruptible(lambda: None):
            check_cancelled()
        check_cancelled()
    check_cancelled()
    assert len(calls) == 2


def hard_search():
    """All copies vote for the label: the search takes many steps."""
    sets = families.family(120, 3, choice="sampled", masks=2000).sets
    return exact_radius(sets, np.ones((1, len(sets)), dtype=np.int64), 120, work=3_000_000)


def large_draw():
    return families.sampled_sets(2000, 2, 6000, seed=1)


def many_overlaps():
    sets = families.sampled_sets(20, 2, 9000, seed=1)
    return Overlaps.of(sets, np.ones(9000, dtype=bool), 20)


def edited_characters():
    words = np.ones((1, 50), dtype=np.int64)
    one = np.array([[9]]), np.array([50]), np.array([0])
    return characters_proved(words, (0 * words,) * 3, *one, 1)


COMPUTATIONS = [hard_search, large_draw, many_overlaps, edited_characters]


@pytest.mark.parametrize("compute", COMPUTATIONS)
def test_long_computations_can_be_stopped(compute):
    _, check = stopper(1)
    with interruptible(check), pytest.raises(EnoughError):
        compute()


def test_the_answer_is_the_same():
    calls, check = stopper(10**9)
    with interruptible(check):
        watched = hard_search()
    assert len(calls) > 20
    assert hard_search() == watched
