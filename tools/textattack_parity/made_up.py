# ruff: noqa: RUF001  letters that look like others are the point
"""Texts that nobody else wrote, so that what TextAttack does with them may be committed."""

from __future__ import annotations

import itertools
import random

TEXTS = (
    "The film was dull, and its hero duller still.",
    "A warm, funny, engaging film!",
    "I didn't laugh once; my neighbour's dog did.",
    "Not good. NOT good at all, Not even bad.",
    "(Quietly) brilliant - a well-made, old-fashioned thriller.",
    "WHAT a mess: THE PLOT MAKES NO SENSE",
    "It's 90 minutes too long, which is bad for a film of 95.",
    "The same old story, the same old jokes, the same old ending.",
    "Gripping",
    "Slow start",
    "no",
    "Bring tissues, popcorn... and patience!!!",
    "McDonald sells e-books to O'Brien's nephew; nobody knows why.",
    "Shares of the iPhone maker rose 3.5% on Monday, analysts said.",
    "'Wonderful' is a word; \"wonderful\" is another -- and neither fits.",
    "You'll cry, you've cried, you'd cry again if you weren't so bored.",
    "write to us at nobody@example.org or call 555-0199 (free)",
    "snake_case words, *starred* words and _underlined_ words survive",
    "A naïve café owner in São Paulo meets the Øresund's coldest détective",
    "Oil prices fell; oil stocks fell; oil men fell silent.",
    "The director, whose last film won two prizes, has made a quiet and patient portrait of a "
    "village that waits for rain, for letters, for a bus that never comes, and for somebody to "
    "tell it that the war is over.",
    "Wall Street closed higher on Tuesday as bargain hunters returned to battered technology "
    "shares, but analysts warned that rising fuel costs could still hurt profits this winter.",
    "The team's captain scored twice in the final minutes and the visitors, who had led since the "
    "first half, went home with nothing but a long list of injured players.",
    "Giant pandas chew bamboo shoots while tired keepers sweep muddy floors, count empty buckets, "
    "scrub rusty doors, greet noisy school classes, answer silly questions, sell sticky sweets, "
    "mend broken fences, chase hungry crows, warn careless drivers and hope tomorrow brings rain, "
    "silence, sunshine, holidays, better shoes and warmer gloves.",
    "an  uneven   text with\ttabs and  double blanks ",
    "[UNK] and [MASK] are words here, too",
    "U.S. troops left at 5 a.m., the B.B.C. said",
    "Scientists in Norway say a small robot that swims like an eel can inspect pipelines deep "
    "under the sea without any help from the surface, day and night.",
    "great great great acting",
    "rock-'n'-roll isn't dead - it's just resting",
    "ein Film über Liebe, Tod und Käse",
    "Seven grey horses pulled heavy carts uphill while farmers sang cheerful songs, drank cider, "
    "rested",
    "smart smart-alecks outsmart the smartest",
    "She counts sixteen words in hers, which is just one more than there were in his.",
    "Heavy rain flooded cellars across the northern valleys on Sunday, cutting power lines, "
    "blocking roads and forcing several hundred families to spend the night in schools.",
    "What begins as a light comedy about two rival bakers turns, slowly and without any warning, "
    "into a bitter little play about money, pride and the price of flour.",
    "The company said quarterly profit doubled because customers bought more expensive phones, "
    "though it expects weaker sales once cheaper models reach shops in spring.",
    "Young cooks, old waiters, loud guests, cold soup, burnt bread: nothing in this restaurant "
    "comedy tastes fresh, yet its final course left me strangely satisfied.",
    "He, she, it: who, what, where?",
)
"""Single texts."""

PAIRS = (
    ("A man plays the guitar on stage.", "A man is playing music."),
    ("Two dogs run across the beach.", "The animals sleep indoors."),
    ("A woman in a red coat isn't smiling.", "A woman smiles."),
    ("I saw it.", "I didn't."),
    ("Children are playing football; their parents watch.", "Parents watch a football game, bored"),
    ("The old man's boat is small", "the boat is small, and old"),
    ("Workers repair the roof of a church before the winter.", "The church has a new roof now."),
    ("People wait for a train at a crowded station", "THE STATION IS EMPTY"),
    ("PLIT SPLIT S P", "I split it"),
    ("A chef cooks.", "Cooking"),
)
"""Premises and hypotheses."""

_MORE_WORDS = """
movie picture cinema flick feature tale yarn narrative saga fable comic amusing hilarious
tedious boring dreary lifeless bland sluggish lengthy brief short quick rapid swift terrible
awful dreadful horrid lousy poor weak fine superb splendid lovely marvellous firm company
business trader market stock share price cost fuel petrol energy profit squad club player coach
match contest win victory loss defeat goal robot machine device engine ocean water river lake
scientist expert researcher male female lady gentleman child kid infant pet hound puppy
guitarist musician grin laugh weep sob sleep rest nap walk stroll sprint jog speak say tell
utter
"""
WORDS = tuple(_MORE_WORDS.split())
"""Words that are in no text, to be neighbours and tokens."""

NASTY = (
    "",
    " ",
    "...",
    "'",
    "''''",
    "-_*@'",
    "--a--",
    "a--b",
    "a - b",
    "'a'b'",
    "don't",
    "'don't'",
    "''tis the season'",
    "rock-'n'-roll",
    "x@y.z",
    "@you #me",
    "*very* __bold__ `code`",
    "`",
    "a`b",
    "3×4 = 12, 3 × 4",
    "˗minus˗",
    "e.g. i.e. U.S.A.",
    "1,000.50",
    "50%",
    "a/b\\c|d",
    "tab\tnew\nline\r\nform\x0cfeed",
    "no\u00a0break\u2003em\u3000wide",
    "zero\u200bwidth\u200djoiner",
    "soft\u00adhyphen",
    "en–dash em—dash",
    "“curly” ‘quotes’ it’s",
    "naïve café ÀÉÎ ß ŉ ǅ",
    "cafe\u0301 combining",
    "Ω≈ç√∫ µ",
    "①②③ Ⅷ ⅼⅿ ½",
    "привет, мир!",
    "γειά σου",
    "हिन्दी शब्द",
    "שלום עולם",
    "مرحبا بالعالم",
    "ไทยไม่มีช่องว่าง",
    "한국어 문장",
    "ひらがな カタカナ",
    "emoji 😀 in the 👩‍👩‍👧 middle😀end",
    "𝟕 𝚏 𝒌 𝕬",
    "\ufeffbom",
    "\x00null\x1funit",
    "<b>html</b> &amp; &#39;",
    "a" * 300,
    "-" * 50 + "a" + "'" * 50,
    "one",
    "one.",
    ".one",
    "two words",
    "The the THE tHe",
    "word  ,  word",
)
"""Strings that are hard to cut, none of them with Chinese characters (see `UNLIKE`)."""

_ALPHABET = "aB3é ßΩ  .,;!?'\"-_*@`×˗()[]<>/\t\u00a0\u2019"


UNLIKE = (
    "这部电影很好看",
    "the film 电影 was good",
    "İstanbul and Izmir, İzmir and Istanbul",
)
"""Strings that TextAttack and ranmask treat differently, see `compare`."""

ODD = ("motion picture", "o.k", "--", "a/b")
"""Neighbours that are several words or none: TextAttack tries them, ranmask does not."""

ODD_TEXTS = (
    "The film was dull",
    "a good film, a fine picture",
    "Cheap thrills: a film about trains",
    "Old jokes make old films dull.",
)
"""Texts to meet them in."""


def named() -> list[tuple[str, str | tuple[str, str]]]:
    """Texts and pairs, with names."""
    return [
        *((f"made-up-{place}", text) for place, text in enumerate(TEXTS)),
        *((f"made-up-pair-{place}", pair) for place, pair in enumerate(PAIRS)),
    ]


def odd() -> list[tuple[str, str]]:
    """`ODD_TEXTS`, with names."""
    return [(f"odd-{place}", text) for place, text in enumerate(ODD_TEXTS)]


def strings() -> list[str | tuple[str, str]]:
    """All strings to cut."""
    return [*NASTY, *UNLIKE, *TEXTS, *PAIRS]


def fuzz(count: int, seed: int) -> list[str]:
    """Strings without sense, short and long, mostly of the characters that decide a cut."""
    chance = random.Random(seed)  # noqa: S311  no secret
    return ["".join(chance.choices(_ALPHABET, k=chance.randrange(1, 40))) for _ in range(count)]


def cases() -> list[tuple[str, str]]:
    """Words, and words whose case they are to take."""
    words = ("film", "Film", "FILM", "fILM", "i", "I", "o'neil", "motion-picture", "ß", "ǆ", "3d")
    like = (*words, "McDonald", "A", "a", "USA", "Usa", "uSA", "90", "-", "É", "Été", "O'Neil")
    return list(itertools.product(words, like))
