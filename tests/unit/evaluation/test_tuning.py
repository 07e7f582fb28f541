"""Tuning: figures checked by hand, the frontier, the rules, the file of a sweep, the picture."""

import json
import math
import re
import shlex
import sys
from dataclasses import asdict, replace
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import run_cli
from ranmask import FunctionClassifier, SmoothedClassifier, SmoothingOptions
from ranmask.certificates import families
from ranmask.certificates.kept import Retention
from ranmask.cli import tune as cli_tuning
from ranmask.cli import tune_printing
from ranmask.errors import DataError, MissingDependencyError, OptionError, OutputError, TextError
from ranmask.evaluation import tuning
from ranmask.evaluation.frontier_plot import check_plot, plot_svg
from ranmask.evaluation.settings import Setting, grid, retentions_near, supported_ensembles
from ranmask.evaluation.tuning import Measured, frontier, pick, sweep
from ranmask.evaluation.tuning_file import TuneFile, figures
from ranmask.metrics import CertifiedSummary
from ranmask.models.testing import hashing_classifier, keyword_classifier

FAKE = "ranmask.models.testing:keyword_classifier"
KEEP_1 = Setting(1, None, "auto", "vote", 1000)

# With one word a copy, `good` is a vote for 1 and `bad` one for 0.  A changed word costs 2, so the
# radius is the largest d with 2 d < margin.
TEXTS = [
    ("good good good good good", 1),  # right, margin 5: radius 2
    ("good good good bad", 1),  # right, margin 2: radius 0
    ("bad bad bad", 0),  # right, margin 3: radius 1
    ("good bad", 0),  # right, for a tie goes to the lowest id; not certified
    ("good good good", 0),  # wrong, radius 1
    ("bad bad bad bad bad", 1),  # wrong, radius 2
]


def measure(settings, base=keyword_classifier, rows=TEXTS, **options):
    texts, labels = zip(*rows, strict=True)
    smoothed = SmoothedClassifier(base, keep=1, recheck=0)
    return list(sweep(smoothed, texts, labels, settings, **options))


def made(right, wrong, setting=KEEP_1):
    """Measured texts by their radii, all of one class."""
    summary = CertifiedSummary()
    for correct, radii in ((True, right), (False, wrong)):
        for radius, texts in radii.items():
            summary.add(correct=correct, radius=radius, words=1, expected=0, texts=texts)
    return Measured(setting, summary, 0.5)


def radii(found, *, correct=True):
    """How many texts have each true class and radius."""
    return {
        (expected, radius): texts
        for (expected, right, radius, _), texts in found.summary.counts.items()
        if right == correct
    }


class TestFigures:
    def test_radii_accuracy_and_score_by_hand(self):
        [one] = measure([KEEP_1])
        assert radii(one) == {(0, None): 1, (0, 1): 1, (1, 0): 1, (1, 2): 1}
        assert radii(one, correct=False) == {(0, 1): 1, (1, 2): 1}
        assert one.summary.accuracy == Fraction(4, 6)
        assert one.summary.median_radius is None  # wrong, wrong, none, 0, 1, 2: the third is none
        shares = [one.summary.certified_accuracy(changed) for changed in range(4)]
        assert shares == [Fraction(3, 6), Fraction(2, 6), Fraction(1, 6), 0]
        assert one.score(2) == Fraction(3 + 2 + 1, 18)
        assert one.seconds > 0 and one.loose == 0 and one.tolerance == 0

    def test_thresholds_by_hand(self):
        [one] = measure([KEEP_1])
        at_0, at_1, at_2, at_3 = (one.abstention(threshold, 2) for threshold in range(4))
        assert (at_0.coverage, at_0.accuracy) == (Fraction(5, 6), Fraction(3, 5))
        assert (at_1.coverage, at_1.accuracy) == (Fraction(4, 6), Fraction(2, 4))
        assert (at_2.coverage, at_2.accuracy) == (Fraction(2, 6), Fraction(1, 2))
        assert (at_3.coverage, at_3.accuracy) == (0, None)
        assert at_0.certified_accuracy == (Fraction(3, 6), Fraction(2, 6), Fraction(1, 6))
        assert at_1.certified_accuracy == (Fraction(2, 6), Fraction(1, 6), 0)
        assert at_0.never_wrong == (Fraction(4, 6), Fraction(2, 6), Fraction(1, 6))
        assert at_1.never_wrong == (Fraction(4, 6), Fraction(4, 6), Fraction(2, 6))
        assert at_2.never_wrong == (Fraction(4, 6),) * 3
        assert [one.threshold for one in (at_0, at_3)] == [0, 3]

    def test_score_ensemble_by_hand(self):
        """`good` scores 2/3 to 1/3.  Of five, the margin is 5/3, and a change costs 4/3."""
        [one] = measure([replace(KEEP_1, ensemble="score")], rows=TEXTS[:1])
        assert radii(one) == {(1, 1): 1}

    def test_every_setting_is_what_certify_says(self):
        texts = [(f"w{i} w{i + 1} w{i + 2} w{i % 5} w{i % 3} w{i % 2}", i % 3) for i in range(70)]
        settings = [
            Setting(keep, rate, family, ensemble, 12)
            for keep, rate in ((1, None), (2, None), (None, 0.5))
            for family in ("auto", "windows")
            for ensemble in ("vote", "score", "logit")
        ]
        found = measure(settings, hashing_classifier, texts)
        assert [one.setting for one in found] == settings
        for one in found:
            alone = SmoothedClassifier(hashing_classifier, **asdict(one.setting))
            right, wrong = {}, {}
            for (_, label), result in zip(
                texts, alone.certify([text for text, _ in texts]), strict=True
            ):
                counts = right if result.label_id == label else wrong
                key = label, result.radius
                counts[key] = counts.get(key, 0) + 1
            assert (radii(one), radii(one, correct=False)) == (right, wrong), one.setting
        assert len({str(sorted(one.summary.counts.items(), key=str)) for one in found}) > 6

    def test_what_the_model_was_smoothed_with_stays(self):
        def odd(texts):
            return [[0.5, 0.5 + 1e-3 * ("good" in text)] for text in texts]

        setting = Setting(2, None, "sampled", "vote", 3)
        like = SmoothedClassifier(odd, keep=1, seed=5, tolerance=1e-2, labels=["n", "p"])
        same = tuning.smoothed(like, setting)
        assert (same.options.seed, same.tolerance, same.labels) == (5, 1e-2, ("n", "p"))
        assert same.options.certificate == "exact"
        [one] = sweep(like, ["good good good"], [1], [setting])
        assert radii(one) == {(1, None): 1} and one.tolerance == 1e-2  # every vote is uncertain

    def test_another_certificate_becomes_the_exact_one(self):
        like = SmoothedClassifier(
            keyword_classifier, keep=1, certificate="ablation", alpha=0.1, selection_masks=9
        )
        assert tuning.smoothed(like, KEEP_1).options.certificate == "exact"


class TestPasses:
    def counting(self):
        shown = []

        def classify(texts):
            shown.append(len(texts))
            return keyword_classifier(texts)

        return classify, shown

    def test_ensembles_share_one_pass_of_the_model(self):
        classify, shown = self.counting()
        both = [replace(KEEP_1, ensemble=one) for one in ("vote", "score", "logit")]
        measure(both, classify)
        assert sum(shown) == sum(len(text.split()) for text, _ in TEXTS)
        measure([KEEP_1, replace(KEEP_1, keep=2), replace(both[1], keep=3)], classify)
        assert len(shown) == 1 + 3

    def test_shared_time_counts_for_each(self, monkeypatch):
        """A clock that moves on when the model works, and only then."""
        now = [0.0]
        monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])

        def classify(texts):
            now[0] += 6.0
            return keyword_classifier(texts)

        three = [replace(KEEP_1, ensemble=one) for one in ("vote", "score", "logit")]
        assert [one.seconds for one in measure(three, classify)] == [1.0, 1.0, 1.0]

    def test_progress_is_told_after_each_batch_of_texts(self):
        counts = []
        rows = [(f"good bad film {number}", 0) for number in range(70)]
        measure([KEEP_1, replace(KEEP_1, keep=2)], rows=rows, advance=counts.append)
        assert counts == [32, 32, 6] * 2

    def test_many_copies_are_remembered_in_parts(self, monkeypatch):
        monkeypatch.setattr("ranmask.smoothing.voting.COPIES_AT_ONCE", 5)
        classify, shown = self.counting()
        one, two = measure([KEEP_1, replace(KEEP_1, ensemble="logit")], classify)
        assert len(shown) > 2 and sum(shown) == sum(len(text.split()) for text, _ in TEXTS)
        assert one.summary == measure([KEEP_1])[0].summary
        assert two.summary.accuracy == one.summary.accuracy

    def test_memory_is_of_the_same_question_only(self):
        base = tuning._ScoredOnce(FunctionClassifier(hashing_classifier, hide="drop"))
        for options in ({"keep": 1}, {"keep": 2}, {"keep": 2, "family": "windows"}):
            for text in ("a b c", "a b d"):
                remembering = SmoothedClassifier(base, **options).certify([text])
                plain = SmoothedClassifier(hashing_classifier, **options, hide="drop")
                assert remembering == plain.certify([text])
        assert base.order_free and base.tolerance == 0
        assert base.configured(hide="mask").description()["hide"] == "mask"


class TestRefused:
    def test_before_the_first_text(self):
        def never(texts):
            raise AssertionError("called")

        like = SmoothedClassifier(never, keep=1)
        too_many = Setting(2, None, "all", "vote", 5)
        with pytest.raises(OptionError, match="needs 6 kept sets"):
            sweep(like, ["a", "a b c d"], [0, 0], [KEEP_1, too_many])
        with pytest.raises(DataError, match="0 texts"):
            sweep(like, [], [], [KEEP_1])
        with pytest.raises(DataError, match="1 texts and 2 labels"):
            sweep(like, ["a"], [0, 1], [KEEP_1])
        with pytest.raises(TextError, match="text 1"):
            sweep(like, ["a", " "], [0, 1], [KEEP_1])
        edits = SmoothedClassifier(never, keep=1, hide="drop", threat="edits")
        with pytest.raises(OptionError, match="needs keep=1, not 2"):
            sweep(edits, ["a"], [0], [Setting(2, None, "all", "vote", 9)])

    def test_a_class_that_the_model_does_not_have(self):
        with pytest.raises(DataError, match="class number 2, but the model knows 2"):
            measure([KEEP_1], rows=[("good", 2)])

    @pytest.mark.parametrize(
        "values",
        [
            (0, None, "auto", "vote", 9),
            (1, 0.5, "auto", "vote", 9),
            (1, None, "some", "vote", 9),
            (1, None, "auto", "sum", 9),
            (1, None, "auto", "vote", 0),
        ],
    )
    def test_settings_are_checked(self, values):
        with pytest.raises(OptionError):
            Setting(*values)


class TestGrid:
    def test_one_more_and_one_less_word_are_tried(self):
        assert retentions_near(None) == [Retention(keep=keep) for keep in (1, 2, 3)]
        assert retentions_near(Retention(keep=3)) == [Retention(keep=keep) for keep in (2, 3, 4)]
        assert retentions_near(Retention(keep=1)) == [Retention(keep=keep) for keep in (1, 2)]
        rates = [one.mask_rate for one in retentions_near(Retention(mask_rate=0.9))]
        assert rates == [0.8, 0.9, 0.95]
        assert [one.mask_rate for one in retentions_near(Retention(mask_rate=0.5))] == [0.5, 0.75]

    def test_every_combination_ensembles_last_without_repeats(self):
        found = grid(
            SmoothingOptions(keep=1),
            None,
            retentions=[Retention(keep=2), Retention(mask_rate=0.9), Retention(keep=2)],
            choices=["auto", "windows"],
            ensembles=["vote", "logit"],
            masks=7,
        )
        assert [one.name for one in found] == [
            *("keep 2, auto, vote", "keep 2, auto, logit"),
            *("keep 2, windows, vote", "keep 2, windows, logit"),
            *("rate 0.9, auto, vote", "rate 0.9, auto, logit"),
            *("rate 0.9, windows, vote", "rate 0.9, windows, logit"),
        ]
        assert {one.masks for one in found} == {7}

    def test_what_is_not_given_is_the_models_own(self):
        own = SmoothingOptions(keep=2, family="windows", masks=200, ensemble="score")
        found = grid(own, Retention(keep=2))
        assert found == [Setting(keep, None, "windows", "score", 200) for keep in (1, 2, 3)]

    def test_all_sets_in_millions_are_for_the_models_own_keep_only(self):
        table = SmoothingOptions(keep=1, family="all", masks=10**6)
        one, two = grid(table, Retention(keep=1))
        assert one == Setting(1, None, "all", "vote", 10**6)
        assert two == Setting(2, None, "auto", "vote", 1000)
        [windows] = grid(table, Retention(keep=1), retentions=[Retention(1)], choices=["windows"])
        assert windows.masks == 1000

    def test_edits_go_with_single_words(self):
        table = SmoothingOptions(keep=1, family="all", masks=10**6, threat="edits")
        for own in (Retention(keep=1), None):
            assert grid(table, own) == [Setting(1, None, "all", "vote", 10**6)]

    @pytest.mark.parametrize(
        ("base", "expected"),
        [
            (FunctionClassifier(keyword_classifier), ("vote", "score")),
            (FunctionClassifier(lambda texts: [[-3.0, 5.0]] * len(texts)), ("vote",)),
            (
                FunctionClassifier(lambda texts: [[-3, 5]] * len(texts), outputs="logits"),
                ("vote", "score", "logit"),
            ),
        ],
        ids=["probabilities", "any numbers", "logits"],
    )
    def test_ensembles_that_suit_a_model(self, base, expected):
        assert supported_ensembles(SmoothedClassifier(base, keep=1), "a b") == expected

    def test_flags_of_certify_that_mean_a_setting(self):
        flags = Setting(None, 0.95, "windows", "score", 200).flags
        assert " ".join(flags) == "--mask-rate 0.95 --family windows --ensemble score --masks 200"
        assert KEEP_1.flags[:2] == ("--keep", "1") and "--mask-rate" not in KEEP_1.flags


def measured_lists():
    """Measurements of 20 texts: some right at radius 0, some at radius 3."""
    pairs = st.tuples(st.integers(0, 10), st.integers(0, 10))
    return st.lists(
        pairs.map(lambda pair: made({0: pair[0], 3: pair[1]}, {0: 20 - sum(pair)})), min_size=1
    )


def beats(one, other, at):
    mine, theirs = ((m.summary.accuracy, m.summary.certified_accuracy(at)) for m in (one, other))
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


class TestChoosing:
    @given(measured_lists(), st.integers(1, 3))
    def test_frontier_is_what_nothing_beats(self, measured, at):
        best = frontier(measured, at)
        assert best and [one for one in measured if one in best] == best
        for one in measured:
            dominated = [other for other in best if beats(other, one, at)]
            assert bool(dominated) == (one not in best)

    def test_frontier_by_hand(self):
        a = made({0: 9}, {0: 1})  # accuracy .9, CR@1 0
        b = made({0: 2, 1: 5}, {0: 3})  # .7, .5
        c = made({0: 1, 1: 5}, {0: 4})  # .6, .5: beaten by b
        d = made({0: 9}, {0: 1})  # as a
        assert frontier([c, a, b, d], 1) == [a, b, d]
        assert frontier([c, a, b, d], 0) == [a, d]

    @given(measured_lists(), st.integers(1, 3))
    def test_the_score_rule_never_picks_the_worse_in_everything(self, measured, at):
        picked = pick(measured, "score", at)
        assert picked.score(at) == max(one.score(at) for one in measured)

    def test_paper_rule(self):
        none = made({0: 4, 9: 1}, {0: 5})  # wrong labels and one more: no median
        two = made({2: 6}, {0: 4})
        three = made({3: 6}, {0: 4})
        three_and_right = made({0: 1, 3: 6}, {0: 3})
        medians = [found.summary.median_radius for found in (none, two, three, three_and_right)]
        assert medians == [None, 2, 3, 3]
        assert pick([none, two, three], "paper", 1) is three
        assert pick([three, three_and_right, two], "paper", 1) is three_and_right
        assert pick([three_and_right, three, two], "paper", 1) is three_and_right
        assert pick([none, made({0: 6}, {0: 4})], "paper", 1).summary.median_radius == 0

    def test_paper_rule_where_no_median_is_defined(self):
        worse, better = made({None: 1}, {0: 9}), made({0: 2}, {0: 8})
        assert pick([worse, better], "paper", 3) is better
        right, certified = made({None: 9}, {0: 1}), made({0: 6}, {0: 4})
        assert pick([right, certified], "paper", 3) is certified  # no median is less than 0

    def test_score_rule(self):
        accurate = made({0: 9}, {0: 1})  # mean of CR@0..2: .3
        robust = made({2: 4}, {0: 6})  # .4
        assert pick([accurate, robust], "score", 2) is robust
        assert pick([accurate, robust], "score", 1) is accurate  # .45 and .4
        uncertified = made({None: 1, 2: 4}, {0: 5})  # .4 too, but more accurate
        assert pick([robust, uncertified], "score", 2) is uncertified

    @pytest.mark.parametrize("rule", ["score", "paper"])
    def test_equals_go_to_the_first(self, rule):
        first, second = made({1: 2}, {}), made({1: 2}, {})
        assert pick([first, second], rule, 1) is first

    def test_frontier_leaves_the_choice(self):
        assert pick([made({1: 2}, {})], "frontier", 1) is None

    def test_an_unknown_rule_or_no_settings_to_pick_from(self):
        with pytest.raises(OptionError, match="score, paper, frontier"):
            pick([made({1: 2}, {})], "best", 1)
        with pytest.raises(OptionError, match="no setting"):
            pick([], "score", 1)


SETTINGS = [KEEP_1, replace(KEEP_1, keep=2), replace(KEEP_1, keep=2, ensemble="score")]


RUN = {"data": {"name": "made", "sha256": "00"}, "model": {"base": {"kind": "function"}}}
FIGURES = {"at": 2, "thresholds": [0, 1], "rule": "score"}


class TestFile:
    def open(self, path, **other):
        return TuneFile(path, **{**RUN, "settings": SETTINGS, **other})

    def test_what_is_written(self, tmp_path):
        path = tmp_path / "tune.json"
        self.open(path).write(measure(SETTINGS[:1]), **FIGURES)
        record = json.loads(path.read_text())
        assert (record["format"], record["version"]) == ("ranmask-tune", 3)
        assert record["data"] == RUN["data"] and record["model"] == RUN["model"]
        assert record["settings"] == [asdict(setting) for setting in SETTINGS]
        assert record["complete"] is False
        assert record["picked"] == asdict(KEEP_1) and record["rule"] == "score"
        [one] = record["measured"]
        assert one["right"] == [[0, None, 1], [0, 1, 1], [1, 0, 1], [1, 2, 1]]
        assert one["wrong"] == [[0, 1, 1], [1, 2, 1]]
        assert (one["majority"], one["balanced_accuracy"]) == (0.5, 2 / 3)
        assert one["classes"][1] == {
            "name": "1",
            "texts": 3,
            "recall": 2 / 3,
            "precision": 2 / 3,
            "f1": 2 / 3,
            "certified_recall": [2 / 3, 1 / 3, 1 / 3],
        }
        assert one["accuracy"] == 4 / 6 and one["median_radius"] is None
        assert one["certified_accuracy"] == [3 / 6, 2 / 6, 1 / 6] and one["score"] == 1 / 3
        assert one["frontier"] is True and one["tolerance"] == 0 and one["loose"] == 0
        assert one["thresholds"][1] == {
            "threshold": 1,
            "coverage": 4 / 6,
            "accuracy": 1 / 2,
            "certified_accuracy": [2 / 6, 1 / 6, 0],
            "never_wrong": [4 / 6, 4 / 6, 2 / 6],
        }
        assert list(tmp_path.iterdir()) == [path]

    def test_frontier_is_marked(self, tmp_path):
        path = tmp_path / "tune.json"
        pair = [made({1: 5}, {0: 5}), made({1: 4}, {0: 6}, SETTINGS[1])]
        self.open(path).write(pair, **FIGURES)
        measured = json.loads(path.read_text())["measured"]
        assert [one["frontier"] for one in measured] == [True, False]

    def test_what_was_measured_is_read_again(self, tmp_path):
        path = tmp_path / "tune.json"
        whole = measure(SETTINGS)
        self.open(path).write(whole[:2], **FIGURES)
        again = self.open(path)
        found = [(one.setting, one.summary, one.seconds) for one in again.measured]
        assert found == [(one.setting, one.summary, one.seconds) for one in whole[:2]]
        again.write([*again.measured, whole[2]], **FIGURES)
        record = json.loads(path.read_text())
        assert record["complete"] is True
        assert [one["setting"]["ensemble"] for one in record["measured"]] == [
            *("vote", "vote", "score")
        ]

    def test_other_figures_are_no_other_run(self, tmp_path):
        path = tmp_path / "tune.json"
        self.open(path).write(measure(SETTINGS), **FIGURES)
        again = self.open(path)
        again.write(again.measured, at=1, thresholds=[4], rule="frontier")
        record = json.loads(path.read_text())
        assert record["at"] == 1 and record["picked"] is None
        assert record["measured"][0]["thresholds"][0]["threshold"] == 4

    @pytest.mark.parametrize(
        ("other", "named"),
        [
            ({"data": {"name": "made", "sha256": "01"}}, "data"),
            ({"model": {}}, "model"),
            ({"settings": SETTINGS[:2]}, "settings"),
            ({"settings": SETTINGS[:2], "model": {}}, "model, settings"),
        ],
    )
    def test_another_run_is_refused(self, tmp_path, other, named):
        path = tmp_path / "tune.json"
        self.open(path).write(measure(SETTINGS[:1]), **FIGURES)
        before = path.read_bytes()
        with pytest.raises(OutputError, match=rf"different: {named}\): give the same"):
            self.open(path, **other)
        assert path.read_bytes() == before

    def test_another_ranmask_is_refused(self, tmp_path, monkeypatch):
        path = tmp_path / "tune.json"
        self.open(path)
        monkeypatch.setattr("ranmask.evaluation.tuning_file.__version__", "99")
        with pytest.raises(OutputError, match="different: ranmask"):
            self.open(path)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "cannot read"),
            ("notes", "cannot read"),
            ("[]", "holds no JSON object|not 'ranmask-tune'"),
            ('{"format": "ranmask-run"}', "holds no JSON object|not 'ranmask-tune'"),
            ('{"format": "ranmask-tune", "version": 1}', "version 1 is not 3"),
        ],
    )
    def test_another_file_is_refused_and_left_alone(self, tmp_path, content, message):
        path = tmp_path / "tune.json"
        path.write_text(content)
        with pytest.raises(OutputError, match=message):
            self.open(path)
        assert path.read_text() == content

    @pytest.mark.parametrize(
        "damage",
        [
            lambda record: record.pop("measured"),
            lambda record: record["measured"][0].pop("right"),
            lambda record: record["measured"][0]["setting"].update(keep=0),
            lambda record: record["measured"].reverse(),
        ],
    )
    def test_a_damaged_file(self, tmp_path, damage):
        path = tmp_path / "tune.json"
        self.open(path).write(measure(SETTINGS[:2]), **FIGURES)
        record = json.loads(path.read_text())
        damage(record)
        path.write_text(json.dumps(record))
        with pytest.raises(OutputError, match=r"is damaged .*: delete it"):
            self.open(path)

    def test_a_place_that_cannot_be_written_is_told_at_once(self, tmp_path):
        with pytest.raises(OutputError, match="cannot write"):
            self.open(tmp_path / "absent" / "tune.json")


SVG = "{http://www.w3.org/2000/svg}"


def numbers(svg):
    """The numbers of the settings in a picture, and the boxes that they fill, by their font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    found = []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        style = text.get("style", "")
        if "font-size: 8px" in style and re.fullmatch(r"[\d, ]+", text.text or ""):
            shape = TextPath((0, 0), text.text, size=8, prop=FontProperties(family="DejaVu Sans"))
            left, low, right, high = shape.get_extents().extents
            x, y = float(text.get("x")), float(text.get("y"))
            half = (left + right) / 2 if "text-anchor: middle" in style else 0
            found.append((text.text, (x + left - half, y - high, x + right - half, y - low)))
    return found


def markers(svg):
    """The boxes of the settings' markers, which are 5 points wide."""
    found = []
    for spot in ElementTree.fromstring(svg).iter(f"{SVG}use"):
        if "fill: #0b62a4" in spot.get("style", "") or "fill: #7a7a7a" in spot.get("style", ""):
            x, y = float(spot.get("x")), float(spot.get("y"))
            found.append((x - 2.5, y - 2.5, x + 2.5, y + 2.5))
    return found


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


class TestPicture:
    def draw(self, measured=None, picked=0, at=2, title="made up"):
        measured = measured or measure(SETTINGS)
        chosen = None if picked is None else measured[picked]
        return plot_svg(measured, at=at, picked=chosen, title=title)

    def test_well_formed_with_a_label_for_every_setting(self):
        root = ElementTree.fromstring(self.draw(title="<a> & $b$"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
        for number, setting in enumerate(SETTINGS, 1):
            assert any((text or "").startswith(f"{number}  {setting.name}") for text in texts)
        assert "<a> & $b$" in texts and "accuracy" in texts
        assert "certified accuracy at 2 changed words (CR@2)" in texts

    def test_frontier_and_picked_setting_are_marked(self):
        a, b, c = made({0: 9}, {0: 1}), made({1: 5}, {0: 5}), made({1: 4}, {0: 6})
        texts = self.draw([a, b, c], picked=1, at=1).decode()
        assert texts.count("vote *<") == 1 and "vote * (picked)<" in texts
        assert texts.count("vote<") == 1
        assert "(picked)" not in self.draw([a, b, c], picked=None, at=1).decode()

    def test_settings_in_one_place_share_a_label(self):
        same = made({0: 9}, {0: 1})
        assert b">1, 2<" in self.draw([same, replace(same)], picked=None)

    def test_the_same_bytes_whatever_the_style(self):
        import matplotlib

        measured = measure(SETTINGS)
        before = self.draw(measured)
        style = {"lines.linewidth": 9, "axes.facecolor": "red", "figure.dpi": 30}
        with matplotlib.rc_context(style):
            assert self.draw(measured) == before
        assert b"<dc:date>" not in before

    def test_no_state_and_no_windows(self):
        import matplotlib

        matplotlib.rcParams["svg.hashsalt"] = None
        self.draw()
        assert matplotlib.rcParams["svg.hashsalt"] is None
        assert "matplotlib.pyplot" not in sys.modules

    def test_a_white_ground(self):
        _, ground = self.draw().split(b'<g id="patch_1">')
        assert b"fill: #ffffff" in ground.split(b"</g>")[0]

    def test_one_setting_and_nothing_certified(self):
        nothing = made({None: 1}, {0: 3})  # accuracy .25, CR@2 0
        svg = self.draw([nothing])
        [(label, box)] = numbers(svg)
        [marker] = markers(svg)
        assert label == "1" and not overlap(box, marker)
        assert f">1  {nothing.setting.name} * (picked)<" in svg.decode()

    @pytest.mark.parametrize(
        "points",
        [
            [(number, 0) for number in range(26)],
            [(number, number) for number in range(26)],
            [(column, row) for column in range(12) for row in range(8)],
        ],
        ids=["a row", "a slope", "a grid"],
    )
    def test_numbers_cover_neither_each_other_nor_a_marker(self, points):
        svg = self.draw([made({0: 50 - y, 2: y}, {0: x}) for x, y in points], picked=None)
        found, spots = numbers(svg), markers(svg)
        assert sorted(int(label) for label, _ in found) == list(range(1, len(points) + 1))
        assert len(spots) == len(points)
        boxes = [box for _, box in found]
        covered = [
            (label, other)
            for place, (label, box) in enumerate(found)
            for other in (*boxes[:place], *spots)
            if overlap(box, other)
        ]
        assert covered == []

    def test_each_number_is_beside_its_own_marker(self):
        measured = [made({0: 50 - 3 * n}, {0: 3 * n}) for n in range(5)]
        svg = self.draw(measured, picked=None)
        for (label, box), spot in zip(numbers(svg), markers(svg), strict=True):
            across, up = ((box[i] + box[i + 2] - spot[i] - spot[i + 2]) / 2 for i in (0, 1))
            assert math.hypot(across, up) < 20, label

    def test_a_picture_that_cannot_be_drawn_is_told_before(self, tmp_path, monkeypatch):
        check_plot(tmp_path / "f.svg")
        with pytest.raises(OutputError, match="no folder"):
            check_plot(tmp_path / "absent" / "f.svg")
        with pytest.raises(OutputError, match="is a folder"):
            check_plot(tmp_path)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(MissingDependencyError, match=r"pip install 'ranmask\[plots\]'"):
            check_plot(tmp_path / "f.svg")


@pytest.fixture
def reviews(tmp_path):
    """A corpus of one part each, so that validation is not carved."""
    for split in ("train", "validation", "test"):
        rows = "".join(f"{text},{('bad', 'good')[label]}\n" for text, label in TEXTS)
        (tmp_path / f"{split}.csv").write_text("text,label\n" + rows)
    return tmp_path


def tune(data, *arguments, model=FAKE):
    given = ["tune", "--data", str(data), "--model", model, *map(str, arguments)]
    return run_cli(*given)


class TestCommand:
    def test_the_table_has_a_line_for_each_setting(self, reviews):
        done = tune(reviews, "--keep", "1,2", "--ensemble", "vote", "--at", 2)
        assert done.exit_code == 0, done.stderr
        head, one, two, *_ = done.stdout.splitlines()
        columns = ["setting", "accuracy", "balanced", "MCB", "CR@1", "CR@2", "s/text", "frontier"]
        assert head.split() == columns
        cells = one.split("  ")
        assert cells[0] == "keep 1, auto, vote" and one.endswith("*")
        assert one.replace("*", "").split()[4:9] == ["0.667", "0.667", "N/A", "0.333", "0.167"]
        assert two.startswith("keep 2, auto, vote")

    def test_thresholds_and_pick(self, reviews):
        arguments = ("--keep", 1, "--ensemble", "vote", "--at", 2, "--masks", 50)
        done = tune(reviews, *arguments, "--threshold", "1,3")
        lines = [line.split() for line in done.stdout.splitlines()]
        assert ["1", "0.667", "0.500", "0.000", "0.333"] in lines
        assert ["3", "0.000", "N/A", "0.000", "0.667"] in lines
        assert "Picked by --rule score (largest mean of CR@0 to CR@2, 0.333):" in done.stdout
        flags = "--keep 1 --family auto --ensemble vote --masks 50"
        assert done.stdout.splitlines()[-1] == f"ranmask certify --model {FAKE} {flags}"

    def test_each_rule_says_what_it_picks(self, reviews):
        arguments = ("--keep", "1,2", "--ensemble", "vote,score")
        paper = tune(reviews, *arguments, "--rule", "paper").stdout
        assert "Picked by --rule paper (largest median radius, N/A):" in paper
        free = tune(reviews, *arguments, "--rule", "frontier").stdout
        assert "On the frontier:" in free and "threshold" not in free
        stars = sum(line.endswith("  *") for line in free.splitlines())
        assert free.count("ranmask certify") == stars >= 1

    def test_the_picked_command_is_what_was_measured(self, reviews):
        labels = ("--labels", "bad,good", "--hide", "drop")
        done = tune(reviews, "--mask-rate", 0.5, "--ensemble", "score", *labels)
        *_, command = done.stdout.splitlines()
        assert "--labels bad,good --hide drop" in command
        again = run_cli(*shlex.split(command)[1:], "--data", str(reviews), "--split", "validation")
        assert again.exit_code == 0, again.stderr
        accuracy = done.stdout.splitlines()[1].split()[4]
        assert f"accuracy {accuracy}" in again.stderr

    def test_settings_that_are_tried_by_default(self, reviews):
        done = tune(reviews, "--rows", 2)
        names = [line.split("  ")[0] for line in done.stdout.splitlines()[1:7]]
        assert names == [
            f"keep {keep}, auto, {ensemble}" for keep in (1, 2, 3) for ensemble in ("vote", "score")
        ]

    def test_split_and_rows(self, reviews):
        (reviews / "test.csv").write_text("text,label\ngood good good,good\nbad bad,good\n")
        arguments = ("--keep", 1, "--ensemble", "vote")
        both = tune(reviews, "--split", "test", *arguments).stdout.splitlines()[1]
        first = tune(reviews, "--split", "test", "--rows", 1, *arguments).stdout.splitlines()[1]
        assert "0.500" in both and "1.000" in first

    def test_names_of_classes_are_matched(self, reviews):
        one = ("--keep", 1, "--ensemble", "vote")
        accuracy = [
            tune(reviews, *one, "--labels", labels).stdout.splitlines()[1].split()[4]
            for labels in ("BAD,good", "good,bad")
        ]
        assert accuracy == ["0.667", "0.333"]
        done = tune(reviews, *one, "--labels", "spam,ham")
        assert done.exit_code == 2 and "class 'bad', the model has spam, ham" in done.stderr

    def test_output_and_picture(self, reviews):
        output, svg = reviews / "tune.json", reviews / "frontier.svg"
        arguments = ("--keep", "1,2", "--output", output, "--svg", svg)
        done = tune(reviews, *arguments)
        assert done.exit_code == 0
        record = json.loads(output.read_text())
        assert record["complete"] and len(record["measured"]) == 4
        assert record["data"]["rows"] == 6 and record["data"]["split"] == "validation"
        assert record["model"]["base"]["function"] == FAKE
        root = ElementTree.fromstring(svg.read_bytes())
        shown = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
        assert f"{FAKE} on {reviews}, 6 validation texts" in shown

    def test_resumed_where_it_stopped(self, reviews, monkeypatch):
        output = reviews / "tune.json"
        arguments = ("--keep", "1,2,3", "--ensemble", "vote", "--output", output)
        swept = []
        real = tuning.sweep

        def stops(classifier, texts, labels, settings, **options):
            for one in real(classifier, texts, labels, settings, **options):
                if len(swept) == 2:
                    raise KeyboardInterrupt
                swept.append(one.setting.keep)
                yield one

        monkeypatch.setattr(tuning, "sweep", stops)
        done = tune(reviews, *arguments)
        assert done.exit_code == 130 and f"the same command resumes {output}" in done.stderr
        assert len(json.loads(output.read_text())["measured"]) == 2
        seconds = [one["seconds_per_text"] for one in json.loads(output.read_text())["measured"]]
        swept.clear()
        done = tune(reviews, *arguments)
        assert done.exit_code == 0 and swept == [3]
        assert f"resuming {output} after 2 of 3 settings" in done.stderr
        record = json.loads(output.read_text())
        assert record["complete"]
        assert [one["seconds_per_text"] for one in record["measured"]][:2] == seconds
        swept.clear()
        again = tune(reviews, *arguments, "--at", 1, "--rule", "paper")
        assert again.exit_code == 0 and swept == []
        assert json.loads(output.read_text())["at"] == 1
        assert again.stdout.splitlines()[0].split()[-3:] == ["CR@1", "s/text", "frontier"]

    def test_another_run_is_refused(self, reviews):
        output = reviews / "tune.json"
        tune(reviews, "--keep", 1, "--output", output)
        for other in (["--keep", 2], ["--keep", 1, "--rows", 3], ["--keep", 1, "--hide", "drop"]):
            done = tune(reviews, *other, "--output", output)
            assert done.exit_code == 1 and "belongs to another run" in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--keep", "x"], "--keep takes whole numbers, as 2 or 1,2,3; not 'x'"),
            (["--keep", "1,,2"], "--keep takes"),
            (["--keep", ""], "--keep is empty: give a value, or leave it out"),
            (["--keep", "0"], "at least 1, not 0"),
            (["--mask-rate", "much"], "--mask-rate takes numbers"),
            (["--mask-rate", "1.0"], "not including, 1"),
            (["--family", "auto,"], "--family must be one of"),
            (["--family", "auto,some"], "--family must be one of auto, all"),
            (["--ensemble", "sum"], "--ensemble must be one of vote"),
            (["--threshold", "a"], "--threshold takes whole numbers"),
            (["--threshold", "-1"], "at least 0, not -1"),
            (["--rule", "best"], "--rule must be one of score, paper, frontier"),
            (["--at", "0"], "--at must be a whole number of at least 1, not 0"),
            (["--masks", "0"], "--masks must be a whole number of at least 1, not 0"),
            (["--rows", "0"], "rows must be a whole number of at least 1"),
            (["--split", "dev"], "split must be one of"),
            (["--pair-columns", "a"], "--pair-columns takes two names"),
            (["--device", "cpu"], "means nothing for a Python function"),
            (["--keep", "2", "--family", "all", "--masks", "3"], "needs 6 kept sets"),
        ],
    )
    def test_wrong_flags_are_one_line_and_exit_2(self, reviews, arguments, message):
        done = tune(reviews, *arguments)
        assert done.exit_code == 2, done.output
        assert message in done.stderr and done.stdout == ""
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--svg", "absent/f.svg"], "there is no folder "),
            (["--output", "absent/t.json"], "cannot write absent/t.json"),
        ],
    )
    def test_places_that_cannot_be_written(self, reviews, arguments, message):
        done = tune(reviews, *arguments)
        assert done.exit_code == 1 and message in done.stderr and done.stdout == ""

    def test_missing_matplotlib_is_told_before_any_work(self, reviews, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        done = tune("./absent.csv", "--svg", reviews / "f.svg")
        assert done.exit_code == 1
        assert done.stderr == "error: matplotlib is not installed: pip install 'ranmask[plots]'\n"
        assert tune(reviews).exit_code == 0

    def test_the_model_is_loaded_once(self, reviews, monkeypatch):
        from ranmask.smoothing import store

        loads = []
        real = store.load_classifier
        monkeypatch.setattr(
            store, "load_classifier", lambda *a, **o: (loads.append(a), real(*a, **o))[1]
        )
        tune(reviews)
        assert loads == [(FAKE,)]

    def test_what_a_tolerance_leaves_open_is_said(self, capsys):
        for tolerance, said in ((0.0, "changed.\n"), (1e-5, "changed, but for votes as near as")):
            one = replace(made({1: 2}, {}), tolerance=tolerance)
            how = {"at": 1, "thresholds": (0,), "rule": "score", "names": ("n", "p")}
            tune_printing.show([one], one, figures([one], **how))
            assert f"whichever 1 words are {said}" in capsys.readouterr().out

    def test_on_a_terminal(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        tune_printing.print_table(["setting", "accuracy", "frontier"], [["keep 1", "0.5", "*"]])
        shown = capsys.readouterr().out
        assert "│" in shown and "keep 1" in shown and "*" in shown


class TestByClass:
    """A model that always names one class: good figures, and nothing learned."""

    @pytest.fixture
    def skewed(self, tmp_path):
        rows = [("bad bad bad bad", "bad")] * 9 + [("bad bad bad", "good")]
        for split in ("train", "validation"):
            (tmp_path / f"{split}.csv").write_text(
                "text,label\n"
                + "".join(f"{text} {n},{label}\n" for n, (text, label) in enumerate(rows))
            )
        return tmp_path

    def test_the_majority_is_told(self, skewed):
        done = tune(skewed, "--keep", 1, "--ensemble", "vote", "--at", 1, "--labels", "bad,good")
        assert done.exit_code == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[1].split()[4:6] == ["0.900", "0.500"]  # accuracy, balanced
        assert "Naming the largest class for every text has accuracy 0.900." in done.stdout
        cells = {line.split()[0]: line.split()[1:6] for line in lines if line}
        assert cells["bad"] == ["9", "1.000", "0.900", "0.947", "1.000"]
        assert cells["good"] == ["1", "0.000", "0.000", "0.000", "0.000"]
        assert "warning: it is no more accurate than naming the largest class" in done.stdout

    def test_no_warning_where_something_was_learned(self, reviews):
        done = tune(reviews, "--keep", 1, "--ensemble", "vote")
        assert "warning" not in done.stdout


class TestBeforeTheFirstSetting:
    """How many rows of how many, and what it will cost, before any is measured."""

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "reviews.csv"
        rows = "".join(f"good film number{n},good\nbad play number{n},bad\n" for n in range(45))
        path.write_text("text,label\n" + rows)
        return path

    def test_rows_of_a_file(self, file):
        done = tune(file, "--keep", 1, "--ensemble", "vote")
        assert done.exit_code == 0, done.stderr
        first = done.stderr.splitlines()[0]
        assert f"{file}, validation: 9 of 90 rows (9 rows carved by a fixed seed)" in first
        assert "--split all takes every row" in first

    def test_all_rows(self, file):
        done = tune(file, "--keep", 1, "--ensemble", "vote", "--split", "all")
        assert done.exit_code == 0, done.stderr
        assert done.stderr.splitlines()[0] == f"{file}, all: 90 rows"
        some = tune(file, "--keep", 1, "--ensemble", "vote", "--split", "all", "--rows", 5)
        assert some.stderr.startswith(f"{file}, all: 5 of 90 rows (the first 5 of 90 rows)\n")

    def test_all_rows_are_those_of_a_file(self, reviews):
        done = tune(reviews, "--split", "all")
        assert done.exit_code == 2 and "has parts of its own" in done.stderr

    def test_no_advice_where_all_rows_are_used(self, reviews):
        done = tune(reviews, "--keep", 1, "--ensemble", "vote")
        assert done.stderr.splitlines()[0] == f"{reviews}, validation: 6 rows"

    def test_copies_and_time_are_told_before_the_sweep(self, reviews, monkeypatch):
        said = []
        real = tuning.sweep
        monkeypatch.setattr(cli_tuning, "say", said.append)
        monkeypatch.setattr(
            tuning, "sweep", lambda *a, **o: (said.append("swept"), real(*a, **o))[1]
        )
        tune(reviews, "--keep", "1,2", "--ensemble", "vote,score")
        before = said[: said.index("swept")]
        words = [len(text.split()) for text, _ in TEXTS]
        once, twice = sum(words), sum(n * (n - 1) // 2 for n in words)
        assert before[1].startswith(f"keep 1, auto, vote and score: {once} masked copies, ")
        assert before[2].startswith(f"keep 2, auto, vote and score: {twice} masked copies, ")
        assert before[3].startswith(f"4 settings, 6 texts: {once + twice} copies, ")

    def test_time_is_estimated_from_the_copies(self, monkeypatch):
        """A classifier that takes a hundredth of a second for each copy."""
        clock = [0.0]
        monkeypatch.setattr("ranmask.evaluation.tuning.time.perf_counter", lambda: clock[0])

        def slow(texts):
            clock[0] += 0.01 * len(texts)
            return keyword_classifier(texts)

        texts = [f"good {'film ' * (n % 7)}end" for n in range(40)]
        settings = [KEEP_1, replace(KEEP_1, ensemble="score"), replace(KEEP_1, family="windows")]
        found = tuning.costs(SmoothedClassifier(slow, keep=1, recheck=0), texts, settings)
        assert [one.settings for one in found] == [tuple(settings[:2]), (settings[2],)]
        copies = sum(len(text.split()) for text in texts)
        assert [one.copies for one in found] == [copies, copies]
        for one in found:  # two ensembles share one pass of the model
            assert one.seconds == pytest.approx(0.01 * copies)

    def test_a_slow_text_is_the_only_one_tried(self, monkeypatch):
        clock, shown = [0.0], []
        monkeypatch.setattr("ranmask.evaluation.tuning.time.perf_counter", lambda: clock[0])

        def slow(texts):
            clock[0] += 5.0
            shown.extend(texts)
            return keyword_classifier(texts)

        texts = [f"{'good ' * n}end" for n in range(1, 31)]
        tuning.costs(SmoothedClassifier(slow, keep=1, recheck=0), texts, [KEEP_1])
        assert len(shown) == 2 + 17  # the shortest once, and the one in the middle

    def test_progress_of_each_setting(self, reviews):
        done = tune(reviews, "--keep", "1,2,3", "--ensemble", "vote")
        *_, one, two = done.stderr.splitlines()
        assert (
            one.startswith("keep 1, auto, vote: measured, ")
            and "still to go: 2 of the settings" in one
        )
        assert (
            two.startswith("keep 2, auto, vote: measured, ")
            and "still to go: 1 of the settings" in two
        )

    @pytest.mark.parametrize("choice", ["auto", "all", "sampled", "windows"])
    @pytest.mark.parametrize("keep", [1, 2, 3, 6])
    @pytest.mark.parametrize("masks", [4, 20])
    def test_sizes_are_those_of_the_families(self, choice, keep, masks):
        for words in range(keep, 9):
            if choice == "all" and math.comb(words, keep) > masks:
                continue
            made = families.family(words, keep, choice=choice, masks=masks)
            size = families.family_size(words, keep, choice=choice, masks=masks)
            assert size == len(made)


def test_threats_that_cannot_be_undone_are_refused():
    from ranmask import load_default
    from ranmask.errors import OptionError
    from ranmask.evaluation.settings import grid
    from ranmask.evaluation.tuning import sweep

    classifier = load_default("news-words", threat="insertions")
    with pytest.raises(OptionError, match="not for threat='insertions'"):
        sweep(classifier, ["Oil prices rise"], [2], grid(classifier.options, None))
