"""What README and docs show is what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", re.DOTALL)
EXAMPLES = [
    pytest.param(code, printed, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (code, printed) in enumerate(SHOWN.findall(page.read_text()), 1)
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_examples_print_what_the_page_says(code, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == printed


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https://)([^)#]+)\)", page.read_text()):
        assert (page.parent / target.strip("<>")).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_that_are_named_are_there(page):
    named = re.findall(r"\b(?:src|tests|tools|benchmarks|examples)/[\w./-]*\w", page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
