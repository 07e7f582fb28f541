"""The public API, run by the Python and against the source that is being recorded.

    python library.py SCRIPT ARGUMENTS      # ARGUMENTS: JSON, old keyword arguments to new ones

Prints a line of JSON for each case: its name, and its result or the kind of its error.  Nothing
but ``import ranmask`` and its public names is used.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ranmask

NEWS = [
    "President and rebels sign peace accord after months of war along the border",
    "Striker scores twice in the cup final as the home team wins",
    "Oil prices soared to a record high as traders feared supply cuts",
    "Scientists find water ice on a distant moon",
    "Stocks fall again and again and again",
    "Talks fail",
    "Goal",
    "naïve café 中文 текст 🏀🏀 e\u0301",
]
NEWS_LABELS = [0, 1, 2, 3, 2, 0, 1, 1]
FILMS = [
    "A wonderful film , superb acting and a good story",
    "A dull and boring mess , bad acting",
    "good good bad",
    "Awful",
]
PAIRS = [("a premise", "a good film"), ("", "bad bad day at the beach"), ("x", "good")]
HOSTILE: list[Any] = ["", "  ", 5, None, ("a", "b"), ("a",), "\ud800", ["a", "b"], b"bytes"]
TABLE = {"film": ["movie"], "movie": ["film"], "good": ["fine", "great"], "bad": ["awful", "poor"]}

ARGUMENTS: dict[str, str] = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names that this ranmask has for them."""
    return {ARGUMENTS.get(name, name): value for name, value in options.items()}


def plain(value: Any) -> Any:
    """JSON values of a result."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, dict):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    return value


def case(name: str, compute: Callable[[], Any]) -> None:
    """Print what a case gives; an error by its kind, and by the text that it blames."""
    try:
        result = plain(compute())
    except Exception as error:  # of whatever kind: that is what is compared
        result = {"raised": type(error).__name__, "index": getattr(error, "index", None)}
    print(json.dumps({"case": name, "result": result}), flush=True)


def named(options: dict[str, Any]) -> str:
    """A name for a case."""
    return " ".join(f"{name}={value}" for name, value in options.items()) or "default"


def choices() -> list[dict[str, Any]]:
    """Smoothing options: every family, ensemble and certificate, with few and many words shown."""
    shown: list[dict[str, Any]] = [{"keep": 1}, {"keep": 2}, {"keep": 4}, {"mask_rate": 0.5}]
    shown += [{"mask_rate": 0.9}, {"mask_rate": 0.0}, {"mask_rate": 1.0}]
    families = [None, "all", "sampled", "windows", "distinct"]
    found: list[dict[str, Any]] = [
        {**one, "family": family, "ensemble": ensemble, "masks": 60}
        for one, family, ensemble in itertools.product(shown, families, ("vote", "score", "logit"))
    ]
    kinds = ("ablation", "ablation-runner-up", "paper", "paper-as-printed", "paper-estimated-beta")
    found += [
        {**one, "certificate": kind, "masks": 300, "selection_masks": 60, "alpha": alpha}
        for one, kind, alpha in itertools.product(shown[:5], kinds, (None, 0.001))
    ]
    found += [{"keep": 2, "family": "sampled", "masks": 40, "seed": seed} for seed in (1, 2, 3)]
    found += [{"keep": 1, "threat": "edits", "ensemble": one} for one in ("vote", "score")]
    found += [{"keep": 1, "threat": "edits", "family": "distinct"}, {"keep": 2, "threat": "edits"}]
    found += [{"keep": 2, "sampling": "fresh", "masks": 20, "seed": seed} for seed in (0, 9)]
    found += [{"tolerance": 0.01}, {"recheck": 8}, {"labels": ["a", "b", "c", "d"]}, {"labels": []}]
    found += [{"seed": -1}, {"masks": 0}, {"keep": 1, "mask_rate": 0.5}, {"alpha": 2}, {}]
    return found


def asked(smoothed: Callable[[], Any], texts: Sequence[Any]) -> dict[str, Any]:
    """Labels, certificates, and the options that were resolved."""
    classifier = smoothed()
    options = classifier.options
    answer: dict[str, Any] = {"options": options.to_dict(), "predict": classifier.predict(texts)}
    try:
        answer["certify"] = classifier.certify(texts)
    except ranmask.RanmaskError as error:
        answer["certify"] = {"raised": type(error).__name__}
    return answer


def words() -> None:
    """The shipped word tables under all choices; hostile texts; attacks."""
    for options in choices():
        given = renamed(options)
        case(named(options), lambda g=given: asked(lambda: _load("news-words", g), NEWS))
    for options in ({}, {"keep": 2}, {"threat": "edits", "keep": 1}, {"family": "distinct"}):
        given = renamed(options)
        case(
            f"films {named(options)}",
            lambda g=given: asked(lambda: _load("reviews-words", g), FILMS),
        )
    news = ranmask.load_default("news-words")
    for number, text in enumerate(HOSTILE):
        case(f"hostile {number}", lambda text=text: news.certify([NEWS[0], text]))
        case(f"hostile predict {number}", lambda text=text: news.predict([NEWS[0], text]))
    case("none", lambda: news.certify([]))
    case("compare", lambda: news.compare(NEWS))
    two = _load("news-words", renamed({"keep": 2, "masks": 100}))
    case("compare keep=2", lambda: two.compare(NEWS[:3]))
    long = " ".join(NEWS * 12)
    case("long", lambda: news.certify([long]))
    case("long keep=2", lambda: two.certify([long]))
    case("one by one", lambda: [news.certify([text])[0] for text in NEWS])
    case("no such model", lambda: ranmask.load_default("newz"))
    _attacks(news, "words")


def _attacks(victim: Any, name: str) -> None:
    for options in (
        {"recipe": "deepwordbug"},
        {"recipe": "deepwordbug", "preset": "textattack-0.3.11", "seed": 3},
        {"recipe": "deepwordbug", "budget": "radius"},
        {"recipe": "deepwordbug", "budget": "radius+1", "most_queries": 30},
        {"recipe": "deepwordbug", "budget": 2, "together": 1},
        {"recipe": "nothing"},
    ):
        given = renamed(options)
        case(
            f"attack {name} {named(options)}",
            lambda g=given: ranmask.attack(victim, NEWS, NEWS_LABELS, **g),
        )
    case("attack labels", lambda: ranmask.attack(victim, NEWS, [0], "deepwordbug"))
    case("attack class", lambda: ranmask.attack(victim, NEWS[:1], [9], "deepwordbug"))


def _load(name: str, options: dict[str, Any]) -> Any:
    return ranmask.load_default(name, **options)


def _keywords(texts: list[Any]) -> list[list[float]]:
    said = [text if isinstance(text, str) else text[1] for text in texts]
    counts = [[text.split().count("good"), text.split().count("bad")] for text in said]
    return [
        [(1 + good) / (2.5 + good + bad), (1.5 + bad) / (2.5 + good + bad)] for good, bad in counts
    ]


def _raising(texts: list[str]) -> list[list[float]]:
    if any("dull" in text for text in texts):
        raise ValueError("no")
    return _keywords(texts)


def functions() -> None:
    """Functions from texts to scores, pairs, and synonyms."""
    for options in choices():
        for hide in ("mask", "drop"):
            given = renamed({"labels": ["good", "bad"], **options, "hide": hide})
            case(
                f"{hide} {named(options)}",
                lambda g=given: asked(lambda: ranmask.SmoothedClassifier(_keywords, **g), FILMS),
            )
    for base, texts, name in (
        (_keywords, PAIRS, "pairs"),
        (_raising, FILMS, "raising"),
        (lambda texts: [1.0] * len(texts), FILMS, "shapeless"),
        (lambda texts: [[float("nan"), 1.0]] * len(texts), FILMS, "nan"),
        (lambda texts: [[1.0, 1.0]] * len(texts), FILMS, "ties"),
        (lambda texts: [[0.5] * 7] * len(texts), FILMS, "classes"),
    ):
        for keep in (1, 2):
            given = renamed({"keep": keep, "masks": 50})
            case(
                f"{name} keep={keep}",
                lambda b=base, t=texts, g=given: asked(
                    lambda: ranmask.SmoothedClassifier(b, **g), t
                ),
            )
    sets = ranmask.SynonymSets(TABLE)
    for options in ({}, {"masks": 50, "selection_masks": 20, "seed": 3}, {"ensemble": "score"}):
        given = renamed(options)
        case(
            f"synonyms {named(options)}",
            lambda g=given: asked(
                lambda: ranmask.SynonymSmoothedClassifier(_keywords, sets, **g), FILMS
            ),
        )
    case("replacements", lambda: [sets.replacements("Film,"), sets.perturbations("good")])
    plain_victim = lambda texts: _keywords(texts)  # noqa: E731 - a function that is no method
    for options in ({"budget": 1}, {"seed": 2}):
        given = renamed(options)
        case(
            f"attack a function {named(options)}",
            lambda g=given: ranmask.attack(
                plain_victim, FILMS, [1, 1, 1, 0], recipe="deepwordbug", **g
            ),
        )


def news() -> None:
    """The shipped encoder."""
    for options in (
        {},
        {"keep": 2, "masks": 30},
        {"keep": 1, "ensemble": "vote"},
        {"mask_rate": 0.8, "family": "windows"},
        {"keep": 2, "family": "sampled", "masks": 20, "seed": 5, "ensemble": "score"},
        {"certificate": "ablation", "masks": 40, "selection_masks": 20},
        {"certificate": "paper", "masks": 40, "selection_masks": 20},
        {"threat": "edits"},
        {"family": "distinct"},
        {"sampling": "fresh", "keep": 2, "masks": 10},
    ):
        given = renamed({**options, "device": "cpu"})
        case(named(options), lambda g=given: asked(lambda: _load("news", g), NEWS))
    smoothed = ranmask.load_default("news", device="cpu")
    given = renamed({"recipe": "deepwordbug", "budget": "radius+1", "most_queries": 30})
    case("attack", lambda: ranmask.attack(smoothed, NEWS[:3], NEWS_LABELS[:3], **given))


def models() -> None:
    """What is saved and loaded again; blends and cascades of word tables."""
    news, films = (ranmask.load_default(f"{name}-words") for name in ("news", "reviews"))
    news.save_pretrained("saved")
    case("saved", lambda: asked(lambda: ranmask.SmoothedClassifier.from_pretrained("saved"), NEWS))
    given = renamed({"keep": 2, "masks": 50})
    case(
        "saved keep=2",
        lambda: asked(lambda: ranmask.SmoothedClassifier.from_pretrained("saved", **given), NEWS),
    )
    blend = ranmask.Blend([news.base, news.base])
    for options in ({"keep": 1, "ensemble": "score"}, {"keep": 2, "masks": 40}):
        given = renamed(options)
        case(
            f"blend {named(options)}",
            lambda g=given: asked(lambda: ranmask.SmoothedClassifier(blend, **g), NEWS),
        )
    case("blend of others", lambda: ranmask.Blend([news.base, films.base]) and None)
    case("cascade without detector", lambda: ranmask.Cascade(news.base, news, films.base) and None)
    detector = ranmask.FunctionClassifier(_keywords, labels=["clean", "attacked"])
    for threshold in (0.0, 0.55, 1.0):
        cascade = ranmask.Cascade(news.base, news, detector, threshold)
        texts = [*NEWS, "a good match", "a bad match"]
        case(f"cascade {threshold}", lambda c=cascade, t=texts: [c.predict(t), c.certify(t)])


if __name__ == "__main__":
    {"words": words, "functions": functions, "news": news, "models": models}[sys.argv[1]]()
