"""docs/peers.md from ``results/peers/*.json``; ``python -m benchmarks.peers_page`` rewrites it.

A figure that is in no outcome file is not on the page: tables, sentences about who is ahead, and
pictures are all made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers_records import ALL, PeerRecord, read_all
from benchmarks.peers_targets import passed, targets
from benchmarks.settings import REPOSITORY
from ranmask.paper.report.axes import fitted_axis, share_axis, words_axis
from ranmask.paper.report.charts import Plot, Point, Series, standalone

PAGE = REPOSITORY / "docs" / "peers.md"
FIGURES = REPOSITORY / "docs" / "peers"

CORPORA = {
    "agnews": "AG News",
    "sst2": "SST2",
    "imdb": "IMDB",
    "sms_spam": "SMS spam",
    "enron_spam": "Enron spam",
    "other": "other texts",
}
THREATS = {
    "substitutions": ("Any d words", "Any d words are replaced by any others."),
    "edits": ("Word edits", "Any d words are replaced, inserted or deleted."),
    "characters": (
        "Characters",
        "Any d characters are inserted, deleted or replaced, blanks included.",
    ),
    "synonyms": (
        "All synonyms",
        "Any number of words is replaced, each by a word that the table `jia2019` lists for it "
        "(all), or at most d of them.",
    ),
    "additions": (
        "Unlimited additions",
        "Any number of words is added, anywhere. Detectors: accuracy is the recall of what is to "
        "be flagged, the last column what is left of it.",
    ),
}
SHOWN = {
    "substitutions": ("1", "2", "3", "4", "5", "6", "8", "10"),
    "edits": ("1", "2", "3", "4", "5", "6", "8", "10"),
    "characters": ("1", "2", "3", "4", "5", "6", "8"),
    "synonyms": ("1", "2", "5", ALL),
    "additions": (ALL,),
}
_SOURCES = {
    "measured here, our code": "here",
    "measured here, their code": "here, their code",
    "published": "published",
}
_MOST_CURVES = 6

_HEAD = """# Peers on the same texts

How ranmask stands beside other certified defences: the same test texts, one machine, and their own
code where it runs here. A row says what its certificate is worth: *proof* (no chance involved),
*1 - alpha* (wrong with a chance of at most alpha over the method's own samples), or **none** (what
the authors count is not proved;
[why](certificates.md#7-what-is-wrong-with-the-published-method)).

Accuracy and certified accuracy are shares of *all* texts: right, and proved to stay so. Seconds are
of one text on one thread of a shared machine, the model loaded. *here, their code* was run from a
checkout of the authors' repository (`tools/peers`); *published* figures are of the authors' own
texts and machine. Training rows and test texts are the [same as ours](results.md) unless the
setting or a note says otherwise. Every row is a file in `results/peers`, with its commands, seed,
rows, versions and commit.

Written by `python -m benchmarks.peers_page` from these files.
"""


@dataclass(frozen=True)
class Place:
    """Rows of one threat on one corpus."""

    threat: str
    corpus: str
    rows: tuple[PeerRecord, ...]

    @property
    def ours(self) -> list[PeerRecord]:
        """Rows of ranmask."""
        return [row for row in self.rows if row.ours]

    @property
    def peers(self) -> list[PeerRecord]:
        """All others."""
        return [row for row in self.rows if not row.ours]


def places(records: Sequence[PeerRecord]) -> Iterator[Place]:
    """Threats and corpora that have rows with figures, in the order of the page."""
    for threat in THREATS:
        for corpus in CORPORA:
            rows = [
                row
                for row in records
                if (row.threat, row.corpus) == (threat, corpus) and row.certified
            ]
            if rows:
                yield Place(threat, corpus, tuple(sorted(rows, key=_order)))


def _order(row: PeerRecord) -> tuple[object, ...]:
    """Ours first, then proofs; the highest accuracy first."""
    strength = ("proof", "1 - alpha", "none").index(row.guarantee)
    return not row.ours, strength, -(row.accuracy or 0), row.method, row.setting


def page(records: Sequence[PeerRecord]) -> tuple[str, dict[str, str]]:
    """The page as Markdown, and its pictures by file name."""
    found = list(places(records))
    pictures: dict[str, str] = {}
    parts = [_HEAD, _standing(found), targets(records)]
    for threat, (title, about) in THREATS.items():
        parts.append(f"## {title}\n\n{about}\n")
        for place in found:
            if place.threat == threat:
                parts.append(_table(place))
                parts += _pictures(place, pictures)
    parts += [_cited(records), _sources(records)]
    return "\n".join(parts), pictures


# -- who is ahead -------------------------------------------------------------------------------


def _standing(found: Sequence[Place]) -> str:
    """Behind first, then ahead: each peer against our rows of at least its accuracy."""
    groups: dict[str, list[str]] = {
        "## Where we are behind": [],
        "Above what we prove, or more accurate, but without a guarantee:": [],
        "## Where we are ahead": [],
    }
    behind, unproved, ahead = groups.values()
    for place in found:
        for peer in place.peers:
            text, is_ahead = _verdict(place, peer)
            other = unproved if peer.guarantee == "none" else behind
            (ahead if is_ahead else other).append(f"- {text}")
    lines = []
    for title, said in groups.items():
        lines += [title, "", *(said or ["- Nowhere in these files."]), ""]
    rule = (
        "A peer is passed where one of our rows has at least its accuracy, and at no size that the "
        "peer has a figure for certifies less."
    )
    return "\n".join([*lines, rule, ""])


def _verdict(place: Place, peer: PeerRecord) -> tuple[str, bool]:
    name = f"{THREATS[place.threat][0]}, {CORPORA[place.corpus]}, {_named(peer)}"
    theirs = " ".join(f"{_short(peer.certified[size])}" for size in peer.sizes())
    sizes = " ".join(peer.sizes())
    able = [
        row for row in place.ours if peer.accuracy is None or (row.accuracy or 0) >= peer.accuracy
    ]
    of = f"{_accuracy(peer)}, {theirs} at {sizes}"
    if not able:
        best = max(place.ours, key=lambda row: row.accuracy or 0, default=None)
        most = "no row of ours" if best is None else f"our most accurate row has {_accuracy(best)}"
        return f"{name}: {of}; {most}.", False
    best = max(able, key=lambda row: (_lead(row, peer), sum(_at(row, s) for s in peer.sizes())))
    ours = " ".join(_short(_at(best, size)) for size in peer.sizes())
    said = f"{name}: {of}; ours, {best.setting}: {_accuracy(best)}, {ours}"
    if not passed(best, peer):
        lost = [size for size in peer.sizes() if _at(best, size) < peer.certified[size]]
        return f"{said}. Behind at {', '.join(lost)}.", False
    return f"{said}.", True


def _lead(row: PeerRecord, peer: PeerRecord) -> int:
    """At how many sizes a row certifies as much."""
    return sum(_at(row, size) >= peer.certified[size] for size in peer.sizes())


def _at(row: PeerRecord, size: str) -> float:
    """Certified accuracy at a size; behind the last measured one, nothing is claimed."""
    return row.certified.get(size, 0.0)


# -- tables -------------------------------------------------------------------------------------


def _table(place: Place) -> str:
    shown = [
        size for size in SHOWN[place.threat] if any(size in row.certified for row in place.rows)
    ]
    lines = [
        f"### {THREATS[place.threat][0]}: {CORPORA[place.corpus]}",
        "",
        "| method | guarantee | measured | texts | accuracy | "
        + " | ".join(shown)
        + " | seconds a text |",
        "|---|---|---|---:|---:|" + "---:|" * (len(shown) + 1),
    ]
    for row in place.rows:
        cells = [_short(row.certified[size]) if size in row.certified else "" for size in shown]
        guarantee = "**none**" if row.guarantee == "none" else row.guarantee
        lines.append(
            f"| {_named(row)} | {guarantee} | {_SOURCES[row.source]} | "
            f"{f'{row.texts.count:,}' if row.texts else ''} | {_accuracy(row, '')} | "
            f"{' | '.join(cells)} | {_seconds(row.seconds)} |"
        )
    return "\n".join(lines) + "\n"


def _named(row: PeerRecord) -> str:
    name = f"**{row.method}**" if row.ours else row.method
    return f"{name}, {row.setting}" if row.setting else name


def _accuracy(row: PeerRecord, word: str = "accuracy ") -> str:
    if row.accuracy is None:
        return "accuracy not published" if word else ""
    return f"{word}{_short(row.accuracy)}"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}" if value >= 0.0001 else f"{value:.5f}"


# -- pictures -----------------------------------------------------------------------------------


def _pictures(place: Place, pictures: dict[str, str]) -> list[str]:
    """Curves where there are sizes, and the frontier; links to them."""
    links = []
    for kind, chart in (("curves", _curves(place)), ("frontier", _frontier(place))):
        if chart is not None:
            name = f"{place.corpus}-{place.threat}-{kind}.svg"
            pictures[name] = standalone(chart)
            links.append(f"![{chart.description}]({FIGURES.name}/{name})")
    return ["\n".join(links) + "\n"] if links else []


def _curves(place: Place) -> Plot | None:
    """Certified accuracy by size: of each method the row that certifies most."""
    best: dict[str, PeerRecord] = {}
    for row in place.rows:
        sizes = [size for size in row.certified if size != ALL]
        if row.accuracy is None or not sizes:
            continue
        known = best.get(row.method)
        if known is None or sum(row.certified.values()) > sum(known.certified.values()):
            best[row.method] = row
    if len(best) < 2:
        return None
    most = max(int(size) for row in best.values() for size in row.certified if size != ALL)
    series = []
    for look, (method, row) in enumerate(list(best.items())[:_MOST_CURVES], 1):
        ends = [(0.0, row.accuracy or 0.0)]
        ends += [(float(size), row.certified[size]) for size in row.sizes() if size != ALL]
        name = method if row.guarantee != "none" else f"{method} (no guarantee)"
        series.append(Series(name, [Point(x, y) for x, y in ends], look))
    kind = "characters" if place.threat == "characters" else "words"
    return Plot(
        title=f"{THREATS[place.threat][0]}, {CORPORA[place.corpus]}",
        description=f"{CORPORA[place.corpus]}: certified accuracy by changed {kind}, a line a "
        "method, that of its row which certifies most",
        x=words_axis(f"changed {kind}", most),
        y=share_axis("right and certified"),
        series=series,
    )


def _frontier(place: Place) -> Plot | None:
    """Accuracy against certified accuracy at the smallest size: every row a point."""
    size = ALL if place.threat in ("synonyms", "additions") else "1"
    rows = [row for row in place.rows if row.accuracy is not None and size in row.certified]
    methods = list(dict.fromkeys(row.method for row in rows))
    if len(methods) < 2:
        return None
    series = []
    for look, method in enumerate(methods[:_MOST_CURVES], 1):
        own = [row for row in rows if row.method == method]
        name = method if own[0].guarantee != "none" else f"{method} (no guarantee)"
        spots = [Point(row.accuracy or 0.0, row.certified[size]) for row in own]
        series.append(Series(name, spots, look, "points"))
    at = "with all changed at once" if size == ALL else "at 1 change"
    return Plot(
        title="Accuracy and what is proved",
        description=f"{CORPORA[place.corpus]}: accuracy to the right, certified accuracy {at} "
        "upwards, a point a row",
        x=fitted_axis("accuracy", [row.accuracy or 0.0 for row in rows], within=(0, 1)),
        y=share_axis(f"certified {at}"),
        series=series,
    )


# -- the rest -----------------------------------------------------------------------------------


def _cited(records: Sequence[PeerRecord]) -> str:
    lines = ["## Cited, not in a table", ""]
    rows = sorted((row for row in records if not row.certified), key=_order)
    for row in rows:
        where = CORPORA[row.corpus]
        guarantee = "**no guarantee**" if row.guarantee == "none" else row.guarantee
        accuracy = f", {_accuracy(row)}" if row.accuracy is not None else ""
        lines.append(
            f"- {row.method} ({THREATS[row.threat][0].lower()}, {where}; {guarantee}; {row.model}"
            f"{accuracy}): {row.note}. Source: {row.where}."
        )
    return "\n".join(lines) + "\n"


def _sources(records: Sequence[PeerRecord]) -> str:
    """Notes, commits and commands of what was run, and where published figures were read."""
    lines = ["## Notes, commits and commands", ""]
    said: dict[str, None] = {}
    for row in sorted(records, key=_order):
        if row.ours or not row.certified:
            continue
        code = ""
        if row.code is not None:
            code = f" Code: {row.code.repository}" + (
                f" at {row.code.commit[:10]}." if row.code.commit else "."
            )
        where = f" Source: {row.where}." if row.where else ""
        note = f" {row.note[:1].upper()}{row.note[1:]}." if row.note else ""
        trained = f" Training: {row.training}." if row.training else ""
        said[
            f"- {CORPORA[row.corpus]}, {_named(row)}: {row.model}.{trained}{note}{code}{where}"
        ] = None
    lines += list(said)
    commands = dict.fromkeys(
        command for row in sorted(records, key=_order) for command in row.commands
    )
    return "\n".join([*lines, "", "```", *commands, "```", ""])


def write_page(folder: Path | None = None) -> None:
    """Write the page and its pictures; pictures that are no longer shown are deleted."""
    text, pictures = page(list(read_all(folder).values()))
    PAGE.write_text(text, encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()
    for name, content in pictures.items():
        (FIGURES / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write_page()
