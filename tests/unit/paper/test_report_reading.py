"""Result files as condensed records: read, written and read again, and every refusal."""

import json
import math
import subprocess
import sys
from dataclasses import MISSING, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.attacks.api import as_victim
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.runs import attack_rows
from ranmask.data.rows import Row, RowSource
from ranmask.errors import DataError, OutputError, folders_cut
from ranmask.models.testing import keyword_classifier
from ranmask.paper.reading import read, read_several, sources, write
from ranmask.paper.report import html, markdown
from ranmask.paper.report.page import build
from ranmask.paper.run_data import (
    Attacked,
    Betas,
    Certified,
    Examples,
    Predicted,
    Reading,
    Reproduction,
    Step,
    Trained,
)
from ranmask.paper.typed_json import without_folders

DATA = {"name": "sst2", "split": "test", "rows": 3, "sha256": "ab" * 32, "note": None}


def result_line(row, label_id=1, expected=1, **more):
    """A line as `ranmask predict` writes it."""
    return {
        "row": row,
        "text": "a secret text",
        "version": 2,
        "label": "positive",
        "label_id": label_id,
        "votes": [1, 3],
        "scores": None,
        "words": 10 + row,
        "words_read": 10 + row,
        "kept": 3,
        "masks": 4,
        "family": "sampled",
        "ensemble": "vote",
        "expected_id": expected,
        "correct": label_id == expected,
        **more,
    }


def certified_line(row, radius, **more):
    certificate = {"certificate": "exact", "guarantee": True, "alpha": None, "tight": True}
    extra = {"threat": "substitutions", "uncertain": 0, "critical_words": [], "assumes": []}
    return result_line(row, **{"radius": radius, **certificate, **extra, **more})


def run_record(command="certify", rows=3, **more):
    return {
        "format": "ranmask-results",
        "version": 1,
        "ranmask": "0.6.0",
        "command": command,
        "input": DATA,
        "classifier": {
            "base": {"kind": "huggingface", "model": "/home/someone/models/m", "hide": "drop"},
            "labels": ["negative", "positive"],
            "tolerance": 1e-5,
            "options": {"mask_rate": 0.3, "masks": 4},
        },
        "finished": {"rows": rows, "errors": 0},
        **more,
    }


def put(path, lines, record=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    given = run_record(rows=len(lines)) if record is None else dict(record)
    last = [{"finished": given.pop("finished")}] if "finished" in given else []
    whole = [{**given, "constants": {}}, *lines, *last]
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    return path


def entry(name, measures="certified", **more):
    ending = "training.json" if measures == "training" else "jsonl"
    values = {"name": name, "measures": measures, "command": f"ranmask do --output {name}"}
    values |= {"output": f"results/{name}.{ending}", "place": {"rate": 0.3}, "state": "done"}
    return {**values, "seconds": 1.5, "error": None, **more}


def index(folder, *steps, **more):
    recipe = {"name": "sst2-certified", "title": "SST2", "kind": "certified"}
    recipe |= {"paper": "tb-sst2-certified", "about": "What it shows."}
    values = {"format": "ranmask-reproduction", "version": 1, "recipe": recipe, "size": "smoke"}
    values |= {"settings": {"texts": 3}, "machine": {"ranmask": "0.6.0"}, "steps": list(steps)}
    folder.mkdir(exist_ok=True)
    (folder / "reproduction.json").write_text(json.dumps({**values, **more}))
    return folder


LINES = [certified_line(1, 2), certified_line(2, None, label_id=0), certified_line(5, 0)]


@pytest.fixture
def folder(tmp_path):
    """A reproduction of one step."""
    put(tmp_path / "run" / "results" / "votes.jsonl", LINES)
    return index(tmp_path / "run", entry("votes"))


class TestCertified:
    def test_the_folder(self, folder):
        found = read(folder)
        assert (found.name, found.kind, found.size) == ("sst2-certified", "certified", "smoke")
        assert found.settings == {"texts": 3} and found.machine == {"ranmask": "0.6.0"}
        [step] = found.steps
        assert step.data == DATA and step.place == {"rate": 0.3} and step.seconds == 1.5
        exact = Reading("exact", True, (True, False, True), (2, None, 0))
        assert step.result == Certified((1, 2, 5), (11, 12, 15), 4, (exact,), expected=(1, 1, 1))

    def test_folders_of_the_machine_are_cut(self, folder):
        step = entry("votes", command="ranmask certify --model /home/me/models/m")
        index(folder, step, settings={"base": "/home/me/minilm"}, machine={"x": "/a/b"})
        found = read(folder)
        assert found.steps[0].command == "ranmask certify --model m"
        assert (found.settings, found.machine) == ({"base": "minilm"}, {"x": "b"})

    def test_texts_with_other_ends_of_lines(self, tmp_path):
        path = put(tmp_path / "a.jsonl", LINES)
        path.write_text(path.read_text().replace("a secret text", "a\u2028secret\x85text"))
        assert read(path).steps[0].result.rows == (1, 2, 5)

    def test_others_are_right_by_their_own_labels(self, tmp_path):
        others = [
            {"ablation": {"label_id": label, "radius": 1, "guarantee": True, "alpha": 0.05}}
            for label in (1, 1, 0)
        ]
        for other in others:
            other["paper"] = {**other["ablation"], "radius": None, "guarantee": False}
        lines = [{**line, "others": other} for line, other in zip(LINES, others, strict=True)]
        result = read(put(tmp_path / "a.jsonl", lines)).steps[0].result
        assert [one.certificate for one in result.readings] == ["exact", "ablation", "paper"]
        assert [one.guarantee for one in result.readings] == [True, True, False]
        assert result.readings[0].correct == (True, False, True)
        assert result.readings[1].correct == (True, True, False)
        assert result.readings[2].radius == (None, None, None)

    def test_certificates_must_agree(self, tmp_path):
        other = {"paper": {"label_id": 1, "radius": 1, "guarantee": False, "alpha": None}}
        path = put(tmp_path / "a.jsonl", [LINES[0], {**LINES[1], "others": other}])
        with pytest.raises(DataError, match=r"line 3: other certificates than in the first"):
            read(path)

    def test_rows_with_errors_are_counted_and_left_out(self, tmp_path):
        lines = [LINES[0], {"row": 2, "text": "", "error": "no words"}, LINES[2]]
        lines += [certified_line(6, 1, expected=None, error="unknown label 'x'")]
        result = read(put(tmp_path / "a.jsonl", lines)).steps[0].result
        assert result.rows == (1, 5) and result.errors == 2

    def test_all_errors_is_a_failure(self, tmp_path):
        lines = [{"row": row, "error": f"no words in /home/me/data/{row}"} for row in (1, 2)]
        [step] = read(put(tmp_path / "a.jsonl", lines)).steps
        assert step.state == "failed" and step.result is None
        assert step.error == "all 2 rows have errors, the first: no words in 1"

    def test_without_labels(self, tmp_path):
        line = {key: value for key, value in LINES[0].items() if key != "expected_id"}
        with pytest.raises(DataError, match=r"row 1 has no true label.*--label-column"):
            read(put(tmp_path / "a.jsonl", [line]))


class TestOtherMeasures:
    def test_predictions(self, tmp_path):
        lines = [result_line(1), result_line(2, label_id=0, votes=[4, 0], scores=None)]
        found = read(put(tmp_path / "a.jsonl", lines, run_record("predict", rows=2)))
        result = found.steps[0].result
        assert found.kind == "entropy" and found.steps[0].place == {"method": "a"}
        assert result.correct == (True, False) and result.words == (11, 12)
        expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
        assert result.vote_entropy == (pytest.approx(expected, abs=1e-6), 0)
        assert result.score_entropy is None

    @pytest.mark.parametrize(
        ("ensemble", "scores"), [("score", [0.1, 0.3]), ("logit", [0.0, math.log(3)])]
    )
    def test_entropy_of_scores_and_of_logits(self, tmp_path, ensemble, scores):
        lines = [result_line(1, ensemble=ensemble, scores=scores, votes=[2, 2])]
        result = read(put(tmp_path / "a", lines, run_record("predict", rows=1))).steps[0].result
        expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
        assert result.score_entropy == (pytest.approx(expected, abs=1e-6),)
        assert result.vote_entropy == (pytest.approx(math.log(2), abs=1e-6),)

    def test_betas_by_number_of_changed_words(self, tmp_path):
        one = {"share": 0.9, "changed": [1, 2], "average": [0.8, 0.7], "largest": [0.85, 0.9]}
        short = {**one, "share": 0.12345678, "average": [0.5, None], "largest": [0.6, None]}
        lines = [result_line(1, **one), result_line(4, **short), {"row": 5, "error": "no words"}]
        found = read(put(tmp_path / "a.jsonl", lines, run_record("beta")))
        assert found.kind == "beta" and found.steps[0].place == {"corpus": "sst2", "rate": 0.3}
        assert found.steps[0].result == Betas(
            rows=(1, 4),
            words=(11, 14),
            changed=(1, 2),
            share=(0.9, 0.123457),
            average=((0.8, 0.5), (0.7, None)),
            largest=((0.85, 0.6), (0.9, None)),
            errors=1,
        )
        lines[1]["changed"] = [1, 3]
        with pytest.raises(DataError, match=r"line 3: betas for other numbers"):
            read(put(tmp_path / "a.jsonl", lines, run_record("beta")))

    def test_examples_keep_their_lines_and_the_names_of_their_classes(self, tmp_path):
        lines = [{**LINES[0], "copies": [{"kept": [0, 4], "label_id": 1}]}]
        put(tmp_path / "run" / "results" / "ours.jsonl", lines)
        [step] = read(index(tmp_path / "run", entry("ours", "examples"))).steps
        assert step.result == Examples(tuple(lines), ("negative", "positive"))
        record = run_record(rows=1)
        record["classifier"]["labels"] = None
        put(tmp_path / "run" / "results" / "ours.jsonl", lines, record)
        assert read(tmp_path / "run").steps[0].result == Examples(tuple(lines))

    def test_training_without_its_folders(self, tmp_path):
        run = {"base": "/home/someone/encoders/minilm", "train": {"rows": 9}}
        record = {"format": "ranmask-training", "version": 1, "run": run, "complete": True}
        target = tmp_path / "run" / "results" / "model.training.json"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps({**record, "validation": {"accuracy": 0.5}}))
        folder = index(tmp_path / "run", entry("model", "training", place={}))
        [step] = read(folder).steps
        assert step.result == Trained({"base": "minilm", "train": {"rows": 9}}, {"accuracy": 0.5})
        target.write_text(json.dumps(record))
        assert (read(folder).steps[0].state, read(folder).steps[0].result) == ("todo", None)

    def test_steps_that_are_not_done_have_no_result(self, tmp_path):
        steps = [
            entry("a", state="failed", error="no file /root/w/x.bin"),
            entry("b", state="todo"),
        ]
        first, second = read(index(tmp_path / "run", *steps)).steps
        assert (first.state, first.error, first.result) == ("failed", "no file x.bin", None)
        assert (second.state, second.result) == ("todo", None)


class TestAttacks:
    @pytest.fixture
    def file(self, tmp_path):
        """What the engine writes: a success, a text wrong before, a failure, and an error."""
        words = AttackResources(vocabulary=Vocabulary("made up", ("awful", "best")))
        engine = AttackLoop(
            as_victim(keyword_classifier), build_recipe("anywords", words), budget=1
        )
        rows = [Row(1, "a good film", 1), Row(2, "a great plot", 0)]
        rows += [Row(3, "good good great fine film", 1), Row(4, "", 1)]
        path = tmp_path / "attacked.jsonl"
        attack_rows(engine, RowSource(rows, 4, DATA), path)
        return path

    def test_the_engine_s_own_file(self, file):
        found = read(file)
        [step] = found.steps
        result = step.result
        assert found.kind == "empirical" and step.place["attack"] == result.attack == "anywords"
        assert result.rows == (1, 2, 3, 4) and result.victim is None
        assert result.statuses == ("succeeded", "skipped", "failed", "error")
        assert result.words == (3, 3, 5, 0) and result.changed == (1, 0, 0, 0)
        assert result.confirmed == (True, None, None, None)
        assert result.queries[0] > 1

    def test_victims_without_their_models(self, file):
        first, *rest = file.read_text().splitlines(keepends=True)
        values = json.loads(first)
        options = {"mask_rate": 0.9, "sampling": "fresh"}
        base = {"kind": "huggingface", "model": "/root/w/m", "hide": "drop"}
        smoothed = {"base": base, "labels": ["a", "b"], "options": options, "tolerance": 1e-5}
        values["classifier"] = {"kind": "smoothed", **smoothed}
        file.write_text("".join([json.dumps(values) + "\n", *rest]))
        expected = {"kind": "smoothed", "options": options, "hide": "drop"}
        assert read(file).steps[0].result.victim == expected
        values["classifier"] = {"kind": "cascade", "threshold": 0.5, "smoothed": smoothed}
        file.write_text("".join([json.dumps(values) + "\n", *rest]))
        assert read(file).steps[0].result.victim == {
            "kind": "cascade",
            "threshold": 0.5,
            "smoothed": {"options": options, "hide": "drop"},
        }

    def test_another_version_of_a_line(self, file):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[1]["version"] = 9
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(DataError, match=r"attacked.jsonl, line 2: attack outcome version 9"):
            read(file)

    def test_no_text_is_kept(self, file, tmp_path):
        write(read(file), tmp_path / "condensed.json")
        kept = (tmp_path / "condensed.json").read_text()
        assert "film" not in kept and "plot" not in kept


class TestRefusals:
    def test_nothing_there(self, tmp_path):
        with pytest.raises(DataError, match=r"there is no file or folder .*none: give a folder"):
            read(tmp_path / "none")

    def test_not_a_reproduction(self, tmp_path):
        with pytest.raises(DataError, match=r"not a reproduction: there is no reproduction.json"):
            read(tmp_path)

    def test_broken_index(self, folder):
        (folder / "reproduction.json").write_text('{\n"format": "ranmask-reproduction",\n!}')
        with pytest.raises(DataError, match=r"reproduction.json, line 3: not valid JSON"):
            read(folder)

    def test_not_an_object(self, folder):
        (folder / "reproduction.json").write_text("[1]")
        with pytest.raises(DataError, match=r"expected a JSON object, not list"):
            read(folder)

    def test_not_utf8(self, folder):
        (folder / "reproduction.json").write_bytes(b'{"a": "\xff"}')
        with pytest.raises(DataError, match="not UTF-8"):
            read(folder)

    def test_another_format(self, folder):
        index(folder, format="something")
        with pytest.raises(DataError, match=r"format 'something', not 'ranmask-reproduction'"):
            read(folder)

    def test_another_version(self, folder):
        index(folder, version=2)
        with pytest.raises(
            DataError, match=r"version 2 is not 1, the one this ranmask reads: use the ranmask"
        ):
            read(folder)

    @pytest.mark.parametrize("key", ["name", "measures", "command", "place", "state", "output"])
    def test_a_step_lacks_something(self, folder, key):
        step = entry("votes")
        del step[key]
        with pytest.raises(DataError, match=rf"reproduction.json: step 1: no '{key}'"):
            read(index(folder, step))

    @pytest.mark.parametrize(("key", "value"), [("measures", "x"), ("state", "lost")])
    def test_a_step_with_unknown_values(self, folder, key, value):
        with pytest.raises(DataError, match=rf"step 1: {key} '{value}' is none of"):
            read(index(folder, entry("votes", **{key: value})))

    def test_an_unknown_kind(self, folder):
        with pytest.raises(DataError, match=r"recipe: no 'title'"):
            read(index(folder, recipe={"name": "x"}))
        recipe = {"name": "x", "title": "X", "kind": "strange", "paper": "", "about": ""}
        with pytest.raises(DataError, match=r"recipe: kind 'strange' is none of"):
            read(index(folder, recipe=recipe))

    @pytest.mark.parametrize("output", ["../votes.jsonl", "/etc/passwd"])
    def test_a_file_outside(self, folder, output):
        with pytest.raises(DataError, match=r"lies outside of"):
            read(index(folder, entry("votes", output=output)))

    def test_a_file_that_is_gone(self, folder):
        (folder / "results" / "votes.jsonl").unlink()
        with pytest.raises(DataError, match=r"step votes is done, but its file .* is gone"):
            read(folder)

    def test_no_record(self, folder):
        path = folder / "results" / "votes.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
        with pytest.raises(DataError, match=r"its first line is not the record of one"):
            read(folder)

    def test_a_record_of_another_version(self, folder):
        put(folder / "results" / "votes.jsonl", LINES, run_record(version=2))
        with pytest.raises(DataError, match=r"votes.jsonl: version 2 is not 1"):
            read(folder)

    def test_another_command(self, folder):
        put(folder / "results" / "votes.jsonl", LINES, run_record("attack"))
        with pytest.raises(DataError, match=r"written by `ranmask attack`, and .* 'certified'"):
            read(folder)

    def test_a_command_without_a_report(self, tmp_path):
        with pytest.raises(DataError, match=r"`ranmask tune`: only files of certify, attack"):
            read(put(tmp_path / "a.jsonl", LINES, run_record("tune")))

    def test_unfinished_runs_are_not_done(self, folder):
        record = run_record()
        del record["finished"]
        path = put(folder / "results" / "votes.jsonl", LINES[:2], record)
        path.write_text(path.read_text() + '{"row": 3, "te')
        [step] = read(folder).steps
        assert (step.state, step.result) == ("todo", None)
        assert step.error == "not finished (rows so far: 2): the same command goes on"

    def test_lines_that_are_missing(self, folder):
        put(folder / "results" / "votes.jsonl", LINES, run_record(rows=4))
        with pytest.raises(DataError, match=r"has 3 lines, and its record says 4 rows"):
            read(folder)

    def test_a_broken_line(self, folder):
        path = folder / "results" / "votes.jsonl"
        path.write_text(path.read_text().replace('"row": 2', '"row" 2'))
        with pytest.raises(DataError, match=r"votes.jsonl, line 3: not valid JSON"):
            read(folder)

    def test_a_line_of_another_version(self, folder):
        put(folder / "results" / "votes.jsonl", [LINES[0], {**LINES[1], "version": 1}])
        with pytest.raises(DataError, match=r"line 3: result version 1 is not 2, .*run again"):
            read(folder)

    def test_a_line_that_lacks_something(self, folder):
        line = {key: value for key, value in LINES[1].items() if key != "radius"}
        put(folder / "results" / "votes.jsonl", [LINES[0], line])
        with pytest.raises(DataError, match=r"votes.jsonl, line 3: no 'radius' in it"):
            read(folder)

    @pytest.mark.parametrize("radius", [2.5, "2", [1], -1])
    def test_a_radius_is_a_number_of_words(self, folder, radius):
        line = {**LINES[1], "radius": radius}
        put(folder / "results" / "votes.jsonl", [LINES[0], line])
        with pytest.raises(DataError, match=r"readings 1: radius is .*, not int: .* changed"):
            read(folder)

    def test_a_line_of_other_types(self, folder):
        record = run_record("predict", rows=1)
        put(folder / "results" / "votes.jsonl", [result_line(1, votes="many")], record)
        with pytest.raises(DataError, match=r"does not hold lines of `ranmask predict`"):
            read(index(folder, entry("votes", "predict")))

    @pytest.mark.parametrize("rows", [(1, 1), (2, 1), (1, None)])
    def test_rows_out_of_order(self, folder, rows):
        lines = [{**LINES[0], "row": row} for row in rows]
        put(folder / "results" / "votes.jsonl", lines)
        with pytest.raises(DataError, match=r"line 3: row .* comes after row"):
            read(folder)

    def test_another_file(self, tmp_path):
        (tmp_path / "x.json").write_text('{"format": "ranmask-tune", "version": 1}')
        with pytest.raises(DataError, match=r"format 'ranmask-tune', not 'ranmask-condensed'"):
            read(tmp_path / "x.json")

    def test_twice_the_same_in_one_report(self, folder, tmp_path):
        other = index(tmp_path / "other", size="paper")
        assert [one.size for one in read_several([folder, other])] == ["smoke", "paper"]
        again = index(tmp_path / "again")
        with pytest.raises(DataError, match=r"both sst2-certified in the size 'smoke'.*compare"):
            read_several([folder, other, again])
        with pytest.raises(DataError, match=r"both sst2-certified"):
            read_several([folder, folder])

    def test_a_folder_stands_for_what_is_in_it(self, folder, tmp_path):
        around = tmp_path / "around"
        (around / "empty").mkdir(parents=True)
        with pytest.raises(DataError, match=r"around has no reproduction and no result file in it"):
            read_several([around])
        inner = index(around / "other", size="paper")
        write(read(folder), around / "small.json")
        (around / "foreign.json").write_text('{"format": "ranmask-tune"}')
        (around / "list.json").write_text("[1]")
        (around / "note.txt").write_text("nothing of ours")
        assert [one.size for one in read_several([around])] == ["paper", "smoke"]
        assert sources(around) == sources(inner) | {(around / "small.json").resolve()}
        with pytest.raises(DataError, match=r"note\.txt is no result of ranmask: give a folder"):
            read_several([around / "note.txt"])
        (around / "cut.json").write_text('{"format": "ranm')
        with pytest.raises(DataError, match=r"cut\.json: not valid JSON"):
            read_several([around])

    def test_a_folder_of_result_files(self, folder):
        found = read_several([folder / "results"])
        assert [one.size for one in found] == ["single run"] * len(found)
        assert found


class TestCondensedFile:
    @pytest.fixture
    def written(self, folder, tmp_path):
        write(read(folder), tmp_path / "small.json")
        return tmp_path / "small.json"

    def test_identity_and_size(self, written, folder):
        assert read(written) == read(folder)
        assert "secret" not in written.read_text()
        assert '"rows": "1-2,5"' in written.read_text()

    def test_another_version(self, written):
        written.write_text(written.read_text().replace('"version": 1', '"version": 2'))
        with pytest.raises(DataError, match=r"small.json: version 2 is not 1"):
            read(written)

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ('"rows": "1-2,5"', '"rows": "1-3,5"', "words has 3 entries for 4 rows"),
            ('"101"', '"10"', "correct of exact has 2 entries for 3 rows"),
            ('"101"', '"1x1"', "result of votes: readings 1: correct cannot be read"),
            ('"rows": "1-2,5"', '"rows": "one"', "result of votes: rows cannot be read"),
            ('"masks": 4,\n', "", "result of votes: no 'masks' in it"),
        ],
    )
    def test_tampered(self, written, before, after, message):
        assert before in written.read_text()
        written.write_text(written.read_text().replace(before, after))
        with pytest.raises(DataError, match=message):
            read(written)

    def test_done_without_a_result(self, written):
        found = json.loads(written.read_text())
        found["steps"][0]["result"] = None
        written.write_text(json.dumps(found))
        with pytest.raises(DataError, match=r"result of votes: none, although it is done"):
            read(written)

    def test_where_it_cannot_be_written(self, folder, tmp_path):
        with pytest.raises(OutputError, match=r"cannot write .*small.json"):
            write(read(folder), tmp_path / "none" / "small.json")
        with pytest.raises(OutputError, match=r"cannot write"):
            write(read(folder), folder)

    def test_reading_needs_no_model(self, folder):
        code = (
            "import sys; from pathlib import Path; from ranmask.paper.reading import read\n"
            f"read(Path({str(folder)!r}))\n"
            "assert not {'torch', 'transformers', 'numpy', 'rich'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestPrivacy:
    def test_values(self):
        value = {
            "a": ["/home/me/x/model.bin", "Sci/Tech", "runs/m"],
            "b": "C:\\Users\\me\\m",
            "c": 1,
        }
        expected = {"a": ["model.bin", "Sci/Tech", "runs/m"], "b": "m", "c": 1}
        assert without_folders(value) == expected
        assert without_folders("/") == "/"

    @pytest.mark.parametrize(
        ("text", "cut"),
        [
            ("ranmask train --base /root/w/minilm --x", "ranmask train --base minilm --x"),
            ("--base=/root/w/minilm", "--base=minilm"),
            ("cannot read '/a/b/c.txt'", "cannot read 'c.txt'"),
            ("see https://example.org/a/b", "see https://example.org/a/b"),
            ("runs/steps/a and ~/x/y", "runs/steps/a and ~/x/y"),
        ],
    )
    def test_commands(self, text, cut):
        assert folders_cut(text) == cut


# -- whatever is written is read again ---------------------------------------------------------

SHARES = st.floats(0, 1)
NAMES = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
# No name that a report looks for: those have to have the right type.
MAPPINGS = st.dictionaries(NAMES.map("_{}".format), JSON, max_size=3)


@st.composite
def results(draw):
    rows = tuple(sorted(draw(st.sets(st.integers(1, 60), max_size=12))))
    counts = st.integers(0, 400)

    def each(values):
        return draw(st.lists(values, min_size=len(rows), max_size=len(rows)).map(tuple))

    kind = draw(st.sampled_from(["certified", "attack", "predict", "beta", "examples", "training"]))
    if kind == "certified":
        readings = [
            Reading(name, draw(st.booleans()), each(st.booleans()), each(st.none() | counts))
            for name in draw(st.lists(NAMES, max_size=3))
        ]
        threat, errors = draw(NAMES), draw(counts)
        return kind, Certified(rows, each(st.integers(1, 400)), 5, tuple(readings), errors, threat)
    if kind == "attack":
        statuses = each(st.sampled_from(["succeeded", "failed", "skipped", "error"]))
        numbers = each(counts), each(counts), each(counts)
        confirmed = each(st.none() | st.booleans())
        victim = draw(st.none() | MAPPINGS)
        return kind, Attacked(draw(NAMES), victim, rows, statuses, *numbers, confirmed)
    if kind == "predict":
        scores = each(SHARES) if draw(st.booleans()) else None
        correct = each(st.booleans())
        return kind, Predicted(rows, correct, each(SHARES), scores, each(counts), draw(counts))
    if kind == "beta":
        changed = tuple(range(1, draw(st.integers(1, 4))))
        average, largest = (tuple(each(st.none() | SHARES) for _ in changed) for _ in range(2))
        return kind, Betas(rows, each(counts), changed, each(SHARES), average, largest, 1)
    if kind == "examples":
        labels = draw(st.lists(st.text(max_size=3), max_size=3).map(tuple))
        return kind, Examples(draw(st.lists(MAPPINGS, max_size=3).map(tuple)), labels)
    return kind, Trained(draw(MAPPINGS), draw(MAPPINGS))


@st.composite
def steps(draw):
    kind, result = draw(results())
    state = draw(st.sampled_from(["done", "failed", "todo"]))
    step = Step(draw(NAMES), kind, draw(NAMES), draw(MAPPINGS), state)
    return replace(
        step,
        seconds=draw(st.none() | SHARES),
        error=draw(st.none() | NAMES),
        data=draw(st.none() | MAPPINGS),
        result=result if state == "done" else draw(st.sampled_from([None, result])),
    )


@given(
    named=st.tuples(NAMES, NAMES, NAMES, NAMES, NAMES),
    about=st.tuples(MAPPINGS, MAPPINGS),
    made=st.lists(steps(), max_size=3),
    kind=st.sampled_from(["certified", "empirical", "beta", "rates", "entropy", "arithmetic"]),
)
@settings(max_examples=60)
def test_what_is_written_is_read_again(tmp_path_factory, named, about, made, kind):
    name, title, paper, text, size = named
    whole = Reproduction(name, title, kind, paper, text, size, *about, tuple(made))
    path = tmp_path_factory.getbasetemp() / "any.json"
    write(whole, path)
    assert read(path) == whole


# -- files that were touched -------------------------------------------------------------------

STORED = sorted((Path(__file__).parents[2] / "data" / "report").glob("*.json"))
OTHERS = (
    *(None, True, -1, 1.5, 10**30, math.nan, math.inf, "", "x", "1-3", "1-99999999999"),
    *("\ud800", [], [1], [None], [[1]], {}, {"a": 1}, [{}]),
)


def entries(value, path=()):
    """The way to every entry, the first two of each list."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from entries(one, (*path, key))
    elif isinstance(value, list):
        for place, one in enumerate(value[:2]):
            yield from entries(one, (*path, place))


def changed(value, path, other):
    """The same with another entry, or without it."""
    copied = json.loads(json.dumps(value))
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    if other is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = other
    return copied


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.stem)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_file_that_was_touched_is_refused_or_shown(tmp_path_factory, stored, data):
    whole = json.loads(stored.read_text(encoding="utf-8"))
    whole["steps"] = whole["steps"][:2] + whole["steps"][-1:]
    path = data.draw(st.sampled_from(list(entries(whole))))
    other = data.draw(st.sampled_from([MISSING, *OTHERS]))
    file = tmp_path_factory.getbasetemp() / "touched.json"
    file.write_text(json.dumps(changed(whole, path, other)))
    try:
        report = build([read(file)])
    except DataError as error:
        assert "\n" not in str(error) and "touched.json" in str(error)
    else:
        html.render(report).encode("utf-8")
        markdown.render(report).encode("utf-8")


@pytest.mark.parametrize(
    ("path", "other", "message"),
    [
        (("steps", 1, "result", "readings", 0, "radius", 0), "2", "radius is"),
        (("steps", 1, "result", "words", 0), 0, "words is 0"),
        (("steps", 1, "result", "words"), 7, "words is 7"),
        (("steps", 1, "result", "errors"), -1, "errors is -1, not int"),
        (("steps", 1, "place", "rate"), "x", "step 2: place: rate is 'x', not float"),
        (("steps", 1, "seconds"), math.nan, "seconds is nan"),
        (("steps", 1, "seconds"), -2.0, "seconds is -2.0, not"),
        (("steps", 1, "data"), ["sst2"], "data is"),
        (("steps", 1), "x", "step 2: expected a JSON object, not str"),
        (("steps",), 1, "steps is a int, not a list"),
        (("settings",), "x", "settings is 'x'"),
        (("recipe", "title"), None, "title is None, not str"),
        (("steps", -1, "result", "lines", 0, "votes"), [1], "has no entry in votes"),
        (("steps", -1, "result", "lines", 0, "copies", 0), {"kept": [1]}, "a copy has only kept"),
    ],
)
def test_wrong_entries_are_named(tmp_path, path, other, message):
    whole = json.loads(STORED[0].read_text(encoding="utf-8"))
    whole["steps"] = [step for step in whole["steps"] if step["result"] is not None]
    file = tmp_path / "c.json"
    file.write_text(json.dumps(changed(whole, path, other)))
    with pytest.raises(DataError) as caught:
        read(file)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5_000, "[]", "7", "\ufeff{}", "{", ""])
def test_what_is_no_json_object_is_refused_in_one_line(tmp_path, text):
    for name in ("a.json", "a.jsonl"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError) as caught:
            read(path)
        assert "\n" not in str(caught.value)
