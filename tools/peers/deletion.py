r"""Smoothing by deletion, as CERT-ED and AdaptDel do it, with one encoder: for a GPU.

    python -m tools.peers.deletion prepare --base all-MiniLM-L6-v2 --carry CARRY
    python -m tools.peers.deletion run --carry CARRY --output OUT

``prepare`` writes what a machine without data and without a network needs: the texts, and the
encoder with a smaller vocabulary and weights rounded to 8 bits, 30 MB in all; with ``--copies``,
also the copies that CERT-ED's own code drew (`tools.peers.cert_ed`).  ``run`` trains the encoder
for each setting (`ranmask.training.encoder.train_encoder`, as ``ranmask train --family deletion``)
and certifies the first test texts.  It writes ``OUT/outcomes.json`` as it goes, and the first
model as ``OUT/model.tar.00``, ``.01``, ...: `tools.peers.cert_ed` reads both.  ``more`` certifies
texts of the first setting by that model, unpacked, on a CPU, in the place of those in OUT.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from benchmarks.settings import machine
from safetensors.torch import load_file, save_file

from ranmask.data import load_corpus, load_splits
from ranmask.data.corpus import Corpus
from ranmask.models.base import DeletedCopies
from ranmask.smoothing.deletion import DeletionSmoothedClassifier
from ranmask.training.compact import keep_tokens
from ranmask.training.encoder import train_encoder
from ranmask.training.options import TrainingOptions
from ranmask.words import Text, documents

FORMAT, VERSION = "ranmask-peer-votes", 1
SELECTION, ESTIMATION, ALPHA, SEED = 1000, 4000, 0.05, 0  # as CERT-ED's settings have them
VOCABULARY = 12_000  # tokens
ROWS = {"agnews": None, "imdb": 15_000}  # of the training texts, most that travel
TESTS, HELD_OUT = 1000, 100
LEAST, AT_ONCE = 200, 20  # texts that are certified whatever it takes; between looks at the clock
PIECE = 15_000_000  # bytes of a file
QUOTED = 32  # characters of a word that CERT-ED's code reads


@dataclass(frozen=True)
class Setting:
    """A corpus, how its words are deleted, how long it may train and how many texts are certified.

    ``share``: of the time that there is, until this setting is over.
    """

    corpus: str
    rate: float
    keep: int | None
    epochs: int
    batch: int
    texts: int
    share: float

    @property
    def name(self) -> str:
        """In the outcome file."""
        return f"{self.corpus}-{'deletion' if self.keep is None else f'deletion-keep-{self.keep}'}"


SETTINGS = (
    Setting("agnews", 0.9, None, 3, 256, 500, 0.30),
    Setting("imdb", 0.9, None, 4, 128, 200, 0.57),
    Setting("imdb", 0.9, 13, 4, 128, 200, 0.80),
    Setting("agnews", 0.9, 3, 3, 256, 500, 1.0),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare")
    prepare.add_argument("--base", required=True)
    prepare.add_argument("--copies", type=Path, help="copies drawn by CERT-ED's own code")
    run = commands.add_parser("run")
    run.add_argument("--output", type=Path, required=True)
    run.add_argument("--seconds", type=float, default=225, help="in all")
    run.add_argument("--rows", type=int, help="training texts; all where not given")
    run.add_argument("--texts", type=int, help="test texts, at most")
    run.add_argument("--masks", type=int, default=ESTIMATION)
    run.add_argument("--settings", default="", help="only those whose names begin so")
    more = commands.add_parser("more")
    more.add_argument("--model", type=Path, required=True, help="of OUT, unpacked")
    more.add_argument("--output", type=Path, required=True)
    more.add_argument("--texts", type=int, default=LEAST)
    more.add_argument("--seconds", type=float, default=600)
    for command in (prepare, run, more):
        command.add_argument("--carry", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "prepare":
        prepared(given.base, given.carry, given.copies)
    elif given.command == "run":
        perform(given)
    else:
        extended(given)


def prepared(base: str, carry: Path, copies: Path | None) -> None:
    """Write the folder that travels."""
    carry.mkdir(parents=True, exist_ok=True)
    texts: list[Text] = []
    for name, rows in ROWS.items():
        train, held_out = load_splits(name)
        parts = (train.take(rows), held_out.take(HELD_OUT), load_corpus(name, "test").take(TESTS))
        pack_texts(carry, name, parts)
        texts += parts[0].texts
    pack_encoder(carry, base, texts, VOCABULARY)
    if copies is not None:
        shutil.copy(copies, carry / "copies.npz")


def pack_texts(carry: Path, name: str, parts: Sequence[Corpus]) -> None:
    """Write texts to train on, to choose by, and to certify, for `corpora` to read."""
    written = lzma.compress(json.dumps([asdict(part) for part in parts]).encode())
    (carry / f"{name}.json.xz").write_bytes(written)


def pack_encoder(carry: Path, base: str, texts: Sequence[Text], vocabulary: int) -> None:
    """Write an encoder with the most frequent tokens of these texts, for `restored` to read."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    model = transformers.AutoModel.from_pretrained(base, dtype=torch.float32)
    words = (word for text in texts for word in str(text).split())
    tokenizer = keep_tokens(model, tokenizer, words, vocabulary)
    folder = carry / "encoder"
    model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_file(dict(rounded(model.state_dict())), folder / "rounded.safetensors")


def rounded(weights: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Matrices as 8-bit integers with a step for each row; vectors as they are."""
    for name, weight in weights.items():
        if weight.ndim < 2 or not weight.is_floating_point():
            yield name, weight.contiguous()
            continue
        step = weight.abs().amax(1, keepdim=True) / 127
        yield name, (weight / step.clamp(min=1e-12)).round().to(torch.int8)
        yield f"{name}.step", step


def restored(folder: Path, output: Path) -> None:
    """The encoder as `rounded` left it, in single precision."""
    shutil.copytree(folder, output, ignore=shutil.ignore_patterns("*.safetensors"))
    found = load_file(folder / "rounded.safetensors")
    weights = {
        name: weight.float() * found[f"{name}.step"] if f"{name}.step" in found else weight
        for name, weight in found.items()
        if not name.endswith(".step")
    }
    save_file(weights, output / "model.safetensors", metadata={"format": "pt"})


def corpora(carry: Path, name: str, rows: int | None) -> tuple[Corpus, Corpus, Corpus]:
    """Texts to train on, to choose by, and to certify."""
    parts = json.loads(lzma.decompress((carry / f"{name}.json.xz").read_bytes()))
    train, held_out, test = (
        Corpus(**{k: tuple(v) if isinstance(v, list) else v for k, v in part.items()})
        for part in parts
    )
    return train.take(rows), held_out.take(rows), test


def perform(given: argparse.Namespace) -> None:
    """Train and certify, setting by setting."""
    begun = time.monotonic()
    given.output.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    hardware = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "hardware": f"one {hardware}",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "base": f"all-MiniLM-L6-v2, its {VOCABULARY:,} most frequent tokens, rounded to 8 bits",
        "alpha": ALPHA,
        "seed": SEED,
        "settings": {},
    }
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        restored(given.carry / "encoder", base)
        for setting in SETTINGS:
            if not setting.name.startswith(given.settings):
                continue
            until = begun + setting.share * given.seconds
            print(f"{time.monotonic() - begun:.0f} s: {setting.name}", flush=True)
            train, held_out, test = corpora(given.carry, setting.corpus, given.rows)
            options = TrainingOptions(
                family="deletion",
                mask_rate=setting.rate,
                keep=() if setting.keep is None else (setting.keep,),
                epochs=setting.epochs,
                patience=None,
                batch_size=setting.batch,
                learning_rate=2e-4,
                longest=256,
                evaluate_every=1 << 20,  # at the end alone
                validation_rows=50,
                weights="float16",
                seed=SEED,
            )
            folder = Path(scratch) / setting.name
            started = time.monotonic()
            train_encoder(str(base), train, held_out, folder, options, report=shown)
            seconds = time.monotonic() - started
            model = DeletionSmoothedClassifier.from_pretrained(
                str(folder), masks=given.masks, selection_masks=SELECTION, device=device
            )
            outcome: dict[str, Any] = {
                "corpus": setting.corpus,
                "rate": setting.rate,
                "keep": setting.keep,
                "options": options.to_dict(),
                "rows": len(train.texts),
                "test_sha256": test.sha256,
                "training_seconds": round(seconds, 1),
                "validation": json.loads((folder / "training.json").read_text())["validation"],
                "texts": [],
            }
            record["settings"][setting.name] = outcome
            tests = test.take(min(setting.texts, given.texts or setting.texts))
            certified(model, tests, outcome, until, lambda: write(record, given.output))
            if setting is SETTINGS[0]:
                if (given.carry / "copies.npz").exists():
                    theirs = given.carry / "copies.npz"
                    outcome["their_copies"] = of_their_copies(model, test, theirs)
                    write(record, given.output)
                pack(folder, given.output)
    print(f"{time.monotonic() - begun:.0f} s: done", flush=True)


def extended(given: argparse.Namespace) -> None:
    """Certify the first setting's texts on this machine's CPU, by the model that came back."""
    torch.set_num_threads(1)
    record = json.loads((given.output / "outcomes.json").read_text())
    outcome = record["settings"][SETTINGS[0].name]
    model = DeletionSmoothedClassifier.from_pretrained(
        str(given.model), masks=ESTIMATION, selection_masks=SELECTION, device="cpu"
    )
    _, _, test = corpora(given.carry, SETTINGS[0].corpus, None)
    outcome |= {"texts": [], "certified_on": f"{machine()}, one thread"}
    until = time.monotonic() + given.seconds
    save = partial(write, record, given.output)
    certified(model, test.take(given.texts), outcome, until, save, least=AT_ONCE)


def shown(line: dict[str, Any]) -> None:
    """A line of the log."""
    kept = ("phase", "step", "seconds", "loss", "accuracy", "certified_accuracy")
    print({name: line[name] for name in kept if name in line}, flush=True)


def certified(
    model: DeletionSmoothedClassifier,
    test: Corpus,
    outcome: dict[str, Any],
    until: float,
    save: Callable[[], None],
    least: int = LEAST,
) -> None:
    """Certify texts until the time is over; what is measured first is not timed."""
    model.certify(test.texts[:2])
    started, done = time.monotonic(), 0
    for start in range(0, len(test.texts), AT_ONCE):
        if done >= least and time.monotonic() > until:
            break
        texts = test.texts[start : start + AT_ONCE]
        for result, expected in zip(model.certify(texts), test.labels[start:], strict=False):
            outcome["texts"].append(
                {
                    "words": result.words,
                    "expected": expected,
                    "label": result.label_id,
                    "votes": list(result.votes),
                    "uncertain": result.uncertain,
                    "radius": result.radius,
                }
            )
        done += len(texts)
        outcome["seconds"] = round((time.monotonic() - started) / done, 5)
        save()
    print(f"{done} texts, {outcome['seconds']} s each", flush=True)


def of_their_copies(
    model: DeletionSmoothedClassifier, test: Corpus, copies: Path
) -> list[dict[str, Any]]:
    """The votes of copies that CERT-ED's code drew: those that select, and the others."""
    found: list[dict[str, Any]] = []
    with np.load(copies) as drawn:
        for number, document in enumerate(documents(test.texts)):
            if f"stays{number}" not in drawn:
                break
            words = tuple(word[:QUOTED] for word in document.words)
            stays = np.unpackbits(drawn[f"stays{number}"], axis=1, count=len(words)).astype(bool)
            read = model.base.words_read(document)
            [scores] = model.score([DeletedCopies(documents([" ".join(words)])[0], read, stays)])
            best = scores.argmax(axis=1)
            counts = [
                np.bincount(part, minlength=scores.shape[1]).tolist()
                for part in (best[:SELECTION], best[SELECTION:])
            ]
            found.append({"selection": counts[0], "estimation": counts[1]})
    return found


def write(record: dict[str, Any], output: Path) -> None:
    """Replace the outcome file."""
    draft = output / "outcomes.json.draft"
    draft.write_text(json.dumps(record))
    draft.replace(output / "outcomes.json")


def pack(folder: Path, output: Path) -> None:
    """The model's folder as a tar file, in pieces."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for path in sorted(folder.iterdir()):
                if path.is_file():
                    tar.add(path, path.name)
        file.seek(0)
        for number, piece in enumerate(iter(lambda: file.read(PIECE), b"")):
            (output / f"model.tar.{number:02}").write_bytes(piece)


if __name__ == "__main__":
    main()
