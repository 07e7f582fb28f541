"""The card of a protected model."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.metrics import class_table
from ranmask.training.protection import Protection

SHOWN_WORDS = (1, 2, 5, 10)
"""Numbers of changed words that tables and pictures show."""
_ROWS = 12  # weights that a table shows at most


def columns(words: Sequence[int]) -> list[int]:
    """Numbers of changed words to show, where these matter."""
    return sorted({*SHOWN_WORDS, *words})


def curve_rows(protection: Protection) -> tuple[list[str], list[list[str]]]:
    """The choice as cells: a head, and a row for some of the weights, the chosen one marked."""
    shown = columns(protection.words)
    balanced = protection.balanced
    head = ["weight", protection.measure_name, *(f"CR@{words}" for words in shown), ""]
    places = [place for place, one in enumerate(protection.figures) if _differs(protection, place)]
    step = max(1, -(-len(places) // _ROWS))
    chosen = next(
        place for place, one in enumerate(protection.figures) if one.weight == protection.weight
    )
    kept = sorted({*places[::step], chosen})
    rows = [
        [
            f"{one.weight:g}",
            f"{float(one.accuracy(balanced)):.3f}",
            *(f"{float(one.share(words, balanced)):.3f}" for words in shown),
            "*" if place == chosen else "",
        ]
        for place, one in enumerate(protection.figures)
        if place in kept
    ]
    model = f"{float(protection.alone[1].accuracy(balanced)):.3f}"
    alone = ["model alone", model, *("0.000" for _ in shown), ""]
    return head, [*rows, alone]


def _differs(protection: Protection, place: int) -> bool:
    """Whether a weight still changes or proves something."""
    one = protection.figures[place]
    return (
        place == 0
        or any(map(any, one.certified))
        or one.right != protection.figures[place - 1].right
    )


def learning_line(protection: Protection) -> str:
    """How much certified accuracy the last half of the texts brought."""
    words = protection.words
    found = [
        (texts, 100 * float(one.score(words, protection.balanced)))
        for texts, one in protection.learning
    ]
    named = " and ".join([", ".join(map(str, words[:-1])), str(words[-1])]).removeprefix(" and ")
    steps = ", ".join(f"{share:.1f} with {texts:,}" for texts, share in found)
    mean = "certified share" if len(words) == 1 else "mean certified share"
    plural = "word" if words == (1,) else "words"
    said = f"{mean} at {named} {plural}, in points, by texts learned from: {steps}"
    if protection.learning[-1][1].weight != protection.weight:
        said += f" (at weight {protection.learning[-1][1].weight:g})"
    if len(found) < 2:
        return said
    gained = found[-1][1] - found[-2][1]
    advice = "more texts are likely to help" if gained > 0.5 else "more texts will hardly help"
    return f"{said}. The last half brought {gained:+.1f}: {advice}"


def protect_card(protection: Protection) -> str:
    """A README for the folder, in Markdown."""
    run, best = protection.run, protection.at()
    texts, parts = run["texts"], run["parts"]
    own = "true labels" if protection.measure == "accuracy" else "the model's own labels"
    folds = f" (the same, by {parts['folds']} folds)" if parts["folds"] > 1 else ""
    head, rows = curve_rows(protection)
    body = [
        "# A protected model",
        "A text classifier whose label is that of a model and of copies that show single words, "
        "together; where the copies are sure enough, a number of words is proved that may be "
        "replaced **whatever the model then says**.",
        "```python\nfrom ranmask import ProtectedClassifier\n\nclassifier = "
        'ProtectedClassifier.from_pretrained("path/to/this/folder")\n'
        'classifier.certify(["..."])\n```',
        "A model that is a Python object, or behind an address, is named again when the folder is "
        "loaded: `reader=...`, `--reader`.",
        f"- Classes: {', '.join(run['labels'])}\n"
        f"- Weight of the model: {protection.weight:g} copies, the one with the most proved at "
        f"{', '.join(map(str, protection.words))} words among those that give up at most "
        f"{protection.give_up:g} points of {protection.measure_name}\n"
        f"- Texts: {texts['texts']:,} different ones of {texts['rows']:,} rows "
        f"({texts['duplicates']:,} duplicates, {texts['empty']:,} empty, {texts['unusable']:,} not "
        f"usable, {texts['unanswered']:,} without an answer); {parts['learning']:,} to learn from, "
        f"{parts['choosing']:,} to choose by{folds}, {parts['figures']:,} for the figures below",
        f"## Measured\n\nOn {sum(best.texts):,} texts that nothing was learned from or chosen by, "
        f"against {own}. CR@d: right, and proved to stay so whichever d words are replaced. "
        f"It gives up {protection.given_up:.1f} points.",
        _table(head, rows),
        learning_line(protection)[:1].upper() + learning_line(protection)[1:] + ".",
    ]
    body += ["By class:", _table(*class_table(best.classes(run["labels"]))[:2])]
    options = [f"- `{name}`: {value}" for name, value in run["options"].items() if value]
    body += ["## Options\n\n" + "\n".join(options)]
    body += [
        "## Limits\n\nThe radius says that the label is stable, not that it is right. It covers "
        "words that are replaced one for one. `Certificate.assumes` lists what it rests on."
    ]
    return "\n\n".join(body) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
