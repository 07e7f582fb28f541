"""A module imports only from floors at or below its own, and the ground floor stays pure."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ranmask

SOURCE = Path(ranmask.__file__).parent

FLOORS = [
    {"errors", "interrupting"},
    {"families", "published", "divergence", "output_files"},
    {"certificates", "metrics", "roc", "headlines"},
    {"words", "spelling", "risk", "intervals", "class_figures"},
    {"synonyms"},
    {"classifiers", "results"},
    {"voting", "interface"},
    {"options"},
    {"certifying", "voters", "polling"},
    {"smoothing", "synonym_smoothing", "margins"},
    {"cascade", "betas"},
    {"data", "loading"},
    {"corpora"},
    {"runs", "training", "resources"},
    {"tuning", "attacks", "sharding"},
    {"tuning_file", "frontier_plot", "attack_runs", "attacked", "cascade_report"},
    {"defences", "reproduction"},
    {"reporting"},
    {"paired_figures", "serving"},
    {"comparing"},
    {
        *("rendering", "attack_rendering", "cascade_rendering", "training_log", "progress"),
        *("cli_options", "cli_inputs", "cli_training_options", "cli_attack_options"),
        *("cli_supplies", "comparison_rendering", "reproduction_display"),
    },
    {"cli_defences", "cli_models", "cli_running", "cli_sharding"},
    {
        *("cli_training", "cli_tuning", "cli_attack", "cli_cascade", "cli_certify", "cli_beta"),
        *("cli_reproduce", "cli_report", "cli_compare", "cli_serve", "cli_runs"),
    },
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
HEAVY = {"torch", "transformers", "pyarrow", "typer", "rich"}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """Full names of everything imported, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path):
    room = room_of(path)
    assert room in FLOOR_OF, f"{room} has no floor: add it to FLOORS"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "ranmask" and parts[1] != "__version__" and parts[1] != room:
            assert FLOOR_OF[parts[1]] < FLOOR_OF[room], f"{room} imports {name}"


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in MODULES
        if room_of(path)
        in {
            *("errors", "families", "certificates", "metrics", "roc"),
            *("published", "divergence", "headlines", "risk", "intervals"),
        }
    ],
    ids=lambda path: path.stem,
)
def test_mathematics_knows_no_models_or_texts(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & HEAVY


def test_import_is_light():
    code = "import sys, ranmask; assert not {'numpy', 'torch', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_certifying_a_function_needs_no_torch():
    code = (
        "import sys\nfrom ranmask import SmoothedClassifier\n"
        "SmoothedClassifier(lambda t: [[1, 0]] * len(t), keep=1).certify(['a b c'])\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names():
    for name in ranmask.__all__:
        assert getattr(ranmask, name) is not None
    assert set(ranmask._HOMES) | {"__version__"} == set(ranmask.__all__) == set(dir(ranmask))
    with pytest.raises(AttributeError, match="nothing"):
        _ = ranmask.nothing
