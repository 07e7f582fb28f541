"""Sharded runs as a user sees them: in processes of their own, which are killed."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from shard_helpers import (
    alive,
    contents,
    kill,
    make_input,
    merged,
    parts,
    ranmask,
    run,
    start,
    until,
    workers_seen,
)

from ranmask.models import SHIPPED_FOLDER, model_config
from ranmask.runs.stored import stored_lines


@pytest.fixture
def source(tmp_path):
    return make_input(tmp_path, 105)


def without_shards(source, output, *more, command="certify", model="steady"):
    given = ("--model", f"misbehaving:{model}", "--keep", 1, "--input", source.name)
    labelled = ("--label-column", "label", "--output", output)
    return ranmask(command, *given, *labelled, *more, cwd=source.parent)


class TestTheSameBytes:
    def test_whatever_the_number_of_workers(self, source, tmp_path):
        one, two = tmp_path / "one", tmp_path / "two"
        done = run(source, one)
        assert done.returncode == 0, done.stderr
        assert run(source, two, "steady", "--workers", 2).returncode == 0
        assert contents(one) == contents(two)
        assert len(parts(one)) == 6
        assert [pq.read_metadata(path).num_rows for path in parts(one)] == [20] * 5 + [5]

    def test_whatever_was_killed(self, source, tmp_path):
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        run(source, whole, "slow")
        for wanted in (1, 3):
            driver = start(source, killed, "slow", "--workers", 2)
            until(lambda wanted=wanted: len(parts(killed)) >= wanted)
            kill(driver.pid)
            driver.communicate(timeout=60)
        done = run(source, killed, "slow")
        assert "resuming" in done.stderr and done.returncode == 0
        assert contents(whole) == contents(killed)

    @pytest.mark.parametrize("computed_by", ["numpy", "torch"])
    def test_a_model_with_last_bits(self, computed_by, tmp_path):
        model = "news"
        if computed_by == "torch":
            model = tmp_path / "encoder"
            shutil.copytree(SHIPPED_FOLDER / "news" / "reader", model)
            options = {"keep": 2, "hide": "drop", "masks": 20}
            model_config.write(model, model_config.ENCODER, options)
        source = make_input(tmp_path, 40)
        first, second = tmp_path / "first", tmp_path / "second"
        given = ("certify", "--model", model, "--input", source, "--shard-rows", 15)
        assert ranmask(*given, "--output", first).returncode == 0
        driver = subprocess.Popen(
            [sys.executable, "-m", "ranmask.cli", *map(str, given), "--output", str(second)],
            stderr=subprocess.DEVNULL,
        )
        until(lambda: parts(second), 120)
        kill(driver.pid)
        driver.wait()
        assert ranmask(*given, "--output", second, "--workers", 2).returncode == 0
        assert contents(first) == contents(second)
        machines = json.loads((first / "manifest.json").read_text())["machines"]
        expected = [0] if computed_by == "torch" else []
        assert [machine["tolerance"] for machine in machines] == expected

    @pytest.mark.parametrize(
        ("command", "more"),
        [
            ("certify", ()),
            ("certify", ("--compare",)),
            ("certify", ("--copies", 2)),
            ("predict", ()),
        ],
    )
    def test_merged_is_what_the_command_without_shards_writes(self, tmp_path, command, more):
        source = make_input(tmp_path, 25)
        source.write_text(source.read_text() + ",1\ngood film,nonsense\nschön gut,0\n")
        folder, one = tmp_path / "folder", tmp_path / "one.jsonl"
        done = run(source, folder, "steady", *more, command=command)
        plain = without_shards(source, one, *more, command=command)
        assert done.returncode == plain.returncode == 3
        assert done.stderr == plain.stderr  # the same summary
        merged(folder, tmp_path / "merged.jsonl")
        assert (tmp_path / "merged.jsonl").read_bytes() == one.read_bytes()


class TestTrouble:
    def test_a_dead_worker_costs_one_try(self, tmp_path):
        source = make_input(tmp_path, 60, {33: "fragile good"})
        whole, once = tmp_path / "whole", tmp_path / "once"
        done = run(source, once, "once")
        assert done.returncode == 0 and "shard 1: its worker ended with exit code 7" in done.stderr
        run(source, whole, "once")  # nothing is broken any more
        assert contents(whole) == contents(once)

    @pytest.mark.parametrize("model", ["deadly", "raising"])
    def test_poison_rows_are_found_and_the_others_done(self, tmp_path, model):
        source = make_input(tmp_path, 64, {9: "good poison here", 50: "poison"})
        done = run(source, tmp_path / "out", model, "--workers", 2)
        assert done.returncode == 3, done.stderr
        assert "64 rows, 2 with errors" in done.stderr
        lines = merged(tmp_path / "out", tmp_path / "merged.jsonl")
        assert [line["row"] for line in lines] == list(range(1, 65))
        failed = [line for line in lines if "error" in line]
        assert [line["row"] for line in failed] == [9, 50]
        assert failed[0]["text"] == "good poison here"
        assert "worker processes end" in failed[0]["error"]

    def test_a_classifier_that_always_crashes_stops_the_run(self, source, tmp_path):
        done = run(source, tmp_path / "out", "crashing")
        assert done.returncode == 1
        assert "20 times in a row" in done.stderr and "Traceback" not in done.stderr

    def test_what_is_wrong_with_the_model_is_told_once(self, source, tmp_path):
        done = run(source, tmp_path / "out", "absent", "--workers", 2)
        assert done.returncode == 1
        assert done.stderr.count("has no 'absent'") == 1 and "Traceback" not in done.stderr

    def test_no_worker_outlives_a_killed_driver(self, source, tmp_path):
        driver = start(source, tmp_path / "out", "slow", "--workers", 2)
        until(lambda: len(workers_seen(tmp_path)) == 2)
        kill(driver.pid)
        driver.communicate(timeout=60)
        until(lambda: not any(map(alive, workers_seen(tmp_path))), 10)

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
    )
    def test_a_polite_end(self, source, tmp_path, number, code):
        driver = start(source, tmp_path / "out", "slow", "--workers", 2)
        until(lambda: parts(tmp_path / "out"))
        if number == signal.SIGINT:
            os.killpg(driver.pid, number)  # as a terminal does: to all of them
        else:
            driver.send_signal(number)
        _, said = driver.communicate(timeout=60)
        assert driver.returncode == code, said
        assert "the same command resumes" in said and "Traceback" not in said
        assert not any(map(alive, workers_seen(tmp_path)))


class TestOptions:
    def test_other_options_are_refused(self, source, tmp_path):
        run(source, tmp_path / "out")
        before = contents(tmp_path / "out")
        for more, named in (
            (("--family", "sampled"), "family"),
            (("--cpus-per-worker", 2), "threads"),
        ):
            done = run(source, tmp_path / "out", "steady", *more)
            assert done.returncode == 1 and f"different: {named}" in done.stderr
        done = run(source, tmp_path / "out", shard_rows=21)
        assert done.returncode == 1 and "different: --shard-rows" in done.stderr
        source.write_text(source.read_text() + "one more,1\n")
        done = run(source, tmp_path / "out")
        assert done.returncode == 1 and "(different: input)" in done.stderr
        assert contents(tmp_path / "out") == before

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (("--workers", 2), "--workers 2 goes with --shard-rows"),
            (("--shard-rows", 0), "--shard-rows must be a whole number of at least 1, not 0"),
            (
                ("--shard-rows", 9, "--engine", "spark"),
                "--engine must be one of local, ray; not 'spark'",
            ),
            (("--shard-rows", 9, "--address", "a:1"), "--address a:1 goes with --engine ray"),
            (("--shard-rows", 9, "--workers", 0), "--workers must be a whole number of at least 1"),
        ],
    )
    def test_wrong_options_are_told_before_anything_is_loaded(
        self, source, tmp_path, more, message
    ):
        done = without_shards(source, tmp_path / "out", *more)
        assert done.returncode == 2 and message in done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_folder_is_needed(self, source):
        done = ranmask("certify", "--input", source, "--shard-rows", 5)
        assert done.returncode == 2 and "--shard-rows needs --output" in done.stderr

    def test_ray_is_an_extra(self, source, tmp_path, monkeypatch):
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "__init__.py").write_text("raise ImportError('no ray here')\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        done = run(source, tmp_path / "out", "steady", "--engine", "ray")
        assert done.returncode == 1 and "pip install 'ranmask[ray]'" in done.stderr


class TestLooking:
    def test_show_an_unfinished_run(self, source, tmp_path):
        driver = start(source, tmp_path / "out", "slow")
        until(lambda: len(parts(tmp_path / "out")) >= 2)
        kill(driver.pid)
        driver.communicate(timeout=60)
        shown = ranmask("runs", "show", tmp_path / "out")
        assert shown.returncode == 0 and "not finished" in shown.stdout
        assert "of at most 105 rows" in shown.stdout and "accuracy" in shown.stdout
        told = json.loads(ranmask("runs", "show", tmp_path / "out", "--json").stdout)
        assert not told["finished"] and told["summary"]["rows"] == 20 * told["parts"]
        checked = ranmask("runs", "verify", tmp_path / "out")
        assert checked.returncode == 1 and "not finished" in checked.stderr
        refused = ranmask("runs", "merge", tmp_path / "out", tmp_path / "all.jsonl")
        assert refused.returncode == 1 and "not finished" in refused.stderr

    def test_a_damaged_part_is_noticed_and_done_again(self, source, tmp_path):
        run(source, tmp_path / "out")
        before = contents(tmp_path / "out")
        second = parts(tmp_path / "out")[1]
        data = bytearray(second.read_bytes())
        data[len(data) // 2] ^= 1
        second.write_bytes(data)
        checked = ranmask("runs", "verify", tmp_path / "out")
        assert checked.returncode == 1
        assert "part-00001.parquet: the file has changed" in checked.stderr
        refused = ranmask("runs", "merge", tmp_path / "out", tmp_path / "all.parquet")
        assert refused.returncode == 1 and not (tmp_path / "all.parquet").exists()
        assert run(source, tmp_path / "out").returncode == 0
        assert contents(tmp_path / "out") == before

    def test_one_parquet_file(self, source, tmp_path):
        run(source, tmp_path / "out")
        done = ranmask("runs", "merge", tmp_path / "out", tmp_path / "all.parquet")
        assert done.returncode == 0
        table = pq.read_table(tmp_path / "all.parquet")
        assert table.column("row").to_pylist() == list(range(1, 106))
        assert table.schema.field("radius").type == "int64"

    def test_a_folder_that_is_none(self, tmp_path):
        done = ranmask("runs", "verify", tmp_path)
        assert done.returncode == 1 and "no folder of a sharded run" in done.stderr


class TestAttacks:
    def test_shards_are_attacked_as_texts_are(self, source, tmp_path):
        folder, one = tmp_path / "folder", tmp_path / "one.jsonl"
        short = make_input(tmp_path, 12)
        given = ("--recipe", "deepwordbug", "--stop-words", "textfooler", "--rows", 11)
        done = run(short, folder, "steady", *given, "--workers", 2, command="attack", shard_rows=4)
        assert done.returncode == 0, done.stderr
        plain = without_shards(short, one, *given, command="attack")
        assert plain.returncode == 0
        lines = merged(folder, tmp_path / "merged.jsonl")
        assert lines == list(stored_lines(one)) and len(lines) == 11
        assert done.stderr.splitlines()[:2] == plain.stderr.splitlines()[:2]
        shown = ranmask("runs", "show", folder)
        assert "deepwordbug" in shown.stdout and "11 texts" in shown.stdout

    def test_words_of_all_texts_must_be_given(self, source, tmp_path):
        done = run(source, tmp_path / "out", "steady", "--recipe", "anywords", command="attack")
        assert done.returncode == 2 and "give them with --vocabulary" in done.stderr
