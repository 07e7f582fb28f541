"""docs/results.md says what the committed result files say, and nothing else."""

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import protect_figures, report, reproduced_page, results_page  # noqa: E402

from ranmask.metrics import CertifiedSummary  # noqa: E402
from ranmask.paper.divergence import jensen_shannon  # noqa: E402
from ranmask.paper.published import published  # noqa: E402
from ranmask.paper.reading import read, write  # noqa: E402
from ranmask.paper.report.counting import mean_robust  # noqa: E402
from ranmask.paper.report.experiments import experiments  # noqa: E402
from ranmask.paper.report.sections import coverage, empirical, rates  # noqa: E402

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
    rows = {row.method: row for row in empirical.measured(named["agnews-empirical"])["textfooler"]}
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
        for rows in empirical.measured(named["agnews-empirical"]).values()
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
    assert "2 seeds. Of several seeds" in (tmp_path / "PAGE").read_text()


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
