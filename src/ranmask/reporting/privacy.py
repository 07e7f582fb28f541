"""What a record says, without the folders of the machine that it was made on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

# Where a word of a command or of a message begins with a folder; not the middle of an address.
_ABSOLUTE = re.compile(r"""(?<![\w./:~-])/(?:[^\s/'"]+/)+(?=[^\s/'"])""")


def without_folders(value: Any) -> Any:
    """Plain JSON values, with the last part only of every string that is an absolute path."""
    if isinstance(value, Mapping):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_folders(one) for one in value]
    if isinstance(value, str):
        for path in (PurePosixPath(value), PureWindowsPath(value)):
            if path.is_absolute() and path.name:
                return path.name
    return value


def folders_cut(text: str) -> str:
    """A command or a message, with the last part only of every absolute path in it.

    >>> folders_cut("ranmask train --base /home/me/models/minilm --output runs/m")
    'ranmask train --base minilm --output runs/m'
    """
    return _ABSOLUTE.sub("", text)
