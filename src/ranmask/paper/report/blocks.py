"""What a report is made of, before it is HTML or Markdown: a few neutral blocks.

Sections are written once, as blocks; `report.html` and `report.markdown`
render them.  Text in blocks is plain text: whoever renders it escapes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from ranmask.paper.report.charts import Chart
from ranmask.paper.report.symbols import IN_PROSE
from ranmask.paper.report.tables import Table

Style: TypeAlias = Literal["plain", "strong", "em", "code", "mark"]
_MARKS: dict[str, Style] = {"**": "strong", "*": "em", "`": "code"}
_MARKUP = re.compile(r"(\*\*|\*|`)(.+?)\1")


@dataclass(frozen=True)
class Span:
    """A run of text in one style."""

    text: str
    style: Style = "plain"


Prose: TypeAlias = tuple[Span, ...]


def prose(template: str, **values: object) -> Prose:
    """Text with ``**strong**``, ``*em*`` and `` `code` ``, and values filled in afterwards.

    Signs go by name: ``{beta}`` and the others of `ranmask.paper.report.symbols`.

    Only the template is read for marks: a value is text, whatever is in it.

    >>> prose("**{n}** texts", n="*3*")
    (Span(text='*3*', style='strong'), Span(text=' texts', style='plain'))
    """
    spans: list[Span] = []
    end = 0
    for found in _MARKUP.finditer(template):
        spans.append(Span(template[end : found.start()]))
        spans.append(Span(found[2], _MARKS[found[1]]))
        end = found.end()
    spans.append(Span(template[end:]))
    return tuple(
        Span(span.text.format(**IN_PROSE, **values), span.style) for span in spans if span.text
    )


@dataclass(frozen=True)
class Heading:
    """A heading inside a section; ``level`` 3 or 4."""

    kind: ClassVar[str] = "heading"
    text: str
    level: int = 3


@dataclass(frozen=True)
class Paragraph:
    """Running text.  ``tone``: ``warning`` sets it off as something not to be overlooked."""

    kind: ClassVar[str] = "paragraph"
    spans: Prose
    tone: Literal["plain", "quiet", "warning"] = "plain"


@dataclass(frozen=True)
class Bullets:
    """A list; ``numbered`` where the order matters."""

    kind: ClassVar[str] = "bullets"
    items: tuple[Prose, ...]
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

    kind: ClassVar[str] = "strip"
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Picture:
    """Charts that belong together, one caption.  ``name``: of the files they are written to."""

    kind: ClassVar[str] = "picture"
    name: str
    charts: tuple[Chart, ...]
    caption: Prose


@dataclass(frozen=True)
class Fold:
    """Blocks behind a title, opened by whoever wants them."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Code:
    """Commands, as they were typed."""

    kind: ClassVar[str] = "code"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Copy:
    """One masked copy of a sentence: each word, or None where it is hidden; and its vote.

    ``widths``: how many characters each word has, so that a hidden one keeps its place.
    """

    shown: tuple[str | None, ...]
    widths: tuple[int, ...]
    vote: str
    agrees: bool


@dataclass(frozen=True)
class Share:
    """A part of a tally: so many copies voted so."""

    label: str
    votes: int
    wins: bool


@dataclass(frozen=True)
class Example:
    """A sentence, some of its masked copies with their votes, the tally, and what is proved.

    ``critical`` words are marked in the sentence.  ``about``: which copies these are.
    """

    kind: ClassVar[str] = "example"
    words: tuple[str, ...]
    critical: frozenset[int]
    copies: tuple[Copy, ...]
    tally: tuple[Share, ...]
    verdict: Prose
    about: str = ""


Block: TypeAlias = Heading | Paragraph | Bullets | Strip | Table | Picture | Fold | Code | Example


@dataclass(frozen=True)
class Section:
    """A part of the report with a title and an address."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """The whole: a title, one sentence, and sections."""

    title: str
    summary: Prose
    sections: tuple[Section, ...]
