"""The pages of the site that scripts write are up to date, and the reference leaves nothing out."""

import importlib
import json
import re
from pathlib import Path

import pytest
from tools import cli_reference, vote_pictures

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTED = re.findall(
    r"^\.\. auto(?:class|function|exception|data):: (\S+)$",
    "\n".join(page.read_text() for page in sorted((DOCS / "reference").glob("*.md"))),
    re.MULTILINE,
)


def test_reference_of_commands_is_what_the_commands_say():
    assert cli_reference.PAGE.read_text() == cli_reference.page(), (
        "python -m tools.cli_reference writes it anew"
    )


def test_links_inside_the_reference_of_commands_lead_to_headings():
    page = cli_reference.page()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    linked = re.findall(r"\]\(#(.+?)\)", page)
    assert len(linked) >= 18 and set(linked) <= anchors


@pytest.mark.parametrize("module", ["", ".results", ".data", ".attacks.resources"])
def test_every_public_name_is_in_the_reference_once(module):
    package = importlib.import_module(f"ranmask{module}")
    names = {f"ranmask{module}.{name}" for name in package.__all__ if name != "__version__"}
    if module == ".results":  # some of them are names of ranmask itself
        names -= {f"ranmask.results.{name}" for name in importlib.import_module("ranmask").__all__}
    assert sorted(name for name in names if DOCUMENTED.count(name) != 1) == []


def test_reference_names_only_what_there_is():
    for name in DOCUMENTED:
        module, _, attribute = name.rpartition(".")
        assert attribute in importlib.import_module(module).__all__, name


def test_pictures_show_the_votes_of_today():
    for name, drawn in vote_pictures.pictures().items():
        assert (vote_pictures.FOLDER / name).read_text() == drawn + "\n", (
            "python -m tools.vote_pictures draws them anew"
        )


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_are_stored_with_what_they_print(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    shown = [output for cell in cells for output in cell["outputs"]]
    assert len(shown) >= 5
    assert {output.get("name") for output in shown} == {"stdout"}


def test_every_page_is_in_the_contents():
    listed = re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(), re.MULTILINE)
    pages = [path for pattern in ("*.md", "*/*.md", "*/*.ipynb") for path in DOCS.glob(pattern)]
    names = {path.relative_to(DOCS).with_suffix("").as_posix() for path in pages} - {"index"}
    assert names == set(listed)
