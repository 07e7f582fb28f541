"""Every ask gets exactly its own rows or its own error, whatever others ask for meanwhile."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask import SmoothedClassifier
from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.serving import scorer
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Busy, Cancelled, Closing, DeadlinePassed
from ranmask.serving.scorer import BatchScorer
from ranmask.serving.scoring_requests import ScoringRequest, fair_shares
from ranmask.words import Document

PATIENCE = 20  # seconds: a test that waits longer has met a deadlock


class Echo(BaseClassifier):
    """Scores that name the copy: the text's number and the position that it shows."""

    order_free = True
    labels = ("text", "position")
    tolerance = 0.25
    assumes = ("echoes are alike",)

    def __init__(self, guilty=()):
        self.guilty = set(guilty)
        self.batches = []
        self.at_work = threading.Lock()

    def configured(self, *, hide=None, mask_token=None):
        return self

    def words_read(self, document):
        if document.premise is not None:
            raise ModelError("no pairs here")
        return len(document.words) - 1

    def description(self):
        return {"kind": "echo"}

    def score(self, copies):
        assert self.at_work.acquire(blocking=False), "two threads call one model"
        try:
            numbers = [int(one.document.words[0]) for one in copies]
            self.batches.append([(n, len(one)) for n, one in zip(numbers, copies, strict=True)])
            self.before(numbers)
            return [
                np.column_stack([np.full(len(one), float(number)), one.kept[:, 0]])
                for number, one in zip(numbers, copies, strict=True)
            ]
        finally:
            self.at_work.release()

    def before(self, numbers):
        for number in numbers:
            if number in self.guilty:
                raise ClassifierError(f"cannot read {number}")


class Gated(Echo):
    """Waits in every batch until it is let go."""

    def __init__(self, guilty=()):
        super().__init__(guilty)
        self.gate = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)

    def before(self, numbers):
        self.begun.release()
        assert self.gate.acquire(timeout=PATIENCE)
        super().before(numbers)

    def await_batch(self):
        assert self.begun.acquire(timeout=PATIENCE)


def text(number, copies):
    kept = np.arange(copies, dtype=np.int32)[:, None]
    return MaskedCopies(Document((str(number), "word")), 2, kept)


def check_rows(texts, scores):
    assert len(scores) == len(texts)
    for one, rows in zip(texts, scores, strict=True):
        expected = np.column_stack(
            [np.full(len(one), float(one.document.words[0])), one.kept[:, 0]]
        )
        assert np.array_equal(rows, expected)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(40) as executor:
        yield executor


def ask(executor, pool, texts, context=None):
    return executor.submit(pool.classifier(context or RequestContext()).score, texts)


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what was waited for never came"
        time.sleep(0.001)


def test_rows_come_back_in_order_whatever_the_batches():
    base = Echo()
    texts = [text(1, 5), text(2, 0), text(3, 100), text(4, 1)]
    with BatchScorer(base, batch_copies=33) as pool:
        scores = pool.classifier(RequestContext()).score(texts)
        figures = pool.figures()
    check_rows(texts, scores)
    assert [sum(rows for _, rows in batch) for batch in base.batches] == [33, 33, 33, 7]
    assert (figures.asks, figures.batches, figures.copies) == (1, 4, 106)
    assert all(rows.flags.c_contiguous and rows.dtype == np.float64 for rows in scores)


def test_waiting_asks_share_a_batch(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=100) as pool:
        first = ask(threads, pool, [text(0, 1)])
        base.await_batch()
        others = [ask(threads, pool, [text(n, 2)]) for n in range(1, 9)]
        until(lambda: pool.figures().waiting_asks == 8)
        base.gate.release(2)
        for number, one in enumerate(others, 1):
            check_rows([text(number, 2)], one.result(PATIENCE))
        check_rows([text(0, 1)], first.result(PATIENCE))
    assert sorted(base.batches[1]) == [(n, 2) for n in range(1, 9)]


def test_a_short_ask_overtakes_long_ones_and_a_long_one_moves_on(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=64, batch_seconds=1e9) as pool:
        long = ask(threads, pool, [text(0, 100_000)])
        base.await_batch()
        longer = ask(threads, pool, [text(1, 50_000)])
        short = ask(threads, pool, [text(2, 10)])
        until(lambda: pool.figures().waiting_asks == 3)
        base.gate.release(2)  # the batch in flight and one more
        check_rows([text(2, 10)], short.result(PATIENCE))
        assert not long.done() and not longer.done()
        assert dict(base.batches[1])[0] >= 32  # half is the oldest one's
        base.gate.release(10_000)
        check_rows([text(0, 100_000)], long.result(PATIENCE))
        check_rows([text(1, 50_000)], longer.result(PATIENCE))


@given(
    left=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    room=st.integers(1, 200),
)
def test_fair_shares(left, room):
    asks = {ScoringRequest([text(0, copies)]): copies for copies in left}
    shares = fair_shares(asks, room)
    assert sum(shares.values()) == min(room, sum(left))
    assert all(0 < share <= asks[one] for one, share in shares.items())
    oldest = next(iter(asks))
    assert shares[oldest] >= min(asks[oldest], room - room // 2)
    shortest = min(asks, key=asks.__getitem__)
    assert shares.get(shortest, 0) >= min(asks[shortest], room // 2)


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    portions=st.lists(st.integers(1, 12), min_size=1),
)
def test_portions_put_together_are_the_whole(sizes, portions):
    texts = [text(number, size) for number, size in enumerate(sizes)]
    whole, place = ScoringRequest(texts), 0
    while whole.left:
        portion = whole.take(portions[place % len(portions)])
        assert portion.copies and all(map(len, portion.copies))
        assert whole.scores() is None, "some are missing"
        whole.deal(portion.start, np.concatenate(Echo().score(portion.copies)))
        place += 1
    if whole.total:
        assert whole.finished.is_set()
        check_rows(texts, whole.scores())


def test_only_the_guilty_ask_fails(threads):
    base = Gated(guilty={3})
    with BatchScorer(base, batch_copies=1000) as pool:
        first = ask(threads, pool, [text(0, 1)])
        base.await_batch()
        others = {n: ask(threads, pool, [text(n, 4)]) for n in range(1, 6)}
        until(lambda: pool.figures().waiting_asks == 5)
        base.gate.release(100)
        for number, one in others.items():
            if number == 3:
                with pytest.raises(ClassifierError, match="cannot read 3"):
                    one.result(PATIENCE)
            else:
                check_rows([text(number, 4)], one.result(PATIENCE))
        check_rows([text(0, 1)], first.result(PATIENCE))
        assert pool.figures().failed_asks == 1
        check_rows([text(9, 3)], ask(threads, pool, [text(9, 3)]).result(PATIENCE))


@pytest.mark.parametrize(
    "answer",
    [
        lambda copies: None,
        lambda copies: [],
        lambda copies: [np.zeros((1, 2))] * len(copies),
        lambda copies: [np.zeros(len(copies[0]))],
        lambda copies: [np.zeros((len(one), len(one))) for one in copies],
        lambda copies: exec("raise SystemExit(3)"),
    ],
)
def test_a_broken_model_fails_its_ask_and_the_pool_goes_on(answer):
    base = Echo()
    with BatchScorer(base, batch_copies=40, batch_seconds=1e9) as pool:
        healthy, base.score = base.score, answer
        with pytest.raises((ClassifierError, TypeError)):
            pool.classifier(RequestContext()).score([text(1, 50)])
        base.score = healthy
        check_rows([text(1, 50)], pool.classifier(RequestContext()).score([text(1, 50)]))


def test_a_full_queue_refuses_new_requests_and_says_when_to_come_again(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=32, waiting_copies=100) as pool:
        context = RequestContext()
        running = ask(threads, pool, [text(0, 32)], context)
        base.await_batch()
        huge = ask(threads, pool, [text(1, 500)])  # nothing waits: taken, however long
        until(lambda: pool.figures().waiting_asks == 1)
        with pytest.raises(Busy) as refusal:
            pool.classifier(RequestContext()).score([text(2, 33)])
        assert refusal.value.seconds == 1.0
        base.gate.release(1)
        running.result(PATIENCE)
        again = ask(threads, pool, [text(3, 40)], context)  # let in before: not refused half way
        until(lambda: pool.figures().waiting_asks == 2)
        with pytest.raises(Busy) as refusal:
            pool.classifier(RequestContext()).score([text(2, 33)])
        assert 0 < refusal.value.seconds < PATIENCE
        assert pool.figures().refused_asks == 2
        base.gate.release(100)
        check_rows([text(1, 500)], huge.result(PATIENCE))
        check_rows([text(3, 40)], again.result(PATIENCE))


@pytest.mark.parametrize(("copies", "seconds"), [(33, 4.33), (100_000, 5.0)])
def test_there_is_room_again_once_what_waits_is_computed(threads, copies, seconds):
    base = Gated()
    with BatchScorer(base, batch_copies=32, waiting_copies=100) as pool:
        running = ask(threads, pool, [text(0, 1)])
        base.await_batch()
        long = ask(threads, pool, [text(1, 500)])
        until(lambda: pool.figures().waiting_asks == 1)
        pool._pace = 100.0  # copies a second
        with pytest.raises(Busy) as refusal:
            pool.classifier(RequestContext()).score([text(2, copies)])
        assert refusal.value.seconds == pytest.approx(seconds)
        base.gate.release(100)
        running.result(PATIENCE)
        long.result(PATIENCE)


def test_long_requests_do_not_keep_short_ones_out(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=32, waiting_copies=100) as pool:
        running = ask(threads, pool, [text(0, 1)])
        base.await_batch()
        long = ask(threads, pool, [text(1, 500)])
        until(lambda: pool.figures().waiting_asks == 1)
        short = [ask(threads, pool, [text(n, 32)]) for n in (2, 3, 4)]
        until(lambda: pool.figures().waiting_asks == 4)
        with pytest.raises(Busy):  # 96 of short ones wait
            pool.classifier(RequestContext()).score([text(5, 5)])
        fits = ask(threads, pool, [text(6, 4)])
        until(lambda: pool.figures().waiting_asks == 5)
        base.gate.release(100)
        for one, (number, copies) in zip(
            [running, long, *short, fits],
            [(0, 1), (1, 500), (2, 32), (3, 32), (4, 32), (6, 4)],
            strict=True,
        ):
            check_rows([text(number, copies)], one.result(PATIENCE))


class Background(RequestContext):
    background = True


def test_copies_in_the_background_come_last_and_keep_nobody_out(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=32, waiting_copies=32) as pool:
        asked = [ask(threads, pool, [text(0, 1)])]
        base.await_batch()
        for number, copies, context in (
            (1, 32, Background()),  # with the next, more than what may wait
            (2, 16, None),
            (3, 32, Background()),
            (4, 16, None),
        ):
            asked.append(ask(threads, pool, [text(number, copies)], context))
            until(lambda: asked[-1].done() or pool.figures().waiting_asks == len(asked) - 1)
        for _ in range(4):
            base.gate.release()
        for one in asked:
            one.result(PATIENCE)
    batches = [dict(batch) for batch in base.batches]
    assert batches[:2] == [{0: 1}, {2: 16, 4: 16}]
    assert sum(batch.get(1, 0) for batch in batches[2:]) == 32


def test_copies_in_the_background_give_way_before_each_batch(threads):
    class Counted(Background):
        checks = 0

        def check(self):
            self.checks += 1

    base, context = Gated(), Counted()
    base.gate.release(100)
    with BatchScorer(base, batch_copies=32) as pool:
        wanted = [text(0, 70), text(1, 0), text(2, 30)]
        check_rows(wanted, ask(threads, pool, wanted, context).result(PATIENCE))
    assert [sum(dict(batch).values()) for batch in base.batches] == [32, 32, 32, 4]
    assert context.checks == 4


def test_copies_in_the_background_do_not_wait_for_ever(threads, monkeypatch):
    """Where others always wait, they go with them after a while."""
    monkeypatch.setattr(scorer, "_BACKGROUND_SECONDS", 0.0)
    base = Gated()
    with BatchScorer(base, batch_copies=32) as pool:
        asked = [ask(threads, pool, [text(0, 1)])]
        base.await_batch()
        for number, context in ((1, Background()), (2, None), (3, None)):
            asked.append(ask(threads, pool, [text(number, 16)], context))
            until(lambda: pool.figures().waiting_asks == len(asked) - 1)
        base.gate.release(100)
        for one in asked:
            one.result(PATIENCE)
    assert dict(base.batches[1]) == {1: 16, 2: 16}


def test_cancelling_wakes_the_waiter_and_drops_its_copies(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=32) as pool:
        context = RequestContext()
        long = ask(threads, pool, [text(0, 1000)], context)
        base.await_batch()
        context.cancel()
        with pytest.raises(Cancelled):  # at once: the batch in flight is not awaited
            long.result(PATIENCE)
        figures = pool.figures()
        assert (figures.waiting_copies, figures.dropped_copies) == (0, 1000 - 32)
        base.gate.release(100)
        check_rows([text(1, 3)], ask(threads, pool, [text(1, 3)]).result(PATIENCE))
        with pytest.raises(Cancelled):
            pool.classifier(context).score([text(2, 1)])
        assert pool.figures().asks == 2  # that one was not even asked
    assert context.cancelled
    assert sum(rows for batch in base.batches for _, rows in batch) == 32 + 3


def test_a_late_request_ends_at_its_deadline(threads):
    base = Gated()
    with BatchScorer(base, batch_copies=32) as pool:
        late = ask(threads, pool, [text(0, 1000)], RequestContext(time.monotonic() + 0.05))
        with pytest.raises(DeadlinePassed):
            late.result(PATIENCE)
        assert pool.figures().waiting_copies == 0
        base.gate.release(100)
        with pytest.raises(DeadlinePassed):
            pool.classifier(RequestContext(time.monotonic() - 1)).score([text(1, 1)])
        assert pool.figures().asks == 1
        in_time = RequestContext(time.monotonic() + PATIENCE)
        check_rows([text(1, 3)], ask(threads, pool, [text(1, 3)], in_time).result(PATIENCE))


def test_batches_shrink_to_what_the_model_can_do_in_time():
    class Slow(Echo):
        def before(self, numbers):
            time.sleep(0.02)

    base = Slow()
    with BatchScorer(base, batch_copies=5000, batch_seconds=0.001) as pool:
        pool.classifier(RequestContext()).score([text(0, 500)])
    sizes = [sum(rows for _, rows in batch) for batch in base.batches]
    assert sizes[0] == 256 and max(sizes[1:]) == 32


def test_batches_grow_again_when_the_model_is_faster():
    class Warming(Echo):
        def before(self, numbers):
            if len(self.batches) <= 3:
                time.sleep(0.05)

    base = Warming()
    with BatchScorer(base, batch_copies=5000, batch_seconds=0.01) as pool:
        pool.classifier(RequestContext()).score([text(0, 30_000)])
    sizes = [sum(rows for _, rows in batch) for batch in base.batches]
    assert max(sizes[1:3]) < 256 < 1000 < max(sizes)


def test_after_a_failed_batch_nothing_is_computed_for_those_who_left(threads):
    base = Gated(guilty={3})
    with BatchScorer(base, batch_copies=1000) as pool:
        first = ask(threads, pool, [text(0, 1)])
        base.await_batch()
        left = RequestContext()
        others = {
            number: ask(threads, pool, [text(number, 4)], left if number == 4 else None)
            for number in (3, 4, 5)
        }
        until(lambda: pool.figures().waiting_asks == 3)
        base.gate.release(1)
        first.result(PATIENCE)
        base.await_batch()  # of all three
        left.cancel()
        with pytest.raises(Cancelled):
            others[4].result(PATIENCE)
        base.gate.release(100)
        check_rows([text(5, 4)], others[5].result(PATIENCE))
        with pytest.raises(ClassifierError):
            others[3].result(PATIENCE)
    assert sorted(base.batches[2:]) == [[(3, 4)], [(5, 4)]]


def test_closing_finishes_what_waits(threads):
    base = Gated()
    pool = BatchScorer(base, batch_copies=32)
    context = RequestContext()
    running = ask(threads, pool, [text(0, 100)], context)
    base.await_batch()
    more = ask(threads, pool, [text(2, 5)])
    until(lambda: pool.figures().waiting_asks == 2)
    closing = threads.submit(pool.close)
    until(lambda: pool._closed)
    for late in (context, RequestContext()):
        with pytest.raises(Closing):
            pool.classifier(late).score([text(1, 1)])
    base.gate.release(100)
    closing.result(PATIENCE)
    check_rows([text(0, 100)], running.result(PATIENCE))
    check_rows([text(2, 5)], more.result(PATIENCE))
    with pytest.raises(Closing):
        pool.classifier(context).score([text(2, 5)])
    pool.close()


def test_closing_does_not_wait_for_a_model_that_hangs(threads):
    base = Gated()
    pool = BatchScorer(base, batch_copies=32)
    flying = ask(threads, pool, [text(0, 10)])
    base.await_batch()
    waiting = ask(threads, pool, [text(1, 10)])
    until(lambda: pool.figures().waiting_asks == 1)
    pool.close(timeout=0.01)
    for one in (flying, waiting):
        with pytest.raises(Closing):
            one.result(PATIENCE)
    base.gate.release(100)
    pool.close()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nothing_is_lost_or_mixed_up_under_stress(seed):
    """Random asks, failures, cancels and deadlines of many threads; two pools in turns."""
    draw = random.Random(seed)
    guilty = set(draw.sample(range(100), 10))
    turns, bases = FairSemaphore(), [Echo(guilty), Echo(guilty)]
    bases[1].at_work = bases[0].at_work  # two at once are found out
    pools = [BatchScorer(base, batch_copies=draw.randint(1, 60), turns=turns) for base in bases]
    jobs = []
    for number in range(0, 100, 2):
        sizes = [draw.randint(0, 40) for _ in range(2)]
        end = draw.choice([None, None, None, "cancel", "late"])
        jobs.append((draw.choice(pools), [text(number + i, n) for i, n in enumerate(sizes)], end))

    def run(job):
        pool, texts, end = job
        context = RequestContext(time.monotonic() + (0.002 if end == "late" else PATIENCE))
        if end == "cancel":
            threading.Timer(0.001, context.cancel).start()
        is_guilty = any(int(one.document.words[0]) in guilty and len(one) for one in texts)
        try:
            scores = pool.classifier(context).score(texts)
        except ClassifierError as error:
            own = {one.document.words[0] for one in texts}
            assert str(error) == "no copies to score" or str(error).split()[-1] in own
            assert is_guilty or not sum(map(len, texts))
        except Cancelled:
            assert end == "cancel"
        except DeadlinePassed:
            assert end == "late"
        else:
            assert not is_guilty
            check_rows(texts, scores)

    with ThreadPoolExecutor(16) as executor:
        done = [executor.submit(run, job) for job in jobs]
        for one in done:
            one.result(PATIENCE)
    for pool in pools:
        pool.close(timeout=PATIENCE)
        assert pool.figures().waiting_copies == 0


def test_turns_are_given_in_order(threads):
    turns, order = FairSemaphore(), []
    with turns:
        waiting = []
        for number in range(5):
            waiting.append(threads.submit(lambda n=number: turns.__enter__() or order.append(n)))
            until(lambda: turns._drawn == len(waiting) + 1)
        assert order == []
    for number, one in enumerate(waiting):
        one.result(PATIENCE)
        assert order == list(range(number + 1))
        turns.__exit__()


def test_everything_but_the_scores_is_the_models_own():
    base = Echo()
    with BatchScorer(base) as pool:
        pooled = pool.classifier(RequestContext())
        for name in ("labels", "outputs", "order_free", "votes_only", "tolerance", "assumes"):
            assert getattr(pooled, name) == getattr(base, name), name
        assert pooled.description() == {"kind": "echo"}
        assert pooled.words_read(Document(("a", "b", "c"))) == 2
        with pytest.raises(ModelError, match="no pairs here"):
            pooled.words_read(Document(("a", "b", "c"), "premise"))
        with pytest.raises(OptionError, match=r"hide='drop'.*leave them out"):
            SmoothedClassifier(pooled, keep=1, hide="drop")
        with pytest.raises(ClassifierError, match="no copies"):
            pooled.score([])
