"""Write tests/data/report again: made-up results, and the report that they give.

    python -m tools.report_fixture            # expected.html and expected.md only
    python -m tools.report_fixture --results  # the made-up results too

No figure in them was measured; the radii follow from made-up votes by the real certificates.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ranmask.paper.reading import read_several, write
from ranmask.paper.report.html import render as html
from ranmask.paper.report.markdown import render as markdown
from ranmask.paper.report.page import build
from tools.report_fixture.made_up import reproductions

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "report"
TITLE = "Made-up results, for tests"


def main(arguments: list[str]) -> None:
    """Rewrite the stored report, and with ``--results`` what it is made of."""
    if arguments not in ([], ["--results"]):
        raise SystemExit(__doc__)
    if arguments:
        for number, one in enumerate(reproductions(), 1):
            write(one, FOLDER / f"{number}-{one.name}.json")
    made = build(read_several(sorted(FOLDER.glob("*.json"))), TITLE)
    (FOLDER / "expected.html").write_text(html(made), encoding="utf-8", newline="\n")
    (FOLDER / "expected.md").write_text(markdown(made), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
