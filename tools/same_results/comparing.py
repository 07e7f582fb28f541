"""Compares two folders of records."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tools.same_results.normal import Table, differences, ignored, normal
from tools.same_results.recording import INDEX

_SHOWN = 300  # characters of a value


def compare(old: Path, new: Path, only: str | None, table: Path, all: bool) -> int:
    """Print what differs; 1 where something does.  Groups that one lacks are named only."""
    known = Table.read(table)
    records = [_read(folder, only, known) for folder in (old, new)]
    groups = [{group for group, _ in cases} for cases in records]
    both = groups[0] & groups[1]
    before, after = ({at: one for at, one in cases.items() if at[0] in both} for cases in records)
    cases = [*before, *(at for at in after if at not in before)]
    different = 0
    for at in cases:
        found = [
            (path, *values)
            for path, *values in differences(before.get(at), after.get(at), "/".join(at))
            if not ignored(path, known)
        ]
        different += bool(found)
        for path, was, now in found if all else found[:1]:
            more = f"  (and {len(found) - 1} more)" if len(found) > 1 and not all else ""
            print(f"{path}{more}\n  old: {_short(was)}\n  new: {_short(now)}")
    print(f"{len(cases)} cases, {len(cases) - different} equal, {different} different")
    for group in sorted(groups[0] ^ groups[1]):
        print(f"not compared, recorded once only: {group}")
    return 1 if different or not cases else 0


def _read(folder: Path, only: str | None, table: Table) -> dict[tuple[str, str], Any]:
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    cases = {}
    for group in index["groups"]:
        if only is None or fnmatchcase(group, only):
            for path in sorted((folder / group).iterdir()):
                record = json.loads(path.read_text(encoding="utf-8"))
                cases[group, record.pop("case")] = normal(record, table, index["names"])
    return cases


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
