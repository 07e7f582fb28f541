"""docs/performance.md from the figures of one run; ``python -m benchmarks.report`` rewrites it."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from benchmarks import job_priority, protect_speed, table, where
from benchmarks.gpu_engine_page import engine_section
from benchmarks.settings import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results.json"
GPU_RESULTS = REPOSITORY / "benchmarks" / "gpu_results.json"
ENGINE_RESULTS = REPOSITORY / "benchmarks" / "gpu_engine.jsonl"
ATTACK_RESULTS = REPOSITORY / "benchmarks" / "attack_speed.jsonl"
PAGE = REPOSITORY / "docs" / "performance.md"

_HEAD = """# Performance

What certificates cost, measured by `make bench`; in short:

{short}

Every ratio compares measurements of one run on one machine; seconds depend on the machine.
Machine: {machine}. Versions: {versions}.{note}
"""


_SCREENED = (
    '`dtype="screened"` (`--dtype screened`) gives the votes of `float32`, and so its '
    "certificates, but decides the clear ones in `float16`: copies whose two best logits are no "
    "farther apart than a *screen* are computed again in `float32`. The screen is `float32`'s "
    "tolerance plus how far a difference of two logits may differ between the two types. That is "
    "measured on some 2,000 random copies, with a safety factor of 8; it is an assumption, and "
    "every copy that is computed twice is checked against it. A 1-layer encoder, trained on masked "
    "texts of AG News, has a screen of 0.5: of 11,815 copies of 60 AG News test texts with 90 % of "
    "the words masked, 465 (3.9 %) were computed again, and all certificates were those of "
    "`float32`. Only votes are "
    'exact, so it is refused for `ensemble="score"` and `"logit"`, blends, and attacks on a plain '
    "classifier. On a CPU it works, but `float16` is slow there."
)


def performance_page(results: dict[str, Any]) -> str:
    """The page as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    about = {"machine": results["machine"], "versions": versions, "note": results.get("note", "")}
    parts = [_HEAD.format(**about, short=_short(results))]
    renderers = {
        "encoder": _encoder,
        "search": _search,
        "streaming": _streaming,
        "protect": protect_speed.section,
        "shipped": _shipped,
        "table": table.section,
        "where": where.section,
        "attacks": _attacks,
        "service": _service,
        "jobs": job_priority.section,
    }
    for name, render in renderers.items():
        figures = results[name]
        if "skipped" in figures:
            parts.append(f"## {name}\n\nNot measured: {figures['skipped']}.\n")
        else:
            parts.append(render(figures))
    if GPU_RESULTS.is_file():
        parts.append(_gpu(json.loads(GPU_RESULTS.read_text())))
    if ENGINE_RESULTS.is_file():
        parts.append(engine_section(ENGINE_RESULTS))
    if ATTACK_RESULTS.is_file():
        lines = ATTACK_RESULTS.read_text().splitlines()
        parts.append(_attack_runs([json.loads(line) for line in lines]))
    return "\n".join(parts)


def _short(results: dict[str, Any]) -> str:
    """The page's first lines: of each part that was measured, its main figure."""
    lines = [
        f"- **Word table, two CPU cores:** {row['first_2']:,} news texts a second."
        for row in results["table"].get("models", [])
        if row["model"] == "news-words"
    ]
    if "skipped" not in (encoder := results["encoder"]):
        lines.append(
            f"- **22.7M encoder, two CPU cores:** {encoder['exact_median_s']:.2f} s a text, "
            f"{encoder['exact_speedup']:.0f} times faster than the published procedure."
        )
    if ENGINE_RESULTS.is_file():
        for row in map(json.loads, ENGINE_RESULTS.read_text().splitlines()):
            if row["kind"] == "certified" and row["dtype"] == "float32":
                pace = f"{row['texts_per_second']:.0f}"
                lines.append(f"- **22.7M encoder, one H200:** {pace} texts a second in float32.")
    served = [row for row in results["service"].get("models", []) if row["processes"] == 2]
    if served and all(row["compiled"] for row in served):
        said = ", ".join(f"{row['compiled']['a_second']:,.0f} (`{row['model']}`)" for row in served)
        lines.append(f"- **Service, two CPU cores:** answers a second: {said}.")
    return "\n".join(lines)


def _shipped(figures: dict[str, Any]) -> str:
    lines = [
        "## The models that come with ranmask",
        "",
        "News models on AG News test texts, `reviews-words` on IMDB; labels are not looked at. "
        "Processor time, of many at once the best of five runs: other programs were "
        "busy. "
        f"The word table is {figures['table_faster']} times as fast as `news`, in which an "
        "encoder reads the whole text beside a table."
        + "".join(
            f" That encoder alone takes {row['reader_milliseconds']} ms."
            for row in figures["models"]
            if "reader_milliseconds" in row
        ),
        "",
        "| model | texts | load, first text | a text, many at once | slowest of 50 alone |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{row['model']}` | {row['texts']:,} | {row['load_seconds']} s | "
        f"{row['milliseconds_a_text']} ms | {row['slowest_alone_milliseconds']} ms |"
        for row in figures["models"]
    ]
    return "\n".join(lines) + "\n"


def _attacks(figures: dict[str, Any]) -> str:
    first = figures["recipes"][0]
    lines = [
        "## Attacks in lock-step",
        "",
        f"{first['texts']} AG News test texts, the shipped default: 64 texts at a time "
        "against one at a time, by the same code, with the same outcomes and queries (checked). "
        "In both, only copies that show a changed word are scored again. Processor time.",
        "",
        "| recipe | queries | copies scored, of all | together | one by one | times faster |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['recipe']} | {row['queries']:,} | {row['copies_scored']:,} of "
        f"{row['copies_without_sharing']:,} | {row['seconds_together']} s | "
        f"{row['seconds_one_by_one']} s | {row['faster']} |"
        for row in figures["recipes"]
    ]
    return "\n".join(lines) + "\n"


def _attack_runs(runs: list[dict[str, Any]]) -> str:
    """What `benchmarks.attack_speed` printed, with which ``code`` ran."""
    host = [run for run in runs if run["device"] == "none"]
    device = [run for run in runs if run["device"] != "none"]
    before, many, now = (
        next(run for run in device if run["processes"] == processes and run.get("code") == code)
        for processes, code in ((1, None), (18, None), (1, "today"))
    )
    first = host[0]
    lines = [
        "## Whole attack runs",
        "",
        "BERT-Attack against an encoder smoothed by fresh masks, as `ranmask attack --output` runs "
        "it. The host's part alone, on a CPU (`python -m benchmarks.attack_speed --host`): "
        "forward passes, and what a GPU finds out by itself, cost nothing; starting kernels is not "
        f"counted. {first['machine']}, busy with other work, so a second is one of processor time; "
        f"{first['masks']} masks a query, 10 % of the words kept; before and after the changes "
        "below in turn, median of three, with the same outcomes.",
        "",
        "| hidden words | texts | copies | before | after | copies a second, before and after |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for texts, hide in dict.fromkeys((run["texts"], run["hide"]) for run in host):
        own = [run for run in host if (run["texts"], run["hide"]) == (texts, hide)]
        copies = own[0]["copies"]
        seconds = [
            median(run["processor_seconds"] for run in own if run["code"] == code)
            for code in ("before", "after")
        ]
        lines.append(
            f"| `{hide}` | {texts} | {copies:,} | {seconds[0]:.2f} s | {seconds[1]:.2f} s | "
            f"{_thousands(copies / seconds[0])}, {_thousands(copies / seconds[1])} |"
        )
    lines += [
        "",
        "What changed: garbage is looked for seldom (a tenth of the time before), no batch of a "
        "single text follows each full one, masks are drawn in pieces that fit into a cache, and "
        "rows for the sentence encoder are laid out for all texts at once. A profile has no peak "
        "any more: a quarter of the time lays out copies and packs them, a sixth each draws masks, "
        "searches, and finds the tokens of the language model and the sentence encoder.",
        "",
        f"**On an {now['device'].removeprefix('NVIDIA ')}**, one process (`--device cuda --dtype "
        f"float16 --texts {now['texts']}`; random heads): {now['copies']:,} copies in "
        f"{now['seconds']} s, {now['copies_a_second']:,} a second, where the engine alone computed "
        f"{now['engine_copies_a_second']:,}: {now['share_of_engine']:.0%}; half is the aim. With "
        f"older code, and trained models: {before['copies']:,} copies in {before['seconds']} s, "
        f"{before['copies_a_second']:,} a second, {before['share_of_engine']:.0%} of "
        f"{before['engine_copies_a_second']:,}. "
        f"{many['processes']} processes (NVIDIA's MPS; other copies, beside trainings): "
        f"{many['copies']:,} copies in {many['seconds']:.0f} s, "
        f"{_thousands(many['copies'] / many['seconds'])} a second, with the GPU at 100 %: so "
        "attacks that are to fill a GPU run several at a time (`--workers`, or `ranmask reproduce "
        "--jobs`). One process starts few forward passes: for 128 texts "
        "(`drop`, 9,865,000 copies) 766 of the victim; 83 of the language model "
        "and 119 of the sentence encoder, in 83 rounds, are about as few as there can be.",
        "",
    ]
    return "\n".join(lines)


def _thousands(number: float) -> str:
    return f"{round(number, -3):,.0f}"


def _service(figures: dict[str, Any]) -> str:
    first = figures["models"][0]
    lines = [
        "## The service under load",
        "",
        f"`ranmask serve`: {first['connections']} clients at once ask for certificates, one text "
        "of 5 to 12 words a request (beginnings of AG News test texts), for "
        f"{first['seconds']:.0f} s, on the same cores; each answer is compared with that of "
        "`ranmask certify`. *Alone*: one client, one request after another. Then four SIGHUP under "
        "load, while keys and models are read again, and in the end SIGTERM: what was accepted is "
        f"answered (*lost*: requests without an answer).{figures.get('note', '')}",
        "",
        "| model | processes | answers | wrong, refused, lost | alone | together | times | "
        "p50, p99 | memory at first, most, at last | answers around SIGHUP, after SIGTERM |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{row['model']}` | {row['processes']} | {row['answers']:,} | "
        f"{row['wrong']}, {row['refused']}, {row['lost']} | {row['a_second_alone']}/s | "
        f"{row['a_second_together']}/s | "
        f"{row['ratio']} | {row['p50_ms']}, {row['p99_ms']} ms | "
        f"{', '.join(map(str, row['memory_mib']))} MiB | "
        f"{row['answered_while_reloading']:,}, {row['answered_while_ending']:,} |"
        for row in figures["models"]
    ]
    lines += _killed(figures["models"])
    compiled = [row for row in figures["models"] if row["compiled"] is not None]
    if compiled:
        lines += [
            "",
            "The client above is Python's, and takes as much of the cores as the service. With a "
            "compiled one, `wrk`, that compares nothing (CPU time is that of all processes of the "
            "service, and of the client; *load* is the machine's before, others included):",
            "",
            "| model | processes | answers a second | p50, p99 | CPU an answer, service and "
            "client | cores, service and client | not 200 | load |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| `{row['model']}` | {row['processes']} | {_compiled_cells(row['compiled'])} |"
            for row in compiled
        ]
    for compared in figures.get("compared", []):
        lines += [
            "",
            f"`{compared['model']}`, two processes, before and after httptools and uvloop read "
            "HTTP and questions pass FastAPI's router by, by turns "
            "(`python -m benchmarks.service --before CHECKOUT`):",
            "",
            "| | answers a second | p50, p99 | CPU an answer, service and client | "
            "cores, service and client | not 200 | load |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for pair in zip(compared["before"], compared["now"], strict=True):
            for name, row in zip(("before", "after"), pair, strict=True):
                lines.append(f"| {name} | {_compiled_cells(row)} |")
    return "\n".join(lines) + "\n"


def _killed(rows: list[dict[str, Any]]) -> list[str]:
    """What SIGKILL of one process of several does."""
    found = [row for row in rows if row["killed"] is not None]
    if not found:
        return []
    said = "; ".join(
        f"`{row['model']}`: {row['killed']['answers']:,} answers, {row['killed']['wrong']} wrong, "
        f"{row['killed']['lost']} lost, another process ready after "
        f"{row['killed']['replaced_after_seconds']} s"
        for row in found
    )
    return [
        "",
        "SIGKILL of one of two processes, under the same load, loses what it was answering, at "
        f"most one request a connection: {said}.",
    ]


def _compiled_cells(row: dict[str, Any]) -> str:
    return (
        f"{row['a_second']:,.0f} | {row['p50_ms']}, {row['p99_ms']} ms | "
        f"{row['server_us_an_answer']:.0f}, {row['client_us_an_answer']:.0f} µs | "
        f"{row['server_cores']}, {row['client_cores']} | {row['not_200']} | {row['load_before']}"
    )


def _gpu(figures: dict[str, Any]) -> str:
    lines = [
        "## Number types, on a GPU",
        "",
        f"{figures['machine']}, torch {figures['torch']}. all-MiniLM-L6-v2 fine-tuned with 2 words "
        "kept (3 epochs of cross-entropy, seed 0, by a loop that `ranmask train` replaced) on "
        "64.7k rows of a *partial* AG News training set (66.7k of 120k rows); exact certificate, "
        f"{figures['texts']} test texts, `benchmarks/gpu.py`.",
        "",
        "**These figures are old**: they were measured before a copy had the same bits in any "
        "batch ([certificates.md](certificates.md#4-floating-point-in-the-model)). Since then the "
        "tolerance is 0 on this GPU in all three types, and no vote is uncertain, so accuracy, MCB "
        "and CR would be those of `float32` but for votes that a type itself changes.",
        "",
        "| dtype | tolerance | uncertain votes | copies a second | accuracy | MCB | CR@1..8 |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row['dtype']} | {row['tolerance']:.2g} | {100 * row['uncertain']:.3f} % | "
        f"{row['copies_per_second']:,} | {row['accuracy']:.3f} | {row['median_radius']} | "
        f"{' '.join(f'{share:.2f}' for share in row['certified_accuracy'])} |"
        for row in figures["number_types"]
    ]
    lines += [
        "",
        _SCREENED,
    ]
    return "\n".join(lines) + "\n"


def _encoder(figures: dict[str, Any]) -> str:
    rows = figures["texts"]
    lines = [
        "## A text on the CPU: the published procedure against ours",
        "",
        "all-MiniLM-L6-v2 (22.7M parameters) with a 4-class head, 2 threads, fp32, "
        f"{len(rows)} AG News test texts. *Published*: 1,000 + 5,000 masked strings at a mask rate "
        "of 0.9, each tokenised, padded, in batches of 300, once. *exact*: "
        '`SmoothedClassifier(..., keep=2, hide="drop").certify([text])`, complete with its search, '
        "best of three. *drop* and *mask*: the same number of kept sets at the same mask rate as "
        "published, through our path, once.",
        "",
        "| median over the texts | measured | target |",
        "|---|---:|---:|",
        f"| exact, `keep=2`, `drop`: times faster than published | "
        f"{figures['exact_speedup']:.0f} | 100 |",
        f"| 6,000 sets, `drop`: times faster than published | {figures['drop_speedup']:.1f} | 5 |",
        f"| 6,000 sets, `mask`: times faster than published | {figures['mask_speedup']:.2f} | 1 |",
        f"| `mask`: share of the time inside the model's forward pass | "
        f"{100 * figures['mask_forward_share']:.1f} % | 90 % |",
        f"| seconds a text: published / exact | {figures['published_median_s']:.1f} / "
        f"{figures['exact_median_s']:.2f} | |",
        "",
        "<details><summary>Each text</summary>",
        "",
        "| text | words | published s | exact s | times | drop s | mask s |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['text']} | {row['words']} | {row['published_s']:.1f} | {row['exact_s']:.2f} | "
        f"{row['published_s'] / row['exact_s']:.0f} | {_optional(row, 'drop_s')} | "
        f"{_optional(row, 'mask_s')} |"
        for row in rows
    ]
    lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _optional(row: dict[str, Any], key: str) -> str:
    return f"{row[key]:.1f}" if key in row else ""


def _search(figures: dict[str, Any]) -> str:
    lines = [
        "## The exact search",
        "",
        "The hardest question for each case: can `changed` words cost one more than the largest "
        "cost there is? (Targets: 1,000 sets of 4 out of 43 words, 5 changed: under 50 ms; 20,000 "
        "sets: under 1 s.) The last row is a whole certificate that hits the work limit and ends "
        "with a smaller radius that is still proved.",
        "",
        "| words | kept | sets | changed | vote share | milliseconds | proved |",
        "|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row['words']} | {row['kept']} | {row['sets']:,} | {row['changed']} | "
        f"{row['vote_share']:.2f} | {row['milliseconds']} | {row['proved']} |"
        for row in figures["cases"]
    ]
    return "\n".join(lines) + "\n"


def _streaming(figures: dict[str, Any]) -> str:
    return "\n".join(
        [
            "## The command line",
            "",
            f"{figures['texts']:,} short texts through `ranmask certify --input --output` with a "
            "fake base classifier.",
            "",
            "| | measured | target |",
            "|---|---:|---:|",
            f"| memory growth | {figures['growth_mb']} MB (from {figures['first_mb']} MB) "
            "| under 200 MB |",
            f"| texts a second | {figures['texts_per_second']:,} | |",
            f"| `ranmask --help` | {figures['help_s']} s | under 0.5 s |",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(performance_page(json.loads(RESULTS.read_text())))
