"""Charts: well-formed, deterministic, readable in both themes and without colour."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.paper.report.axes import (
    Axis,
    fitted_axis,
    log_axis,
    percent_axis,
    share_axis,
    words_axis,
)
from ranmask.paper.report.charts import (
    Dot,
    Dots,
    Plot,
    Point,
    Series,
    inline,
    key,
    standalone,
    style_sheet,
)
from ranmask.paper.report.svg import LOOKS

EVIL = '</svg><script>alert("1")</script> & \x00\ud800'
SVG = "{http://www.w3.org/2000/svg}"


def plot(series=1, name="line", title="Title", **more):
    points = tuple(Point(float(x), 1 - x / 10, 0.9 - x / 10, 1.0) for x in range(4))
    lines = tuple(Series(f"{name} {look}", points, look) for look in range(1, series + 1))
    return Plot(title, "Falls.", words_axis("words", 3), share_axis("share"), lines, **more)


def dots(label="A"):
    rows = (Dot(label, 55.0, 50.0, 60.0, 40.0), Dot("B", None, other=10.0))
    return Dots("Title", "Two methods.", percent_axis("%"), rows, ("ours", "paper"))


def parse(svg):
    return ElementTree.fromstring(svg)


@pytest.mark.parametrize("chart", [plot(), plot(6), dots()], ids=["one", "six", "dots"])
def test_well_formed_spoken_and_the_same_every_time(chart):
    assert inline(chart) == inline(chart)
    parse(inline(chart))
    root = parse(standalone(chart))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img" and root.get("aria-label") == f"Title. {chart.description}"
    assert root[0].tag == f"{SVG}title" and root[0].text == "Title"


@pytest.mark.parametrize(
    "chart", [plot(2, name=EVIL, title=EVIL, rules=((0.5, EVIL),)), dots(EVIL)]
)
def test_everything_is_escaped(chart):
    for svg in (inline(chart), standalone(chart), *(swatch for swatch, _ in key(chart))):
        svg.encode("utf-8")
        tags = {element.tag.removeprefix(SVG) for element in parse(svg).iter()}
        assert "script" not in tags


def test_a_file_brings_its_style_background_and_key():
    svg = standalone(plot(2))
    assert style_sheet() in svg and 'class="sheet"' in svg
    assert "line 1" in svg and "line 2" in svg
    assert "<style>" not in inline(plot(2)) and "line 1" not in inline(plot(2))


def test_nothing_is_loaded_from_elsewhere():
    svg = standalone(plot(3)).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in svg and "url(" not in svg and "href" not in svg


def test_series_differ_without_colour():
    dashes = re.findall(r"\.look\d \{[^}]*--dash: ([^;]+);", style_sheet())
    assert len(dashes) == len(set(dashes)) == LOOKS
    shapes = []
    for swatch, _ in key(plot(LOOKS)):
        marker = re.search(r'<(circle|polygon|path) class="marker[^>]*>', swatch)
        shapes.append(re.sub(r"look\d", "", marker[0]))
    assert len(set(shapes)) == LOOKS


def test_one_line_needs_no_key():
    assert key(plot(1)) == ()


def test_values_lie_where_they_should():
    chart = Plot(
        "T", "D", Axis("x", 0, 10, ()), Axis("y", 0, 1, ()), (Series("s", (Point(5, 1),), 1),)
    )
    circle = parse(inline(chart)).find(".//circle")
    assert float(circle.get("cx")) == pytest.approx((50 + 341) / 2)
    assert float(circle.get("cy")) == 34  # the top of the axis


def test_a_step_has_its_treads_around_whole_numbers():
    points = (Point(0, 1.0, 0.9, 1.0), Point(1, 0.5, 0.4, 0.6), Point(2, 0.0, 0.0, 0.1))
    series = (Series("s", points, 1, shape="step", band=True),)
    drawn = parse(inline(Plot("T", "D", words_axis("w", 2), share_axis("s"), series)))
    corners = drawn.find(".//polyline").get("points").split()
    across = [float(corner.split(",")[0]) for corner in corners]
    assert across == pytest.approx(
        [50, 122.8, 122.8, 268.2, 268.2, 341]
    )  # 0, 0.5, 0.5, 1.5, 1.5, 2
    assert drawn.find(".//polygon[@class='band look1']") is not None
    assert drawn.find(".//line[@class='bar']") is None


def test_a_label_stays_inside_the_picture():
    points = (Point(0.1, 0.5, label="+120"), Point(1.0, 0.2, label="+20"))
    drawn = parse(
        inline(Plot("T", "D", share_axis("x"), share_axis("y"), (Series("s", points, 1),)))
    )
    first, last = (one for one in drawn.iter("text") if "label" in one.get("class"))
    assert first.get("class") == "label" and last.get("class") == "label end"
    markers = [float(one.get("cx")) for one in drawn.iter("circle")]
    assert float(first.get("x")) > markers[0] and float(last.get("x")) < markers[1]


def test_axes():
    assert [tick for _, tick in words_axis("w", 3).ticks] == ["0", "1", "2", "3"]
    assert len(words_axis("w", 100).ticks) <= 9
    assert [tick for _, tick in log_axis("y", [2e-6, 3e-3]).ticks] == [
        *("10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²")
    ]
    log = log_axis("y", [1e-5, 1e-3])
    assert log.place(1e-4) == pytest.approx(0.5) and log.place(0.0) == 0.0
    assert share_axis("s").place(2.0) == 1.0 and share_axis("s").place(-1.0) == 0.0


@given(st.lists(st.floats(0, 1), max_size=6))
def test_a_fitted_axis_holds_its_values(values):
    axis = fitted_axis("x", values, within=(0, 1))
    assert 0 <= axis.low < axis.high <= 1
    assert all(axis.low - 1e-9 <= value <= axis.high + 1e-9 for value in values)
    assert 2 <= len(axis.ticks) <= 8
    assert len({tick for _, tick in axis.ticks}) == len(axis.ticks)
