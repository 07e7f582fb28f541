"""Pictures of how votes become a proof, drawn from real votes: docs/votes-*.svg.

``python -m tools.vote_pictures`` draws them anew; a test says when that is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ranmask import SmoothedClassifier, load_default
from ranmask.paper.report.svg import element, escaped
from ranmask.results import ShownCertificate

FOLDER = Path(__file__).parents[1] / "docs"
SPAM = {"free", "winner", "cash", "prize", "claim"}
MESSAGE = "claim your free cash prize now winner"
HEADLINE = (
    "Oil prices soared to a record high on Monday as traders feared supply cuts "
    "by OPEC producers and shares of airlines fell on the stock exchange"
)

_WIDTH, _MARGIN, _BAR = 720, 24, 66
# A background of its own: the pages around it may be light or dark, whatever the system says.
_STYLE = """
svg{--paper:#fff;--ink:#1f2430;--faint:#5c6370;--line:#c9ced6;--zero:#4c78a8;--one:#b8650f;
--two:#3f8f55;--three:#a05fb4}
@media (prefers-color-scheme:dark){svg{--paper:#1b1e24;--ink:#e6e8ec;--faint:#a8afba;
--line:#454b55;--zero:#6b9bd1;--one:#f0a050;--two:#62b67a;--three:#c58ad6}}
text{font:15px system-ui,sans-serif;fill:var(--ink)}text.faint{fill:var(--faint);font-size:13px}
text.strong{font-weight:600}text.middle{text-anchor:middle}text.end{text-anchor:end}
text.on{fill:var(--paper)}rect.paper{fill:var(--paper)}rect.hidden{fill:var(--line)}
rect.shown{fill:none;stroke:var(--ink)}
.c0{fill:var(--zero)}.c1{fill:var(--one)}.c2{fill:var(--two)}.c3{fill:var(--three)}
"""


def pictures() -> dict[str, str]:
    """Each picture's name and SVG."""
    return {"votes-small.svg": _small(), "votes-headline.svg": _headline()}


def _small() -> str:
    """Seven copies of a message, each with one word; what one change can do to the count."""

    def classify(texts: list[str]) -> list[list[float]]:
        return [[0.1, sum(word in SPAM for word in text.split())] for text in texts]

    smoothed = SmoothedClassifier(classify, keep=1, hide="drop", labels=["ham", "spam"])
    [result] = smoothed.certify_showing([MESSAGE], 7)
    words = MESSAGE.split()
    parts = [_text("Seven copies, each shows one word", _MARGIN, 36, "strong")]
    parts += [_text("its vote", 664, 36, "strong end")]
    for row, copy in enumerate(result.copies):
        y, x = 50 + 32 * row, _MARGIN
        for position, word in enumerate(words):
            wide = 16 + 9 * len(word)
            if position in copy["kept"]:
                parts.append(element("rect", class_="shown", x=x, y=y, width=wide, height=24, rx=4))
                parts.append(_text(word, x + wide / 2, y + 17, "middle"))
            else:
                parts.append(
                    element("rect", class_="hidden", x=x, y=y + 9, width=wide, height=6, rx=3)
                )
            x += wide + 8
        parts += _vote(smoothed.labels, copy["label_id"], 604, y)
    return _picture("From votes to a radius", parts, result, smoothed.labels, 300)


def _headline() -> str:
    """The words of a headline, each coloured by its vote; and the count after changes."""
    smoothed = load_default("news-words", ensemble="vote")
    [result] = smoothed.certify_showing([HEADLINE], 100)
    parts = [_text(f"Each of {result.words} words votes", _MARGIN, 36, "strong")]
    x, y = _MARGIN, 50
    for word, copy in zip(HEADLINE.split(), result.copies, strict=True):
        wide = 16 + 9 * len(word)
        if x + wide > _WIDTH - _MARGIN:
            x, y = _MARGIN, y + 34
        parts.append(_box(copy["label_id"], x, y, wide))
        parts.append(_text(word, x + wide / 2, y + 18, "middle on"))
        x += wide + 8
    x, y = _MARGIN, y + 50
    for number, label in enumerate(smoothed.labels):
        parts.append(element("rect", class_=f"c{number}", x=x, y=y - 11, width=12, height=12))
        parts.append(_text(label, x + 18, y, "faint"))
        x += 40 + 8 * len(label)
    return _picture("Votes of a headline", parts, result, smoothed.labels, y + 40)


def _changes(result: ShownCertificate, labels: Sequence[str], y: float) -> Iterator[str]:
    """The count as it is, after ``radius`` worst changes, and after one more."""
    rival = max(
        (number for number in range(len(labels)) if number != result.label_id),
        key=lambda number: result.votes[number],
    )
    radius = result.radius or 0
    unit = (_WIDTH - 2 * _MARGIN) / sum(result.votes)
    for changed in (0, radius, radius + 1):
        votes = list(result.votes)
        votes[result.label_id] -= changed
        votes[rival] += changed
        words = f"{changed} word{'s' if changed != 1 else ''}"
        title = "As it is" if changed == 0 else f"{words} changed, as badly as can be"
        won = votes[result.label_id] > votes[rival]
        says = f"{labels[result.label_id]} wins" if won else f"{labels[rival]} could win"
        proved = f": proved for any {words}" if won and changed else ""
        yield _text(title, _MARGIN, y, "strong")
        yield _text(says + proved, _WIDTH - _MARGIN, y, "end")
        x: float = _MARGIN
        first = [result.label_id, rival]
        order = [*first, *(number for number in range(len(labels)) if number not in first)]
        for number in order:
            if votes[number]:
                yield _box(number, x, y + 10, unit * votes[number] - 2)
                yield _text(str(votes[number]), x + unit * votes[number] / 2, y + 28, "middle on")
            x += unit * votes[number]
        y += _BAR


def _vote(labels: Sequence[str], number: int, x: float, y: float) -> list[str]:
    return [_box(number, x, y, 60, 24), _text(labels[number], x + 30, y + 17, "middle on")]


def _box(number: int, x: float, y: float, wide: float, high: float = 26) -> str:
    return element("rect", class_=f"c{number}", x=x, y=y, width=round(wide, 1), height=high, rx=4)


def _text(content: str, x: float, y: float, name: str) -> str:
    return element("text", escaped(content), class_=name, x=round(x, 1), y=y)


def _picture(
    title: str, parts: list[str], result: ShownCertificate, labels: Sequence[str], y: float
) -> str:
    """The parts above ``y``, and the counts below it."""
    high = round(y + 3 * _BAR - 10)
    head = element("title", escaped(title)) + element("style", _STYLE.strip().replace("\n", ""))
    paper = element("rect", class_="paper", width=_WIDTH, height=high, rx=8)
    return element(
        "svg",
        "\n".join([head, paper, *parts, *_changes(result, labels, y)]),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {high}",
        width=_WIDTH,
        height=high,
        role="img",
    )


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn + "\n")
