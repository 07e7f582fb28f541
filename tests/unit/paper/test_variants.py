"""The same recipe with other seeds, bases and settings: names, grouping, means and spreads."""

import statistics
from dataclasses import replace

import pytest

from ranmask.errors import DataError, OptionError
from ranmask.evaluation.intervals import sign_test
from ranmask.paper.paired_figures import p_digits
from ranmask.paper.published import published
from ranmask.paper.reading import read, read_several, write
from ranmask.paper.report import counting, markdown
from ranmask.paper.report.blocks import Fold
from ranmask.paper.report.counting import count_attacks, mean_robust, noise
from ranmask.paper.report.experiments import experiments, variant_label
from ranmask.paper.report.page import build
from ranmask.paper.report.sections import certified, coverage, empirical, entropy, rates
from ranmask.paper.report.tables import Cell, Table, percent, seeds_cell, share_cell
from ranmask.paper.reproduction.recipe import load_recipe
from ranmask.paper.run_data import Attacked, Certified, Predicted, Reading, Reproduction, Step

MPNET = {"base": "all-mpnet-base-v2"}
MASKED = {"hide": "mask"}
AGNEWS, SST2 = "tb-agnews-emperical", "tb-sst2-certified"


def run(kind, *steps, variant=(), paper="", name="x"):
    variant = dict(variant)
    settings = {"base": "all-MiniLM-L6-v2", "hide": "drop", "seed": 0, **variant}
    return Reproduction(
        name, "Title", kind, paper, "About.", "default", settings, {}, steps, variant
    )


def attacked(method, held, fell, attack="textfooler", **place):
    """A run over texts that were all right before the attack."""
    texts = held + fell
    statuses = ("failed",) * held + ("succeeded",) * fell
    result = Attacked(
        attack, None, tuple(range(texts)), statuses, (9,) * texts, (1,) * texts, (5,) * texts,
        (None,) * texts,
    )  # fmt: skip
    place = {"method": method, "attack": attack, **place}
    return Step(f"{method} {attack}", "attack", "ranmask attack", place, "done", 1.0, result=result)


def votes(radii, rate, printed=()):
    """Exact radii, right where there is one; ``printed``: as the paper counts."""
    others = [Reading("paper-as-printed", False, (True,) * len(printed), tuple(printed))]
    correct = tuple(radius is not None for radius in radii)
    readings = (Reading("exact", True, correct, tuple(radii)), *(others if printed else ()))
    rows = tuple(range(1, len(radii) + 1))
    result = Certified(rows, (20,) * len(radii), 100, readings)
    place = {"rate": rate}
    return Step(f"mask{rate}", "certified", "ranmask certify", place, "done", 1.0, result=result)


def tables(blocks, caption=""):
    for block in blocks:
        if isinstance(block, Table) and caption in block.caption:
            yield block
        elif isinstance(block, Fold):
            yield from tables(block.blocks, caption)


def text(section):
    return markdown.render(replace(build([]), sections=(section,))).replace("\\", "")


def rows(table):
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


# Names


@pytest.mark.parametrize(
    ("name", "overrides", "folder"),
    [
        ("agnews-certified", {}, "agnews-certified"),
        ("agnews-certified", {"seed": 1}, "agnews-certified-seed1"),
        ("agnews-certified", {"seed": 0, "together": 7}, "agnews-certified"),
        ("agnews-certified", {"base": "/m/all-MiniLM-L6-v2"}, "agnews-certified"),
        ("agnews-certified", {"hide": "mask", "seed": 2}, "agnews-certified-seed2-hide-mask"),
        ("agnews-certified", {"rates": [0.5, 0.9]}, "agnews-certified-rates0.5-0.9"),
        ("agnews-certified", {"most_queries": 1}, None),
        ("agnews-empirical", MPNET, "agnews-empirical-all-mpnet-base-v2"),
        ("imdb-empirical", {"limits": []}, "imdb-empirical-limits"),
        (
            "imdb-empirical",
            {"masks": 100, "longest": 256, "most_queries": 900},
            "imdb-empirical-longest256-masks100-most_queries900",
        ),
    ],
)
def test_a_variant_is_called_after_what_was_set(name, overrides, folder):
    own = {"attack_base": "all-MiniLM-L6-v2"} if overrides is MPNET else {}
    if folder is None:
        with pytest.raises(Exception, match="no setting 'most_queries'"):
            load_recipe(name, overrides=overrides)
    else:
        assert load_recipe(name, overrides={**overrides, **own}).folder_name == folder


def test_a_base_of_victims_is_the_attackers_too_unless_that_is_said():
    alone = load_recipe("agnews-empirical", overrides=MPNET)
    assert alone.variant == {**MPNET, "attack_base": "all-mpnet-base-v2"}
    certified_alone = load_recipe("agnews-certified", overrides=MPNET)
    assert certified_alone.variant == MPNET  # nothing is attacked there
    apart = load_recipe("agnews-empirical", overrides={**MPNET, "attack_base": "m/minilm"})
    commands = {step.name: step.command for step in apart.steps}
    assert "--base all-mpnet-base-v2" in commands["agnews-mask0.9"]
    assert "--base m/minilm" in commands["agnews-mlm"]
    assert "--sentence-encoder m/minilm" in commands["agnews-mask0.9-vote-textfooler"]


def test_imdb_can_be_read_further_and_asked_more_often():
    recipe = load_recipe("imdb-empirical", overrides={"longest": 256, "most_queries": 900})
    commands = {step.name: step.command for step in recipe.steps}
    assert "--longest 256" in commands["imdb-mask0.3"]
    assert "--most-queries 900" in commands["imdb-none-textfooler"]
    assert (recipe.settings["longest"], recipe.settings["most_queries"]) == (256, 900)


def test_settings_that_no_step_uses_are_not_shown():
    assert "attack_base" not in load_recipe("agnews-certified").settings
    assert load_recipe("risk-probability").settings == {}


def test_a_long_variant_has_a_short_name():
    words = [f"--option-{number}" for number in range(30)]
    one = run("empirical", variant={"train": words})
    other = run("empirical", variant={"train": [*words, "more"]})
    assert len(one.folder_name) < 130 and one.folder_name != other.folder_name
    assert run("empirical", variant={"train": ["../..\ud800"] * 99}).folder_name.count("/") == 0


def test_a_variant_is_written_and_read(tmp_path):
    one = run("certified", votes([1], 0.7), variant={"seed": 1})
    write(one, tmp_path / "a.json")
    write(run("certified", votes([1], 0.7)), tmp_path / "b.json")
    assert read(tmp_path / "a.json") == one
    assert len(read_several([tmp_path])) == 2
    write(one, tmp_path / "c.json")
    with pytest.raises(DataError, match="are both x in the size 'default' with the same settings"):
        read_several([tmp_path])


# Grouping


def test_runs_of_one_recipe_are_one_experiment():
    step = attacked("m", 1, 1)
    found = experiments(
        [
            run("empirical", step, variant={**MPNET, "seed": 1}),
            run("empirical", step, variant={"seed": 10}),
            run("empirical", step, variant={"seed": 2, "rates": [0.9]}),
            run("empirical", step),
            run("empirical", step, variant=MASKED),
            run("empirical", step, name="other"),
        ]
    )
    assert [one.run.name for one in found] == ["x", "other"]
    labels = {one.label: one.seeds for one in found[0].configurations}
    assert labels == {
        "": ["0", "2", "10"],
        "all-mpnet-base-v2": ["1"],
        "hidden words masked": ["0"],
    }
    assert found[0].main.label == "" and found[0].run.variant == {}


def test_a_configuration_is_told_from_the_first_one_that_is_there():
    step = attacked("m", 1, 1)
    todo = replace(step, state="todo", result=None)
    [found] = experiments(
        [
            run("empirical", todo),  # the recipe itself, and nothing of it is done
            run("empirical", step, variant=MPNET),
            run("empirical", step, variant={**MASKED, "masks": 7}),
        ]
    )
    labels = [(one.label, one.full) for one in found.configurations]
    assert labels == [
        ("", ""),
        ("all-MiniLM-L6-v2, hidden words masked", "all-MiniLM-L6-v2, hidden words masked, 7 masks"),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
    ]


def test_a_label_is_as_long_as_it_takes_and_the_sentence_says_all():
    slow = {**MPNET, "learning_rate": "5e-5"}
    runs = [
        run("certified", votes([1, 1], 0.7, [2, 2]), paper=SST2, variant=variant)
        for variant in ({}, slow)
    ]
    [found] = experiments(runs)
    assert found.others[0].label == "all-mpnet-base-v2"
    section = certified.section(runs)
    [beside] = tables(section.blocks, "What the votes prove under")
    assert beside.columns[-1].group == "all-mpnet-base-v2"
    [mean] = tables(section.blocks, "Mean changes under other settings")
    assert [row[0].text for row in mean.rows] == ["all-mpnet-base-v2, learning rate 5e-5"]
    [both] = experiments([*runs, run("certified", votes([1], 0.7, [2]), variant=MPNET)])
    assert [one.label for one in both.others] == [
        "all-mpnet-base-v2",
        "all-mpnet-base-v2, learning rate 5e-5",
    ]


def test_a_result_belongs_to_the_settings_that_it_depends_on():
    plain, masked = attacked("Baseline", 20, 80), attacked("RanMASK-90% (vote)", 60, 40)
    steps = (replace(plain, uses=()), replace(masked, uses=("hide",)))
    whole = run("empirical", plain, masked, paper=AGNEWS)
    other = run("empirical", *steps, paper=AGNEWS, variant=MASKED)
    table = next(tables(empirical.section([other, whole]).blocks, "Cln, Boa and Succ"))
    assert "Baseline, hidden words masked" not in rows(table)  # it hides none
    assert rows(table)["Baseline"][1] == "20.0"  # once, though it is there twice
    assert rows(table)["RanMASK-90% (vote), hidden words masked"][1] == "60.0"
    alone = next(tables(empirical.section([other]).blocks, "Cln, Boa and Succ"))
    assert (rows(alone)["Baseline"][1], rows(alone)["RanMASK-90% (vote)"][1]) == ("20.0", "60.0")


def test_steps_know_the_settings_that_they_depend_on():
    recipe = load_recipe("agnews-empirical", overrides={"hide": "mask", "seed": 1})
    uses = {step.name: step.uses for step in recipe.steps}
    assert uses["agnews-none-textfooler"] == ("seed",)
    assert uses["agnews-mask0.9-vote-textfooler"] == ("seed", "hide")  # by its training
    assert {step.uses for step in load_recipe("agnews-empirical").steps} == {()}


def test_what_was_set_is_spelt():
    variant = {**MPNET, "attack_base": "a/b", "seed": 3, "rates": [0.5, 0.9], "limits": []}
    expected = "all-mpnet-base-v2, attack base b, seed 3, rates 0.5, 0.9, limits none"
    assert variant_label(run("empirical", variant=variant)) == expected
    longer = {"longest": 256, "masks": 100, "most_queries": 900, "x{y}": "{z}"}
    expected = "cut at 256 tokens, 100 masks, at most 900 queries, x{y} {z}"
    assert variant_label(run("empirical", variant=longer)) == expected


# Means and spreads


def test_one_seed_has_an_interval_and_several_have_a_spread():
    assert seeds_cell([(3, 10)]) == share_cell(3, 10)
    shares = [(3, 10), (4, 10), (8, 10)]
    spread = f"30.0 to 80.0, ± {statistics.stdev([30, 40, 80]):.1f}"
    assert seeds_cell(shares, percent) == Cell("50.0", interval=spread)
    assert seeds_cell([(0, 0), (3, 10)]) == share_cell(3, 10)
    assert seeds_cell([]).text == "no texts"
    assert seeds_cell([(3, 10)] * 3) == Cell(".300")  # nothing is said where they are alike


def under_attack(*seeds, variant=(), method="RanMASK-90% (vote)"):
    return [
        run(
            "empirical",
            attacked(method, held, 100 - held),
            variant={**dict(variant), **({"seed": seed} if seed else {})},
            paper=AGNEWS,
        )
        for seed, held in enumerate(seeds)
    ]


def test_other_settings_are_compared_over_the_same_texts():
    """The first 10 of 40 texts fall in both; 30 more that only one met would hide that."""
    first = attacked("RanMASK-90% (vote)", 30, 10)
    reordered = replace(first.result, rows=tuple(range(10, 40)) + tuple(range(10)))
    first = replace(first, result=reordered)
    other = attacked("RanMASK-90% (vote)", 1, 9)
    runs = [
        run("empirical", first, paper=AGNEWS),
        run("empirical", other, paper=AGNEWS, variant={"texts": 10}),
    ]
    shown = next(tables(empirical.section(runs).blocks, "Robust accuracy under other settings"))
    changed = ["1", "1", "0", "+10.0", "1 of 1", "0.0 to 10.0: RanMASK-90% (vote) under TextFooler"]
    assert rows(shown) == {"10 texts": changed}
    elsewhere = replace(other.result, rows=tuple(range(100, 110)))
    runs[1] = replace(runs[1], steps=(replace(other, result=elsewhere),))
    assert "What other settings change" not in text(empirical.section(runs))


@pytest.mark.parametrize(("held", "significant"), [(46, True), (45, False)])
def test_who_is_first_may_be_noise(held, significant):
    """Told of every method of the paper's table; its own first, a vote, has 40 of 100.

    The first 40 are right after both, so 6 heads of 6 tell them apart, 2/64, and 5 of 5 do not.
    """
    methods = dict.fromkeys(published().empirical[AGNEWS].methods, 20)
    methods |= {"RanMASK-90% (vote)": 40, "Baseline": held}
    steps = [attacked(method, count, 100 - count) for method, count in methods.items()]
    runs = [run("empirical", *steps, paper=AGNEWS)]
    section = empirical.section(runs)
    said = " ".join(text(section).split())
    assert ("**Contradicts the paper.**" in said) is significant
    assert (f"Baseline is the most robust ({held}.0 %); RanMASK-90% (vote)" in said) is significant
    order = rows(next(tables(section.blocks, "Ranked by robust accuracy")))
    assert order["most robust here"] == ["Baseline"]
    lead = "yes" if significant else "not over RanMASK-90% (vote) (p = .062)"
    assert order["is the lead here significant?"] == [lead]
    [found] = empirical.in_short(experiments(runs)[0])
    verdict = "contradicts the paper: another is first"
    verdict = verdict if significant else "another is first, not significant (p = .062)"
    assert found.verdict.startswith(f"{verdict}; rank")


def test_significance_over_several_seeds_goes_by_the_mean_of_a_text():
    def seed(*right):
        statuses = tuple("failed" if one else "succeeded" for one in right)
        result = attacked("m", len(right), 0).result
        return count_attacks(replace(result, statuses=statuses))

    first = [seed(*[1] * 8), seed(*[1] * 8)]
    second = [seed(*[1] * 8), seed(*[0] * 8)]  # 8 texts are half as often right: 2/256
    assert not noise(first, second)
    assert noise([seed(*[1] * 4)], [seed(*[0] * 4)]) == "p = .125"
    fewer = [seed(*[0] * 6, *[1] * 20)] * 4  # higher on 20 texts, by a quarter; lower on 6, by 1
    more = [seed(*[1] * 6, *[place % 4 != turn for place in range(20)]) for turn in range(4)]
    assert mean_robust(more) > mean_robust(fewer)
    assert noise(more, fewer) == "p = .009 for the other"
    elsewhere = replace(second[0], right={row + 100: True for row in range(8)})
    assert noise(first, [elsewhere]) == "no texts in common"


def test_a_printed_p_value_stands_on_the_side_of_its_verdict(monkeypatch):
    """Rounded to .050 it would read as significant."""
    runs = [count_attacks(attacked("m", 4, held).result) for held in (4, 0)]

    def told(p_value):
        test = sign_test([1], [0])
        monkeypatch.setattr(counting, "sign_test", lambda *_: replace(test, p_value=p_value))
        return noise(runs[:1], runs[1:])

    assert told(0.0504) == "p = .0504"
    assert told(0.05000001) == "p = .05000001"
    assert told(0.0506) == "p = .051"
    assert told(0.0495) == told(0.05) == ""
    assert told(1.0) == "p = 1.000"
    assert (p_digits(0.05, 4), p_digits(0.04996, 4), p_digits(0.05004, 4)) == (4, 4, 5)


def test_attack_tables_have_means_of_seeds_and_other_configurations():
    other = under_attack(80, variant=MPNET)
    baseline = run("empirical", attacked("Baseline", 20, 80), variant={"seed": 1}, paper=AGNEWS)
    runs = under_attack(50, 60, 70)
    runs[1] = replace(runs[1], steps=(*runs[1].steps, *baseline.steps))
    section = empirical.section([*runs, *other])
    whole = next(tables(section.blocks, "Cln, Boa and Succ"))
    found = rows(whole)
    assert found["RanMASK-90% (vote)"][:3] == ["100.0", "60.0 ± 10.0", "40.0"]
    assert found["Baseline"][1] == "20.0"  # of one seed, and without a spread
    assert found["RanMASK-90% (vote), all-mpnet-base-v2"][1] == "80.0"
    assert found["PGD-10"][0] == "not run"
    assert not any("PGD-10," in name for name in found)  # nobody asked for it
    assert found["RanMASK-90% (vote), all-mpnet-base-v2"][3] == "\N{EN DASH}"
    assert "Rows with ±: means of 3 seeds, with the sample standard dev" in whole.notes[0]
    detail = next(tables(section.blocks, "TextFooler"))
    by_name = {row[0].text: row for row in detail.rows}
    row = by_name["RanMASK-90% (vote)"]
    assert row[1] == Cell("100", interval="3 seeds")
    assert row[3] == Cell("60.0", interval="50.0 to 70.0, ± 10.0")
    assert row[4].text == "+4.9"  # the mean less the paper's 55.1
    assert by_name["Baseline"][3] == share_cell(20, 100, percent)
    [shown] = tables(section.blocks, "Robust accuracy under other settings")
    assert shown.rows[0][0] == Cell("all-mpnet-base-v2", beside="seeds: 1; above: 3")
    changed = ["1", "1", "0", "+20.0", "0 of 1"]
    changed.append("60.0 to 80.0: RanMASK-90% (vote) under TextFooler")
    assert rows(shown) == {"all-mpnet-base-v2": changed}


def test_the_order_of_methods_is_that_of_their_means():
    methods = ["Baseline", "PGD-10", "FreeLB"]  # in this order in the paper, under TextFooler
    held = {"Baseline": (10, 90), "PGD-10": (60, 60), "FreeLB": (80, 80)}
    runs = [
        run(
            "empirical",
            *(attacked(method, held[method][seed], 100 - held[method][seed]) for method in methods),
            variant={"seed": seed} if seed else {},
            paper=AGNEWS,
        )
        for seed in (0, 1)
    ]
    for some, pairs, correlation in ((runs, "3 of 3", "1.00"), (runs[1:], "1 of 3", "−.50")):
        found = rows(next(tables(empirical.section(some).blocks, "Ranked by robust accuracy")))
        assert found["pairs in the paper's order"] == [pairs]
        assert found["rank correlation"] == [correlation.replace("−", "\N{MINUS SIGN}")]


def test_correlations_of_a_configuration_have_a_column_where_it_has_methods_enough():
    methods = ["Baseline", "PGD-10", "FreeLB"]
    steps = [attacked(method, 10 + place, 80) for place, method in enumerate(methods)]
    runs = [
        run("empirical", *steps, paper=AGNEWS),
        run("empirical", *steps, paper=AGNEWS, variant=MPNET),
        run("empirical", *steps[:1], paper=AGNEWS, variant=MASKED),
    ]
    found = next(tables(empirical.section(runs).blocks, "Ranked by robust accuracy"))
    titles = [column.title for column in found.columns]
    assert titles == ["", "TextFooler", "TextFooler, all-mpnet-base-v2"]


def test_certified_tables_have_means_of_seeds():
    runs = [
        run("certified", votes([1, 1, 1, 2], 0.7, [2, 2, 2, 2]), paper=SST2),
        run("certified", votes([0, 0, 1, None], 0.7, [1, 1, 1, 1]), paper=SST2,
            variant={"seed": 1}),
    ]  # fmt: skip
    section = certified.section(runs)
    [proved] = tables(section.blocks, "What the votes prove")
    row = proved.rows[0]
    assert [cell.text for cell in row][2:4] == [".875", "1, 0"]
    assert row[2].interval == ".750 to 1.000" and row[3].interval == ""
    assert row[5].text == ".625"  # CR@1 of 1 and 1/4
    [paper] = tables(section.blocks, "the paper's table")
    assert paper.notes[0].startswith("2 seeds. Several seeds: their mean") and not proved.notes
    said = text(section)
    assert "the median radius equals the paper's at **0 of 1**" in said
    assert "At 1 more it does in some seeds only." in said
    assert "Contradicts" not in said  # one seed has the paper's median
    alone = certified.section(runs[:1])
    assert "seed" not in text(alone)


def test_certified_configurations_stand_side_by_side():
    runs = [
        run("certified", votes([1, 1, 1], 0.7, [2] * 3), votes([0, 0, 0], 0.5), paper=SST2),
        run("certified", votes([2, 2, None], 0.7, [3] * 3), paper=SST2, variant=MPNET),
    ]
    section = certified.section(runs)
    [table] = tables(section.blocks, "What the votes prove under")
    assert [group for group, _ in table.groups] == ["", "as above", "all-mpnet-base-v2"]
    assert rows(table) == {"70 %": ["1.000", "1", "1.000", ".667", "2", ".667"]}
    again = run("certified", votes([1, 1, 1], 0.7, [2] * 3), paper=SST2, variant={"seed": 1})
    [table] = tables(certified.section([*runs, again]).blocks, "What the votes prove under")
    titles = ["", "as above, 1 or 2 seeds", "all-mpnet-base-v2, 1 seed"]
    assert [group for group, _ in table.groups] == titles
    [mean] = tables(section.blocks, "Mean changes under other settings")
    minus = "\N{MINUS SIGN}.333"
    assert rows(mean) == {"all-mpnet-base-v2": ["1", minus, minus, "1, 0", "0 of 1"]}
    folds = [block.title for block in section.blocks if isinstance(block, Fold)]
    assert "The tables of all-mpnet-base-v2" in folds


def test_rates_of_several_runs_are_averaged():
    runs = [
        run(
            "rates",
            attacked("m", held, 100 - held, rate=0.9, ensemble="vote", seed=seed),
            variant={"seed": seed} if seed else {},
        )
        for seed, held in enumerate([40, 60])
    ]
    [table] = tables(rates.section(runs).blocks, "Robust accuracy (Boa)")
    assert (table.rows[0][1].text, table.rows[0][1].interval) == ("50.0", "40.0 to 60.0")


def test_entropies_of_several_seeds_and_settings():
    def one(entropy_of, **variant):
        result = Predicted((1, 2), (True, True), (entropy_of,) * 2, None)
        place = {"method": "SAFER"}
        step = Step("s", "predict", "ranmask predict", place, "done", 1.0, result=result)
        return run("entropy", step, variant=variant)

    [table] = tables(entropy.section([one(0.1), one(0.3, seed=1), one(0.5, **MPNET)]).blocks)
    found = {row[0].text: row for row in table.rows}
    assert (found["SAFER"][2].text, found["SAFER"][2].interval) == (".200", ".100 to .300")
    assert found["SAFER"][5] == Cell("2", interval="2 seeds")
    assert found["SAFER, all-mpnet-base-v2"][2].text == ".500"


# What is done


def test_coverage_lists_seeds_and_configurations():
    runs = under_attack(50, 60, 70)
    alone = attacked("Baseline", 20, 80)
    runs[0] = replace(runs[0], steps=(*runs[0].steps, alone))
    runs += under_attack(80, variant=MPNET)
    [found] = coverage.covered(runs)
    assert found.done == 2
    [table] = tables(coverage.section(runs).blocks)
    *_, seeds, base = table.rows[0]
    assert seeds == Cell("1 to 3 (3 in 1 cell)")
    assert base == Cell("all-MiniLM-L6-v2; all-mpnet-base-v2 (1 cell)", beside="paper: RoBERTa")


def test_a_variant_names_only_the_steps_that_it_ran():
    todo = Step("left-out", "attack", "ranmask attack", {}, "todo")
    failed = Step("broken", "attack", "ranmask attack", {}, "failed", error="why")
    whole = run("empirical", attacked("m", 1, 1), paper=AGNEWS)
    part = run("empirical", attacked("m", 1, 1), todo, failed, paper=AGNEWS, variant=MPNET)
    said = markdown.render(build([whole, part])).replace("\\", "")
    assert "### Title: all-mpnet-base-v2" in said
    assert "of the recipe's" not in said
    assert "`broken`, failed: why" in said and "left-out" not in said
    assert "left-out" in markdown.render(build([replace(whole, steps=(todo,))]))


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [("seed", "x", "a whole number, as 0; not 'x'"), ("seed", True, "not True"),
     ("seed", -1, "at least 0, not -1"), ("masks", 1e3, "a whole number"),
     ("rates", 0.5, "a list, as")],
)  # fmt: skip
def test_settings_of_another_kind_are_refused(setting, value, said):
    with pytest.raises(OptionError, match=f"the setting {setting} is .*{said}"):
        load_recipe("sst2-certified", overrides={setting: value})
