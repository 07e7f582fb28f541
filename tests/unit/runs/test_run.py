"""Runs: resumed, never doubled, and one bad row costs one row."""

import itertools
import json

import pytest

from ranmask import ClassifierError, OptionError, OutputError, SmoothedClassifier
from ranmask.data.rows import Row
from ranmask.models.function import FunctionClassifier
from ranmask.models.testing import keyword_classifier
from ranmask.runs.result_file import ResultFile
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import class_ids, classify_groups, classify_rows, label_id

DESCRIPTION = {
    "format": "ranmask-results",
    "version": 1,
    "options": {"keep": 1},
    "classifier": {"tolerance": 0.1},
}


def certify(texts):
    return SmoothedClassifier(keyword_classifier, keep=1).certify(texts)


def rows(*texts):
    return [Row(number, text) for number, text in enumerate(texts, 1)]


class TestClassifyRows:
    def test_order_and_errors(self):
        bad = Row(2, None, error="broken line")
        given = [Row(1, "good"), bad, Row(3, " "), Row(4, "bad bad"), Row(5, 3)]
        outcomes = list(classify_rows(given, certify))
        assert [outcome.row.number for outcome in outcomes] == [1, 2, 3, 4, 5]
        assert [outcome.error for outcome in outcomes][1] == "broken line"
        assert "no words" in outcomes[2].error and "expected a string" in outcomes[4].error
        assert outcomes[0].result.label_id == 1 and outcomes[3].result.label_id == 0

    def test_one_poison_row_costs_one_row(self):
        def poisoned(texts):
            if any("poison" in text for text in texts):
                raise ClassifierError("choked")
            return certify(texts)

        texts = ["good"] * 30 + ["poison"] + ["bad"] * 30
        outcomes = list(classify_rows(rows(*texts), poisoned))
        failed = [outcome.row.number for outcome in outcomes if outcome.error]
        assert failed == [31] and len(outcomes) == 61

    @pytest.mark.parametrize("together", [1, 3])
    def test_a_function_that_fails_once_has_failed(self, together):
        """It is not asked until it answers: what it says would depend on when it is asked."""
        calls = []

        def flaky(texts):
            calls.append(texts)
            if "flaky" in texts[0] and len(calls) <= together + 2:
                raise OSError("no line")
            return keyword_classifier(texts)

        base = FunctionClassifier(flaky, batch_size=1)
        given = rows("good", "flaky", "bad")
        certify_flaky = SmoothedClassifier(base, keep=1, recheck=0).certify
        done = list(classify_rows(given, certify_flaky, at_once=together))
        assert [outcome.row.number for outcome in done if outcome.error] == [2]
        assert done[1].error == "the base classifier raised OSError: no line, for the copy 'flaky'"

    def test_rows_that_fail_only_together_are_told_of(self):
        def small(texts):
            if len(texts) > 4:
                raise MemoryError("too many")
            return keyword_classifier(texts)

        told = []
        given = rows(*["good bad film"] * 4)
        smoothed = SmoothedClassifier(small, keep=1)
        done = [*classify_rows(given, smoothed.certify, at_once=4, trouble=told.append)]
        assert not any(outcome.error for outcome in done)
        [why] = told
        assert why.startswith("rows 1 to 4 were classified one by one") and "MemoryError" in why

    def test_a_function_that_contradicts_itself_stops_the_run(self):
        count = itertools.count()

        def alternating(texts):
            turned = next(count) % 2
            return [row[::-1] if turned else row for row in keyword_classifier(texts)]

        smoothed = SmoothedClassifier(alternating, keep=1)
        done = []
        with pytest.raises(ClassifierError, match=r"20 rows in a row.*asked again"):
            done.extend(classify_rows(rows(*["good film"] * 100), smoothed.certify))
        assert len(done) == 20 and all("asked again" in one.error for one in done)

    def test_a_broken_classifier_stops_the_run(self):
        def broken(texts):
            raise ClassifierError("out of memory")

        seen = []
        with pytest.raises(ClassifierError, match=r"20 rows in a row.*out of memory"):
            seen.extend(classify_rows(rows(*["good"] * 1000), broken))
        assert len(seen) == 20

    def test_what_was_classified_before_the_stop_is_given(self):
        def breaking(texts):
            if "good" not in texts:
                raise ClassifierError("out of memory")
            return certify(texts)

        groups = classify_groups(rows(*["good"] * 5, *["bad"] * 1000), breaking)
        seen = []
        with pytest.raises(ClassifierError, match="stopped at row 25"):
            seen.extend(groups)
        assert [one.row.number for group in seen for one in group] == list(range(1, 26))
        answered = [one.result is not None for group in seen for one in group]
        assert answered == [True] * 5 + [False] * 20
        assert max(map(len, seen)) > 1

    def test_bad_rows_do_not_stop_the_run(self):
        outcomes = list(classify_rows([Row(n, None, error="x") for n in range(1, 200)], certify))
        assert len(outcomes) == 199


def result(row, **values):
    """A line with a result."""
    return {"row": row, "version": 2, "label_id": 1, "assumes": ["a"], **values}


def written(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestResultFile:
    def test_resumes_after_the_last_complete_line(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            assert results.done == 0
            results.write([result(1), result(2)])
        with path.open("ab") as file:
            file.write(b'{"row": 3, "te')  # killed in the middle of a line
        with ResultFile(path, DESCRIPTION) as results:
            assert (results.done, results.rows) == (2, 2)
            results.write([result(3)])
        assert [line["row"] for line in written(path)[1:]] == [1, 2, 3]

    def test_constants_stand_in_the_first_line(self, tmp_path):
        path = tmp_path / "out.jsonl"
        lines = [{"row": 1, "error": "x"}, result(2), result(3, assumes=["b"])]
        with ResultFile(path, DESCRIPTION) as results:
            results.write(lines[:1])
            assert list(results.lines()) == lines[:1]  # it does not wait for the first result
            results.write(lines[1:])
            assert list(results.lines()) == lines
            results.finish({"rows": 3})
        header, *rows, last = written(path)
        assert header == {**DESCRIPTION, "constants": {"version": 2, "assumes": ["a"]}}
        assert rows == [
            lines[0],
            {"row": 2, "label_id": 1},
            {**rows[1], "row": 3, "assumes": ["b"]},
        ]
        assert last == {"finished": {"rows": 3}}

    @pytest.mark.parametrize("after", [1, 2, 3, 4])
    def test_the_same_bytes_whenever_it_was_interrupted(self, tmp_path, after):
        lines = [{"row": 1, "error": "x"}, {"row": 2, "error": "x"}, result(3), result(4, alpha=1)]

        def write(path, stop=None):
            with ResultFile(path, DESCRIPTION) as results:
                for line in lines[:stop]:
                    if line["row"] > results.done:
                        results.write([line])
                if stop is not None:
                    raise KeyboardInterrupt
                results.finish({})

        write(tmp_path / "whole.jsonl")
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "cut.jsonl", after)
        write(tmp_path / "cut.jsonl")
        assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()

    @pytest.mark.parametrize("left", [1, 9, 40, -1])
    def test_a_first_line_that_was_cut_off(self, tmp_path, left):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1)])
        whole = path.read_bytes()
        path.write_bytes(whole.splitlines(keepends=True)[0][:left])
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1)])
        assert path.read_bytes() == whole

    def test_rows_taken_out_of_a_finished_file(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1), result(2)])
            results.finish({})
        whole = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*whole[:2], whole[3]]))
        with ResultFile(path, DESCRIPTION) as results:
            assert results.finished and results.done == 1
            results.write([result(2)])
            results.finish({})
        assert path.read_bytes() == b"".join(whole)

    def test_refuses_other_options(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1)])
        other = {**DESCRIPTION, "options": {"keep": 2}}
        with pytest.raises(OutputError, match="different: keep"), ResultFile(path, other):
            pass

    def test_a_measured_tolerance_may_differ(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1)])
        with ResultFile(path, {**DESCRIPTION, "classifier": {"tolerance": 0.2}}) as results:
            assert results.done == 1

    @pytest.mark.parametrize("content", ["precious\n", "precious", '{"row": 1}\n', "[]\n"])
    def test_refuses_a_foreign_file(self, tmp_path, content):
        path = tmp_path / "out.jsonl"
        path.write_text(content)
        with pytest.raises(OutputError, match="not written by ranmask"):
            ResultFile(path, DESCRIPTION).__enter__()
        assert path.read_text() == content

    def test_refuses_another_version(self, tmp_path):
        path = tmp_path / "out.jsonl"
        path.write_text(json.dumps({**DESCRIPTION, "version": 9, "constants": {}}) + "\n")
        with pytest.raises(OutputError, match="version 9 is not 1"):
            ResultFile(path, DESCRIPTION).__enter__()

    def test_refuses_a_second_writer(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with (
            ResultFile(path, DESCRIPTION),
            pytest.raises(OutputError, match="another run"),
            ResultFile(path, DESCRIPTION),
        ):
            pass

    def test_refuses_a_damaged_file(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1)])
        with path.open("a") as file:
            file.write('garbage\n{"row": 3}\n')
        with pytest.raises(OutputError, match="broken line after row 1"):
            ResultFile(path, DESCRIPTION).__enter__()

    def test_not_writable(self, tmp_path):
        with pytest.raises(OutputError, match="cannot write"):
            ResultFile(tmp_path / "absent" / "out.jsonl", DESCRIPTION).__enter__()

    def test_half_a_surrogate_pair_is_kept(self, tmp_path):
        path = tmp_path / "out.jsonl"
        with ResultFile(path, DESCRIPTION) as results:
            results.write([result(1, text="a \ud83d b"), result(2, text="schön")])
            assert [line["text"] for line in results.lines()] == ["a \ud83d b", "schön"]
        assert "schön" in path.read_text()


class TestLabels:
    names = ("World", "Sports", "Sci/Tech")

    @pytest.mark.parametrize(
        ("label", "expected"),
        [
            *[("Sports", 1), ("sports ", 1), (2, 2), ("2", 2), (2.0, 2)],
            *[(3, None), ("x", None), (None, None), (True, None), (-1, None), (1.5, None)],
        ],
    )
    def test_names_and_numbers(self, label, expected):
        assert label_id(label, self.names, 3) == expected

    def test_numbers_without_names(self):
        assert label_id("1", None, 2) == 1
        assert label_id("pos", None, 2) is None

    def test_a_name_that_is_a_number_wins_over_the_number(self):
        assert label_id("1", ("1", "0"), 2) == 0

    def test_unknown_label_keeps_the_result(self):
        [outcome] = classify_rows([Row(1, "good", "maybe")], certify)
        line = outcome.to_dict(("neg", "pos"))
        assert line["label_id"] == 1 and "unknown label 'maybe'" in line["error"]
        assert "correct" not in line

    def test_summary_counts_labelled_rows_only(self):
        given = [Row(1, "good good good", 1), Row(2, "bad", 1), Row(3, ""), Row(4, "bad", "?")]
        lines = [outcome.to_dict(None) for outcome in classify_rows(given, certify)]
        summary = RunSummary("certify")
        summary.add(lines)
        assert (summary.rows, summary.errors, summary.certified.texts) == (4, 2, 2)
        values = summary.values()
        assert values["accuracy"] == 0.5 and values["certified_accuracy"][1] == 0.5
        in_parts = RunSummary("certify")
        in_parts.add(lines[:1])
        in_parts.add(lines[1:])
        assert in_parts == summary and not summary.kinds


def test_classes_of_a_corpus_by_the_model():
    assert class_ids(["spam", "Ham"], ("ham", "spam")) == [1, 0]
    assert class_ids(["x", "y"], None) == [0, 1]
    with pytest.raises(OptionError, match="class 'eggs', the model has ham, spam"):
        class_ids(["ham", "eggs"], ("ham", "spam"))
