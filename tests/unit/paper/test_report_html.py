"""The page and its Markdown: what they show, well formed, escaped, and light to make."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from commands import run_cli
from ranmask.paper.published import published
from ranmask.paper.reading import read_several
from ranmask.paper.report import charts, html, markdown
from ranmask.paper.report.page import build
from ranmask.paper.run_data import (
    Attacked,
    Certified,
    Examples,
    Reading,
    Reproduction,
    Step,
)

DATA = Path(__file__).parents[2] / "data" / "report"
FILES = sorted(DATA.glob("*.json"))
EVIL = "<script>alert('x')</script>|`*_[a](javascript:1)\ud800\x07"
VOID = {"meta", "br", "hr", "img", "input", "link"}


@pytest.fixture(scope="module")
def everything():
    return read_several(FILES)


@pytest.fixture(scope="module")
def stored(everything):
    return build(everything, "Made-up results, for tests")


class Page(HTMLParser):
    """Checks balance, and collects what a test asks about.

    ``tables``: by section, rows of cells, each cell a list of its texts, the head first.
    """

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.levels = [], [], [], [], []
        self.tables, self.code = {}, []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        self.links += [found[name] for name in ("href", "src", "action", "data") if name in found]
        assert not any(name.startswith("on") for name in found)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = self.tables.setdefault(found["aria-labelledby"], [])
        elif tag == "table":
            self.section.append([])
        elif tag == "tr":
            self.section[-1].append([])
        elif tag in ("td", "th"):
            self.section[-1][-1].append([])

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.section[-1][-1][-1].append(data)
        elif self.open[-2:] == ["pre", "code"]:
            self.code += data.split("\n")


@pytest.fixture(scope="module")
def page(stored):
    return Page(html.render(stored))


def by_name(table):
    """The rows of a table by their first cells, the rest of each as the first text of a cell."""
    return {row[0][0]: [cell[0] if cell else "" for cell in row[1:]] for row in table if row[0]}


def of_kind(everything, kind):
    return next(run for run in everything if run.kind == kind)


def results(run, measures):
    """Finished steps with their results."""
    return [
        (step.place, step.result)
        for step in run.steps
        if step.result and step.state == "done" and step.measures == measures
    ]


def test_every_kind_of_result_has_its_section(page):
    assert page.ids == [
        *(
            "coverage",
            "certificate",
            "overview",
            "certified",
            "attacks",
            "beta",
            "rates",
            "entropy",
        ),
        *("risk", "headlines", "provenance"),
    ]
    assert [link for link in page.links if link.startswith("#")] == [
        f"#{name}" for name in page.ids
    ]


def test_certified_figures(page, everything):
    tables = page.tables["certified"]
    beside, proved, levels = tables
    for place, result in results(of_kind(everything, "certified"), "certified"):
        masked = f"{100 * place['rate']:g} %"
        exact, texts = result.readings[0], len(result.rows)
        radii = sorted(
            radius if right and radius is not None else -1
            for right, radius in zip(exact.correct, exact.radius, strict=True)
        )
        shown = by_name(proved)[masked]
        *_, accuracy, median, _, one_word = shown
        assert accuracy == written(sum(exact.correct) / texts)
        assert one_word == written(sum(radius >= 1 for radius in radii) / texts)
        assert median in {str(max(radii[at], 0)) for at in (texts // 2, (texts - 1) // 2)} | {"N/A"}
        rows = [row for row in levels if row[0] == [masked] and row[1] == ["exact"]]
        assert len(rows) == any(radius >= 1 for radius in radii)  # nothing proved: no row
        for row in rows:
            assert [cell[0] for cell in row[2:]] == [
                written(sum(radius >= changed for radius in radii) / texts)
                for changed in range(1, 6)
            ]
        printed = published().certified["tb-sst2-certified"].row(place["rate"])
        assert by_name(beside)[masked][0] == written(printed.accuracy / 100)
    claimed = next(one for one in everything if one.kind == "certified").steps[-1]
    assert claimed.name in page_text(page, "provenance")


def written(share):
    return f"{share:.3f}".removeprefix("0")


def page_text(page, section):
    return {
        text for table in page.tables[section] for row in table for cell in row for text in cell
    }


def test_figures_under_attack_beside_the_papers(page, everything):
    whole, order, *details = page.tables["attacks"]
    run = of_kind(everything, "empirical")
    attacks = list(published().empirical[run.paper].attacks)
    seen = 0
    for place, result in results(run, "attack"):
        if not {"method", "attack"} <= place.keys():
            continue
        statuses = result.statuses
        held, fallen = statuses.count("failed"), statuses.count("succeeded")
        texts = held + fallen + statuses.count("skipped")
        at = 3 * attacks.index(place["attack"])
        shares = (held + fallen) / texts, held / texts, fallen / max(1, held + fallen)
        cells = next(row for row in whole if row[0] == [place["method"]])[1 + at : 4 + at]
        assert [cell[0] for cell in cells] == [f"{100 * share:.1f}" for share in shares]
        printed = published().empirical[run.paper].cell(place["method"], place["attack"])
        if printed is not None:
            assert [cell[1] for cell in cells] == [
                f"{figure:.1f}" for figure in (printed.cln, printed.boa, printed.succ)
            ]
        seen += 1
    ran = {place["attack"] for place, _ in results(run, "attack")}
    assert seen > 5 and len(details) == len(ran) == len(order[0]) - 1


def test_figures_of_rates_entropies_and_betas(page, everything):
    _, rates = page.tables["rates"]
    run = of_kind(everything, "rates")
    counted = {}
    for place, result in results(run, "attack"):
        parts = counted.setdefault((place["rate"], place["ensemble"], place["attack"]), [0, 0])
        parts[0] += result.statuses.count("failed")
        parts[1] += len(result.statuses) - result.statuses.count("error")
    shown = page_text(page, "rates")
    assert {f"{100 * (held / texts):.1f}" for held, texts in counted.values()} <= shown
    assert len(rates) == 2 + len({rate for rate, _, _ in counted})
    [entropies] = page.tables["entropy"]
    for place, result in results(of_kind(everything, "entropy"), "predict"):
        mean = sum(result.vote_entropy) / len(result.vote_entropy)
        cells = by_name(entropies)[place["method"]]
        assert cells[1] == written(mean) and cells[-1] == str(len(result.rows))
        assert cells[0] == written(published().entropy["mean"][place["method"]])
    largest = {
        max(
            beta - p
            for betas in result.largest
            for p, beta in zip(result.share, betas, strict=True)
            if beta is not None
        )
        for _, result in results(of_kind(everything, "beta"), "beta")
    }
    assert {written(gap) for gap in largest} <= page_text(page, "beta")


def test_arithmetic_and_provenance(page, everything):
    first, *_ = page.tables["headlines"]
    assert len(first) == 1 + len(published().claims)
    assert {
        f"{claim.value:.2f}".replace("-", "\N{MINUS SIGN}") for claim in published().claims.values()
    } <= {row[1][0] for row in first[1:]}
    assert len(page.tables["risk"]) == len(published().risk)
    for run in everything:
        for step in run.steps:
            assert step.name in page_text(page, "provenance")
            assert not step.command or step.command in page.code


def test_charts_have_a_mark_for_every_point(stored):
    for section in stored.sections:
        for picture in (block for block in section.blocks if hasattr(block, "charts")):
            for chart in picture.charts:
                drawn = ElementTree.fromstring(charts.inline(chart))
                marks = [one for one in drawn.iter() if "marker" in one.get("class", "")]
                if isinstance(chart, charts.Dots):
                    values = [
                        v for dot in chart.rows for v in (dot.value, dot.other) if v is not None
                    ]
                    assert len(marks) == len(values)
                    said = "".join(drawn.itertext())
                    assert all(dot.label[:8] in said for dot in chart.rows)
                else:
                    assert len(marks) == sum(len(series.points) for series in chart.series)
                    assert len(list(drawn.iter("polyline"))) == len(chart.series)


def test_page_is_well_formed(stored):
    text = html.render(stored)
    page = Page(text)
    assert page.levels[0] == 1 and page.levels.count(1) == 1
    steps = zip(page.levels, page.levels[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert len(page.ids) == len(set(page.ids))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "iframe", "object", "embed", "link", "img", "form"}
    assert {link.removeprefix("#") for link in page.links} == set(page.ids)
    [root] = [found for tag, found in page.tags if tag == "html"]
    assert root["lang"] == "en-GB"
    for svg in re.findall("<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)


def test_page_needs_nothing_from_elsewhere(stored):
    text = html.render(stored)
    assert "http:" not in text and "https:" not in text and "url(" not in text
    assert "@import" not in text and "javascript:" not in text


def test_every_figure_speaks(stored):
    text = html.render(stored)
    figures = re.findall("<figure>.*?</figure>", text, flags=re.DOTALL)
    assert figures
    for figure in figures:
        assert "<figcaption>" in figure
        charts = re.findall('<svg class="chart".*?>', figure)
        assert charts and all('aria-label="' in chart for chart in charts)


def test_colours_can_be_read_in_both_themes():
    style = "".join(
        (Path(html.__file__).parent / "templates" / name).read_text()
        for name in ("chart.css", "report.css")
    )
    dark_parts = re.findall(
        r"@media screen and \(prefers-color-scheme: dark\) \{(.*?)\n\}", style, re.S
    )
    light = dict(
        re.findall(r"--([\w-]+): (#\w{6})", re.sub(r"@media screen.*?\n\}", "", style, flags=re.S))
    )
    dark = dict(re.findall(r"--([\w-]+): (#\w{6})", "".join(dark_parts)))
    assert light.keys() == dark.keys()
    for theme in (light, dark):
        for ground in ("sheet", "panel"):
            for ink in ("ink", "soft", "link", "good", "bad"):
                assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
        for look in range(1, 7):
            assert contrast(theme[f"look{look}"], theme["sheet"]) >= 4.5
        assert contrast(theme["mark-ink"], theme["mark"]) >= 4.5
        assert contrast(theme["ink"], theme["warm"]) >= 4.5


def contrast(one, other):
    def brightness(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((brightness(one), brightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def hostile():
    """Foreign text wherever there can be any."""
    line = {
        **{"label": EVIL, "label_id": 0, "votes": [9, 1], "words": 4, "kept": 2, "masks": 10},
        **{"radius": 1, "critical_words": [0, 1], "text": f"one {EVIL} two three"},
        "copies": [{"kept": [0, 1], "label_id": 0}, {"kept": [1, 2], "label_id": 1}],
    }
    reading = Reading(EVIL, True, (True, False), (1, None))
    attack = Attacked(
        EVIL, None, (1, 2), ("failed", "succeeded"), (3, 4), (0, 1), (9, 9), (None, False)
    )
    data = {"name": EVIL, "split": EVIL, "note": EVIL}
    common = (EVIL, EVIL, EVIL, {EVIL: EVIL}, {EVIL: EVIL})
    certified = (
        Step(EVIL, "examples", EVIL, {}, "done", result=Examples((line,))),
        Step(
            EVIL,
            "certified",
            EVIL,
            {"rate": 0.7},
            "done",
            data=data,
            result=Certified((1, 2), (4, 4), 10, (reading,)),
        ),
        Step(EVIL, "certified", EVIL, {}, "failed", error=EVIL),
    )
    attacked = (
        Step(EVIL, "attack", EVIL, {"method": EVIL, "attack": EVIL}, "done", result=attack),
    )
    return [
        Reproduction(EVIL, EVIL, "certified", *common, certified),
        Reproduction(EVIL + "2", EVIL, "empirical", *common, attacked),
    ]


def test_foreign_text_is_escaped_in_html():
    text = html.render(build(hostile(), EVIL))
    text.encode("utf-8")
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "&lt;script&gt;" in text and "\x07" not in text
    for svg in re.findall("<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)


def test_foreign_text_is_escaped_in_markdown():
    report = build(hostile(), EVIL)
    for text in (markdown.render(report), markdown.render(report, Path("figures"))):
        text.encode("utf-8")
        fenced = re.sub(r"^(`{3,})\n.*?\n\1$", "", text, flags=re.S | re.M)
        prose = re.sub(r"(`+) .*? \1", "", fenced)
        assert "<script" not in prose.replace(r"\<script", "")
        assert r"\[a\]\(javascript:1\)" in text
        check_tables(prose)


def test_file_names_of_pictures_lead_nowhere_else():
    one = replace(hostile()[0], name="../../etc/passwd")
    names = markdown.picture_files(build([one]))
    assert names and all(re.fullmatch(r"[a-z0-9-]+\.svg", name) for name in names)


def check_tables(text):
    """Every row of a table has as many cells as its head."""
    found = 0
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if len(lines) > 1 and re.fullmatch(r"\|( ?:?-+:? ?\|)+", lines[1]):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(counts) == 1, block
            found += 1
    return found


def test_markdown_has_every_table_and_links_its_pictures(stored):
    text = markdown.render(stored)
    page = html.render(stored)
    assert check_tables(text) == page.count("<table>") + page.count('<ul class="copies"')
    assert "ask for `--figures`" in text
    linked = markdown.render(stored, Path("pics"))
    names = set(re.findall(r"\]\(pics/([^)]+)\)", linked))
    assert names == set(markdown.picture_files(stored))
    assert len(names) == page.count('<svg class="chart"')
    assert "](<my pics/" in markdown.render(stored, Path("my pics"))


def test_both_forms_say_the_same(stored):
    """Every number of the page's tables is in the Markdown."""
    page = re.sub("<svg.*?</svg>", "", html.render(stored), flags=re.DOTALL)
    numbers = set(re.findall("(?<=>)[+\N{MINUS SIGN}]?[0-9]*[.][0-9]+(?=<)", page))
    assert len(numbers) > 200
    text = markdown.render(stored).replace("\\", "")
    assert {number for number in numbers if number not in text} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_recipe_alone(path):
    [one] = read_several([path])
    report = build([one])
    assert report.title == one.title
    Page(html.render(report))
    check_tables(markdown.render(report))


def test_making_a_report_loads_no_model(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom ranmask.cli.report import report\n"
        f"report(*[Path(p) for p in {[str(path) for path in FILES]!r}], output=Path(sys.argv[1]))\n"
        "heavy = {'torch', 'transformers', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "r.html")], check=True)
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_importing_the_command_is_light():
    code = (
        "import sys, ranmask.cli.report\n"
        "assert not {'jinja2', 'numpy', 'scipy', 'ranmask.paper.report'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def run():
    return partial(run_cli, "report")


def test_command_writes_what_was_asked_for(run, tmp_path, everything):
    out, text, pictures = tmp_path / "r.html", tmp_path / "docs" / "r.md", tmp_path / "pics"
    text.parent.mkdir()
    found = run(
        *FILES, "--output", out, "--markdown", text, "--figures", pictures, "--title", "A title"
    )
    assert found.exit_code == 0, found.output
    report = build(everything, "A title")
    assert out.read_text(encoding="utf-8") == html.render(report)
    assert text.read_text(encoding="utf-8") == markdown.render(report, Path("../pics"))
    assert {one.name for one in pictures.iterdir()} == set(markdown.picture_files(report))
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {"r.html", "docs", "pics"}


def test_condensed_gives_the_same_report(run, tmp_path):
    first, again, small = tmp_path / "1.html", tmp_path / "2.html", tmp_path / "small.json"
    assert run(FILES[0], "--output", first, "--condensed", small).exit_code == 0
    assert run(small, "--output", again).exit_code == 0
    assert first.read_bytes() == again.read_bytes()


def test_command_refuses(run, tmp_path):
    found = run(FILES[0], "--output", tmp_path)
    assert found.exit_code == 1 and "is a folder" in found.stderr
    found = run(FILES[0], "--output", tmp_path / "none" / "r.html")
    assert found.exit_code == 1 and "no folder" in found.stderr
    found = run(*FILES[:2], "--condensed", tmp_path / "c.json", "--output", tmp_path / "r.html")
    assert found.exit_code == 2 and "one by one" in found.stderr
    found = run(
        FILES[0].parent, "--condensed", tmp_path / "c.json", "--output", tmp_path / "r.html"
    )
    assert found.exit_code == 2 and f"{len(FILES)} were given" in found.stderr
    assert not list(tmp_path.iterdir())
    found = run(FILES[0], "--output", "/dev/null")
    assert found.exit_code == 1 and "no ordinary file" in found.stderr
    (tmp_path / "file").write_text("here first")
    found = run(FILES[0], "--output", tmp_path / "r.html", "--figures", tmp_path / "file")
    assert found.exit_code == 1 and "cannot make" in found.stderr
    assert (tmp_path / "file").read_text() == "here first"


def test_command_writes_over_nothing_that_it_reads(run, tmp_path):
    source = tmp_path / "in.json"
    source.write_bytes(FILES[5].read_bytes())
    (tmp_path / "link.json").symlink_to(source)
    for more in (
        ("--output", source),
        ("--output", tmp_path / "link.json"),
        ("--output", tmp_path / "r.html", "--condensed", source),
        ("--output", tmp_path / "r.html", "--markdown", tmp_path / "r.html"),
    ):
        found = run(source, *more)
        assert found.exit_code == 2 and "written over" in found.stderr
    assert source.read_bytes() == FILES[5].read_bytes()
    assert not (tmp_path / "r.html").exists()


def test_a_run_and_its_results_are_not_written_over(run, tmp_path):
    folder = tmp_path / "run"
    (folder / "results").mkdir(parents=True)
    for name in ("reproduction.json", "results/a.jsonl"):
        (folder / name).write_text("kept")
        found = run(folder, "--output", folder / name)
        assert found.exit_code == 2 and "written over" in found.stderr
        assert (folder / name).read_text() == "kept"


def test_the_same_recipe_in_two_sizes():
    """Each has its own title and its own pictures."""
    [one] = read_several([FILES[0]])
    report = build([one, replace(one, size="paper")])
    single = markdown.picture_files(build([one]))
    assert len(markdown.picture_files(report)) == 2 * len(single) - 1  # one lesson for both
    text = markdown.render(report, Path("pics"))
    linked = re.findall(r"\]\(pics/([^)]+)\)", text)
    assert len(set(linked)) == len(linked) == 2 * len(single) - 1
    assert r"at several masking rates \(smoke\)" in text and r"rates \(paper\)" in text


def test_no_character_turns_or_breaks_what_stands_beside_it():
    turned = "a\u202eb\u2066c\u009bd\re"
    step = Step("s", "certified", f"ranmask\r```\u2028```\r<script>{turned}", {}, "todo")
    one = Reproduction("x", turned, "certified", "", "", "smoke", {}, {}, (step,))
    report = build([one])
    for text in (markdown.render(report), html.render(report)):
        assert not set(text) & set("\u202e\u2066\u009b")
    text = markdown.render(report)
    assert "\r" not in text and "\u2028" not in text
    assert "```\nranmask ``` ``` <script>" in text.replace("````", "```")


def test_a_sentence_of_ten_thousand_words():
    words = 10_000
    line = {
        **{"label": "a", "label_id": 0, "votes": [9, 1], "words": words, "kept": 2, "masks": 10},
        **{"radius": 1, "critical_words": [0, 1], "text": "word " * words},
        "copies": [{"kept": [0, 9_999], "label_id": 0}],
    }
    step = Step("s", "examples", "c", {}, "done", result=Examples((line,)))
    one = Reproduction("x", "T", "certified", "", "", "smoke", {}, {}, (step,))
    text = html.render(build([one]))
    assert len(text) < 3_000_000
    Page(text)


def test_a_link_stays_a_link(run, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "real.html")
    assert run(FILES[5], "--output", link).exit_code == 0
    assert link.is_symlink() and "</html>" in (tmp_path / "real.html").read_text(encoding="utf-8")


def test_nothing_is_left_behind_when_writing_fails(run, tmp_path, monkeypatch):
    def full(self, *args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    found = run(FILES[0], "--output", tmp_path / "r.html")
    assert found.exit_code == 1 and "No space left" in found.stderr
    assert list(tmp_path.iterdir()) == []
