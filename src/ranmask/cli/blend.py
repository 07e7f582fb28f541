"""``ranmask blend``: parse, call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranmask.cli.terminal import say


def blend(
    *parts: Annotated[
        str, Parameter(required=True, help="Folders of two or more models of the same classes.")
    ],
    output: Annotated[Path, Parameter(help="Folder for the blend.")],
) -> None:
    """Make one classifier of several: the mean of their scores, certified as one."""
    from ranmask.smoothing.store import blend_folders

    blend_folders(parts, output)
    say(f"{output}: {len(parts)} parts")
