"""Rows of docs/peers.md from other committed results: what is not measured again in one sitting.

Models that need a GPU, other certificates of the same votes, SAFER, detectors.  ``python -m
benchmarks.peers gather`` writes the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks import protect_figures
from benchmarks.peers_records import ALL, PeerRecord, Texts, certified_by_size
from benchmarks.settings import REPOSITORY

_CERTIFICATES = {
    "ablation": ("Levine-Feizi votes", "1 - alpha", "`ablation`"),
    "paper": ("RanMASK, off-by-one removed", "none", "the paper's certificate"),
    "paper-as-printed": ("RanMASK, as printed", "none", "the paper's certificate"),
}
_CORPORA = {"AG News": "agnews", "IMDB": "imdb", "SST2": "sst2"}


def gathered() -> Iterator[tuple[str, PeerRecord]]:
    """File names and records."""
    yield from _committed()
    for corpus in ("agnews", "sst2"):
        yield from _of_paper(corpus)
    for result in json.loads(protect_figures.RESULTS.read_text()):
        if result["seed"] == 0:
            for name, record in _protected(result):
                yield name, record
                if record.model != _SEGMENTS:
                    yield name.replace("substitutions", "edits"), _of_edits(record)
    yield from _safer()
    yield from _detectors()


def _committed() -> Iterator[tuple[str, PeerRecord]]:
    """Models of docs/results.md that `run` does not make: encoders, and what ships beside them."""
    made_here = {"agnews-words", "agnews-characters", "imdb-words"}
    for path in sorted((REPOSITORY / "results").glob("*.json")):
        found = json.loads(path.read_text())
        if found["format"] != "ranmask-result" or path.stem in made_here:
            continue
        corpus, name = path.stem.split("-", 1)
        data, shares = found["data"], found["figures"]["certified_accuracy"]
        yield (
            f"{corpus}-substitutions-ours-results-{name}",
            PeerRecord(
                method="ranmask",
                threat="substitutions",
                corpus=corpus,  # type: ignore[arg-type]
                guarantee="proof",
                source="measured here, our code",
                ours=True,
                accuracy=round(found["figures"]["accuracy"], 4),
                certified=certified_by_size(shares, 10),
                model=found["title"],
                texts=Texts(data["rows"], f"all {data['rows']:,} test rows here", data["sha256"]),
                setting=f"{found['title']} (results.md)",
                seed=0,
                versions={"ranmask": "0.1.0"},
                hardware=found["hardware"],
                commands=tuple(found["commands"]),
                note=f"from results/{path.name}",
            ),
        )


def _of_paper(corpus: str) -> Iterator[tuple[str, PeerRecord]]:
    path = REPOSITORY / "results" / f"{corpus}-paper-setting.json"
    found = json.loads(path.read_text())
    run = found["training"]["run"]
    options, rows = run["options"], run["train"]["rows"]
    for kind, (method, guarantee, setting) in _CERTIFICATES.items():
        certified = found["certificates"][kind]["certified_accuracy"]
        yield (
            f"{corpus}-substitutions-{kind}",
            PeerRecord(
                method=method,
                threat="substitutions",
                corpus=corpus,  # type: ignore[arg-type]
                guarantee=guarantee,  # type: ignore[arg-type]
                alpha=found["alpha"] if guarantee == "1 - alpha" else None,
                source="measured here, our code",
                ours=False,
                accuracy=round(certified[0], 4),
                certified=certified_by_size(certified, 6),
                model=f"{run['base']}, mask rate {options['mask_rate']}, hidden words masked",
                training=f"{options['epochs']} epochs on {rows:,} rows",
                texts=Texts(
                    found["data"]["rows"], f"the first {found['data']['rows']} test rows here"
                ),
                setting=f"{setting}, mask rate {options['mask_rate']}, {found['masks']:,} copies",
                seed=found["seed"],
                versions={"torch": "2.11", "transformers": "5.17"},
                hardware=found["hardware"],
                commands=tuple(found["commands"]),
                note=f"from results/{path.name}; accuracy counts texts with a label that is "
                "certified at 0 words",
            ),
        )


_SEGMENTS = "word table beside segments of all-mpnet-base-v2 (110M), `ranmask protect`"


def _of_edits(record: PeerRecord) -> PeerRecord:
    """Where single words vote, and the whole text, edits have the radius of substitutions."""
    why = "radii of substitutions, which edits share where no segment votes (docs/certificates.md)"
    return replace(record, threat="edits", note=f"{why}; {record.note}")


def _protected(result: dict[str, Any]) -> Iterator[tuple[str, PeerRecord]]:
    """A protected model at the accuracy aimed at, and at the least that its curve has.

    Points of the curve are chosen on validation rows.
    """
    row = next(row for row in protect_figures.ROWS if row.name == result["row"])
    place, words = result["row"].split(", ")
    curve, alone = result["curve"], result["encoder"] is None
    reached = [one for one in curve if one["val"][0] >= result["aim"]] or curve
    aimed = max(reached, key=lambda one: sum(one["val"][number] for number in row.words))
    points = {"table" if alone else words.split()[0]: aimed}
    if not alone:
        points[f"{words.split()[0]}-more-proved"] = min(curve, key=lambda one: one["val"][0])
    for name, point in points.items():
        setting = f"protected 110M encoder, for {words}" + (
            ", less accuracy" if name.endswith("more-proved") else ""
        )
        weights = ", ".join(f"{weight:g}" for weight in point["weights"])
        yield (
            f"{_CORPORA[place]}-substitutions-ours-protected-{name}",
            PeerRecord(
                method="ranmask",
                threat="substitutions",
                corpus=_CORPORA[place],  # type: ignore[arg-type]
                guarantee="proof",
                source="measured here, our code",
                ours=True,
                accuracy=point["test"][0],
                certified=certified_by_size(point["test"], 10),
                model="word table taught by all-mpnet-base-v2 (110M)"
                if alone
                else _SEGMENTS
                if any(point["weights"][1:])
                else "word table beside all-mpnet-base-v2 (110M), `ranmask protect`",
                texts=Texts(result["texts"]["test"], f"{result['texts']['test']:,} test rows here"),
                setting="word table taught by a 110M encoder" if alone else setting,
                seed=result["seed"],
                versions={"figures of ranmask commit": "55d07f7"},
                hardware="tables on one core; the encoder's answers from one NVIDIA H200",
                commands=(
                    f'python -m benchmarks.protect_figures --work work --row "{result["row"]}"',
                ),
                note="from benchmarks/protect_figures.json"
                if alone
                else f"weights {weights}, chosen on validation rows; {point['calls']} calls of the "
                "encoder a text; from benchmarks/protect_figures.json",
            ),
        )


def _safer() -> Iterator[tuple[str, PeerRecord]]:
    """SAFER's certificate, as we wrote it, of encoders that were trained for it."""
    found = json.loads((REPOSITORY / "results" / "defences.json").read_text())
    for run in found["certified"]:
        if run["model"] == "safer":
            texts, options = run["texts"], run["options"]
            yield (
                f"{run['corpus']}-synonyms-safer",
                PeerRecord(
                    method="SAFER",
                    threat="synonyms",
                    corpus=run["corpus"],
                    guarantee="1 - alpha",
                    alpha=options["alpha"],
                    source="measured here, our code",
                    ours=False,
                    accuracy=round(run["accuracy"], 4),
                    certified=certified_by_size(run["certified_accuracy"], 5),
                    model=f"{found['base']}, trained on random synonyms",
                    texts=Texts(texts, f"the first {texts} test rows here"),
                    setting=f"22.7M encoder, {options['estimation_masks']:,} copies",
                    seed=options["seed"],
                    versions={"torch": "2.11", "transformers": "5.17"},
                    hardware=found["hardware"],
                    commands=tuple(line for line in found["commands"] if "safer" in line),
                    note="from results/defences.json; sets of at most 100 words of the connected "
                    "table jia2019, which overlap little",
                ),
            )


def _detectors() -> Iterator[tuple[str, PeerRecord]]:
    names = {
        "words, anywhere": ("ranmask", "proof", "words", "detector `words`"),
        "word table, free": ("free word table", "none", "free", "no defence"),
    }
    for found in json.loads((REPOSITORY / "results" / "detectors" / "test.json").read_text()):
        corpus = found["test"]
        if found["train"] != corpus or corpus not in ("sms_spam", "enron_spam"):
            continue
        if found["detector"] not in names:
            continue
        method, guarantee, short, setting = names[found["detector"]]
        recall = round(found["recall"]["share"], 4)
        false = found["false_positives"]["share"]
        after = round(found["recall_after"]["share"], 4)
        yield (
            f"{corpus}-additions-{'ours-' if method == 'ranmask' else ''}{short}",
            PeerRecord(
                method=method,
                threat="additions",
                corpus=corpus,
                guarantee=guarantee,  # type: ignore[arg-type]
                source="measured here, our code",
                ours=method == "ranmask",
                accuracy=recall,
                certified={ALL: recall if method == "ranmask" else after},
                model=setting,
                texts=Texts(found["recall"]["texts"], "test rows of the flagged class here"),
                setting=f"{setting}, false positives {false:.1%}",
                seed=0,
                versions={"figures of ranmask commit": "a4a7c7f"},
                hardware="2 CPU cores",
                commands=("python -m benchmarks.detectors --part test",),
                note="recall; what is left of it after up to 100 appended words"
                if method != "ranmask"
                else "recall, whatever is added; from results/detectors/test.json",
            ),
        )
