"""Texts a second of a `WindowDetector` around an encoder of 22.7M parameters.

Weights are random (time does not depend on them), as are the texts: words of one or two tokens, as
many as messages and mails have.  Needs torch and transformers.

    python -m benchmarks.window_speed [--texts 64] [--words 30] [--sizes 8,16,32]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
import transformers

from ranmask import HuggingFaceClassifier, WindowDetector

SHAPE = {
    "num_hidden_layers": 6,
    "hidden_size": 384,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def encoder(device: str) -> HuggingFaceClassifier:
    """An encoder of all-MiniLM-L6-v2's shape that tells two classes apart."""
    torch.manual_seed(0)
    config = transformers.BertConfig(num_labels=2, **SHAPE)
    config.id2label = {0: "pass", 1: "flag"}
    auto: Any = transformers.BertForSequenceClassification
    model = auto(config).eval().to(device)
    pieces = [*SPECIAL, "##s", *(f"w{number}" for number in range(config.vocab_size - 6))]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = transformers.BertTokenizerFast(vocab=numbers, model_max_length=256)
    return HuggingFaceClassifier(model, tokenizer, hide="drop")


def texts(number: int, words: int) -> list[str]:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 30_000, (number, words))
    ends = rng.random((number, words)) < 0.3
    return [
        " ".join(f"w{word}{'s' if end else ''}" for word, end in zip(row, tails, strict=True))
        for row, tails in zip(drawn, ends, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--sizes", default="8,16,32")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    given = parser.parse_args()
    sizes = tuple(int(size) for size in given.sizes.split(","))
    device = given.device
    torch.set_num_threads(given.threads)
    base = encoder(device)
    detector = WindowDetector(base, sizes=sizes)
    some = texts(given.texts, given.words)
    detector.detect(some[: max(1, given.texts // 8)])
    # Of one thread, its own time: others may be at work on the same cores.
    clock = time.process_time if device == "cpu" and given.threads == 1 else time.perf_counter
    times = []
    for _ in range(3):
        begun = clock()
        detector.detect(some)
        times.append(clock() - begun)
    windows = detector.calls(some)
    named = (
        torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
    )
    print(
        f"{device} ({named}): {given.words} words, sizes {given.sizes}: {windows // given.texts} "
        f"windows a text, {given.texts / min(times):.1f} texts a second, "
        f"{windows / min(times):,.0f} windows a second"
    )


if __name__ == "__main__":
    main()
