"""The procedure as the RanMASK paper published it, for timing.

For each text 1,000 + 5,000 masked strings are built one by one in Python, tokenised, padded to
the longest of their batch of 300 and classified.  (The paper's own code is not used; this does
the same work, with today's tokenizer and the same model.)
"""

from __future__ import annotations

import random
from typing import Any

import torch

from ranmask.certificates.kept import kept_count

BATCH = 300
SELECTION, ESTIMATION = 1000, 5000


def votes(
    model: Any, tokenizer: Any, text: str, rate: float, seed: int = 0, share: int = 1
) -> list[int]:
    """Classify 6,000 masked strings of one text; returns the votes of the last 5,000.

    ``share``: only one string of so many, to measure in less time.
    """
    words = text.split()
    kept = kept_count(len(words), mask_rate=rate)
    draw = random.Random(seed)
    counts: list[int] = []
    for number in (SELECTION // share, ESTIMATION // share):
        strings = []
        for _ in range(number):
            shown = set(draw.sample(range(len(words)), kept))
            strings.append(
                " ".join(w if i in shown else tokenizer.mask_token for i, w in enumerate(words))
            )
        counts = [0] * model.config.num_labels
        for start in range(0, number, BATCH):
            batch = tokenizer(
                strings[start : start + BATCH],
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                best = model(**batch.to(model.device)).logits.argmax(dim=1)
            for label in best.tolist():
                counts[label] += 1
    return counts
