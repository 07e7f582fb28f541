"""Pieces of SVG as text, everything escaped."""

from __future__ import annotations

import html
import re

LOOKS = 6
"""Series looks that the style sheet has; a seventh series looks like the first."""

# What no XML or UTF-8 file can hold; what moves a terminal; what turns the text around it.
_UNFIT = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
)
_R = 3.6  # half the width of a marker
_OUTLINES = {
    1: [(-_R, -_R), (_R, -_R), (_R, _R), (-_R, _R)],
    2: [(0, -_R * 1.3), (_R * 1.2, _R), (-_R * 1.2, _R)],
    3: [(0, -_R * 1.4), (_R * 1.4, 0), (0, _R * 1.4), (-_R * 1.4, 0)],
}
_STROKES = {
    4: [(-_R, -_R, _R, _R), (-_R, _R, _R, -_R)],
    5: [(-_R, 0, _R, 0), (0, -_R, 0, _R)],
}


def clean(value: str) -> str:
    r"""The text without characters that no file can hold, or that change what stands beside them.

    >>> clean("a\x00b")
    'a�b'
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", value)


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """An element around SVG or CSS, which is escaped already.

    ``class_`` is written ``class``, ``aria_label`` is written ``aria-label``.
    """
    spelt = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
    )
    return f"<{tag}{spelt}>{content}</{tag}>" if content else f"<{tag}{spelt}/>"


def escaped(value: str) -> str:
    """Text between two tags."""
    return html.escape(clean(value), quote=False)


def text(content: str, x: float, y: float, name: str, turned: bool = False) -> str:
    """A line of text; ``name``: its class; ``turned``: read from below."""
    turn = {"transform": f"rotate(-90 {number(x)} {number(y)})"} if turned else {}
    return element("text", escaped(content), class_=name, x=x, y=y, **turn)


def line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    """A straight line; ``name``: its class."""
    return element("line", class_=name, x1=x1, y1=y1, x2=x2, y2=y2)


def marker(x: float, y: float, look: int) -> str:
    """Round, square, triangle, diamond, cross, plus: one for each look."""
    shape = (look - 1) % LOOKS
    if shape in _OUTLINES:
        corners = [(x + right, y + down) for right, down in _OUTLINES[shape]]
        return element("polygon", class_="marker", points=points(corners))
    if shape in _STROKES:
        strokes = "".join(
            f"M{number(x + a)} {number(y + b)}L{number(x + c)} {number(y + d)}"
            for a, b, c, d in _STROKES[shape]
        )
        return element("path", class_="marker open", d=strokes)
    return element("circle", class_="marker", cx=x, cy=y, r=_R)


def points(corners: list[tuple[float, float]]) -> str:
    """Corners of an outline."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in corners)


def number(value: float) -> str:
    """A coordinate with one digit, and none where that is 0: the same on every machine.

    >>> number(3.04), number(-0.01), number(2.25)
    ('3', '0', '2.2')
    """
    spelt = f"{value:.1f}".removesuffix(".0")
    return "0" if spelt == "-0" else spelt


def _attribute(value: str | float) -> str:
    return html.escape(clean(value)) if isinstance(value, str) else number(value)
