"""What certificates, attacks, corpora and masking rates are called in a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranmask.paper.run_data import Reading

CERTIFICATES = {
    "exact": "exact",
    "ablation": "Levine–Feizi",
    "ablation-runner-up": "Levine–Feizi, runner-up",
    "paper": "paper, off-by-one removed",
    "paper-as-printed": "paper, as printed",
    "paper-estimated-beta": "paper, estimated beta",
}
ATTACKS = {
    "textfooler": "TextFooler",
    "bert-attack": "BERT-Attack",
    "deepwordbug": "DeepWordBug",
}
CORPORA = {"agnews": "AG News", "sst2": "SST2", "imdb": "IMDB", "snli": "SNLI"}


def attack_name(attack: str) -> str:
    """An attack as a reader knows it."""
    return ATTACKS.get(attack, attack)


def corpus_name(corpus: str) -> str:
    """A corpus as a reader knows it."""
    return CORPORA.get(corpus, corpus)


def certificate_name(of: Reading, *, warned: bool = False) -> str:
    """A certificate as a reader knows it; ``warned``: with a word where it guarantees nothing."""
    warning = "" if of.guarantee or not warned else " (no guarantee)"
    return CERTIFICATES.get(of.certificate, of.certificate) + warning


def rate_name(rate: float | None, word: str = "") -> str:
    """A masking rate in percent; None is a run that keeps a number of words instead."""
    return "as run" if rate is None else f"{100 * float(rate):g} %{word}"


def either(counts: Iterable[int]) -> str:
    """Different numbers in a sentence: ``300 or 1,000``."""
    return " or ".join(f"{count:,}" for count in sorted(set(counts)))


def listed(values: Iterable[str]) -> str:
    """One value where all are alike, else all."""
    every = list(values)
    return every[0] if len(set(every)) == 1 else ", ".join(every)


def several(names: Sequence[str]) -> str:
    """Names in a sentence: ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
