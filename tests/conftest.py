"""Rules for all tests: the same cases again in CI, no data but for `realdata`, no silent skips.

``--may-skip gpu,realdata`` names the markers whose tests may be skipped: skipping any other is
then a failure.
"""

import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# Workers share the cores, so each, and whatever it starts, takes one; read as torch is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: timings belong in benchmarks, and a busy machine must not fail a test.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

REAL_DATA = Path(__file__).parent / "realdata"
PLACES = ("RANMASK_DATA", "NLTK_DATA")
NOWHERE, HERE = pytest.StashKey(), pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption(
        "--may-skip",
        metavar="MARKERS",
        help="gpu,realdata: only tests with one of these markers may be skipped",
    )


def pytest_configure(config):
    config.stash[NOWHERE] = tempfile.TemporaryDirectory(prefix="no-data-")


def pytest_unconfigure(config):
    config.stash[NOWHERE].cleanup()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (line := skipped_line(reporter.stats.get("skipped", []))):
        reporter.write_line(line)


def pytest_collection_modifyitems(items):
    for item in items:
        if REAL_DATA in item.path.parents:
            item.add_marker("realdata")


def pytest_collection_finish(session):
    """From here on only `realdata` finds the data: others must pass in every clone."""
    session.config.stash[HERE] = {name: os.environ.get(name) for name in PLACES}
    os.environ.update(dict.fromkeys(PLACES, session.config.stash[NOWHERE].name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if item.get_closest_marker("realdata") is None:
        return (yield)
    hidden = {name: os.environ[name] for name in PLACES}
    for name, value in item.config.stash[HERE].items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
    try:
        return (yield)
    finally:
        os.environ.update(hidden)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if not hasattr(report, "wasxfail"):
        refuse_skip(report, item.config, [mark.name for mark in item.iter_markers()])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A module that skips itself as it is imported is never a test with a marker."""
    report = yield
    refuse_skip(report, collector.config, [])
    return report


def refuse_skip(report, config, markers):
    allowed = config.getoption("may_skip")
    if report.skipped and allowed is not None and not set(allowed.split(",")) & set(markers):
        report.outcome = "failed"
        report.longrepr = f"skipped, which only {allowed} may be: {reason(report)}"


def reason(report):
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")


def skipped_line(reports):
    """What was skipped and why, in a line; None where nothing was."""
    counts = Counter(reason(report) for report in reports)
    shown = "; ".join(f"{count} ({why})" for why, count in counts.most_common())
    return f"skipped: {shown}" if counts else None


@pytest.fixture(autouse=True)
def forgotten_modules(tmp_path_factory):
    """What a test wrote and imported is gone after it: another may call a module the same."""
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__dict__", {}).get("__file__")).startswith(written):
            del sys.modules[name]
