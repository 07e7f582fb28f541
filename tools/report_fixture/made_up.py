"""Made-up results of every kind that a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ranmask import SmoothedClassifier
from ranmask.certificates.ablation import ablation_radius, delta, largest_passing
from ranmask.certificates.families import family, kept_count
from ranmask.certificates.paper import paper_radius, printed_radius
from ranmask.paper.published import published
from ranmask.paper.run_data import (
    Attacked,
    Betas,
    Certified,
    Examples,
    Predicted,
    Reading,
    Reproduction,
    Step,
    Trained,
)

MACHINE = {"ranmask": "0.6.0", "python": "3.12.3", "torch": "2.11.0", "hardware": "made up"}
TEXTS, MASKS = 60, 5000
GOOD = {"warm", "clever", "funny", "delight", "honest", "moving", "bright", "charming"}
BAD = {"dull", "tired", "clumsy", "hollow", "boring", "mess"}
SENTENCES = (
    "warm clever and funny an honest and moving film bright from its first charming shot to the "
    "last a delight",
    "a clumsy hollow and boring mess with a dull tired plot",
    "a bright idea and then a dull and tired hour",
    "the clever plot is moving",
)


def reproductions() -> list[Reproduction]:
    """One of every kind."""
    return [certified(), empirical(), beta(), rates(), entropy(), *arithmetic()]


def certified() -> Reproduction:
    """SST2 at some rates; one failed, one not started."""
    draw = np.random.default_rng(1)
    steps = [
        Step(
            "sst2-mask70-train",
            "training",
            "ranmask train --data sst2 --mask-rate 0.7 --output models/sst2-mask70",
            {"rate": 0.7},
            "done",
            seconds=812.4,
            result=Trained(
                {
                    "train": {
                        "name": "sst2",
                        "split": "train",
                        "rows": 3000,
                        "note": "3,000 of 67,349 training rows (partial)",
                    }
                },
                {"accuracy": 0.86},
            ),
        )
    ]
    for rate, quality in ((0.3, 0.95), (0.5, 0.9), (0.7, 0.84), (0.8, 0.8)):
        steps.append(
            Step(
                f"sst2-mask{100 * rate:.0f}-votes",
                "certified",
                f"ranmask certify --data sst2 --model models/sst2-mask{100 * rate:.0f} --compare",
                {"rate": rate},
                "done",
                seconds=61.5,
                data={"name": "sst2", "split": "test", "rows": TEXTS, "note": f"the first {TEXTS}"},
                result=votes(draw, rate, quality),
            )
        )
    command = "ranmask certify --data sst2 --model models/sst2-mask{} --compare"
    failed = "CUDA out of memory: give --batch-tokens"
    steps += [
        Step(
            "sst2-mask20-votes",
            "certified",
            command.format(20),
            {"rate": 0.2},
            "failed",
            3.0,
            failed,
        ),
        Step("sst2-mask90-votes", "certified", command.format(90), {"rate": 0.9}, "todo"),
        Step(
            "sst2-examples",
            "examples",
            "ranmask certify --input examples.txt --copies 12",
            {},
            "done",
            seconds=0.4,
            result=Examples(tuple(examples())),
        ),
    ]
    return Reproduction(
        "sst2-certified",
        "SST2: certified robustness at several masking rates",
        "certified",
        "tb-sst2-certified",
        "The paper's table of certified robustness on SST2: for each share of masked words, the "
        "accuracy of the vote and how many words its certificate allows to be changed.",
        "smoke",
        {"base": "made up", "texts": TEXTS, "masks": MASKS, "seed": 0},
        MACHINE,
        tuple(steps),
    )


def votes(draw: np.random.Generator, rate: float, quality: float) -> Certified:
    """Radii from made-up votes, by every certificate."""
    words = [int(count) for count in np.clip(draw.normal(19, 8, TEXTS), 4, 50)]
    shares = [float(value) for value in draw.beta(8 * quality, 8 * (1 - quality), TEXTS)]
    radii: dict[str, list[int | None]] = {
        name: [] for name in ("exact", "ablation", "paper", "paper-as-printed")
    }
    for count, share in zip(words, shares, strict=True):
        kept = kept_count(count, mask_rate=rate)
        for_label = round(MASKS * max(share, 1 - share))
        given = (for_label, MASKS, count, kept)
        radii["exact"].append(_counted(Fraction(for_label, MASKS), count, kept))
        radii["ablation"].append(ablation_radius(*given).words)
        radii["paper"].append(paper_radius(*given).words)
        radii["paper-as-printed"].append(printed_radius(*given).words)
    correct = tuple(share > 0.5 for share in shares)
    readings = tuple(
        Reading(name, not name.startswith("paper"), correct, tuple(found))
        for name, found in radii.items()
    )
    return Certified(tuple(range(1, TEXTS + 1)), tuple(words), MASKS, readings)


def _counted(share: Fraction, words: int, kept: int) -> int | None:
    half = Fraction(1, 2)
    return largest_passing(words, lambda changed: share - delta(words, kept, changed) > half)


def examples() -> list[dict[str, Any]]:
    """Our own sentences, certified for true by a classifier that counts words."""
    smoothed = SmoothedClassifier(judge, keep=2, hide="drop", labels=["negative", "positive"])
    lines = []
    for number, result in enumerate(smoothed.certify(SENTENCES), 1):
        text = SENTENCES[number - 1]
        found = text.split()
        sets = family(len(found), 2).sets
        shown = sets[:: max(1, len(sets) // 12)]
        copies = [" ".join(found[place] for place in kept) for kept in shown]
        named = [int(np.argmax(scores)) for scores in judge(copies)]
        told = [
            {"kept": [int(place) for place in kept], "label_id": label}
            for kept, label in zip(shown, named, strict=True)
        ]
        lines.append({**result.to_dict(), "row": number, "text": text, "copies": told})
    return lines


def judge(texts: Sequence[str]) -> list[list[float]]:
    """More good words than bad ones?  In doubt, no."""
    counts = [
        sum(word in GOOD for word in text.split()) - sum(word in BAD for word in text.split())
        for text in texts
    ]
    return [[0.5 - float(count), float(count)] for count in counts]


def empirical() -> Reproduction:
    """AGNEWS under three attacks; a method of ours, and some that were not run."""
    draw = np.random.default_rng(2)
    table = published().empirical["tb-agnews-emperical"]
    steps = []
    methods = [*(method for method in table.methods if method != "PGD-10")]
    for method in [*methods, "RanMASK-90% (vote), fixed masks"]:
        for attack in table.attacks:
            if method == "Adv-Hotflip" and attack == "bert-attack":
                continue
            printed = table.cell(method, attack)
            clean, robust = (printed.cln, printed.boa) if printed else (89.0, 21.0)
            robust = min(95.0, max(2.0, robust + draw.normal(0, 8)))
            smoothed = method.startswith("RanMASK")
            steps.append(
                Step(
                    f"{method.split()[0].lower()}-{attack}",
                    "attack",
                    f"ranmask attack --recipe {attack} --data agnews --model models/m",
                    {"method": method, "attack": attack},
                    "done",
                    seconds=120.0,
                    data={"name": "agnews", "split": "test", "rows": 200},
                    result=attacked(draw, attack, clean / 100, robust / 100, smoothed),
                )
            )
    return Reproduction(
        "agnews-empirical",
        "AGNEWS: accuracy under three attacks",
        "empirical",
        "tb-agnews-emperical",
        "The paper's table of accuracies under attack on AGNEWS: rivals, and RanMASK with its two "
        "ensembles.",
        "default",
        {"base": "made up", "texts": 200, "masks": 100, "seed": 0},
        MACHINE,
        tuple(steps),
    )


def attacked(
    draw: np.random.Generator,
    attack: str,
    clean: float,
    robust: float,
    smoothed: bool,
    texts: int = 200,
) -> Attacked:
    """Statuses with about these accuracies."""
    where = draw.random(texts)
    statuses = [
        "failed" if value < robust else "succeeded" if value < clean else "skipped"
        for value in where
    ]
    fell = [status == "succeeded" for status in statuses]
    lucky = draw.random(texts) < (0.6 if smoothed else 0.0)
    return Attacked(
        attack,
        {"ensemble": "vote"} if smoothed else None,
        tuple(range(1, texts + 1)),
        tuple(statuses),
        tuple(int(count) for count in draw.integers(8, 60, texts)),
        tuple(
            int(count) if one else 0
            for count, one in zip(draw.integers(1, 8, texts), fell, strict=True)
        ),
        tuple(int(count) for count in draw.integers(20, 400, texts)),
        tuple(not luck if one else None for luck, one in zip(lucky.tolist(), fell, strict=True)),
    )


def beta() -> Reproduction:
    """Beta against p_c on two corpora."""
    draw = np.random.default_rng(3)
    steps = [
        Step(
            f"{corpus}-mask{100 * rate:.0f}-beta",
            "beta",
            f"ranmask beta --data {corpus} --mask-rate {rate}",
            {"corpus": corpus, "rate": rate},
            "done",
            seconds=33.0,
            result=betas(draw, rate),
        )
        for corpus, some in (("agnews", (0.5, 0.9)), ("sst2", (0.3, 0.7)))
        for rate in some
    ]
    return Reproduction(
        "js-divergence",
        "Is beta close to p_c?",
        "beta",
        "fig:js-divergence",
        "The paper's figure of Jensen-Shannon divergences.",
        "default",
        {"texts": 30, "masks": 10000, "draws": 200},
        MACHINE,
        tuple(steps),
    )


def betas(draw: np.random.Generator, rate: float, texts: int = 30) -> Betas:
    """Averages that lie close to p_c, and choices that do not."""
    share = np.round(draw.uniform(0.6, 0.99, texts), 6)
    words = draw.integers(5, 40, texts)
    changed = tuple(range(1, 11))
    average, largest = [], []
    for number in changed:
        noise = draw.normal(0, 0.02 / number, texts)
        reached = share + (1 - share) * rate * 0.9 ** (number - 1)
        known = [number <= count for count in words]
        average.append(_known(np.clip(share + noise, 0, 1), known))
        largest.append(_known(reached, known))
    return Betas(
        tuple(range(1, texts + 1)),
        tuple(int(count) for count in words),
        changed,
        tuple(float(value) for value in share),
        tuple(average),
        tuple(largest),
    )


def _known(values: Any, known: Sequence[bool]) -> tuple[float | None, ...]:
    return tuple(
        round(float(value), 6) if there else None
        for value, there in zip(values, known, strict=True)
    )


def rates() -> Reproduction:
    """Both ensembles at five rates, two seeds."""
    draw = np.random.default_rng(4)
    shapes = {
        "logit": {0.05: 0.15, 0.3: 0.2, 0.5: 0.24, 0.7: 0.28, 0.9: 0.42},
        "vote": {0.05: 0.68, 0.3: 0.3, 0.5: 0.36, 0.7: 0.44, 0.9: 0.55},
    }
    easier = {"textfooler": 0.0, "bert-attack": -0.1, "deepwordbug": 0.05}
    steps = [
        Step(
            f"mask{100 * rate:.0f}-{ensemble}-{attack}-{seed}",
            "attack",
            f"ranmask attack --recipe {attack} --ensemble {ensemble} --seed {seed}",
            {"rate": rate, "ensemble": ensemble, "attack": attack, "seed": seed},
            "done",
            seconds=50.0,
            result=attacked(draw, attack, 0.9, robust + easier[attack], True, texts=80),
        )
        for ensemble, line in shapes.items()
        for rate, robust in line.items()
        for attack in easier
        for seed in (0, 1)
    ]
    return Reproduction(
        "rate-ablation",
        "AGNEWS: the masking rate under attack",
        "rates",
        "fig:rate_ablation",
        "The paper's figure of accuracy under attack against the masking rate.",
        "default",
        {"texts": 80, "seeds": [0, 1]},
        MACHINE,
        tuple(steps),
    )


def entropy() -> Reproduction:
    """SAFER, and RanMASK at two rates."""
    draw = np.random.default_rng(5)
    steps = []
    for method, mean, scored in (
        ("SAFER", 0.01, True),
        ("RanMASK-5%", 0.03, False),
        ("RanMASK-90%", 0.6, True),
    ):
        values = tuple(round(float(value), 6) for value in draw.exponential(mean, TEXTS))
        steps.append(
            Step(
                f"{method.lower().rstrip('%')}-predict",
                "predict",
                "ranmask predict --data agnews",
                {"method": method},
                "done",
                seconds=9.0,
                result=Predicted(
                    tuple(range(1, TEXTS + 1)),
                    tuple(bool(one) for one in draw.random(TEXTS) < 0.9),
                    values,
                    tuple(round(value * 1.2, 6) for value in values) if scored else None,
                ),
            )
        )
    return Reproduction(
        "entropy",
        "AGNEWS: how sharp the votes are",
        "entropy",
        "footnote",
        "The paper's footnote on the entropy of predictions.",
        "default",
        {"texts": TEXTS},
        MACHINE,
        tuple(steps),
    )


def arithmetic() -> list[Reproduction]:
    """What needs no run."""
    about = {
        "risk-probability": ("The risk probability", "The chance that a copy shows all of them."),
        "headline-averages": ("The headline averages", "The averages in the paper's text."),
    }
    return [
        Reproduction(name, title, "arithmetic", "", text, "default", {}, MACHINE, ())
        for name, (title, text) in about.items()
    ]
