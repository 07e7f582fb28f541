r"""CERT-ED's own code (Huang et al., EMNLP Findings 2024) beside ours, on the same texts and model.

    python -m tools.peers.cert_ed draw --checkout CHECKOUT --encoder CARRY/encoder --output COPIES
    python -m tools.peers.cert_ed compare --checkout CHECKOUT --encoder MODEL --outcomes OUT

``draw``: its code draws copies of the first AG News test texts, for `tools.peers.deletion prepare
--copies COPIES`.

``compare``: from what `tools.peers.deletion` left in one or several folders OUT (of a setting, the
first that has it) and in MODEL, the unpacked model.  Its code and ours are given the same votes:
those of our copies, and those of the copies that its code drew.  The first texts (``--through``) go
through all of its code, model included, on this machine; ``--more`` names a folder with our own
copies of more texts.  Outcomes go to ``results/peers``, and the
comparison to ``results/peers/compared/cert-ed.json``.  A setting of which fewer than 60 test texts
were certified has the figures that training measured on validation rows.

Run in an environment of its own, with transformers 4, statsmodels and pandas.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers_records import (
    FOLDER,
    Code,
    PeerRecord,
    Texts,
    certified_by_radius,
    certified_by_size,
    share,
    versions,
    write,
)
from benchmarks.settings import machine

from ranmask.certificates.deletion import deletion_radius
from ranmask.certificates.kept import DeletionRates
from ranmask.data import load_corpus
from ranmask.words import documents

REPOSITORY, COMMIT = "Dovermore/nlp-smoothing-software", "0fae285"
SELECTION, ESTIMATION, ALPHA, SEED, RATE = 1000, 4000, 0.05, 0, 0.9  # those of its settings
TESTS = {"cohen": "deletion", "lecuyer": "deletion-runner-up"}  # its bounds, and ours
TEXTS, ENOUGH, SIZES, BATCH = 200, 60, 10, 32
USUAL = TESTS["lecuyer"]  # of four classes
FORMAT, VERSION = "ranmask-peer-comparison", 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw")
    draw.add_argument("--output", type=Path, required=True)
    draw.add_argument("--texts", type=int, default=TEXTS)
    compare = commands.add_parser("compare")
    compare.add_argument("--outcomes", type=Path, required=True, nargs="+")
    compare.add_argument("--more", type=Path, help="OUT with the texts that `more` certified")
    compare.add_argument("--through", type=int, default=0, help="texts for all of its code")
    compare.add_argument("--folder", type=Path, default=FOLDER)
    for command in (draw, compare):
        command.add_argument("--checkout", type=Path, required=True)
        command.add_argument("--encoder", type=Path, required=True, help="folder of the tokenizer")
    given = parser.parse_args()
    sys.path.insert(0, str(given.checkout.resolve() / "src"))
    if given.command == "draw":
        drawn(mechanism(str(given.encoder)), given.texts, given.output)
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
    read = [json.loads((folder / "outcomes.json").read_text()) for folder in given.outcomes]
    outcomes = read[0]
    for other in read[1:]:
        outcomes["settings"] = other["settings"] | outcomes["settings"]
    theirs = mechanism(str(given.encoder))
    ours = outcomes["settings"]["agnews-deletion"]
    more = ours["texts"]
    if given.more is not None:
        certified = json.loads((given.more / "outcomes.json").read_text())["settings"]
        more = certified["agnews-deletion"]["texts"]
    found: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "code": {"repository": REPOSITORY, "commit": COMMIT},
        "versions": versions("torch", "transformers", "statsmodels", "numpy", "scipy"),
        "same_votes": same_votes(theirs, outcomes),
        "same_texts": same_texts(theirs, ours, more),
    }
    seconds = None
    if given.through:
        found["through"] = through(theirs, given.encoder, given.through)
        seconds = found["through"]["seconds"]
    for outcome in outcomes["settings"].values():
        write_ours(outcome, outcomes, found["same_texts"], given.folder)
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
            rows = [(text["votes"], text["words"]) for text in outcome["texts"]]
            # At one rate the length of a text has no say.
            rows += [(text["estimation"], 1) for text in outcome.get("their_copies", ())]
            for votes, words in rows:
                top, radius = theirs.certified_radius("", votes, alpha=ALPHA, stat_test=bound)
                given = (votes, int(top), sum(votes), words, rates)
                own = deletion_radius(kind, *given, alpha=ALPHA).words
                own = -1 if own is None else own
                same, lower = same + (own == radius), lower + (own < radius)
                others += own > radius
            found[f"{name}, {kind}"] = {
                "texts": len(rows),
                **{"same": same, "ours_smaller": lower, "ours_larger": others},
            }
    return found


def same_texts(theirs: Any, ours: dict[str, Any], more: Sequence[Any]) -> dict[str, Any]:
    """Certified accuracy of its copies by its code and by ours; and of ``more``, our own copies.

    By both bounds; with more than two classes its authors take that of the runner-up (lecuyer).
    """
    copies, rates = ours["their_copies"], DeletionRates(RATE)
    expected = load_corpus("agnews", "test").labels[: len(copies)]
    found: dict[str, Any] = {"texts": len(copies)}
    for bound, kind in TESTS.items():
        radii, own, right = [], [], []
        for wanted, votes in zip(expected, copies, strict=True):
            counts = votes["estimation"]
            label, _ = theirs.predict("", np.array(votes["selection"]))
            top, radius = theirs.certified_radius("", counts, alpha=ALPHA, stat_test=bound)
            radii.append(int(radius) if int(label) == int(top) == wanted else -1)
            label = int(np.argmax(votes["selection"]))
            own.append(right_radius(kind, counts, label, wanted, rates))
            right.append(label == wanted)
        others = [
            right_radius(kind, text["votes"], text["label"], text["expected"], rates)
            for text in more[: len(copies)]
        ]
        found[kind] = {
            "accuracy": share(right),
            "theirs": curve(radii),
            "ours": curve(own),
            "same_radius": share(map(int.__eq__, own, radii)),
            "ours_of_other_copies": {"texts": len(others), **curve(others)},
            "theirs_of_the_same_texts": curve(radii[: len(others)]),
        }
    return found


def right_radius(
    kind: str, votes: Sequence[int], label: int, expected: int, rates: DeletionRates
) -> int:
    """Our radius, at one rate; -1 where the label is wrong or not certified."""
    found = deletion_radius(kind, votes, label, sum(votes), 1, rates, alpha=ALPHA).words
    return -1 if found is None or label != expected else found


def through(theirs: Any, encoder: Path, texts: int) -> dict[str, Any]:
    """The first texts through all of its code, with one thread, to be timed."""
    import torch
    import transformers
    from certification import SmoothedClassifierWrapper

    torch.set_num_threads(1)
    np.random.seed(SEED)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(encoder).float()
    smoothed = SmoothedClassifierWrapper(model, theirs, device="cpu")
    test = load_corpus("agnews", "test")
    found = []
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
        found.append({"votes": votes, "radius": int(done.certified_radius)})
    return {
        "texts": found,
        "hardware": f"{machine()}, one thread",
        "seconds_on_the_wall": round((time.monotonic() - started) / texts, 3),
        "seconds": round((time.process_time() - processor) / texts, 3),
    }


curve = partial(certified_by_radius, most=SIZES)


def write_ours(
    outcome: dict[str, Any],
    outcomes: dict[str, Any],
    same: dict[str, Any],
    folder: Path,
) -> None:
    """The row of a setting: the peer's method, by our code."""
    texts = outcome["texts"]
    radii = [
        text["radius"] if text["label"] == text["expected"] and text["radius"] is not None else -1
        for text in texts
    ]
    accuracy = share(text["label"] == text["expected"] for text in texts)
    certified, held_out = curve(radii), outcome["validation"]
    which = Texts(len(texts), f"the first {len(texts):,} of the test rows here")
    note = f"{SELECTION:,} copies select the label, {ESTIMATION:,} others are counted"
    if "their_copies" in outcome and len(texts) < same["texts"]:
        accuracy, certified = same[USUAL]["accuracy"], same[USUAL]["ours"]
        which = Texts(same["texts"], f"the first {same['texts']:,} of the test rows here")
        note += ", of copies that CERT-ED's code drew; by the bound of the runner-up"
    elif len(texts) < ENOUGH:
        accuracy, count = round(held_out["accuracy"], 4), held_out["texts"]
        certified = certified_by_size(held_out["certified_accuracy"], SIZES)
        which = Texts(count, f"the first {count:,} of the validation rows")
        note = (
            "as training measured it: 50 copies select the label, 200 others are counted, by the "
            "bound of the majority; 4,000 copies, or with four classes the runner-up's, prove more"
        )
    note += f"; seconds: of {len(texts)} test texts with {ESTIMATION:,}, beside other work"
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
        accuracy=accuracy,
        certified=certified,
        model=outcomes["base"],
        texts=which,
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
        note=note,
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
        accuracy=same[USUAL]["accuracy"],
        certified=same[USUAL]["theirs"],
        model=outcomes["base"],
        texts=Texts(same["texts"], f"the first {same['texts']:,} of the test rows here"),
        setting="rate .9, its copies and its certificate",
        seconds=seconds,
        training=f"{ours['options']['epochs']} epochs on {ours['rows']:,} rows, by our code",
        seed=SEED,
        versions=used,
        hardware=f"{machine()}, one thread",
        commands=(
            "python -m tools.peers.cert_ed draw --checkout CHECKOUT --encoder CARRY/encoder "
            "--output COPIES",
            "python -m tools.peers.cert_ed compare --checkout CHECKOUT --encoder MODEL "
            f"--outcomes OUT --through {given.through}",
        ),
        code=Code(REPOSITORY, COMMIT),
        note="bound of the runner-up (lecuyer); its copies were scored by our code on a GPU; "
        f"seconds: processor time of all of its code on the first {given.through} texts",
    )
    print(write("agnews-edits-cert-ed-own-code", record, given.folder))


if __name__ == "__main__":
    main()
