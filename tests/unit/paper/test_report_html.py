"""The page and its Markdown: stored word for word, well formed, escaped, and light to make."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from ranmask.errors import OptionError, OutputError
from ranmask.paper.reading import read_several
from ranmask.paper.report import html, markdown
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
    """Checks balance, and collects what a test asks about."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.levels = [], [], [], [], []
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

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_stored_page(stored):
    """Meant to change?  python -m tools.report_fixture, and look at what it wrote."""
    assert html.render(stored) == (DATA / "expected.html").read_text(encoding="utf-8")


def test_the_stored_markdown(stored):
    assert markdown.render(stored) == (DATA / "expected.md").read_text(encoding="utf-8")


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
        f"report([Path(p) for p in {[str(path) for path in FILES]!r}], output=Path(sys.argv[1]))\n"
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
    import typer

    from ranmask.cli.report import report

    app = typer.Typer()
    app.command()(report)

    def call(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return call


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
    assert isinstance(found.exception, OutputError) and "is a folder" in str(found.exception)
    found = run(FILES[0], "--output", tmp_path / "none" / "r.html")
    assert isinstance(found.exception, OutputError) and "no folder" in str(found.exception)
    found = run(*FILES[:2], "--condensed", tmp_path / "c.json", "--output", tmp_path / "r.html")
    assert isinstance(found.exception, OptionError) and "one by one" in str(found.exception)
    found = run(FILES[0], "--output", "/dev/null")
    assert isinstance(found.exception, OutputError) and "no ordinary file" in str(found.exception)
    (tmp_path / "file").write_text("here first")
    found = run(FILES[0], "--output", tmp_path / "r.html", "--figures", tmp_path / "file")
    assert isinstance(found.exception, OutputError) and "cannot make" in str(found.exception)
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
        assert isinstance(found.exception, OptionError) and "written over" in str(found.exception)
    assert source.read_bytes() == FILES[5].read_bytes()
    assert not (tmp_path / "r.html").exists()


def test_a_run_and_its_results_are_not_written_over(run, tmp_path):
    folder = tmp_path / "run"
    (folder / "results").mkdir(parents=True)
    for name in ("reproduction.json", "results/a.jsonl"):
        (folder / name).write_text("kept")
        found = run(folder, "--output", folder / name)
        assert isinstance(found.exception, OptionError) and "written over" in str(found.exception)
        assert (folder / name).read_text() == "kept"


def test_the_same_recipe_in_two_sizes():
    """Each has its own title and its own pictures."""
    [one] = read_several([FILES[0]])
    report = build([one, replace(one, size="paper")])
    single = markdown.picture_files(build([one]))
    assert len(markdown.picture_files(report)) == 2 * len(single)
    text = markdown.render(report, Path("pics"))
    linked = re.findall(r"\]\(pics/([^)]+)\)", text)
    assert len(set(linked)) == len(linked) == 2 * len(single)
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
    assert isinstance(found.exception, OutputError) and "No space left" in str(found.exception)
    assert list(tmp_path.iterdir()) == []
