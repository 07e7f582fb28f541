"""The section of docs/performance.md on the GPU engine, from what `benchmarks.gpu_engine` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_WAYS = (
    ("published", "float32"),
    ("plain", "float32"),
    ("engine", "float32"),
    ("screened", "float32"),
    ("plain", "float16"),
    ("engine", "float16"),
    ("engine", "bfloat16"),
)
MODELS = ("22.7M", "110M")
MODES = ("drop, k=2", "drop, k=4", "mask")
_NAIVE = 190_000  # copies a second of the 22.7M encoder with four words kept, as asked for
_FORMULA = (
    "- **share of peak** counts the whole model on the tokens of a copy, without padding: for each "
    "token and layer 2(4ww + 2wi) operations for a width of w and i inside, and 4w times the row's "
    "tokens for attention; for each row 2ww + 2wc for the head. *executed* counts what the engine "
    "does: the first layer's projections once for every token at a position, the first row of the "
    "last layer, attention in tiles of 16 to 64 tokens."
)


def engine_section(path: Path) -> str:
    """The section as Markdown."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    [run], [peak] = kinds["run"], kinds["peak"]
    speeds = {(r["model"], r["mode"], r["way"], r["dtype"]): r for r in kinds["throughput"]}
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        "## The GPU engine",
        "",
        f"{run['machine']}; {versions}. {run['texts']} AG News test texts, {run['masks']:,} kept "
        f"sets each, seed {run['seed']}; from texts to scores, with all work of the host; best of "
        f"five; `{run['command']}`.",
        "",
        "- **22.7M**: all-MiniLM-L6-v2, fine-tuned for a short time with two words kept; **110M**: "
        "BERT-base's shape with random weights.",
        "- **published**: masked strings at a rate of 0.9, each tokenised, padded, batches of 300.",
        "- **plain**: the model's own forward over rows sorted by length "
        '(`backend="plain"`); **engine**: `backend="packed"`, the default on a GPU.',
        "- **mask** hides 90 % of the words; **screened** gives `float32`'s votes; how many copies "
        "it must compute again depends on how sure the model is.",
        "- **peak**: a large matrix product in bfloat16 ran at "
        f"{peak['flops'] / 1e12:.0f} TFLOP/s.",
        _FORMULA,
        "",
        *_speeds(speeds),
        "",
        "In `float32` nothing is rounded to TF32, so its ceiling is some 50 TFLOP/s. The `float32` "
        "columns, but for *published*, are from a later run (`--dtype float32`): its attention "
        "kernel was changed after the others.",
        "",
        *_targets(speeds),
        "",
        *_profiles(kinds["profile"]),
        "",
        *_agreement(kinds["agreement"]),
        "",
        *_certified(kinds["certified"], speeds),
        "",
        *_growth(kinds["growth"]),
    ]
    return "\n".join(lines) + "\n"


def _speeds(speeds: dict[tuple[str, str, str, str], dict[str, Any]]) -> list[str]:
    heads = [f"{way} {dtype}" if way != "screened" else way for way, dtype in _WAYS]
    lines = [
        f"| copies a second | tokens a copy | {' | '.join(heads)} | "
        "share of peak, bfloat16 (executed) |",
        f"|---|---:|{'---:|' * (len(_WAYS) + 1)}",
    ]
    for model in MODELS:
        for mode in ("mask", *MODES[:2]):
            cells = []
            for way, dtype in _WAYS:
                found = speeds.get((model, mode, way, dtype))
                cells.append(f"{found['copies_per_second']:,}" if found else "")
            best = speeds[model, mode, "engine", "bfloat16"]
            lines.append(
                f"| {model}, {mode} | {best['tokens_per_copy']:.1f} | {' | '.join(cells)} | "
                f"{100 * best['share']:.0f} % ({100 * best['executed_share']:.0f} %) |"
            )
    return lines


def _targets(speeds: dict[tuple[str, str, str, str], dict[str, Any]]) -> list[str]:
    def share(mode: str) -> str:
        return f"{100 * speeds['110M', mode, 'engine', 'bfloat16']['share']:.0f} %"

    def faster(model: str, mode: str) -> str:
        base = speeds[model, "mask", "published", "float32"]["copies_per_second"]
        own = speeds[model, mode, "engine", "bfloat16"]["copies_per_second"]
        return f"{own / base:.0f}"

    four = speeds["22.7M", "drop, k=4", "engine", "float16"]["copies_per_second"]
    return [
        "| | measured | target |",
        "|---|---:|---:|",
        f"| 110M, `mask`: share of peak | {share('mask')} | 40 % |",
        f"| 110M, `drop`, k=2: share of peak | {share('drop, k=2')} | 25 % |",
        f"| 110M, `drop`, k=4: share of peak | {share('drop, k=4')} | 25 % |",
        f"| 22.7M, k=4, float16: times {_NAIVE:,} copies a second | {four / _NAIVE:.1f} | 5 |",
        *(
            f"| {model}, bfloat16, k=2 / k=4 / `mask`: times published | "
            f"{' / '.join(faster(model, mode) for mode in MODES)} | 100 |"
            for model in MODELS
        ),
        "",
        "With `mask` it is less than 100 times published, since both compute the same 40 tokens a "
        "copy.",
    ]


def _profiles(profiles: list[dict[str, Any]]) -> list[str]:
    parts = list(profiles[0]["parts"])
    lines = [
        "### Where the GPU's time goes",
        "",
        "By `torch.profiler`, bfloat16; *busy*: share of the time from texts to scores. The host "
        "only forms batches and starts kernels. A 110M model hides that; a 22.7M model with rows "
        "of a few tokens waits for it a third of the time.",
        "",
        f"| | busy | {' | '.join(parts)} |",
        f"|---|---:|{'---:|' * len(parts)}",
    ]
    for row in profiles:
        total = sum(row["parts"].values())
        cells = [f"{100 * row['parts'].get(part, 0) / total:.1f} %" for part in parts]
        busy = min(100, round(100 * row["busy"]))
        lines.append(f"| {row['model']}, {row['mode']} | {busy} % | {' | '.join(cells)} |")
    return lines


def _agreement(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "### How exact the engine is",
        "",
        "How far its logits are from those of the model's own forward, on 4,000 copies, and the "
        "tolerance measured through it (a difference of two logits moves by at most twice as much "
        "as a logit).",
        "",
        "All figures of the engine were measured before a row had the same bits in any batch, "
        "which makes the tolerance 0. What that costs, in one run on an H200, 128 made-up texts of "
        "20 to 59 words, best of five, twice, masked copies a second: a 110M BERT in bfloat16 "
        "69,541 (before: 69,784); a 22.7M BERT in float32 49,075 and 49,023 (before: 48,895 and "
        "48,745), in bfloat16 363,296 and 389,644 (before: 398,569 and 394,108). With k=2, rows of "
        "a few tokens wait for the host, whose pace varies by a third from run to run: 2.3 to "
        "3.5 million (before: 2.6 to 3.5).",
        "",
        "MPNet's relative positions are known to it, too. all-mpnet-base-v2 in float16 with nine "
        "of ten words dropped, 64 texts of AG News, one run on an H200: 312,067 copies a second, "
        "by the model's own forward 11,309 (1,000 and 200 copies a text, both without a "
        "tolerance; `python -m benchmarks.mpnet_engine ENCODER`).",
        "",
        "| | dtype | farthest | tolerance | same votes |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {row['model']}, {row['mode']} | {row['dtype']} | {row['moved']:.1e} | "
        f"{row['tolerance']:.1e} | {100 * row['same_votes']:.2f} % |"
        for row in rows
        if row["way"] == "plain"
    ]
    return lines


def _certified(
    rows: list[dict[str, Any]], speeds: dict[tuple[str, str, str, str], dict[str, Any]]
) -> list[str]:
    base = speeds["22.7M", "mask", "published", "float32"]["copies_per_second"]
    lines = [
        "### Whole certificates",
        "",
        '`SmoothedClassifier(..., keep=2, hide="drop").certify(texts)`, 22.7M, '
        f"{rows[0]['texts']} texts with {rows[0]['copies']:,} copies. The published procedure "
        f"takes {6000 / base:.2f} s a text here. The rest of the time is the search, on one core.",
        "",
        "| dtype | texts a second | copies a second | share of scoring | times published |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['dtype']} | {row['texts_per_second']:.0f} | {row['copies_per_second']:,} | "
        f"{100 * row['scoring_share']:.0f} % | {row['texts_per_second'] * 6000 / base:.0f} |"
        for row in rows
    ]
    return lines


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "### How cost grows",
        "",
        "Microseconds a copy, float16, the 22.7M shape with random weights unless the model is "
        "named; texts of 50 words, 4 kept, 4 classes unless said. `mask` grows with the words of a "
        "text, `drop` with the kept words; classes cost the transfer of their scores. (Rows of the "
        "last table are from another run of the same script.)",
        "",
    ]
    for axis in dict.fromkeys(row["axis"] for row in rows):
        own = [row for row in rows if row["axis"] == axis]
        values = list(dict.fromkeys(row["value"] for row in own))
        cost = {(row["way"], row["value"]): row["microseconds_per_copy"] for row in own}
        lines += [
            f"| {axis} | {' | '.join(str(value) for value in values)} |",
            f"|---|{'---:|' * len(values)}",
        ]
        for way in dict.fromkeys(row["way"] for row in own):
            cells = [f"{cost[way, v]:.2f}" if (way, v) in cost else "" for v in values]
            lines.append(f"| `{way}` | {' | '.join(cells)} |")
        lines.append("")
    return lines[:-1]
