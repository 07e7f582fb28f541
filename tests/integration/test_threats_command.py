"""Several threats by ``ranmask certify``: flags, lines, shards, summaries and refusals."""

import json

import pytest
from tests.commands import run_cli as run

from ranmask import SmoothedClassifier, load_default
from ranmask.results import Certificate
from ranmask.runs.shards.columns import decoded, encoded

TEXT = "Oil prices soared to a record high on Monday as traders feared supply cuts by OPEC"
TABLE = {"oil": ["petrol"], "soared": ["rose", "jumped"], "traders": ["dealers"]}
THREATS = ("insertions", "substitutions", "deletions", "characters", "span", "synonyms")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "synonyms.json"
    path.write_text(json.dumps(TABLE))
    return str(path)


def certify(*arguments):
    return run("certify", "-m", "news-words", *arguments)


def test_the_first_is_the_radius(table):
    done = certify("--threat", ",".join(THREATS), "--synonyms", table, TEXT)
    assert done.exit_code == 0, done.stderr
    line = json.loads(done.stdout)
    assert (line["threat"], line["radius"]) == ("insertions", line["radii"]["insertions"])
    assert tuple(line["radii"]) == THREATS
    smoothed = load_default("news-words", threat="insertions", synonyms=TABLE)
    [result] = smoothed.certify([TEXT], threats=THREATS[1:])
    assert result.radii == line["radii"]
    for threat, radius in result.radii.items():
        [alone] = load_default("news-words", threat=threat, synonyms=TABLE).certify([TEXT])
        assert (alone.radius, alone.radii) == (radius, {})
    again = Certificate.from_dict(line)
    assert again.radii == result.radii and again.certified(again.radius, "insertions")


def test_files_shards_and_summaries(tmp_path, table):
    rows = tmp_path / "rows.jsonl"
    texts = [TEXT, "Team wins the cup after extra time", " ", "New chip makes computers faster"]
    labels = ["Business", "Sports", "World", "Sci/Tech"]
    rows.write_text(
        "".join(
            json.dumps({"text": t, "label": n}) + "\n" for t, n in zip(texts, labels, strict=True)
        )
    )
    asked = ("--input", str(rows), "--label-column", "label", "--synonyms", table)
    asked += ("--threat", "substitutions,insertions,synonyms")
    out = tmp_path / "out.jsonl"
    done = certify(*asked, "--output", str(out))
    assert done.exit_code == 3, done.stderr  # a row without words
    header, *lines, last = map(json.loads, out.read_text().splitlines())
    assert header["classifier"]["options"]["threats"] == ["insertions", "synonyms"]
    assert header["classifier"]["synonyms"]["name"] == "synonyms.json"
    assert list(lines[0]["radii"]) == ["substitutions", "insertions", "synonyms"]
    figures = last["finished"]["threats"]
    assert figures["substitutions"]["certified_accuracy"] == last["finished"]["certified_accuracy"]
    assert figures["insertions"]["median_radius"] >= figures["substitutions"]["median_radius"]
    whole = [line["radii"]["synonyms"] >= line["words"] for line in lines if "radii" in line]
    assert figures["synonyms"]["all_words"] == sum(whole) / 3
    for said in ("insertions ", "synonyms ", "all words ", "insert that many words"):
        assert said in done.stderr
    other = certify(*asked[:-1], "substitutions,insertions", "--output", str(out))
    assert other.exit_code == 1 and "threats" in other.stderr
    shards = tmp_path / "shards"
    done = certify(*asked, "--output", str(shards), "--shard-rows", "2")
    assert done.exit_code == 3, done.stderr
    merged = tmp_path / "merged.jsonl"
    assert run("runs", "merge", str(shards), str(merged)).exit_code == 0
    _, *again, _ = map(json.loads, merged.read_text().splitlines())
    assert again == lines


def test_radii_survive_parquet(tmp_path):
    [result] = load_default("news-words").certify([TEXT], threats=["span"])
    lines = [{"row": 1, "text": TEXT, **result.to_dict()}]
    path = tmp_path / "part.parquet"
    path.write_bytes(encoded(lines, Certificate))
    assert list(decoded(path)) == lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--threat", "magic"), "--threat must be one of substitutions, edits, "),
        (("--threat", "span,magic"), "--threat must be one of substitutions, edits, "),
        (("--threat", "synonyms"), "--threat synonyms needs a table: give --synonyms, a file"),
        (("--threat", "span,characters", "--keep", "2"), "--threat characters needs --keep 1"),
        (("--threat", "span,edits", "--certificate", "ablation"), "needs --certificate exact"),
        (("--threat", "substitutions,span", "--compare"), "--compare needs --threat substitutions"),
        (("--threat", "synonyms", "--synonyms", "nowhere.json"), "nowhere.json"),
    ],
)
def test_refusals(arguments, said):
    done = certify(*arguments, TEXT)
    assert done.exit_code in (1, 2) and said in done.stderr, done.stderr


def test_a_model_keeps_its_threats_and_its_table(tmp_path):
    smoothed = load_default("news-words", threat="synonyms", threats=["span"], synonyms=TABLE)
    smoothed.save_pretrained(str(tmp_path / "model"))
    loaded = SmoothedClassifier.from_pretrained(str(tmp_path / "model"))
    assert loaded.options == smoothed.options
    assert loaded.certify([TEXT]) == smoothed.certify([TEXT])
    assert loaded.description() == smoothed.description()


def test_a_table_that_was_trained_for_several_certifies_each(tmp_path, table):
    rows = tmp_path / "rows.jsonl"
    texts = {"up": "oil prices soared", "down": "traders feared losses"}
    lines = [
        {"text": f"{text} today on day{number}", "label": label}
        for number in range(40)
        for label, text in texts.items()
    ]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = tmp_path / "model"
    done = run(
        *("train", "--data", str(rows), "--kind", "words", "--synonyms", table),
        *("--threat", "substitutions,characters,synonyms", "--output", str(folder)),
    )
    assert done.exit_code == 0, done.stderr
    [result] = SmoothedClassifier.from_pretrained(str(folder)).certify(["oil prices soared today"])
    assert [*result.radii] == ["substitutions", "characters", "synonyms"]
    assert (result.label, result.radii["synonyms"]) == ("up", 4)
    measured = json.loads((folder / "training.json").read_text())["validation"]
    assert measured["threats"]["synonyms"]["all_words"] == 1
    assert [*measured["threats"]] == ["characters", "synonyms"]
    card = (folder / "README.md").read_text()
    assert "| words replaced by synonyms | " in card
    assert "characters inserted, deleted or replaced" in card


def test_encoders_are_not_trained_for_threats(tmp_path):
    done = run(
        *("train", "--data", "sms_spam", "--base", "any", "--output", str(tmp_path / "model")),
        *("--threat", "substitutions,characters"),
    )
    assert done.exit_code == 2
    assert "--threat means nothing with --kind encoder" in done.stderr
