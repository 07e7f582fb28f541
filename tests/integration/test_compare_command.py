"""certify --compare, certify --copies and beta, as a user runs them."""

import json
import os
import subprocess
import sys

import pytest

from commands import run_cli
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines

FAKE = "ranmask.models.testing:keyword_classifier"
KINDS = ["ablation", "paper", "paper-as-printed"]
OTHERS = ("label", "label_id", "radius", "guarantee", "alpha", "ensemble", "masks")


def ranmask(command, *arguments, model=FAKE, keep=("--keep", "1")):
    given = [command, "--model", model, *keep, *map(str, arguments)]
    return run_cli(*given)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def record(out):
    return read_header(out)


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(
        "text,label\ngood good good good x good,1\nbad bad film bad,0\n,1\ngood fine,spam\n"
        "good good good good good good good bad,0\n"
    )
    return path


class TestCompare:
    def test_radii_are_those_of_single_runs(self):
        text = "good " * 15 + "bad bad film"
        samples = ("--masks", 900, "--selection-masks", 50, "--seed", 4, "--alpha", 0.01)
        [compared] = lines(ranmask("certify", "--compare", *samples, text).stdout)
        assert list(compared["others"]) == KINDS
        for kind in KINDS:
            [single] = lines(ranmask("certify", "--certificate", kind, *samples, text).stdout)
            one = compared["others"][kind]
            assert one == {key: single[key] for key in OTHERS} and one["alpha"] == 0.01
        for family in ((), ("--family", "sampled")):
            given = ("--masks", 900, "--seed", 4, *family)
            [single] = lines(ranmask("certify", *given, text).stdout)
            [compared] = lines(ranmask("certify", "--compare", *given, text).stdout)
            assert {key: compared[key] for key in single} == single
            assert compared["others"]["paper"]["masks"] == 900

    def test_defaults(self):
        [line] = lines(ranmask("certify", "--compare", "good good film").stdout)
        [single] = lines(ranmask("certify", "good good film").stdout)
        assert {key: line[key] for key in single} == single and single["masks"] == 3
        assert {one["masks"] for one in line["others"].values()} == {5000}

    def test_a_file_its_summary_and_its_record(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        given = ("--compare", "--input", reviews, "--label-column", "label", "--output", out)
        done = ranmask("certify", *given)
        assert done.exit_code == 3
        rows = list(stored_lines(out))
        assert "no words" in rows[2]["error"] and "unknown label" in rows[3]["error"]
        assert [row.get("correct") for row in rows] == [True, True, None, None, False]
        shown = done.stderr.splitlines()
        assert shown[0] == "row 3: the text has no words: ''"
        assert shown[1] == "5 rows, 2 with errors, 3 with labels"
        assert [line.split()[0] for line in shown[-4:]] == ["exact", *KINDS]
        assert [line.endswith("no guarantee") for line in shown[-4:]] == [False, False, True, True]
        finished = record(out)["finished"]
        assert finished["labelled"] == 3 and list(finished["certificates"]) == ["exact", *KINDS]
        for name in ("accuracy", "median_radius", "median_rate", "certified_accuracy"):
            assert finished["certificates"]["exact"][name] == finished[name]
        radii = [rows[row]["others"]["paper-as-printed"]["radius"] for row in (0, 1)]
        assert finished["certificates"]["paper-as-printed"]["median_radius"] == min(radii)

    def test_summary_of_printed_lines(self, reviews):
        done = ranmask("certify", "--compare", "--input", reviews, "--label-column", "label")
        assert len(lines(done.stdout)) == 5
        assert [line.split()[0] for line in done.stderr.splitlines()[-4:]] == ["exact", *KINDS]

    def test_resumes_and_is_no_other_run(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        given = ("--compare", "--input", reviews, "--output", out)
        ranmask("certify", *given)
        whole, finished = out.read_bytes(), record(out)
        out.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]) + b'{"row": 3, "te')
        done = ranmask("certify", *given)
        assert "resuming" in done.stderr and out.read_bytes() == whole and record(out) == finished
        for other in ([], ["--certificate", "ablation"], ["--copies", 2]):
            done = ranmask("certify", "--input", reviews, "--output", out, *other)
            assert done.exit_code == 1 and "another" in done.stderr and "compare" in done.stderr
        assert ranmask("certify", *given, "--seed", 1).exit_code == 1
        assert out.read_bytes() == whole

    def test_an_ordinary_run_is_not_resumed_by_a_comparison(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        sampled = ("--certificate", "ablation")
        ranmask("certify", *sampled, "--input", reviews, "--output", out)
        assert "compare" not in record(out)["classifier"]["options"]
        done = ranmask("certify", "--compare", "--input", reviews, "--output", out)
        assert done.exit_code == 1 and "different: certificate, compare" in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--certificate", "exact"], "--certificate exact means nothing with --compare"),
            (["--certificate", "ablation"], "--certificate ablation means nothing"),
            (["--threat", "edits"], "--compare needs --threat substitutions, not 'edits'"),
            (["--ensemble", "scores"], "ensemble must be one of"),
            (["--copies", "3"], "--copies 3 does not go with --compare"),
            (["--masks", "0"], "at least 1, not 0"),
        ],
    )
    def test_refused_by_name(self, arguments, message):
        done = ranmask("certify", "--compare", *arguments, "a b c")
        assert done.exit_code == 2 and message in done.stderr and done.stdout == ""

    @pytest.mark.parametrize(
        "more", [(), ("--ensemble", "vote"), ("--keep", 2, "--ensemble", "logit")], ids=str
    )
    def test_a_model_that_adds_scores(self, more):
        """The exact column is the model's own; the others are of a vote, and say so."""
        text = "oil prices soared to a record as traders sold shares"
        given = {"model": "news-words", "keep": ()}
        done = ranmask("certify", "--compare", *more, text, **given)
        assert done.exit_code == 0, done.stderr
        [line] = lines(done.stdout)
        [single] = lines(ranmask("certify", *more, text, **given).stdout)
        assert {key: line[key] for key in single} == single
        assert single["ensemble"] == (more[-1] if more else "score")
        keep = more[:2] if "--keep" in more else ()
        for kind in KINDS:
            [other] = lines(ranmask("certify", "--certificate", kind, *keep, text, **given).stdout)
            assert line["others"][kind] == {key: other[key] for key in OTHERS}
            assert (other["ensemble"], other["masks"]) == ("vote", 5000)

    @pytest.mark.parametrize(
        "saved", [{"masks": 70}, {"certificate": "ablation", "masks": 800, "alpha": 0.2}], ids=str
    )
    def test_a_model_as_it_was_saved(self, saved, tmp_path):
        """What was saved for one sort of certificate is not taken for the other."""
        from ranmask import load_default

        folder = tmp_path / "table"
        load_default("news-words", **saved).save_pretrained(str(folder))
        given = {"model": str(folder), "keep": ()}
        [line] = lines(ranmask("certify", "--compare", "oil prices soared", **given).stdout)
        for kind in ("exact", *KINDS):
            alone = ("--certificate", kind, "oil prices soared")
            [single] = lines(ranmask("certify", *alone, **given).stdout)
            one = line if kind == "exact" else line["others"][kind]
            assert {key: one[key] for key in OTHERS} == {key: single[key] for key in OTHERS}
            if kind != "exact":
                assert single["masks"] == (800 if "certificate" in saved else 5000)

    def test_every_column_on_a_terminal(self):
        shown = on_terminal("certify", "-m", "news-words", "--compare", "oil prices soared")
        [header] = [line for line in shown.splitlines() if "exact" in line and "support" in line]
        assert "ablation" in header and "paper" in header and "printed" in shown
        assert "a vote over 5,000 random copies" in shown and "* not a guarantee" in shown

    def test_a_model_whose_kept_sets_follow_the_words(self, tmp_path):
        """The message is about how it was saved, not about a certificate that nobody named."""
        from ranmask import load_default

        folder = tmp_path / "table"
        load_default("news-words", sampling="fresh", ensemble="vote").save_pretrained(str(folder))
        done = ranmask("certify", "--compare", "oil prices", model=str(folder), keep=())
        assert done.exit_code == 2 and "sampling='fresh' cannot be certified" in done.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [("certify", ["--compare"], "--compare"), ("beta", ["--masks", "200"], "beta")],
)
def test_of_a_protected_model_the_copies_are_looked_at(command, arguments, named):
    """The default is one."""
    from ranmask.smoothing.store import shipped_folder

    text = "oil prices soared to a record as traders sold shares"
    done = run_cli(command, *arguments, text)
    assert done.exit_code == 0
    said = f"{named} looks at the copies of 'news' alone, without the model that reads beside them"
    assert done.stderr.splitlines() == [said]
    copies = str(shipped_folder("news") / "copies")
    alone = ranmask(command, *arguments, text, model=copies, keep=())
    assert alone.stderr == "" and lines(alone.stdout) == lines(done.stdout)
    refused = run_cli(command, *arguments, "--reader", "x:y", text)
    assert refused.exit_code == 2 and f"--reader means nothing with {named}" in refused.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        ("certify", ["--compare"], "--compare"),
        ("certify", ["--copies", "2"], "--copies"),
        ("beta", [], "beta"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "message"), [("cascade", "is a cascade"), ("synonyms", "smoothed by synonyms")]
)
def test_other_ways_of_smoothing_are_refused_by_name(
    command, arguments, named, kind, message, tmp_path
):
    from ranmask.models import model_config

    parts = model_config.CASCADE_PARTS if kind == "cascade" else ()
    model_config.write(tmp_path, kind, {}, parts)
    done = ranmask(command, *arguments, "a b", model=str(tmp_path), keep=())
    assert done.exit_code == 2 and done.stdout == ""
    assert f"{named} means nothing for" in done.stderr and message in done.stderr


class TestCopies:
    def test_lines(self):
        done = ranmask("certify", "--copies", 2, "good bad fine", "bad")
        first, second = lines(done.stdout)
        assert first["copies"] == [{"kept": [0], "label_id": 1}, {"kept": [1], "label_id": 0}]
        assert second["copies"] == [{"kept": [0], "label_id": 0}]
        assert first["radius"] == 0 and first["certificate"] == "exact"

    def test_file_record_and_error_rows(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        given = ("--input", reviews, "--output", out)
        done = ranmask("certify", "--copies", 3, *given)
        assert done.exit_code == 3
        rows = list(stored_lines(out))
        assert [len(row.get("copies", [])) for row in rows] == [3, 3, 0, 2, 3]
        assert record(out)["classifier"]["options"]["copies"] == 3
        for other in ([], ["--copies", 4]):
            done = ranmask("certify", *other, *given)
            assert done.exit_code == 1 and "different: copies" in done.stderr

    def test_a_model_that_adds_scores(self):
        text = "oil prices soared to a record"
        done = ranmask("certify", "--copies", 1000, text, model="news-words", keep=())
        [line] = lines(done.stdout)
        counted = [sum(one["label_id"] == label for one in line["copies"]) for label in range(4)]
        assert counted == line["votes"] and sum(counted) == line["masks"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--copies", "0"], "at least 1, not 0"),
            (["--copies", "1", "--certificate", "paper"], "--certificate paper"),
        ],
    )
    def test_refused(self, arguments, message):
        done = ranmask("certify", *arguments, "a b c")
        assert done.exit_code == 2 and message in done.stderr and done.stdout == ""

    def test_picture_of_the_last_text_on_a_terminal(self):
        shown = on_terminal(
            *("certify", "-m", FAKE, "--keep", "1", "--copies", "2", "--labels", "neg,pos"),
            *("bad film", "good film indeed"),
        )
        assert "copies of row 2" in shown and "copies of row 1" not in shown
        assert "good [MASK] [MASK]" in shown and "[MASK] film [MASK]" in shown
        assert "[MASK] [MASK] indeed" not in shown


class TestBeta:
    def test_lines(self):
        given = ("--changed", 3, "--masks", 500, "--draws", 20)
        done = ranmask("beta", *given, "good good good bad", "good bad")
        first, second = lines(done.stdout)
        assert (first["label_id"], first["masks"], first["changed"]) == (1, 500, [1, 2, 3])
        assert first["share"] == first["votes"][1] / 500 and first["largest"][:2] == [1.0, 1.0]
        assert 0 < first["average"][0] < 1 and second["average"][2] is None

    def test_defaults_are_the_papers(self):
        [line] = lines(ranmask("beta", "good bad film").stdout)
        assert line["masks"] == 10_000 and line["changed"] == list(range(1, 11))

    def test_file_resume_and_error_rows(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        given = ("--input", reviews, "--output", out, "--masks", 300, "--label-column", "label")
        done = ranmask("beta", *given)
        assert done.exit_code == 3
        whole = out.read_bytes()
        rows = list(stored_lines(out))
        assert ["average" in row for row in rows] == [True, True, False, True, True]
        options = record(out)["classifier"]["options"]
        assert (options["draws"], options["changed"], options["masks"]) == (200, 10, 300)
        assert "certificate" not in options and record(out)["command"] == "beta"
        assert record(out)["finished"]["rows"] == 5
        out.write_bytes(whole[: len(whole) // 2])
        ranmask("beta", *given)
        assert out.read_bytes() == whole
        for other in (["--draws", 100], ["--changed", 5], ["--seed", 2]):
            done = ranmask("beta", *given, *other)
            assert done.exit_code == 1 and f"different: {other[0][2:]}" in done.stderr
        done = ranmask("certify", "--input", reviews, "--output", out)
        assert done.exit_code == 1 and "another run (different: " in done.stderr

    def test_a_pair(self, tmp_path, monkeypatch):
        (tmp_path / "pairs.jsonl").write_text('{"p": "good", "h": "bad bad good"}\n')
        (tmp_path / "second_of_pair.py").write_text(
            "from ranmask.models.testing import keyword_classifier\n"
            "def judge(pairs):\n    return keyword_classifier([h for _, h in pairs])\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        given = ("--input", tmp_path / "pairs.jsonl", "--pair-columns", "p,h", "--masks", 50)
        [line] = lines(ranmask("beta", *given, model="second_of_pair:judge").stdout)
        assert (line["premise"], line["words"], line["label_id"]) == ("good", 3, 0)
        assert line["largest"][2] == line["share"] and line["largest"][3] is None

    def test_a_model_that_adds_scores_votes_here(self):
        done = ranmask("beta", "--masks", 40, "oil prices soared", model="news-words", keep=())
        [line] = lines(done.stdout)
        assert (line["ensemble"], line["scores"], line["masks"]) == ("vote", None, 40)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--changed", "0"], "changed must be a whole number of at least 1, not 0"),
            (["--draws", "-1"], "draws must be"),
            (["--masks", "0"], "masks must be"),
            (["--output", "o"], "--output goes with"),
        ],
    )
    def test_refused(self, arguments, message):
        done = ranmask("beta", *arguments, "a b c")
        assert done.exit_code == 2 and message in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", ["certify", "beta"])
def test_help_stays_light(command):
    code = (
        "import sys\n"
        "from ranmask.cli.main import run_command\n"
        f"assert run_command(['{command}', '--help']) == 0\n"
        "heavy = {'torch', 'transformers', 'scipy', 'numpy', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def on_terminal(*arguments):
    """Run under a pseudo-terminal and return what it shows, without its colours."""
    import pty
    import re

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ranmask.cli", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            block = os.read(leader, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    process.wait()
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
