"""The card of a trained model: what it is, what it was trained on, what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def model_card(run: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    """A README for the folder of a trained model, in Markdown."""
    train, validation = run["train"], run["validation"]
    options = run["options"]
    lines = [
        f"# {_title(run)}",
        "",
        "A text classifier to be smoothed with `ranmask`: its labels come with a proved radius.",
        "",
        "```python",
        "from ranmask import SmoothedClassifier",
        "",
        'smoothed = SmoothedClassifier.from_pretrained("path/to/this/folder")',
        'smoothed.certify(["..."])',
        "```",
        "",
        f"- Classes: {', '.join(train['label_names'])}",
        f"- Trained on: {_data(train)}",
        f"- Validation: {_data(validation)}",
        *([f"- Terms of the data: {train['terms']}"] if train.get("terms") else []),
        f"- Kind: {run['kind']}" + (f", from {run['base']}" if run.get("base") else ""),
        "",
        "## Measured on validation",
        "",
        f"{measured['texts']:,} texts of the validation rows above, exact certificate. CR@d is the",
        "share of all texts whose label is right and certified at d changed words." + _chosen(run),
        "",
        *_table(measured),
        "",
        "## Options",
        "",
        *(f"- `{name}`: {value}" for name, value in options.items() if value is not None),
        "",
        "## Limits",
        "",
        "The radius says that the label is stable, not that it is right. `Certificate.assumes`",
        "lists what it rests on.",
    ]
    return "\n".join(lines) + "\n"


def _title(run: Mapping[str, Any]) -> str:
    return f"{run['train']['name']}, {run['kind']}"


def _chosen(run: Mapping[str, Any]) -> str:
    rows = run["options"].get("validation_rows")
    if rows is None:
        return ""  # a word table has no checkpoints to choose from
    some = f"the first {rows:,} of " if rows < run["validation"]["rows"] else ""
    return f" The best\ncheckpoint was chosen by {some}them."


def _data(corpus: Mapping[str, Any]) -> str:
    note = f" ({corpus['note']})" if corpus.get("note") else ""
    return f"{corpus['name']} {corpus['split']}, {corpus['rows']:,} rows{note}"


def _table(measured: Mapping[str, Any]) -> list[str]:
    shown = measured["certified_accuracy"][1:9]
    head = " | ".join(["accuracy", "median radius", *(f"CR@{d}" for d in range(1, len(shown) + 1))])
    radius = measured["median_radius"]
    row = " | ".join(
        [f"{measured['accuracy']:.3f}", "none" if radius is None else str(radius)]
        + [f"{value:.3f}" for value in shown]
    )
    return [f"| {head} |", "|" + "---|" * (len(shown) + 2), f"| {row} |"]
