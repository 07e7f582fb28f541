"""results/defences.json from the files of training, attack, certification and cascade runs.

``python -m benchmarks.collect_defences FOLDER`` reads, of a folder: ``about.json``; the
``training.json`` of models as ``CORPUS-MODEL.json``; attacks as ``a-CORPUS-VICTIM-RECIPE.jsonl``,
and those of the comparison with SAFER as ``a-CORPUS-VICTIM-RECIPE.t.jsonl``; certificates as
``CORPUS-certify-MODEL.jsonl``; reports of cascades as ``CORPUS-cascade-RECIPE.json``; attacked
training texts as ``CORPUS-halfN.jsonl``; one model attacked with its masks fixed and drawn afresh
as ``check-fixed.jsonl`` and ``check-fresh.jsonl``; runs with their records.  Texts are left out:
the corpora may not be published here.
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
from ranmask.runs.summary import RunSummary
from ranmask.training.evaluating import figures

TARGET = REPOSITORY / "results" / "defences.json"
CORPORA = ("agnews", "sst2")
RECIPES = ("textfooler", "bert-attack", "deepwordbug")
_ROC_POINTS = 20  # enough to draw it by


def collect(folder: Path) -> dict[str, Any]:
    """Everything that the page shows, without a text."""
    models, cascades = {}, {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        if record.get("format") == "ranmask-training":
            kept = {key: record[key] for key in ("run", "validation")}
            models[path.stem] = _without_folders(kept)
        elif record.get("format") == "ranmask-cascade-report":
            points = record["roc"]["points"]
            step = max(1, len(points) // _ROC_POINTS)
            record["roc"]["points"] = [*points[::step], points[-1]]
            cascades[path.stem] = _without_folders(record)
    return {
        "format": "ranmask-defences",
        "version": 1,
        **json.loads((folder / "about.json").read_text()),
        "data": {"split": "test", "corpora": list(CORPORA)},
        "models": models,
        "runs": _runs(folder, ""),
        "safer_runs": _runs(folder, ".t"),
        "masks": {
            kind: _run_of("agnews", kind, "deepwordbug", folder / f"check-{kind}.jsonl")
            for kind in ("fixed", "fresh")
        },
        "certified": _certified(folder),
        "cascades": cascades,
        "augmented": {corpus: _attacked_half(folder, corpus) for corpus in CORPORA},
    }


def _runs(folder: Path, tag: str) -> list[dict[str, Any]]:
    found = []
    for corpus in CORPORA:
        for recipe in RECIPES:
            for path in sorted(folder.glob(f"a-{corpus}-*-{recipe}{tag}.jsonl")):
                victim = path.name.removeprefix(f"a-{corpus}-").removesuffix(
                    f"-{recipe}{tag}.jsonl"
                )
                record = read_header(path) or {}
                if "finished" in record:  # texts that resist take longest: a part would flatter
                    found.append(_run_of(corpus, victim, recipe, path))
    return found


def _without_folders(value: Any) -> Any:
    """Names instead of paths: where a resource lay is nobody's business."""
    if isinstance(value, dict):
        return {key: _without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_folders(one) for one in value]
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value


def _run_of(corpus: str, victim: str, recipe: str, path: Path) -> dict[str, Any]:
    record = read_header(path) or {}
    summary = summarise(map(AttackOutcome.from_dict, stored_lines(path)))
    options = record["classifier"].get("options", {})
    keep = ("mask_rate", "masks", "ensemble", "sampling", "seed")
    return {
        "corpus": corpus,
        "victim": victim,
        "recipe": recipe,
        "name": record["recipe"]["name"],
        "declared": _without_folders(record["recipe"]),
        "smoothing": {name: options[name] for name in keep if name in options} or None,
        "figures": summary.values(),
        "copies_scored": record.get("finished", {}).get("copies_scored", 0),
    }


def _certified(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.glob("*-certify-*.jsonl")):
        record = read_header(path) or {}
        if "finished" not in record:
            continue
        corpus, _, model = path.stem.partition("-certify-")
        counted = RunSummary("certify")
        counted.add(stored_lines(path))
        summary = counted.certified
        classifier = record["classifier"]
        measured = figures(summary, classifier["labels"])
        about = {"corpus": corpus, "model": model, "options": classifier["options"]}
        found.append({**about, **measured})
    return found


def _attacked_half(folder: Path, corpus: str) -> dict[str, int]:
    statuses: dict[str, int] = {}
    for path in sorted(folder.glob(f"{corpus}-half*.jsonl")):
        for line in stored_lines(path):
            status = line["status"]
            statuses[status] = statuses.get(status, 0) + 1
    return statuses


if __name__ == "__main__":
    TARGET.write_text(json.dumps(collect(Path(sys.argv[1])), indent=1) + "\n")
