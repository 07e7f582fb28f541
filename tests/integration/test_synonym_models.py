"""Real models smoothed by synonyms: laid out fast, saved, loaded, and run from the terminal."""

import io
import json
import os
import shutil
from unittest import mock

import numpy as np
import pytest

from commands import run_cli
from ranmask import (
    HuggingFaceClassifier,
    ModelError,
    OptionError,
    SmoothedClassifier,
    SynonymSets,
    SynonymSmoothedClassifier,
)
from ranmask.attacks.api import as_victim
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.victims import PlainVictim, Question
from ranmask.models.base import BaseClassifier, whole_copy
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines
from ranmask.smoothing.store import load_classifier, load_with_any_keep
from ranmask.words import document


def asked(attempt, text, near):
    """A question about texts as they are spelt."""
    return Question(attempt, document(text), document(near))


TABLE = {
    "film": ["story", "plot", "unbelievable"],
    "good": ["great", "fine"],
    "great": ["good"],
    "bad": ["awful", "dull"],
    "was": ["is"],
    "un": ["[SEP]", "re"],
}
TEXTS = [
    "The film was good",
    "bad , bad plot",
    ("a premise", "the film was great"),
    ("a premise", "good"),
    "good",
    "film " * 80,  # more than the model reads
    "a unbelievable film",
]


@pytest.fixture(scope="module")
def folder(classifier, tmp_path_factory):
    """A tiny BERT with its synonyms, as training leaves it."""
    path = tmp_path_factory.mktemp("synonyms") / "tiny"
    sets = SynonymSets(TABLE, name="made up")
    one = SynonymSmoothedClassifier(classifier("bert"), sets, masks=300, selection_masks=50)
    one.save_pretrained(str(path))
    return path


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A folder with a file of rows, and no data of the machine's."""
    rows = ["The film was good,negative", '"a bad, dull story",negative', "very fine,positive"]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (tmp_path / "table.json").write_text(json.dumps(TABLE))
    (tmp_path / "stop.txt").write_text("the\n")
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        os.environ["RANMASK_DATA"] = str(tmp_path)
        os.environ["COLUMNS"] = "300"
        os.environ.pop("RANMASK_MODEL", None)
        yield tmp_path


def invoke(*arguments):
    return run_cli(*arguments)


@pytest.mark.parametrize("hide", ["mask", "drop"])
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_copies_laid_out_together_are_those_laid_out_one_by_one(classifier, architecture, hide):
    base = classifier(architecture, hide)
    sets = SynonymSets(TABLE)
    drawn = []
    for seed, text in enumerate(TEXTS * 3):
        one = document(text)
        read = base.words_read(one)
        drawn.append(sets.draw(type(one)(one.words[:read], one.premise), 5 + seed, seed))
    together = base.score_drawn(drawn)
    apart = BaseClassifier.score_drawn(base, drawn)
    assert [len(rows) for rows in together] == [len(one) for one in drawn]
    for one, other in zip(together, apart, strict=True):
        assert np.allclose(one, other, rtol=0, atol=base.tolerance)
    [rows] = base.encoder.rows_of_drawn(drawn[:1])
    [single] = base.encoder.rows_of_all([whole_copy(one, 4) for one in drawn[0].documents])
    assert (rows.ids == single.ids).all() and (rows.positions == single.positions).all()


def test_the_memory_of_token_sets_is_bounded(classifier, monkeypatch):
    monkeypatch.setattr("ranmask.models.encoding._CACHED_SETS", 2)
    base = classifier("bert").configured()  # with a memory of its own
    drawn = [SynonymSets(TABLE).draw(document(text), 9, 0) for text in TEXTS[:2]]
    before = base.score_drawn(drawn)
    assert all((a == b).all() for a, b in zip(before, base.score_drawn(drawn), strict=True))
    assert len(base.encoder._known_sets) <= 2


class TestFolder:
    def test_round_trip(self, folder, classifier):
        loaded = load_classifier(str(folder))
        assert isinstance(loaded, SynonymSmoothedClassifier)
        built = SynonymSmoothedClassifier(
            classifier("bert"), SynonymSets(TABLE, name="made up"), masks=300, selection_masks=50
        )
        assert loaded.certify(TEXTS) == built.certify(TEXTS)
        assert loaded.predict(TEXTS) == built.predict(TEXTS)
        assert loaded.options == built.options and loaded.labels == built.labels
        assert loaded.description()["synonyms"] == built.description()["synonyms"]

    def test_what_is_given_overrides(self, folder):
        loaded = load_classifier(
            str(folder),
            masks=20,
            ensemble="score",
            alpha=0.3,
            seed=5,
            labels=["a", "b", "c"],
            tolerance=0.5,
            device="cpu",
            dtype="float32",
            certificate="safer",
        )
        options = loaded.options
        assert (options.masks, options.ensemble, options.alpha, options.seed) == (
            20,
            "score",
            0.3,
            5,
        )
        assert loaded.tolerance == 0.5 and loaded.labels == ("a", "b", "c")
        assert options.selection_masks == 50

    @pytest.mark.parametrize(
        "option",
        [
            {"keep": 1},
            {"mask_rate": 0.3},
            {"family": "all"},
            {"threat": "edits"},
            {"sampling": "fresh"},
            {"hide": "drop"},
            {"mask_token": "good"},
            {"certificate": "exact"},
            {"revision": "main"},
        ],
        ids=lambda option: next(iter(option)),
    )
    def test_options_of_masks_are_refused_by_name(self, folder, option):
        [(name, value)] = option.items()
        with pytest.raises(OptionError, match=f"{name}={value!r} means nothing for .*synonyms"):
            load_classifier(str(folder), **option)

    def test_masked_smoothing_of_it_is_refused(self, folder):
        with pytest.raises(ModelError, match=r"SynonymSmoothedClassifier\.from_pretrained"):
            SmoothedClassifier.from_pretrained(str(folder), keep=1)

    def test_without_its_synonyms(self, folder, tmp_path):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        (copy / "synonyms.json").unlink()
        with pytest.raises(ModelError, match=r"cannot read .*synonyms\.json"):
            load_classifier(str(copy))

    def test_its_base_alone(self, folder):
        assert isinstance(load_with_any_keep(str(folder)).base, HuggingFaceClassifier)


class TestVictim:
    def test_the_company_does_not_matter(self, folder):
        victim = as_victim(load_classifier(str(folder), masks=30))
        questions = [asked(place, text, text) for place, text in enumerate(TEXTS)]
        together = victim.answer(questions)
        for place, question in enumerate(questions):
            alone = victim.answer([question])
            assert alone.labels[0] == together.labels[place]
            assert (alone.shares[0] == together.shares[place]).all()


class TestCommands:
    def test_certify(self, folder, here):
        done = invoke("certify", "The film was good", "--model", folder)
        assert done.exit_code == 0, done.output
        line = json.loads(done.stdout)
        assert line["certificate"] == "safer" and line["threat"] == "synonyms"
        assert line["radius"] == 4 and "the table 'made up' lists" in line["assumes"][0]

    def test_the_table_says_what_is_covered(self, folder):
        from rich.console import Console

        from ranmask.cli.printing import explain

        console = Console(width=300, record=True, file=io.StringIO())
        [result] = load_classifier(str(folder)).certify(["The film was good"])
        explain(console, result)
        shown = console.export_text()
        assert "by words that the table lists for them" in shown and "probability 0.95" in shown
        assert "covers substitutions from the table only" in shown
        assert "to anything" not in shown and "underlined" not in shown

    def test_predict(self, folder, here):
        done = invoke("predict", "The film was good", "-m", folder, "--ensemble", "score")
        line = json.loads(done.stdout)
        assert done.exit_code == 0 and line["masks"] == 300 and line["scores"]

    def test_files_are_resumed(self, folder, here):
        command = ("certify", "--input", "rows.csv", "--label-column", "label", "-m", folder)
        assert invoke(*command, "--output", "out.jsonl").exit_code == 0
        whole = (here / "out.jsonl").read_text()
        assert len(list(stored_lines(here / "out.jsonl"))) == 3
        (here / "out.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))
        done = invoke(*command, "--output", "out.jsonl")
        assert "resuming out.jsonl: 1 rows are done" in done.stderr
        assert (here / "out.jsonl").read_text() == whole
        done = invoke(*command, "--output", "out.jsonl", "--seed", "4")
        assert done.exit_code == 1 and "different: seed" in done.stderr

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (["--keep", "2"], "--keep 2 means nothing for"),
            (["--certificate", "ablation"], "--certificate ablation means nothing for"),
            (["--ensemble", "score"], "use --ensemble vote; or predict"),
        ],
        ids=["keep", "certificate", "score"],
    )
    def test_refused(self, folder, here, given, message):
        done = invoke("certify", "good", "-m", folder, *given)
        assert done.exit_code == 2 and message in done.stderr and done.stdout == ""

    def attack(self, folder, *arguments):
        given = ["--recipe", "textfooler", "--input", "rows.csv", "--label-column", "label"]
        given += ["--neighbours", "table.json", "--tagger", "none", "--stop-words", "stop.txt"]
        return invoke("attack", *given, "--model", folder, *arguments)

    def test_attack(self, folder, here):
        done = self.attack(folder, "--masks", "40")
        outcomes = [AttackOutcome.from_dict(json.loads(line)) for line in done.stdout.splitlines()]
        assert done.exit_code == 0 and len(outcomes) == 3
        assert "copies in" in done.stderr and any(one.queries for one in outcomes)

    def test_attack_is_resumed(self, folder, here):
        assert self.attack(folder, "--output", "out.jsonl").exit_code == 0
        whole = (here / "out.jsonl").read_text()
        (here / "out.jsonl").write_text("".join(whole.splitlines(keepends=True)[:2]))
        done = self.attack(folder, "--output", "out.jsonl")
        assert "resuming out.jsonl: 1 rows are done" in done.stderr
        rows = (here / "out.jsonl").read_text().splitlines()[:-1]  # without the time it took
        assert rows == whole.splitlines()[:-1]
        assert read_header(here / "out.jsonl")["classifier"]["synonyms"]

    def test_attack_within_the_radius(self, folder, here):
        """The recipe takes its words from the very table that the certificate covers."""
        done = self.attack(folder, "--budget", "radius")
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        assert any(one["radius"] for one in outcomes)
        assert all(one["status"] != "succeeded" for one in outcomes)

    def test_attack_on_the_model_alone(self, folder, here):
        done = self.attack(folder, "--plain")
        assert done.exit_code == 0 and "masked copies" not in done.stderr
        assert as_victim(load_with_any_keep(str(folder)).base).__class__ is PlainVictim

    def test_tuning_it_is_refused(self, folder, here):
        done = invoke("tune", "--data", "rows.csv", "--label-column", "label", "--model", folder)
        assert done.exit_code == 2 and "is not smoothed by masking words" in done.stderr


def test_a_run_to_a_file_says_what_is_covered(folder, tmp_path):
    """Figures alone would promise too much."""
    source = tmp_path / "rows.txt"
    source.write_text("the good film\n")
    done = run_cli(
        "certify", "-m", str(folder), "--input", str(source), "--output", str(tmp_path / "o")
    )
    assert done.exit_code == 0, done.output
    assert "this covers substitutions from the table only" in " ".join(done.stderr.split())
