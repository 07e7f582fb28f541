"""docs/results.md from the committed JSON files; ``python -m benchmarks.results_page`` rewrites it.

It reads ``results/*.json`` and never a model: a figure that is not in a file is not on the page.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks import reproduced_page, strongest
from benchmarks.defences_page import defences_part
from benchmarks.settings import REPOSITORY

RESULTS = REPOSITORY / "results"
PAGE = REPOSITORY / "docs" / "results.md"

_CORPORA = {"agnews": "AG News", "sst2": "SST2", "imdb": "IMDB"}
_SHOWN = {"agnews": (1, 2, 3, 4, 5, 6, 8), "sst2": (1, 2, 3), "imdb": (1, 2, 3, 4, 5, 6, 8, 10)}

_HEAD = """# Results

What the models prove on AG News, SST2 and IMDB, what the paper's experiments give when they are run
again, how defences hold under attack, and what was tried and did not help.

Accuracy and certified accuracy are shares of *all* test texts. CR@d counts those whose label is
right and proved to survive any change of d words; MCB is the median radius. Certificates are exact
(no sampling, no alpha) unless another is named. **Compare with the constant classifier:** it is
certified at any number of words wherever it is right, on half of the texts of SST2 and IMDB and on
a quarter of those of AG News.

Models were chosen on validation; each test part was read once for each row. The test parts are
random parts of the published ones, and two training sets are partial, as the notes below each table
say. Some test texts also occur in train, but for case and blanks: 50 of IMDB's 10,000, 2 of SST2's
1,221, none of AG News's. In the commands, `all-MiniLM-L6-v2` stands for a folder with that encoder
(on the hub: `sentence-transformers/all-MiniLM-L6-v2`). The encoders were trained before the random
streams of the two training phases were separated: the same commands give similar models, not the
same weights.

Written by `python -m benchmarks.results_page` from the files in `results/`, which hold the full
record of each run: commands, options, seed, data with its digest, and figures.
"""


def results_page() -> str:
    """The page as Markdown."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    results = [r for r in records.values() if r["format"] == "ranmask-result"]
    parts = [_HEAD]
    parts += [_corpus(name, [r for r in results if r["data"]["name"] == name]) for name in _CORPORA]
    parts.append(reproduced_page.summary_part())
    parts.append(strongest.section(records["strongest"]))
    parts.append(defences_part(records["defences"]))
    parts.append(_trials(records["trials"]))
    parts.append(_commands(results))
    return "\n".join(parts)


def _corpus(name: str, results: list[dict[str, Any]]) -> str:
    shown = _SHOWN[name]
    lines = [
        f"## {_CORPORA[name]}",
        "",
        "| model | accuracy | MCB | " + " | ".join(f"CR@{d}" for d in shown) + " |",
        "|---|---:|---:|" + "---:|" * len(shown),
    ]
    by_threat = [(_threat(one), one) for one in sorted(results, key=lambda r: -_mean(r, shown))]
    lines += [_row(one, shown) for threat, one in by_threat if threat == "substitutions"]
    for threat, one in by_threat:
        if threat != "substitutions":  # steps of another kind: a table of its own
            lines += ["", f"Of changed {threat}:", "", *lines[2:4], _row(one, shown)]
    data = results[0]["data"]
    lines += ["", f"- Test: {data['rows']:,} texts ({data['note'] or 'complete'})."]
    lines += sorted({f"- Trained on {_training(one)}." for one in results})
    lines += [f"- {one['title']}: {one['note']}" for one in results if "note" in one]
    return "\n".join(lines) + "\n"


def _threat(one: dict[str, Any]) -> str:
    return str(one["classifier"]["options"].get("threat", "substitutions"))


def _row(one: dict[str, Any], shown: tuple[int, ...]) -> str:
    figures, radius = one["figures"], one["figures"]["median_radius"]
    cells = [_share(figures["certified_accuracy"], d) for d in shown]
    return (
        f"| {one['title']} | {_three(figures['accuracy'])} | "
        f"{'none' if radius is None else radius} | {' | '.join(cells)} |"
    )


def _training(one: dict[str, Any]) -> str:
    run = one["training"]["run"]
    train = run["train"]
    return (
        f"{train['name']}, {train['rows']:,} rows ({train['note'] or 'complete'}), seed "
        f"{run['options']['seed']}"
    )


def _mean(one: dict[str, Any], shown: tuple[int, ...]) -> float:
    return sum(float(_share(one["figures"]["certified_accuracy"], d)) for d in shown)


def _trials(record: dict[str, Any]) -> str:
    lines = ["## What was tried", "", record["about"], ""]
    for group in record["groups"]:
        lines += [f"### {group['title']}", "", group["setting"], ""]
        lines += ["| idea | accuracy | CR@1... | verdict |", "|---|---:|---|---|"]
        lines += [
            f"| {row['idea']} | {_three(row['accuracy'])} | "
            f"{' '.join(_three(value) for value in row['certified'])} | {row['verdict']} |"
            for row in group["rows"]
        ]
        lines.append("")
    return "\n".join(lines)


def _commands(results: list[dict[str, Any]]) -> str:
    lines = [
        "## Commands",
        "",
        "Every model DIR was measured, unless another command is shown, by",
        "",
    ]
    lines += ["```", _certify("CORPUS"), "```", ""]
    for one in results:
        name = one["data"]["name"]
        corpus = _CORPORA[name]
        title = one["title"] if one["title"].startswith(corpus) else f"{corpus}, {one['title']}"
        lines += [f"{title} ({one['hardware']}):", ""]
        lines += ["```", *(line for line in one["commands"] if line != _certify(name)), "```", ""]
    return "\n".join(lines)


def _certify(corpus: str) -> str:
    return f"ranmask certify --data {corpus} --split test --model DIR --output OUT.jsonl"


def _share(shares: list[float], changed: int) -> str:
    return _three(shares[changed] if changed < len(shares) else 0.0)


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


if __name__ == "__main__":
    PAGE.write_text(results_page(), encoding="utf-8")
    reproduced_page.write_page()
    print(PAGE)
