"""A report as Markdown: the same blocks; charts as files beside it, where a folder was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Code,
    Copy,
    Example,
    Fold,
    Heading,
    Paragraph,
    Picture,
    Prose,
    Report,
    Span,
    Strip,
)
from ranmask.paper.report.charts import standalone
from ranmask.paper.report.svg import clean
from ranmask.paper.report.symbols import HIDDEN
from ranmask.paper.report.tables import Cell, Column, Table

# Whatever Markdown or HTML inside Markdown could read as a mark.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")
_WORDS = {"strong": "**", "em": "*", "mark": "**"}
_FENCE = re.compile(r"`{3,}")


def render(report: Report, pictures: PurePath | None = None) -> str:
    """The text.  ``pictures``: the folder of the charts, as seen from where the text will be."""
    shown = None if pictures is None else _Shown(pictures, _file_names(report))
    parts = [f"# {escape(report.title)}", _spans(report.summary)]
    parts.append(
        "\n".join(f"- [{escape(one.title)}](#{_address(one.title)})" for one in report.sections)
    )
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        for block in section.blocks:
            parts += _block(block, shown)
    return "\n\n".join(parts) + "\n"


def picture_files(report: Report) -> dict[str, str]:
    """Every chart of the report as a file: names and contents."""
    return {
        name: standalone(chart)
        for picture, names in _file_names(report)
        for name, chart in zip(names, picture.charts, strict=True)
    }


def escape(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(escape("a*b <i>"))
    a\*b \<i\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(clean(text).split()))


@dataclass(frozen=True)
class _Shown:
    """Where the charts are, and what their files are called."""

    folder: PurePath
    names: list[tuple[Picture, list[str]]]

    def of(self, picture: Picture) -> list[str]:
        return next(names for one, names in self.names if one is picture)


def _block(block: Block, pictures: _Shown | None) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {escape(block.text)}"
        case Paragraph():
            shown = _spans(block.spans)
            yield f"> {shown}" if block.tone == "warning" else shown
        case Bullets():
            marks = [
                f"{place}." if block.numbered else "-" for place in range(1, len(block.items) + 1)
            ]
            yield "\n".join(
                f"{mark} {_spans(item)}" for mark, item in zip(marks, block.items, strict=True)
            )
        case Strip():
            rows = [
                f"- **{escape(tile.value)}** {escape(tile.label)}"
                + (f" ({escape(tile.note)})" if tile.note else "")
                for tile in block.tiles
            ]
            yield "\n".join(rows)
        case Table():
            yield from _table(block)
        case Picture():
            yield from _picture(block, pictures)
        case Fold():
            yield f"**{escape(block.title)}**"
            for inner in block.blocks:
                yield from _block(inner, pictures)
        case Code():
            yield _fenced(block.lines)
        case Example():
            yield from _example(block)


def _spans(prose: Prose) -> str:
    return "".join(_span(span) for span in prose)


def _span(span: Span) -> str:
    if span.style == "plain":
        return _edges(span.text, escape(span.text))
    if span.style == "code":
        return _edges(span.text, _code(span.text))
    mark = _WORDS[span.style]
    return _edges(span.text, f"{mark}{escape(span.text)}{mark}")


def _edges(original: str, shown: str) -> str:
    """The blanks around a span, which its marks must not hold."""
    before = " " if original[:1].isspace() else ""
    after = " " if original[-1:].isspace() and original.strip() else ""
    return before + shown + after


def _code(text: str) -> str:
    held = " ".join(clean(text).split())
    if "`" not in held:
        return f"`{held}`"
    longest = max(len(run) for run in re.findall("`+", held))
    return f"{'`' * (longest + 1)} {held} {'`' * (longest + 1)}"


def _fenced(lines: Sequence[str]) -> str:
    text = "\n".join(" ".join(clean(line).splitlines()) for line in lines)
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _table(table: Table) -> Iterator[str]:
    yield f"*{escape(table.caption)}*"
    heads = [_head(column) for column in table.columns]
    rules = ["---:" if column.numeric else ":---" for column in table.columns]
    lines = [heads, rules, *([_cell(cell) for cell in row] for row in table.rows)]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if table.notes:
        yield " ".join(escape(note) for note in table.notes)


def _head(column: Column) -> str:
    title = escape(column.title)
    return f"{escape(column.group)}: {title}" if column.group else title or " "


def _cell(cell: Cell) -> str:
    shown = f"**{escape(cell.text)}**" if cell.strong and cell.text else escape(cell.text)
    if cell.beside:
        shown += f" ({escape(cell.beside)})"
    if cell.interval:
        shown += f" \\[{escape(cell.interval)}\\]"
    return shown


def _picture(picture: Picture, shown: _Shown | None) -> Iterator[str]:
    if shown is None:
        titles = ", ".join(chart.title for chart in picture.charts)
        yield f"*Left out here: {escape(titles)}; ask for `--figures`.* {_spans(picture.caption)}"
        return
    yield "\n".join(
        f"![{escape(chart.title)}]({_target((shown.folder / name).as_posix())})"
        for name, chart in zip(shown.of(picture), picture.charts, strict=True)
    )
    yield _spans(picture.caption)


def _target(path: str) -> str:
    """A link's target; in angle brackets where it has blanks or brackets of its own."""
    return path if re.fullmatch(r"[\w./-]+", path) else f"<{path}>"


def _example(example: Example) -> Iterator[str]:
    words = [
        f"**{escape(word)}**" if place in example.critical else escape(word)
        for place, word in enumerate(example.words)
    ]
    yield f"> {' '.join(words)}"
    if example.about:
        yield escape(example.about)
    if example.copies:
        rows = [f"| {_masked(copy)} | {escape(copy.vote)} |" for copy in example.copies]
        yield "\n".join(["| copy | vote |", "|:---|:---|", *rows])
    if example.tally:
        yield "Votes: " + ", ".join(f"{escape(one.label)} {one.votes}" for one in example.tally)
    yield _spans(example.verdict)


def _masked(copy: Copy) -> str:
    return " ".join(
        HIDDEN * max(1, width) if word is None else escape(word)
        for word, width in zip(copy.shown, copy.widths, strict=True)
    )


def _pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Fold):
            yield from _pictures(block.blocks)


def _file_names(report: Report) -> list[tuple[Picture, list[str]]]:
    """The pictures of a report with the names of their files, no two alike."""
    found, taken = [], set[str]()
    for section in report.sections:
        for picture in _pictures(section.blocks):
            stem = start = _stem(picture)
            while any(name in taken for name in _names(picture, stem)):
                stem = f"{start}-{len(taken)}"
            found.append((picture, _names(picture, stem)))
            taken.update(_names(picture, stem))
    return found


def _stem(picture: Picture) -> str:
    """A file name that no name of a recipe can lead elsewhere."""
    return re.sub(r"[^a-z0-9]+", "-", picture.name.lower()).strip("-")[:80] or "figure"


def _names(picture: Picture, stem: str) -> list[str]:
    if len(picture.charts) == 1:
        return [f"{stem}.svg"]
    return [f"{stem}-{place}.svg" for place in range(1, len(picture.charts) + 1)]


def _address(title: str) -> str:
    """A heading's address, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
