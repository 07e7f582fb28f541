"""``ranmask train --defence`` as a user runs it, and what other commands make of its folders."""

import json
import os
import re
from unittest import mock

import made_up
import pytest

from commands import run_cli
from ranmask.cli.command import Given
from ranmask.cli.train import defended
from ranmask.errors import OptionError
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines
from ranmask.training.defences import NAMES

pytestmark = pytest.mark.usefixtures("quiet")

TABLE = {
    "film": ["plot", "story"],
    "good": ["great", "fine"],
    "great": ["good"],
    "dull": ["awful", "bad"],
    "bad": ["awful"],
}
TEXTS = ("good film was great", "a very dull plot")
QUICK = ("--epochs", 1, "--batch-size", 12, "--learning-rate", 0.01, "--device", "cpu")
BALL = {"steps": 2, "step_size": 0.5, "initial_magnitude": 0.1, "max_norm": 1.0, "norm": "linf"}
OWN = {
    "none": {},
    "pgd": BALL,
    "freelb": BALL,
    "hotflip": {"change_rate": 0.4, "flips": "synonyms", "neighbours": "tiny.json"},
    "dne": {"neighbours": "tiny.json", "steps": 1, "step_size": 0.5, "hull": 0.9},
    "augment": {"recipe": "deepwordbug", "share": "1/2"},
    "safer": {"neighbours": "tiny.json", "set_size": 7},
}
MASKING = ("--keep", 2, "--hide", "mask")
PLAIN = [name for name in NAMES if not name.startswith("ranmask") and name != "safer"]
MASKED = [name for name in NAMES if name.startswith("ranmask")]

# What a user may give, with a value that is right where the option has a meaning.
OPTIONS = {
    **{"steps": 2, "step_size": 0.5, "initial_magnitude": 0.1, "max_norm": 1.0, "norm": "l2"},
    **{"change_rate": 0.2, "flips": "words", "hull": 0.5, "set_size": 3, "neighbours": "tiny.json"},
    **{"attacked": ("a.jsonl",), "victim": "v", "recipe": "deepwordbug", "share": "1/2"},
    **{"sentence_encoder": "e", "attack_lm": "l", "tagger": "none", "stop_words": "s"},
    **{"ensemble": "vote", "masks": 9},
    **{"keep": (2,), "mask_rate": 0.5, "hide": "mask", "family": "auto", "copies": 2, "ramp": 0.1},
    **{"vote_epochs": 1, "vote_copies": 3, "vote_loss": "margin", "vote_learning_rate": 0.1},
    **{"target_words": 1, "temperature": 1.0, "accuracy_weight": 0.5, "margin": 0.5},
}
_ASCENT = {"steps", "step_size", "initial_magnitude", "max_norm", "norm"}
_ATTACKS = {"attacked", "victim", "recipe", "share", "sentence_encoder", "attack_lm", "neighbours"}
_ATTACKS |= {"tagger", "stop_words"}
_MASKS = {"keep", "mask_rate", "hide", "family", "copies", "ramp", "vote_epochs", "vote_copies"}
_MASKS |= {"vote_loss", "vote_learning_rate", "target_words", "temperature", "accuracy_weight"}
_MASKS |= {"margin", "ensemble", "masks"}
TAKEN = {
    **{"none": set(), "pgd": _ASCENT, "freelb": _ASCENT, "augment": _ATTACKS},
    "hotflip": {"change_rate", "flips"},  # and neighbours, together with flips=synonyms
    "dne": {"steps", "step_size", "hull", "neighbours"},
    "safer": {"set_size", "neighbours", "masks"},
}


def own_of(name):
    """A defence without its masking."""
    return "none" if name == "ranmask" else name.removeprefix("ranmask+")


def flags(options):
    """``{"step_size": 1}`` as ``--step-size 1``."""
    return [part for key, value in options.items() for part in (flag(key), value)]


def flag(option):
    return "--" + option.replace("_", "-")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, a table of neighbours, and NLTK's stop words; none of the machine's."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "data").mkdir()
    made_up.write_csv(folder / "data" / "train.csv", 24)
    made_up.write_csv(folder / "data" / "validation.csv", 6, seed=1)
    (folder / "tiny.json").write_text(json.dumps(TABLE))
    stop_words = folder / "nltk" / "corpora" / "stopwords" / "english"
    stop_words.parent.mkdir(parents=True)
    stop_words.write_text("the\nwas\na\n")
    lines = [f"the film was,{text},{label}" for text, label in made_up.texts(24, 0)]
    (folder / "pairs.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    return folder


@pytest.fixture(autouse=True)
def environment(place, monkeypatch):
    monkeypatch.chdir(place)
    with mock.patch.dict(os.environ):  # the command sets variables for its libraries
        os.environ |= {"RANMASK_DATA": str(place / "empty"), "NLTK_DATA": str(place / "nltk")}
        os.environ |= {"TOKENIZERS_PARALLELISM": "false", "COLUMNS": "300"}
        os.environ.pop("RANMASK_MODEL", None)
        yield


def invoke(*arguments):
    return run_cli(*arguments)


@pytest.fixture(scope="module")
def train(base_folder):
    def run(output, *arguments, data="data"):
        given = ("--data", data, "--base", base_folder, "--output", output)
        return invoke("train", *given, *QUICK, *arguments)

    return run


@pytest.fixture(scope="module")
def trained(train, place, tmp_path_factory):
    """``trained("pgd")``: the folder that the command left.  Each defence is trained once."""
    known = {}

    def get(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("trained") / "model"
            given = dict(OWN[own_of(name)])
            if name == "ranmask+augment":  # what was attacked for its rival serves again
                given = {"attacked": f"{get('augment')}.attacked.jsonl"}
            masking = MASKING if name in MASKED else ()
            done = train(folder, "--defence", name, *flags(given), *masking)
            assert done.exit_code == 0, done.output
            assert done.stdout == "" and "Traceback" not in done.stderr
            assert f"{folder}: validation accuracy " in done.stderr
            known[name] = folder
        return known[name]

    return get


def record_of(folder):
    return json.loads((folder / "training.json").read_text())


def lines_of(done):
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused(done, code, message):
    """One line on standard error, and nothing else."""
    assert done.exit_code == code, done.output
    assert done.stdout == "" and message in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    return True


def written(folder):
    return sorted(path.name for path in folder.iterdir())


# -- what is written -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if "augment" not in name])
def test_the_record_names_the_defence_and_all_its_options(name, trained):
    record = record_of(trained(name))
    assert record["complete"] and record["run"]["train"]["rows"] == 24
    found = record["run"]["defence"]
    measured = found.pop("validation", None)
    assert measured == ({"masks": 100, "selection_masks": 20} if name == "safer" else None)
    table = found.get("neighbours")
    if table is not None:
        assert (table["name"], table["words"]) == ("tiny.json", len(TABLE)) and table["sha256"]
        found = {**found, "neighbours": "tiny.json"}
    assert found == {"name": own_of(name), **OWN[own_of(name)]}
    options = record["run"]["options"]
    masked = ([2], None) if name in MASKED else ([], 0.0)
    assert (options["keep"], options["mask_rate"]) == masked


@pytest.mark.parametrize("name", NAMES)
def test_the_card_tells_the_truth(name, trained):
    folder = trained(name)
    card = (folder / "README.md").read_text()
    promise = card.split("```")[0]
    if name == "safer":
        assert "**each by a word\nthat the table of synonyms lists for it**" in promise
        assert "from 100 copies of each" in card
    else:
        assert ("Nothing is proved" in promise) == (name in PLAIN)
        assert ("come with a proved radius" in promise) == (name in MASKED)
    if own_of(name) not in ("none", "augment"):
        assert own_of(name).upper() in promise.upper()
        for key, value in {"defence": own_of(name), **OWN[own_of(name)]}.items():
            assert f"- `{key}`: {value}\n" in card

    [code] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    scope = {}
    exec(code.replace("path/to/this/folder", str(folder)), scope)
    [result] = scope["classifier"].certify([TEXTS[0]])
    assert result.label in made_up.CLASSES


@pytest.mark.parametrize("name", ["augment", "ranmask+augment"])
def test_attacked_texts_are_part_of_what_was_trained_on(name, trained):
    outcomes = list(stored_lines(trained("augment").parent / "model.attacked.jsonl"))
    assert len(outcomes) == 12  # half of the rows
    added = sum(one["status"] == "succeeded" for one in outcomes)
    assert added > 0
    data = record_of(trained(name))["run"]["train"]
    assert data["rows"] == 24 + added
    assert f"{added} of 12 texts attacked with success by deepwordbug" in data["note"]
    assert data["note"] in (trained(name) / "README.md").read_text()


# -- what other commands make of it --------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_folder_proves_nothing_and_shows_its_probabilities(name, trained):
    folder = trained(name)
    predicted = lines_of(invoke("predict", "-m", folder, *TEXTS))
    certified = lines_of(invoke("certify", "-m", folder, *TEXTS))
    for one, other in zip(predicted, certified, strict=True):
        assert one["label"] == other["label"] and one["kept"] == one["words"]
        assert (other["radius"], other["masks"]) == (0, 1)
        assert sum(one["scores"]) == pytest.approx(1) and 0 < min(one["scores"]) < 1
    for one, outcome in zip(predicted, attacked_by_letters(folder, predicted), strict=True):
        assert outcome["status"] in ("succeeded", "failed") and outcome["queries"] > 1
        assert outcome["clean_share"] == pytest.approx(max(one["scores"]), abs=1e-4)
        assert outcome["final_share"] < outcome["clean_share"] < 1  # no vote of one copy


@pytest.mark.parametrize("name", MASKED)
def test_a_masked_folder_is_certified_as_ranmask_is(name, trained):
    predicted = lines_of(invoke("predict", "-m", trained(name), *TEXTS))
    certified = lines_of(invoke("certify", "-m", trained(name), *TEXTS))
    for one, other in zip(predicted, certified, strict=True):
        assert one["votes"] == other["votes"] and sum(one["votes"]) == other["masks"] == 6
        assert (other["kept"], other["family"], other["ensemble"]) == (2, "all", "vote")
        assert (other["certificate"], other["threat"]) == ("exact", "substitutions")
        assert (other["guarantee"], other["alpha"]) == (True, None)
    for one, outcome in zip(predicted, attacked_by_letters(trained(name), predicted), strict=True):
        assert outcome["clean_share"] == pytest.approx(max(one["votes"]) / 6, abs=1e-4)


def test_a_safer_folder_says_that_only_the_table_is_covered(trained):
    folder = trained("safer")
    predicted = lines_of(invoke("predict", "-m", folder, *TEXTS))
    for one in lines_of(invoke("certify", "-m", folder, *TEXTS)):
        assert (one["certificate"], one["threat"], one["guarantee"]) == ("safer", "synonyms", True)
        assert "only by words that the table 'tiny.json' lists" in one["assumes"][0]
        assert one["alpha"] == 0.05 and one["masks"] == 5000
    assert {outcome["status"] for outcome in attacked_by_letters(folder, predicted)} <= {
        *("succeeded", "failed"),
    }
    done = invoke("certify", "-m", folder, "--keep", 2, *TEXTS)
    assert refused(done, 2, "--keep 2 means nothing for")


def attacked_by_letters(folder, predicted):
    """The texts attacked, with what the model says of them as their labels."""
    rows = [f"{one['text']},{one['label']}" for one in predicted]
    source = folder.parent / "attack.csv"
    source.write_text("\n".join(["text,label", *rows]) + "\n")
    given = ("--recipe", "deepwordbug", "--input", source, "--label-column", "label")
    return lines_of(invoke("attack", "-m", folder, *given, "--json"))


# -- interrupted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("ranmask+freelb", "--keep", 2, "--hide", "mask", "--batch-size", 4, "--accumulate", 2),
        ("safer", "--neighbours", "tiny.json", "--batch-size", 8),
    ],
    ids=["ranmask+freelb, accumulated", "safer"],
)
def test_the_same_command_resumes_to_the_same_weights(arguments, train, tmp_path, monkeypatch):
    from ranmask.training import trainer

    def interrupted(self, args, state, *_, **__):
        if state.global_step == 2:
            raise KeyboardInterrupt

    given = ("--defence", *arguments, "--evaluate-every", 1, "--epochs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(trainer.Watcher, "on_step_begin", interrupted, raising=False)
        done = train(tmp_path / "killed", *given)
    assert done.exit_code == 130 and "the same command resumes" in done.stderr
    assert refused(train(tmp_path / "killed", *given, "--seed", 1), 1, "options.seed (0 there")
    for name in ("killed", "quiet"):
        assert train(tmp_path / name, *given).exit_code == 0
    lines = (tmp_path / "killed" / "training.jsonl").read_text().splitlines()
    log = [json.loads(line) for line in lines]
    assert [line["step"] for line in log if "loss" in line] == [1, 2, 3]
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("killed", "quiet")]
    assert files[0] == files[1]
    assert "finished training run" in train(tmp_path / "quiet", *given).stderr


def test_an_interrupted_augmentation_trains_no_victim_again(train, tmp_path, monkeypatch):
    from ranmask.training.defences import augment

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    given = (tmp_path / "model", "--defence", "augment", "--recipe", "deepwordbug")
    with monkeypatch.context() as patch:
        patch.setattr(augment, "attack_half", interrupted)
        done = train(*given)
    assert done.exit_code == 130 and "the same command resumes" in done.stderr
    assert written(tmp_path) == ["model.victim"]
    victim = tmp_path / "model.victim" / "training.json"
    before = victim.stat().st_mtime_ns
    assert train(*given).exit_code == 0
    assert victim.stat().st_mtime_ns == before
    assert record_of(tmp_path / "model")["complete"]


# -- attacked texts ------------------------------------------------------------------------------


def test_a_victim_that_there_is_already(train, trained, tmp_path):
    own = ("--defence", "augment", "--recipe", "deepwordbug", "--share", "0.25")
    done = train(tmp_path / "model", *own, "--victim", trained("none"))
    assert done.exit_code == 0, done.output
    assert written(tmp_path) == ["model", "model.attacked.jsonl"]
    assert len(list(stored_lines(tmp_path / "model.attacked.jsonl"))) == 6
    run = read_header(tmp_path / "model.attacked.jsonl")
    assert str(trained("none")) in json.dumps(run) and run["recipe"]["name"] == "deepwordbug"


def attack_run(folder, trained, *rows):
    """A file of attacked texts by ``ranmask attack``."""
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    output = folder / "attacked.jsonl"
    given = ("--input", folder / "rows.csv", "--label-column", "label", "--output", output)
    done = invoke("attack", "-m", trained("none"), "--plain", "--recipe", "deepwordbug", *given)
    assert done.exit_code == 0, done.output
    return output


def test_a_file_of_ranmask_attack(train, trained, place, tmp_path):
    rows = (place / "data" / "train.csv").read_text().splitlines()[1:9]
    file = attack_run(tmp_path, trained, *rows)
    before = written(tmp_path)
    done = train(tmp_path / "model", "--defence", "ranmask+augment", *MASKING, "--attacked", file)
    assert done.exit_code == 0, done.output
    assert written(tmp_path) == sorted([*before, "model"])  # neither victim nor attack
    assert "of 8 texts attacked" in record_of(tmp_path / "model")["run"]["train"]["note"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a text from elsewhere,praise", "an attacked text is no row of data train: 'a text from"),
        ("validation", "an attacked text is held out, in data validation"),
    ],
    ids=["foreign", "held out"],
)
def test_attacked_texts_of_other_data(row, message, train, trained, place, tmp_path):
    if row == "validation":
        row = (place / "data" / "validation.csv").read_text().splitlines()[1]
    file = attack_run(tmp_path, trained, row)
    done = train(tmp_path / "model", "--defence", "augment", "--attacked", file)
    assert refused(done, 1, message) and not (tmp_path / "model").exists()


def test_files_that_hold_no_attacked_texts(train, trained, place, tmp_path):
    twice = f"{trained('augment')}.attacked.jsonl"
    for files, message in (
        (["absent.jsonl"], "there is no file absent.jsonl"),
        (["data/train.csv"], "was not written by an attack run"),
        ([twice, twice], "is named twice"),
    ):
        given = [part for file in files for part in ("--attacked", file)]
        done = train(tmp_path / "model", "--defence", "augment", *given)
        assert refused(done, 1, message) and written(tmp_path) == []


# -- refused -------------------------------------------------------------------------------------


def name_given(name, options):
    """The options, and how many words copies show, where they must."""
    shown = {} if {"keep", "mask_rate"} & options.keys() or name not in MASKED else {"keep": (2,)}
    return Given(shown | options)


@pytest.mark.parametrize("name", NAMES)
def test_options_that_mean_nothing_with_a_defence(name):
    """All options, one at a time, by the rules that the command goes by."""
    taken = TAKEN[own_of(name)] | (_MASKS if name in MASKED else set())
    needed = {"neighbours": "tiny.json"} if own_of(name) in ("dne", "safer") else {}
    for option, value in OPTIONS.items():
        if option in taken:
            defended(name_given(name, {**needed, option: value}), name)
        elif (own_of(name), option) != ("hotflip", "neighbours"):
            with pytest.raises(OptionError, match=f"^{flag(option)} means nothing with --defence "):
                defended(name_given(name, {**needed, option: value}), name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none", "--steps", 3), "--steps means nothing with --defence none: leave it out"),
        (("pgd", "--hull", 1), "--hull means nothing with --defence pgd"),
        (("freelb", "--set-size", 9), "--set-size means nothing with --defence freelb"),
        (("hotflip", "--norm", "l2"), "--norm means nothing with --defence hotflip"),
        (("ranmask", "--max-norm", 1), "--max-norm means nothing with --defence ranmask"),
        (("pgd", "--neighbours", "tiny.json"), "--neighbours means nothing with --defence pgd"),
        (("pgd", "--share", "1/2"), "--share means nothing with --defence pgd"),
        (("none", "--recipe", "x"), "--recipe means nothing with --defence none"),
        (("ranmask", *MASKING, "--attacked", "x"), "--attacked means nothing with --defence ranm"),
        (("augment", "--flips", "words"), "--flips means nothing with --defence augment"),
        (("none", "--keep", 2), "--keep means nothing with --defence none, which hides no word"),
        (("pgd", "--mask-rate", 0.5), "--mask-rate means nothing with --defence pgd, which hides"),
        (("freelb", "--vote-epochs", 1), "--vote-epochs means nothing with --defence freelb"),
        (("hotflip", "--masks", 9), "--masks means nothing with --defence hotflip"),
        (("augment", "--ensemble", "vote"), "--ensemble means nothing with --defence augment"),
        (
            ("safer", "--neighbours", "tiny.json", "--hide", "drop"),
            "--hide means nothing with --defence safer, which hides no word",
        ),
        (
            ("augment", "--attacked", "x", "--victim", "v"),
            "--victim means nothing with --attacked",
        ),
        (("augment", "--attacked", "x", "--share", 1), "--share means nothing with --attacked"),
        (
            ("augment", "--recipe", "deepwordbug", "--neighbours", "tiny.json"),
            "--neighbours means nothing with --recipe deepwordbug",
        ),
        (("pdg",), "--defence must be one of none, ranmask, pgd, freelb, hotflip, dne, augment"),
        (("ranmask+safer", "--keep", 2), "--defence must be one of"),
        (("ranmask+pgd",), "give exactly one of --keep and --mask-rate"),
        (("pgd", "--steps", 0), "--steps must be a whole number of at least 1, not 0"),
        (("freelb", "--step-size", "nan"), "--step-size must be a number of at least 0, not nan"),
        (("freelb", "--max-norm", -1), "--max-norm must be a number of at least 0, not -1.0"),
        (("pgd", "--norm", "l1"), "--norm must be one of l2, linf; not 'l1'"),
        (("hotflip", "--change-rate", 1.5), "--change-rate must be a number from 0 to 1, not 1.5"),
        (
            ("hotflip", "--flips", "letters"),
            "--flips must be one of words, synonyms; not",
        ),
        (
            ("dne", "--neighbours", "tiny.json", "--hull", 2),
            "--hull must be a number from 0 to 1",
        ),
        (("augment", "--share", 0), "--share must be above 0 and at most 1, not '0'"),
        (("augment", "--share", "half"), "--share must be a number, as 0.5 or 1/2, not 'half'"),
        (("augment", "--recipe", "sesame"), "--recipe must be one of textfooler, bert-attack"),
        (("none", "--accumulate", 0), "--accumulate must be a whole number of at least 1, not 0"),
        (("pgd", "--kind", "words"), "--defence means nothing with --kind words: leave it out"),
        (("ranmask", "--kind", "mlm"), "--defence means nothing with --kind mlm: leave it out"),
    ],
    ids=lambda value: " ".join(map(str, value)) or "empty" if isinstance(value, tuple) else "",
)
def test_wrong_options(arguments, message, train, tmp_path):
    assert refused(train(tmp_path / "out", "--defence", *arguments), 2, message)
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dne", "--neighbours", "absent.json"), "there are no neighbours 'absent.json'"),
        (("safer", "--neighbours", "dne"), "cannot find the neighbours 'dne'"),
        (("none", "--pair-head"), "--pair-head reads pairs of premise and hypothesis"),
        (("augment", "--recipe", "deepwordbug", "--victim", "./absent"), "./absent"),
    ],
    ids=["no table", "no data folder", "single texts", "no victim"],
)
def test_what_is_not_there(arguments, message, train, tmp_path):
    assert refused(train(tmp_path / "out", "--defence", *arguments), 1, message)
    assert written(tmp_path) == []


@pytest.mark.parametrize("kind", ["words", "mlm"])
def test_options_of_defences_with_other_kinds(kind, base_folder, tmp_path):
    base = ("--base", base_folder) if kind == "mlm" else ()
    given = ("train", "--kind", kind, "--data", "data", *base, "--output", tmp_path / "out")
    for own in (("--steps", 1), ("--set-size", 1), ("--share", 1), ("--pair-head",)):
        done = invoke(*given, *own)
        assert refused(done, 2, f"{own[0]} means nothing with --kind {kind}: leave it out")
    assert written(tmp_path) == []


# -- steps and pairs -----------------------------------------------------------------------------


def test_batches_are_accumulated(train, tmp_path):
    given = ("--defence", "hotflip", "--batch-size", 4, "--accumulate", 3, "--evaluate-every", 1)
    done = train(tmp_path / "model", *given)
    assert done.exit_code == 0, done.output
    assert record_of(tmp_path / "model")["run"]["options"]["accumulate"] == 3
    assert "step 2 of 2" in done.stderr  # 24 rows, 12 a step
    assert "- `accumulate`: 3\n" in (tmp_path / "model" / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("ranmask+freelb", (*MASKING, "--pair-head")),
        ("hotflip", ("--pair-head",)),
        ("safer", ("--neighbours", "tiny.json")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pairs(name, own, train, tmp_path):
    given = ("--defence", name, *own, "--pair-columns", "a,b")
    done = train(tmp_path / "model", *given, data="pairs.csv")
    assert done.exit_code == 0, done.output
    options = record_of(tmp_path / "model")["run"]["options"]
    assert options["pair_head"] == ("--pair-head" in own)
    source = tmp_path / "pairs.jsonl"
    source.write_text(json.dumps({"a": "the film was", "b": "very good"}) + "\n")
    given = ("--input", source, "--pair-columns", "a,b", "--json")
    [found] = lines_of(invoke("certify", "-m", tmp_path / "model", *given))
    assert found["words"] == 2  # the hypothesis'
    assert "the premise does not change" in found["assumes"]


# -- found in review -----------------------------------------------------------------------------


def test_record_and_card_name_the_augmentation(trained):
    folder = trained("augment")
    assert record_of(folder)["run"]["defence"]["name"] == "augment"
    assert "without a defence" not in (folder / "README.md").read_text()


def test_a_table_of_unknown_words_leaves_the_folder_free(train, tmp_path):
    (tmp_path / "foreign.json").write_text('{"zebra": ["lion"]}')
    given = ("--defence", "dne", "--neighbours")
    done = train(tmp_path / "model", *given, tmp_path / "foreign.json")
    assert refused(done, 1, "have no pair of words in common: use another table")
    assert train(tmp_path / "model", *given, "tiny.json").exit_code == 0


def test_safer_with_scores_is_refused_or_its_card_does_not_certify(train, tmp_path):
    own = ("--defence", "safer", "--neighbours", "tiny.json", "--ensemble", "score")
    if train(tmp_path / "model", *own).exit_code == 0:
        card = (tmp_path / "model" / "README.md").read_text()
        assert ".certify(" not in card and "proved radius" not in card


def test_a_recipe_that_wants_a_radius_is_refused_at_once(train, tmp_path):
    done = train(tmp_path / "model", "--defence", "augment", "--recipe", "anywords")
    assert refused(done, 2, "anywords") and written(tmp_path) == []


def test_a_victim_with_a_defence_of_its_own_is_another_one(train, tmp_path):
    assert train(tmp_path / "model.victim", "--defence", "pgd", "--steps", 1).exit_code == 0
    done = train(tmp_path / "model", "--defence", "augment", "--recipe", "deepwordbug")
    assert refused(done, 1, "holds another training run, which differs in defence")


def test_the_folder_of_another_run_is_refused_before_the_victim_is_trained(train, tmp_path):
    (tmp_path / "model").mkdir()
    record = {"format": "ranmask-training", "version": 1, "run": {"kind": "words"}}
    (tmp_path / "model" / "training.json").write_text(json.dumps({**record, "complete": False}))
    done = train(tmp_path / "model", "--defence", "augment", "--recipe", "deepwordbug")
    assert refused(done, 1, "holds another training run") and written(tmp_path) == ["model"]


def test_a_table_is_the_same_by_any_path(train, place, tmp_path, monkeypatch):
    from ranmask.training import trainer

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Watcher, "on_step_begin", interrupted, raising=False)
        done = train(tmp_path / "model", "--defence", "dne", "--neighbours", "tiny.json")
    assert done.exit_code == 130
    done = train(tmp_path / "model", "--defence", "dne", "--neighbours", place / "tiny.json")
    assert done.exit_code == 0, done.output


def test_plain_training_is_not_called_masked(train, tmp_path):
    assert "masked" not in train(tmp_path / "model", "--defence", "none").stderr


def test_the_victims_figures_are_told_apart(train, tmp_path):
    done = train(tmp_path / "model", "--defence", "augment", "--recipe", "deepwordbug")
    assert done.stderr.count(f"{tmp_path}/model: validation") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hotflip", "--neighbours", "tiny.json"), "--flips synonyms"),
        (
            ("safer", "--neighbours", "tiny.json", "--set-size", 0),
            "--set-size must be a whole",
        ),
        (("no",), "--defence must be one of"),
        (("",), "--defence is empty"),
    ],
    ids=["flips", "set size", "unknown name", "empty name"],
)
def test_messages(arguments, message, train, tmp_path):
    assert refused(train(tmp_path / "out", "--defence", *arguments), 2, message)
