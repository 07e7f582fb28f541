"""Marks on a chart: lines, and one shape of marker for each look."""

from __future__ import annotations

from ranmask.paper.report.svg import element, number

LOOKS = 6
"""Series looks that the style sheet has; a seventh series looks like the first."""

_RADIUS = 3.6


def line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    """A straight line; ``name``: its class."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    places = {key: number(value) for key, value in ends.items()}
    return element("line", {"class": name, **places})


def marker(x: float, y: float, look: int) -> str:
    """Round, square, triangle, diamond, cross, plus: one for each look."""
    r = _RADIUS
    shape = (look - 1) % LOOKS
    if shape == 0:
        place = {"cx": number(x), "cy": number(y), "r": number(r)}
        return element("circle", {"class": "marker", **place})
    outlines = {
        1: [(-r, -r), (r, -r), (r, r), (-r, r)],
        2: [(0, -r * 1.3), (r * 1.2, r), (-r * 1.2, r)],
        3: [(0, -r * 1.4), (r * 1.4, 0), (0, r * 1.4), (-r * 1.4, 0)],
    }
    if shape in outlines:
        corners = " ".join(f"{number(x + a)},{number(y + b)}" for a, b in outlines[shape])
        return element("polygon", {"class": "marker", "points": corners})
    if shape == 4:
        strokes = f"M{number(x - r)} {number(y - r)}L{number(x + r)} {number(y + r)}"
        strokes += f"M{number(x - r)} {number(y + r)}L{number(x + r)} {number(y - r)}"
    else:
        strokes = f"M{number(x - r)} {number(y)}L{number(x + r)} {number(y)}"
        strokes += f"M{number(x)} {number(y - r)}L{number(x)} {number(y + r)}"
    return element("path", {"class": "marker open", "d": strokes})
