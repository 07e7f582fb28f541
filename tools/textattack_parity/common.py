"""What both sides are given; every number of it follows from `SEED`, and is exact.

Imports neither ranmask nor TextAttack.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20240917
GRID = 1 << 16
"""Probabilities are whole multiples of 1 / GRID: exact in single precision, and to ranmask."""
RECIPES = (
    "deepwordbug",
    "textfooler",
    "textfooler with sentence encoder",
    "bert-attack",
    "bert-attack with sentence encoder",
    "bae",
    "bae with sentence encoder",
    "pwws",
    "textbugger",
    "textbugger with sentence encoder",
    "clare",
    "clare with sentence encoder",
)
NEIGHBOURS = 50
WINDOWS = (1, 2, 3, 4, 5, 15, 16, None)
SALTS = 1000
"""Victims that are tried for a text, until one gives no two of its words the same importance."""

LEADS = (0, 500_000, 1_200_000, 2_500_000)
"""What victims favour a class by: from texts that one word flips to texts that none does."""

STEPS = (0, 0, 64, 0, 256)
"""Steps that probabilities move in."""

_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


def number(*names: object) -> int:
    """64 bits that follow from the seed and names."""
    spelt = repr((SEED, *names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(spelt, digest_size=8).digest(), "big")


def digest(values: Any) -> str:
    """SHA-256 of plain JSON values."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def ordered(recipe: str, order: Sequence[int], visits: Sequence[Any]) -> dict[str, Any]:
    """The order of words, and what was tried at each.

    Of PWWS without the words that have no candidates: all are equally unimportant, and nothing
    happens there.
    """
    if recipe == "pwws":
        visits = [visit for visit in visits if visit[1]]
        order = [at for at in order if at in {visit[0] for visit in visits}]
    return {"order": list(order), "visits": list(visits)}


def parts_of(text: Any) -> tuple[str, ...]:
    """A text, or premise and hypothesis."""
    return (text,) if isinstance(text, str) else tuple(text)


def vocabulary(texts: Iterable[Any], more: Iterable[str] = ()) -> list[str]:
    """The words of texts in lower case, and more, in order of the alphabet."""
    found = {
        word for text in texts for part in parts_of(text) for word in _WORD.findall(part.lower())
    }
    return sorted(found.union(more))


# -- the victim --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Victim:
    """A pure function of the words of a text and of their places.

    ``lead`` is what the class ``favoured`` has from the start: it makes texts harder to attack.
    ``steps``: probabilities move in so many steps, as votes do, so that candidates tie; 0: they
    are as fine as can be.  Texts that show ``[UNK]`` or have another number of words than ``words``
    are always judged finely, since words that tie have no order that could be compared.
    """

    classes: int
    salt: int = 0
    favoured: int = 0
    lead: int = 0
    steps: int = 0
    words: int = 0

    def row(self, text: Any) -> list[int]:
        """Probabilities as multiples of 1 / GRID, no two of the largest alike."""
        sums = [0] * self.classes
        sums[self.favoured] += self.lead
        for part, string in enumerate(parts_of(text)):
            for place, word in enumerate(string.split()):
                factor = 64 + 2 * ((37 * place + 97 * part) % 211)
                for label, weight in enumerate(_weights(self.salt, self.classes, word)):
                    sums[label] += weight * factor
        half = GRID // 2
        liked = [half + one * half // (abs(one) + 600_000) + 1 for one in sums]
        step = GRID // self.steps if self.steps and self._in_steps(text) else 1
        row = [one * GRID // sum(liked) // step * step for one in liked]
        row[-1] += GRID - sum(row)
        first, second = sorted(range(self.classes), key=lambda label: (-row[label], label))[:2]
        if row[first] == row[second]:
            row[first] += 1
            row[second] -= 1
        return row

    def _in_steps(self, text: Any) -> bool:
        whole = "\n".join(parts_of(text))
        return "[UNK]" not in whole and count_words(text) == self.words

    def label(self, text: Any) -> int:
        """The likeliest class."""
        row = self.row(text)
        return row.index(max(row))

    def __call__(self, texts: Sequence[Any]) -> list[list[float]]:
        """Probabilities of the classes for each text."""
        return [[one / GRID for one in self.row(text)] for text in texts]


def count_words(text: Any) -> int:
    """How many runs of letters and digits a text has."""
    return sum(len(re.findall(r"[^\W_]+", part)) for part in parts_of(text))


@lru_cache(maxsize=1 << 20)
def _weights(salt: int, classes: int, word: str) -> tuple[int, ...]:
    return tuple(number("weight", salt, word, label) % 2001 - 1000 for label in range(classes))


@dataclass(frozen=True)
class Job:
    """A text to attack.

    ``lead`` and ``steps`` are its victim's.  ``wrong``: its label is not what the victim says, so
    that an attack is skipped.
    """

    name: str
    text: Any
    classes: int
    lead: int
    steps: int
    wrong: bool

    def victim(self, salt: int) -> Victim:
        """What is attacked."""
        said = Victim(self.classes, salt).label(self.text)
        words = count_words(self.text) if self.steps else 0
        return Victim(self.classes, salt, said, self.lead, self.steps, words)

    def label(self, salt: int) -> int:
        """The text's label."""
        said = self.victim(salt).label(self.text)
        return (said + 1) % self.classes if self.wrong else said


def jobs(texts: Iterable[tuple[str, Any]]) -> list[Job]:
    """Named texts with all sorts of victims."""
    return [
        Job(
            name,
            text,
            classes=2 + (place % 3 == 0),
            lead=LEADS[place % 4] * max(1, count_words(text) // 12),
            steps=STEPS[place % 5],
            wrong=place % 14 == 12,
        )
        for place, (name, text) in enumerate(texts)
    ]


# -- chances -----------------------------------------------------------------------------------


def chance_seed(word: str, sort: str) -> int:
    """Where the typing error of a sort in a word starts to draw from."""
    return number("typo", word, sort) % (1 << 32)


# -- word vectors --------------------------------------------------------------------------------

_DIMENSIONS = 24


def vectors(words: Sequence[str]) -> np.ndarray:
    """Whole numbers, a row a word: the words of a cluster are alike, each in its own degree.

    A third of the words is one close cluster, so that its words have more than `NEIGHBOURS`
    neighbours of cosine 0.5; in the others the cosines go down to 0.3.
    """
    clusters = max(1, len(words) // 24)
    rows = []
    for word in words:
        close = number("close", word) % 3 == 0
        cluster = 0 if close else 1 + number("cluster", word) % clusters
        spread = (1, 2, 3)[number("spread", word) % 3] if close else 3 + number("s", word) % 4
        rows.append(
            [
                4 * (number("centre", cluster, at) % 101 - 50)
                + spread * (number("noise", word, at) % 101 - 50)
                for at in range(_DIMENSIONS)
            ]
        )
    return np.array(rows, dtype=np.float32)


def nearest(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """For each row itself and its `NEIGHBOURS` nearest by cosine; and how sure that is.

    The second is the smallest difference that decides: between the last neighbour and the next
    word, and between any cosine and 0.5.
    """
    unit = matrix.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = unit @ unit.T
    sure = float(np.abs(cosines - 0.5).min())
    np.fill_diagonal(cosines, 2)
    order = np.argsort(-cosines, axis=1, kind="stable")
    count = min(NEIGHBOURS, len(matrix) - 1)
    if count + 1 < len(matrix):
        ranked = np.take_along_axis(cosines, order, axis=1)
        sure = min(sure, float((ranked[:, count] - ranked[:, count + 1]).min()))
    return order[:, : count + 1], sure


# -- parts of speech -----------------------------------------------------------------------------

_TAGS = ("NOUN", "VERB", "ADJ", "NOUN", "ADV")


def made_up_tags(words: Sequence[str]) -> list[str]:
    """Tags that depend on each word, on its place, and on both ends of what the tagger is shown."""
    ends = (len(words), words[0], words[-1])
    return [
        _TAGS[number("tag", word, at, *ends) % len(_TAGS)]
        if number("unsure", word) % 2
        else _TAGS[number("tag", word) % len(_TAGS)]
        for at, word in enumerate(words)
    ]


# -- synonyms ------------------------------------------------------------------------------------


def synonyms(word: str, words: Sequence[str]) -> list[str]:
    """In WordNet's stead: up to six other words, some capital, and phrases, which nobody takes."""
    count = number("synonyms", word.lower()) % 7
    picked = [words[number("synonym", word.lower(), at) % len(words)] for at in range(count)]
    found = [
        (one.capitalize(), f"{one}_{one}", one)[min(2, number("form", word.lower(), one) % 9)]
        for one in picked
    ]
    return list(dict.fromkeys(found))


# -- sentences -----------------------------------------------------------------------------------


def sentence_vectors(sentences: Sequence[str]) -> np.ndarray:
    """Unit vectors; some words weigh so much that no other may take their place."""
    rows = np.zeros((len(sentences), 16))
    for row, sentence in zip(rows, sentences, strict=True):
        row[0] = 1
        for at, word in enumerate(re.findall(r"\w+", sentence)):
            row += _direction(word) * (1 + at / 64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


@lru_cache(maxsize=1 << 16)
def _direction(word: str) -> np.ndarray:
    weight = (1, 1, 2, 2, 3, 4, 6, 9)[number("weight", word) % 8]
    return weight * np.array([number("direction", word, at) % 101 - 50 for at in range(16)]) / 50


# -- a masked language model -----------------------------------------------------------------------

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_HIDDEN, _INNER, _LONGEST = 32, 64, 512
MODEL = 5
"""Which weights: those whose logits are nowhere so close that a rounding error could decide."""
MOST_PIECES = 4
"""Pieces of a word, punctuation included, that BERT-Attack is compared on: TextAttack goes through
all combinations, 8 to the power of the pieces, and keeps the first 8."""


MOST_WORDS, MOST_TEXTS = 17, 24
"""Words of a text that CLARE is compared on, and texts."""


def wordpieces(words: Sequence[str]) -> list[str]:
    """A WordPiece vocabulary in which some words are whole and others two or three pieces."""
    plain = sorted({piece for word in words for piece in re.findall(r"[a-z0-9]+", word)})
    signs = ".,;:!?'\"-()*@_$%&/<>[]"
    found = {*"abcdefghijklmnopqrstuvwxyz0123456789", *signs}
    found.update(f"##{sign}" for sign in signs)
    for word in plain:
        cuts = {0: (), 1: (len(word) // 2,), 2: (len(word) // 3, 2 * len(word) // 3)}
        sort = (0, 0, 1, 1, 2)[number("pieces", word) % 5] if len(word) > 5 else 0
        ends = (0, *cuts[sort], len(word))
        for start, stop in itertools.pairwise(ends):
            found.add(word[start:stop] if start == 0 else "##" + word[start:stop])
    while long := [word for word in plain if _pieces(word, found) > 3]:
        found.update(long)
    return [*_SPECIAL, *sorted(found)]


def fitting(recipe: str, all_jobs: Sequence[Job], words: Sequence[str]) -> list[int]:
    """Which texts both can attack in reasonable time, see `MOST_PIECES`."""
    known = set(wordpieces(words))
    places = range(len(all_jobs))
    if recipe.startswith("clare"):
        # It tries a hundred texts a word and step; and of ties its sort takes any.
        fine = [place for place in places if not all_jobs[place].steps]
        short = [place for place in fine if count_words(all_jobs[place].text) <= MOST_WORDS]
        return short[:: -(-len(short) // MOST_TEXTS)]
    if not recipe.startswith("bert"):
        return list(places)
    return [place for place in places if _most_pieces(all_jobs[place].text, known) <= MOST_PIECES]


def _most_pieces(text: Any, known: set[str]) -> int:
    runs = [run for part in parts_of(text) for run in re.findall(r"[\w'*@`-]+", part.lower())]
    return max(sum(_pieces(one, known) for one in re.findall(r"[^\W_]+|.", run)) for run in runs)


def _pieces(word: str, known: set[str]) -> int:
    """How many pieces WordPiece makes of a word: always the longest next; 1 where it cannot."""
    count = start = 0
    while start < len(word):
        mark = "##" if start else ""
        stops = (stop for stop in range(len(word), start, -1) if mark + word[start:stop] in known)
        start = next(stops, len(word) + 1)
        count += 1
    return 1 if start > len(word) else count


def write_language_model(folder: Path, words: Sequence[str]) -> None:
    """A tiny BERT with a masked-LM head, its weights drawn from the seed, and its tokenizer."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    tokens = {token: place for place, token in enumerate(wordpieces(words))}
    tokenizer = Tokenizer(models.WordPiece(tokens, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", tokens["[SEP]"]), ("[CLS]", tokens["[CLS]"])
    )
    tokenizer.add_special_tokens(list(_SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {f"{token[1:-1].lower()}_token": token for token in _SPECIAL}
    _write(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": _LONGEST, **names},
    )
    _write(
        folder / "config.json",
        {
            "architectures": ["BertForMaskedLM"],
            "model_type": "bert",
            "vocab_size": len(tokens),
            "hidden_size": _HIDDEN,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": _INNER,
            "max_position_embeddings": _LONGEST,
            "type_vocab_size": 2,
            "pad_token_id": tokens["[PAD]"],
            "torch_dtype": "float32",
        },
    )
    weights = {name: _weight(name, shape) for name, shape in _shapes(len(tokens)).items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _shapes(tokens: int) -> dict[str, tuple[int, ...]]:
    start, layer, head = "bert.embeddings.", "bert.encoder.layer.0.", "cls.predictions."
    shapes: dict[str, tuple[int, ...]] = {
        f"{start}word_embeddings.weight": (tokens, _HIDDEN),
        f"{start}position_embeddings.weight": (_LONGEST, _HIDDEN),
        f"{start}token_type_embeddings.weight": (2, _HIDDEN),
        f"{head}bias": (tokens,),
    }
    linear = {
        f"{layer}attention.self.query": (_HIDDEN, _HIDDEN),
        f"{layer}attention.self.key": (_HIDDEN, _HIDDEN),
        f"{layer}attention.self.value": (_HIDDEN, _HIDDEN),
        f"{layer}attention.output.dense": (_HIDDEN, _HIDDEN),
        f"{layer}intermediate.dense": (_INNER, _HIDDEN),
        f"{layer}output.dense": (_HIDDEN, _INNER),
        f"{head}transform.dense": (_HIDDEN, _HIDDEN),
    }
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in (start, f"{layer}attention.output.", f"{layer}output.", f"{head}transform."):
        shapes |= {f"{name}LayerNorm.weight": (_HIDDEN,), f"{name}LayerNorm.bias": (_HIDDEN,)}
    return shapes


def _weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Multiples of 1/256 up to a half, so large that every token and place matters."""
    raw = np.random.PCG64(number("model", MODEL, name)).random_raw(int(np.prod(shape)))
    drawn = ((raw >> np.uint64(40)) % np.uint64(257)).astype(np.float32) / 256 - 0.5
    values = 1 + drawn if name.endswith("LayerNorm.weight") else drawn
    return values.astype(np.float32).reshape(shape)


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
