"""The layers of ``src/ranmask`` and which package imports which, as a picture: ``docs/layers.svg``.

``python -m tools.layers_picture`` draws it anew; ``tests/test_layers.py`` says when that is due.
An arrow that follows from others is left out: what imports `attacks` may import what is below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ranmask"
PICTURE = ROOT / "docs" / "layers.svg"

LAYERS = (
    {"errors": 2.5},
    {"certificates": 0.5, "words": 1.8, "results": 3, "metrics": 4.1},
    {"options": 0.25, "models": 1.5, "data": 4.6},
    {"smoothing": 1.5, "runs": 3.5},
    {"attacks": 2.5},
    {"evaluation": 1, "training": 2.5},
    {"paper": 1, "serving": 4},
    {"cli": 2.5},
)
"""From the lowest up, the packages of each layer with their columns in the picture."""

_COLUMN, _LAYER, _WIDE, _HIGH, _MARGIN = 130, 74, 104, 34, 60
_STYLE = (
    "text{font:14px sans-serif;text-anchor:middle}.layer{fill:#777;font-size:12px}"
    "rect.package{fill:#eef3fa;stroke:#3b6ea5}path{stroke:#3b6ea5;fill:none}"
)
_ARROWHEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0,0 8,4 0,8z" style="fill:#3b6ea5;stroke:none"/></marker>'
)


def modules() -> dict[str, Path]:
    """Every module but ``ranmask`` itself and ``python -m ranmask``, by its full name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found["ranmask"], found["ranmask.__main__"]
    return found


def imports(path: Path) -> Iterator[str]:
    """Full names of everything imported: at the top, inside a function, for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(name: str) -> str | None:
    """The package that a full name belongs to; None outside ``ranmask``."""
    top, *rest = name.split(".")
    return rest[0] if top == "ranmask" and rest and rest[0] != "__version__" else None


def packages() -> dict[str, set[str]]:
    """Each package with the packages that it imports from."""
    below: dict[str, set[str]] = {package: set() for layer in LAYERS for package in layer}
    for name, path in modules().items():
        found = {package for one in imports(path) if (package := package_of(one)) is not None}
        below[package_of(name)] |= found - {package_of(name)}
    return below


def arrows() -> list[tuple[str, str]]:
    """Pairs of packages of which the first imports the second, and no package between them does."""
    below = packages()
    reached: dict[str, set[str]] = {}
    for layer in LAYERS:  # from the lowest up, so that what is below is known
        for package in layer:
            reached[package] = below[package].union(*(reached[one] for one in below[package]))
    return [
        (package, one)
        for package in below
        for one in sorted(below[package])
        if not any(one in reached[between] for between in below[package])
    ]


def picture() -> str:
    """The layers as SVG."""
    places = {
        package: (_MARGIN + _WIDE / 2 + column * _COLUMN, (len(LAYERS) - layer - 0.5) * _LAYER)
        for layer, found in enumerate(LAYERS)
        for package, column in found.items()
    }
    width, height = _MARGIN + 5 * _COLUMN + _WIDE, len(LAYERS) * _LAYER
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        "<title>The packages of ranmask: each imports from those below it</title>",
        f"<style>{_STYLE}</style>{_ARROWHEAD}",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for package, one in arrows():
        (x, y), (to_x, to_y) = places[package], places[one]
        start, end = y + _HIGH / 2, to_y - _HIGH / 2
        lines.append(f'<path d="M{x:g},{start:g} {to_x:g},{end:g}" marker-end="url(#head)"/>')
    for number in range(len(LAYERS)):
        y = (len(LAYERS) - number - 0.5) * _LAYER
        lines.append(f'<text class="layer" x="{_MARGIN / 2:g}" y="{y + 4:g}">{number + 1}</text>')
    for package, (x, y) in places.items():
        corner = f'x="{x - _WIDE / 2:g}" y="{y - _HIGH / 2:g}"'
        lines.append(f'<rect class="package" {corner} width="{_WIDE}" height="{_HIGH}" rx="5"/>')
        lines.append(f'<text x="{x:g}" y="{y + 5:g}">{package}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
