"""Runs the notebooks of docs/notebooks, in Jupyter's own kernel.

``python -m tools.notebooks`` writes what the cells print into them; with ``--check`` it compares
instead, and exits with 1 where a notebook prints something else than it shows.  Needs the extra
``docs``.
"""

from __future__ import annotations

import os
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
_KERNEL = Config({"KernelManager": {"transport": "ipc"}})  # files as sockets, no ports


def ran(path: Path) -> str:
    """A notebook with what its cells print now, as text; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", config=_KERNEL).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = _printed(cell.outputs)
    notebook.metadata.language_info = {"name": "python"}
    return nbformat.writes(notebook) + "\n"


def _printed(outputs: list[Any]) -> list[Any]:
    """What a cell prints, as one output, though it came in any packets.

    Not what is on stderr: there libraries complain about the notebook that they run in.
    """
    text = "".join(output.text for output in outputs if output.get("name") == "stdout")
    return [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []


def main() -> None:
    """Write the notebooks, or compare them."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    differ = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        now, stored = ran(path), path.read_text()
        if "--check" not in sys.argv:
            path.write_text(now)
        else:
            differ += unified_diff(stored.split("\n"), now.split("\n"), path.name, "now", n=1)
    if differ:
        sys.exit("\n".join([*differ, "python -m tools.notebooks writes them anew"]))


if __name__ == "__main__":
    main()
