"""What the measurements share."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from ranmask import data

REPOSITORY = Path(__file__).resolve().parent.parent


class Skipped(Exception):  # noqa: N818  # not an error: what it measures is not there
    """Something that a measurement needs is absent; the message says what."""


def data_folder() -> Path:
    """The datasets, where `ranmask.data` finds them."""
    folder = data.data_folder()
    if folder is None:
        raise Skipped("there are no datasets: set RANMASK_DATA to the folder that holds them")
    return folder


def machine() -> str:
    """The processor in words."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    return f"{platform.processor()}, {os.cpu_count()} cores"
