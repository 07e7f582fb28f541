"""Runs the notebooks of docs/notebooks, in Jupyter's own kernel.

``python -m tools.notebooks`` writes what the cells print into them; with ``--check`` it compares
instead, and exits with 1 where a notebook prints something else than it shows.  Needs the extra
``docs``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
_SETTINGS = Config(
    {
        "KernelManager": {"transport": "ipc"},  # files as sockets, no ports
        "NotebookClient": {"timeout": 300, "coalesce_streams": True},  # lines come in any packets
    }
)


def ran(path: Path) -> str:
    """A notebook with what its cells print now, as text; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, kernel_name="python3", config=_SETTINGS).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":  # libraries complain there about the notebook they run in
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    """Write the notebooks, or compare them."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    differ = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        now = ran(path)
        if "--check" not in sys.argv:
            path.write_text(now)
        elif now != path.read_text():
            differ.append(path.name)
    if differ:
        sys.exit(
            f"these print something else than they show: {', '.join(differ)}; "
            "python -m tools.notebooks writes them anew"
        )


if __name__ == "__main__":
    main()
