"""What a release carries: terms of the data, the version, actions that cannot change unseen."""

import re
import tomllib
from pathlib import Path

from tools import wheel_check

import ranmask
from ranmask.models import SHIPPED_FOLDER

ROOT = Path(__file__).parents[2]


def test_terms_of_the_data_of_every_shipped_model_go_with_the_wheel():
    notice = (ROOT / "NOTICE").read_text()
    heads = re.findall(r"^[a-z][\w-]*(?:, [\w-]+)*$", notice, re.MULTILINE)
    named = {name for head in heads for name in head.split(", ")} - {"ranmask"}
    assert named == {folder.name for folder in SHIPPED_FOLDER.iterdir()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [path for one in project["license-files"] for path in sorted(ROOT.glob(one))]
    assert [str(path.relative_to(ROOT)) for path in found] == list(wheel_check.LICENCES)


def test_terms_are_those_of_the_cards():
    def plain(text):
        return " ".join(text.split())

    notice = plain((ROOT / "NOTICE").read_text())
    for name in ("news-words", "reviews-words"):
        card = (SHIPPED_FOLDER / name / "README.md").read_text()
        [terms] = re.findall(r"^- Terms of the data: (.*)\.$", card, re.MULTILINE)
        assert terms in notice, name


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {ranmask.__version__}\n" in citation


def test_actions_are_pinned_by_hash():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        uses = re.findall(r"uses: (\S+)", path.read_text())
        assert uses
        for action in uses:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), (path.name, action)


def test_pythons_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    said = [text.removeprefix(prefix) for text in project["classifiers"] if prefix in text]
    workflow = (ROOT / ".github/workflows/checks.yml").read_text()
    [listed] = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r'"3\.(\d+)"', listed) == said
