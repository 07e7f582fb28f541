"""Where a file can be written: told before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from ranmask.errors import OutputError

_STREAMS = ("-", "/dev/stdout", "/dev/stderr")  # regular files where a shell redirects them


def check_file(path: Path) -> None:
    """Raise where ``path`` is no place for a file that is written, and perhaps read again."""
    try:
        if path.is_dir():
            problem = "it is a folder; give the name of a file"
        elif str(path) in _STREAMS or (path.exists() and not path.is_file()):
            problem = "it is no ordinary file, and could not be read again; give another name"
        elif not path.resolve().parent.is_dir():
            problem = f"there is no folder {path.resolve().parent}; make it first"
        elif not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
            problem = "permission denied"
        else:
            return
    except OSError as error:  # a name that is too long, a folder that may not be searched
        problem = error.strerror or str(error)
    raise OutputError(f"cannot write {path}: {problem}")
