"""results/attacks.json from the files of attack runs.

``python -m benchmarks.collect_attacks FOLDER`` reads ``CORPUS-VICTIM-RECIPE.jsonl`` files with
their records, or ``CORPUS-VICTIM-RECIPE.N.jsonl`` where a run was cut into parts, and the
``training.json`` of the models as ``MODEL-CORPUS.json``.  Texts are left out: the corpora may not
be published here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.settings import REPOSITORY
from ranmask.attacks.outcome import AttackOutcome, summarise
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines

TARGET = REPOSITORY / "results" / "attacks.json"
VICTIMS = ("plain", "vote", "score", "votelm")
RECIPES = ("textfooler", "bert-attack", "deepwordbug")


def collect(folder: Path) -> dict[str, Any]:
    """Everything that the page shows, without a text."""
    about = json.loads((folder / "about.json").read_text())
    runs = []
    for corpus in ("agnews", "sst2"):
        for victim in VICTIMS:
            for recipe in RECIPES:
                parts = sorted(folder.glob(f"{corpus}-{victim}-{recipe}.jsonl"))
                parts += sorted(folder.glob(f"{corpus}-{victim}-{recipe}.[0-9].jsonl"))
                if parts:
                    runs.append(run_of(corpus, victim, recipe, parts))
    trained = {
        path.stem: json.loads(path.read_text())
        for path in sorted(folder.glob("*-*.json"))
        if path.stem.split("-")[0] in ("plain", "ranmask", "mlm")
    }
    models = {
        name: {key: one[key] for key in ("run", "validation")} for name, one in trained.items()
    }
    return {
        "format": "ranmask-attacks",
        "version": 1,
        **about,
        "data": {"split": "test", "corpora": sorted({run["corpus"] for run in runs})},
        "models": without_folders(models),
        "runs": runs,
    }


def without_folders(value: Any) -> Any:
    """Names instead of paths: where a resource lay is nobody's business."""
    if isinstance(value, dict):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_folders(one) for one in value]
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value


def run_of(corpus: str, victim: str, recipe: str, parts: list[Path]) -> dict[str, Any]:
    lines = [line for part in parts for line in stored_lines(part)]
    record = read_header(parts[0]) or {}
    summary = summarise(AttackOutcome.from_dict(line) for line in lines)
    paces = [(read_header(part) or {}).get("finished", {}) for part in parts]
    options = record["classifier"].get("options", {})
    keep = ("mask_rate", "masks", "ensemble", "sampling", "seed")
    return {
        "corpus": corpus,
        "victim": victim,
        "recipe": recipe,
        "name": record["recipe"]["name"],
        "declared": without_folders(record["recipe"]),
        "smoothing": {name: options[name] for name in keep if name in options} or None,
        "parts": len(parts),
        "figures": summary.values(),
        "copies_scored": sum(pace.get("copies_scored", 0) for pace in paces),
    }


if __name__ == "__main__":
    TARGET.write_text(json.dumps(collect(Path(sys.argv[1])), indent=1) + "\n")
