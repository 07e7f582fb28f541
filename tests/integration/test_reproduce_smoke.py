"""``ranmask reproduce --smoke`` as a newcomer runs it, every recipe, on made-up data.

All tests share one folder of runs, and so do all processes of pytest-xdist: what one has trained,
the others find, for steps are locked.
"""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranmask.cli.main import run_command
from ranmask.paper.reading import read
from ranmask.paper.reproduction.plan import plan
from ranmask.paper.reproduction.recipe import FOLDER, load_recipe, recipe_names
from ranmask.runs.stored import stored_lines

pytestmark = pytest.mark.usefixtures("one_thread", "quiet", "made_up_data")

ROWS = {"train": 240, "dev": 48, "test": 200}
TELLING = {
    "agnews": (
        "war president minister peace",
        "team game season coach",
        "market shares profit bank",
        "software internet computer space",
    ),
    "sst2": ("dull awful bad boring", "good great moving funny"),
    "imdb": ("dull awful bad boring", "good great moving funny"),
    "snli": ("sleeping outside people", "tall sad friends", "nobody cats empty"),
}
OTHERS = (
    *("the", "a", "of", "in", "and", "on", "year", "new", "first", "man", "woman", "film"),
    *("story", "said", "with", "from", "two", "week"),
)
WORDS = {"agnews": 16, "sst2": 10, "imdb": 40, "snli": 7}
PATIENCE = 240  # seconds that a busy machine may take


def made_up(corpus, rows, seed):
    """Texts of which every third word tells the class."""
    rng = random.Random(f"{corpus} {seed}")
    telling = [words.split() for words in TELLING[corpus]]
    for row in range(rows):
        label = row % len(telling)
        words = [
            rng.choice(telling[label] if rng.random() < 0.35 else OTHERS)
            for _ in range(WORDS[corpus])
        ]
        yield f"{' '.join(words)} {row}", label  # no two are the same


def write_corpus(folder, corpus, files):
    (folder / corpus).mkdir()
    for part, file in files.items():
        texts, labels = zip(*made_up(corpus, ROWS[part], part), strict=True)
        columns = {"text": texts}
        if corpus == "snli":
            columns = {"premise": ["a man and a woman on the film"] * len(texts)}
            columns["hypothesis"] = texts
        columns["label"] = pa.array(labels, pa.int8())
        pq.write_table(pa.table(columns), folder / corpus / f"{file}.parquet")


@pytest.fixture(scope="module")
def made_up_data(tmp_path_factory):
    """A data folder with the files that recipes read, and nothing real in it."""
    folder = tmp_path_factory.mktemp("data")
    two, three = {"train": "train", "test": "test"}, {"dev": "dev", "test": "test"}
    write_corpus(folder, "agnews", two | {"train": "train_subset"})
    write_corpus(folder, "imdb", two)
    write_corpus(folder, "sst2", two | three)
    write_corpus(folder, "snli", three | {"train": "train_subset"})
    groups = [words.split() for classes in TELLING.values() for words in classes]
    table = {
        word: [one for one in group if one != word] for group in [*groups, OTHERS] for word in group
    }
    (folder / "synonyms").mkdir()
    for name in ("jia2019_counterfitted_neighbors", "dne_counterfitted_euc_top8_d0.7"):
        packed = gzip.compress(json.dumps(table).encode(), mtime=0)
        (folder / "synonyms" / f"{name}.json.gz").write_bytes(packed)
    tagger = "taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng"
    nltk = {
        "corpora/stopwords/english": "the\na\nof\n",
        f"{tagger}.weights.json": "{}",
        f"{tagger}.tagdict.json": "{}",
        f"{tagger}.classes.json": '["NN"]',
        "taggers/universal_tagset/en-ptb.map": "NN\tNOUN\n",
    }
    for name, content in nltk.items():
        (folder / "nltk" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "nltk" / name).write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANMASK_DATA", str(folder))
        patch.delenv("NLTK_DATA", raising=False)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "reproduced"


def marks(recipe, runs):
    paths = [one.folder / "step.json" for one in plan(recipe, runs)]
    return {path: (path.stat().st_mtime_ns, path.read_text()) for path in paths}


def expected_lines(recipe, step):
    if step.measures not in ("examples", "adversarial"):
        return recipe.settings["texts"]
    corpus = recipe.settings["corpus"]
    return len((FOLDER / f"sentences-{corpus}.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_reproduced_and_then_repeats_nothing(name, runs, capsys):
    recipe = load_recipe(name, "smoke")
    command = ["reproduce", name, "--smoke", "--runs", str(runs), "--device", "cpu"]
    assert run_command(command) == 0, capsys.readouterr().err
    found = read(runs / f"{name}-smoke")
    assert [step.name for step in found.steps] == [step.name for step in recipe.steps]
    for step in found.steps:
        assert (step.state, step.error) == ("done", None)
        assert step.result is not None
        if step.measures != "training":
            results = runs / f"{name}-smoke" / "results" / f"{step.name}.jsonl"
            assert len(list(stored_lines(results))) == expected_lines(recipe, step)
    assert bool(found.machine) == bool(recipe.steps)
    done = marks(recipe, runs)
    capsys.readouterr()
    assert run_command(command) == 0
    assert marks(recipe, runs) == done
    said = capsys.readouterr().err
    assert "begins" not in said and f"ranmask report {runs / name}-smoke" in said


# -- ended from outside --------------------------------------------------------------------------


def started(runs, *options):
    """The command in a process of its own, as a terminal starts it."""
    command = [sys.executable, "-m", "ranmask.cli", "reproduce", "sst2-beta", "--smoke"]
    command += ["--runs", str(runs), "--device", "cpu", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def until(condition, process):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def finish(runs, capsys):
    command = ["reproduce", "sst2-beta", "--smoke", "--runs", str(runs), "--device", "cpu"]
    assert run_command(command) == 0, capsys.readouterr().err
    assert all(step.result is not None for step in read(runs / "sst2-beta-smoke").steps)


def test_a_killed_reproduction_goes_on(tmp_path, capsys):
    first, *_ = plan(load_recipe("sst2-beta", "smoke"), tmp_path)
    mark = first.folder / "step.json"
    with started(tmp_path) as process:
        until(mark.exists, process)
        process.kill()
    before = mark.stat().st_mtime_ns
    record = json.loads((tmp_path / "sst2-beta-smoke" / "reproduction.json").read_text())
    assert {step["state"] for step in record["steps"]} >= {"todo"}
    finish(tmp_path, capsys)
    assert mark.stat().st_mtime_ns == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_a_reproduction_and_it_goes_on(tmp_path, jobs, capsys):
    first, second, *_ = plan(load_recipe("sst2-beta", "smoke"), tmp_path)
    busy = second if jobs == "2" else first
    with started(tmp_path, "--jobs", jobs) as process:
        until((busy.made / "training.json").exists, process)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert said.endswith("interrupted: the same command goes on\n"), said
    assert "Traceback" not in said
    finish(tmp_path, capsys)
