"""The card of a detector: what it promises, and how often it is right and wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def detector_card(run: Mapping[str, Any], measured: Mapping[str, Any], origin: str) -> str:
    """What the card of a detector says, below its title; ``origin``: what it was made of."""
    options = run["options"]
    where = {"anywhere": "anywhere", "ends": "before or after it"}[options["additions"]]
    rates = measured["false_positives"]
    lines = [
        f"| {words} | {share['texts']:,} | {_shown(share)} |"
        for words, share in measured["false_positives_by_words"].items()
    ]
    few = f" ({measured['too_few']})" if "too_few" in measured else ""
    recalls = [
        f"| {changed} | {_shown(share)} |"
        for changed, share in measured["certified_recall"].items()
    ]
    return f"""\
A detector of `{options["positive"]}`, to be used with `ranmask`. **What it flags stays flagged,
whatever text is added {where}**; each result says how many words must be changed besides.

```python
from ranmask import load_detector

detector = load_detector("path/to/this/folder")
[found] = detector.detect(["..."])
print(found.flagged, found.proved)
```

- Classes: {", ".join(run["train"]["label_names"])}
{origin}
- Threshold: set on the validation rows, for at most {options["false_positives"]} false
  positives{few}

## Measured on validation

The rows that the threshold was set on; shares with 95 % intervals (Clopper-Pearson). Measure it on
texts of your own with `ranmask detect --label-column`.

False positives: {_shown(rates)} of {rates["texts"]:,} texts. By their number of words:

| words | texts | false positives |
|---|---|---|
{chr(10).join(lines)}

Recall: {_shown(measured["recall"])} of {measured["recall"]["texts"]:,} texts. Flagged, and proved
to stay so whatever is added {where}, and at so many changed words at the same time:

| changed words | certified recall |
|---|---|
{chr(10).join(recalls)}
{_by(options["by"], measured["by"]) if "by" in measured else ""}"""


def _by(column: str, groups: Mapping[str, Any]) -> str:
    lines = [f"\nBy `{column}`:\n", f"| {column} | false positives | recall |", "|---|---|---|"]
    for name, found in groups.items():
        rates = (found[figure] for figure in ("false_positives", "recall"))
        cells = (f"{_shown(share)} of {share['texts']:,}" for share in rates)
        lines.append(f"| {name.replace('|', '/')} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _shown(share: Mapping[str, Any]) -> str:
    if "share" not in share:
        return "none"
    low, high = share["interval"]
    return f"{share['share']:.3f} ({low:.3f} to {high:.3f})"
