"""The command line: record, compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.same_results import __doc__ as about
from tools.same_results.comparing import compare
from tools.same_results.normal import TABLE
from tools.same_results.recording import record


def main(arguments: list[str]) -> int:
    """Exit code 1 where something differs."""
    parser = argparse.ArgumentParser(
        "python -m tools.same_results",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, dest="command")
    recording = commands.add_parser("record", help="run the cases, and write what they give")
    recording.add_argument("--python", default=sys.executable, help="with ranmask's dependencies")
    recording.add_argument("--source", type=Path, required=True, help="folder that holds ranmask")
    recording.add_argument("--out", type=Path, required=True, help="folder for the records")
    recording.add_argument("--names", choices=("old", "new"), default="old", help="of options")
    recording.add_argument("--only", metavar="PATTERN", help="only groups that match it")
    recording.add_argument("--long", action="store_true", help="also the slowest recipes")
    recording.add_argument("--jobs", type=int, default=1, help="groups at once")
    comparing = commands.add_parser("compare", help="say what differs")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--only", metavar="PATTERN", help="only groups that match it")
    comparing.add_argument("--table", type=Path, default=TABLE, help="renamed.toml")
    comparing.add_argument("--all", action="store_true", help="every path that differs")
    given = vars(parser.parse_args(arguments))
    if given.pop("command") == "compare":
        return compare(**given)
    record(**given)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
