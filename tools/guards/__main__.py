"""Make an environment with LLM Guard and NeMo Guardrails, and run the adapters' tests in it.

    python -m tools.guards [FOLDER]

FOLDER is the environment, about 1.6 GB; made where it is not there, else used as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("llm-guard==0.3.16", "nemoguardrails==0.24.1", "pytest")


def main(folder: Path) -> int:
    """The exit code of the tests."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        torch = re.search(r"^torch==\S+", (ROOT / "constraints.txt").read_text(), re.M)
        assert torch is not None  # pinned: a looser pin may pull several gigabytes
        install = [python, "-m", "pip", "install", "--quiet", torch[0], *PACKAGES, ROOT]
        subprocess.run(list(map(str, install)), check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    # Other packages warn of other packages: that is no error here.
    quietly = ["-o", "filterwarnings=ignore", "-p", "no:cacheprovider"]
    tests = [str(python), "-m", "pytest", "-q", *quietly, "tools/guards/test_real_packages.py"]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-guards")))
