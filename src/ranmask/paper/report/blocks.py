"""What a report is made of, before it is HTML or Markdown: a few neutral blocks.

Text in blocks is plain text: whoever renders it escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Literal, TypeAlias

from ranmask.paper.report.charts import Chart
from ranmask.paper.report.tables import Table

Style: TypeAlias = Literal["plain", "strong", "em", "code"]
Tone: TypeAlias = Literal["plain", "quiet", "warning"]
_MARKS: dict[str, Style] = {"**": "strong", "*": "em", "`": "code"}
_MARKUP = re.compile(r"(\*\*|\*|`)(.+?)\1")
_TONES: dict[str, Tone] = {"~": "quiet", ">": "warning"}


@dataclass(frozen=True)
class Span:
    """A run of text in one style."""

    text: str
    style: Style = "plain"


Prose: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section; ``level`` 3 or 4."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Paragraph:
    """Running text.  ``tone``: ``warning`` sets it off as something not to be overlooked."""

    spans: Prose
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bullets:
    """A list; ``numbered`` where the order matters."""

    items: Sequence[Prose]
    numbered: bool = False


@dataclass(frozen=True)
class Tile:
    """One main figure: the number, what it is, and how sure it is."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Strip:
    """A few main figures side by side."""

    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Picture:
    """Charts that belong together, one caption.  ``name``: of the files they are written to."""

    name: str
    charts: Sequence[Chart]
    caption: Prose


@dataclass(frozen=True)
class Fold:
    """Blocks behind a title, opened by whoever wants them."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Code:
    """Commands, as they were typed."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Copy:
    """One masked copy of a sentence: the places of the words that it shows, and its vote."""

    kept: frozenset[int]
    vote: str
    agrees: bool


@dataclass(frozen=True)
class Example:
    """A sentence, some of its masked copies with their votes, the tally, and what is proved.

    ``critical`` words are marked in the sentence.  ``tally``: labels with their votes, and whether
    they win.  ``about``: which copies these are.
    """

    words: Sequence[str]
    critical: frozenset[int]
    copies: Sequence[Copy]
    tally: Sequence[tuple[str, int, bool]]
    verdict: Prose
    about: str = ""


Block: TypeAlias = Heading | Paragraph | Bullets | Strip | Table | Picture | Fold | Code | Example


@dataclass(frozen=True)
class Section:
    """A part of the report with a title and an address."""

    title: str
    anchor: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """The whole: a title, one sentence, and sections."""

    title: str
    summary: Prose
    sections: Sequence[Section]


def prose(template: str, **values: object) -> Prose:
    """Text with ``**strong**``, ``*em*`` and `` `code` ``, and values filled in afterwards.

    Only the template is read for marks: a value is text, whatever is in it.

    >>> prose("**{n}** texts", n="*3*")
    (Span(text='*3*', style='strong'), Span(text=' texts', style='plain'))
    """
    template = re.sub(r"\s+", " ", template)
    spans: list[Span] = []
    end = 0
    for found in _MARKUP.finditer(template):
        spans += [Span(template[end : found.start()]), Span(found[2], _MARKS[found[1]])]
        end = found.end()
    spans.append(Span(template[end:]))
    return tuple(Span(span.text.format(**values), span.style) for span in spans if span.text)


def text(template: str, **values: object) -> list[Block]:
    """Blocks from a little Markdown, with an empty line between them; values as in `prose`.

    ``### `` begins a heading, ``- `` and ``1. `` the items of a list, ``> `` a warning, ``~ `` a
    quiet paragraph; anything else is a paragraph.

    >>> text('''
    ...     ### Texts
    ...
    ...     - **{n}** texts
    ...     ''', n=3)[0]
    Heading(text='Texts', level=3)
    """
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", dedent(template).strip()):
        mark, _, rest = part.partition(" ")
        if mark in ("###", "####"):
            blocks.append(Heading(rest, len(mark)))
        elif mark in ("-", "1."):
            items = f"\n{part}".split(f"\n{mark} ")[1:]
            blocks.append(Bullets([prose(item, **values) for item in items], mark == "1."))
        elif mark in _TONES:
            blocks.append(Paragraph(prose(rest, **values), _TONES[mark]))
        else:
            blocks.append(Paragraph(prose(part, **values)))
    return blocks
