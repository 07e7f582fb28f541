"""Two runs over the same texts: pairing, tests, verdicts and refusals."""

import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ranmask.cli.compare_printing import markdown, print_comparison
from ranmask.errors import DataError
from ranmask.evaluation.intervals import holm, mean_difference, paired_difference, sign_test
from ranmask.paper.comparing import EXPLANATION, compare
from ranmask.paper.run_data import (
    Attacked,
    Betas,
    Certified,
    Predicted,
    Reading,
    Reproduction,
    Step,
)

DATA = {"name": "sst2", "split": "test", "rows": 6, "sha256": "a" * 64}
ROWS = (1, 2, 3, 4, 5, 6)


def certified(radii, correct=None, rows=None, words=None, **more):
    rows = rows or tuple(range(1, len(radii) + 1))
    correct = correct or (True,) * len(radii)
    exact = Reading("exact", True, tuple(correct), tuple(radii))
    values = {"masks": 9, "readings": (exact,), **more}
    return Certified(rows, words or tuple(row + 10 for row in rows), **values)


def attacked(statuses, rows=None, attack="textfooler"):
    rows = rows or tuple(range(1, len(statuses) + 1))
    zeros = (0,) * len(rows)
    words = tuple(row + 10 for row in rows)
    letters = {"s": "succeeded", "f": "failed", "k": "skipped", "e": "error"}
    found = tuple(letters[status] for status in statuses)
    return Attacked(attack, None, rows, found, words, zeros, zeros, (None,) * len(rows))


def step(result, measures="certified", name="votes", place=None, data=None, **more):
    place = {"rate": 0.3} if place is None else place
    return Step(name, measures, "", place, "done", data=data or DATA, result=result, **more)


def whole(*steps, **more):
    values = {"name": "x", "title": "", "kind": "certified", "paper": "", "about": ""}
    values |= {"size": "smoke", "settings": {}, "machine": {}, "steps": steps}
    return Reproduction(**{**values, **more})


def only(comparison, figure):
    [found] = [one for one in comparison.differences if one.figure == figure]
    return found


class TestCertified:
    def test_figures(self):
        a = certified((3, 2, 2, None, 1, 5), (True, True, True, True, False, True))
        b = certified((1, 2, 0, 0, 4, 6))
        found = compare(whole(step(a)), whole(step(b)))
        figures = [one.figure for one in found.differences]
        assert figures == ["accuracy", "CR@1", "CR@2", "CR@3", "CR@4", "CR@5", "radius"]
        assert {one.certificate for one in found.differences} == {"exact"}
        accuracy = only(found, "accuracy")
        assert (accuracy.a, accuracy.b, accuracy.texts) == (5 / 6, 1, 6)
        assert (accuracy.higher_a, accuracy.higher_b) == (0, 1)
        expected = paired_difference([True] * 4 + [False, True], [True] * 6)
        assert accuracy.difference == expected.difference == pytest.approx(-1 / 6)
        assert accuracy.interval == expected.interval and accuracy.p_value == expected.p_value
        # Row 5 is wrong in A, so its radius of 1 counts for nothing.
        assert only(found, "CR@1").a == 4 / 6 and only(found, "CR@1").b == 4 / 6
        radius = only(found, "radius")
        signs = sign_test([3, 2, 2, None, None, 5], [1, 2, 0, 0, 4, 6])
        assert (
            (radius.higher_a, radius.higher_b)
            == (signs.higher_first, signs.higher_second)
            == (2, 3)
        )
        assert (radius.a, radius.b, radius.difference, radius.interval) == (2, 1, None, None)
        assert found.notes == ()

    def test_holm_over_all_rows_and_the_verdict(self):
        texts = 30
        a, b = certified((2,) * texts), certified((1,) * texts)
        found = compare(whole(step(a)), whole(step(b)))
        p_values = [one.p_value for one in found.differences]
        assert tuple(one.adjusted for one in found.differences) == holm(p_values)
        assert only(found, "CR@2").adjusted > only(found, "CR@2").p_value
        verdicts = {one.figure: one.verdict for one in found.differences}
        assert verdicts["CR@2"] == verdicts["radius"] == "A higher"
        assert verdicts["CR@1"] == verdicts["accuracy"] == "no difference found"
        back = compare(whole(step(b)), whole(step(a)))
        assert only(back, "CR@2").verdict == only(back, "radius").verdict == "B higher"

    def test_a_verdict_needs_the_adjusted_value(self):
        a, b = certified((2,) * 7), certified((1,) * 7)
        found = only(compare(whole(step(a)), whole(step(b))), "CR@2")
        assert found.p_value < 0.05 < found.adjusted
        assert found.verdict == "no difference found"

    def test_certificates_that_both_have(self):
        paper = Reading("paper", False, (True, True), (2, 3))
        ablation = Reading("ablation", True, (True, False), (1, None))
        a = certified((1, 1))
        b = replace(a, readings=(*a.readings, paper))
        a = replace(a, readings=(*a.readings, ablation, paper))
        found = compare(whole(step(a)), whole(step(b)))
        assert {one.certificate for one in found.differences} == {"exact", "paper*"}
        assert "* this certificate guarantees nothing" in markdown(found)

    def test_no_certificate_in_common(self):
        a, b = certified((1, 1)), certified((1, 1))
        b = replace(b, readings=(replace(b.readings[0], certificate="safer"),))
        found = compare(whole(step(a)), whole(step(b)))
        assert [one.figure for one in found.differences] == ["accuracy"]
        assert "radii are not compared, for A has the certificates exact" in found.notes[0]

    def test_other_threats_are_told(self):
        found = compare(
            whole(step(certified((1, 1)))), whole(step(certified((1, 1), threat="edits")))
        )
        assert found.notes == (
            "rate 0.3: radii are not compared, for they count substitutions in A and edits in B: "
            "certify both with the same --threat",
        )
        assert [one.figure for one in found.differences] == ["accuracy"]


class TestByClass:
    """Nine of ten texts are of class 0, and A names class 0 for all of them."""

    EXPECTED = (0,) * 9 + (1,)

    def compared(self):
        a = certified((3,) * 10, (True,) * 9 + (False,), expected=self.EXPECTED)
        b = certified((1,) * 9 + (0,), (True,) * 8 + (False, True), expected=self.EXPECTED)
        return compare(whole(step(a)), whole(step(b)))

    def test_the_constant_classifier_is_seen_through(self):
        comparison = self.compared()
        assert only(comparison, "accuracy").a == only(comparison, "accuracy").b == 0.9
        [found] = comparison.classes
        assert (found.majority, found.balanced_a) == (0.9, 0.5)
        assert found.balanced_b == pytest.approx(17 / 18)
        small = found.classes[1]
        assert (small["name"], small["texts"]) == ("1", 1)
        assert (small["recall A"], small["recall B"], small["CR@1 B"]) == (0, 1, 0)
        assert json.loads(json.dumps(comparison.to_dict()))["classes"][0]["balanced_a"] == 0.5

    def test_shown(self):
        shown = markdown(self.compared())
        assert "is right for 0.900; balanced accuracy 0.500 of A, 0.944 of B" in shown
        assert "class 1 (1 texts): recall A 0.000, CR@1 A 0.000, recall B 1.000" in shown

    def test_other_threats(self):
        a = certified((3,) * 10, expected=self.EXPECTED)
        b = replace(a, threat="characters")
        [found] = compare(whole(step(a)), whole(step(b))).classes
        assert list(found.classes[0]) == ["name", "texts", "recall A", "recall B"]

    def test_attacks(self):
        a, b = (replace(attacked(one), expected=(0, 0, 1)) for one in ("ffk", "sff"))
        place = {"method": "m", "attack": "textfooler"}
        both = [whole(step(one, "attack", place=place)) for one in (a, b)]
        [found] = compare(*both).classes
        assert found.balanced_a == 0.5 and found.balanced_b == 1
        assert found.classes[0]["Boa B"] == 0.5 and found.classes[1]["Cln A"] == 0

    def test_results_that_do_not_know_their_classes(self):
        same = whole(step(certified((1, 2))))
        assert compare(same, same).classes == ()


class TestAttacks:
    def test_figures(self):
        a, b = attacked("sskffs"), attacked("fsskff")
        found = compare(whole(step(a, "attack")), whole(step(b, "attack")))
        values = [(one.figure, one.texts, one.a, one.b) for one in found.differences]
        assert values == [
            ("Cln", 6, 5 / 6, 5 / 6),
            ("Boa", 6, 2 / 6, 3 / 6),
            ("Succ (attacked in both)", 4, 3 / 4, 1 / 4),
        ]

    def test_errors_and_other_attacks_are_told(self):
        a, b = attacked("sefs"), attacked("ssff", attack="textfooler without sentence encoder")
        found = compare(whole(step(a, "attack")), whole(step(b, "attack")))
        assert only(found, "Cln").texts == 3
        assert found.notes == (
            "rate 0.3: A was attacked by textfooler, B by textfooler without sentence encoder",
            "rate 0.3: 3 texts are compared, those that both have without an error; A has 4, B "
            "has 4",
        )

    def test_nothing_attacked_in_both(self):
        found = compare(
            whole(step(attacked("ks"), "attack")), whole(step(attacked("fk"), "attack"))
        )
        assert [one.figure for one in found.differences] == ["Cln", "Boa"]


class TestPredictions:
    def test_figures(self):
        a = Predicted(ROWS, (True,) * 6, (0.5, 0.4, 0.6, 0.5, 0.4, 0.6), (0.1,) * 6)
        b = Predicted(ROWS, (True,) * 5 + (False,), (0.1,) * 6, None)
        found = compare(whole(step(a, "predict")), whole(step(b, "predict")))
        assert [one.figure for one in found.differences] == ["accuracy", "entropy of votes"]
        entropy = found.differences[1]
        assert entropy.difference == pytest.approx(0.4) and entropy.higher_a == 6
        low, high = entropy.interval
        assert low < 0.4 < high and low > 0.3
        again = compare(whole(step(a, "predict")), whole(step(b, "predict")))
        assert again == found
        both = compare(whole(step(a, "predict")), whole(step(a, "predict")))
        assert [one.figure for one in both.differences][2:] == ["entropy of scores"]

    def test_the_sign_flip_test_against_all_flips(self):
        gaps = np.array([0.3, -0.1, 0.4, 0.2, 0.25, 0.05, -0.2])
        flips = np.array(list(itertools.product([1, -1], repeat=len(gaps))))
        exact = np.mean(np.abs(flips @ gaps) >= abs(gaps.sum()) - 1e-12)
        found = mean_difference(gaps, np.zeros(len(gaps)))
        assert found.p_value == pytest.approx(exact, abs=0.02)
        assert found.interval[0] < gaps.mean() == pytest.approx(found.difference)
        assert gaps.mean() < found.interval[1]

    def test_the_interval_covers(self):
        generator = np.random.default_rng(3)
        inside = 0
        for _ in range(60):
            gaps = generator.exponential(1, size=60)
            low, high = mean_difference(gaps, np.zeros(60)).interval
            inside += low <= 1 <= high
        assert 50 <= inside < 60

    def test_many_texts_take_little_memory(self):
        found = mean_difference(np.ones(3000) + np.arange(3000) % 2, np.zeros(3000))
        low, high = found.interval
        assert low < 1.5 < high and found.p_value == 1 / 10_000


class TestPairing:
    def test_by_place_and_measure(self):
        rates = [step(certified((1, 2)), place={"rate": rate}) for rate in (0.2, 0.3, 0.4)]
        beta = Betas((1,), (3,), (1,), (0.5,), ((0.5,),), ((0.5,),))
        others = [step(beta, "beta"), step(None, "training", place={})]
        found = compare(whole(*rates[:2], *others), whole(*rates[1:], *others))
        assert {one.step for one in found.differences} == {"rate 0.3"}
        assert found.notes == ("left out, only in A: rate 0.2", "left out, only in B: rate 0.4")

    def test_the_place_in_words(self):
        place = {"method": "RanMASK-90% (vote)", "attack": "textfooler", "seed": 0}
        a = whole(step(attacked("sf"), "attack", place=place))
        assert compare(a, a).differences[0].step == "RanMASK-90% (vote), textfooler, seed 0"

    def test_steps_without_a_place_are_what_others_build_on(self):
        built_on = [step(attacked("sf"), "attack", name=name, place={}) for name in "ab"]
        a = whole(step(certified((1, 2))), *built_on)
        assert {one.step for one in compare(a, a).differences} == {"rate 0.3"}

    def test_single_runs_whatever_their_place(self):
        a = whole(step(attacked("sf"), "attack", place={"method": "a"}))
        b = whole(step(attacked("ff"), "attack", place={"method": "b"}))
        assert {one.step for one in compare(a, b).differences} == {"attack"}
        c = whole(step(certified((1, 2))))
        with pytest.raises(DataError, match=r"A .* measures 'attack', B .* measures 'certified'"):
            compare(a, c)

    def test_nothing_in_common(self):
        rates = [step(certified((1, 2)), place={"rate": rate}) for rate in (0.2, 0.3, 0.4)]
        with pytest.raises(DataError, match=r"A has rate 0.2; rate 0.3; B has rate 0.4. To comp"):
            compare(whole(*rates[:2]), whole(rates[2]))

    def test_two_steps_at_one_place(self):
        a = whole(step(certified((1,)), name="a"), step(certified((1,)), name="b"))
        with pytest.raises(DataError, match=r"A has two steps at the place rate 0.3, a and b"):
            compare(a, a)

    def test_nothing_finished(self):
        a = whole(replace(step(None), state="todo", error="not finished (rows so far: 2)"))
        with pytest.raises(DataError, match=r"A \(x\) has no finished run.*votes: not finished"):
            compare(a, whole(step(certified((1,)))))

    def test_other_settings_are_told(self):
        a = whole(step(certified((1, 2))), settings={"base": "minilm", "masks": 5})
        b = whole(step(certified((1, 2))), settings={"base": "roberta", "masks": 5})
        assert compare(a, b).notes == ("the setting base is 'minilm' in A and 'roberta' in B",)


class TestTexts:
    def test_common_rows(self):
        a, b = certified((1, 2, 3), rows=(1, 2, 4)), certified((1, 3, 0), rows=(2, 4, 9))
        found = compare(whole(step(a)), whole(step(b)))
        assert only(found, "CR@2").a == 1 and only(found, "CR@2").b == 0.5
        assert found.notes == (
            "rate 0.3: 2 texts are compared, those that both have without an error; A has 3, B "
            "has 3",
        )

    def test_no_common_rows(self):
        a, b = certified((1,), rows=(1,)), certified((1,), rows=(2,))
        with pytest.raises(DataError, match=r"no text in common"):
            compare(whole(step(a)), whole(step(b)))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"name": "imdb"}, "name is 'sst2' in A and 'imdb' in B; only runs over the same"),
            ({"split": "train"}, "split is 'test' in A and 'train' in B"),
            ({"sha256": "b" * 64}, "sha256 of the data is aaaaaaaa... in A and bbbbbbbb... in B"),
            ({"sha256": None}, "no record says which texts"),
        ],
    )
    def test_other_data(self, change, message):
        a, b = step(certified((1, 2))), step(certified((1, 2)), data={**DATA, **change})
        with pytest.raises(DataError, match=message):
            compare(whole(a), whole(b))

    def test_the_first_rows_of_a_corpus(self):
        less = {**DATA, "rows": 2, "sha256": "b" * 64}
        a, b = step(certified((1, 2, 3, 4, 5, 6))), step(certified((1, 1)), data=less)
        assert only(compare(whole(a), whole(b)), "radius").texts == 2
        other = step(certified((1, 1), words=(11, 13)), data=less)
        with pytest.raises(DataError, match=r"row 2 has 12 words in A and 13 in B"):
            compare(whole(a), whole(other))
        unknown = step(Predicted((1,), (True,), (0.1,), None), "predict", data=less)
        full = step(Predicted((1,), (True,), (0.1,), None), "predict")
        with pytest.raises(DataError, match=r"row 1 has None words"):
            compare(whole(full), whole(unknown))

    def test_files_must_be_the_same(self):
        file = {"path": "a.csv", "sha256": "a" * 64, "columns": ["text"]}
        a = step(certified((1, 2)), data=file)
        b = step(certified((1, 2)), data={**file, "path": "copy.csv"})
        assert compare(whole(a), whole(b)).differences
        b = step(certified((1, 2)), data={**file, "sha256": "b" * 64})
        with pytest.raises(DataError, match="sha256"):
            compare(whole(a), whole(b))


class TestShown:
    @pytest.fixture
    def comparison(self):
        place = {"method": "[b]a|b[/b]", "attack": "textfooler"}
        a = step(attacked("s" * 20), "attack", place=place)
        b = step(attacked("f" * 20), "attack", place=place)
        rates = step(certified((None, None)))
        return compare(whole(a, rates), whole(b, rates))

    def test_json(self, comparison):
        values = json.loads(json.dumps(comparison.to_dict()))
        assert (values["format"], values["version"]) == ("ranmask-comparison", 1)
        assert values["a"] == values["b"] == "x, smoke"
        boa = values["differences"][1]
        assert (boa["figure"], boa["a"], boa["b"], boa["verdict"]) == ("Boa", 0, 1, "B higher")
        assert boa["interval"][0] == -1 and boa["adjusted"] == 10 * boa["p_value"]
        assert values["explanation"] == list(EXPLANATION)

    def test_markdown(self, comparison):
        lines = [line for line in markdown(comparison).splitlines() if line.startswith("|")]
        assert len(lines) == 2 + len(comparison.differences)
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
        assert "| B higher |" in lines[3] and "| 20 / 0 |" not in lines[3]
        assert "| MCB N/A | MCB N/A |" in lines[-1]
        assert all(line in markdown(comparison) for line in EXPLANATION)

    def test_terminal(self, comparison):
        console = Console(width=200, record=True, file=io.StringIO())
        print_comparison(console, comparison)
        shown = console.export_text()
        assert "[b]a|b[/b], textfooler" in shown and "B higher" in shown
        assert shown.count("textfooler") == 1  # the step is named once
        assert "p (Holm)" in shown and "<0.0001" in shown

    def test_foreign_names_stay_on_their_line(self):
        evil = "a|b\n# <script> *x* \x1b[31m \u202e"
        result = certified([1, 2])
        one = whole(step(result, place={"method": evil}))
        text = markdown(compare(replace(one, name=evil), one))
        assert not set(text) & set("\x1b\u202e")
        assert r"a\|b # \<script\> \*x\*" in text
        assert all(line.startswith(("A:", "B:", "|", "-")) for line in text.splitlines() if line)
        stream = io.StringIO()
        print_comparison(Console(file=stream, width=400), compare(replace(one, name=evil), one))
        assert not set(stream.getvalue()) & set("\x1b\u202e")
