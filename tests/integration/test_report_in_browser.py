"""A made-up report in a real browser: no overflow on a phone, both themes, nothing lost in print.

Needs chromium on the path (Debian: apt-get install chromium); no driver, no library.
"""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ranmask.paper.reading import read_several
from ranmask.paper.report.html import render
from ranmask.paper.report.page import build

FILES = sorted((Path(__file__).parents[1] / "data" / "report").glob("*.json"))
OURS = sorted((Path(__file__).parents[2] / "results" / "reproduced").glob("*.json"))
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DARK, LIGHT = 0, 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium on the path"),
]

# A frame of its own width, measured from outside: the page itself holds no script.
# Says its encoding: a guessed one may turn superscripts into longer words, which do overlap.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><title>-</title><body style="margin:0">
<iframe id="page" srcdoc="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>
document.getElementById("page").onload = function () {{
  const inner = this.contentDocument, root = inner.documentElement;
  const boxed = (one) => one.closest(".table, pre, svg, .spoken");
  const wide = [...inner.body.querySelectorAll("*")]
    .filter((one) => !boxed(one) && one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 80));
  const sizes = [...inner.querySelectorAll(".charts .chart")]
    .map((one) => one.getBoundingClientRect().width);
  const boxes = (chart, what) => [...chart.querySelectorAll(what)]
    .map((one) => [one, one.getBoundingClientRect()]);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const over = [];
  for (const chart of inner.querySelectorAll(".charts .chart")) {{
    const words = boxes(chart, "text"), marks = boxes(chart, ".marker"),
      edge = chart.getBoundingClientRect(), name = chart.querySelector("title").textContent;
    words.forEach(([one, box], place) => {{
      const others = words.slice(place + 1).concat(marks);
      for (const [other, its] of others)
        if (meet(box, its)) over.push([name, one.textContent, other.textContent || "a marker"]);
      if (box.left < edge.left - 1 || box.right > edge.right + 1)
        over.push([name, one.textContent, "the edge"]);
    }});
  }}
  document.title = JSON.stringify({{
    width: root.clientWidth, scroll: root.scrollWidth, wide: wide, narrowest: Math.min(...sizes),
    over: over, charts: sizes.length,
  }});
}};
</script>"""


def browse(folder, url, *options, theme=LIGHT):
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--no-first-run", "--disable-extensions", f"--user-data-dir={folder / 'profile'}"),
        *(f"--blink-settings=preferredColorScheme={theme}", *options, url),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(build(read_several(FILES))), encoding="utf-8")
    return path


def opened(page):
    """A report with every fold opened, which is when it is widest."""
    return page.replace("<details>", "<details open>")


def measured(folder, page, width, theme=LIGHT):
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(page=html.escape(page), width=width), encoding="utf-8")
    seen = browse(
        *(folder, frame.as_uri(), "--window-size=1400,1000"),
        *("--virtual-time-budget=8000", "--dump-dom"),
        theme=theme,
    )
    return json.loads(html.unescape(re.search("<title>(.*?)</title>", seen)[1]))


def with_variants(files):
    """Each run also with another seed, and with another base and another way to hide words."""
    runs = read_several(files)
    others = [
        replace(run, variant=variant, settings={**run.settings, **variant})
        for run in runs
        for variant in ({"seed": 1}, {"base": "all-mpnet-base-v2", "hide": "mask"})
    ]
    return [*runs, *others]


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize(
    ("files", "read"),
    [(FILES, read_several), (FILES, with_variants), (OURS, read_several), (OURS, with_variants)],
    ids=["made-up", "made-up variants", "ours", "variants of ours"],
)
def test_no_words_of_a_chart_lie_on_others(tmp_path, files, read, width, theme):
    page = opened(render(build(read(files))))
    found = measured(tmp_path, page, width, theme)
    assert found["charts"] > 5
    assert found["over"] == []


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("read", [read_several, with_variants])
def test_the_page_is_no_wider_than_its_window(tmp_path, read, width):
    found = measured(tmp_path, opened(render(build(read(FILES)))), width)
    assert found["width"] == width
    assert found["wide"] == []
    assert found["scroll"] <= width
    assert found["narrowest"] >= 280  # below that the words on a chart are too small


def test_themes_differ_and_neither_is_blank(tmp_path, file):
    image = pytest.importorskip("PIL.Image")
    shades = {}
    for theme in (LIGHT, DARK):
        shot = tmp_path / f"{theme}.png"
        browse(
            tmp_path, file.as_uri(), "--window-size=1200,3000", f"--screenshot={shot}", theme=theme
        )
        with image.open(shot) as opened:
            pixels = opened.convert("L")
            counts = pixels.histogram()
        shades[theme] = max(range(256), key=counts.__getitem__)
        assert sum(counts) - counts[shades[theme]] > 0.03 * sum(counts)
    assert shades[LIGHT] > 240 and shades[DARK] < 40


def test_print_loses_no_fold(tmp_path, file):
    if shutil.which("pdftotext") is None:
        pytest.skip("there is no pdftotext on the path (Debian: poppler-utils)")
    paper = tmp_path / "page.pdf"
    browse(tmp_path, file.as_uri(), f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    read = subprocess.run(
        ["pdftotext", str(paper), "-"], capture_output=True, text=True, check=True
    ).stdout
    for folded in ("Certified accuracy of each certificate", "ranmask beta --data agnews"):
        assert folded in read
