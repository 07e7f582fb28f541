"""What README and docs/commands.md show is run as a user would: offline, in an empty folder."""

import subprocess
import sys

import pytest
from tools import readme


def test_every_command_is_run_or_has_a_reason():
    shown, found = (readme.commands(path.read_text()) for path in (readme.README, readme.COMMANDS))
    assert len(shown) >= 8 and set(shown) < set(found)  # README shows some of the page's
    assert set(readme.NOT_RUN) < set(found)
    assert len(found) - len(readme.NOT_RUN) >= 18
    unfinished = [command for command in found if "..." in command or " DIR" in command]
    assert set(unfinished) <= set(readme.NOT_RUN)


def test_examples_are_found_with_what_they_print():
    page = (
        "```python\nprint(1)\n```\n\nprints\n\n```\n1\n```\n\n## Next\n\n"
        "```python\nx = 2\n```\n\n## Last\n\n```\nother\n```\n"
    )
    assert list(readme.examples(page)) == [("print(1)\n", "1\n"), ("x = 2\n", None)]
    found = list(readme.examples(readme.README.read_text()))
    assert len(found) >= 4 and all(printed for _, printed in found)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```python\nprint(1)\n```\n\n```\n2\n```\n", "example 1 prints\n1\ninstead of\n2"),
        ("```python\n1 / 0\n```\n", "example 1 fails"),
        ("| `ranmask certify --data agnews` | |\n", "ranmask certify --data agnews ends with 1"),
        (
            "```python\nimport socket\nsocket.create_connection(('192.0.2.1', 80), 1)\n```\n",
            "README runs offline, and this asked for 192.0.2.1",
        ),
    ],
    ids=["prints", "raises", "fails", "connects"],
)
def test_what_does_not_run_is_told(page, problem, tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    path.write_text(page)
    monkeypatch.setattr(readme, "README", path)
    monkeypatch.setattr(readme, "COMMANDS", path)
    (tmp_path / "folder").mkdir()
    [found] = readme.run(sys.executable, tmp_path / "folder")
    assert problem in found


@pytest.mark.slow
def test_what_readme_shows_runs():
    done = subprocess.run(
        [sys.executable, "-m", "tools.readme"],
        cwd=readme.README.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
