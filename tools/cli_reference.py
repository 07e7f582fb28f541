"""Writes docs/reference/cli.md, the reference of all commands, from the commands themselves."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

from ranmask.cli.main import PURPOSES, command_line

PAGE = Path(__file__).parents[1] / "docs/reference/cli.md"
_HEAD = """\
# Commands

<!-- Written by `python -m tools.cli_reference`; a test compares. -->

`ranmask COMMAND --help` prints the same.
"""


def page() -> str:
    """The page: what ``--help`` says of each command, as Markdown."""
    app = command_line()
    with patch("sys.argv", ["ranmask"]):  # usage lines name the running program
        shown = app.generate_docs(output_format="markdown")
    start = shown.index(
        f"**{next(iter(PURPOSES))}**:"
    )  # after a title and contents, which the site has
    return f"{_HEAD}\n{app.help_epilogue}\n\n{_with_anchors(shown[start:].strip())}\n"


def _with_anchors(page: str) -> str:
    """The page, its links as headings are linked to: the generator runs hyphens together."""
    for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE):
        anchor = heading.lower().replace(" ", "-")
        page = page.replace(f"(#{re.sub('-+', '-', anchor)})", f"(#{anchor})")
    return page


if __name__ == "__main__":
    PAGE.write_text(page())
