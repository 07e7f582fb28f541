"""Short requests that are answered together: each as it would be alone."""

import asyncio
import gc
import threading
import time
import weakref

import pytest

from ranmask.errors import check_cancelled
from ranmask.serving import workers as batching
from ranmask.serving.problems import Busy, Cancelled, Closing, DeadlinePassed, Problem
from ranmask.serving.workers import RequestBatcher, Workers


async def stays():
    """A client that waits."""
    await asyncio.Event().wait()


class Model:
    """Answers texts; the first calls wait for ``go``, with ``deaf`` whatever their contexts say."""

    def __init__(self, held=0, fails=lambda texts: None, deaf=False):
        self.calls = []
        self.contexts = []
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self._held = held
        self._fails = fails
        self._deaf = deaf
        self._lock = threading.Lock()

    def __call__(self, texts, context):
        with self._lock:
            self.calls.append(list(texts))
            self.contexts.append(context)
            held = len(self.calls) <= self._held
        self.begun.release()
        if held and self._deaf:
            assert self.go.wait(10)
        elif held:
            context.wait(self.go)  # as for copies: others may compute meanwhile
        error = self._fails(texts)
        if error is not None:
            raise error
        return [{"said": text} for text in texts]


class HeldText(str):
    """A text that can be seen to be forgotten."""


class Party:
    """Requests to a gathering, in one event loop."""

    def __init__(self, model, *, seconds=10.0, threads=4, waiting=1000):
        self.model = model
        self.workers = Workers(threads, waiting, seconds)
        self.batcher = RequestBatcher(self.workers, threads)

    def ask(self, *texts, question="q", copies=1, receive=stays, model=None):
        run = self.batcher.run(receive, question, model or self.model, texts, copies)
        return asyncio.ensure_future(run)

    async def begun(self):
        await asyncio.to_thread(self.model.begun.acquire)

    def close(self):
        self.model.go.set()
        self.batcher.close()
        self.workers.close()


def played(scene, model, **settings):
    async def play():
        party = Party(model, **settings)
        try:
            async with asyncio.timeout(20):
                await scene(party)
        finally:
            party.close()

    asyncio.run(play())


def test_nobody_waits_for_company():
    async def scene(party):
        assert await party.ask("a", "b") == [{"said": "a"}, {"said": "b"}]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "nobody watches clients"

    model = Model()
    played(scene, model)
    assert model.calls == [["a", "b"]]


def test_who_comes_meanwhile_goes_together_and_each_gets_its_own():
    async def scene(party):
        first = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        later = [party.ask(f"{n}", f"{n}'") for n in range(50)]
        await asyncio.sleep(0.05)
        party.model.go.set()
        assert await asyncio.gather(*first) == [[{"said": "x"}], [{"said": "y"}]]
        answers = await asyncio.gather(*later)
        assert answers == [[{"said": f"{n}"}, {"said": f"{n}'"}] for n in range(50)]

    model = Model(held=2)
    played(scene, model)
    assert len(model.calls) == 3, "two that found nobody, and all the others"


def test_other_questions_do_not_wait():
    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        assert await party.ask("a", question="other") == [{"said": "a"}]
        party.model.go.set()
        await asyncio.gather(*held)

    played(scene, Model(held=2))


def test_only_a_client_that_leaves_has_left():
    async def scene(party):
        said = []

        async def talks():
            said.append(1)
            if len(said) > 2:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        held = party.ask("x", receive=talks)
        await party.begun()
        await asyncio.sleep(0.02)
        party.model.go.set()
        assert await held == [{"said": "x"}]
        assert len(said) == 3

    played(scene, Model(held=1))


def test_a_group_is_no_larger_than_a_batch(monkeypatch):
    monkeypatch.setattr(batching, "_TOGETHER_COPIES", 10)

    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        later = [party.ask(f"{n}", copies=4) for n in range(5)]
        await asyncio.sleep(0.05)
        party.model.go.set()
        await asyncio.gather(*held, *later)

    model = Model(held=2)
    played(scene, model)
    assert sorted(map(len, model.calls)) == [1, 1, 1, 2, 2]


def test_a_group_may_be_as_large_as_a_batch_and_one_that_is_larger_goes_alone(monkeypatch):
    monkeypatch.setattr(batching, "_TOGETHER_COPIES", 10)

    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        later = [party.ask(f"{n}", copies=copies) for n, copies in enumerate((11, 5, 5))]
        await asyncio.sleep(0.05)
        party.model.go.set()
        await asyncio.gather(*held, *later)

    model = Model(held=2)
    played(scene, model)
    assert sorted(model.calls) == [["0"], ["1", "2"], ["x"], ["y"]]


def test_a_group_has_until_the_deadline_of_its_youngest():
    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        older = party.ask("older")
        await asyncio.sleep(0.1)
        asked = time.monotonic()
        younger = party.ask("younger")
        await asyncio.sleep(0.05)
        party.model.go.set()
        await asyncio.gather(*held, older, younger)
        assert party.model.calls[2] == ["older", "younger"]
        assert party.model.contexts[2].deadline >= asked + 10

    played(scene, Model(held=2), seconds=10.0)


def test_one_that_fails_does_not_spoil_the_others():
    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        later = [party.ask(text) for text in ("a", "poison", "b")]
        await asyncio.sleep(0.05)
        party.model.go.set()
        await asyncio.gather(*held)
        a, poison, b = await asyncio.gather(*later, return_exceptions=True)
        assert (a, b) == ([{"said": "a"}], [{"said": "b"}])
        assert isinstance(poison, ZeroDivisionError)

    def fails(texts):
        return ZeroDivisionError() if "poison" in texts else None

    played(scene, Model(held=2, fails=fails))


def test_a_refusal_of_the_service_is_told_to_all_and_not_tried_again():
    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        later = [party.ask("a"), party.ask("b")]
        await asyncio.sleep(0.05)
        party.model.go.set()
        for one in (*held, *later):
            with pytest.raises(Busy):
                await one

    model = Model(held=2, fails=lambda texts: Busy(1.0))
    played(scene, model)
    assert sorted(model.calls) == [["a", "b"], ["x"], ["y"]]


class TestLeaving:
    def test_a_client_that_leaves_before_its_turn_is_not_computed(self):
        async def scene(party):
            held = [party.ask("x"), party.ask("y")]
            await party.begun()
            await party.begun()
            left = asyncio.Event()

            async def leaves():
                await left.wait()
                return {"type": "http.disconnect"}

            leaving, staying = party.ask("gone", receive=leaves), party.ask("here")
            await asyncio.sleep(0.02)
            left.set()
            with pytest.raises(Problem) as caught:
                await leaving
            assert caught.value.code == "client_gone"
            assert len(party.batcher._questions["q"].waiting) == 1
            party.model.go.set()
            await asyncio.gather(*held, staying)

        model = Model(held=2)
        played(scene, model)
        assert ["gone"] not in model.calls
        assert ["here"] in model.calls

    def test_work_goes_on_while_anybody_of_a_group_waits_and_no_longer(self):
        async def scene(party):
            held = [party.ask("x"), party.ask("y")]
            await party.begun()
            await party.begun()
            events = [asyncio.Event(), asyncio.Event()]

            def leaver(event):
                async def leaves():
                    await event.wait()
                    return {"type": "http.disconnect"}

                return leaves

            together = [party.ask(f"{n}", receive=leaver(e)) for n, e in enumerate(events)]
            await asyncio.sleep(0.02)
            again = party.model.go
            party.model.go = threading.Event()  # the next call is held as well
            again.set()
            await party.begun()
            context = party.model.contexts[2]
            events[0].set()
            await asyncio.wait(together[:1])
            assert not context.cancelled
            events[1].set()
            await asyncio.wait(together)
            assert context.cancelled
            party.model.go.set()
            await asyncio.gather(*held)
            for one in together:
                assert one.exception().code == "client_gone"

        class Twice(Model):
            def __call__(self, texts, context):
                go = self.go
                super_go = len(self.calls) >= 2
                answer = super().__call__(texts, context)
                if super_go:
                    context.wait(go)
                return answer

        played(scene, Twice(held=2))

    def test_one_that_leaves_a_group_at_work_does_not_take_the_answer_of_the_others(self):
        async def scene(party):
            left = asyncio.Event()

            async def leaves():
                await left.wait()
                return {"type": "http.disconnect"}

            held = [party.ask("x"), party.ask("y")]
            await party.begun()
            await party.begun()
            leaving, staying = party.ask("gone", receive=leaves), party.ask("here")
            await asyncio.sleep(0.02)
            party.model.go.set()
            await asyncio.gather(*held)
            await party.begun()
            left.set()
            await asyncio.wait([leaving])
            assert leaving.exception().code == "client_gone"
            party.model.later.set()
            assert await staying == [{"said": "here"}]
            await asyncio.sleep(0)
            assert not party.batcher._questions

        class Pausing(Model):
            later = threading.Event()

            def __call__(self, texts, context):
                answer = super().__call__(texts, context)
                if "here" in texts:
                    context.wait(self.later)
                return answer

        played(scene, Pausing(held=2))

    def test_late(self):
        async def scene(party):
            with pytest.raises(Problem) as caught:
                await party.ask("x")
            assert caught.value.code == "deadline"
            assert party.model.contexts[0].cancelled

        played(scene, Model(held=1, deaf=True), seconds=0.1)


def test_too_many_are_refused_and_those_who_left_make_room():
    async def scene(party):
        taken = [party.ask(f"{n}") for n in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(Problem) as caught:
            await party.ask("one too many")
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
        party.model.go.set()
        await asyncio.gather(*taken)
        assert await party.ask("again") == [{"said": "again"}]

    played(scene, Model(held=2), threads=2, waiting=1)


def test_nothing_is_kept_of_questions_that_were_answered():
    async def scene(party):
        for number in range(5):
            await party.ask("a", question=number)
        await asyncio.sleep(0.02)
        assert not party.batcher._questions

    played(scene, Model())


def test_a_group_that_waits_for_a_thread_computes_only_who_is_still_there():
    """All threads are busy: what is queued holds no texts of clients that left."""

    async def scene(party):
        held = [party.ask("x"), party.ask("y")]
        await party.begun()
        await party.begun()
        left = asyncio.Event()

        async def leaves():
            await left.wait()
            return {"type": "http.disconnect"}

        texts = [HeldText("gone"), HeldText("too")]
        kept = weakref.WeakSet(texts)
        gone = party.ask(*texts, question="other", receive=leaves)
        del texts
        here = party.ask("here", question="another")
        await asyncio.sleep(0.02)
        left.set()
        await asyncio.wait([gone])
        assert gone.exception().code == "client_gone"
        del gone
        gc.collect()
        assert not kept
        party.model.go.set()
        await asyncio.gather(*held, here)
        await asyncio.to_thread(party.batcher.close)
        await asyncio.sleep(0.02)
        assert not party.batcher._questions

    model = Model(held=2)
    played(scene, model, threads=2)
    assert sorted(model.calls) == [["here"], ["x"], ["y"]]


def test_closing_answers_what_is_at_work_and_refuses_what_has_not_begun():
    async def scene(party):
        at_work = party.ask("x")
        await party.begun()
        queued = [party.ask("y", question="other"), party.ask("z", question="other")]
        waiting = party.ask("w", question="other")
        await asyncio.sleep(0.02)
        closing = asyncio.ensure_future(asyncio.to_thread(party.batcher.close))
        for one in (*queued, waiting):
            with pytest.raises(Closing):
                await one
        party.model.go.set()
        assert await at_work == [{"said": "x"}]
        await closing

    model = Model(held=1)
    played(scene, model, threads=1)
    assert model.calls == [["x"]]


class TestWorkers:
    """Long requests, each by itself."""

    def test_texts_of_those_who_left_are_not_kept_while_all_threads_are_busy(self):
        async def scene(workers):
            go, begun = threading.Event(), threading.Event()

            def long(context):
                begun.set()
                assert go.wait(10)

            async def leaves():
                return {"type": "http.disconnect"}

            busy = asyncio.ensure_future(workers.run(stays, long))
            await asyncio.to_thread(begun.wait)
            kept = weakref.WeakSet()
            for number in range(5):
                text = HeldText(number)
                kept.add(text)
                with pytest.raises(Problem):
                    await workers.run(leaves, lambda context, text=text: text)
                del text
            gc.collect()
            assert not kept
            await asyncio.sleep(0)
            assert workers._taken == 1
            go.set()
            await busy
            assert workers._taken == 0

        self.played(scene)

    def test_a_long_computation_ends_with_its_deadline(self):
        async def scene(workers):
            ended = threading.Event()

            def searches(context):
                try:
                    while True:
                        check_cancelled()
                except DeadlinePassed:
                    ended.set()
                    raise

            with pytest.raises((Problem, DeadlinePassed)):  # whichever comes first: both are 504
                await workers.run(stays, searches)
            assert await asyncio.to_thread(ended.wait, 10)

        self.played(scene, seconds=0.1)

    def test_it_ends_when_the_client_leaves(self):
        async def scene(workers):
            begun, ended = threading.Event(), threading.Event()

            def searches(context):
                begun.set()
                try:
                    while True:
                        check_cancelled()
                except Cancelled:
                    ended.set()
                    raise

            async def leaves():
                await asyncio.to_thread(begun.wait)
                return {"type": "http.disconnect"}

            with pytest.raises(Problem) as caught:
                await workers.run(leaves, searches)
            assert caught.value.code == "client_gone"
            assert await asyncio.to_thread(ended.wait, 10)

        self.played(scene)

    def played(self, scene, seconds=10.0):
        async def play():
            workers = Workers(1, 100, seconds)
            try:
                await asyncio.wait_for(scene(workers), 20)
            finally:
                workers.close()

        asyncio.run(play())
