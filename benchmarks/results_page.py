"""docs/results.md from the committed JSON files; ``python -m benchmarks.results_page`` rewrites it.

It reads ``results/*.json`` and never a model: a figure that is not in a file is not on the page.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.settings import REPOSITORY

RESULTS = REPOSITORY / "results"
PAGE = REPOSITORY / "docs" / "results.md"

_CORPORA = {"agnews": "AG News", "sst2": "SST2", "imdb": "IMDB"}
_SHOWN = {"agnews": (1, 2, 3, 4, 5, 6, 8), "sst2": (1, 2, 3), "imdb": (1, 2, 3, 4, 5, 6, 8, 10)}
_CERTIFICATES = {
    "paper-as-printed": ("paper, as printed", "**no**"),
    "paper": ("paper, off-by-one removed", "**no**"),
    "ablation": ("`ablation` (Levine-Feizi)", "yes, 1 - alpha"),
    "ablation-runner-up": ("`ablation-runner-up`", "yes, 1 - alpha"),
    "exact": ("`exact`", "yes"),
}

_HEAD = """# Results

Written by `python -m benchmarks.results_page` from the files in `results/`, which hold the full
record of each run: commands, options, seed, data with its digest, and figures. Accuracy and
certified accuracy are shares of *all* test texts; CR@d counts those whose label is right and
proved to survive any change of d words. All certificates in the first part are exact: no
sampling, no alpha. Models were chosen on validation; each test part was read once for each row.

The test parts are random parts of the published ones, and two training sets are partial; the
notes below each table say so. **A floor to keep in mind:** a classifier that always names one
class is certified at any number of words wherever it is right, on half of the texts of SST2 and
IMDB and on a quarter of those of AG News. A certified accuracy is worth what it has above that,
together with the accuracy beside it.

Some test texts also occur in train, but for case and blanks: 50 of IMDB's 10,000, 2 of SST2's
1,221, none of AG News's. In the commands, `all-MiniLM-L6-v2` stands for a folder with that encoder
(on the hub: `sentence-transformers/all-MiniLM-L6-v2`). The encoders were trained before the random
streams of the two training phases were set apart: the same commands give models like these, not
the same weights.
"""


def results_page() -> str:
    """The page as Markdown."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    results = [r for r in records.values() if r["format"] == "ranmask-result"]
    comparisons = [r for r in records.values() if r["format"] == "ranmask-comparison"]
    parts = [_HEAD]
    parts += [_corpus(name, [r for r in results if r["data"]["name"] == name]) for name in _CORPORA]
    parts.append("## The paper's setting, all certificates on the same votes\n")
    parts += [_comparison(one) for one in comparisons]
    parts.append(_trials(records["trials"]))
    parts.append(_commands(results, comparisons))
    return "\n".join(parts)


def _corpus(name: str, results: list[dict[str, Any]]) -> str:
    shown = _SHOWN[name]
    lines = [
        f"## {_CORPORA[name]}",
        "",
        "| model | accuracy | MCB | " + " | ".join(f"CR@{d}" for d in shown) + " |",
        "|---|---:|---:|" + "---:|" * len(shown),
    ]
    for one in sorted(results, key=lambda r: -_mean(r, shown)):
        figures = one["figures"]
        cells = [_share(figures["certified_accuracy"], d) for d in shown]
        radius = figures["median_radius"]
        lines.append(
            f"| {one['title']} | {_three(figures['accuracy'])} | "
            f"{'none' if radius is None else radius} | {' | '.join(cells)} |"
        )
    data = results[0]["data"]
    lines += ["", f"- Test: {data['rows']:,} texts ({data['note'] or 'complete'})."]
    lines += sorted({f"- Trained on {_training(one)}." for one in results})
    lines += [f"- {one['title']}: {one['note']}" for one in results if "note" in one]
    return "\n".join(lines) + "\n"


def _training(one: dict[str, Any]) -> str:
    run = one["training"]["run"]
    train = run["train"]
    return (
        f"{train['name']}, {train['rows']:,} rows ({train['note'] or 'complete'}), seed "
        f"{run['options']['seed']}"
    )


def _mean(one: dict[str, Any], shown: tuple[int, ...]) -> float:
    return sum(float(_share(one["figures"]["certified_accuracy"], d)) for d in shown)


def _comparison(one: dict[str, Any]) -> str:
    data, options = one["data"], one["training"]["run"]["options"]
    lines = [
        f"### {one['title']}",
        "",
        f"{data['rows']} test texts ({data['note']}), {one['masks']:,} masks, alpha "
        f"{one['alpha']}, seed {one['seed']}; {one['training']['run']['base']} trained with "
        f"`hide={options['hide']}` for {options['epochs']} epochs of cross-entropy.",
        "",
        "| certificate | guarantee | MCB | CR@0 | CR@1 | CR@2 | CR@3 | CR@4 | CR@5 |",
        "|---|---|---:|" + "---:|" * 6,
    ]
    for kind, (title, guarantee) in _CERTIFICATES.items():
        figures = one["certificates"][kind]
        cells = [_share(figures["certified_accuracy"], d) for d in range(6)]
        lines.append(
            f"| {title} | {guarantee} | {figures['median_radius']} | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


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


def _commands(results: list[dict[str, Any]], comparisons: list[dict[str, Any]]) -> str:
    lines = ["## Commands", ""]
    for one in [*results, *comparisons]:
        corpus = _CORPORA[one["data"]["name"]]
        title = one["title"] if one["title"].startswith(corpus) else f"{corpus}, {one['title']}"
        lines += [f"{title} ({one['hardware']}):", ""]
        lines += ["```", *one["commands"], "```", ""]
    return "\n".join(lines)


def _share(shares: list[float], changed: int) -> str:
    return _three(shares[changed] if changed < len(shares) else 0.0)


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


if __name__ == "__main__":
    PAGE.write_text(results_page(), encoding="utf-8")
    print(PAGE)
