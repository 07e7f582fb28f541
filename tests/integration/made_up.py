"""Made-up data that a tiny encoder can learn: of eight words, three tell the class."""

import random

from ranmask.data import Corpus

CLASSES = ("praise", "blame", "report")
TELLING = (("good", "great", "fine"), ("bad", "awful", "dull"), ("plot", "story", "acting"))
OTHERS = ("the", "a", "film", "was", "is", "and", "but", "very")


def texts(rows, seed, varied=False):
    """Texts and labels, as many of each class; ``varied`` in their numbers of words."""
    rng = random.Random(seed)
    for row in range(rows):
        label = row % len(CLASSES)
        others = rng.choice((2, 5, 5, 5, 5, 5)) if varied else 5
        words = rng.choices(TELLING[label], k=3) + rng.choices(OTHERS, k=others)
        rng.shuffle(words)
        yield " ".join(words), label


def corpus(rows, split="train", seed=0, pairs=False, varied=False):
    chosen, labels = zip(*texts(rows, seed, varied), strict=True)
    if pairs:
        chosen = tuple(("the film was", text) for text in chosen)
    note = f"{rows} rows were made up"
    return Corpus("made-up", split, chosen, labels, CLASSES, note)


def write_csv(path, rows, seed=0):
    """The same as a file, with the classes by name."""
    lines = [f"{text},{CLASSES[label]}" for text, label in texts(rows, seed)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path
