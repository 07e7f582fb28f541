"""Run all measurements and write docs/performance.md: ``make bench``.

``python -m benchmarks --quick`` takes fewer texts and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
from typing import Any

from benchmarks import (
    attacks,
    encoder,
    job_priority,
    protect_speed,
    search,
    service,
    shipped,
    streaming,
    table,
    where,
)
from benchmarks.report import PAGE, RESULTS, performance_page
from benchmarks.settings import Skipped, machine

PARTS = {
    "search": search,
    "streaming": streaming,
    "encoder": encoder,
    "protect": protect_speed,
    "shipped": shipped,
    "table": table,
    "where": where,
    "attacks": attacks,
    "service": service,
    "jobs": job_priority,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer texts; writes nothing")
    parser.add_argument("--only", choices=PARTS, action="append", help="run only this part again")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "versions": _versions()}
    for name in arguments.only or PARTS:
        print(name, flush=True)
        try:
            results[name] = PARTS[name].run(arguments.quick)
        except Skipped as reason:
            print(f"  skipped: {reason}")
            results[name] = {"skipped": str(reason)}
    print(json.dumps(results, indent=2))
    if not arguments.quick:
        if arguments.only:  # the other parts stay as they were measured
            results = {**json.loads(RESULTS.read_text()), **{k: results[k] for k in arguments.only}}
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        PAGE.write_text(performance_page(results))


def _versions() -> dict[str, str]:
    import numpy
    import torch
    import transformers

    import ranmask

    return {
        "python": platform.python_version(),
        "ranmask": ranmask.__version__,
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


if __name__ == "__main__":
    main()
