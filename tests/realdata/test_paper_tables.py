"""The transcribed figures against the paper's own source; skipped where that is not there."""

import os
import re
from pathlib import Path

import pytest

from ranmask.paper.published import Cell, published

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (
    (ROOT / os.environ.get("RANMASK_DATA", "../shared/data")).resolve().parent
    / "paper"
    / "ranmask.tex"
)
ATTACKS = {
    "TextFooler": "textfooler",
    "BERT-Attack": "bert-attack",
    "DeepWordBug": "deepwordbug",
}


@pytest.fixture(scope="module")
def source():
    if not SOURCE.is_file():
        pytest.skip(f"no paper: {SOURCE.name} is not beside the data folder (RANMASK_DATA)")
    return SOURCE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plain(source):
    """The running text, without mathematical marks."""
    return re.sub(r"\s+", " ", source.replace("$", "").replace("\\%", "%").replace("{,}", ","))


def lines_of(source, label):
    """The rows of a table as lists of bare cells, and which rows have a first cell in bold."""
    end = source.index(rf"\label{{{label}}}")
    body = source[source.rindex(r"\begin{tabular}", 0, end) : end].split(r"\end{tabular}")[0]
    for line in body.split(r"\\"):
        cells = line.split("&")
        bare = [
            re.sub(r"\\cite\{[^}]*\}|\\hline|\\bf|\\footnotesize|\\cline\{[^}]*\}|[$\\]", "", cell)
            for cell in cells
        ]
        yield [re.sub(r"(?<=\.)\s+(?=\d)", "", cell).strip() for cell in bare], r"\bf" in cells[0]


@pytest.mark.parametrize("label", published().certified)
def test_certified_table(source, label):
    table = published().certified[label]
    found = [(cells, bold) for cells, bold in lines_of(source, label) if cells[0].isdigit()]
    assert len(found) == len(table.rows)
    for (cells, bold), row in zip(found, table.rows, strict=True):
        rate, accuracy, mcb, mcr = cells
        assert row.rate == int(rate) / 100
        assert row.accuracy == float(accuracy)
        assert row.mcb == (None if mcb == "N/A" else int(mcb))
        assert row.mcr == (None if mcr == "N/A" else float(mcr))
        assert bold == (row.rate == table.chosen)


@pytest.mark.parametrize("label", published().empirical)
def test_empirical_table(source, label):
    table = published().empirical[label]
    rows = [cells for cells, _ in lines_of(source, label)]
    header = next(cells for cells in rows if "TextFooler" in "".join(cells))
    order = [name for cell in header for name in ATTACKS if name in cell]
    assert tuple(ATTACKS[name] for name in order) == table.attacks
    units = next(cells for cells in rows if "Boa" in "".join(cells))
    assert [re.sub(r"\W", "", cell) for cell in units[1:]] == ["Cln", "Boa", "Succ"] * 3
    found = [cells for cells in rows if len(cells) == 10 and re.match(r"[\d.]+$", cells[1])]
    assert found[0][0] == f"Baseline ({table.base})"
    methods = [cells[0].replace(f" ({table.base})", "") for cells in found]
    assert tuple(methods) == table.methods
    for method, cells in zip(methods, found, strict=True):
        numbers = [float(cell) for cell in cells[1:]]
        for place, attack in enumerate(table.attacks):
            printed = Cell(*numbers[3 * place : 3 * place + 3])
            assert table.cell(method, attack) == printed, (method, attack)


@pytest.mark.parametrize(
    ("statement", "claims"),
    [
        (
            r"Comparing to the baseline, RanMASK can improve the accuracy under attack or the "
            r"robust accuracy \(Boa\) by (\S+)%, and lower the attack success rate \(Succ\) by "
            r"(\S+)% on average at the cost of (\S+)% decrease in the clean accuracy across three",
            ("boa-baseline", "succ-baseline", "cln-baseline"),
        ),
        (
            r"RanMASK still in overall can increase the accuracy under attack by (\S+)%, and "
            r"reduce the attack success rate by (\S+)% on average at the cost of (\S+)% decrease",
            ("boa-freelb", "succ-freelb", "cln-freelb"),
        ),
        (
            r"robust accuracy \(Boa\) by (\S+)%, and lower the attack success rate \(Succ\) by "
            r"(\S+)% on average at the cost of (\S+)% decrease in the clean accuracy under three",
            ("snli-boa-baseline", "snli-succ-baseline", "snli-cln-baseline"),
        ),
        (
            r"When FreeLB is used for comparison, RanMASK still can improve the robust accuracy "
            r"\(Boa\) by (\S+)%, and reduce the attack success rate \(Succ\) by (\S+)% on average",
            ("snli-boa-freelb", "snli-succ-freelb"),
        ),
        (r"highest accuracy on the clean data with (\S+)% improvement", ("imdb-cln-baseline",)),
        (
            r"any perturbation of (\d) words on AGNEWS dataset \S+ and (\d) words on SST2",
            ("agnews-words", "sst2-words"),
        ),
        (r"which means that (\S+)% of words can be", ("agnews-share",)),
    ],
)
def test_claims(plain, statement, claims):
    # A sentence may be there more than once, and must say the same each time.
    text = re.sub(r"\\cite\{[^}]*\}", "CITED", plain)
    [found] = {match.groups() for match in re.finditer(statement, text)}
    printed = tuple(abs(published().claims[name].value) for name in claims)
    assert tuple(float(figure) for figure in found) == printed


def test_settings(plain):
    settings = published().settings
    for said in (
        f"randomly selected {settings['texts']:,} test examples",
        rf"uncertainty \alpha to {settings['alpha']}",
        rf"samples n for \textsc{{Predict}} procedure to {settings['selection_masks']:,}",
        rf"n' for \textsc{{Certify}} to {settings['masks']:,}",
        f"we set n to {settings['attacked_masks']} to speed up",
        f"IMDB ({settings['average_words']['imdb']} words on average)",
        f"AGNEWS ({settings['average_words']['agnews']} words on average)",
        "AdamW optimizer",
        "weight decay (1e-6), a batch size 32, a maximum number of epochs 20, and a gradient clip "
        "(-1, 1) and a learning rate (5e-5), which is decayed by the cosine annealing",
    ):
        assert said in plain, said
    assert settings["training"] == {
        "optimizer": "AdamW",
        "weight_decay": 1e-6,
        "batch_size": 32,
        "epochs": 20,
        "gradient_clip": 1.0,
        "learning_rate": 5e-5,
        "schedule": "cosine",
    }
    assert "SST2 (19" not in plain  # no average length is stated for SST2


def test_figures_and_footnote(plain):
    beta = published().beta
    assert f"n_r = {beta['draws']} and n_k = {beta['masks']:,}" in plain
    bounds = [
        rf"{value * 1e5:g}\times10^{{-5}} on {corpus.upper()}"
        for corpus, value in beta["below"].items()
    ]
    assert all(bound in plain for bound in bounds)
    entropy = published().entropy
    safer, *masked = entropy["mean"].values()
    assert f"average entropy of SAFER's predictions is {safer}" in plain
    said = "those of RanMASK's are " + ", ".join(map(str, masked[:-1])) + f", and {masked[-1]}"
    assert said in plain
    assert r"when \rho = 5%, 10%, 50%, and 90% respectively" in plain
    assert f"on {entropy['texts']:,} test samples selected randomly from AGNEWS" in plain
    assert "varying the masking rates from 5% to 90%" in plain
    assert f"obtained over {published().rates['runs']} runs" in plain


def test_statements_on_risk(plain):
    assert r"risk probability} is greater than 0.5 for any text" in plain
    assert (
        r"this risk probability is very close to zero when \rho = 90% (chosen in the certified "
        r"robustness experiment) no matter what the value of \gamma is applied" in plain
    )
    assert r"For SST2, this risk probability is approximately equal to 0.5 when \rho = 30%" in plain
    assert {one.corpus: one.rate for one in published().risk.values()} == {
        "agnews": 0.9,
        "sst2": 0.3,
    }
