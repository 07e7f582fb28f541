"""The card of a trained model: what it is, what it was trained on, what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranmask.metrics import class_table, poisoned_table
from ranmask.training.options import DELETION_VALIDATION


def model_card(run: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    """A README for the folder of a trained model, in Markdown."""
    body = {"mlm": _language_model, "detector": _detector}.get(run["kind"], _classifier)
    return f"# {run['train']['name']}, {run['kind']}\n\n{body(run, measured)}"


def _classifier(run: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    defence = run.get("defence", {})
    name = "SynonymSmoothedClassifier" if defence.get("name") == "safer" else "SmoothedClassifier"
    name = "PartitionedClassifier" if "poisoned" in measured else name
    copies = defence.get("validation")  # what SAFER was measured with
    if run["options"].get("family") == "deletion":
        name, copies = "DeletionSmoothedClassifier", DELETION_VALIDATION
    proof = "exact certificate" if copies is None else f"from {copies['masks']} copies of each"
    shares = measured["certified_accuracy"][1:9]
    head = ["accuracy", "median radius", *(f"CR@{d}" for d in range(1, len(shares) + 1))]
    radius = measured["median_radius"]
    row = [f"{measured['accuracy']:.3f}", "none" if radius is None else str(radius)]
    row += [f"{value:.3f}" for value in shares]
    if "all_words" in measured:
        head, row = [*head, "all words at once"], [*row, f"{measured['all_words']:.3f}"]
    classes_head, classes, left_out = class_table(measured["classes"])
    shown = f"\n\nShown: {left_out}." if left_out else ""
    unlearned = "\n\n**No better than naming the largest class for every text: do not use it.**"
    return f"""\
{_promise(run)}

```python
from ranmask import {name}

classifier = {name}.from_pretrained("path/to/this/folder")
classifier.certify(["..."])
```

- Classes: {", ".join(run["train"]["label_names"])}
{_origin(run)}

## Measured on validation

{measured["texts"]:,} texts of the validation rows above, {proof}. CR@d is
the share of all texts whose label is right and certified at d {_changes(run)}.{_chosen(run)}

{markdown_table(head, [row])}
{_other_threats(measured.get("threats", {}))}
Naming the largest class for every text has accuracy {measured["majority"]:.3f}. The
mean recall of the classes (balanced accuracy) is {measured["balanced_accuracy"]:.3f}.
Of each class, recall and CR@d are shares of its own texts, precision of the texts that
were labelled so.

{markdown_table(classes_head, classes)}{shown}{"" if measured["beats_majority"] else unlearned}
{_positive(measured.get("positive"))}{_poisoned(measured.get("poisoned"))}
{_options(run)}

## Limits

The radius says that the label is stable, not that it is right. `Certificate.assumes`
lists what it rests on.
"""


_CHANGES = {
    "substitutions": "changed words",
    "edits": "words replaced, inserted or deleted",
    "insertions": "inserted words",
    "characters": "characters inserted, deleted or replaced",
    "synonyms": "words replaced by synonyms",
}
"""What a radius counts."""


def _changes(run: Mapping[str, Any]) -> str:
    deletion = run["options"].get("family") == "deletion"
    return _CHANGES["edits" if deletion else run["options"].get("threat", "substitutions")]


def _other_threats(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Figures of the other threats that were trained for."""
    if not measured:
        return ""
    rows = []
    for threat, found in measured.items():
        shares = " ".join(f"{share:.3f}" for share in found["certified_accuracy"][1:6])
        whole = f"{found['all_words']:.3f}" if "all_words" in found else ""
        rows.append([_CHANGES[threat], shares, whole])
    return f"""
It was trained for other changes, too, and certifies each of them by itself:

{markdown_table(["change", "CR@1, 2, ...", "all words at once"], rows)}
"""


def _positive(found: Mapping[str, Any] | None) -> str:
    """The figures of a positive class, at thresholds that were set on these very texts."""
    if found is None:
        return ""
    head = ["false positives", "threshold", "recall", "precision", "certified recall at 1, 2, 3"]
    rows = []
    for at in found.get("at_rates", ()):
        shares = [*at.get("certified_recall", ()), 0.0, 0.0, 0.0, 0.0][1:4]
        proved = " ".join(f"{share:.3f}" for share in shares)
        figures = [f"{at[key]:.3f}" for key in ("recall", "precision")]
        proved = proved if "certified_recall" in at else "not proved"
        rows.append([f"{at['rate']:.1%}", f"{at['threshold']:.4f}", *figures, proved])
    areas = "".join(
        f", {name} {found[key]:.3f}"
        for key, name in (("auc", "AUC"), ("average_precision", "average precision"))
        if key in found
    )
    return f"""
*{found["name"]}* against all others: precision {found["precision"]:.3f}, recall \
{found["recall"]:.3f}, F1 {found["f1"]:.3f}{areas}. At
thresholds that flag a share of the other texts, set on these texts:

{markdown_table(head, rows)}
"""


def _poisoned(found: Mapping[str, Sequence[float]] | None) -> str:
    """Certified accuracies beside poisoned training texts."""
    if found is None:
        return ""
    return f"""
## Poisoned training texts

CR@d of the same texts, where so many training texts may be poisoned besides and the tables are
trained anew. A text counts once, however many of its rows are added, removed or relabelled; a row
whose text is changed counts as two.

{markdown_table(*poisoned_table(found))}
"""


def _promise(run: Mapping[str, Any]) -> str:
    """What a user may expect of its labels."""
    defence = run.get("defence", {}).get("name", "none")
    if defence == "safer":
        return """\
A text classifier to be smoothed with `ranmask` by random synonyms (SAFER). Labels
come with a proved radius: a number of words that may be replaced, **each by a word
that the table of synonyms lists for it**. Any other change is not covered."""
    if run["options"].get("partitions") is not None:
        return f"""\
A vote of {run["options"]["partitions"]} word tables of `ranmask`, each trained on the texts that a
hash sends to it. Its labels come with a proof: so many words of a text may be changed, and so many
training texts poisoned."""
    if run["options"].get("family") == "deletion":
        return """\
A text classifier to be smoothed with `ranmask` by deleting words at random. Labels
come with a radius, proved up to a chance of error `alpha`: so many words may be
replaced, inserted or deleted."""
    if run["options"].get("mask_rate") != 0:
        learned = "" if defence == "none" else f" It was trained with {defence}, too."
        return (
            "A text classifier to be smoothed with `ranmask`: its labels come with a proved radius."
            + learned
        )
    against = "without a defence" if defence == "none" else f"with the defence {defence}"
    return f"""\
A plain text classifier, trained {against} on whole texts. **Nothing is proved about its
labels**: its radius is 0, whatever the text."""


def _language_model(run: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    return f"""\
A masked language model: it says which tokens fit a masked place of a text. It is no
classifier. It was made with `ranmask` for attacks that look for words that fit, and for
masking that weighs words by a language model.

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")
tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
```

{_origin(run)}

## Measured on validation

{measured["texts"]:,} texts of the validation rows above, with {measured["tokens"]:,} \
tokens hidden, the same ones at
every evaluation.{_chosen(run)}
Loss is the mean of a hidden token, in nats; perplexity is its exponential. Models of
another vocabulary do not compare.

| loss | perplexity |
|---|---|
| {measured["validation_loss"]:.4f} | {measured["perplexity"]:.2f} |

{_options(run)}

## Limits

It knows texts like those above. What it says fits may mean something else, and a text
that it finds unlikely may be perfectly good. No label was used to train it.
"""


def _detector(run: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    options = run["options"]
    where = {"anywhere": "anywhere", "ends": "before or after it"}[options["additions"]]
    rates, recall = measured["false_positives"], measured["recall"]
    by_words = [
        [words, f"{share['texts']:,}", _interval(share)]
        for words, share in measured["false_positives_by_words"].items()
    ]
    certified = [
        [changed, _interval(share)] for changed, share in measured["certified_recall"].items()
    ]
    few = f" ({measured['too_few']})" if "too_few" in measured else ""
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
{_origin(run)}
- Threshold: set on the validation rows, for at most {options["false_positives"]} false
  positives{few}

## Measured on validation

The rows that the threshold was set on; shares with 95 % intervals (Clopper-Pearson). Measure it on
texts of your own with `ranmask detect --label-column`.

False positives: {_interval(rates)} of {rates["texts"]:,} texts. By their number of words:

{markdown_table(["words", "texts", "false positives"], by_words)}

Recall: {_interval(recall)} of {recall["texts"]:,} texts. Flagged, and proved
to stay so whatever is added {where}, and at so many changed words at the same time:

{markdown_table(["changed words", "certified recall"], certified)}
{_by(options["by"], measured["by"]) if "by" in measured else ""}
{_options(run)}
"""


def _by(column: str, groups: Mapping[str, Any]) -> str:
    """The rates of a detector for each value of a column."""
    rows = []
    for name, found in groups.items():
        shares = found["false_positives"], found["recall"]
        cells = (f"{_interval(share)} of {share['texts']:,}" for share in shares)
        rows.append([name.replace("|", "/"), *cells])
    table = markdown_table([column, "false positives", "recall"], rows)
    return f"\nBy `{column}`:\n\n{table}\n"


def _interval(share: Mapping[str, Any]) -> str:
    if "share" not in share:
        return "none"
    low, high = share["interval"]
    return f"{share['share']:.3f} ({low:.3f} to {high:.3f})"


def _origin(run: Mapping[str, Any]) -> str:
    """What it was made of."""
    terms = run["train"].get("terms")
    lines = [f"- Trained on: {_data(run['train'])}", f"- Validation: {_data(run['validation'])}"]
    lines += [f"- Terms of the data: {terms}"] if terms else []
    lines += [f"- Kind: {run['kind']}" + (f", from {run['base']}" if run.get("base") else "")]
    return "\n".join(lines)


def _options(run: Mapping[str, Any]) -> str:
    """All options; of a defence too, if there is one, a table of neighbours by its name."""
    defence = dict(run.get("defence", {}))
    options = dict(run["options"])
    name = defence.pop("name", "none")
    if name != "none":
        options |= {"defence": name}
        for key, value in defence.items():
            options[key] = value.get("name", value) if isinstance(value, Mapping) else value
    lines = [f"- `{name}`: {value}" for name, value in options.items() if value is not None]
    return "\n".join(["## Options", "", *lines])


def _chosen(run: Mapping[str, Any]) -> str:
    rows = run["options"].get("validation_rows")
    if rows is None:
        return ""  # a word table has no checkpoints to choose from
    some = f"the first {rows:,} of " if rows < run["validation"]["rows"] else ""
    return f" The best\ncheckpoint was chosen by {some}them."


def _data(corpus: Mapping[str, Any]) -> str:
    note = f" ({corpus['note']})" if corpus.get("note") else ""
    return f"{corpus['name']} {corpus['split']}, {corpus['rows']:,} rows{note}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
