"""A smoothed classifier attacked by TextAttack, through the wrapper, and by ranmask.

    python -m tools.textattack_parity.wrapped [--texts N]

Runs in an environment that has both (docs/textattack.md) and needs the data folder.  Votes move in
steps, so that many words are equally important, and TextAttack's order of those is arbitrary: the
comparison is made with its order as it is, and with the earlier word first.  Writes
``wrapped.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import ranmask
from ranmask import SmoothedClassifier, load_default
from ranmask.attacks.api import attack
from ranmask.data import data_folder
from tools.textattack_parity import ours, theirs
from tools.textattack_parity.__main__ import CORPORA

OUTCOME = Path(__file__).with_name("wrapped.json")
MODEL = "news-words"


def main() -> int:
    """Attack, compare, write."""
    parser = argparse.ArgumentParser(prog="wrapped", description=__doc__)
    parser.add_argument("--texts", type=int, default=100, help="texts of AG News (100)")
    arguments = parser.parse_args()
    texts, labels = _rows(arguments.texts)
    theirs.seed_typing_errors()
    given = load_default(MODEL)
    votes = SmoothedClassifier(given.base, keep=5, masks=100, labels=given.labels)
    found = {}
    for name, classifier in {"as shipped": given, "votes of 100": votes}.items():
        recipe, _ = ours.Resources.recipe(ours.Resources(None, None, None), "deepwordbug")  # type: ignore[arg-type]
        outcomes = attack(classifier, texts, labels, recipe)
        for order in ("as TextAttack sorts", "ties to the earlier word"):
            traces = _traces(classifier, texts, labels, earlier_first=order.startswith("ties"))
            found[f"{name}, {order}"] = {
                "texts": len(texts),
                "same_status": _count(traces, outcomes, lambda their, our: their[0] == our.status),
                "same_queries": _count(
                    traces, outcomes, lambda their, our: their[1] == our.queries
                ),
                "same_text": _count(
                    traces, outcomes, lambda their, our: their[2] == our.adversarial
                ),
            }
    outcome = {
        "version": 1,
        "recipe": "deepwordbug",
        "model": MODEL,
        "versions": {"ranmask": ranmask.__version__, "textattack": theirs.version("textattack")},
        "compared": found,
    }
    OUTCOME.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(outcome, indent=1) + "\n")
    return any(one["same_text"] < one["texts"] for name, one in found.items() if "earlier" in name)


def _rows(count: int) -> tuple[list[str], list[int]]:
    import pyarrow.parquet as parquet

    folder = data_folder()
    if folder is None:
        raise SystemExit("there is no data folder: set RANMASK_DATA")
    rows = parquet.read_table(folder / CORPORA["agnews"]).slice(0, count).to_pylist()
    return [row["text"] for row in rows], [row["label"] for row in rows]


def _traces(
    classifier: Any, texts: list[str], labels: list[int], earlier_first: bool
) -> list[tuple[str, int, str | None]]:
    """Status, queries and text of each attack of TextAttack."""
    from ranmask.attacks.textattack import SmoothedModelWrapper  # `theirs` was first: no download

    traced = theirs.Traced("deepwordbug")
    traced.attack.goal_function.model = SmoothedModelWrapper(classifier)
    traced.untied = False
    if earlier_first:
        _sort_stably(traced)
    found = []
    for text, label in zip(texts, labels, strict=True):
        traced.visits = []
        traced.attack.clear_cache()
        result = traced.attack.attack(text, label)
        status = theirs.STATUS[type(result).__name__.removesuffix("AttackResult")]
        final = None if status == "skipped" else result.perturbed_text()
        found.append((status, int(result.perturbed_result.num_queries), final))
    return found


def _sort_stably(traced: theirs.Traced) -> None:
    search = traced.attack.search_method
    order = search._get_index_order

    def get_index_order(text: Any, **more: Any) -> Any:
        _, over = order(text, **more)
        scores = dict(zip(traced.indices, traced.scores, strict=True))
        return sorted(scores, key=lambda index: (-scores[index], index)), over

    search._get_index_order = get_index_order


def _count(traces: Any, outcomes: Any, same: Any) -> int:
    return sum(same(their, our) for their, our in zip(traces, outcomes, strict=True))


if __name__ == "__main__":
    sys.exit(main())
