"""Four certificates side by side, and certificates that show their copies."""

import io
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from ranmask import Certificate, OptionError, SmoothedClassifier
from ranmask.cli import printing
from ranmask.data.rows import Columns, Row, file_rows
from ranmask.evaluation.gate import run_gate
from ranmask.evaluation.requirements import parse_requirement
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.results import Comparison, ShownCertificate
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import Outcome, classify_rows
from ranmask.smoothing.smoothed import COMPARED

TEXTS = [
    " ".join(["good"] * 18 + ["word"] * 6),
    "bad bad film with some good words and a few bad ones bad bad",
    "good bad",
]
SAMPLES = {"keep": 2, "masks": 700, "selection_masks": 60, "certificate": "ablation", "seed": 3}


def comparisons(texts, **options):
    smoothed = SmoothedClassifier(keyword_classifier, **{**SAMPLES, **options})
    return [Comparison.of(kinds) for kinds in smoothed.compare(texts, COMPARED)]


def summarised(lines):
    summary = RunSummary("certify")
    summary.add(lines)
    return summary


def printed(show, *arguments):
    file = io.StringIO()
    show(Console(file=file, width=120), *arguments)
    return file.getvalue()


class TestComparison:
    def test_the_radii_are_those_of_separate_runs(self):
        exact = SmoothedClassifier(keyword_classifier, keep=2, seed=3)
        compared = comparisons(TEXTS)
        fields = Certificate.__dataclass_fields__
        assert [[getattr(one, name) for name in fields] for one in compared] == [
            [getattr(one, name) for name in fields] for one in exact.certify(TEXTS)
        ]
        for kind in COMPARED[1:]:
            single = SmoothedClassifier(
                keyword_classifier, **{**SAMPLES, "certificate": kind}
            ).certify(TEXTS)
            assert [one.others[kind] for one in compared] == [
                {
                    "label": one.label,
                    "label_id": one.label_id,
                    "radius": one.radius,
                    "guarantee": one.guarantee,
                    "alpha": one.alpha,
                    "ensemble": one.ensemble,
                    "masks": one.masks,
                }
                for one in single
            ]
        assert compared[0].others["paper-as-printed"]["radius"] > compared[0].radius > 0

    def test_json_round_trip(self):
        for one in comparisons(TEXTS):
            assert Comparison.from_dict(one.to_dict()) == one
            assert list(one.to_dict()["others"]) == ["ablation", "paper", "paper-as-printed"]
            one.to_dict()["others"]["paper"]["radius"] = one.to_dict()["votes"][0] = -1
            assert one.others["paper"]["radius"] != -1 and -1 not in one.votes

    def test_each_certificate_is_judged_by_its_own_label(self):
        lines = [
            _line(expected=1, label=1, radius=2, others=(1, 1, 3)),
            _line(expected=1, label=0, radius=4, others=(1, 2, 5)),
            {"row": 3, "error": "no words"},
            {"row": 4, "error": "unknown label", "expected_id": None, "others": {}},
        ]
        summary = summarised(lines)
        kinds = summary.kinds
        assert list(kinds) == ["exact", "ablation", "paper"]
        assert float(kinds["exact"].summary.accuracy) == 0.5
        assert float(kinds["exact"].summary.certified_accuracy(2)) == 0.5
        assert float(kinds["exact"].summary.certified_accuracy(3)) == 0
        assert float(kinds["ablation"].summary.accuracy) == 1
        assert kinds["paper"].summary.median_radius == 3
        assert not kinds["paper"].guarantee and kinds["ablation"].guarantee
        values = summary.values()["certificates"]
        assert values["paper"]["certified_accuracy"] == [1, 1, 1, 1, 0.5, 0.5]
        assert (values["paper"]["guarantee"], values["ablation"]["median_radius"]) == (False, 1)

    def test_a_line_for_each_certificate(self):
        summary = summarised([_line(expected=1, label=1, radius=None, others=(1, 1, 3))])
        *_, exact, ablation, paper = printed(printing.print_summary, summary).splitlines()
        figures = "accuracy 1.000  MCB N/A  CR@1 0.000  CR@2 0.000  CR@3 0.000  CR@4 0.000"
        assert exact.startswith("exact ") and exact.endswith(f"{figures}  CR@5 0.000")
        assert "MCB 1  CR@1 1.000  CR@2 0.000" in ablation and "guarantee" not in ablation
        assert "CR@3 1.000  CR@4 0.000" in paper and paper.endswith("no guarantee")

    def test_of_texts_without_labels(self):
        texts = ["good good good good film", "bad bad bad", "good film good"]
        smoothed = SmoothedClassifier(keyword_classifier, keep=1, labels=["no", "yes"])
        found = smoothed.certify(texts)
        lines = [{"row": row, **one.to_dict()} for row, one in enumerate(found, 1)]
        summary = RunSummary("certify", ("no", "yes"))
        summary.add([*lines, {"row": 4, "error": "no words"}])
        radii = sorted(one.radius for one in found)
        shown = printed(printing.print_summary, summary).splitlines()
        assert shown[:2] == ["4 rows, 1 with errors", "labels: yes 2, no 1"]
        assert shown[2].startswith(f"median radius {radii[1]}, share of texts with a radius of")
        assert f"at least 1: {sum(radius >= 1 for radius in radii) / 3:.3f}" in shown[2]
        assert summary.values() == {
            **{"rows": 4, "errors": 1, "labelled": 0, "labels": {"no": 1, "yes": 2}},
            "median_radius": radii[1],
            "certified_share": [
                sum(radius >= changed for radius in radii) / 3 for changed in range(max(radii) + 1)
            ],
        }
        assert list(summary.values()["labels"]) == ["no", "yes"]  # not as they came
        assert RunSummary("predict", rows=2).values() == {"rows": 2, "errors": 0, "labelled": 0}
        unproved = RunSummary("certify", ("no", "yes"))
        unproved.add([{**line, "guarantee": False} for line in lines])
        assert "radius" not in printed(printing.print_summary, unproved)
        assert unproved.values()["median_radius"] is None
        predicted = RunSummary("predict", ("no", "yes"))
        predicted.add(lines)
        assert predicted.values()["labels"] == {"no": 1, "yes": 2}
        assert "median_radius" not in predicted.values()

    def test_a_column_for_each_certificate_and_a_label_where_it_is_another(self):
        found = comparisons(TEXTS)
        strange = {**found[1].others, "paper": {**found[1].others["paper"], "label": "[b]no[/b]"}}
        strange["paper"] |= {"label_id": 1, "radius": 2}
        results = [found[0], replace(found[1], others=strange), found[2]]
        rows = [Row(number, text) for number, text in enumerate(TEXTS, 1)]
        table = printing.result_table(True, COMPARED)
        outcomes = [Outcome(row, one) for row, one in zip(rows, results, strict=True)]
        for outcome in (*outcomes, Outcome(Row(4, ""), error="bad")):
            printing.add_outcome(table, outcome)
        assert [str(one.header) for one in table.columns][3:-1] == [
            *("exact", "ablation", "paper", "paper\nas\nprinted")
        ]
        cells = [list(map(str, one.cells)) for one in table.columns]
        others = found[0].others
        assert cells[3][0] == str(found[0].radius) and cells[4][0] == str(
            others["ablation"]["radius"]
        )
        assert cells[5][0] == f"{others['paper']['radius']}*"
        assert cells[6][0] == f"{others['paper-as-printed']['radius']}*"
        assert cells[5][1] == "2* ([b]no[/b])" and [one[3] for one in cells[:-1]] == [
            "4",
            *[""] * 6,
        ]
        shown = printed(printing.explain, results[0])
        assert "exact: change that many words" in shown and "5,000" not in shown
        assert "a vote over 700 random copies; ablation with probability 0.95" in shown
        assert "* not a guarantee" in shown

    @pytest.mark.parametrize("proves", [False, True])
    @pytest.mark.parametrize("kind", ["exact", "paper-as-printed"])
    def test_why_there_is_no_guarantee(self, kind, proves, tmp_path, monkeypatch):
        """The paper's certificate, or a model that was not measured: each by its own name."""
        smoothed = SmoothedClassifier(keyword_classifier, keep=1, certificate=kind, masks=50)
        monkeypatch.setattr(smoothed.base, "proves", proves)
        [certificate] = smoothed.certify(["good good good"])
        shown = printed(printing.explain, certificate)
        unsound = (
            "* not a guarantee: the certificate of the paper is unsound; use --certificate exact"
        )
        unmeasured = "* not a guarantee: how far rounding moves the model was left unmeasured; use"
        assert shown.startswith(unsound) == (kind != "exact")
        assert shown.startswith(unmeasured) == (kind == "exact" and not proves)
        if kind != "exact" or not proves:
            (tmp_path / "in.csv").write_text("text,label\ngood good good,1\n")
            source = file_rows(tmp_path / "in.csv", Columns("text", None, "label"))
            required = [parse_requirement("certified accuracy@1 >= .5", ())]
            why = "paper is unsound: certified figures need certificate='exact'$"
            if kind == "exact":
                why = "was left unmeasured: certified figures need the model itself, not what its "
            with pytest.raises(OptionError, match=f"{kind}' proves nothing here, as .* {why}"):
                run_gate(smoothed, source, required, tmp_path)

    def test_other_runs_have_nothing_to_compare(self):
        certify = SmoothedClassifier(keyword_classifier, keep=1).certify
        lines = [one.to_dict(None) for one in classify_rows([Row(1, "good good", 1)], certify)]
        summary = summarised(lines)
        assert summary.kinds == {} and "certificates" not in summary.values()

    def test_summary_is_that_of_the_exact_certificate(self):
        smoothed = SmoothedClassifier(keyword_classifier, **SAMPLES)

        def compare(texts):
            return [Comparison.of(kinds) for kinds in smoothed.compare(texts, COMPARED)]

        rows = [Row(number, text, 1) for number, text in enumerate(TEXTS, 1)]
        lines = [one.to_dict(None) for one in classify_rows(rows, compare)]
        summary = summarised(lines)
        assert (summary.rows, summary.errors, summary.certified.texts) == (3, 0, 3)
        assert summary.certified == summary.kinds["exact"].summary


def _line(*, expected, label, radius, others):
    ids, ablation, paper = others
    return {
        "words": 9,
        "label_id": label,
        "expected_id": expected,
        "correct": expected == label,
        "radius": radius,
        "guarantee": True,
        "others": {
            "ablation": {"label_id": ids, "radius": ablation, "guarantee": True, "alpha": 0.05},
            "paper": {"label_id": ids, "radius": paper, "guarantee": False, "alpha": 0.05},
        },
    }


class TestCopies:
    @pytest.mark.parametrize("options", [{}, {"ensemble": "score"}, {"masks": 30}], ids=str)
    def test_all_copies_add_up_to_the_votes(self, options):
        smoothed = SmoothedClassifier(hashing_classifier, keep=2, **options)
        text = "a b c d e f g h i j k l"
        [shown] = smoothed.certify_showing([text], 66)
        assert len(shown.copies) == shown.masks == options.get("masks", 66)
        counted = Counter(copy["label_id"] for copy in shown.copies)
        assert tuple(counted[label] for label in range(3)) == shown.votes

    def test_each_copy_votes_for_what_the_classifier_says_of_it(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        [shown] = smoothed.certify_showing(["good bad fine"], 2)
        assert shown.copies == ({"kept": [0], "label_id": 1}, {"kept": [1], "label_id": 0})

    def test_the_rest_is_the_certificate_and_nothing_is_scored_twice(self):
        asked = []

        def counting(texts):
            asked.extend(texts)
            return keyword_classifier(texts)

        smoothed = SmoothedClassifier(counting, keep=2, recheck=0)
        [shown] = smoothed.certify_showing([TEXTS[1]], 5)
        assert len(asked) == shown.masks
        [plain] = smoothed.certify([TEXTS[1]])
        assert plain.to_dict() == {k: v for k, v in shown.to_dict().items() if k != "copies"}

    def test_json_round_trip(self):
        [shown] = SmoothedClassifier(keyword_classifier, keep=1).certify_showing(["good bad"], 9)
        assert ShownCertificate.from_dict(shown.to_dict()) == shown

    def test_refused(self):
        with pytest.raises(OptionError, match="at least 1, not 0"):
            SmoothedClassifier(keyword_classifier, keep=1).certify_showing([], 0)
        with pytest.raises(OptionError, match="certificate='paper' are a sample"):
            SmoothedClassifier(keyword_classifier, keep=1, certificate="paper").certify_showing(
                [], 1
            )
        with pytest.raises(OptionError, match="cannot be certified"):
            SmoothedClassifier(keyword_classifier, keep=1, sampling="fresh").certify_showing([], 1)

    def test_picture(self):
        smoothed = SmoothedClassifier(
            lambda pairs: keyword_classifier([h for _, h in pairs]), keep=1
        )
        rows = [Row(4, ("some premise", "good [b]film[/b] bad"))]
        [outcome] = classify_rows(rows, lambda texts: smoothed.certify_showing(texts, 3))
        shown = printed(printing.print_copies, outcome, ("neg", "pos"))
        assert "copies of row 4" in shown and "premise" not in shown
        lines = [line.replace("│", " ").split() for line in shown.splitlines()[-3:]]
        assert lines == [
            ["pos", "good", "[MASK]", "[MASK]"],
            ["neg", "[MASK]", "[b]film[/b]", "[MASK]"],
            ["neg", "[MASK]", "[MASK]", "bad"],
        ]
        [plain] = classify_rows(rows, smoothed.certify)
        assert printed(printing.print_copies, plain, None) == ""
