"""A report as one HTML file: style and pictures inside, no script, nothing from elsewhere."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from ranmask.paper.report.blocks import Picture, Report
from ranmask.paper.report.charts import inline, key, style_sheet
from ranmask.paper.report.svg import clean

if TYPE_CHECKING:
    from jinja2 import Environment


def render(report: Report) -> str:
    """The page.  Everything that comes from results is escaped."""
    from markupsafe import Markup  # of our own style sheets, and SVG, which is escaped already

    def shown(value: Any) -> Any:
        """Characters that no file can hold are replaced, wherever text is put in."""
        return clean(value) if type(value) is str else value

    def charts(picture: Picture) -> list[Markup]:
        return [Markup(inline(chart)) for chart in picture.charts]  # noqa: S704

    def keys(picture: Picture) -> list[tuple[Markup, str]]:
        """One key for all charts of the picture: what any of them shows, once."""
        found = dict.fromkeys(entry for chart in picture.charts for entry in key(chart))
        return [(Markup(swatch), name) for swatch, name in found]  # noqa: S704

    page = environment(autoescape=True, finalize=shown)
    page.globals.update(charts=charts, key=keys)
    style = Markup(style_sheet() + template("report.css"))  # noqa: S704
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
    made.globals["kind"] = lambda block: type(block).__name__.lower()
    return made


def template(name: str) -> str:
    """A template, or a style sheet."""
    folder = resources.files("ranmask.paper.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")
