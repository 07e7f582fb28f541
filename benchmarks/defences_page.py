"""The part of docs/results.md about defences, from results/defences.json."""

from __future__ import annotations

from typing import Any

_CORPORA = {"agnews": "AG News", "sst2": "SST2"}
_RECIPES = {
    "textfooler": "TextFooler",
    "bert-attack": "BERT-Attack",
    "deepwordbug": "DeepWordBug",
}
_VICTIMS = {
    "none": "none (baseline)",
    "pgd": "PGD-10",
    "freelb": "FreeLB",
    "freelb-1": "FreeLB, max norm 1",
    "hotflip": "Adv-HotFlip",
    "augment": "augmentation",
    "safer-vote": "SAFER, vote",
    "safer-score": "SAFER, score",
    "vote": "RanMASK, vote",
    "score": "RanMASK, score",
    "votelm": "RanMASK, vote + LM",
    "ranmask+freelb": "RanMASK + FreeLB (max norm 1), vote",
    "ranmask+dne": "RanMASK + DNE, vote",
    "cascade": "cascade (adaptive attack)",
}
_COMPARED = {
    "safer-vote": "SAFER, vote",
    "safer-score": "SAFER, score",
    "r5-vote": "RanMASK 5 %, vote",
    "r5-score": "RanMASK 5 %, score",
    "r5-votelm": "RanMASK 5 %, vote + LM",
    "r90-vote": "RanMASK 90 %, vote",
    "r90-score": "RanMASK 90 %, score",
    "r90-votelm": "RanMASK 90 %, vote + LM",
}


def defences_part(record: dict[str, Any]) -> str:
    """The part as Markdown."""
    lines = [
        "## Defences",
        "",
        "All trained by `ranmask train --defence` with the same base "
        f"({record['base']}), rows, epochs, batch, learning rate and seed; the first 300 test "
        "texts. Cln, Boa and Succ as above, in percent. The models are of one seed, trained before "
        "those of [the paper's tables](paper.md), which met BERT-Attack, too, and more texts. Here "
        "RanMASK votes over a *fixed* family of 100 masks, as `ranmask` certifies and deploys it: "
        "the same text always gets the same votes.",
        "",
    ]
    for corpus, name in _CORPORA.items():
        lines += [f"### {name}: all defences", "", _trained(record, corpus), ""]
        runs = [run for run in record["runs"] if run["corpus"] == corpus]
        lines += [*_table(runs, _VICTIMS), ""]
    lines += ["### AG News: against SAFER", "", record["safer_setting"], ""]
    lines += [*_table(record["safer_runs"], _COMPARED), ""]
    lines += ["### What is proved", "", record["certified_setting"], "", *_certified(record), ""]
    lines += ["### The detector cascade", "", record["cascade_setting"], "", *_cascades(record), ""]
    lines += ["### What the tables say", "", *_discussion(record), ""]
    lines += [
        f"Run on {record['hardware']}. Code of commit `{record['commit']}`. {record['unfinished']}",
        "",
        *_folded_commands(record),
    ]
    return "\n".join(lines)


def _folded_commands(record: dict[str, Any]) -> list[str]:
    """The commands of a record, to be opened by those who want to see them."""
    block = ["```", *record["commands"], "```"]
    return ["<details><summary>Commands</summary>", "", *block, "", "</details>", ""]


def _discussion(record: dict[str, Any]) -> list[str]:
    fixed, fresh = (record["masks"][kind]["figures"] for kind in ("fixed", "fresh"))
    check = (
        f"The same model, DeepWordBug, {fixed['texts']} texts, 100 masks, "
        f"{record['masks_setting']}: robust accuracy "
        f"{_percent(fresh['robust_accuracy'])} with masks drawn "
        "afresh for each query, "
        f"{_percent(fixed['robust_accuracy'])} with fixed ones (Cln "
        f"{_percent(fresh['clean_accuracy'])} and "
        f"{_percent(fixed['clean_accuracy'])})."
    )
    return [line.replace("{check}", check) for line in record["discussion"]]


def _trained(record: dict[str, Any], corpus: str) -> str:
    run = record["models"][f"{corpus}-none"]["run"]
    train, options = run["train"], run["options"]
    note = f" ({train['note']})" if train["note"] else ""
    half = record["augmented"][corpus]
    return (
        f"Trained on {train['rows']:,} rows{note}, {options['epochs']} epochs, batch "
        f"{options['batch_size']}, learning rate {options['learning_rate']:g}. Augmentation: "
        f"{sum(half.values()):,} of them attacked, {half['succeeded']:,} successes added."
    )


def _table(runs: list[dict[str, Any]], victims: dict[str, str]) -> list[str]:
    found = {(run["victim"], run["recipe"]): run["figures"] for run in runs}
    recipes = [recipe for recipe in _RECIPES if any(met == recipe for _, met in found)]
    titles = " | ".join(f"{_RECIPES[recipe]}: Boa | Succ" for recipe in recipes)
    lines = [f"| defence | Cln | {titles} |", "|---|---:|" + "---:|---:|" * len(recipes)]
    for victim, shown in victims.items():
        figures = [found.get((victim, recipe)) for recipe in recipes]
        clean = next((one["clean_accuracy"] for one in figures if one), None)
        if clean is None:
            continue
        cells = [
            f"{_percent(one['robust_accuracy'])} | {_percent(one['success_rate'])}"
            if one
            else "*not run* | "
            for one in figures
        ]
        lines.append(f"| {shown} | {_percent(clean)} | " + " | ".join(cells) + " |")
    return lines


def _certified(record: dict[str, Any]) -> list[str]:
    lines = [
        "| corpus | model | texts | copies | accuracy | MCB | CR@1 | CR@2 | CR@3 | CR@4 | covers |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for one in record["certified"]:
        shares = [*one["certified_accuracy"], *[0.0] * 5][1:5]
        covers = "words of the table" if one["model"] == "safer" else "any words"
        lines.append(
            f"| {_CORPORA[one['corpus']]} | {one['model']} | {one['texts']:,} | "
            f"{one['options']['masks']:,} | {one['accuracy']:.3f} | {one['median_radius']} | "
            + " | ".join(f"{share:.3f}" for share in shares)
            + f" | {covers} |"
        )
    return lines


def _cascades(record: dict[str, Any]) -> list[str]:
    lines = [
        "| corpus | attack on the plain model | clean: plain | smoothed | cascade "
        "| attacked: plain | smoothed | cascade | smoothed path: clean | attacked | AUC |",
        "|---|---|" + "---:|" * 9,
    ]
    for name, one in record["cascades"].items():
        corpus, _, recipe = name.partition("-cascade-")
        shares = one["shares"]
        kinds = ("plain", "smoothed", "cascade")
        paths = [
            one[key]["smoothed"] / one[key]["texts"] for key in ("clean_paths", "attacked_paths")
        ]
        lines.append(
            f"| {_CORPORA[corpus]} | {_RECIPES[recipe]} | "
            + " | ".join(_percent(shares[f"{kind}_clean"]["share"]) for kind in kinds)
            + " | "
            + " | ".join(_percent(shares[f"{kind}_robust"]["share"]) for kind in kinds)
            + " | "
            + " | ".join(_percent(share) for share in paths)
            + f" | {shares['AUC']['share']:.3f} |"
        )
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
