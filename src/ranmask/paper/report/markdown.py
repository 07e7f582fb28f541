"""A report as Markdown: the same blocks; charts as files beside it, where a folder was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ranmask.paper.report.blocks import Block, Fold, Picture, Report
from ranmask.paper.report.charts import standalone
from ranmask.paper.report.html import environment, template
from ranmask.paper.report.svg import clean

# Whatever Markdown or HTML inside Markdown could read as a mark.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")


def render(report: Report, pictures: PurePath | None = None) -> str:
    """The text.  ``pictures``: the folder of the charts, as seen from where the text will be."""
    names = {id(picture): files for picture, files in _file_names(report)}

    def files(picture: Picture) -> list[str]:
        return [
            _target(((pictures or PurePath()) / name).as_posix()) for name in names[id(picture)]
        ]

    page = environment(autoescape=False)
    page.filters.update(md=escape, code=_code, fenced=_fenced, address=_address)
    page.globals["files"] = None if pictures is None else files
    text = page.from_string(template("report.md")).render(report=report)
    return text.rstrip("\n") + "\n"


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


def _code(text: str) -> str:
    held = " ".join(clean(text).split())
    fence, blank = _fence(held, 1), " " if "`" in held else ""
    return f"{fence}{blank}{held}{blank}{fence}"


def _fenced(lines: Sequence[str]) -> str:
    text = "\n".join(" ".join(clean(line).splitlines()) for line in lines)
    return f"{_fence(text, 3)}\n{text}\n{_fence(text, 3)}"


def _fence(text: str, least: int) -> str:
    """Backticks that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _address(title: str) -> str:
    """A heading's address, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _target(path: str) -> str:
    """A link's target; in angle brackets where it has blanks or brackets of its own."""
    return path if re.fullmatch(r"[\w./-]+", path) else f"<{path}>"


def _pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Fold):
            yield from _pictures(block.blocks)


def _file_names(report: Report) -> list[tuple[Picture, list[str]]]:
    """The pictures of a report with the names of their files, no two alike."""
    found, taken = [], set[str]()
    for picture in (shown for part in report.sections for shown in _pictures(part.blocks)):
        # No name of a recipe can lead elsewhere.
        stem = start = re.sub(r"[^a-z0-9]+", "-", picture.name.lower()).strip("-")[:80] or "figure"
        endings = [f"-{place}" for place in range(1, len(picture.charts) + 1)]
        endings = endings if len(endings) > 1 else [""]
        while not taken.isdisjoint(names := [f"{stem}{ending}.svg" for ending in endings]):
            stem = f"{start}-{len(taken)}"
        found.append((picture, names))
        taken.update(names)
    return found
