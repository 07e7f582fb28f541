"""``ranmask compare``: parse, call, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranmask.cli.terminal import AsJson
from ranmask.paper.reading import read

_WHAT = (
    "Folder of `ranmask reproduce`, condensed file of `ranmask report`, or a result file of "
    "`ranmask certify`, `attack` or `predict`."
)


def compare(
    a: Annotated[Path, Parameter(help=_WHAT)],
    b: Annotated[Path, Parameter(help="Another one, over the same texts.")],
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two runs over the same texts, with paired tests.

    Every figure has a test, adjusted for how many there are.  No model is loaded.  To compare
    two methods of one reproduction, give two of its result files.

    Example: ranmask compare one.jsonl other.jsonl
    """
    from ranmask.paper import comparing

    comparison = comparing.compare(read(a), read(b))
    if as_json:
        print(json.dumps(comparison.to_dict()))
        return
    from rich.console import Console

    from ranmask.cli.compare_printing import markdown, print_comparison

    if sys.stdout.isatty():
        print_comparison(Console(), comparison)
    else:
        print(markdown(comparison), end="")
