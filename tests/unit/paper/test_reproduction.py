"""Reproductions with commands that only pretend: nothing is done twice, and nothing is lost."""

import contextlib
import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from ranmask.cli import reproduce as cli_reproduce
from ranmask.cli import reproduce_printing
from ranmask.cli.main import check_command
from ranmask.cli.reproduce_printing import ReproductionDisplay
from ranmask.data import inventory
from ranmask.errors import DataError, OptionError, OutputError
from ranmask.paper.reproduction.perform import Performed, finished, log_path, machine
from ranmask.paper.reproduction.plan import plan, run_folder
from ranmask.paper.reproduction.recipe import load_recipe
from ranmask.paper.reproduction.running import reproduce
from ranmask.results.files import draft

LINES = 4  # of a pretended result
PATIENCE = 60  # seconds that a busy machine may take


def pretend(words):
    """Runs a "command": notes the call, does what ``--do`` says, and writes as commands do."""
    given = dict(zip(words[1::2], words[2::2], strict=True))
    output, notes, do = Path(given["--output"]), Path(given["--notes"]), given["--do"]
    note(notes / "calls", output.parent.name.rsplit("-", 1)[0])
    note(notes / "processes", os.getpid())
    if "--model" in given:
        assert (Path(given["--model"]) / "training.json").is_file()  # made before
    if do == "meet":  # goes on only together with another
        meet(notes / "met")
    elif do == "fail" or (do == "try" and not (notes / "repaired").exists()):
        sys.stderr.write("working\nerror: no such file x.txt\n\n")
        return 1
    elif do == "be-silent":
        return 2
    elif do == "misspell":
        sys.stderr.write("error: Unknown option: --bogus\n")
        return 2
    elif do == "break":
        raise ZeroDivisionError("a bug")
    elif do == "interrupt" and not (notes / "repaired").exists():
        return 130
    elif do == "die":
        os._exit(9)
    elif do == "make-nothing":
        return 0
    elif do == "look-around":
        note(notes / "starts", multiprocessing.get_start_method())
        note(notes / "threads", os.environ.get("OMP_NUM_THREADS"))
    write(words[0], output, 0.1 if do == "dawdle" else 0, notes if do == "get-stuck" else None)
    return 3 if do == "err" else 0


def write(command, output, pause, stuck):
    """``stuck``: after half of the lines, until the notes say that it is repaired."""
    if command == "train":
        output.mkdir(exist_ok=True)
        time.sleep(pause)
        (output / "training.json").write_text('{"run": {}}')
        return
    with output.open("a+") as file:
        file.seek(0)
        for row in range(len(file.readlines()), LINES):
            time.sleep(pause)
            if stuck and row == LINES // 2:
                until((stuck / "repaired").exists, "it is stuck")
            file.write(json.dumps({"row": row, "process": os.getpid()}) + "\n")
            file.flush()


def note(path, what):
    with path.open("a") as file:
        file.write(f"{what}\n")


def noted(path):
    return path.read_text().split() if path.exists() else []


def meet(path):
    note(path, os.getpid())
    until(lambda: len(set(noted(path))) > 1, "nobody else came")


def until(condition, otherwise, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


def run_slowly(recipe, runs, jobs):
    """What a process that is killed does."""
    reproduce([load_recipe(recipe)], Path(runs), pretend, jobs=jobs, display=Told())


class Told:
    """A display that keeps what it is told."""

    def __init__(self):
        self.told = []

    def begin(self, steps, done):
        self.told.append((steps, done))

    def started(self, planned):
        self.told.append(f"{planned.step.name} begins")

    def ended(self, planned, performed):
        self.told.append(f"{planned.step.name}: {performed.error or 'done'}")


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def recipe(tmp_path, notes):
    """``recipe("a", {"x": ("train", "fine"), "y": ("certify", "fail", "x")})``: a file."""

    def written(name, steps):
        lines = [
            'format = "ranmask-recipe"\nversion = 1\ntitle = "T"\nkind = "certified"',
            'paper = "p"\ncorpus = "sst2"\nabout = "a"\n[sizes.default]\ntexts = 4\n[sizes.smoke]',
            "texts = 2",
        ]
        for step, (command, do, *needs) in steps.items():
            measures = {"train": "training", "certify": "certified", "attack": "attack"}[command]
            model = f" --model @{needs[0]}" if needs else ""
            lines.append(f'[[steps]]\nname = "{step}"\nmeasures = "{measures}"')
            lines.append(f"command = \"{command} --do {do} --notes '{notes}'{model}")
            lines[-1] += ' --most {texts} --hide {hide} --base {base} --output {output}"'
        path = tmp_path / f"{name}.toml"
        path.write_text("\n".join(lines))
        return load_recipe(str(path))

    return written


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def record_of(recipe, runs):
    return json.loads((run_folder(recipe, runs) / "reproduction.json").read_text())


def states(recipe, runs):
    return {step["name"]: step["state"] for step in record_of(recipe, runs)["steps"]}


GOOD = {
    "model": ("train", "fine"),
    "votes": ("certify", "fine", "model"),
    "attacked": ("attack", "fine", "model"),
}


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_copied_with_their_records(recipe, runs, notes, jobs):
    good = recipe("good", GOOD)
    told = Told()
    assert reproduce([good], runs, pretend, jobs=jobs, display=told) == {}
    folder = run_folder(good, runs)
    assert folder == runs / "good"
    names = sorted(path.name for path in (folder / "results").iterdir())
    assert names == [
        *("attacked.jsonl", "model.training.json", "votes.jsonl"),
    ]
    assert len((folder / "results" / "votes.jsonl").read_text().splitlines()) == LINES
    record = record_of(good, runs)
    assert (record["format"], record["version"]) == ("ranmask-reproduction", 1)
    assert record["size"] == "default" and record["settings"]["texts"] == 4
    assert record["machine"]["python"] and record["machine"]["hardware"]
    for step in record["steps"]:
        assert step["state"] == "done" and step["error"] is None and step["seconds"] >= 0
        assert (folder / step["output"]).is_file() and str(runs) not in step["command"]
    assert sorted(noted(notes / "calls")) == sorted(GOOD)
    assert told.told[0] == (3, 0) and told.told[1:3] == ["model begins", "model: done"]
    assert not list(runs.rglob("*.tmp"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_done_is_not_done_again(recipe, runs, notes, jobs):
    good = recipe("good", GOOD)
    reproduce([good], runs, pretend, jobs=jobs, display=Told())
    done = {path: path.stat().st_mtime_ns for path in (runs / "steps").rglob("*")}
    first = record_of(good, runs)
    told = Told()
    assert reproduce([good], runs, pretend, jobs=jobs, display=told) == {}
    assert told.told == [(3, 3)]
    assert len(noted(notes / "calls")) == 3
    assert {path: path.stat().st_mtime_ns for path in (runs / "steps").rglob("*")} == done
    assert record_of(good, runs) == first


def test_the_record_is_written_after_every_step(recipe, runs):
    good = recipe("good", GOOD)
    seen = []

    class Looking(Told):
        def started(self, planned):
            seen.append(list(states(good, runs).values()))

    reproduce([good], runs, pretend, display=Looking())
    assert seen == [["todo"] * 3, ["done", "todo", "todo"], ["done", "done", "todo"]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_step_that_two_recipes_share_is_done_once(recipe, runs, notes, jobs):
    model = {"model": ("train", "fine")}
    first = recipe("first", {**model, "votes": ("certify", "fine", "model")})
    second = recipe("second", {**model, "attacked": ("attack", "fine", "model")})
    reproduce([first, second], runs, pretend, jobs=jobs, display=Told())
    assert sorted(noted(notes / "calls")) == ["attacked", "model", "votes"]
    assert states(first, runs) == {"model": "done", "votes": "done"}
    assert states(second, runs) == {"model": "done", "attacked": "done"}
    assert (run_folder(second, runs) / "results" / "model.training.json").is_file()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_step_that_fails_takes_down_only_those_that_need_it(recipe, runs, notes, jobs):
    steps = {
        "broken": ("train", "try"),
        "votes": ("certify", "fine", "broken"),
        "other": ("train", "fine"),
        "attacked": ("attack", "fine", "other"),
    }
    mixed = recipe("mixed", steps)
    told = Told()
    failed = reproduce([mixed], runs, pretend, jobs=jobs, display=told)
    planned = {one.step.name: one for one in plan(mixed, runs)}
    assert {key: (one.error, one.blocked) for key, one in failed.items()} == {
        planned["broken"].key: ("no such file x.txt", False),
        planned["votes"].key: (f"it needs {planned['broken'].key}, which failed", True),
    }
    assert states(mixed, runs) == {
        **{"broken": "failed", "votes": "failed"},
        **{"other": "done", "attacked": "done"},
    }
    assert record_of(mixed, runs)["steps"][0]["error"] == "no such file x.txt"
    assert "votes begins" not in told.told
    (notes / "repaired").touch()
    assert reproduce([mixed], runs, pretend, jobs=jobs, display=Told()) == {}
    assert sorted(noted(notes / "calls")) == ["attacked", "broken", "broken", "other", "votes"]
    assert set(states(mixed, runs).values()) == {"done"}
    assert record_of(mixed, runs)["steps"][0]["error"] is None


def test_needs_of_needs_are_blocked_too(recipe, runs, notes):
    chain = {"a": ("train", "fail"), "b": ("train", "fine", "a"), "c": ("train", "fine", "b")}
    for jobs in (1, 2):
        failed = reproduce([recipe("chain", chain)], runs, pretend, jobs=jobs, display=Told())
        assert len(failed) == 3
    assert noted(notes / "calls") == ["a", "a"]


@pytest.mark.parametrize(
    ("do", "error"),
    [
        ("fail", "no such file x.txt"),
        ("be-silent", "its command ended with exit code 2"),
        ("misspell", "Unknown option: --bogus"),
        ("break", "ZeroDivisionError: a bug"),
        ("make-nothing", "its command made no result.jsonl"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_failing_command_said_is_told(recipe, runs, do, error, jobs):
    failing = recipe("failing", {"votes": ("certify", do)})
    [one] = reproduce([failing], runs, pretend, jobs=jobs, display=Told()).values()
    assert one.error == error
    (planned,) = plan(failing, runs)
    assert ("Traceback" in log_path(planned).read_text()) == (do == "break")
    assert finished(planned) is None


def test_an_old_log_is_not_quoted(recipe, runs, monkeypatch):
    """The log keeps what earlier attempts said; the reason is what this one said."""
    failing = recipe("failing", {"votes": ("certify", "fail")})
    reproduce([failing], runs, pretend, display=Told())
    [one] = reproduce([failing], runs, lambda words: 1, display=Told()).values()
    assert one.error == "its command ended with exit code 1"
    assert "no such file" in log_path(plan(failing, runs)[0]).read_text()


def test_rows_with_errors_are_done(recipe, runs, notes):
    erring = recipe("erring", {"votes": ("certify", "err")})
    for _ in range(2):
        assert reproduce([erring], runs, pretend, display=Told()) == {}
    assert noted(notes / "calls") == ["votes"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_goes_on(recipe, runs, notes, jobs):
    steps = {"a": ("train", "fine"), "b": ("train", "interrupt", "a"), "c": ("train", "fine", "b")}
    interrupted = recipe("interrupted", steps)
    with pytest.raises(KeyboardInterrupt):
        reproduce([interrupted], runs, pretend, jobs=jobs, display=Told())
    assert states(interrupted, runs) == {"a": "done", "b": "todo", "c": "todo"}
    (notes / "repaired").touch()
    assert reproduce([interrupted], runs, pretend, jobs=jobs, display=Told()) == {}
    assert noted(notes / "calls") == ["a", "b", "b", "c"]


def test_a_signal_inside_a_command_interrupts(recipe, runs):
    def interrupted(words):
        signal.raise_signal(signal.SIGINT)
        return 0

    one = recipe("one", {"a": ("train", "fine")})
    with pytest.raises(KeyboardInterrupt):
        reproduce([one], runs, interrupted, display=Told())
    assert states(one, runs) == {"a": "todo"}
    assert sys.stdout is not None and reproduce([one], runs, pretend, display=Told()) == {}


def test_a_swallowed_interrupt_ends_the_run_after_its_step(recipe, runs):
    def swallows(words):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return pretend(words)

    written = recipe("two", {"a": ("train", "fine"), "b": ("train", "fine")})
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        reproduce([written], runs, swallows, display=Told())
    assert signal.getsignal(signal.SIGINT) is before
    assert states(written, runs) == {"a": "done", "b": "todo"}


def test_jobs_run_at_once_and_make_the_same(recipe, tmp_path, notes):
    """Each of the two waits for the other; one after the other they would never end."""
    meeting = recipe("meeting", {"a": ("train", "meet"), "b": ("train", "meet")})
    assert reproduce([meeting], tmp_path / "two", pretend, jobs=2, display=Told()) == {}
    assert len(set(noted(notes / "processes")) - {str(os.getpid())}) == 2
    good = recipe("good", GOOD)
    made = []
    for jobs in (1, 2):
        runs = tmp_path / f"runs{jobs}"
        reproduce([good], runs, pretend, jobs=jobs, display=Told())
        record = record_of(good, runs)
        steps = [{**step, "seconds": 0} for step in record["steps"]]
        made.append((steps, record["settings"], record["machine"]))
    assert made[0] == made[1]


def test_what_the_longest_chains_wait_for_begins_first(recipe, runs, notes):
    """Also that of a later recipe: else its chain begins when the others are nearly done."""
    first = recipe("first", GOOD)
    chain = {"base": ("train", "fine"), "next": ("train", "fine", "base")}
    second = recipe("second", {**chain, "last": ("attack", "fine", "next")})
    told = Told()
    assert reproduce([first, second], runs, pretend, jobs=2, display=told) == {}
    begun = [said.removesuffix(" begins") for said in told.told if str(said).endswith("begins")]
    assert begun[:2] == ["base", "model"]  # what is third depends on which of them ends first
    assert sorted(begun) == sorted([*GOOD, *chain, "last"])


def test_a_process_that_dies_is_told(recipe, runs, notes):
    dying = recipe("dying", {"a": ("train", "fine"), "b": ("train", "die", "a")})
    with pytest.raises(OutputError, match=r"ended before its step did.*fewer --jobs than 2"):
        reproduce([dying], runs, pretend, jobs=2, display=Told())
    assert states(dying, runs) == {"a": "done", "b": "todo"}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look processes up in")
def test_processes_end_where_a_record_cannot_be_written(recipe, runs, notes):
    """Nobody waits for a step that goes on while the run has already failed."""
    slow = recipe("slow", {"a": ("train", "fine"), "slow": ("certify", "get-stuck")})

    class Breaking(Told):
        def ended(self, planned, performed):
            made = plan(slow, runs)[1].made
            until(lambda: made.exists() and made.read_text().count("\n") == 2, "it did not begin")
            raise OutputError("the disk is full")

    with pytest.raises(OutputError, match="disk is full") as failure:
        reproduce([slow], runs, pretend, jobs=2, display=Breaking())
    pids = set(noted(notes / "processes"))
    until(lambda: not any(map(alive, pids)), "a process is still there", 10)
    assert "it is stuck" not in log_path(plan(slow, runs)[1]).read_text()  # it was not waited for
    assert failure.tb  # which keeps alive all that was left to itself


# -- killed --------------------------------------------------------------------------------------


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def started(recipe_name, tmp_path, jobs):
    """A process of its own that runs a recipe, and whose processes a test can kill."""
    here = str(Path(__file__).parent)
    program = f"import sys; sys.path.insert(0, {here!r}); import test_reproduction as t; "
    program += f"t.run_slowly({str(tmp_path / recipe_name)!r}, {str(tmp_path / 'runs')!r}, {jobs})"
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look processes up in")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_leaves_no_process_and_goes_on(recipe, runs, notes, tmp_path, jobs):
    steps = {
        "model": ("train", "fine"),
        "slow": ("certify", "get-stuck", "model"),
        "other": ("attack", "get-stuck", "model"),
        "last": ("attack", "fine", "model"),
    }
    killed = recipe("killed", steps)
    planned = {one.step.name: one for one in plan(killed, runs)}
    slow = planned["slow"].made
    with started("killed.toml", tmp_path, jobs) as process:
        until(lambda: slow.exists() and slow.read_text().count("\n") == 2, "it did not begin")
        until(lambda: len(noted(notes / "calls")) == jobs + 1, "too few steps began")
        process.send_signal(signal.SIGKILL)
    pids = {int(pid) for pid in noted(notes / "processes")}
    assert pids == {process.pid} if jobs == 1 else len(pids - {process.pid}) == 2
    until(lambda: not any(map(alive, pids)), "a process outlived the run", 10)
    assert states(killed, runs)["model"] == "done" and states(killed, runs)["slow"] == "todo"
    assert finished(planned["slow"]) is None
    before = slow.read_text().splitlines()
    assert len(before) == 2
    (notes / "repaired").touch()
    assert reproduce([killed], runs, pretend, jobs=jobs, display=Told()) == {}
    assert set(states(killed, runs).values()) == {"done"}
    assert slow.read_text().splitlines()[: len(before)] == before  # resumed, not begun anew
    assert len(slow.read_text().splitlines()) == LINES
    calls = noted(notes / "calls")
    assert calls.count("model") == 1 and calls.count("slow") == 2 and calls.count("last") == 1


def test_two_runs_at_once_do_a_shared_step_once(recipe, runs, notes, tmp_path):
    steps = {"slow": ("certify", "dawdle"), "a": ("attack", "fine"), "b": ("attack", "fine")}
    shared = recipe("shared-by-two", steps)
    with (
        started("shared-by-two.toml", tmp_path, 1) as one,
        started("shared-by-two.toml", tmp_path, 1) as other,
    ):
        assert one.wait(PATIENCE) == other.wait(PATIENCE) == 0
    assert sorted(noted(notes / "calls")) == ["a", "b", "slow"]
    assert set(states(shared, runs).values()) == {"done"}
    lines = [json.loads(line) for line in plan(shared, runs)[0].made.read_text().splitlines()]
    assert len(lines) == LINES and len({line["process"] for line in lines}) == 1


def test_two_runs_at_once_do_not_share_a_draft(tmp_path, monkeypatch):
    drafts = []
    for process in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        with draft(tmp_path / "reproduction.json", shared=True) as place:
            drafts.append(place)
            place.touch()
    assert drafts[0] != drafts[1] and {place.parent for place in drafts} == {tmp_path}


# -- what is broken on disk ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", '{"format": "ranmask-step", "version": 1}'),
        '{"format": "ranmask-step", "version": 2, "seconds": 1, "machine": {}}',
        '{"format": "ranmask-step", "version": 1, "seconds": "x", "machine": {}}',
    ],
)
def test_a_step_with_a_broken_mark_is_done_again(recipe, runs, notes, content):
    one = recipe("one", {"a": ("train", "fine")})
    reproduce([one], runs, pretend, display=Told())
    (runs / "steps" / plan(one, runs)[0].key / "step.json").write_text(content)
    assert reproduce([one], runs, pretend, display=Told()) == {}
    assert noted(notes / "calls") == ["a", "a"]
    assert finished(plan(one, runs)[0])


def test_a_step_whose_result_is_gone_is_done_again(recipe, runs, notes):
    one = recipe("one", {"votes": ("certify", "fine")})
    reproduce([one], runs, pretend, display=Told())
    plan(one, runs)[0].made.unlink()
    assert reproduce([one], runs, pretend, display=Told()) == {}
    assert noted(notes / "calls") == ["votes", "votes"]


def test_a_broken_record_is_written_again(recipe, runs, notes):
    one = recipe("one", {"votes": ("certify", "fine")})
    reproduce([one], runs, pretend, display=Told())
    (run_folder(one, runs) / "reproduction.json").write_text("{")
    (run_folder(one, runs) / "results" / "votes.jsonl").write_text("half")
    assert reproduce([one], runs, pretend, display=Told()) == {}
    assert states(one, runs) == {"votes": "done"} and noted(notes / "calls") == ["votes"]
    copied = (run_folder(one, runs) / "results" / "votes.jsonl").read_text()
    assert copied == plan(one, runs)[0].made.read_text()


@pytest.mark.parametrize("place", ["runs", "runs/one", "runs/steps", "runs/one/results"])
def test_a_disk_that_cannot_be_written_is_told(recipe, runs, place):
    one = recipe("one", {"votes": ("certify", "fine")})
    blocked = runs.parent / place
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="cannot write "):
        reproduce([one], runs, pretend, display=Told())


@pytest.mark.parametrize("name", ["lock", "log.txt", "step.json"])
def test_a_file_that_cannot_be_written_is_told(recipe, runs, name):
    one = recipe("one", {"votes": ("certify", "fine")})
    folder = plan(one, runs)[0].folder
    (folder / name / "inside").mkdir(parents=True)
    with pytest.raises(OutputError, match=f"cannot write {folder / name}: "):
        reproduce([one], runs, pretend, display=Told())


# -- the command ---------------------------------------------------------------------------------


def command(names=None, **options):
    """``ranmask reproduce``, whose steps only pretend."""
    with (
        mock.patch("ranmask.cli.main.run_command", pretend),
        mock.patch("ranmask.cli.main.check_command", lambda words: None),
    ):
        cli_reproduce.reproduce(*names or (), **options)


@pytest.fixture
def path(tmp_path):
    def of(recipe):
        return str(tmp_path / f"{recipe.name}.toml")

    return of


def test_the_command_says_what_comes_next(recipe, path, runs, capsys):
    good, other = recipe("good", GOOD), recipe("other", {"a": ("train", "fine")})
    command([path(good), path(other), path(good)], runs=runs)
    told = capsys.readouterr().err
    assert re.search(r"model: begins\n\[1/4\] model: done in \d s\n", told)
    assert f"done; now: ranmask report {runs / 'good'} {runs / 'other'}\n" in told
    command([path(good)], runs=runs)
    assert "3 of 3 steps are done\n" in capsys.readouterr().err


def test_the_command_says_what_failed(recipe, path, runs, capsys):
    bad = recipe("bad", {"a": ("train", "fail"), "b": ("certify", "fine", "a")})
    with pytest.raises(OutputError) as failure:
        command([path(bad)], runs=runs)
    first, second = (one.key for one in plan(bad, runs))
    said = (
        f"1 of the steps failed ({first}: no such file x.txt), and 1 that need them were not begun"
    )
    assert said in str(failure.value)
    assert second not in str(failure.value)
    assert f"`ranmask report {runs / 'bad'}`" in str(failure.value)
    told = capsys.readouterr().err
    assert (
        f"[1/2] a: failed: no such file x.txt\n    its log: {log_path(plan(bad, runs)[0])}" in told
    )
    assert told.count("its log") == 1  # what never began has none
    assert f"[2/2] b: not begun: it needs {first}, which failed" in told


def test_the_command_says_how_to_go_on(recipe, path, runs, capsys):
    interrupted = recipe("interrupted", {"a": ("train", "interrupt")})
    with pytest.raises(KeyboardInterrupt):
        command([path(interrupted)], runs=runs)
    assert "interrupted: the same command goes on\n" in capsys.readouterr().err


def test_a_dry_run_prints_and_runs_nothing(recipe, path, runs, notes, capsys):
    good = recipe("good", GOOD)
    other = recipe("other", {"model": GOOD["model"]})
    command([path(good), path(other)], runs=runs, dry_run=True)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "# good (default): T"
    assert printed[2].startswith("ranmask certify --do fine") and "--output votes" in printed[2]
    assert printed[5].startswith("as above  ranmask train")
    assert not runs.exists() and not noted(notes / "calls")
    reproduce([other], runs, pretend, display=Told())
    command([path(good)], runs=runs, dry_run=True)
    assert [line[:6] for line in capsys.readouterr().out.splitlines()[1:]] == [
        *("done  ", "ranmas", "ranmas")
    ]


def test_what_it_will_take_is_said_first(runs, capsys):
    names = ["agnews-certified", "imdb-empirical"]
    command(names, runs=runs, dry_run=True, steps="*-mask0.4*,*-none-*,*-mask0.3-vote-*")
    told = capsys.readouterr()
    assert "to do:" not in told.out
    assert told.err == (
        "to do: 4 trainings; certify 1,000 texts, 6,000 copies each; "
        "attack 600 texts, 1 copy a query; attack 600 texts, 16 copies a query\n"
    )


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """An empty data folder, and no library that reads the hub."""
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(inventory, "find_spec", lambda name: None)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_missing_data_is_told_once_before_anything_runs(runs, no_data, capsys):
    """All that is missing, data sets and tables of words, where it was looked for."""
    (no_data / "agnews").mkdir()
    (no_data / "agnews" / "test.parquet").write_bytes(b"")
    with pytest.raises(DataError) as failure:
        command(["sst2-certified", "agnews-empirical", "safer"], runs=runs)
    assert str(failure.value) == (
        "data that the steps read is not here: "
        "sst2 (sst2/train.parquet, sst2/dev.parquet, sst2/test.parquet); "
        "agnews (agnews/train_subset.parquet); "
        "dne (synonyms/dne_counterfitted_euc_top8_d0.7.json.gz). "
        f"Looked in {no_data}: put it there, or set RANMASK_DATA to the folder that holds it. "
        "Where to get it: `ranmask data list` for corpora, docs/attacks.md for synonyms"
    )
    assert not runs.exists() and capsys.readouterr().err == ""


def test_a_wrong_data_folder_is_told_with_what_is_read_from_it(runs, no_data, monkeypatch):
    monkeypatch.setenv("RANMASK_DATA", str(no_data / "gone"))
    wrong = f"the steps read sst2: RANMASK_DATA={no_data / 'gone'} is not a folder"
    with pytest.raises(DataError, match=re.escape(wrong)):
        command(["sst2-certified"], runs=runs)
    assert not runs.exists()


def test_data_that_the_hub_may_have_is_left_to_the_steps(runs, no_data, monkeypatch):
    monkeypatch.setattr(inventory, "find_spec", lambda name: name)
    with mock.patch("ranmask.cli.reproduce.run_recipes", return_value={}) as run:
        command(["sst2-certified"], runs=runs)
    assert run.called
    assert inventory.lacking([("sst2", "test"), ("enron_spam", "test")]) == {
        "enron_spam": ["enron_spam/test.parquet"]  # on no hub
    }
    (no_data / "sst2").mkdir()  # no hub is asked for what a folder lacks
    assert inventory.lacking([("sst2", "test")]) == {"sst2": ["sst2/test.parquet"]}


def test_only_the_splits_that_steps_read_must_be_here(recipe, path, runs, no_data):
    """Trained models can be measured where the texts that they learned from are not."""
    (no_data / "agnews").mkdir()
    (no_data / "agnews" / "test.parquet").write_bytes(b"")
    recipes = {
        "trains": recipe("trains", {"model": ("train", "fine --data agnews")}),
        "certifies": recipe("certifies", {"votes": ("certify", "fine --data agnews")}),
        "tunes": recipe("tunes", {"votes": ("certify", "fine --data agnews --split validation")}),
    }
    command([path(recipes["certifies"])], runs=runs)
    for name in ("trains", "tunes"):  # of agnews, validation is carved from train
        with pytest.raises(DataError, match=r"agnews \(agnews/train_subset.parquet\)\. Looked"):
            command([path(recipes[name])], runs=runs)
    (no_data / "agnews" / "test.parquet").rename(no_data / "agnews" / "train_subset.parquet")
    command([path(recipes["trains"])], runs=runs)


def test_what_is_done_costs_nothing(recipe, path, runs, capsys):
    good = recipe("good", GOOD)
    reproduce([good], runs, pretend, steps="model", display=Told())
    command([path(good)], runs=runs)
    assert "to do:" not in capsys.readouterr().err  # nor what does not say of how many texts


def test_some_steps_with_what_they_need(recipe, path, runs, notes, capsys):
    good = recipe("good", {**GOOD, "other": ("train", "fine")})
    command([path(good)], runs=runs, steps="vot*", dry_run=True)
    assert len(capsys.readouterr().out.splitlines()) == 3  # a headline, the model, the votes
    told = Told()
    reproduce([good], runs, pretend, steps="vot*", display=told)
    assert told.told[0] == (2, 0) and noted(notes / "calls") == ["model", "votes"]
    todo = {"attacked": "todo", "other": "todo"}
    assert states(good, runs) == {"model": "done", "votes": "done", **todo}
    told = Told()
    reproduce([good], runs, pretend, steps="attacked,other", display=told)
    assert told.told[0] == (3, 1) and set(states(good, runs).values()) == {"done"}


def test_a_step_that_does_not_exist_is_told_before_anything_runs(recipe, path, runs):
    good = recipe("good", GOOD)
    told = (
        r"no step of these recipes is called 'vote'\. Did you mean 'votes'\? There are model, votes"
    )
    with pytest.raises(OptionError, match=told):
        command([path(good)], runs=runs, steps="votes,vote")
    with pytest.raises(
        OptionError, match=r"called 'x\*'\. There are agnews-mlm, .*agnews-none, .*\.$"
    ):
        command(["agnews-empirical"], runs=runs, steps="x*")
    assert not runs.exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("texts=0", "sst2-mask0.2-certified cannot be run: --rows must be a whole number of at le"),
        ("learning_rate=fast", "the step sst2-mask0.2 cannot be run: .*--learning-rate: 'fast'"),
        ("hide=foo", "the step sst2-mask0.2 cannot be run: --hide must be one of mask, drop"),
        ("train=['--bogus']", "the step sst2-mask0.2 cannot be run: .*--bogus"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_setting_that_a_command_refuses_is_told_before_anything_runs(
    runs, setting, message, dry_run
):
    """An hour of training would come before the step that reads no texts."""
    with pytest.raises(OptionError, match=message):
        cli_reproduce.reproduce("sst2-certified", settings=[setting], runs=runs, dry_run=dry_run)
    assert not runs.exists()


def test_commands_are_checked_as_they_are_run():
    for given in (["-q"], ["--verbose"], ["-"], ["--input", "-", "--quiet"]):
        check_command(["certify", *given])
    for flag in ("--help", "--version"):
        with pytest.raises(OptionError, match="would print a help or a version and do nothing"):
            check_command(["certify", flag])


def test_commands_of_the_same_options_are_checked_once(runs):
    """Reading a command line takes a while, and many seeds have many of them."""

    def checked(**given):
        with mock.patch("ranmask.cli.main.check_command") as check:
            cli_reproduce.reproduce("sst2-certified", runs=runs, dry_run=True, **given)
        return [call.args[0] for call in check.call_args_list]

    alone = checked()
    assert {word for words in alone for word in words if "--" in word} >= {"--mask-rate", "--rows"}
    assert len(checked(seeds=10)) == len(alone) + 9 * 2  # train and certify, for each new seed


def test_a_setting_that_changes_nothing_is_told(recipe, path, runs, capsys):
    good = path(recipe("good", GOOD))
    command([good], runs=runs, settings=["together=3", "hide=mask", "texts=4"], dry_run=True)
    told = [line for line in capsys.readouterr().err.splitlines() if "changes nothing" in line]
    assert told == ["no step uses the setting together: together=3 changes nothing"]
    rates = load_recipe("sst2-certified").written["trained_rates"]  # no part of a variant's name
    given = [f"trained_rates={[0.1, *rates]}"]
    command(["sst2-certified"], runs=runs, settings=given, dry_run=True)
    command(["sst2-certified"], runs=runs, settings=["rates=[]"], dry_run=True)  # no such steps
    told = capsys.readouterr()
    assert "changes nothing" not in told.err and "# sst2-certified-rates" in told.out


def test_the_list_names_every_recipe(capsys):
    command(listing=True)
    printed = capsys.readouterr().out
    assert "sst2-certified        Certified robustness on SST2" in printed
    assert "(tb-sst2-certified; 17 steps)" in printed


def test_settings_come_from_the_command_line(recipe, path, runs, capsys):
    first, second = recipe("first", GOOD), recipe("second", {"a": ("train", "fine")})

    def settings(folder):
        return json.loads((runs / folder / "reproduction.json").read_text())["settings"]

    command([path(first), path(second)], runs=runs, settings=["texts=7", "hide=mask"], smoke=False)
    assert settings("first-hide-mask-texts7")["texts"] == 7
    assert settings("second-hide-mask-texts7")["hide"] == "mask"
    command([path(first)], runs=runs, settings=['base="b/c"'])
    assert settings("first-c")["base"] == "b/c"
    command([path(first)], runs=runs, base=str(runs))
    assert settings("first-runs")["base"] == "runs"  # a folder by its name only
    command([path(first)], runs=runs, smoke=True)
    assert settings("first-smoke")["texts"] == 2


def test_a_variant_leaves_the_record_of_another_alone(recipe, path, runs, notes):
    """Each has its own record; steps that are the same command are still done once."""
    made = recipe("first", GOOD)
    command([path(made)], runs=runs)
    before = (runs / "first" / "reproduction.json").read_bytes()
    command([path(made)], runs=runs, settings=["hide=mask"])
    command([path(made)], runs=runs, settings=["hide=drop", "together=3"])  # the recipe's own
    assert (runs / "first" / "reproduction.json").read_bytes() == before
    assert {folder.name for folder in runs.iterdir()} == {"steps", "first", "first-hide-mask"}
    changed = json.loads((runs / "first-hide-mask" / "reproduction.json").read_text())
    assert (changed["recipe"]["name"], changed["variant"]) == ("first", {"hide": "mask"})
    assert sorted(noted(notes / "calls")) == sorted(2 * ["model", "votes", "attacked"])


def test_several_seeds_are_variants_and_share_what_is_alike(recipe, path, runs, notes):
    made = path(recipe("first", GOOD))
    seeded = Path(made).read_text().replace("train --do", "train --seed {seed} --do")
    Path(made).write_text(seeded)
    command([made], runs=runs, seeds=3)
    names = {folder.name for folder in runs.iterdir()}
    assert names == {"steps", "first", "first-seed1", "first-seed2"}
    assert sorted(noted(notes / "calls")) == sorted(3 * list(GOOD))
    command([made], runs=runs, seeds=2, settings=["seed=2"])
    assert {folder.name for folder in runs.iterdir()} == names | {"first-seed3"}
    assert len(noted(notes / "calls")) == 4 * len(GOOD)  # seed 2 was there


def test_a_recipe_that_draws_nothing_is_the_same_with_every_seed(recipe, path, runs, notes):
    command([path(recipe("first", GOOD))], runs=runs, seeds=3)
    assert {folder.name for folder in runs.iterdir()} == {"steps", "first"}


@pytest.mark.parametrize("seeds", [0, 10**11])
def test_how_many_seeds_there_may_be(recipe, path, runs, seeds):
    with pytest.raises(OptionError, match=f"from 1 to 1000, not {seeds}"):
        command([path(recipe("first", GOOD))], runs=runs, seeds=seeds)


def test_seeds_are_told_apart(recipe, path, runs, notes, capsys, monkeypatch):
    made = path(recipe("first", GOOD))
    named = Path(made).read_text().replace("texts = 4", "texts = 4\nseed = 0")
    Path(made).write_text(named.replace("train --do", "train --seed {seed} --do"))
    command([made], runs=runs, seeds=2, dry_run=True)
    planned = capsys.readouterr().out.splitlines()
    heads = [line.partition(" (")[0] for line in planned if line.startswith("#")]
    assert heads == ["# first", "# first-seed1"]
    stream = io.StringIO()
    recipes = [load_recipe(made), load_recipe(made, overrides={"seed": 1})]
    with shown(monkeypatch, stream) as display:
        reproduce(recipes, runs, pretend, steps="model", display=display)
    told = stream.getvalue()
    assert "[1/2] model: done" in told and "[2/2] model, seed 1: done" in told


@pytest.mark.parametrize("seed", ['"a"', "-1", "0.5", "true"])
def test_the_seed_of_a_recipe_is_a_whole_number(recipe, path, runs, seed):
    made = path(recipe("first", GOOD))
    named = Path(made).read_text().replace("texts = 4", f"texts = 4\nseed = {seed}")
    Path(made).write_text(named.replace("train --do", "train --seed {seed} --do"))
    with pytest.raises(DataError, match=r"setting seed is .*, not a whole number of at least 0"):
        command([made], runs=runs, seeds=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": None}, "name a recipe: adversarial-examples, .*; or all"),
        ({"names": ["sst2"]}, "no recipe 'sst2'"),
        ({"names": ["sst2-beta"], "smoke": True, "paper": True}, "--smoke and --paper are two"),
        ({"names": ["sst2-beta"], "jobs": 0}, "--jobs must be a whole number of at least 1, not 0"),
        ({"names": ["sst2-beta"], "settings": ["texts"]}, "--set takes NAME=VALUE, not 'texts'"),
        (
            {"names": ["sst2-beta"], "settings": ["textz=3"]},
            "'textz'. Did you mean 'texts'. .* masks",
        ),
        ({"names": ["all"], "settings": ["textz=3"]}, "'textz'. Did you mean 'texts'. .* masks"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(runs, options, message):
    with pytest.raises(OptionError, match=message):
        command(**options, runs=runs)
    assert not runs.exists()


def test_two_recipes_of_one_name_are_refused(recipe, path, runs, tmp_path):
    first = path(recipe("same", GOOD))
    (tmp_path / "b").mkdir()
    second = tmp_path / "b" / "same.toml"
    second.write_text(Path(first).read_text())
    with pytest.raises(OptionError, match="two recipes are called 'same'"):
        command([first, str(second)], runs=runs)


def test_all_may_stand_beside_others(recipe, path, runs, capsys):
    command(["all", path(recipe("ours", GOOD))], runs=runs, dry_run=True)
    printed = capsys.readouterr().out
    assert "# ours (default)" in printed and "# sst2-certified (default)" in printed


# -- what people see -----------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@contextlib.contextmanager
def shown(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(reproduce_printing, "_REFRESH_SECONDS", 0.01)
    with ReproductionDisplay() as display:
        yield display


def test_a_terminal_shows_names_and_counts(recipe, runs, monkeypatch):
    steps = {"model": ("train", "dawdle"), "votes": ("certify", "dawdle", "model")}
    lively, stream = recipe("lively", steps), Terminal()
    with shown(monkeypatch, stream) as display:
        assert reproduce([lively], runs, pretend, display=display) == {}
    told = stream.getvalue()
    assert re.search(r"\[1/2\] model: done in \d s.*\[2/2\] votes: done in \d s", told, re.DOTALL)
    assert "steps" in told and "0/2" in told and "1/2" in told
    assert "begins" not in told


def test_a_step_is_followed_by_what_it_writes(recipe, runs, monkeypatch):
    steps = {"model": ("train", "fine"), "votes": ("certify", "fine", "model")}
    model, votes = plan(recipe("followed", steps), runs)
    stream = Terminal()
    shows = lambda text: until(lambda: text in stream.getvalue(), f"no {text!r}", 20)  # noqa: E731
    with shown(monkeypatch, stream) as display:
        display.begin(2, 0)
        display.started(model)
        display.started(votes)
        shows("model")
        model.made.mkdir(parents=True)
        votes.made.parent.mkdir(parents=True)
        votes.made.write_text('{"row": 1}\n{"row": 2}\n{"ro')
        shows("2/?")
        log = model.made / "training.jsonl"
        for odd in ("3\n", "[]\n", '{"steps": 9}\n', '{"half', '": 1}\n\xff\n', '{"step": {}}\n'):
            with log.open("a", encoding="latin-1") as file:
                file.write(odd)
            time.sleep(0.03)
        with log.open("a") as file:
            file.write('{"phase": "masked", "step": 30, "steps": 62}\n')
        shows("30/62")
        shows("masked training")
        votes.made.write_text("")  # begun anew
        time.sleep(0.03)
        display.ended(model, Performed(model.key, 61.0, {}))
        display.ended(votes, Performed(votes.key, 1.0, {}, "it broke [/red]"))
    told = stream.getvalue()
    assert "[1/2] model: done in 61 s" in told and "[2/2] votes: failed: it broke [/red]" in told


def test_elsewhere_a_step_is_a_line(recipe, runs, monkeypatch):
    stream = io.StringIO()
    with shown(monkeypatch, stream) as display:
        reproduce([recipe("plain", GOOD)], runs, pretend, display=display)
    told = re.sub(r"in \d+ s", "in 0 s", stream.getvalue())
    # Before version 15 rich ended with an empty line.
    assert list(filter(None, told.splitlines())) == [
        *("model: begins", "[1/3] model: done in 0 s"),
        *("votes: begins", "[2/3] votes: done in 0 s"),
        *("attacked: begins", "[3/3] attacked: done in 0 s"),
    ]


def test_processes_start_others_as_usual_and_share_the_cores(recipe, runs, notes, monkeypatch):
    """A spawned process spawns, too, unless told otherwise: data loaders would copy the model."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    looking = recipe("looking", {"model": ("train", "look-around")})
    reproduce([looking], runs, pretend, jobs=2, display=Told())
    usual = multiprocessing.get_context().get_start_method()
    assert noted(notes / "starts") == [usual]
    assert noted(notes / "threads") == [str(max(1, (os.cpu_count() or 1) // 2))]


def test_a_gpu_that_was_not_used_is_not_named(monkeypatch):
    class Torch:
        class cuda:  # noqa: N801
            is_available = staticmethod(lambda: True)
            get_device_name = staticmethod(lambda place: "Fast GPU")

    monkeypatch.setitem(sys.modules, "torch", Torch)
    assert machine(gpu=True)["hardware"] == "one Fast GPU"
    assert "CPU cores" in machine(gpu=False)["hardware"]
