"""Files of attacked texts as data: read, added to training, and paired for a detector."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from ranmask.attacks.adversarial_data import (
    AttackedTexts,
    augmented,
    detector_corpora,
    read_attacked,
)
from ranmask.attacks.api import as_victim
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.runs import attack_rows
from ranmask.data import Corpus
from ranmask.data.rows import Row, RowSource
from ranmask.errors import DataError, OptionError
from ranmask.models.testing import keyword_classifier
from ranmask.runs.result_file import ResultFile
from ranmask.runs.task import RunEvents
from ranmask.training.defences.augment import AttackPlan, attack_half, attacked_rows

NAMES = ("negative", "positive")
HELD_OUT = Corpus("held", "validation", ("a fine day",), (1,), NAMES)


def corpus(texts=("a good film", "a bad film", "a great plot"), labels=(1, 0, 1)):
    return Corpus("made-up", "train", tuple(texts), tuple(labels), NAMES, "made up")


def outcome(number, text, label, adversarial=None, status=None):
    given = {} if adversarial is None else {"adversarial": adversarial, "words": 3}
    return AttackOutcome(
        number, text, label, status or ("succeeded" if adversarial else "failed"), **given
    )


def attacked(*outcomes, recipes=("textfooler",)):
    return AttackedTexts(tuple(outcomes), recipes)


def engine():
    words = AttackResources(vocabulary=Vocabulary("made up", ("awful", "best")))
    return AttackLoop(as_victim(keyword_classifier), build_recipe("anywords", words), budget=1)


@pytest.fixture
def file(tmp_path):
    """The file of a finished run: two successes and a text that was wrong before."""
    path = tmp_path / "attacked.jsonl"
    rows = [Row(1, "a good film", 1), Row(2, "a bad film", 0), Row(3, "a great plot", 0)]
    attack_rows(engine(), RowSource(rows, 3, {"name": "made-up"}), path)
    return path


class TestReading:
    def test_outcomes_and_recipe(self, file):
        found = read_attacked([file])
        assert [one.status for one in found.outcomes] == ["succeeded", "succeeded", "skipped"]
        assert [one.number for one in found.successes] == [1, 2] and found.recipes == ("anywords",)
        assert found.note == "2 of 3 texts attacked with success by anywords"

    @pytest.mark.parametrize("separator", ["\x85", "\u2028"], ids=["next line", "line separator"])
    def test_texts_with_odd_line_ends(self, tmp_path, separator):
        path = tmp_path / "attacked.jsonl"
        text = f"a good{separator} film"
        found = AttackOutcome(1, text, 1, "succeeded", adversarial=f"a bad{separator} film")
        about = {"format": "ranmask-results", "version": 1, "command": "attack"}
        with ResultFile(path, about) as results:
            results.write([found.to_dict()])
            results.finish({})
        assert [one.text for one in read_attacked([path]).outcomes] == [text]

    def test_several_files(self, file, tmp_path):
        other = tmp_path / "other.jsonl"
        attack_rows(engine(), RowSource([Row(1, "a great plot", 1)], 1), other)
        assert len(read_attacked([file, other]).outcomes) == 4
        with pytest.raises(DataError, match="named twice"):
            read_attacked([file, tmp_path / "." / file.name])

    def test_nothing(self):
        with pytest.raises(DataError, match="name at least one"):
            read_attacked([])

    def test_no_such_file(self, tmp_path):
        with pytest.raises(DataError, match=r"there is no file .*none.jsonl"):
            read_attacked([tmp_path / "none.jsonl"])

    def test_not_of_an_attack(self, file):
        first, *rest = file.read_text().splitlines(keepends=True)
        other = {**json.loads(first), "command": "certify"}
        file.write_text("".join([json.dumps(other) + "\n", *rest]))
        with pytest.raises(DataError, match="says command='certify'"):
            read_attacked([file])
        file.write_text("".join(rest))
        with pytest.raises(DataError, match="not written by an attack run"):
            read_attacked([file])

    def test_unfinished(self, file):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
        with pytest.raises(DataError, match="not finished: the command that began it resumes it"):
            read_attacked([file])

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            pytest.param(
                '{"version": 9, "row": 4, "status": ""}',
                "line 5: .*version 9 is not 1",
                id="version",
            ),
            pytest.param('{"version": 1, "row": 4}', "line 5: not an AttackOutcome", id="fields"),
            pytest.param("[1]", r"line 5: .*holds \[1\]", id="no object"),
            pytest.param("{", "line 5: .*not valid JSON", id="no JSON"),
        ],
    )
    def test_damaged_lines(self, file, line, message):
        *lines, last = file.read_text().splitlines(keepends=True)
        file.write_text("".join([*lines, line + "\n", last]))
        with pytest.raises(DataError, match=message):
            read_attacked([file])


class TestAugmented:
    def test_no_success_is_plain_training(self):
        train = corpus()
        same = augmented(train, attacked(outcome(1, "a good film", 1)), without=HELD_OUT)
        assert same is train

    def test_successes_are_added_with_their_true_class(self):
        train = corpus()
        found = attacked(
            outcome(1, "a good film", 1, "a awful film"),
            outcome(2, "a bad film", 0),
            outcome(3, "a great plot", 1, "a poor plot"),
        )
        more = augmented(train, found, without=HELD_OUT)
        rows = dict(zip(more.texts, more.labels, strict=True))
        assert rows == {
            **dict(zip(train.texts, train.labels, strict=True)),
            "a awful film": 1,
            "a poor plot": 1,
        }
        assert len(more.texts) == 5 and more.sha256 != train.sha256
        assert more.note == (
            "made up; with 2 rows of attacked; 2 of 3 texts attacked with success by textfooler"
        )
        assert augmented(train, found, without=HELD_OUT).texts == more.texts

    def test_an_adversarial_text_that_is_held_out_stays_out(self):
        train = corpus()
        found = attacked(outcome(1, "a good film", 1, "a fine day"))
        assert augmented(train, found, without=HELD_OUT) is train

    @pytest.mark.parametrize("status", ["failed", "skipped", "succeeded"])
    def test_texts_from_elsewhere_are_refused(self, status):
        one = outcome(7, "a test film", 1, "a b c" if status == "succeeded" else None, status)
        with pytest.raises(DataError, match=r"row 7: .*no row of made-up train: 'a test film'"):
            augmented(corpus(), attacked(one), without=HELD_OUT)

    def test_texts_that_are_held_out_are_refused(self):
        train = corpus(("a fine day", "a bad film"), (1, 0))
        with pytest.raises(DataError, match=r"row 1: .*held out, in held validation: 'a fine day'"):
            augmented(train, attacked(outcome(1, "a fine day", 1)), without=HELD_OUT)

    def test_another_class_is_refused(self):
        with pytest.raises(DataError, match="has the class 0 in its file, and positive in made-up"):
            augmented(corpus(), attacked(outcome(1, "a good film", 0)), without=HELD_OUT)

    def test_a_text_with_two_classes_may_have_either(self):
        train = corpus(("a good film", "a good film", "b"), (1, 0, 0))
        for label in (0, 1):
            one = outcome(1, "a good film", label, "a awful film")
            more = augmented(train, attacked(one), without=HELD_OUT)
            assert dict(zip(more.texts, more.labels, strict=True))["a awful film"] == label

    def test_errors_are_passed_over(self):
        train = corpus()
        error = replace(outcome(1, "", None, status="error"), error="no words")
        assert augmented(train, attacked(error), without=HELD_OUT) is train

    def test_pairs(self):
        train = corpus((("p", "a good film"), ("p", "bad")), (1, 0))
        one = outcome(1, ("p", "a good film"), 1, ("p", "a awful film"))
        assert ("p", "a awful film") in augmented(train, attacked(one), without=HELD_OUT).texts


class TestDetectorCorpora:
    @pytest.fixture
    def found(self):
        made = [outcome(n, f"text {n} was", 1, f"text {n} is") for n in range(1, 31)]
        again = [outcome(n, f"text {n} was", 1, f"text {n} are") for n in range(1, 31, 3)]
        return attacked(*made, *again, outcome(99, "never fooled", 0))

    def test_pairs_are_never_split(self, found):
        train, held_out = detector_corpora(found)
        numbers = [{text.split()[1] for text in one.texts} for one in (train, held_out)]
        assert not numbers[0] & numbers[1] and len(numbers[0] | numbers[1]) == 30
        assert len(numbers[1]) == 3

    def test_classes_are_balanced_and_right(self, found):
        for one in detector_corpora(found):
            assert one.label_names == ("clean", "attacked")
            assert one.labels.count(0) == one.labels.count(1)
            for text, label in zip(one.texts, one.labels, strict=True):
                assert label == (not text.endswith("was"))
            assert "never fooled" not in one.texts

    def test_repeatable(self, found):
        first, second = detector_corpora(found), detector_corpora(found)
        assert [one.sha256 for one in first] == [one.sha256 for one in second]

    def test_attacked_into_the_same_text(self):
        """Nothing that is validated by was seen in training, whatever the attack made of it."""
        made = [outcome(n, f"text {n}", 1, f"attacked {n % 15}") for n in range(1, 31)]
        train, held_out = detector_corpora(attacked(*made, outcome(31, "x", 1, "y")))
        assert not set(train.texts) & set(held_out.texts)

    def test_too_few(self):
        with pytest.raises(DataError, match=r"at least two texts .* there are 1 "):
            detector_corpora(attacked(outcome(1, "a", 1, "b"), outcome(2, "c", 1)))


class TestHalf:
    def test_half_of_the_rows_by_their_places(self):
        train = corpus([f"text {n}" for n in range(101)], [n % 2 for n in range(101)])
        rows = attacked_rows(train)
        assert len(rows) == 51 and [row.number for row in rows] == sorted(
            {row.number for row in rows}
        )
        for row in rows:
            assert row.text == train.texts[row.number - 1]
            assert row.label == NAMES[train.labels[row.number - 1]]
        assert len(attacked_rows(train, share=Fraction(1))) == 101

    def test_places_follow_from_seed_and_number_alone(self):
        def places(rows, **given):
            return [row.number for row in attacked_rows(corpus(*rows), **given)]

        one = [f"a {n}" for n in range(40)], [0, 1] * 20
        other = [f"b {n}" for n in range(40)], [1, 0] * 20
        assert places(one) == places(other) != places(one, seed=1)
        assert places(one)[:8] == [1, 3, 4, 7, 9, 11, 12, 17]

    def test_held_out_texts_are_not_attacked(self):
        train = corpus(["a fine day", "a bad film"], (1, 0))
        rows = attacked_rows(train, without=HELD_OUT, share=Fraction(1))
        assert [row.number for row in rows] == [2]

    @pytest.mark.parametrize("share", [Fraction(0), Fraction(3, 2)], ids=str)
    def test_shares(self, share):
        with pytest.raises(OptionError, match="share must be above 0"):
            attacked_rows(corpus(), share=share)

    def test_attacked_to_a_file_that_is_reused(self, tmp_path):
        train = corpus([f"good film {n}" for n in range(8)], [1] * 8)
        plan = AttackPlan(replace(build_recipe("anywords", engine_supplies()), budget=1))
        path = tmp_path / "new" / "attacked.jsonl"
        counted = []

        def victim(texts):
            counted.append(len(texts))
            return keyword_classifier(texts)

        summary = attack_half(victim, train, path, plan)
        assert summary.succeeded == 4
        asked, written = len(counted), path.read_bytes()
        told = []
        events = RunEvents(started=lambda *given: told.append(given))
        again = attack_half(victim, train, path, plan, events=events)
        assert again == summary and len(counted) == asked and path.read_bytes() == written
        assert told == [(4, 4)]
        more = augmented(train, read_attacked([path]), without=HELD_OUT)
        assert len(more.texts) == 12 and set(more.labels) == {1}

    def test_classes_in_another_order(self, tmp_path):
        from ranmask import FunctionClassifier

        victim = FunctionClassifier(keyword_classifier, labels=("positive", "negative"))
        plan = AttackPlan(replace(build_recipe("anywords", engine_supplies()), budget=1))
        with pytest.raises(OptionError, match="their order must be the same"):
            attack_half(victim, corpus(), tmp_path / "out.jsonl", plan)


def engine_supplies():
    return AttackResources(vocabulary=Vocabulary("made up", ("awful", "best")))
