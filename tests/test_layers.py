"""A package imports only from layers below its own and has no cycle; mathematics stays pure."""

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import ranmask

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.layers_picture import (  # noqa: E402
    LAYERS,
    PICTURE,
    SOURCE,
    imports,
    modules,
    package_of,
    picture,
)

LAYER_OF = {package: number for number, packages in enumerate(LAYERS, 1) for package in packages}
HEAVY = {"torch", "transformers", "pyarrow", "cyclopts", "rich"}
MODULES = modules()
PURE = {
    *("errors", "metrics", "certificates", "evaluation.intervals"),
    *(f"paper.{name}" for name in ("published", "divergence", "headlines", "risk")),
}
"""Modules, and packages, of mathematics."""


def is_pure(name):
    return any(f"{name}.".startswith(f"ranmask.{pure}.") for pure in PURE)


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name):
    package = package_of(name)
    assert package in LAYER_OF, f"{package} : add it to LAYERS of tools/layers_picture.py"
    for one in imports(MODULES[name]):
        below = package_of(one)
        if below not in (None, package):
            assert LAYER_OF[below] < LAYER_OF[package], f"{name} imports {one}"


@pytest.mark.parametrize("package", LAYER_OF)
def test_no_cycle_inside_a_package(package):
    """Over all imports: also those inside functions, and those for types alone."""
    inside = {name: set() for name in MODULES if package_of(name) == package}
    for name, found in inside.items():
        for one in imports(MODULES[name]):
            owner = one if one in inside else one.rpartition(".")[0]
            if owner in inside and owner != name:
                found.add(owner)
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_few_things_at_the_top():
    entries = {path.name for path in SOURCE.iterdir()} - {"__pycache__"}
    assert {name.removesuffix(".py") for name in entries} - LAYER_OF.keys() == {
        "__init__",
        "__main__",
        "py.typed",
    }
    assert len(entries) <= 19 and len(LAYERS) <= 8


def test_the_picture_is_up_to_date():
    assert PICTURE.read_text() == picture(), "run python -m tools.layers_picture"


def test_the_table_is_up_to_date():
    rows = re.findall(r"^\| (\d) \| (.+?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    told = {int(layer): set(re.findall(r"`(\w+)/?`", packages)) for layer, packages in rows}
    assert told == {number: set(packages) for number, packages in enumerate(LAYERS, 1)}


@pytest.mark.parametrize("name", list(filter(is_pure, MODULES)))
def test_mathematics_knows_no_models_or_texts(name):
    roots = {one.split(".")[0] for one in imports(MODULES[name])}
    assert not roots & HEAVY


def test_all_mathematics_is_looked_at():
    for pure in PURE:
        assert f"ranmask.{pure}" in MODULES


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
