"""``ranmask train --partitions``: tables that vote, certified, saved, loaded and refused."""

import json

import pytest
from tests.commands import run_cli as run

from ranmask import (
    DataError,
    ModelError,
    OptionError,
    PartitionedClassifier,
    attack,
    load_classifier,
)
from ranmask.attacks.api import as_victim
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.data import load_splits
from ranmask.models.pretrained import load as load_base
from ranmask.results import PartitionCertificate
from ranmask.runs.stored import read_results
from ranmask.serving.registry import ModelRegistry
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.partitions import part_of
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import train_word_table

WORDS = {"ham": "see you at home for dinner tonight love", "spam": "win free cash prize now call"}
PARTS = 5


def rows_of(numbers):
    """Texts of four words that tell their class, and a number."""
    rows = []
    for number in numbers:
        label = ("ham", "spam")[number % 2]
        words = WORDS[label].split()
        text = " ".join(words[(number // 2 + step * step) % len(words)] for step in range(4))
        rows.append({"text": f"{text} {number}", "label": label})
    return rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "rows.jsonl", rows_of(range(240)))


def train(data, output, *more, labels="ham,spam", parts=PARTS):
    given = ("--data", data, "--output", output, "--partitions", parts, "--buckets", 256)
    return run("train", "--kind", "words", *given, *(("--labels", labels) if labels else ()), *more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("partitions")
    data = write(folder / "rows.jsonl", rows_of(range(240)))
    done = train(data, folder / "model")
    assert done.exit_code == 0, done.stderr
    return folder / "model", done


def digests(folder):
    return [table.base.digest for table in load_classifier(str(folder)).tables]


def test_trains_saves_and_certifies(trained, tmp_path):
    folder, done = trained
    assert "partitions: 5 of 5 tables are trained" in done.stderr
    assert "poisoned texts   CR@0" in done.stderr
    card = (folder / "README.md").read_text()
    for said in ("A vote of 5 word tables", "| poisoned texts | CR@0 |", "PartitionedClassifier"):
        assert said in card
    rows = write(tmp_path / "new.jsonl", rows_of(range(300, 340)))
    out = tmp_path / "out.jsonl"
    asked = ("certify", "-m", folder, "--input", rows, "--label-column", "label")
    done = run(*asked, "--output", out)
    assert done.exit_code == 0, done.stderr
    for said in ("poisoned texts   CR@0", "training texts may be added, removed or relabelled"):
        assert said in done.stderr
    last = json.loads(out.read_text().splitlines()[-1])
    figures = last["finished"]["poisoned"]
    assert figures["0"] == last["finished"]["certified_accuracy"]
    results = [outcome.result for outcome in read_results(out)]
    assert all(isinstance(result, PartitionCertificate) for result in results)
    expected = [row["label"] for row in rows_of(range(300, 340))]
    right = [one for one, label in zip(results, expected, strict=True) if one.label == label]
    for texts, shares in figures.items():
        for words, share in enumerate(shares):
            proved = sum(one.certified(words, poisoned=int(texts)) for one in right)
            assert share == proved / len(results)
    assert figures["1"][0] > 0.5
    shards = tmp_path / "shards"
    assert run(*asked, "--output", shards, "--shard-rows", "16").exit_code == 0
    assert [outcome.result for outcome in read_results(shards)] == results
    model = PartitionedClassifier.from_pretrained(str(folder))
    texts = [row["text"] for row in rows_of(range(300, 340))]
    assert model.certify(texts) == results
    assert [one.label_id for one in model.predict(texts)] == [one.label_id for one in results]
    assert [one.votes for one in model.predict(texts)] == [one.votes for one in results]


def test_what_a_certificate_says(trained):
    [result] = load_classifier(str(trained[0])).certify(["win free cash prize"])
    assert (result.label, result.radius) == ("spam", len(result.poisoned) - 1)
    assert result.certified(0, poisoned=result.poisoned[0])
    assert not result.certified(0, poisoned=result.poisoned[0] + 1)
    assert not result.certified(result.radius + 1)
    assert list(result.poisoned) == sorted(result.poisoned, reverse=True)
    assert PartitionCertificate.from_dict(result.to_dict()) == result
    assert any("counts as two" in line for line in result.assumes)
    for wrong in (-1, True, 1.5):
        with pytest.raises(OptionError, match="poisoned must be a whole number"):
            result.certified(0, poisoned=wrong)
    edits = load_classifier(str(trained[0]), threat="edits").certify(["win free cash prize"])
    assert (edits[0].threat, edits[0].poisoned) == ("edits", result.poisoned)
    assert any("grows beyond" in line for line in edits[0].assumes)


def test_one_row_reaches_one_table_of_a_file(data, trained, tmp_path):
    """Added, relabelled or removed, first or last: the others are trained to the same bytes."""
    rows, before = rows_of(range(240)), digests(trained[0])
    new = {"text": "you win dinner", "label": "ham"}
    other = {**rows[7], "label": "ham"}
    for name, poisoned, text in (
        ("added", [new, *rows], new["text"]),
        ("relabelled", [*rows[:7], other, *rows[8:]], other["text"]),
        ("removed", rows[1:], rows[0]["text"]),
        ("copied", [*rows, *[new] * 9], new["text"]),
        ("turned", rows[::-1], rows[0]["text"]),
    ):
        folder = tmp_path / name
        assert train(write(tmp_path / f"{name}.jsonl", poisoned), folder).exit_code == 0
        reached = {place for place, one in enumerate(digests(folder)) if one != before[place]}
        held_out, kept = load_splits(str(data), label_names=["ham", "spam"], by_text=True)[::-1]
        assert not {*held_out.texts} & {*kept.texts} and 10 < len(held_out.texts) < 50
        unread = name == "turned" or text in held_out.texts
        assert reached == (set() if unread else {part_of(text, PARTS)}), name


def test_validation_of_its_own(data, tmp_path):
    other = write(tmp_path / "other.jsonl", rows_of(range(240, 280)))
    assert train(data, tmp_path / "model", "--validation", other).exit_code == 0
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert (record["run"]["train"]["rows"], record["validation"]["texts"]) == (240, 40)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rows", "50"), "--rows means nothing with --partitions"),
        (("--threat", "characters"), "--threat characters does not go with --partitions 5"),
        (("--family", "distinct"), "--family distinct does not go with --partitions 5"),
        (("--target-words", "0"), "--target-words 0 does not go with --partitions 5"),
        (("--lexicon", "closed"), "--lexicon closed does not go with --partitions 5"),
        (("--partitions", "1"), "--partitions must be"),
    ],
)
def test_refused_options(more, message, data, tmp_path):
    done = train(data, tmp_path / "model", *more)
    assert done.exit_code == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "model").exists()


def test_no_row_changes_how_the_labels_of_others_are_read(tmp_path):
    """Were one labelled 2, the others would be read as numbers, and not as the names they are."""
    names = ["10", "0", "1"]
    rows = [{"text": f"text {number}", "label": "01"[number % 2]} for number in range(60)]
    rows += [{"text": f"more {number}", "label": "10"} for number in range(3)]
    extra = {"text": "poison", "label": "2"}
    for poisoned in ([*rows[:60], extra], [*rows, extra]):
        path = write(tmp_path / "rows.jsonl", poisoned)
        with pytest.raises(DataError, match="its label '2' is none of 10, 0, 1"):
            load_splits(str(path), label_names=names, by_text=True)
    write(path, rows)
    train, _ = load_splits(str(path), label_names=names, by_text=True)
    read = {
        text: train.label_names[label]
        for text, label in zip(train.texts, train.labels, strict=True)
    }
    assert all(read[row["text"]] == row["label"] for row in rows if row["text"] in read)


@pytest.mark.parametrize("threat", ["substitutions", "edits"])
def test_attacked(trained, tmp_path, threat):
    """Within the radius beside no poisoned text nothing succeeds; beyond it something does."""
    tables = load_classifier(str(trained[0]), threat=threat)
    texts, labels = ["win free cash prize now call", "see you at home for dinner"], [1, 0]
    words = AttackResources(vocabulary=Vocabulary("all", tuple(" ".join(WORDS.values()).split())))
    ended = {}
    for budget in ("radius", 6):
        found = attack(tables, texts, labels, "anywords", resources=words, budget=budget)
        ended[budget] = [outcome.status for outcome in found]
        assert [outcome.radius for outcome in found] == [
            result.radius for result in tables.certify(texts)
        ]
        for outcome in found:
            [said] = tables.predict([outcome.adversarial])
            assert said.label_id == outcome.final_label
            assert outcome.final_share == said.votes[outcome.label] / PARTS
    assert ended["radius"] == ["failed", "failed"] and "succeeded" in ended[6]
    known = {"substitutions": "edits", "edits": "insertions"}[threat]
    with pytest.raises(OptionError, match=f"no radius of {known}, but of {threat}"):
        as_victim(tables).certify(texts, known)


def test_attacked_by_command(trained, tmp_path):
    rows = write(tmp_path / "new.jsonl", rows_of(range(300, 310)))
    given = ("--recipe", "deepwordbug", "--model", trained[0], "--label-column", "label")
    done = run("attack", *given, "--input", rows, "--output", tmp_path / "out.jsonl")
    assert done.exit_code == 0 and "10 texts, 10 attacked" in done.stderr, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len([line for line in lines if line.get("final_label") in (0, 1)]) == 10


def test_refused_data(data, tmp_path, monkeypatch):
    done = train(data, tmp_path / "model", labels=None)
    assert done.exit_code == 2 and "give --labels" in done.stderr, done.stderr
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path))
    (tmp_path / "sms_spam").mkdir()
    with pytest.raises(OptionError, match="depends on how many there are"):
        load_splits("sms_spam", by_text=True)


def test_refused_elsewhere(trained, tmp_path):
    folder = str(trained[0])
    with pytest.raises(OptionError, match="threat='span' is not certified beside poisoned texts"):
        load_classifier(folder, threat="span")
    with pytest.raises(OptionError, match="masks=7 means nothing"):
        load_classifier(folder, masks=7)
    with pytest.raises(ModelError, match=r"kind 'partitions'.*part1, part2"):
        load_base(folder)
    with pytest.raises(ModelError, match=r"PartitionedClassifier\.from_pretrained"):
        SmoothedClassifier.from_pretrained(folder)
    with pytest.raises(ModelError, match="is not served"):
        ModelRegistry({"mine": folder})
    with pytest.raises(ModelError, match="holds no tables that vote"):
        PartitionedClassifier.from_pretrained(str(trained[0] / "part1"))
    with pytest.raises(OptionError, match="partitions=3 are several tables"):
        options = WordTableOptions(partitions=3)
        train_word_table(["a"], [0], ["x", "y"], options=options)
    for command in (("certify", "--copies", "2"), ("certify", "--compare"), ("tune",)):
        given = ("--data", tmp_path / "x.jsonl") if command == ("tune",) else ("a text",)
        write(tmp_path / "x.jsonl", rows_of(range(20)))
        done = run(*command, "-m", folder, *given)
        assert done.exit_code == 2, (command, done.stderr)
        assert "trained apart" in done.stderr or "not smoothed by masking" in done.stderr
