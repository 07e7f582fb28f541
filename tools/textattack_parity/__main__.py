"""Attack the same texts with TextAttack and with ranmask, and compare every step.

    python -m tools.textattack_parity --theirs PYTHON [--data FOLDER] [--texts N]

PYTHON is the interpreter of an environment that has TextAttack 0.3.11 (see docs/textattack.md).
Writes ``outcome.json`` beside this file; with ``--record`` also ``tests/data/textattack.json``,
what TextAttack does with made-up texts, for the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ranmask.data import data_folder
from tools.textattack_parity import common, compare, made_up, ours

ROOT = Path(__file__).parents[2]
OUTCOME = Path(__file__).with_name("outcome.json")
RECORDED = ROOT / "tests" / "data" / "textattack.json"
EACH = 10
"""Deletions and windows are compared for all made-up texts, and one in so many other strings."""
CORPORA = {
    "sst2": "sst2/test.parquet",
    "agnews": "agnews/test.parquet",
    "snli": "snli/test.parquet",
}


def main() -> int:
    """Run both sides, compare, write."""
    parser = argparse.ArgumentParser(
        prog="textattack_parity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--theirs", required=True, help="python of TextAttack's environment")
    parser.add_argument("--data", type=Path, help="data folder; else RANMASK_DATA; else ../shared")
    parser.add_argument("--texts", type=int, default=90, help="texts of each corpus (90)")
    parser.add_argument("--strings", type=int, default=5000, help="strings of each to cut (5000)")
    parser.add_argument(
        "--recipe", action="append", help="only this recipe; the record of the others stays"
    )
    parser.add_argument("--record", action="store_true", help="record theirs for the tests")
    parser.add_argument("--keep", type=Path, help="keep both sides' traces in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        given = inputs(arguments, folder)
        theirs = run_theirs(arguments.theirs, given, folder)
        outcome = against(given, theirs, folder)
    _write(OUTCOME, _with_others(outcome) if arguments.recipe else outcome, indent=1)
    if arguments.record:
        record(given, theirs, others=bool(arguments.recipe))
    unexplained = [one for one in outcome["differences"] if one["why"] is None]
    summary = {name: group["recipes"] for name, group in outcome["groups"].items()}
    sys.stdout.write(json.dumps({**summary, "cuts": outcome["cuts"]}, indent=1) + "\n")
    sys.stdout.write(f"{len(outcome['differences'])} differences, {len(unexplained)} of them ")
    sys.stdout.write(f"unexplained\n{json.dumps(unexplained, indent=1)[:4000]}\n")
    return bool(unexplained)


def inputs(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What both sides are given."""
    made = made_up.named()
    real = corpora(arguments.data or data_folder())
    some = [one for texts in real.values() for one in _spread(texts, arguments.texts)]
    made_up_strings = made_up.strings()
    strings = [
        *made_up_strings,
        *made_up.fuzz(5000, common.SEED),
        *(text for texts in real.values() for _, text in _spread(texts, arguments.strings)),
    ]
    recipes = arguments.recipe or list(common.RECIPES)
    groups = {
        "texts": _group([*made, *some], "nltk", folder / "model", recipes),
        "recorded": _group(made, "made up", folder / "recorded-model", recipes),
        "odd": _group(made_up.odd(), "made up", folder / "odd-model", ["textfooler"], made_up.ODD),
    }
    return {
        "groups": groups,
        "strings": strings,
        "whole": len(made_up_strings),
        "each": EACH,
        "cases": made_up.cases(),
    }


def _group(
    named: list[tuple[str, Any]],
    tagger: str,
    model: Path,
    recipes: list[str],
    more: Sequence[str] = made_up.WORDS,
) -> dict[str, Any]:
    words = common.vocabulary((text for _, text in named), more)
    common.write_language_model(model, words)
    jobs = common.jobs(named)
    return {
        "jobs": [vars(job) for job in jobs],
        "vectors": words,
        "tagger": tagger,
        "language_model": str(model),
        "recipes": {recipe: common.fitting(recipe, jobs, words) for recipe in recipes},
    }


def corpora(folder: Path | None) -> dict[str, list[tuple[str, Any]]]:
    """Texts of the data folder, named by their rows; nothing where it is not there."""
    import pyarrow.parquet as parquet

    found: dict[str, list[tuple[str, Any]]] = {}
    for name, file in CORPORA.items():
        if folder is None or not (folder / file).is_file():
            sys.stderr.write(f"left out: there is no {file} in the data folder\n")
            continue
        rows = parquet.read_table(folder / file).to_pylist()
        found[name] = [
            (
                f"{name}-{number}",
                row["text"] if "text" in row else [row["premise"], row["hypothesis"]],
            )
            for number, row in enumerate(rows, 1)
        ]
    return found


def _spread(items: list[Any], count: int) -> list[Any]:
    """So many, from all over."""
    return items[:: max(1, len(items) // count)][:count]


def run_theirs(python: str, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """TextAttack's side, in its own environment."""
    source, target = folder / "given.json", folder / "theirs.json"
    _write(source, given)
    subprocess.run(  # noqa: S603  what the user named
        [python, "-m", "tools.textattack_parity.theirs", str(source), str(target)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "NLTK_DATA": str(_nltk_data()), "TA_CACHE_DIR": str(folder / "cache")},
    )
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


def _nltk_data() -> Path:
    from ranmask.attacks.resources.files import TAGGER, nltk_file

    weights = nltk_file(f"{TAGGER}.weights.json")
    if weights.suffix == ".gz":
        raise SystemExit("NLTK reads its data unpacked: set NLTK_DATA to a folder that holds them")
    return weights.parents[2]


def against(given: dict[str, Any], theirs: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Our side, compared with theirs."""
    packages = ("torch", "transformers", "tokenizers", "numpy", "nltk", "rapidfuzz")
    groups, differences = {}, []
    kept = {}
    for name, group in given["groups"].items():
        found = theirs["groups"][name]
        jobs = [common.Job(**job) for job in group["jobs"]]
        resources = ours.resources(group)
        recipes = {}
        for recipe, their in found["traces"].items():
            sys.stderr.write(f"ours: {name}, {recipe}\n")
            chosen = [jobs[place] for place in group["recipes"][recipe]]
            our = ours.traces(resources, recipe, chosen, [trace["salt"] for trace in their])
            kept[f"{name}: {recipe}"] = our
            recipes[recipe], apart = compare.compared(their, our)
            stop_words = resources.recipe(recipe)[0].stop_words
            recipes[recipe]["same_stop_words"] = set(found["stop_words"][recipe]) == stop_words
            differences += [{"group": name, "recipe": recipe, **one} for one in apart]
        groups[name] = {
            "tagger": group["tagger"],
            "word_vectors": len(group["vectors"]),
            "smallest_deciding_cosine": common.nearest(common.vectors(group["vectors"]))[1],
            "smallest_gap_of_logits": found["gap"],
            "recipes": recipes,
        }
    cuts, apart = compare.compared_cuts(
        given["strings"], theirs["cuts"], ours.cuts(given["strings"], given["whole"], given["each"])
    )
    cases = ours.cases(given["cases"])
    same = sum(one == other for one, other in zip(theirs["cases"], cases, strict=True))
    _write(folder / "ours.json", kept)
    return {
        "version": 1,
        "seed": common.SEED,
        "texts_sha256": common.digest([group["jobs"] for group in given["groups"].values()]),
        "versions": {
            "theirs": theirs["versions"],
            "ours": {
                "python": platform.python_version(),
                "ranmask": version("ranmask"),
                **{package: version(package) for package in packages},
            },
        },
        "groups": groups,
        "cuts": {**cuts, "cases": {"words": len(cases), "identical": same}},
        "reasons": compare.REASONS,
        "differences": differences + [{"group": "cuts", **one} for one in apart],
    }


def _with_others(outcome: dict[str, Any]) -> dict[str, Any]:
    """What is on record of other recipes, and the outcome of some, with texts of their own."""
    known: dict[str, Any] = json.loads(OUTCOME.read_text(encoding="utf-8"))
    for name in ("seed", "versions"):
        if known[name] != outcome[name]:
            raise SystemExit(f"the record is of another {name}: run all recipes")
    for name, group in outcome["groups"].items():
        if name == "odd":  # the same whatever is asked for
            continue
        new = group["recipes"]
        for counts in new.values():
            counts["texts_sha256"] = outcome["texts_sha256"]
        known["groups"][name]["recipes"] |= new
        kept = known["differences"]
        others = [one for one in kept if one["group"] != name or one["recipe"] not in new]
        apart = [one for one in outcome["differences"] if one["group"] == name]
        known["differences"] = others + apart
    return {**known, "reasons": outcome["reasons"]}


def record(given: dict[str, Any], theirs: dict[str, Any], others: bool = False) -> None:
    """What the tests replay: theirs on made-up texts, without what ranmask has of its own.

    ``others``: recipes that were not run stay as they are recorded.
    """
    found = theirs["groups"]["recorded"]
    traces = found["traces"]
    if others:
        known = json.loads(RECORDED.read_text(encoding="utf-8"))
        known["traces"] |= traces
        _write(RECORDED, known)
        return
    words = {word.lower() for trace in traces["deepwordbug"] for word in trace["words"]}
    _write(
        RECORDED,
        {
            "versions": theirs["versions"],
            "seed": common.SEED,
            "stop_words": {
                "nltk": sorted(words.intersection(found["stop_words"]["deepwordbug"])),
                "textfooler_sha256": common.digest(found["stop_words"]["textfooler"]),
            },
            "traces": traces,
            "odd": theirs["groups"]["odd"]["traces"]["textfooler"],
            "cuts": [
                {
                    "words": one["words"],
                    "without": one["without"],
                    "windows": common.digest(one["windows"]),
                }
                for one in theirs["cuts"][: given["whole"]]
            ],
            "cases": theirs["cases"],
        },
    )


def _write(path: Path, values: Any, indent: int | None = None) -> None:
    separators = None if indent else (",", ":")
    path.write_text(json.dumps(values, indent=indent, separators=separators) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
