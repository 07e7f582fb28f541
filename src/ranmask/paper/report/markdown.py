"""A report as Markdown: the same blocks; charts as files beside it, where a folder was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from ranmask.paper.report.tables import Cell, Column, Table

# Whatever Markdown or HTML inside Markdown could read as a mark.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")
_MARKS = {"plain": "", "strong": "**", "em": "*"}
_HIDDEN = "\N{MEDIUM SHADE}"


def render(report: Report, pictures: PurePath | None = None) -> str:
    """The text.  ``pictures``: the folder of the charts, as seen from where the text will be."""
    contents = [
        f"- [{escape(section.title)}](#{_address(section.title)})" for section in report.sections
    ]
    parts = [f"# {escape(report.title)}", _spans(report.summary), "\n".join(contents)]
    writer = _Writer(pictures, _file_names(report))
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        for block in section.blocks:
            parts += writer.block(block)
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
    return _SPECIAL.sub(r"\\\1", _one_line(text))


class _Writer:
    """Writes blocks; ``folder`` and ``names``: where the charts are, and what they are called."""

    def __init__(self, folder: PurePath | None, names: Sequence[tuple[Picture, list[str]]]) -> None:
        self._folder = folder
        self._names = {id(picture): files for picture, files in names}

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Heading():
                yield f"{'#' * block.level} {escape(block.text)}"
            case Paragraph():
                yield ("> " if block.tone == "warning" else "") + _spans(block.spans)
            case Bullets():
                yield "\n".join(
                    f"{f'{place}.' if block.numbered else '-'} {_spans(item)}"
                    for place, item in enumerate(block.items, 1)
                )
            case Strip():
                yield "\n".join(
                    f"- **{escape(tile.value)}** {escape(tile.label)}"
                    + (f" ({escape(tile.note)})" if tile.note else "")
                    for tile in block.tiles
                )
            case Table():
                yield from _table(block)
            case Picture():
                yield from self._picture(block)
            case Fold():
                yield f"**{escape(block.title)}**"
                for inner in block.blocks:
                    yield from self.block(inner)
            case Code():
                text = "\n".join(" ".join(clean(line).splitlines()) for line in block.lines)
                fence = _fence(text, 3)
                yield f"{fence}\n{text}\n{fence}"
            case Example():
                yield from _example(block)

    def _picture(self, picture: Picture) -> Iterator[str]:
        caption = _spans(picture.caption)
        if self._folder is None:
            titles = ", ".join(chart.title for chart in picture.charts)
            yield f"*Left out here: {escape(titles)}; ask for `--figures`.* {caption}"
            return
        yield "\n".join(
            f"![{escape(chart.title)}]({_target((self._folder / name).as_posix())})"
            for name, chart in zip(self._names[id(picture)], picture.charts, strict=True)
        )
        yield caption


def _spans(prose: Prose) -> str:
    return "".join(map(_span, prose))


def _span(span: Span) -> str:
    """A span between its marks, which must not hold the blanks around it."""
    if span.style == "code":
        held = _one_line(span.text)
        fence, blank = _fence(held, 1), " " if "`" in held else ""
        shown = f"{fence}{blank}{held}{blank}{fence}"
    else:
        mark = _MARKS[span.style]
        shown = f"{mark}{escape(span.text)}{mark}"
    before = " " if span.text[:1].isspace() else ""
    after = " " if span.text[-1:].isspace() and span.text.strip() else ""
    return before + shown + after


def _fence(text: str, least: int) -> str:
    """Backticks that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


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
        rows = [f"| {_masked(example, copy)} | {escape(copy.vote)} |" for copy in example.copies]
        yield "\n".join(["| copy | vote |", "|:---|:---|", *rows])
    if example.tally:
        yield "Votes: " + ", ".join(f"{escape(part.label)} {part.votes}" for part in example.tally)
    yield _spans(example.verdict)


def _masked(example: Example, copy: Copy) -> str:
    return " ".join(
        escape(word) if place in copy.kept else _HIDDEN * len(word)
        for place, word in enumerate(example.words)
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
    for picture in (shown for one in report.sections for shown in _pictures(one.blocks)):
        # No name of a recipe can lead elsewhere.
        stem = start = re.sub(r"[^a-z0-9]+", "-", picture.name.lower()).strip("-")[:80] or "figure"
        while not taken.isdisjoint(names := _numbered(stem, len(picture.charts))):
            stem = f"{start}-{len(taken)}"
        found.append((picture, names))
        taken.update(names)
    return found


def _numbered(stem: str, count: int) -> list[str]:
    if count == 1:
        return [f"{stem}.svg"]
    return [f"{stem}-{place}.svg" for place in range(1, count + 1)]


def _address(title: str) -> str:
    """A heading's address, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
