"""Pieces of SVG as text, everything escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

# What no XML or UTF-8 file can hold; what moves a terminal; what turns the text around it.
_UNFIT = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
)


def clean(value: str) -> str:
    r"""The text without characters that no file can hold, or that change what stands beside them.

    >>> clean("a\x00b")
    'a�b'
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", value)


def element(name: str, attributes: Mapping[str, str], content: str = "", raw: bool = False) -> str:
    """An element.  ``raw``: the content is SVG (or CSS) already; otherwise it is text."""
    spelt = "".join(f' {key}="{html.escape(clean(value))}"' for key, value in attributes.items())
    if not content:
        return f"<{name}{spelt}/>"
    inner = content if raw else html.escape(clean(content), quote=False)
    return f"<{name}{spelt}>{inner}</{name}>"


def text(content: str, x: float, y: float, name: str, turned: bool = False) -> str:
    """A line of text; ``turned``: read from below."""
    places = {"class": name, "x": number(x), "y": number(y)}
    if turned:
        places["transform"] = f"rotate(-90 {number(x)} {number(y)})"
    return element("text", places, content)


def number(value: float) -> str:
    """A coordinate with one digit, and none where that is 0: the same on every machine.

    >>> number(3.04), number(-0.01), number(2.25)
    ('3', '0', '2.2')
    """
    spelt = f"{value:.1f}".removesuffix(".0")
    return "0" if spelt == "-0" else spelt
