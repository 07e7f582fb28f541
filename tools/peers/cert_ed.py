r"""CERT-ED's own code (Huang et al., EMNLP Findings 2024) beside ours, on the same texts and model.

    python -m tools.peers.cert_ed draw --checkout CHECKOUT --encoder CARRY/encoder --output COPIES
    python -m tools.peers.cert_ed compare --checkout CHECKOUT --outcomes OUT --through 5

``draw``: its code draws copies of the first AG News test texts, for `tools.peers.deletion prepare
--copies COPIES`.

``compare``: from what `tools.peers.deletion run` left in the folder OUT.  Its code is given our
votes, and must have our radii; and the votes of the copies that it drew itself.  The first texts
(``--through``) go through all of its code, model included, on this machine.  Outcomes go to
``results/peers``, and the comparison to ``results/peers/compared/cert-ed.json``.

Run in an environment of its own, with transformers 4, statsmodels and pandas.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers_records import FOLDER, Code, PeerRecord, Texts, versions, write
from benchmarks.settings import machine

from ranmask.certificates.deletion import deletion_radius
from ranmask.certificates.kept import DeletionRates
from ranmask.data import load_corpus
from ranmask.words import documents

REPOSITORY, COMMIT = "Dovermore/nlp-smoothing-software", "0fae285"
SELECTION, ESTIMATION, ALPHA, SEED, RATE = 1000, 4000, 0.05, 0, 0.9  # those of its settings
TESTS = {"cohen": "deletion", "lecuyer": "deletion-runner-up"}  # its bounds, and ours
TEXTS, SIZES, BATCH = 200, 10, 32
FORMAT, VERSION = "ranmask-peer-comparison", 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw")
    draw.add_argument("--encoder", required=True, help="folder of the tokenizer")
    draw.add_argument("--output", type=Path, required=True)
    draw.add_argument("--texts", type=int, default=TEXTS)
    compare = commands.add_parser("compare")
    compare.add_argument("--outcomes", type=Path, required=True)
    compare.add_argument("--through", type=int, default=0, help="texts for all of its code")
    compare.add_argument("--folder", type=Path, default=FOLDER)
    for command in (draw, compare):
        command.add_argument("--checkout", type=Path, required=True)
    given = parser.parse_args()
    sys.path.insert(0, str(given.checkout.resolve() / "src"))
    if given.command == "draw":
        drawn(mechanism(given.encoder), given.texts, given.output)
    else:
        compared(given)


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


def compared(given: argparse.Namespace) -> None:
    """Radii from the same votes; certified accuracy of both; how long all of its code takes."""
    outcomes = json.loads((given.outcomes / "outcomes.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        pieces = sorted(given.outcomes.glob("model.tar.*"))
        whole = io.BytesIO(b"".join(piece.read_bytes() for piece in pieces))
        with tarfile.open(fileobj=whole) as tar:
            tar.extractall(scratch, filter="data")
        theirs = mechanism(scratch)
        found: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "code": {"repository": REPOSITORY, "commit": COMMIT},
            "versions": versions("torch", "transformers", "statsmodels", "numpy", "scipy"),
            "same_votes": same_votes(theirs, outcomes),
        }
        ours = outcomes["settings"]["agnews-deletion"]
        seconds = None
        if given.through:
            found["through"] = through(theirs, scratch, given.through)
            seconds = found["through"]["seconds"]
        found["same_texts"] = same_texts(theirs, ours)
    for name, outcome in outcomes["settings"].items():
        write_ours(name, outcome, outcomes, given.folder)
    write_theirs(found["same_texts"], ours, outcomes, seconds, found["versions"], given)
    path = given.folder / "compared" / "cert-ed.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def same_votes(theirs: Any, outcomes: dict[str, Any]) -> dict[str, Any]:
    """Its radii and ours from the votes of every text of the settings with one rate."""
    found: dict[str, Any] = {}
    for name, outcome in outcomes["settings"].items():
        if outcome["keep"] is not None:
            continue
        rates = DeletionRates(outcome["rate"])
        for bound, kind in TESTS.items():
            same = lower = others = 0
            for text in outcome["texts"]:
                votes = text["votes"]
                top, radius = theirs.certified_radius("", votes, alpha=ALPHA, stat_test=bound)
                given = (votes, int(top), sum(votes), text["words"], rates)
                own = deletion_radius(kind, *given, alpha=ALPHA).words
                own = -1 if own is None else own
                same, lower = same + (own == radius), lower + (own < radius)
                others += own > radius
            found[f"{name}, {kind}"] = {
                "texts": len(outcome["texts"]),
                **{"same": same, "ours_smaller": lower, "ours_larger": others},
            }
    return found


def same_texts(theirs: Any, ours: dict[str, Any]) -> dict[str, Any]:
    """Certified accuracy of its copies by its code, and of ours by our code, on the same texts."""
    own = ours["texts"][: len(ours["their_copies"])]
    classes = [text["expected"] for text in own]
    radii = []
    for text, votes in zip(own, ours["their_copies"], strict=True):
        label, _ = theirs.predict("", np.array(votes["selection"]))
        top, radius = theirs.certified_radius(
            "", votes["estimation"], alpha=ALPHA, stat_test="cohen"
        )
        right = int(label) == int(top) == text["expected"]
        radii.append(int(radius) if right else -1)
    labels = [int(np.argmax(votes["selection"])) for votes in ours["their_copies"]]
    mine = [
        text["radius"] if text["label"] == text["expected"] and text["radius"] is not None else -1
        for text in own
    ]
    return {
        "texts": len(own),
        "theirs": {"accuracy": share(map(int.__eq__, labels, classes)), **curve(radii)},
        "ours": {
            "accuracy": share(text["label"] == text["expected"] for text in own),
            **curve(mine),
        },
        "same_radius": share(map(int.__eq__, mine, radii)),
    }


def through(theirs: Any, folder: str, texts: int) -> dict[str, Any]:
    """The first texts through all of its code, with one thread: votes, radii, seconds."""
    import torch
    import transformers
    from certification import SmoothedClassifierWrapper

    torch.set_num_threads(1)
    np.random.seed(SEED)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).float()
    smoothed = SmoothedClassifierWrapper(model, theirs, device="cpu")
    test = load_corpus("agnews", "test")
    found: list[Any] = []
    started, processor = time.monotonic(), time.process_time()
    for text in test.texts[:texts]:
        done = smoothed.certify(
            text,
            pred_num_samples=SELECTION,
            cr_num_samples=ESTIMATION,
            cr_kwargs={"alpha": ALPHA, "stat_test": "cohen"},
            batch_size=BATCH,
        )
        votes = done.cr_label_counts.tolist()
        found.append(
            {"votes": votes, "label": int(done.pred), "radius": int(done.certified_radius)}
        )
    return {
        "texts": found,
        "hardware": f"{machine()}, one thread",
        "seconds_on_the_wall": round((time.monotonic() - started) / texts, 3),
        "seconds": round((time.process_time() - processor) / texts, 3),
    }


def share(right: Any) -> float:
    """The share of those that are right."""
    values = list(right)
    return round(sum(values) / len(values), 4)


def curve(radii: Sequence[int]) -> dict[str, Any]:
    """Certified accuracy by size; -1 is a wrong label or no certificate."""
    sizes = range(1, SIZES + 1)
    return {"certified": {str(size): share(radius >= size for radius in radii) for size in sizes}}


def write_ours(name: str, outcome: dict[str, Any], outcomes: dict[str, Any], folder: Path) -> None:
    """The row of a setting: the peer's method, by our code."""
    texts = outcome["texts"]
    radii = [
        text["radius"] if text["label"] == text["expected"] and text["radius"] is not None else -1
        for text in texts
    ]
    keep, corpus = outcome["keep"], outcome["corpus"]
    method = "CERT-ED" if keep is None else "AdaptDel"
    record = PeerRecord(
        method=method,
        threat="edits",
        corpus=corpus,
        guarantee="1 - alpha",
        alpha=ALPHA,
        source="measured here, our code",
        ours=False,
        accuracy=share(text["label"] == text["expected"] for text in texts),
        certified=curve(radii)["certified"],
        model=outcomes["base"],
        texts=Texts(len(texts), f"the first {len(texts):,} of the test rows here"),
        setting="rate .9" if keep is None else f"rate max(.9, 1 - {keep}/n)",
        seconds=outcome["seconds"],
        training=f"{outcome['options']['epochs']} epochs on {outcome['rows']:,} rows",
        training_seconds=outcome["training_seconds"],
        seed=SEED,
        versions=outcomes["versions"],
        hardware=outcomes["hardware"],
        commands=(
            "python -m tools.peers.deletion prepare --base all-MiniLM-L6-v2 --carry CARRY",
            "python -m tools.peers.deletion run --carry CARRY --output OUT",
        ),
        code=Code(REPOSITORY, None),
        note=f"{SELECTION:,} copies select the label, {ESTIMATION:,} others are counted",
    )
    print(write(f"{corpus}-edits-{'cert-ed' if keep is None else 'adaptdel'}", record, folder))


def write_theirs(
    same: dict[str, Any],
    ours: dict[str, Any],
    outcomes: dict[str, Any],
    seconds: float | None,
    used: dict[str, str],
    given: argparse.Namespace,
) -> None:
    """The row of CERT-ED's own code on AG News."""
    record = PeerRecord(
        method="CERT-ED",
        threat="edits",
        corpus="agnews",
        guarantee="1 - alpha",
        alpha=ALPHA,
        source="measured here, their code",
        ours=False,
        accuracy=same["theirs"]["accuracy"],
        certified=same["theirs"]["certified"],
        model=outcomes["base"],
        texts=Texts(same["texts"], f"the first {same['texts']:,} of the test rows here"),
        setting="rate .9, its sampler and its certificate",
        seconds=seconds,
        training=f"{ours['options']['epochs']} epochs on {ours['rows']:,} rows, by our code",
        seed=SEED,
        versions=used,
        hardware=f"{machine()}, one thread",
        commands=(
            "python -m tools.peers.cert_ed draw --checkout CHECKOUT --encoder CARRY/encoder "
            "--output COPIES",
            f"python -m tools.peers.cert_ed compare --checkout CHECKOUT --outcomes OUT "
            f"--through {given.through}",
        ),
        code=Code(REPOSITORY, COMMIT),
        note="its copies were scored by our code on a GPU; seconds: processor time of all of its "
        f"code on the first {given.through} texts",
    )
    print(write("agnews-edits-cert-ed-own-code", record, given.folder))


if __name__ == "__main__":
    main()
