"""A run over rows, from its input to its summary: into one file, or into a folder of shards.

Results are written as they come.  The same call again goes on after the last row that is complete;
other options, another model or another input are refused.  A killed run loses at most the rows
that were being worked on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from ranmask.data.rows import RowSource
from ranmask.runs.result_file import ResultFile, check_result_file
from ranmask.runs.shards.folder import check_folder
from ranmask.runs.shards.run import Sharding, run_shards
from ranmask.runs.task import RunEvents, Summary, Task, class_ids

MakeTask: TypeAlias = Callable[[], Task]
"""Loads the model.  For shards it is called in each worker, and must be picklable."""


def run(
    make: MakeTask,
    source: RowSource,
    output: Path,
    *,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> Summary | None:
    """Work on every row and write the results to ``output``.

    Returns their summary; None for shards, whose folder is summarised by whoever knows its results.
    The place of the output is checked before the model is loaded.
    """
    told = events or RunEvents()
    checked = functools.partial(_checked, make, source.label_names)
    if sharding is not None:
        check_folder(output)
        run_shards(checked, source, output, sharding, told)
        return None
    check_result_file(output)
    task = checked()
    summary = task.summary()
    description = {**task.description(), "input": source.description}
    with ResultFile(output, description) as results:
        summary.add(results.lines())
        told.started(source.total, results.rows)
        todo = (row for row in source.rows if row.number > results.done)
        new = False
        for lines in task.groups(todo, results, told):
            results.write(lines)
            summary.add(lines)
            new = True
        if new or not results.finished:
            results.finish({**summary.values(), **task.effort()})
    return summary


def _checked(make: MakeTask, label_names: Sequence[str] | None) -> Task:
    """The task; classes of the data that the model does not know are told before the first row."""
    task = make()
    if label_names:
        class_ids(label_names, task.labels)
    return task
