"""Input files for the cases: the same bytes every time, made here, nothing real in them.

`write` makes them with the standard library.  Run as a script, by the Python of the ranmask that
is being recorded, this file makes the Parquet files, for which it needs that Python's pyarrow.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import sys
from pathlib import Path

NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
NEWS = (
    ("President and rebels sign peace accord after months of war along the border", "World"),
    ("Striker scores twice in the cup final as the home team wins the championship", "Sports"),
    ("Oil prices soared to a record high as traders feared supply cuts by producers", "Business"),
    ("New software update fixes a security hole in the popular internet browser", "Sci/Tech"),
    ("Minister resigns over the hostage crisis while troops surround the embassy", "World"),
    ("Coach praises rookie pitcher after the ninth inning of a long season", "Sports"),
    ("Shares of airlines fell on the stock exchange after a weak profit forecast", "Business"),
    ("Scientists find water ice on a distant moon with a small space telescope", "Sci/Tech"),
    ("Election officials count votes in the capital as observers report violence", "World"),
    ("Olympic swimmer breaks the world record and takes a third gold medal", "Sports"),
    ("Central bank raises interest rates to slow inflation , economists say", "Business"),
    ("Chip maker unveils a faster processor for laptop computers and servers", "Sci/Tech"),
    ("Talks fail", "World"),
    ("Goal !", "Sports"),
    ("Stocks fall again and again and again and again and again", "Business"),
    ("Phone maker sues rival over patents , court in London hears the case on Monday", "Sci/Tech"),
    ("Oil company computer network hit by virus , shares fall", "Business"),
    ("Army plane crashes near the stadium before the match , dozens killed", "World"),
)
REVIEWS = (
    ("A wonderful film , superb acting and a moving , perfect story", "positive"),
    ("A dull and boring mess , the worst acting of the year", "negative"),
    ("Funny , warm and clever : one of the best comedies in years", "positive"),
    ("It fails on every level , lifeless , flat and far too long", "negative"),
    ("Not bad at all , though the ending is weak", "positive"),
    ("Great actors wasted in a terrible and pointless plot", "negative"),
    ("Beautiful , touching and brilliant", "positive"),
    ("Awful", "negative"),
)
LONG = " ".join(f"{word}{number % 7}" for number in range(300) for word in ("war", "team", "bank"))
HOSTILE: tuple[object, ...] = (
    {"id": 1, "text": "", "label": "World"},
    {"id": 1, "text": "   \t \n ", "label": "World"},
    {"id": 1, "text": "The same id three times in this match", "label": "Sports"},
    {"id": 4, "text": LONG, "label": "Business"},
    {"id": 5, "text": "word", "label": "World"},
    {
        "id": 6,
        "text": "naïve café 中文 текст 🏀🏀 \u202eright\u202c to\u00a0left e\u0301",
        "label": "Sports",
    },
    {"id": 7, "text": "bank bank bank bank bank bank bank bank bank war", "label": "Business"},
    {"id": 8, "text": "zero\u200bwidth nul\u0000inside line\u2028break", "label": "Sci/Tech"},
    {"id": 9, "text": '"quoted", comma; semi\ttab \\ backslash <b>html</b>', "label": "Sci/Tech"},
    {"id": 10, "text": "x" * 5000, "label": "World"},
    {"id": 11, "text": "team game , team game ! team-game team_game TEAM Game", "label": "Sports"},
    {"id": 12, "text": "half a surrogate \ud800 here", "label": "Sports"},
)
NO_TEXT: tuple[object, ...] = (
    {"text": "Oil prices rise", "label": "Business"},
    {"label": "World"},
    {"text": None, "label": "World"},
    {"text": 5, "label": "World"},
    {"text": ["a", "b"], "label": "World"},
    {"text": "The match was won", "label": "Sports"},
)
BAD_LABELS = (("Oil prices rise", "Business"), ("The match", "Cooking"), ("A war", ""), ("x", "7"))
PAIRS = (
    ("A man plays a guitar on stage", "good music is played by a man", 0),
    ("Two dogs run on the beach", "the dogs are bad and sleep", 1),
    ("A woman reads", "good good bad", 0),
    ("Nobody", "   ", 1),
    ("", "good day at the beach", 0),
)

MADE_CLASSES = ("praise", "blame", "report")
MADE_TELLING = (("good", "great", "fine"), ("bad", "awful", "dull"), ("plot", "story", "acting"))
MADE_OTHERS = ("the", "a", "film", "was", "is", "and", "but", "very")
SYNONYMS = {
    **{"good": ["bad", "dull"], "great": ["awful"], "fine": ["dull", "plot"], "bad": ["good"]},
    **{"awful": ["great"], "dull": ["fine"], "plot": ["bad", "good"], "wonderful": ["awful"]},
    **{"war": ["game", "deal"], "team": ["bank", "army"], "oil": ["water"], "shares": ["goals"]},
    **{"prices": ["scores"], "peace": ["match"], "software": ["troops"], "record": ["disc"]},
    **{"stock": ["league"], "stocks": ["teams"], "cup": ["market"], "season": ["quarter"]},
}
SYNONYMS = {
    word: [*near, *(other for other in SYNONYMS if word in SYNONYMS[other] and other not in near)]
    for word, near in SYNONYMS.items()
}

CLASSIFIERS = '''"""Functions from texts to scores, sound and unsound."""

import os
import time

GOOD, BAD = {"good", "great", "fine", "wonderful"}, {"bad", "awful", "dull", "terrible"}


def keywords(texts):
    """Sound: counts words."""
    counts = [[sum(w in words for w in text.split()) for words in (GOOD, BAD)] for text in texts]
    return [[1.0 + good, 1.25 + bad] for good, bad in counts]


def pairs(texts):
    """Sound, of pairs: counts words of the hypothesis."""
    return keywords([text[1] for text in texts])


def raising(texts):
    """Fails for some texts."""
    if any("Oil" in text for text in texts):
        raise ValueError("no oil here")
    return keywords(texts)


def shapeless(texts):
    """Answers with one number a text."""
    return [1.0 for _ in texts]


def slow(texts):
    """Sound, and slow on request."""
    time.sleep(float(os.environ.get("SLOW", "0")))
    return keywords(texts)


calls = []


def moody(texts):
    """Contradicts itself."""
    calls.append(len(texts))
    return [[len(calls) % 2, 0.5] for _ in texts]
'''

CORPUS_ROWS = {"train": 240, "dev": 48, "test": 200}
CORPUS_WORDS = {"agnews": 16, "sst2": 10, "imdb": 40, "snli": 7}
CORPUS_TELLING = {
    "agnews": (
        "war president minister peace",
        "team game season coach",
        "market shares profit bank",
        "software internet computer space",
    ),
    "sst2": ("dull awful bad boring", "good great moving funny"),
    "imdb": ("dull awful bad boring", "good great moving funny"),
    "snli": ("sleeping outside people", "tall sad friends", "nobody cats empty"),
}
CORPUS_OTHERS = (
    *("the", "a", "of", "in", "and", "on", "year", "new", "first", "man", "woman", "film"),
    *("story", "said", "with", "from", "two", "week"),
)
CORPUS_FILES = {
    "agnews": {"train": "train_subset", "test": "test"},
    "imdb": {"train": "train", "test": "test"},
    "sst2": {"train": "train", "dev": "dev", "test": "test"},
    "snli": {"train": "train_subset", "dev": "dev", "test": "test"},
}


def write(folder: Path, data: Path) -> None:
    """The files that commands read into ``folder``, and a data folder for corpora and NLTK."""
    folder.mkdir(parents=True)
    for name, rows in (("news", NEWS), ("reviews", REVIEWS), ("bad-labels", BAD_LABELS)):
        numbered = [(number, *row) for number, row in enumerate(rows, 1)]
        _table(folder / f"{name}.csv", [("id", "text", "label"), *numbered])
    gaps = [*NEWS[:8], ("", "World"), ("A text without a label", ""), *NEWS[8:]]
    _table(folder / "gaps.csv", [("text", "label"), *gaps])
    _table(folder / "news.tsv", [("label", "text"), *((label, text) for text, label in NEWS)], "\t")
    _lines(folder / "news.jsonl", [{"headline": text, "topic": label} for text, label in NEWS])
    (folder / "news.txt").write_text("".join(f"{text}\n" for text, _ in NEWS), encoding="utf-8")
    # Right labels of none: every text is skipped by an attack.
    _table(folder / "wrong.csv", [("text", "label"), *((text, "World") for text, _ in NEWS[1:4])])
    _lines(folder / "hostile.jsonl", HOSTILE)
    _lines(folder / "no-text.jsonl", NO_TEXT)
    keys = ("premise", "hypothesis", "label")
    _lines(folder / "pairs.jsonl", [dict(zip(keys, row, strict=True)) for row in PAIRS])
    (folder / "blank.txt").write_text("Oil prices rise\n\n   \nThe match was won\n")
    (folder / "latin.txt").write_bytes("caf\xe9 prices rise\n".encode("latin-1"))
    (folder / "broken.jsonl").write_text('{"text": "Oil prices rise"}\n{"text": "The\n')
    (folder / "ragged.csv").write_text('text,label\nOil,Business,9\n"a\nb",World\nlonely\n')
    (folder / "nothing.csv").write_text("")
    (folder / "header.csv").write_text("text,label\n")
    (folder / "words.txt").write_text("war\nteam\nbank\nsoftware\ngood\nbad\nplot\n")
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "classify.py").write_text(CLASSIFIERS)
    for name, rows, seed in (("made", 150, 0), ("made-test", 30, 1)):
        _table(folder / f"{name}.csv", [("text", "label"), *_made(rows, seed)])
    detected = [(text, ("clean", "attacked")["bad" in text.split()]) for text, _ in _made(90, 2)]
    _table(folder / "detected.csv", [("text", "label"), *detected])
    luck = random.Random(1)
    noise = [(text, luck.choice(("clean", "clean", "attacked"))) for text, _ in _made(60, 4)]
    _table(folder / "noise.csv", [("text", "label"), *noise])
    _write_data(data)


def _table(path: Path, rows: list[tuple[object, ...]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def _lines(path: Path, rows: tuple[object, ...] | list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _made(rows: int, seed: int) -> list[tuple[str, str]]:
    """Of eight words, three tell the class."""
    rng = random.Random(seed)
    texts = []
    for row in range(rows):
        words = rng.choices(MADE_TELLING[row % 3], k=3) + rng.choices(MADE_OTHERS, k=5)
        rng.shuffle(words)
        texts.append((" ".join(words), MADE_CLASSES[row % 3]))
    return texts


def _write_data(data: Path) -> None:
    """Synonyms and NLTK files that are made up, as the smoke recipes want them."""
    groups = [words.split() for classes in CORPUS_TELLING.values() for words in classes]
    table = {
        word: [other for other in group if other != word]
        for group in (*groups, list(CORPUS_OTHERS))
        for word in group
    }
    (data / "synonyms").mkdir(parents=True)
    for name in ("jia2019_counterfitted_neighbors", "dne_counterfitted_euc_top8_d0.7"):
        packed = gzip.compress(json.dumps(table | SYNONYMS).encode(), mtime=0)
        (data / "synonyms" / f"{name}.json.gz").write_bytes(packed)
    tagger = "taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng"
    for name, content in {
        "corpora/stopwords/english": "the\na\nof\n",
        f"{tagger}.weights.json": "{}",
        f"{tagger}.tagdict.json": "{}",
        f"{tagger}.classes.json": '["NN"]',
        "taggers/universal_tagset/en-ptb.map": "NN\tNOUN\n",
    }.items():
        path = data / "nltk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def _corpus(corpus: str, part: str) -> tuple[list[str], list[int]]:
    """Texts of which every third word tells the class."""
    rng = random.Random(f"{corpus} {part}")
    telling = [words.split() for words in CORPUS_TELLING[corpus]]
    texts, labels = [], []
    for row in range(CORPUS_ROWS[part]):
        label = row % len(telling)
        words = [
            rng.choice(telling[label] if rng.random() < 0.35 else CORPUS_OTHERS)
            for _ in range(CORPUS_WORDS[corpus])
        ]
        texts.append(f"{' '.join(words)} {row}")  # no two are the same
        labels.append(label)
    return texts, labels


def write_parquet(folder: Path, data: Path) -> None:
    """The Parquet files; needs pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, labels = zip(*NEWS, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), folder / "news.parquet")
    for corpus, files in CORPUS_FILES.items():
        (data / corpus).mkdir()
        for part, name in files.items():
            texts, numbers = _corpus(corpus, part)
            columns: dict[str, object] = {"text": texts}
            if corpus == "snli":
                columns = {"premise": ["a man and a woman on the film"] * len(texts)}
                columns["hypothesis"] = texts
            columns["label"] = pa.array(numbers, pa.int8())
            pq.write_table(pa.table(columns), data / corpus / f"{name}.parquet")


if __name__ == "__main__":
    write_parquet(Path(sys.argv[1]), Path(sys.argv[2]))
