"""Shards: every row once, the same bytes whatever happens, and what kills workers is found."""

import itertools
import json
import os
import pickle
from collections import deque
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask import (
    ClassifierError,
    DataError,
    MissingDependencyError,
    ModelError,
    OptionError,
    OutputError,
    SmoothedClassifier,
    TextError,
)
from ranmask.attacks.outcome import AttackOutcome, Change
from ranmask.data.rows import Row, RowSource
from ranmask.models.testing import keyword_classifier
from ranmask.results import Certificate, Prediction
from ranmask.runs.shards.bad_rows import Isolation
from ranmask.runs.shards.columns import _schema, decoded, encoded
from ranmask.runs.shards.folder import LOG, MANIFEST, ShardFolder, read_manifest
from ranmask.runs.shards.local import _choose_gpu
from ranmask.runs.shards.reading import folder_lines, merge, summarise_folder, verify
from ranmask.runs.shards.run import POISON, Sharding, run_with
from ranmask.runs.shards.work import Job, Piece, Worker, pieces
from ranmask.runs.shards.workers import Lost, check_alike
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import ROWS_AT_ONCE, ClassifyTask, Outcome, RunEvents, classify_rows

SMOOTHED = SmoothedClassifier(keyword_classifier, keep=1, labels=["bad", "good"])


def make_task():
    return ClassifyTask("certify", SMOOTHED.labels, SMOOTHED.certify, SMOOTHED.description())


def rows(count):
    return [
        Row(number, f"good film {number} bad good", number % 2) for number in range(1, count + 1)
    ]


class InThisProcess:
    """An engine of several workers, none of which is a process; deaths are told by a function."""

    def __init__(self, workers=1, dies=lambda piece: False, order=lambda waiting: 0):
        self._worker = Worker(Job(make_task))
        self._workers, self._dies, self._order = workers, dies, order
        self._waiting = deque()
        self.pieces = []

    def report(self):
        return self._worker.report

    @property
    def idle(self):
        return self._workers - len(self._waiting)

    def submit(self, piece):
        assert self.idle, "never more pieces than workers"
        self.pieces.append(piece)
        self._waiting.append(piece)

    def wait(self):
        place = self._order(self._waiting)
        piece = self._waiting[place]
        del self._waiting[place]
        death = self._dies(piece)
        if death:
            blamed = death != "node"
            return piece, Lost("its worker ended", blamed)
        return piece, None if piece.trial else self._worker.answer(piece)


def run(path, count=50, shard_rows=8, about=None, engine=None, **options):
    engine = engine or InThisProcess(**options)
    source = RowSource(rows(count), count, about or {"sha256": "x"})
    run_with(engine, source, path, Sharding(shard_rows), RunEvents())
    return engine


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def poisonous(*numbers):
    """A worker dies of rows that are not yet marked."""
    return lambda piece: any(row.number in numbers and row.error is None for row in piece.rows)


class TestColumns:
    def round_trip(self, tmp_path, given, record=Certificate):
        data = encoded(given, record)
        assert data == encoded(given, record)
        path = tmp_path / "part"
        path.write_bytes(data)
        found = list(decoded(path))
        shown = [json.dumps(lines, sort_keys=True) for lines in (found, given)]
        assert shown[0] == shown[1]
        assert encoded(found, record) == data

    def test_every_kind_of_line(self, tmp_path):
        given = [
            Row(1, "good film", 1),
            Row(2, None, error="broken line"),
            Row(3, " "),
            Row(5, "good bad film", "nonsense"),
            Row(6, "half \ud83d a pair", 1),
            Row(9, "schön \U0001f600", 0),
            Row(10, ("premise", "good hypothesis"), 1),
            Row(11, ("half \udc00", "x"), 1),
        ]
        outcomes = classify_rows(given, SMOOTHED.certify)
        self.round_trip(tmp_path, [outcome.to_dict(SMOOTHED.labels) for outcome in outcomes])

    def test_what_few_results_have(self, tmp_path):
        shown = SMOOTHED.certify_showing(["good film", "bad"], 2)
        given = [Outcome(Row(n, "good film"), one).to_dict(None) for n, one in enumerate(shown, 1)]
        self.round_trip(tmp_path, given)
        assert "copies" in given[0]

    def test_predictions(self, tmp_path):
        score = SmoothedClassifier(keyword_classifier, keep=1, ensemble="score")
        given = [Outcome(Row(1, "x"), one).to_dict(None) for one in score.predict(["a good b"])]
        self.round_trip(tmp_path, given, Prediction)
        assert given[0]["scores"] is not None

    def test_attacks(self, tmp_path):
        change = Change(0, "good", "bad")
        outcomes = [
            AttackOutcome(1, "good", 1, "succeeded", adversarial="bad", changes=(change,)),
            AttackOutcome(2, ("a", "b"), 0, "failed", adversarial=("a", "c"), final_share=0.1),
            AttackOutcome(3, None, None, "error", error="broken line"),
        ]
        self.round_trip(tmp_path, [outcome.to_dict() for outcome in outcomes], AttackOutcome)

    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4))
    def test_floats_are_kept_to_the_last_bit(self, tmp_path_factory, scores):
        line = Outcome(Row(1, "x"), SMOOTHED.certify(["good"])[0]).to_dict(None)
        self.round_trip(tmp_path_factory.mktemp("floats"), [{**line, "scores": scores}])

    def test_what_is_no_constant_is_kept(self, tmp_path):
        first, second = (
            Outcome(Row(n, "x"), one).to_dict(None)
            for n, one in enumerate(SMOOTHED.certify(["good", "bad"]), 1)
        )
        second["assumes"], second["alpha"] = ["another"], 0.1
        self.round_trip(tmp_path, [first, second])
        table = pq.read_table(tmp_path / "part")
        assert "assumes" not in table.column_names
        assert table.column("extra").to_pylist() == [None, '{"alpha": 0.1, "assumes": ["another"]}']

    def test_columns_are_typed_as_the_fields(self):
        certificate, attacked = _schema(Certificate), _schema(AttackOutcome)
        assert str(certificate.field("critical_words").type) == "list<item: int64>"
        assert str(certificate.field("scores").type) == "list<item: double>"
        assert str(attacked.field("changes").type) == (
            "list<item: struct<position: int64, before: string, after: string, premise: bool>>"
        )
        assert str(attacked.field("adversarial").type) == "string"

    def test_a_command_without_shards(self):
        with pytest.raises(OptionError, match="'beta' has no sharded runs"):
            _ = replace(make_task(), command="beta").record


class TestTheSameBytes:
    def test_whatever_the_order_of_the_answers(self, tmp_path):
        run(tmp_path / "one")
        run(tmp_path / "three", workers=3, order=lambda waiting: len(waiting) - 1)
        assert contents(tmp_path / "one") == contents(tmp_path / "three")

    @pytest.mark.parametrize("after", [0, 1, 4, 6])
    def test_whenever_it_is_interrupted(self, tmp_path, after):
        run(tmp_path / "whole")
        seen = itertools.count()

        def interrupted(piece):
            if next(seen) == after:
                raise KeyboardInterrupt
            return False

        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut", dies=interrupted)
        engine = run(tmp_path / "cut")
        assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
        assert len(engine.pieces) == 7 - after  # what was done is not done again

    def test_whoever_dies_by_accident(self, tmp_path):
        run(tmp_path / "whole")
        for deaths in ([0], [0, 0, 0], ["node"] * 30, [0, "node", 0, 0, "node", 0]):
            left = list(deaths)

            def unlucky(piece, left=left):
                return piece.shard == 2 and bool(left) and (left.pop() or "process")

            name = f"unlucky{len(deaths)}"
            run(tmp_path / name, dies=unlucky, workers=2)
            assert contents(tmp_path / name) == contents(tmp_path / "whole")

    def test_groups_do_not_depend_on_time(self):
        sizes = []

        def classify(texts):
            sizes.append(len(texts))
            return SMOOTHED.certify(texts)

        task = replace(make_task(), classify=classify)
        piece = Piece(0, tuple(rows(2 * ROWS_AT_ONCE + 5)))
        assert Worker(Job(lambda: task)).answer(piece).record.rows == 2 * ROWS_AT_ONCE + 5
        assert sizes == [ROWS_AT_ONCE, ROWS_AT_ONCE, 5]


class TestPoison:
    @pytest.mark.parametrize("numbers", [{1}, {50}, {9, 10}, {17, 24, 25, 40}])
    def test_found_and_reported(self, tmp_path, numbers):
        run(tmp_path / "out", dies=poisonous(*numbers), workers=2)
        found = list(folder_lines(tmp_path / "out"))
        assert [line["row"] for line in found] == list(range(1, 51))
        assert {line["row"] for line in found if "error" in line} == numbers
        assert {line["error"] for line in found if "error" in line} == {POISON}
        assert not verify(tmp_path / "out").problems

    def test_whole_shards_are_tried_again_first(self, tmp_path):
        engine = run(tmp_path / "out", dies=poisonous(3))
        of_first = [piece for piece in engine.pieces if piece.shard == 0]
        assert [piece.trial for piece in of_first[:4]] == [False] * 3 + [True]

    def test_workers_that_always_die_stop_the_run(self, tmp_path):
        with pytest.raises(ClassifierError, match="20 times in a row"):
            run(tmp_path / "out", dies=lambda piece: True)

    def test_rows_that_kill_only_together(self, tmp_path):
        def together(piece):
            return piece.shard == 1 and len(piece.rows) == 8

        with pytest.raises(ClassifierError, match=r"shards not done: 1\. .*memory"):
            run(tmp_path / "out", dies=together)
        manifest = read_manifest(tmp_path / "out")
        assert [part.number for part in manifest.parts] == [0, 2, 3, 4, 5, 6]  # the others are
        run(tmp_path / "out")
        run(tmp_path / "whole")
        assert contents(tmp_path / "out") == contents(tmp_path / "whole")

    def test_an_accident_makes_no_row_poison(self, tmp_path):
        """Row 3 is poison; when row 4 is tried alone its worker dies once, of something else."""
        accidents = ["once"]

        def dies(piece):
            if [row.number for row in piece.rows] == [4] and accidents:
                return accidents.pop()
            return poisonous(3)(piece)

        run(tmp_path / "out", dies=dies)
        assert not accidents
        assert [line["row"] for line in folder_lines(tmp_path / "out") if "error" in line] == [3]

    def test_accidents_after_the_trials_are_accidents(self, tmp_path):
        deaths = [0] * 5

        def dies(piece):
            return piece.shard == 1 and not piece.trial and bool(deaths) and not deaths.pop()

        run(tmp_path / "out", dies=dies)
        assert not deaths and not verify(tmp_path / "out").errors

    def test_trials_never_overlap_what_is_known(self):
        isolation = Isolation(Piece(0, tuple(rows(16))))
        survived, waiting = [], deque(isolation.take())
        while waiting:
            piece = waiting.popleft()
            places = range(piece.start, piece.start + len(piece.rows))
            if 5 in places:
                isolation.died(piece)
            else:
                survived += places
                isolation.survived()
            waiting += isolation.take()
        assert isolation.over and isolation.poison == {5}
        assert sorted(survived) == [place for place in range(16) if place != 5]


class TestFolder:
    def test_an_unfinished_line_of_the_log_is_cut_off(self, tmp_path):
        run(tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut", dies=self.at(3))
        with (tmp_path / "cut" / LOG).open("ab") as log:
            log.write(b'{"part": {"numb')
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut", dies=self.at(1))
        assert len(run(tmp_path / "cut").pieces) == 3
        assert contents(tmp_path / "cut") == contents(tmp_path / "whole")

    def test_a_part_that_was_not_logged_is_done_again(self, tmp_path):
        run(tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut", dies=self.at(3))
        log = tmp_path / "cut" / LOG
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        (tmp_path / "cut" / "part-00003.parquet.tmp").write_bytes(b"half")
        assert len(run(tmp_path / "cut").pieces) == 5
        assert contents(tmp_path / "cut") == contents(tmp_path / "whole")

    def test_a_damaged_part_is_done_again(self, tmp_path):
        run(tmp_path / "whole")
        run(tmp_path / "damaged")
        part = tmp_path / "damaged" / "part-00002.parquet"
        part.write_bytes(part.read_bytes()[:-9] + b"PARITY???")
        assert "the file has changed" in verify(tmp_path / "damaged").problems[0]
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "damaged", dies=self.at(0))
        assert not read_manifest(tmp_path / "damaged").finished
        assert len(run(tmp_path / "damaged").pieces) == 1
        assert contents(tmp_path / "damaged") == contents(tmp_path / "whole")

    def at(self, last):
        seen = itertools.count()

        def stop(piece):
            if next(seen) == last:
                raise KeyboardInterrupt
            return False

        return stop

    def test_another_run_is_refused(self, tmp_path):
        run(tmp_path / "out")
        with pytest.raises(OutputError, match="different: shard_rows"):
            run(tmp_path / "out", shard_rows=9)

    def test_the_input_may_have_moved(self, tmp_path):
        here, there = ({"path": path, "sha256": "x"} for path in ("here", "there"))
        run(tmp_path / "out", about=here)
        before = contents(tmp_path / "out")
        run(tmp_path / "out", about=there)
        assert contents(tmp_path / "out") == before

    def test_a_foreign_folder_is_refused(self, tmp_path):
        (tmp_path / "precious").write_text("x")
        with pytest.raises(OutputError, match="not written by ranmask"):
            run(tmp_path)
        assert (tmp_path / "precious").read_text() == "x"

    def test_two_writers(self, tmp_path):
        identity = {"run": {}, "sharding": {}, "versions": {}}
        with (
            ShardFolder(tmp_path / "out", identity, 0),
            pytest.raises(OutputError, match="another run is writing"),
            ShardFolder(tmp_path / "out", identity, 0),
        ):
            pass

    def test_another_version(self, tmp_path):
        run(tmp_path / "out")
        path = tmp_path / "out" / MANIFEST
        path.write_text(path.read_text().replace('"version": 1', '"version": 9', 1))
        with pytest.raises(DataError, match="this ranmask reads"):
            verify(tmp_path / "out")

    def test_nothing_to_do(self, tmp_path):
        run(tmp_path / "out", count=0)
        found = verify(tmp_path / "out")
        assert (found.parts, found.rows, found.problems) == (0, 0, ())


class TestVerify:
    @pytest.fixture
    def folder(self, tmp_path):
        run(tmp_path / "out")
        return tmp_path / "out"

    def edit(self, folder, change):
        path = folder / MANIFEST
        manifest = json.loads(path.read_text())
        change(manifest["parts"])
        path.write_text(json.dumps(manifest))
        return " ".join(verify(folder).problems)

    def test_in_order(self, folder):
        assert not verify(folder).problems

    def test_a_missing_part(self, folder):
        (folder / "part-00003.parquet").unlink()
        assert "part-00003.parquet: the file is missing" in verify(folder).problems

    def test_a_gap(self, folder):
        assert "no part for the shards 2" in self.edit(folder, lambda parts: parts.pop(2))

    def test_a_stranger(self, folder):
        (folder / "part-00099.parquet").write_bytes(b"")
        assert "part-00099.parquet is no part of the run" in verify(folder).problems

    def test_rows_twice(self, folder):
        """A part that is another one's copy, checksum and all."""
        second, third = folder / "part-00001.parquet", folder / "part-00002.parquet"
        third.write_bytes(second.read_bytes())

        def copy(parts):
            parts[2] = {**parts[1], "number": 2}

        assert "row 9 comes after row 16" in self.edit(folder, copy)

    def test_wrong_counts(self, folder):
        def fewer(parts):
            parts[1]["errors"] = 3

        assert "in the manifest" in self.edit(folder, fewer)

    def test_a_short_shard(self, folder):
        def short(parts):
            parts[1]["rows"] = 7

        assert "has 7 rows, a shard has 8" in self.edit(folder, short)


class TestMerging:
    def test_the_summary_is_that_of_the_lines(self, tmp_path):
        run(tmp_path / "out", dies=poisonous(7))
        by_lines = RunSummary("certify", SMOOTHED.labels)
        by_lines.add(folder_lines(tmp_path / "out"))
        assert summarise_folder(tmp_path / "out") == by_lines
        assert (by_lines.rows, by_lines.errors, by_lines.certified.texts) == (50, 1, 49)

    def test_the_summary_of_texts_without_labels_is_that_of_the_lines(self, tmp_path, monkeypatch):
        unknown = [replace(row, label=None) for row in rows(50)]
        monkeypatch.setitem(globals(), "rows", lambda count: unknown)
        run(tmp_path / "out", dies=poisonous(7))
        by_lines = RunSummary("certify", SMOOTHED.labels)
        by_lines.add(folder_lines(tmp_path / "out"))
        assert summarise_folder(tmp_path / "out") == by_lines
        assert [texts for *_, texts in by_lines.unlabelled.radii()] == [49]

    def test_an_existing_file_is_left_alone(self, tmp_path):
        run(tmp_path / "out")
        (tmp_path / "all.jsonl").write_text("precious")
        with pytest.raises(OutputError, match="exists"):
            merge(tmp_path / "out", tmp_path / "all.jsonl", {})
        with pytest.raises(OptionError, match=r"\.jsonl, \.parquet or \.csv"):
            merge(tmp_path / "out", tmp_path / "all.xlsx", {})

    def test_parquet(self, tmp_path):
        run(tmp_path / "out")
        assert merge(tmp_path / "out", tmp_path / "all.parquet", {}) == 50
        assert pq.read_table(tmp_path / "all.parquet").num_rows == 50


class TestWork:
    def test_errors_cross_processes(self):
        for error in (
            MissingDependencyError("Ray", "ray"),
            TextError("no words", 3),
            OutputError("full"),
        ):
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is type(error) and str(again) == str(error)

    def test_a_broken_classifier_is_told(self, tmp_path):
        def broken(texts):
            raise ClassifierError("out of order")

        class Broken(InThisProcess):
            def __init__(self):
                super().__init__()
                task = replace(make_task(), classify=broken)
                self._worker = Worker(Job(lambda: task))

        with pytest.raises(ClassifierError, match=r"20 rows in a row.*out of order"):
            run(tmp_path / "out", shard_rows=30, engine=Broken())

    def test_workers_must_be_alike(self):
        report = InThisProcess().report()
        other = replace(report, versions={**report.versions, "numpy": "0.1"})
        with pytest.raises(ModelError, match="two workers differ in numpy"):
            check_alike(report, other)
        check_alike(report, replace(report, machine={"gpu": "another"}))

    def test_workers_take_gpus_in_turn(self, monkeypatch):
        seen = []
        for place in range(3):
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
            _choose_gpu(place)
            seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        assert seen == ["4", "6", "4"]

    def test_shards_are_streamed(self):
        endless = pieces((Row(number, "x") for number in itertools.count(1)), 3)
        assert [row.number for row in next(endless).rows] == [1, 2, 3]
        assert next(endless).shard == 1

    def test_no_more_than_needed_is_read_ahead(self, tmp_path):
        read = []

        def watched():
            for row in rows(80):
                read.append(row.number)
                yield row

        engine = InThisProcess(workers=2)
        done = []

        def told(count):
            done.append(count)
            assert len(read) <= sum(done) + 3 * 8  # two at work and one ahead

        events = RunEvents(progress=told)
        source = RowSource(watched(), 80)
        run_with(engine, source, tmp_path / "out", Sharding(8), events)
        assert sum(done) == 80
