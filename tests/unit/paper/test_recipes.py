"""Recipes: those that come with ranmask are whole, and what a file says wrong is told."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from ranmask.cli.main import command_line
from ranmask.errors import DataError, OptionError
from ranmask.paper.published import published
from ranmask.paper.reproduction import plan as planning
from ranmask.paper.reproduction.plan import plan
from ranmask.paper.reproduction.recipe import FOLDER, OUTPUT, Size, load_recipe, recipe_names

SIZES = get_args(Size)
EVERY = list(itertools.product(recipe_names(), SIZES))
PLACES = {
    ("adversarial", "adversarial"): {"attack"},
    ("certified", "certified"): {"rate"},
    ("certified", "examples"): set(),
    ("empirical", "attack"): {"method", "attack"},
    ("beta", "beta"): {"corpus", "rate"},
    ("rates", "attack"): {"rate", "ensemble", "attack", "seed"},
    ("entropy", "predict"): {"method"},
}
WRITTEN = """
format = "ranmask-recipe"
version = 1
title = "Ours"
kind = "certified"
paper = "none"
corpus = "sst2"
about = '''
Over two
lines.
'''

[settings]
rates = [0.3, 0.5]
options = ["--masks", "{masks}", "{more}"]
more = ["--labels", "bad,{good}"]
good = "good"

[sizes.default]
masks = 100

[sizes.smoke]
masks = 8

[[steps]]
name = "mask{rate}"
measures = "training"
each = { rate = "rates" }
command = "train --data {corpus} --mask-rate {rate} --output {output}"

[[steps]]
name = "mask{rate}-certified"
measures = "certified"
each = { rate = "rates" }
place = { rate = "{rate}" }
command = "certify --model @mask{rate} {options} --output {output}"
"""


@pytest.fixture
def load(tmp_path):
    """Loads a recipe that is written as `WRITTEN`, with one thing replaced."""

    def written(old="", new="", size="default", overrides=None):
        assert WRITTEN.count(old) == 1 or not old
        path = tmp_path / "ours.toml"
        path.write_text(WRITTEN.replace(old, new) if old else WRITTEN)
        return load_recipe(str(path), size, overrides)

    return written


# -- what comes with ranmask ---------------------------------------------------------------------


def flags_of(command):
    found = command_line([command])[command].assemble_argument_collection()
    return {flag: one for one in found for flag in one.names}


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_every_command_has_its_options(name, size):
    recipe = load_recipe(name, size)
    assert recipe.size == size and recipe.about and "\n" not in recipe.about
    for step in recipe.steps:
        known = flags_of(step.words[0])
        words = iter(step.words[1:])
        given = []
        for word in words:
            assert word in known, f"{step.name}: {step.words[0]} has no {word}"
            given.append(word)
            if bool not in get_args(known[word].hint):
                assert not next(words).startswith("--"), f"{step.name}: {word} has no value"
        assert len(given) == len(set(given)), f"{step.name} gives an option twice"
        assert {flag for flag, one in known.items() if one.required} <= set(given)
        assert "--device" not in given  # it is added, where one is asked for
        assert "--device" in known


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_steps_follow_what_they_need_and_have_their_places(name, size):
    recipe = load_recipe(name, size)
    before = set()
    for step in recipe.steps:
        assert before.issuperset(step.needs)
        before.add(step.name)
        if step.measures == "training":
            assert not step.place
        else:
            assert set(step.place) == PLACES[recipe.kind, step.measures]
            # What is measured was trained before, or comes with ranmask.
            assert bool(step.needs) != (step.measures == "adversarial")
    results = [(step.measures, *sorted(step.place.items())) for step in recipe.steps if step.place]
    assert len(results) == len(set(results))  # each place once
    trained = {step.name for step in recipe.steps if step.measures == "training"}
    used = {need for step in recipe.steps for need in step.needs}
    assert trained == used  # nothing is trained in vain
    assert bool(recipe.steps) != (recipe.kind == "arithmetic")


def test_the_certified_recipes_have_the_rates_of_the_papers_tables():
    tables = published().certified
    recipes = [load_recipe(name) for name in recipe_names()]
    certified = {recipe.paper: recipe for recipe in recipes if recipe.kind == "certified"}
    assert set(certified) == set(tables)
    for label, recipe in certified.items():
        rates = {row.rate for row in tables[label].rows}
        for size in ("default", "paper"):
            steps = load_recipe(recipe.name, size).steps
            assert {step.place["rate"] for step in steps if step.measures == "certified"} == rates
        for step in recipe.steps:
            if step.place:
                needed = next(one for one in recipe.steps if one.name == step.needs[0])
                rate = needed.words[needed.words.index("--mask-rate") + 1]
                assert float(rate) == step.place["rate"]


def test_the_empirical_recipes_have_every_method_and_attack_of_the_papers_tables():
    tables = published().empirical
    recipes = [load_recipe(name, "paper") for name in recipe_names()]
    empirical = {recipe.paper: recipe for recipe in recipes if recipe.kind == "empirical"}
    assert set(empirical) == set(tables)
    for label, table in tables.items():
        places = {
            (step.place["method"], step.place["attack"])
            for step in empirical[label].steps
            if step.place
        }
        assert places >= set(table.cells), label
        for step in empirical[label].steps:
            if step.place:
                assert step.words[step.words.index("--recipe") + 1] == step.place["attack"]


def test_the_paper_size_has_the_papers_numbers():
    settings = published().settings
    for name in recipe_names():
        recipe = load_recipe(name, "paper")
        if recipe.kind in ("arithmetic", "adversarial"):
            continue
        assert recipe.settings["texts"] == settings["texts"]
        if recipe.kind == "certified":
            assert recipe.settings["masks"] == settings["masks"]
            assert recipe.settings["selection"] == settings["selection_masks"]
        elif recipe.kind == "beta":
            assert recipe.settings["masks"] == published().beta["masks"]
            assert recipe.settings["draws"] == published().beta["draws"]
        else:
            assert recipe.settings["masks"] == settings["attacked_masks"]


def test_the_small_recipes_leave_no_method_and_no_attack_out():
    def occurring(size):
        steps = [step for name in recipe_names() for step in load_recipe(name, size).steps]
        places = [step.place for step in steps]
        return (
            {place["method"] for place in places if "method" in place},
            {place["attack"] for place in places if "attack" in place},
            {step.measures for step in steps},
            {word for step in steps for word in step.words if word in ("--pair-head", "mlm", "lm")},
        )

    methods, attacks, measures, others = occurring("smoke")
    paper_methods, *paper = occurring("paper")
    assert [attacks, measures, others] == paper
    rates = {"RanMASK-10%", "RanMASK-50%"}  # of the entropy recipe, which has others of its kind
    assert paper_methods - methods <= rates


def test_recipes_that_train_the_same_model_share_it():
    for size in ("default", "smoke"):
        keys = {}
        for name in recipe_names():
            for planned in plan(load_recipe(name, size), Path("runs")):
                if planned.step.measures == "training":
                    keys.setdefault(planned.step.name, {}).setdefault(planned.key, set()).add(name)
        assert {name for name, found in keys.items() if len(found) > 1} == set()
        (users,) = keys["agnews-mask0.9"].values()
        assert users >= {
            *("agnews-beta", "agnews-certified", "agnews-empirical", "entropy"),
            *("rate-ablation", "safer"),
        }


@pytest.mark.parametrize("size", get_args(Size))
def test_recipes_that_run_the_same_command_share_its_step(size):
    shared = {}
    for name in recipe_names():
        written = load_recipe(name, size).written
        same = {key: 7 for key in ("texts", "masks") if type(written.get(key)) is int}
        for planned in plan(load_recipe(name, size, same), Path("runs")):
            _, _, fingerprint = planned.key.rpartition("-")
            shared.setdefault(fingerprint, {}).setdefault(planned.step.name, set()).add(name)
    assert [names for names in shared.values() if len(names) > 1] == []
    rates = [
        users
        for names in shared.values()
        for name, users in names.items()
        if name.startswith("agnews-mask0.9-vote-") and "rate-ablation" in users
    ]
    assert rates
    assert all("agnews-empirical" in users for users in rates)


def test_a_recipe_that_extends_another_has_only_what_differs(tmp_path):
    path = tmp_path / "mine.toml"
    head = 'format = "ranmask-recipe"\nversion = 1\nextends = "agnews-beta"\n'
    path.write_text(f'{head}title = "Mine"\n[sizes.default]\ntexts = 7\n')
    mine, theirs = load_recipe(str(path)), load_recipe("agnews-beta")
    assert (mine.title, mine.kind, mine.about) == ("Mine", theirs.kind, theirs.about)
    assert mine.settings == {**theirs.settings, "texts": 7}
    assert [step.name for step in mine.steps] == [step.name for step in theirs.steps]
    assert load_recipe(str(path), "smoke").settings == load_recipe("agnews-beta", "smoke").settings


def test_our_sentences_are_labelled_with_classes_of_their_corpus():
    from ranmask.data.known import KNOWN

    for corpus in ("agnews", "sst2"):
        lines = (FOLDER / f"sentences-{corpus}.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["label"] for line in lines} == set(KNOWN[corpus].label_names)


# -- places on disk ------------------------------------------------------------------------------


def keys(recipe, device=None, runs="runs"):
    return {one.step.name: one.key for one in plan(recipe, Path(runs), device)}


def test_a_fingerprint_belongs_to_the_command_and_to_what_it_builds_on(load):
    before = keys(load())
    assert keys(load()) == before
    masks = keys(load(overrides={"masks": 101}))
    assert [name for name in before if masks[name] != before[name]] == [
        *("mask0.3-certified", "mask0.5-certified")
    ]
    corpus = keys(load('corpus = "sst2"', 'corpus = "imdb"'))
    assert all(corpus[name] != before[name] for name in before)  # what follows changes, too
    assert keys(load("place = {", "place = { text = '1', ")) == before


def test_a_fingerprint_does_not_know_the_device_or_the_runs(load):
    assert keys(load(), device="cuda") == keys(load()) == keys(load(), runs="/elsewhere")


@pytest.mark.parametrize(
    ("name", "inside"), [("sst2-certified", "paper/recipes"), ("agnews-beta", "models/shipped")]
)
def test_a_fingerprint_does_not_know_where_ranmask_lies(name, inside, monkeypatch):
    recipe = load_recipe(name, "smoke")
    written = json.dumps([step.words for step in recipe.steps])
    written = written.replace(str(FOLDER.parents[1]), "/opt/ranmask")
    assert f"/opt/ranmask/{inside}" in written
    before = keys(recipe)
    steps = tuple(
        replace(step, words=tuple(words))
        for step, words in zip(recipe.steps, json.loads(written), strict=True)
    )
    monkeypatch.setattr(planning, "FOLDER", Path("/opt/ranmask/paper/recipes"))
    monkeypatch.setattr(planning, "SHIPPED_FOLDER", Path("/opt/ranmask/models/shipped"))
    assert keys(replace(recipe, steps=steps)) == before


def test_another_version_of_ranmask_makes_its_own(load, monkeypatch):
    before = keys(load())
    monkeypatch.setattr(planning, "__version__", "9.9.9")
    assert not set(keys(load()).values()) & set(before.values())


def test_a_plan_has_the_commands_ready_to_run(load):
    train, _, certify, _ = plan(load(), Path("there"), "cpu")
    assert train.made == train.folder / "model" and train.folder == Path("there/steps") / train.key
    assert train.words == (
        *("train", "--data", "sst2", "--mask-rate", "0.3", "--output", str(train.made)),
        *("--device", "cpu"),
    )
    assert certify.words == (
        *("certify", "--model", str(train.made), "--masks", "100", "--labels", "bad,good"),
        *("--output", str(certify.folder / "result.jsonl"), "--device", "cpu"),
    )
    assert certify.needs == (train.key,) and certify.texts is None


def test_a_table_of_words_is_asked_on_no_device(load):
    """``train --kind words`` refuses a device, and so does every command that asks a table."""
    table = load("--mask-rate {rate} --output", "--kind words --output")
    assert not any("--device" in one.words for one in plan(table, Path("runs"), "cuda"))
    for name in recipe_names():
        for one in plan(load_recipe(name, "smoke"), Path("runs"), "cuda"):
            assert ("--device" in one.words) == (name != "sst2-certified")


def test_how_many_texts_a_step_has(load):
    old = "{options} --output"
    for rows, texts in (("--rows 20", 20), ("--rows 7", 7), ("--rows many", None), ("--x", None)):
        *_, certify = plan(load(old, f"{rows} --output"), Path("runs"))
        assert certify.texts == texts
    *_, certify = plan(load("{options} --output {output}", "--output {output} --rows"), Path("r"))
    assert certify.texts is None


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_a_record_names_no_folder_of_this_machine(name, size):
    recipe = load_recipe(name, size)
    written = json.dumps([{**vars(step), "words": ()} for step in recipe.steps])
    written += json.dumps(recipe.settings)
    assert str(FOLDER.parents[1]) not in written
    for step in recipe.steps:
        shown = step.command
        assert shown.startswith(f"ranmask {step.words[0]} ") and OUTPUT not in shown
        assert f"--output {step.name}" in shown and "@" not in shown


# -- what a file says ----------------------------------------------------------------------------


def test_settings_are_filled_in(load):
    recipe = load()
    assert recipe.name == "ours" and recipe.about == "Over two lines."
    assert [step.name for step in recipe.steps] == [
        *("mask0.3", "mask0.5", "mask0.3-certified", "mask0.5-certified")
    ]
    assert recipe.steps[2].place == {"rate": 0.3}  # a number, as the setting is one
    assert recipe.settings["masks"] == 100 and recipe.settings["rates"] == [0.3, 0.5]
    assert "options" not in recipe.settings and "recipes" not in recipe.settings
    assert load(size="smoke").settings["masks"] == 8


def test_overrides_replace_settings(load):
    recipe = load(overrides={"rates": [0.7], "masks": 5})
    assert [step.name for step in recipe.steps] == ["mask0.7", "mask0.7-certified"]
    assert "5" in recipe.steps[1].words and recipe.settings["masks"] == 5
    with pytest.raises(
        OptionError,
        match=r"ours has no setting 'mask'\. Did you mean 'masks'\? It has corpus.* masks",
    ):
        load(overrides={"mask": 5})


def test_what_is_not_there_is_told():
    with pytest.raises(
        OptionError,
        match=r"no recipe 'sst3-certified'\. Did you mean 'sst2-certified'\? There are adversarial",
    ):
        load_recipe("sst3-certified")
    with pytest.raises(OptionError, match="no recipe 'shared'"):
        load_recipe("shared")
    with pytest.raises(OptionError, match=r"no recipe file mine\.toml"):
        load_recipe("mine.toml")


STEPS = '[[steps]]\nname = "mask{rate}-certified"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Ours"', "title = Ours", "cannot read the recipe .*ours.toml: "),
        ('format = "ranmask-recipe"', "", "has format None, not 'ranmask-recipe'"),
        ("version = 1", "version = 2", "version 2 is not 1, the one this ranmask reads"),
        ("[settings]", "[setting]", "unknown 'setting'$"),
        ('paper = "none"', "", "no 'paper' in it$"),
        ('kind = "certified"', 'kind = "sure"', "kind 'sure' is none of certified, empirical"),
        ('title = "Ours"', "title = 3", "title is 3, not str$"),
        ('title = "Ours"', 'extends = "mine"', "extends 'mine', which is none that we have"),
        ('title = "Ours"', "extends = 3", "extends 3, which is none that we have"),
        ('title = "Ours"', 'extends = "sst2-beta"', "unknown 'extends'"),  # that extends another
        (
            "[settings]",
            "settings = 3\n[sizes.x]",
            "settings is 3, not a table of names",
        ),
        ("[sizes.smoke]\nmasks = 8", "[sizes]\nsmoke = 8", "sizes: smoke is 8, not a table"),
        ("{options}", "{option}", "names a setting 'option' that is not there"),
        ("{options}", "{rates.first}", "names a setting 'rates.first' that is not there"),
        ("{options}", "--labels={rates}", "has a list or a table inside of '--labels={rates}'"),
        ('"mask{rate}-certified"', '"{rates}"', "has a list or a table inside of '{rates}'"),
        ('good = "good"', 'good = {x = 1}\nall = "{good}"', "a list or a table inside of 'bad,"),
        ('"--masks", "{masks}"', "{ a = 1 }", "has a table as a word of a command: {'a': 1}"),
        ('good = "good"', 'good = "{good}"', "has settings that name each other: {good}"),
        ('good = "good"', 'good = "a{good}"', "has settings that name each other: {good}"),
        (STEPS, '[[steps]]\nname = "mask0.5"', "has two steps 'mask0.5'"),
        (STEPS, '[[steps]]\nname = "../up{rate}"', "'../up0.3' .* cannot have that name"),
        ("@mask{rate}", "@mask0.9", "'mask0.3-certified' .* needs 'mask0.9', which is no step bef"),
        ("{options} --output {output}", "", "'mask0.3-certified' .* must name {output} once"),
        ("{options}", "{output}", "must name {output} once"),
        ('"certified"\neach', '"attack"\neach', "'attack' by 'certify'; it can measure 'training'"),
        ('"certified"\neach', '"trust"\neach', "measures 'trust' by 'certify'"),
        ('"certify --model @mask{rate} {options} --output {output}"', '""', "by ''; it can meas"),
        ("certify --model", "certify 'model", "command that cannot be read: No closing quotation"),
        (
            'place = { rate = "{rate}" }',
            'place = "{rate}"',
            "steps 2: place is .*, not a table",
        ),
        ("place =", "places =", "the recipe .*: steps 2: unknown 'places'"),
        ('measures = "training"', "", "the recipe .*: steps 1: no 'measures' in it"),
        ("rates = [0.3, 0.5]", "rates = 0.3", "each 'rate' from 'rates', which is no setting that"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(load, old, new, message):
    with pytest.raises(DataError, match=message):
        load(old, new)


def test_steps_that_are_no_tables_are_told(tmp_path):
    top = WRITTEN[: WRITTEN.index("[settings]")] + "[sizes.default]\n"
    path = tmp_path / "ours.toml"
    for steps, message in (
        ("steps = 3", "steps is 3, not a list"),
        ("steps = [3]", "steps 1: expected"),
    ):
        path.write_text(steps + "\n" + top)
        with pytest.raises(DataError, match=message):
            load_recipe(str(path))


def test_a_size_that_is_not_there_is_told(load):
    with pytest.raises(OptionError, match="ours has no size 'paper': default, smoke"):
        load(size="paper")


def test_a_file_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot read the recipe"):
        load_recipe(str(path))
