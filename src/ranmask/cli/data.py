"""``ranmask data``: the corpora that are known by name, where they are, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranmask.cli.terminal import AsJson, say, tame_libraries
from ranmask.data.inventory import download, holding
from ranmask.data.known import KNOWN
from ranmask.data.origins import how_to_get
from ranmask.errors import DataError

Name = Annotated[str, Parameter(help="Name of a corpus, as in `ranmask data list`.")]


def list(*, as_json: AsJson = False) -> None:
    """List the corpora known by name: where each is, and how to get those that are not here."""
    for found in map(holding, KNOWN):
        if as_json:
            print(json.dumps(found.to_dict()))
        elif found.place is None:
            print(f"{found.name:<12}  not here: {_advice(found.name)}")
        elif found.missing:
            print(f"{found.name:<12}  {found.place}, without {', '.join(found.missing)}")
        else:
            print(f"{found.name:<12}  {found.place}{', with ranmask' * found.shipped}")


def get(
    name: Name,
    /,
    *,
    folder: Annotated[
        Path | None,
        Parameter(help="Data folder to write to. [default: RANMASK_DATA]", show_default=False),
    ] = None,
) -> None:
    """Get a corpus from the Hugging Face hub: its files, in the data folder.

    This needs pip install 'ranmask[datasets]' and a network.  A corpus that is here is left alone.
    """
    tame_libraries()

    found = holding(name)
    if folder is None and found.place is not None and not found.missing:
        say(f"{name} is here already")
        print(found.place)
        return
    place = download(name, folder)
    if folder is not None:
        say(f"set RANMASK_DATA={folder} to have it read")
    print(place)


def path(name: Name, /) -> None:
    """Print where a corpus is: its folder, or the file that comes with ranmask."""
    found = holding(name)
    if found.place is None:
        raise DataError(f"{name} is not here: {_advice(name)}")
    if found.missing:
        raise DataError(f"{found.place} has no {', '.join(found.missing)}: {_advice(name)}")
    print(found.place)


def _advice(name: str) -> str:
    own = how_to_get(name)
    return f"{own}; or: ranmask data get {name}" if KNOWN[name].hub else own
