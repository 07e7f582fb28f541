"""The card of a protected model."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.metrics import class_table
from ranmask.training.card import markdown_table
from ranmask.training.choosing import WORTH, Weighed
from ranmask.training.protection import Protection

SHOWN_WORDS = (1, 2, 5, 10)
"""Numbers of changed words that tables and pictures show."""
_ROWS = 12  # weights of whole texts that a table shows at most
_GIVEN_UP = (0.5, 1.0, 2.0, 3.0, 5.0)  # points, for which it shows the best with segments
_LEVELS = ("the whole text", "each half", "each quarter", "each eighth", "each sixteenth")


def columns(words: Sequence[int]) -> list[int]:
    """Numbers of changed words to show, where these matter."""
    return sorted({*SHOWN_WORDS, *words})


def curve_rows(protection: Protection) -> tuple[list[str], list[list[str]]]:
    """The choice as cells: a head, and a row for some of the weights, the chosen one marked."""
    shown = columns(protection.words)
    calls = protection.levels > 1

    def row(name: str, one: Weighed, mark: str = "") -> list[str]:
        figures = [one.accuracy(protection.balanced)]
        figures += [one.share(words, protection.balanced) for words in shown]
        count = [str(max(one.calls, 1))] if calls else []
        return [name, *count, *(f"{float(figure):.3f}" for figure in figures), mark]

    head = ["weight", *["calls"] * calls, protection.measure_name]
    head += [*(f"CR@{words}" for words in shown), ""]
    rows = [
        row(one.name, one, "*" if one.weights == protection.weights else "")
        for one in _shown(protection)
    ]
    return head, [*rows, row("model alone", protection.alone[1])]


def _shown(protection: Protection) -> list[Weighed]:
    """Some weights of whole texts, the best with segments for some prices, and the choice."""
    whole = [one for one in protection.figures if len(one.weights) == 1]
    places = [place for place, one in enumerate(whole) if _differs(whole, place)]
    step = max(1, -(-len(places) // _ROWS))
    kept = {whole[place].weights for place in places[::step]} | {protection.weights}
    if len(whole) < len(protection.figures):
        prices = (protection.redrawn(None, points) for points in _GIVEN_UP)
        kept |= {one.weights for one in prices if len(one.weights) > 1}
    shown = [one for one in protection.figures if one.weights in kept]
    return sorted(shown, key=lambda one: len(one.weights) > 1 and one.accuracy(protection.balanced))


def _differs(curve: Sequence[Weighed], place: int) -> bool:
    """Whether a weight still changes or proves something."""
    one = curve[place]
    return place == 0 or any(map(any, one.certified)) or one.right != curve[place - 1].right


def calls_line(protection: Protection) -> str:
    """How often the model is asked about a text, and about what."""
    best = protection.at()
    if best.calls == 1 and protection.levels == 1:
        return "1 call of the model a text"
    if len(best.weights) == 1:
        return (
            f"1 call of the model a text: up to {protection.levels} levels were tried, and what "
            f"segments prove in addition, less than {float(100 * WORTH):g} point, is not worth "
            "their calls"
        )
    named = [
        f"{name} {weight:g}" for name, weight in zip(_LEVELS, best.weights, strict=False) if weight
    ]
    return f"{best.calls} calls of the model a text ({', '.join(named)})"


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
    if protection.learning[-1][1].weights != protection.weights:
        said += f" (at weight {protection.learning[-1][1].name})"
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
        f"- Weight of the model: {best.name} copies, the one with the most proved at "
        f"{', '.join(map(str, protection.words))} words among those that give up at most "
        f"{protection.give_up:g} points of {protection.measure_name}\n"
        f"- {calls_line(protection)}\n"
        f"- Texts: {texts['texts']:,} different ones of {texts['rows']:,} rows "
        f"({texts['duplicates']:,} duplicates, {texts['empty']:,} empty, {texts['unusable']:,} not "
        f"usable, {texts['unanswered']:,} without an answer); {parts['learning']:,} to learn from, "
        f"{parts['choosing']:,} to choose by{folds}, {parts['figures']:,} for the figures below",
        f"## Measured\n\nOn {sum(best.texts):,} texts that nothing was learned from or chosen by, "
        f"against {own}. CR@d: right, and proved to stay so whichever d words are replaced. "
        f"It gives up {protection.given_up:.1f} points.",
        markdown_table(head, rows),
        learning_line(protection)[:1].upper() + learning_line(protection)[1:] + ".",
    ]
    body += ["By class:", markdown_table(*class_table(best.classes(run["labels"]))[:2])]
    options = [f"- `{name}`: {value}" for name, value in run["options"].items() if value]
    body += ["## Options\n\n" + "\n".join(options)]
    body += [
        "## Limits\n\nThe radius says that the label is stable, not that it is right. It covers "
        "words that are replaced one for one. `Certificate.assumes` lists what it rests on."
    ]
    return "\n\n".join(body) + "\n"
