"""docs/results.md says what the committed result files say, and nothing else."""

import json
import shlex
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402
    protect_figures,
    report,
    reproduced_page,
    reproduction_cost,
    results_page,
)

from ranmask.cli.main import run_command  # noqa: E402
from ranmask.errors import OptionError  # noqa: E402
from ranmask.metrics import CertifiedSummary  # noqa: E402
from ranmask.paper.divergence import jensen_shannon  # noqa: E402
from ranmask.paper.published import published  # noqa: E402
from ranmask.paper.reading import read, write  # noqa: E402
from ranmask.paper.report.counting import mean_robust  # noqa: E402
from ranmask.paper.report.experiments import experiments  # noqa: E402
from ranmask.paper.report.methods import measured  # noqa: E402
from ranmask.paper.report.sections import coverage, rates  # noqa: E402
from ranmask.paper.reproduction.plan import plan  # noqa: E402
from ranmask.paper.run_data import Attacked, Reproduction, Step, Trained  # noqa: E402

RECORDS = sorted((ROOT / "results").glob("*.json"))


def test_the_page_is_what_the_command_writes():
    assert results_page.PAGE.read_text() == results_page.results_page(), (
        "run python -m benchmarks.results_page"
    )


def test_the_page_of_performance_is_what_the_command_writes():
    figures = json.loads(report.RESULTS.read_text())
    assert report.PAGE.read_text() == report.performance_page(figures), (
        "run python -m benchmarks.report"
    )


def test_the_page_of_protecting_has_the_figures_that_were_measured():
    measured = json.loads(protect_figures.RESULTS.read_text())
    assert protect_figures.page(measured) in (ROOT / "docs" / "protect.md").read_text(), (
        "run python -m benchmarks.protect_figures"
    )


def test_the_readme_says_how_fast_it_is():
    readme = " ".join((ROOT / "README.md").read_text().split())
    measured = json.loads(report.RESULTS.read_text())
    [table] = [one for one in measured["table"]["models"] if one["model"] == "news-words"]
    assert f"{table['first_2'] // 1000 * 1000:,} news texts a second on two CPU cores" in readme
    seconds = measured["encoder"]["exact_median_s"]
    assert f"22.7M encoder takes {seconds:.2f} s a text on two CPU cores" in readme
    lines = [json.loads(line) for line in report.ENGINE_RESULTS.read_text().splitlines()]
    [pace] = [
        line["texts_per_second"]
        for line in lines
        if (line["kind"], line.get("dtype")) == ("certified", "float32")
    ]
    assert f"certifies {pace:.0f} texts a second on an H200" in readme
    shares = [
        line["share"]
        for line in lines
        if (line.get("model"), line.get("way"), line.get("dtype")) == ("110M", "engine", "bfloat16")
    ]
    assert f"computes at {100 * min(shares):.0f} % of the measured peak" in readme


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_records_are_versioned_and_name_no_machine(path):
    text = path.read_text()
    record = json.loads(text)
    assert record["version"] == 1
    assert record["format"].startswith("ranmask-")
    assert "/root" not in text
    assert "/tmp" not in text


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_results_say_what_was_run_on_what(path):
    record = json.loads(path.read_text())
    if record["format"] == "ranmask-trials":
        return
    assert record["commands"]
    assert record["hardware"]
    assert record["data"]["split"] == "test"
    if record["format"] in ("ranmask-defences", "ranmask-searches"):
        for model in record["models"].values():
            assert model["run"]["train"]["rows"] > 1000
        for run in [*record["runs"], *record.get("safer_runs", [])]:
            figures = run["figures"]
            assert figures["succeeded"] + figures["failed"] == figures["attempted"]
            assert figures["attempted"] + figures["skipped"] == figures["texts"]
            assert figures["confirmed_success_rate"] <= figures["success_rate"]
        return
    assert record["training"]["run"]["train"]["rows"] > 1000
    if record["format"] == "ranmask-result":
        figures = record["figures"]
        assert figures["texts"] == record["data"]["rows"]
        shares = figures["certified_accuracy"]
        assert figures["accuracy"] >= shares[0]
        assert shares == sorted(shares, reverse=True)


def test_a_changed_figure_changes_the_page(monkeypatch, tmp_path):
    for path in RECORDS:
        (tmp_path / path.name).write_text(path.read_text())
    record = json.loads((tmp_path / "agnews-words.json").read_text())
    record["figures"]["accuracy"] = 0.123
    (tmp_path / "agnews-words.json").write_text(json.dumps(record))
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    assert ".123" in results_page.results_page()


def test_the_readme_shows_the_same_figures():
    readme = (ROOT / "README.md").read_text()
    for name in ("agnews-default", "agnews-words", "agnews-encoder"):
        figures = json.loads((ROOT / "results" / f"{name}.json").read_text())["figures"]
        shown = " ".join(f"{v:.2f}"[1:] for v in figures["certified_accuracy"][1:6])
        accuracy = f"{figures['accuracy']:.3f}"[1:]
        assert f"| {accuracy} | {figures['median_radius']} | {shown} |" in readme


def test_the_readme_says_what_smoothing_costs():
    named = {one.run.name: one for one in experiments(reproduced_page.reproductions())}
    rows = {row.method: row for row in measured(named["agnews-empirical"])["textfooler"]}
    plain, smoothed = (
        f"{100 * statistics.fmean(one.attempted / one.texts for one in rows[method].counts):.1f} %"
        for method in ("Baseline", "RanMASK-90% (vote), fixed masks")
    )
    assert {one.texts for one in rows["Baseline"].counts} == {1000}
    assert f"{plain} on AG News without a defence and {smoothed} smoothed" in " ".join(
        (ROOT / "README.md").read_text().split()
    )


def certified(corpus):
    """For each masking rate: every certificate's summary, and the paper's row."""
    run = read(ROOT / "results" / "reproduced" / f"{corpus}-certified.json")
    table = published().certified[f"tb-{corpus}-certified"]
    for step in run.steps:
        if step.measures != "certified":
            continue
        summaries = {}
        for reading in step.result.readings:
            summaries[reading.certificate] = CertifiedSummary()
            for correct, radius, words in zip(
                reading.correct, reading.radius, step.result.words, strict=True
            ):
                summaries[reading.certificate].add(correct=correct, radius=radius, words=words)
        yield step.place["rate"], summaries, table.row(step.place["rate"])


def test_the_readme_shows_the_certificates_at_90_percent():
    readme = (ROOT / "README.md").read_text()
    [summaries] = [one for rate, one, _ in certified("agnews") if rate == 0.9]
    for name, kind in (
        ("paper, as printed | **no**", "paper-as-printed"),
        ("paper, off-by-one removed | **no**", "paper"),
        ("`ablation` (Levine-Feizi) | yes, 1 - alpha", "ablation"),
        ("`exact` | yes", "exact"),
    ):
        one = summaries[kind]
        shown = " ".join(f"{float(one.certified_accuracy(d)):.2f}"[1:] for d in range(1, 6))
        assert f"| {name} | {one.median_radius} | {shown} |" in readme


def test_the_page_of_the_paper_and_its_figures_are_what_the_command_writes():
    text, figures = reproduced_page.paper_page(reproduced_page.reproductions())
    assert reproduced_page.PAGE.read_text() == text, "run python -m benchmarks.results_page"
    kept = {path.name: path.read_text() for path in reproduced_page.FIGURES.glob("*.svg")}
    assert kept == figures


def test_the_page_leaves_commands_to_the_files_and_says_so():
    page = reproduced_page.PAGE.read_text()
    assert "ranmask train --data" not in page and "**Steps**" not in page
    assert "`ranmask report results/reproduced/agnews-certified.json`" in " ".join(page.split())


def test_reproductions_name_no_machine_and_hold_no_texts():
    for path in sorted(reproduced_page.REPRODUCED.glob("*.json")):
        text = path.read_text()
        assert "/root" not in text and "/tmp" not in text
        run = read(path)
        assert run.size == "default"
        for step in run.steps:
            if step.measures not in ("training", "examples") and step.state == "done":
                assert '"text":' not in json.dumps(step.data)


def test_the_findings_say_what_was_found():
    findings = " ".join(reproduced_page.FINDINGS.read_text().split())
    for corpus, said in (
        ("agnews", "8 of 10 masking rates on AG News"),
        ("sst2", "6 of 8 on SST2"),
    ):
        found = list(certified(corpus))
        same = sum(one["paper-as-printed"].median_radius == row.mcb for _, one, row in found)
        assert f"{same} of {len(found)}" in said
        assert said in findings
        proved = max(one["exact"].median_radius for _, one, _ in found)
        assert proved == {"agnews": 3, "sst2": 0}[corpus]
    for corpus, said in (("agnews", "2.4e-5 on AG News"), ("sst2", "2.1e-5 on SST2")):
        run = read(ROOT / "results" / "reproduced" / f"{corpus}-beta.json")
        largest = 0.0
        for step in run.steps:
            if step.measures == "beta":
                for average in step.result.average:
                    pairs = zip(step.result.share, average, strict=True)
                    p, q = zip(*((p, q) for p, q in pairs if q is not None), strict=True)
                    largest = max(largest, jensen_shannon(p, q))
        assert f"{largest:.1e}".replace("e-0", "e-") in said
        assert said in findings


def test_the_findings_say_what_is_open_and_its_cost():
    assert reproduction_cost.table() in reproduced_page.FINDINGS.read_text(), (
        "run python -m benchmarks.reproduction_cost"
    )
    pace = reproduction_cost.Pace(reproduced_page.reproductions())
    findings = " ".join(reproduced_page.FINDINGS.read_text().split())
    assert f"add up to {sum(share for _, share in pace.of_run_6()):.0f} s" in findings
    assert f"{pace.words_a_second / 1e6:.1f} million shown words a second" in findings


@pytest.mark.parametrize("line", reproduction_cost.LINES, ids=lambda line: line.about)
def test_a_command_that_fills_what_is_open_can_be_typed(line, tmp_path, capsys):
    words = [*shlex.split(line.command)[1:], "--runs", str(tmp_path), "--dry-run"]
    assert run_command(words) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = [one for one in printed if one.startswith("ranmask ")]
    wanted = {step.key: step.step.command for _, steps in line.planned() for step in steps}
    assert sorted(shown) == sorted(wanted.values())


def test_lines_run_in_one_pool_with_all_that_their_steps_need():
    runs = Path("runs")
    recipes = reproduction_cost.narrowed(reproduction_cost.LINES, runs)
    assert len({recipe.folder_name for recipe in recipes}) == len(recipes)
    planned = {step.key for recipe in recipes for step in plan(recipe, runs)}
    assert planned == {
        step.key
        for line in reproduction_cost.LINES
        for _, steps in line.planned(runs)
        for step in steps
    }


def test_a_cost_grows_with_the_texts_and_seeds():
    pace = reproduction_cost.Pace(reproduced_page.reproductions())
    made = reproduction_cost.Line("", ("sst2-empirical",), {"texts": 300}, steps="*-vote-*")
    one, more, seeds = (
        pace.of(line)
        for line in (made, replace(made, settings={"texts": 600}), replace(made, seeds=2))
    )
    assert one.copies > 300 * 100 and more.copies == pytest.approx(2 * one.copies)
    assert more.learned == one.learned == 6920 * (4 + 20)
    assert seeds.seconds == pytest.approx(2 * one.seconds) and more.seconds < seeds.seconds


def test_all_pages_have_the_same_figures_of_the_paper_run_again():
    readme, results, page = (
        " ".join((ROOT / name).read_text().split())
        for name in ("README.md", "docs/results.md", "docs/paper.md")
    )
    runs = reproduced_page.reproductions()
    found = coverage.total(coverage.covered(runs))
    assert f"{found['done']} of its {found['cells']} cells" in readme
    assert f"{found['done']} of the {found['cells']} cells" in page

    named = {experiment.run.name: experiment for experiment in experiments(runs)}
    rows = [
        next(row for row in rows if row.method == "RanMASK-90% (vote)")
        for rows in measured(named["agnews-empirical"]).values()
    ]
    robust = [row.robust for row in rows]
    kept = f"keeps {robust[2]:.0f} % under DeepWordBug (1,000 texts, [three seeds]"
    assert kept in readme and all(one.texts == 1000 for one in rows[2].counts)
    assert "({:.1f} ± .7, {:.1f} ± 1.6 and {:.1f} ± 1.9 %".format(*robust) in results
    said = f"{robust[2]:.1f} against DeepWordBug and {robust[0]:.1f} against TextFooler"
    assert said in results
    shares = [[one.vanished / one.rechecked for one in row.counts] for row in rows]
    gone = [f"{100 * statistics.fmean(seeds):.0f}" for seeds in shares]
    assert "mislead an attacker: {}, {} and {} % of its successes".format(*gone) in results
    curves = rates.counts(named["rate-ablation"].main)
    for rate in (0.05, 0.3, 0.9):
        points = [
            f"{mean_robust(line[rate]):.1f}"
            for (ensemble, _), line in curves.items()
            if ensemble == "vote"
        ]
        assert "{}, {} and {}".format(*points) in results
        assert all(point in page for point in points)


def test_a_variant_is_condensed_into_a_file_of_its_own(tmp_path, monkeypatch):
    for name in ("REPRODUCED", "PAGE", "FIGURES"):
        monkeypatch.setattr(reproduced_page, name, tmp_path / name)
    (tmp_path / "given").mkdir()
    run = read(ROOT / "results" / "reproduced" / "sst2-certified.json")
    seed = {"variant": {"seed": 1}, "settings": {**run.settings, "seed": 1}}
    half = [
        replace(step, state="todo", result=None) if place % 2 else step
        for place, step in enumerate(run.steps)
    ]

    def condense(*options, **changed):
        write(replace(run, **changed), tmp_path / "given" / "run.json")
        given = str(tmp_path / "given" / "run.json")
        monkeypatch.setattr(sys, "argv", ["reproduced_page", *options, given])
        reproduced_page.main()
        return {path.name: read(path) for path in (tmp_path / "REPRODUCED").iterdir()}

    assert condense().keys() == {"sst2-certified.json"}
    written = replace(run, remarks=("By hand.",))
    write(written, tmp_path / "REPRODUCED" / "sst2-certified.json")
    for options in ((), ("--fill",)):
        assert condense(*options)["sst2-certified.json"] == written
    assert condense(remarks=("Another.",))["sst2-certified.json"].remarks == ("Another.",)
    write(run, tmp_path / "REPRODUCED" / "sst2-certified.json")
    found = condense("--fill", steps=tuple(half), **seed)  # there is nothing to fill yet
    assert found.keys() == {"sst2-certified.json", "sst2-certified-seed1.json"}
    assert found["sst2-certified-seed1.json"].missing
    assert not condense("--fill", **seed)["sst2-certified-seed1.json"].missing
    assert found["sst2-certified.json"] == run
    assert "2 seeds. Several seeds" in (tmp_path / "PAGE").read_text()


def attack(method, rows, model, name="", **changed):
    """An attacked step of so many texts, and whose ``model`` met them."""
    result = Attacked(
        "textfooler", None, tuple(range(rows)), ("failed",) * rows, (9,) * rows, (0,) * rows,
        (5,) * rows, (None,) * rows,
    )  # fmt: skip
    command = f"ranmask attack --rows {rows} --model {model} --plain"
    place = {"method": method, "attack": "textfooler"}
    name = name or f"{model}-textfooler"
    return replace(Step(name, "attack", command, place, "done", 1.0, result=result), **changed)


def model(name, seconds):
    return Step(name, "training", "ranmask train", {}, "done", seconds, result=Trained({}, {}))


def reproduced(*steps, **settings):
    own = {"masks": 8, "texts": 3, "seed": 0}
    about = ("x", "Title", "empirical", "", "About.", "default")
    variant = {key: value for key, value in settings.items() if value != own[key]}
    return Reproduction(*about, {**own, **settings}, {}, steps, variant)


OPEN = {"state": "todo", "result": None}


def test_filling_takes_what_is_open_or_met_more_texts_with_the_models_of_that():
    before = reproduced(
        model("lm", 1),
        *(model("few", 1), model("much", 1), model("none", 1)),
        attack("Few", 3, "few", name="few-t3"),
        attack("Much", 9, "much"),
        attack("None", 0, "none", **OPEN),
    )
    run = reproduced(
        model("lm", 2),
        *(model("few", 2), model("much", 2), model("none", 2)),
        attack("Few", 5, "few", name="few-t5"),
        attack("Much", 5, "much"),
        attack("None", 5, "none"),
        texts=5,
    )
    found = reproduced_page.filled(before, run)
    assert [step.seconds for step in found.steps[:4]] == [1, 2, 1, 2]
    assert [len(step.result.rows) for step in found.steps[4:]] == [5, 9, 5]
    assert found.steps[4].name == "few-t5"  # a name may say how many texts there are
    assert found.settings == {"masks": 8, "texts": 5, "seed": 0} and found.variant == {}
    half = [replace(step, **OPEN) if step.name == "few-t5" else step for step in run.steps]
    found = reproduced_page.filled(before, replace(run, steps=tuple(half)))
    assert [step.seconds for step in found.steps[:4]] == [1, 1, 1, 2]
    other = replace(before, steps=(*before.steps, attack("More of few", 9, "few")))
    found = reproduced_page.filled(other, run)
    assert [step.seconds for step in found.steps[:4]] == [1, 1, 1, 2]


def test_filling_refuses_other_settings():
    before = reproduced(attack("None", 3, "none"))
    with pytest.raises(OptionError, match="masks is 9 there and 8 here"):
        reproduced_page.filled(before, replace(before, settings={"masks": 9, "texts": 5}))
    hub, folder = ({**before.settings, "base": base} for base in ("owner/model", "models/model"))
    before, run = (replace(before, settings=settings) for settings in (hub, folder))
    assert reproduced_page.filled(before, run) == before  # a model is known by its own name


def test_more_texts_fill_the_record_of_the_recipe(tmp_path, monkeypatch):
    for name in ("REPRODUCED", "PAGE", "FIGURES"):
        monkeypatch.setattr(reproduced_page, name, tmp_path / name)
    for number, (steps, settings, records) in enumerate(
        (
            ([model("none", 1), attack("None", 3, "none")], {}, {"x.json": 3}),
            ([model("none", 2), attack("None", 5, "none")], {"texts": 5}, {"x.json": 5}),
            ([model("none", 2), attack("None", 4, "none")], {"texts": 4}, {"x.json": 5}),
            (
                [model("none", 3), attack("None", 5, "none")],
                {"texts": 5, "seed": 1},  # is averaged with seed 0
                {"x.json": 5, "x-seed1.json": 5},
            ),
            (
                [model("none", 4), attack("None", 5, "none")],
                {"texts": 5, "masks": 9},
                {"x.json": 5, "x-seed1.json": 5, "x-texts5-masks9.json": 5},
            ),
        )
    ):
        write(reproduced(*steps, **settings), tmp_path / f"{number}.json")
        monkeypatch.setattr(sys, "argv", ["", "--fill", str(tmp_path / f"{number}.json")])
        reproduced_page.main()
        found = {path.name: read(path) for path in (tmp_path / "REPRODUCED").iterdir()}
        assert {name: len(run.steps[1].result.rows) for name, run in found.items()} == records
    assert "5 texts each" in (tmp_path / "PAGE").read_text()


def test_the_page_stays_where_its_runs_cannot_be_read(tmp_path, monkeypatch, capsys):
    for name in ("REPRODUCED", "PAGE", "FIGURES"):
        monkeypatch.setattr(reproduced_page, name, tmp_path / name)
    (tmp_path / "PAGE").write_text("as it was")
    (tmp_path / "REPRODUCED").mkdir()
    good = ROOT / "results" / "reproduced" / "sst2-beta.json"
    (tmp_path / "cut.json").write_text(good.read_text()[:100])
    for given, said in (
        ([], "REPRODUCED has no reproduction"),
        (["--fill"], "name one"),
        ([str(good), str(tmp_path / "cut.json")], "cut.json"),
        ([str(tmp_path / "none")], "there is no file or folder"),
    ):
        monkeypatch.setattr(sys, "argv", ["reproduced_page", *given])
        with pytest.raises(SystemExit) as stopped:
            reproduced_page.main()
        assert stopped.value.code and said in capsys.readouterr().err
        assert (tmp_path / "PAGE").read_text() == "as it was"
        assert not list((tmp_path / "REPRODUCED").iterdir())


def test_the_readme_shows_the_same_searches():
    page = (ROOT / "docs" / "results.md").read_text()
    page = page[page.index("## Searches that know the victim") :]

    def row(victim, recipe, search):
        start = f"| {victim} | {recipe} | {search} | "
        line = next(line for line in page.splitlines() if line.startswith(start))
        texts, clean, robust, *_ = line.removeprefix(start).split(" | ")
        return int(texts), round(float(clean)), round(float(robust))

    readme = (ROOT / "README.md").read_text()
    for shown, victim, recipe, knowing in (
        ("`news-words`, TextFooler", "`news-words` (scores)", "textfooler", "strongest"),
        ("query, TextFooler", "the same, masks drawn for each query", "textfooler", "strongest"),
        ("DeepWordBug", "RanMASK, votes, masks drawn for each query", "deepwordbug", "strongest"),
    ):
        texts, clean, own = row(victim, recipe, "own")
        *_, known = row(victim, recipe, knowing)
        assert f"{shown} | {texts} | {clean} | {own} | {known} |" in readme
