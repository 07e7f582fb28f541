"""Requests compute in turns, pass them on while they wait, and stop when they are over."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranmask.errors import check_cancelled
from ranmask.serving import context as context_module
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Cancelled, DeadlinePassed
from ranmask.serving.workers import turns_of_requests

PATIENCE = 20


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as executor:
        yield executor


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what was waited for never came"
        time.sleep(0.001)


def test_so_many_at_once_and_no_more(threads):
    turns, inside, most = FairSemaphore(3), [], []

    def work(number):
        with RequestContext().at_work(turns):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)

    list(threads.map(work, range(8)))
    assert max(most) == 3
    assert not turns.wanted


def test_who_waits_for_copies_lets_others_compute(threads):
    turns, copies = FairSemaphore(1), threading.Event()

    def waits():
        context = RequestContext()
        with context.at_work(turns):
            context.wait(copies)
            assert turns._drawn - turns._served == 1, "its turn came again before it went on"
        return "done"

    waiting = threads.submit(waits)
    until(lambda: turns._served == 1)
    with RequestContext().at_work(turns):
        assert not waiting.done()
    copies.set()
    assert waiting.result(PATIENCE) == "done"


def test_a_long_computation_passes_its_turn_on(threads, monkeypatch):
    monkeypatch.setattr(context_module, "_TURN_SECONDS", 0.01)
    turns, begun, stop = FairSemaphore(1), threading.Event(), threading.Event()

    def computes():
        with RequestContext().at_work(turns):
            begun.set()
            while not stop.is_set():
                check_cancelled()
        return "done"

    long = threads.submit(computes)
    assert begun.wait(PATIENCE)
    with RequestContext().at_work(turns):
        assert not long.done()
    stop.set()
    assert long.result(PATIENCE) == "done"


def test_a_turn_is_kept_where_nobody_wants_it(monkeypatch):
    monkeypatch.setattr(context_module, "_TURN_SECONDS", 0.0)
    turns = FairSemaphore(1)
    with RequestContext().at_work(turns):
        for _ in range(100):
            check_cancelled()
        assert turns._drawn == 1
        assert not turns.wanted


def test_a_turn_is_kept_until_its_time_is_over(threads, monkeypatch):
    monkeypatch.setattr(context_module, "_TURN_SECONDS", 1000.0)
    turns = FairSemaphore(1)
    with RequestContext().at_work(turns):
        other = threads.submit(lambda: turns.__enter__() or turns.__exit__())
        until(lambda: turns.wanted)
        for _ in range(100):
            check_cancelled()
        assert turns._served == 0
    other.result(PATIENCE)


def test_who_was_cancelled_in_the_turn_of_another_stops_at_once(threads, monkeypatch):
    monkeypatch.setattr(context_module, "_TURN_SECONDS", 0.0)
    turns, context = FairSemaphore(1), RequestContext()

    def other():
        with turns:
            context.cancel()

    with context.at_work(turns):
        cancelling = threads.submit(other)
        until(lambda: turns.wanted)
        with pytest.raises(Cancelled):
            check_cancelled()
    cancelling.result(PATIENCE)


@pytest.mark.parametrize(("cores", "at_once"), [(None, 2), (1, 2), (2, 2), (8, 8)])
def test_requests_compute_on_as_many_cores_as_there_are(monkeypatch, cores, at_once):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert turns_of_requests()._at_once == at_once


@pytest.mark.parametrize(
    ("end", "fault"), [("cancel", Cancelled), ("late", DeadlinePassed), ("before", Cancelled)]
)
def test_computations_stop_when_the_request_is_over(end, fault):
    turns = FairSemaphore(1)
    context = RequestContext(time.monotonic() + (0.02 if end == "late" else 100))
    if end == "before":
        context.cancel()
    with pytest.raises(fault), context.at_work(turns):
        assert end != "before"
        if end == "cancel":
            threading.Timer(0.02, context.cancel).start()
        for _ in range(10_000):
            check_cancelled()
            time.sleep(0.001)
    assert turns._drawn == turns._served == 1, "the turn was given back"


def test_what_was_cancelled_while_it_waited_for_a_turn_does_not_go_on(threads):
    turns, context = FairSemaphore(1), RequestContext()

    def work():
        with context.at_work(turns):
            raise AssertionError("computed for nobody")

    with turns:
        waiting = threads.submit(work)
        until(lambda: turns.wanted)
        context.cancel()
    with pytest.raises(Cancelled):
        waiting.result(PATIENCE)
