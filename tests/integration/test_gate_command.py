"""``ranmask gate``: exit codes, figures by hand, and every output read by a parser."""

import inspect
import json
import xml.etree.ElementTree as ElementTree

import pytest

from commands import run_cli
from ranmask import SmoothedClassifier, WindowDetector, read_results
from ranmask.data.rows import Columns, file_rows
from ranmask.errors import DataError, OptionError
from ranmask.evaluation.gate import GATE_FORMAT, GATE_VERSION, run_gate
from ranmask.evaluation.requirements import parse_requirement
from ranmask.models.testing import keyword_classifier

MODEL = "ranmask.models.testing:keyword_classifier"
SMOOTHED = ("--model", MODEL, "--keep", "1", "--ensemble", "vote", "--labels", "bad,good")

# Ten texts: "good" by four words, by three, by two of four (a tie, which goes to bad), ...
TEXTS = [
    ("good good good good", "good"),
    ("good good good film", "good"),
    ("good good film film", "good"),
    ("good film film film", "good"),
    *[("film film film film", "bad")] * 4,
    ("good good good film", "bad"),
    ("good film film film", "bad"),
]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in TEXTS))
    return path


def gate(texts, *arguments, require=("accuracy >= .1",)):
    required = [word for text in require for word in ("--require", text)]
    rows = ("--input", texts, "--label-column", "label")
    return run_cli("gate", *SMOOTHED, *rows, *required, *arguments)


# By hand: of four good texts two are labelled good, of six bad ones one is.
FIGURES = {
    "accuracy": 7 / 10,
    "balanced accuracy": (2 / 4 + 5 / 6) / 2,
    "errors": 0,
    "precision": 2 / 3,
    "recall": 2 / 4,
    "f1": 4 / 7,
    "false-positive rate": 1 / 6,
    "auc": (6 + 5.5 + 5 + 4.5) / 24,
    "median radius": 0,
    # Of four copies, one more than half must be left: radius 1 with four, 0 with three.
    "certified accuracy@1": 5 / 10,
    "certified recall@1": 1 / 4,
    "certified recall@2": 0,
    # Nothing bad lies above the score of three good words; one bad text above that of one.
    "recall@fpr=0%": 1 / 4,
    "recall@fpr=20%": 3 / 4,
    "certified recall@1,fpr=20%": 2 / 4,
    "false-positive rate@fpr=20%": 1 / 6,
}


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_by_hand(texts, tmp_path, figure):
    value, path = FIGURES[figure], tmp_path / "card.json"
    bounds = (f"{value:.9f}", f"{value:.9f}")
    more = ("--positive", "good", "--json", path, "--card", tmp_path / "card.md")
    done = gate(texts, *more, require=[f"{figure} >= {bounds[0]}", f"{figure} <= {bounds[1]}"])
    assert done.exit_code in (0, 4), done.output
    for check in json.loads(path.read_text())["requirements"]:
        assert check["value"] == pytest.approx(value)
        low, high = check["interval"]
        assert low <= check["value"] + 1e-12 and check["value"] <= high + 1e-12


@pytest.mark.parametrize(
    ("require", "code"),
    [
        (["accuracy >= .7"], 0),
        (["accuracy > .7"], 4),
        (["accuracy >= .7", "recall >= .6"], 4),
        (["recall <= 50%", "certified recall@1 >= .25"], 0),
        (["certified accuracy@1 >= .51"], 4),
    ],
)
def test_exit_codes(texts, require, code):
    done = gate(texts, "--positive", "good", require=require)
    assert done.exit_code == code, done.output
    assert ("gate passed" in done.stderr) == (code == 0)
    assert done.stdout.startswith("# Robustness card")


def test_by_interval_the_worse_end_must_hold(texts):
    assert gate(texts, require=["accuracy >= .5"]).exit_code == 0
    done = gate(texts, "--by-interval", require=["accuracy >= .5"])
    assert done.exit_code == 4
    assert "holds as measured, but not at the worse end of its interval" in done.stderr
    assert gate(texts, "--by-interval", require=["accuracy >= .3"]).exit_code == 0
    assert gate(texts, "--by-interval", require=["accuracy <= .75"]).exit_code == 4
    assert gate(texts, "--by-interval", require=["errors <= 0"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "require", "said"),
    [
        ([], ["acuracy >= .9"], "'acuracy' is no figure; known are accuracy"),
        ([], [""], "--require '' cannot be read"),
        ([], ["recall >= .9"], "needs a class to look for: name it with --positive"),
        (["--positive", "spam"], ["recall >= .9"], "--positive must be one of the classes"),
        (["--most-queries", 9], ["accuracy >= .1"], "--most-queries means nothing where no"),
        (["--calibrate-split", "all"], ["accuracy >= .1"], "without --calibrate"),
        (["--certificate", "paper"], ["certified accuracy@1 >= .1"], "proves nothing"),
        (
            ["--threat", "edits", "--hide", "drop", "--positive", "good"],
            ["certified recall@1,fpr=1% >= .1"],
            "needs scores that are certified",
        ),
    ],
)
def test_bad_input_has_another_code(texts, arguments, require, said):
    done = gate(texts, *arguments, require=require)
    assert done.exit_code == 2, done.output
    assert said in done.stderr and "gate failed" not in done.stderr
    assert ("certify:" in done.stderr) == ("paper" in arguments)  # told before any work


def test_a_file_that_is_not_there(tmp_path):
    done = gate(tmp_path / "none.csv")
    assert done.exit_code == 1 and "none.csv" in done.stderr


def test_no_requirement_at_all(texts):
    done = run_cli("gate", *SMOOTHED, "--input", texts, "--label-column", "label")
    assert done.exit_code == 2 and "--require" in done.stderr


def test_rows_with_errors(texts):
    with texts.open("a") as file:
        file.write("good film,neither\n")
    done = gate(texts, require=["accuracy >= .7"])
    assert done.exit_code == 3, done.output
    assert gate(texts, require=["errors <= 0"]).exit_code == 4
    assert "11 rows, 1 with errors" in done.stdout


@pytest.fixture
def outputs(texts, tmp_path):
    folder = tmp_path / "out"
    files = {name: folder / f"gate.{name}" for name in ("card", "json", "junit", "sarif")}
    flags = [word for name, path in files.items() for word in (f"--{name}", path)]
    required = ["accuracy >= .7", "recall@fpr=20% >= .9"]
    done = gate(texts, *flags, "--output", folder, "--positive", "good", require=required)
    assert done.exit_code == 4 and done.stdout == "", done.output
    return {name: path.read_text() for name, path in files.items()}


def test_the_card(outputs):
    card = outputs["card"]
    assert "Gate **failed**: 1 of 2 requirements hold." in card
    assert "| `recall@fpr=20% >= 0.9` | 0.750 | 0.301 to 0.954 | **no** |" in card
    assert "| `accuracy >= 0.7` | 0.700 | 0.397 to 0.892 | yes, not surely |" in card
    assert "| good | 4 | 0.500 | 0.667 | 0.571 |" in card
    assert "the texts measured here" in card
    assert "Certified figures" not in card  # nothing that was required is a proof


def test_the_record(outputs):
    record = json.loads(outputs["json"])
    assert (record["format"], record["version"]) == (GATE_FORMAT, GATE_VERSION)
    assert record["passed"] is False and record["positive"] == "good"
    assert [check["holds"] for check in record["requirements"]] == [True, False]
    assert record["thresholds"] == {"0.2": -0.5}  # one good word of four, three of them not
    assert record["classifier"]["options"]["keep"] == 1


def test_junit(outputs):
    root = ElementTree.fromstring(outputs["junit"])
    assert root.tag == "testsuites"
    [suite] = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    held, failed = suite
    assert held.get("name") == "accuracy >= 0.7" and not len(held)
    [failure] = failed
    assert failure.tag == "failure" and "does not hold" in failure.get("message")


def test_sarif(outputs):
    log = json.loads(outputs["sarif"])
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "ranmask gate"
    assert [rule["id"] for rule in driver["rules"]] == ["ranmask/accuracy", "ranmask/recall"]
    held, failed = run["results"]
    assert (held["kind"], held["level"]) == ("pass", "none")
    assert (failed["kind"], failed["level"]) == ("fail", "error")
    for result in run["results"]:
        assert result["message"]["text"]
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_proofs_are_explained(texts):
    card = gate(texts, require=["certified accuracy@1 >= .1"]).stdout
    assert "proved against whoever may change that many words, any of them, to anything." in card
    assert "- words are replaced one for one" in card


def test_resumed(texts, tmp_path):
    folder = tmp_path / "runs"
    first = gate(texts, "--output", folder, require=["certified accuracy@1 >= .1"])
    before = (folder / "certify.jsonl").read_bytes()
    again = gate(texts, "--output", folder, require=["median radius >= 0"])
    assert (folder / "certify.jsonl").read_bytes() == before
    assert first.exit_code == again.exit_code == 0
    assert f"resuming {folder / 'certify.jsonl'}: 10 rows are done" in again.stderr
    other = gate(texts, "--output", folder, "--masks", 3, require=["median radius >= 0"])
    assert other.exit_code == 1 and "masks" in other.stderr


def test_thresholds_from_other_texts(texts, tmp_path):
    calm = tmp_path / "calm.csv"  # no bad text has a good word here
    calm.write_text("text,label\n" + "film film film film,bad\ngood good good good,good\n")
    path = tmp_path / "card.json"
    more = ("--calibrate", calm, "--calibrate-split", "all", "--positive", "good", "--json", path)
    done = gate(texts, *more, require=["recall@fpr=0% >= .7", "false-positive rate@fpr=0% <= .34"])
    assert done.exit_code == 0, done.output
    record = json.loads(path.read_text())
    assert record["thresholds"] == {"0": -1.0}  # above every bad text of the others
    found = {figure["figure"]: figure["value"] for figure in record["requirements"]}
    assert found == {"recall@fpr=0%": 1.0, "false-positive rate@fpr=0%": pytest.approx(2 / 6)}
    assert "set on calm.csv" in done.stdout


def test_attacks(texts, tmp_path):
    words = ["robust accuracy(deepwordbug) >= .1", "robust recall(deepwordbug) >= .9"]
    path = tmp_path / "card.json"
    more = ("--positive", "good", "--attack-rows", 5, "--json", path, "--output", tmp_path / "a")
    more = (*more, "--stop-words", "none")
    done = gate(texts, *more, require=words)
    assert done.exit_code == 4, done.output
    found = json.loads(path.read_text())
    assert found["attacks"]["deepwordbug"]["texts"] == 5
    robust = {check["figure"]: check["value"] for check in found["requirements"]}
    # Of the first five, one is bad and stays so; a good text of four words can be turned.
    assert robust["robust accuracy(deepwordbug)"] >= 1 / 5
    assert robust["robust recall(deepwordbug)"] < 0.9
    assert "proves nothing" in done.stdout
    again = gate(texts, *more, require=words)
    assert "5 rows are done" in again.stderr and again.stdout == done.stdout


def test_an_attack_for_recall_alone_is_tried_on_positive_texts(texts, tmp_path):
    path = tmp_path / "card.json"
    more = ("--positive", "bad", "--attack-rows", 3, "--json", path, "--stop-words", "none")
    gate(texts, *more, require=["robust recall(deepwordbug) >= .1"])
    attacked = json.loads(path.read_text())["attacks"]["deepwordbug"]
    assert [(entry["name"], entry["texts"]) for entry in attacked["classes"]] == [("bad", 3)]


def smoothed():
    return SmoothedClassifier(keyword_classifier, keep=1, labels=["bad", "good"])


def test_from_python(texts, tmp_path):
    rows = file_rows(texts, Columns("text", None, "label"))
    required = [parse_requirement("certified accuracy@1 >= .5", ())]
    report = run_gate(smoothed(), rows, required, tmp_path)
    assert report.passed and report.requirements[0].figure.value == pytest.approx(0.5)


def test_an_attack_that_nobody_makes(texts, tmp_path):
    rows = file_rows(texts, Columns("text", None, "label"))
    required = [parse_requirement("robust accuracy(deepwordbug) >= .5", ("deepwordbug",))]
    with pytest.raises(OptionError, match="give attack"):
        run_gate(smoothed(), rows, required, tmp_path)


def test_nothing_to_measure(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,label\ngood,neither\nfilm,nor\n")
    rows = file_rows(path, Columns("text", None, "label"))
    with pytest.raises(DataError, match="none of 2 rows"):
        run_gate(smoothed(), rows, [parse_requirement("accuracy > 0", ())], tmp_path)


def test_a_class_without_texts_has_no_recall(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,label\nfilm,bad\nfilm film,bad\n")
    done = gate(path, "--positive", "good", require=["recall >= .5"])
    assert done.exit_code == 1 and "there is no text to count" in done.stderr


def test_texts_of_the_positive_class_alone_have_recall(texts, tmp_path):
    path = tmp_path / "attacks.csv"
    path.write_text("text,label\ngood good good good,good\nfilm film,good\n")
    more = ("--positive", "good", "--calibrate", texts, "--calibrate-split", "all")
    done = gate(path, *more, require=["recall >= .5", "certified recall@1,fpr=20% >= .5"])
    assert done.exit_code == 0
    assert "| recall | 0.500 |" in done.stdout and "false-positive rate" not in done.stdout
    done = gate(path, "--positive", "good", require=["false-positive rate <= 1%"])
    assert done.exit_code == 1 and "there is no text to count" in done.stderr


# Flags "prize"; with two of them one may be changed.  Two of three spam texts are flagged, one of
# four others is.
FLAGGED = [
    ("prize prize and more", "spam"),
    ("prize and more", "spam"),
    ("money and more", "spam"),
    ("prize of the year", "ham"),
    *[("see you at lunch", "ham")] * 3,
]
OF_DETECTOR = {
    "accuracy": 5 / 7,
    "balanced accuracy": (2 / 3 + 3 / 4) / 2,
    "precision": 2 / 3,
    "recall": 2 / 3,
    "f1": 2 / 3,
    "false-positive rate": 1 / 4,
    "auc": (3.5 + 3.5 + 1.5) / 12,
    "certified recall@0": 2 / 3,
    "certified recall@1": 1 / 3,
    "certified recall@2": 0,
    "recall@fpr=0%": 0,
    "recall@fpr=25%": 2 / 3,
}


def prizes(texts):
    return [[0.0, 1.0] if "prize" in text.split() else [1.0, 0.0] for text in texts]


@pytest.fixture
def flagged(tmp_path):
    path = tmp_path / "flagged.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in FLAGGED))
    return path


def test_figures_of_a_detector_by_hand(flagged, tmp_path):
    detector = WindowDetector(prizes, sizes=(1,), labels=["ham", "spam"])
    source = file_rows(flagged, Columns("text", None, "label"))
    required = [parse_requirement(f"{name} >= .5", ()) for name in OF_DETECTOR]
    report = run_gate(detector, source, required, tmp_path)
    measured = {check.figure.name: float(check.figure.value) for check in report.requirements}
    assert measured == pytest.approx(OF_DETECTOR)
    assert (report.positive, report.rows, report.errors) == ("spam", 7, 0)
    assert report.proof["threat"].startswith("add any text before or after a flagged text")
    assert report.proof["assumes"][1].startswith("asked again, the model moves")
    assert [entry.keys() >= {"certified_recall"} for entry in report.classes] == [False, False]
    assert not {"median radius", "certified accuracy@1"} & {one.name for one in report.figures}
    found = list(read_results(tmp_path / "detect.jsonl"))  # a run of detect, as any other
    assert [row.result.flagged for row in found] == [True, True, False, True, False, False, False]


def test_a_guard_by_name(flagged, tmp_path):
    rows = ("--input", flagged, "--label-column", "label", "--card", tmp_path / "card.md")
    done = run_cli("gate", "--model", "spam", *rows, "--require", "false-positive rate <= 0")
    assert done.exit_code == 0, done.stderr
    assert "the positive class is *spam*" in (tmp_path / "card.md").read_text()
    done = run_cli("gate", "--model", "spam", *rows, "--require", "certified recall@0 >= 1")
    assert done.exit_code == 4
    card = (tmp_path / "card.md").read_text()
    assert "proved against whoever may add any text before or after" in card


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--require", "certified accuracy@1 >= .1"], "does not flag a detector proves nothing"),
        (["--require", "median radius >= 1"], "does not flag a detector proves nothing"),
        (["--require", "robust recall(deepwordbug) >= .1"], "attacks are for classifiers"),
        (["--require", "certified recall@1,fpr=1% >= .1"], "proves at its own threshold"),
        (["--require", "recall >= 0", "--positive", "ham"], "means nothing for a detector of"),
        (["--require", "recall >= 0", "--keep", "2"], "--keep means nothing for 'spam'"),
        (["--require", "recall >= 0", "--dtype", "float16"], "--dtype means nothing for 'spam'"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_what_a_detector_cannot_be_asked(flagged, more, said):
    done = run_cli("gate", "--model", "spam", "--input", flagged, "--label-column", "label", *more)
    assert done.exit_code == 2
    assert said in done.stderr


def test_windows_around_a_function_name_it_again_and_tell_their_cost(
    flagged, tmp_path, monkeypatch
):
    (tmp_path / "prize_model.py").write_text(inspect.getsource(prizes))
    monkeypatch.syspath_prepend(tmp_path)
    made = WindowDetector(prizes, sizes=(2,), labels=["ham", "spam"])
    made.save_pretrained(tmp_path / "detector")
    command = ("gate", "--model", tmp_path / "detector", "--input", flagged)
    command += (
        "--label-column",
        "label",
        "--require",
        "recall >= .6",
        "--output",
        tmp_path / "runs",
    )
    for said in ("detect: 7 texts", "resuming"):
        done = run_cli(*command, "--reader", "prize_model:prizes")
        assert done.exit_code == 0 and said in done.stderr, done.stderr
        assert "asking the model about at most 19 windows of 7 texts" in done.stderr


def test_too_few_texts_for_a_rate_are_told(texts):
    done = gate(texts, "--positive", "good", require=["recall@fpr=1% >= .1"])
    assert "Warning: too few texts of other classes (6) to show a rate of 0.01" in done.stdout
    done = gate(texts, "--positive", "good", require=["recall@fpr=20% >= .1"])
    assert "too few" not in done.stdout
