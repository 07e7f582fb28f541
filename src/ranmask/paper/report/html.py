"""A report as one HTML file: style and pictures inside, no script, nothing from elsewhere."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from ranmask.paper.report.blocks import Block, Picture, Report
from ranmask.paper.report.charts import inline, key, style_sheet
from ranmask.paper.report.svg import clean

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(report: Report) -> str:
    """The page.  Everything that comes from results is escaped."""
    page = environment(autoescape=True, finalize=_finalize)
    page.globals.update(charts=_charts, key=_key)
    style = _trusted(style_sheet() + template("report.css"))
    return page.from_string(template("report.html")).render(report=report, style=style)


def environment(**options: Any) -> Environment:
    """What templates of reports are rendered in."""
    from jinja2 import Environment, StrictUndefined

    made = Environment(  # noqa: S701 - the Markdown has its own escapes
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    made.globals["kind"] = _kind
    return made


def template(name: str) -> str:
    """A template, or a style sheet."""
    folder = resources.files("ranmask.paper.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _trusted(text: str) -> Markup:
    """Our own style sheets, and SVG, which is escaped where it is made."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _finalize(value: Any) -> Any:
    """Characters that no file can hold are replaced, wherever text is put in."""
    return clean(value) if type(value) is str else value


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _charts(picture: Picture) -> list[Markup]:
    return [_trusted(inline(chart)) for chart in picture.charts]


def _key(picture: Picture) -> list[tuple[Markup, str]]:
    """One key for all charts of the picture: what any of them shows, once."""
    found = dict.fromkeys(entry for chart in picture.charts for entry in key(chart))
    return [(_trusted(swatch), name) for swatch, name in found]
