r"""CERT-ED's own code (Huang et al., EMNLP Findings 2024) beside ours, on the same texts and model.

    python -m tools.peers.cert_ed draw --checkout CHECKOUT --encoder CARRY/encoder --output COPIES

``draw``: its code draws copies of the first AG News test texts, for `tools.peers.deletion prepare
--copies COPIES`.

Run in an environment of its own, with transformers 4, statsmodels and pandas.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.data import load_corpus
from ranmask.words import documents

SELECTION, ESTIMATION, ALPHA, SEED, RATE = 1000, 4000, 0.05, 0, 0.9  # those of its settings
TEXTS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw")
    draw.add_argument("--encoder", required=True, help="folder of the tokenizer")
    draw.add_argument("--output", type=Path, required=True)
    draw.add_argument("--texts", type=int, default=TEXTS)
    for command in (draw,):
        command.add_argument("--checkout", type=Path, required=True)
    given = parser.parse_args()
    sys.path.insert(0, str(given.checkout.resolve() / "src"))
    drawn(mechanism(given.encoder), given.texts, given.output)


def mechanism(folder: str) -> Any:
    """Its deletion at the rate .9 for words, with the tokenizer of an encoder."""
    from certification import deletion_perturbation

    return deletion_perturbation(p_del=RATE, tokenizer=folder, tokenization="split")


def drawn(theirs: Any, texts: int, output: Path) -> None:
    """Write which words stay in the copies of each text, as its code draws them."""
    np.random.seed(SEED)  # what its code draws from
    found = {}
    for number, document in enumerate(documents(load_corpus("agnews", "test").texts[:texts])):
        places = [str(place) for place in range(len(document.words))]
        stays = np.zeros((SELECTION + ESTIMATION, len(places)), dtype=bool)
        for row in stays:
            row[list(map(int, theirs.perturb_tokens(places)))] = True
        found[f"stays{number}"] = np.packbits(stays, axis=1)
    np.savez_compressed(output, **found)


if __name__ == "__main__":
    main()
