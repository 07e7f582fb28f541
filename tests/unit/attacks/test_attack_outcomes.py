"""Outcomes, what they amount to, and how they look on a terminal."""

import io
import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ranmask import DataError
from ranmask.attacks.outcome import AttackOutcome, AttackSummary, Change, changes_between, summarise
from ranmask.cli.attack_printing import print_attack_summary, print_outcome, print_pace

words = st.text("ab[]é\u2003 ", min_size=1, max_size=5)
shares = st.none() | st.floats(0, 1)


def success(**changed):
    values = AttackOutcome(
        number=3,
        text="a good film",
        label=1,
        status="succeeded",
        adversarial="a poor film",
        clean_label=1,
        final_label=0,
        queries=12,
        words=3,
        words_changed=1,
        changes=(Change(1, "good", "poor"),),
        clean_share=0.75,
        final_share=0.25,
        entropy=0.5,
        rechecked=True,
    )
    return replace(values, **changed)


def pair(**changed):
    return success(
        text=("one two", "a good film"),
        adversarial=("one tow", "a poor film"),
        changes=(Change(1, "two", "tow", premise=True), Change(1, "good", "poor")),
        words_changed=2,
        **changed,
    )


def failure(**changed):
    return success(
        status="failed", final_label=1, rechecked=None, adversarial="a fine film", **changed
    )


def skipped(**changed):
    return AttackOutcome(
        *(4, "bad film", 1, "skipped"), clean_label=0, queries=1, words=2, entropy=0.25, **changed
    )


def error():
    return AttackOutcome(5, "", 1, "error", error="the text has no words: ''")


def nothing():
    return AttackOutcome(1, None, None, "error", error="not valid JSON")


class TestJson:
    @pytest.mark.parametrize("make", [success, pair, failure, skipped, error, nothing])
    def test_there_and_back(self, make):
        outcome = make()
        line = outcome.to_dict()
        assert AttackOutcome.from_dict(line) == outcome
        again = AttackOutcome.from_dict(json.loads(json.dumps(line)))
        assert again == outcome and hash(again) == hash(outcome)
        assert list(line)[:3] == ["version", "row", "text"] and "number" not in line

    @given(
        text=st.none() | words | st.tuples(words, words),
        numbers=st.lists(st.integers(0, 99), min_size=4, max_size=4),
        floats=st.tuples(shares, shares, shares, shares),
        changes=st.lists(st.builds(Change, st.integers(0, 9), words, words, st.booleans())),
        rechecked=st.sampled_from((None, True, False)),
    )
    def test_anything_there_and_back(self, text, numbers, floats, changes, rechecked):
        outcome = AttackOutcome(
            *(numbers[0], text, numbers[1], "succeeded"),
            adversarial=text,
            queries=numbers[2],
            words_changed=numbers[3],
            changes=tuple(changes),
            **dict(zip(("clean_share", "final_share", "entropy", "reverted"), floats, strict=True)),
            rechecked=rechecked,
        )
        assert AttackOutcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome

    def test_a_line_by_hand(self):
        line = json.loads(json.dumps(pair(budget=2, radius=1, reverted=0.5).to_dict()))
        assert line == {
            "version": 1,
            "row": 3,
            "text": ["one two", "a good film"],
            "label": 1,
            "status": "succeeded",
            "error": None,
            "adversarial": ["one tow", "a poor film"],
            "clean_label": 1,
            "final_label": 0,
            "queries": 12,
            "words": 3,
            "words_changed": 2,
            "changes": [
                {"position": 1, "before": "two", "after": "tow", "premise": True},
                {"position": 1, "before": "good", "after": "poor", "premise": False},
            ],
            "unit": "substitutions",
            "distance": 0,
            "budget": 2,
            "radius": 1,
            "clean_share": 0.75,
            "final_share": 0.25,
            "entropy": 0.5,
            "rechecked": True,
            "reverted": 0.5,
        }

    @pytest.mark.parametrize("version", [0, 2, None, "1"])
    def test_another_version_is_refused(self, version):
        line = {**success().to_dict(), "version": version}
        with pytest.raises(DataError, match=f"version {version!r} is not 1, the one this ranmask"):
            AttackOutcome.from_dict(line)
        del line["version"]
        with pytest.raises(DataError, match="version None"):
            AttackOutcome.from_dict(line)

    @pytest.mark.parametrize("name", ["row", "queries", "status", "changes"])
    def test_what_is_missing_is_named(self, name):
        line = success().to_dict()
        del line[name]
        with pytest.raises(DataError, match=f"not an AttackOutcome: no {name}"):
            AttackOutcome.from_dict(line)

    def test_other_keys_are_left_alone(self):
        assert AttackOutcome.from_dict({**success().to_dict(), "more": 1}) == success()


class TestChanges:
    def test_words_that_differ(self):
        assert changes_between("a (good) film", "a\t(poor)  film") == (
            Change(1, "(good)", "(poor)"),
        )
        assert changes_between("a b", "a b") == ()

    def test_pairs(self):
        assert changes_between(("one two", "a b c"), ("one tow", "x b y")) == (
            Change(1, "two", "tow", premise=True),
            Change(0, "a", "x"),
            Change(2, "c", "y"),
        )

    def test_as_many_words(self):
        with pytest.raises(ValueError, match="zip"):
            changes_between("a b", "a b c")

    def test_words_that_came_and_went(self):
        assert changes_between("a b c d e", "b c x d e", moved=True) == (
            Change(0, "a", ""),
            Change(3, "", "x"),
        )


class TestSummary:
    def test_distances_are_counted_in_the_recipes_unit(self):
        values = summarise(
            [success(unit="edits", distance=3), success(unit="edits", distance=6)]
        ).values()
        assert (values["unit"], values["distance"]) == ("edits", 4.5)
        assert summarise([]).values()["unit"] == "substitutions"

    def outcomes(self):
        """10 texts: 2 wrong before, 3 fooled, 5 not; and one that could not be used."""
        return [
            *(skipped(), skipped()),
            success(queries=10, words=10, words_changed=1, reverted=0.25, entropy=0.25),
            success(queries=20, words=4, words_changed=2, reverted=0.75, entropy=0.5),
            success(queries=30, words=5, words_changed=3, rechecked=False, entropy=0.75),
            *(failure(queries=100, entropy=0.0) for _ in range(5)),
            error(),
        ]

    def test_by_hand(self):
        summary = summarise(self.outcomes())
        assert (summary.texts, summary.attempted, summary.errors) == (10, 8, 1)
        assert summary.clean_accuracy == Fraction(8, 10)
        assert summary.robust_accuracy == Fraction(5, 10)
        assert summary.success_rate == Fraction(3, 8)
        assert summary.confirmed_success_rate == Fraction(2, 8)
        values = summary.values()
        assert (values["clean_accuracy"], values["robust_accuracy"], values["success_rate"]) == (
            0.8,
            0.5,
            0.375,
        )
        assert values["confirmed_success_rate"] == 0.25
        assert values["queries"] == 560 / 8  # of those attacked
        assert values["words_changed"] == 2  # of the successes
        assert values["share_changed"] == pytest.approx((0.1 + 0.5 + 0.6) / 3)
        assert values["entropy"] == pytest.approx((0.25 * 2 + 0.25 + 0.5 + 0.75) / 10)
        assert (values["reverted"], values["mostly_reverted"]) == (0.5, 0.5)
        counts = ("texts", "attempted", "succeeded", "failed", "skipped", "errors")
        assert [values[name] for name in counts] == [10, 8, 3, 5, 2, 1]

    def test_the_same_in_any_order_and_one_by_one(self):
        backwards = AttackSummary()
        for outcome in reversed(self.outcomes()):
            backwards.count(outcome)
        one, other = backwards.values(), summarise(self.outcomes()).values()
        assert one.pop("classes") == other.pop("classes")
        assert one == pytest.approx(other)

    def test_by_class(self):
        """Of class 0 all are wrong before, of class 1 half hold."""
        outcomes = [*[replace(skipped(), label=0)] * 2, success(), failure()]
        values = summarise([*outcomes, failure(), error()], ("neg", "pos")).values()
        assert (values["clean_accuracy"], values["majority"]) == (0.6, 0.6)
        assert (values["balanced_clean_accuracy"], values["balanced_robust_accuracy"]) == (
            0.5,
            pytest.approx(1 / 3),
        )
        assert values["classes"] == [
            {"name": "neg", "texts": 2, "clean_accuracy": 0.0, "robust_accuracy": 0.0},
            {"name": "pos", "texts": 3, "clean_accuracy": 1.0, "robust_accuracy": 2 / 3},
        ]

    def test_boa_is_cln_without_the_successes(self):
        summary = summarise(self.outcomes())
        rate = summary.success_rate
        assert summary.robust_accuracy == summary.clean_accuracy * (1 - rate)

    def test_nothing_was_attacked(self):
        values = summarise([skipped()]).values()
        assert (values["clean_accuracy"], values["robust_accuracy"], values["success_rate"]) == (
            0,
            0,
            None,
        )
        assert values["queries"] is None and values["entropy"] == 0.25
        assert values["reverted"] is None and values["words_changed"] is None

    @pytest.mark.parametrize("errors", [0, 1])
    def test_no_texts(self, errors):
        values = summarise([error()] * errors).values()
        assert (
            values["clean_accuracy"] is None
            and values["robust_accuracy"] is None
            and values["success_rate"] is None
        )
        assert values["errors"] == errors

    def test_plain_json(self):
        values = summarise(self.outcomes()).values()
        assert json.loads(json.dumps(values)) == values
        assert not any(isinstance(value, float) and math.isnan(value) for value in values.values())


class TestGap:
    """Certified radii, and the smallest attacks that were found."""

    def outcomes(self):
        return [
            success(radius=1, distance=2),
            success(radius=2, distance=5),
            failure(radius=3),
            skipped(radius=0),
            error(),
        ]

    def test_by_hand(self):
        gap = summarise(self.outcomes()).values()["gap"]
        assert (gap["broken"], gap["certified"], gap["broken_by"], gap["apart"]) == (2, 1.5, 3.5, 2)
        assert gap["curve"] == [
            [0.75, 0.75],
            [0.75, 0.75],
            [0.5, 0.5],
            [0.25, 0.5],
            [0.0, 0.5],
            [0.0, 0.25],
        ]

    def test_only_where_something_is_certified(self):
        assert "gap" not in summarise([success(), failure(), skipped(radius=2)]).values()

    def test_a_changed_premise_is_covered_by_no_radius(self):
        values = summarise([pair(radius=1), success(radius=0, distance=1)]).values()
        assert (values["gap"]["broken"], values["gap"]["apart"]) == (1, 1)

    def test_nothing_was_broken(self):
        gap = summarise([failure(radius=1)]).values()["gap"]
        assert gap["apart"] is None and gap["curve"] == [[1.0, 1.0], [1.0, 1.0]]

    def test_in_words_and_as_a_picture(self):
        summary = summarise(self.outcomes())
        _, plain = shown(print_attack_summary, "anywords", summary, width=300)
        line = "certified 1.5 words on average, broken by 3.5: 2.0 apart, over the 2 texts"
        assert line in plain
        console = Console(file=io.StringIO(), force_terminal=False, width=300)
        print_attack_summary(console, "anywords", summary)
        assert line in console.file.getvalue() and "█" not in console.file.getvalue()
        rows = [row for row in plain.splitlines() if "%" in row and ("█" in row or "░" in row)]
        assert rows[0].split() == ["0", "75.0%", "75.0%", "█" * 30]
        assert rows[3].split() == ["3", "25.0%", "50.0%", "█" * 10 + "░" * 10]
        many = summarise([success(radius=number, distance=200) for number in range(99)])
        assert len(shown(print_attack_summary, "anywords", many)[1].splitlines()) < 25


def shown(print_it, *arguments, width=100):
    console = Console(
        record=True,
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        no_color=False,
    )
    print_it(console, *arguments)
    return console.export_text(styles=True, clear=False), console.export_text()


class TestRendering:
    before, after = "\x1b[1;32m", "\x1b[1;31m"

    def marks(self, styled):
        """How many words are marked, below the title."""
        body = styled.split("\n", 1)[1]
        return body.count(self.before), body.count(self.after)

    def test_changed_words_are_marked_and_no_others(self):
        styled, plain = shown(print_outcome, success(), None)
        assert f"a {self.before}good\x1b[0m film" in styled
        assert f"a {self.after}poor\x1b[0m film" in styled
        assert self.marks(styled) == (1, 1)
        assert "row 3: succeeded, 1 of 3 words changed, 12 queries" in plain
        left, right = plain.splitlines()[2].split("film", 1)
        assert left == "a good " and right.split() == ["a", "poor", "film"]

    def test_equal_words_elsewhere_are_not_marked(self):
        outcome = success(
            text="good so good",
            adversarial="good so poor",
            changes=changes_between("good so good", "good so poor"),
        )
        styled, _ = shown(print_outcome, outcome, None)
        assert f"good so {self.before}good" in styled and f"good so {self.after}poor" in styled
        assert self.marks(styled) == (1, 1)

    def test_premise_and_hypothesis(self):
        styled, plain = shown(print_outcome, pair(), None)
        assert f"{self.before}two" in styled and f"{self.after}tow" in styled
        assert f"{self.before}good" in styled and f"{self.after}poor" in styled
        assert self.marks(styled) == (2, 2)
        assert "one two / a good film" in plain and "one tow / a poor film" in plain

    def test_only_the_hypothesis_of_a_pair(self):
        outcome = replace(pair(), changes=(Change(1, "good", "poor"),))
        styled, _ = shown(print_outcome, outcome, None)
        assert f"{self.before}good" in styled and f"{self.before}two" not in styled

    def test_labels_and_shares(self):
        _, plain = shown(print_outcome, success(), ("negative", "positive"))
        heading = plain.splitlines()[1]
        assert heading.split("  ")[0] == "positive (true class 0.75)"
        assert "negative (true class 0.25)" in heading
        _, plain = shown(print_outcome, success(final_share=None), None)
        assert plain.splitlines()[1].split() == ["1", "(true", "class", "0.75)", "0"]

    def test_what_is_gone_on_fresh_masks(self):
        assert "gone on fresh masks" in shown(print_outcome, success(rechecked=False), None)[1]
        assert "gone on fresh masks" not in shown(print_outcome, success(), None)[1]
        assert "gone on fresh masks" not in shown(print_outcome, failure(), None)[1]

    def test_brackets_in_a_text_are_words(self):
        text = "a [bold]good[/bold] [MASK] :smile:"
        changes = changes_between(text, "a x [MASK] :smile:")
        outcome = success(text=text, adversarial="a x [MASK] :smile:", changes=changes)
        assert text in shown(print_outcome, outcome, None)[1]

    def test_failed_skipped_and_broken(self):
        assert "row 3: failed, 1 of 3" in shown(print_outcome, failure(), None)[1]
        plain = shown(print_outcome, skipped(), ("neg", "pos"))[1]
        assert plain == "row 4: skipped, neg instead of pos before any attack\n"
        assert shown(print_outcome, error(), None)[1] == "row 5: error, the text has no words: ''\n"

    def test_long_texts_are_not_cut(self):
        text = " ".join(f"word{n}" for n in range(60)) + " " + "x" * 90
        outcome = success(text=text, adversarial=text, changes=())
        plain = "".join(shown(print_outcome, outcome, None, width=60)[1].split())
        assert all(plain.count(f"word{n}") >= 2 for n in range(60)) and plain.count("x") == 180


class TestSummaryRendering:
    def lines(self, outcomes, name="textfooler without tagger"):
        summary = summarise(outcomes)
        return shown(print_attack_summary, name, summary, width=300)[1].splitlines()

    def test_figures(self):
        made = [
            *(skipped(), error(), failure(queries=8, entropy=0.25)),
            success(queries=4, words=4, entropy=0.25, reverted=0.5),
        ]
        first, second, third, head, one = self.lines(made)
        assert third == "majority class alone 100.0%  balanced Cln 66.7%  balanced Boa 33.3%"
        assert head.split() == ["class", "texts", "Cln", "Boa"]
        assert one.split() == ["1", "3", "0.667", "0.333"]
        assert first == (
            "textfooler without tagger: 3 texts, 2 attacked, 1 skipped (wrong before), "
            "1 with errors"
        )
        assert second == (
            "Cln 66.7%  Boa 33.3%  Succ 50.0%  queries 6.0  words changed 1.0 (25%)  "
            "entropy 0.250  right again with 10% of the words masked 50%"
        )

    def test_fresh_masks_are_named_where_they_differ(self):
        assert "Succ on fresh masks 0.0%" in self.lines([success(rechecked=False)])[1]
        assert "fresh masks" not in self.lines([success()])[1]

    def test_nothing_but_errors(self):
        assert len(self.lines([error()])) == 1
        assert "0 texts" in self.lines([])[0]

    def test_nothing_attacked(self):
        assert self.lines([skipped()])[1] == "Cln 0.0%  Boa 0.0%  entropy 0.250"


def test_pace():
    assert shown(print_pace, 12_000, 2.0)[1] == "12,000 masked copies in 2.0 s, 6,000 a second\n"
    assert shown(print_pace, 0, 0.0)[1] == ""
    assert "5 masked copies in 0.0 s" in shown(print_pace, 5, 0.0)[1]
