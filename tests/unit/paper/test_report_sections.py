"""What the sections say: numbers, sentences, and what they leave unsaid."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.certificates.kept import kept_count
from ranmask.evaluation.intervals import proportion_interval
from ranmask.paper.divergence import jensen_shannon
from ranmask.paper.published import published
from ranmask.paper.reading import read_several
from ranmask.paper.report import markdown, method_order
from ranmask.paper.report.beside import unlike
from ranmask.paper.report.blocks import (
    Bullets,
    Example,
    Fold,
    Heading,
    Paragraph,
    Picture,
    Section,
    Span,
    Strip,
    prose,
    text,
)
from ranmask.paper.report.certified_runs import ByRate
from ranmask.paper.report.charts import inline
from ranmask.paper.report.counting import count_attacks
from ranmask.paper.report.experiments import experiments
from ranmask.paper.report.figures import length_bins
from ranmask.paper.report.methods import measured, ranking
from ranmask.paper.report.page import build
from ranmask.paper.report.sections import (
    adversarial,
    arithmetic,
    betas,
    certified,
    coverage,
    empirical,
    entropy,
    explainer,
    overview,
    provenance,
    rates,
)
from ranmask.paper.report.tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    difference,
    interval,
    percent,
    share,
    share_cell,
)
from ranmask.paper.run_data import (
    Adversarial,
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

FILES = sorted((Path(__file__).parents[2] / "data" / "report").glob("*.json"))


FRESH = {"kind": "smoothed", "options": {"sampling": "fresh"}}


def reproduction(kind, *steps, name="x", paper="", size="default"):
    return Reproduction(name, "Title", kind, paper, "About.", size, {}, {}, tuple(steps))


def done(measures, result, **place):
    return Step("step", measures, "ranmask x", place, "done", 1.0, result=result)


def votes(radii, *, certificate="exact", guarantee=True, words=20, others=(), **more):
    """Right where there is a radius."""
    correct = tuple(radius is not None for radius in radii)
    first = Reading(certificate, guarantee, correct, tuple(radii))
    rows = tuple(range(1, len(radii) + 1))
    return Certified(rows, (words,) * len(radii), 100, (first, *others), **more)


def read(section):
    """The section as plain text."""
    report = build([])
    text = markdown.render(replace(report, sections=(section,)))
    return text.replace("\\", "")


def plain(paragraph):
    return "".join(span.text for span in paragraph.spans)


def tables(blocks):
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Fold):
            yield from tables(block.blocks)


# Numbers


def test_numbers_are_written_as_elsewhere():
    assert [share(value) for value in (0.8841, 1, 0, -0.05, -0.0001)] == [
        *(".884", "1.000", ".000", "\N{MINUS SIGN}.050", ".000")
    ]
    assert percent(0.5512) == "55.1"
    assert [difference(value) for value in (1.04, -2.0, 0.01)] == [
        *("+1.0", "\N{MINUS SIGN}2.0", "0.0")
    ]
    assert share_cell(0, 10) == Cell(".000", interval=".000\N{EN DASH}.308")
    assert share_cell(0, 0).text == "no texts"


def test_values_are_text_whatever_is_in_them():
    assert prose("**{a}** `{b}`", a="*x*", b="{beta}") == (
        Span("*x*", "strong"),
        Span(" "),
        Span("{beta}", "code"),
    )


def test_a_little_markdown_becomes_blocks():
    assert text(
        """
        ### Head

        One {n}
        line.

        - a
          b
        - *c*

        1. first

        > beware

        ~ quiet
        """,
        n="*1*",
    ) == [
        Heading("Head", 3),
        Paragraph((Span("One *1* line."),)),
        Bullets([(Span("a b"),), (Span("c", "em"),)]),
        Bullets([(Span("first"),)], numbered=True),
        Paragraph((Span("beware"),), "warning"),
        Paragraph((Span("quiet"),), "quiet"),
    ]


def test_a_table_is_rectangular():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("t", (Column("a"), Column("b")), ((Cell("1"),),))


def test_median_interval_is_that_of_order_statistics():
    def given_radii(radii):
        return Reading("exact", True, (True,) * len(radii), tuple(radii))

    # Textbook: of 10 sorted values the 2nd and the 9th; of 25 the 8th and the 18th.
    assert given_radii(range(10)).median_interval() == (1, 8)
    assert given_radii(range(25)).median_interval() == (7, 17)
    assert given_radii(range(5)).median_interval() is None  # 2 / 2**5 is more than 5 %
    wrong = Reading("exact", True, (False,) * 6, (3,) * 6)
    assert wrong.median_interval() == (None, None)


@given(st.integers(6, 200))
def test_median_interval_is_sure_enough_and_no_wider(texts):
    reading = Reading("exact", True, (True,) * texts, tuple(range(texts)))
    low, high = reading.median_interval()
    outside = sum(math.comb(texts, count) for count in range(low + 1))
    assert high == texts - 1 - low
    assert 2 * outside <= 0.05 * 2**texts
    assert 2 * (outside + math.comb(texts, low + 1)) > 0.05 * 2**texts


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_length_bins_hold_every_text_once(words):
    bins = length_bins(words)
    assert 1 <= len(bins) <= 4
    assert all(sum(low <= count <= high for low, high in bins) == 1 for count in words)


def test_attacks_are_counted_as_the_paper_counts():
    statuses = ("succeeded", "failed", "failed", "skipped", "error", "succeeded")
    run = Attacked(
        "a",
        FRESH,
        tuple(range(6)),
        statuses,
        (9,) * 6,
        (0,) * 6,
        (0,) * 6,
        (True, None, None, None, None, False),
    )
    counts = count_attacks(run)
    assert (counts.texts, counts.attempted, counts.succeeded, counts.held) == (5, 4, 2, 2)
    assert (counts.rechecked, counts.vanished, counts.errors) == (2, 1, 1)


@pytest.mark.parametrize(
    ("victim", "rechecked"),
    [
        (None, 0),
        ({"kind": "smoothed", "options": {"sampling": "fixed"}}, 0),
        ({"kind": "cascade", "smoothed": {"options": {"sampling": "fixed"}}}, 0),
        ({"kind": "cascade", "smoothed": None}, 0),
        ({"kind": "smoothed", "options": {"sampling": "lm"}}, 1),
        ({"kind": "synonym-smoothed", "options": {"masks": 32}}, 1),
    ],
)
def test_only_what_is_drawn_can_be_drawn_again(victim, rechecked):
    # The run itself says True for whatever has nothing to draw.
    run = Attacked("a", victim, (1,), ("succeeded",), (9,), (1,), (5,), (True,))
    assert count_attacks(run).rechecked == rechecked


def test_runs_over_the_same_texts_do_not_add_texts():
    assert interval(40, 100) == proportion_interval(40, 100)
    assert interval(200, 500, runs=5) == proportion_interval(40, 100)
    low, high = interval(7, 20, runs=2)  # 3.5 of 10: rounded outwards
    assert (low, high) == (proportion_interval(3, 10)[0], proportion_interval(4, 10)[1])
    assert interval(1, 3, runs=5) == (0, 1)


# The lesson


def line(radius, critical, *, votes=(9, 1), label=0, copies=(), text="one two three four"):
    return {
        **{"label": "good", "label_id": label, "votes": list(votes), "words": 4, "kept": 2},
        **{"masks": 10, "radius": radius, "critical_words": critical, "text": text},
        "copies": list(copies),
    }


def lesson(*lines):
    examples = done("examples", Examples(tuple(lines)))
    return explainer.section([reproduction("certified", examples)])


def test_the_lesson_marks_the_words_that_a_label_hangs_on():
    section = lesson(line(1, [0, 2]))
    picture, sentence = (block for block in section.blocks if isinstance(block, Example))
    assert picture.critical == frozenset() and sentence.critical == {0, 2}
    text = read(section)
    assert "change these 2 words and the label could flip; any one word cannot do it" in text
    assert "9 of 10 copies say *good*. **Radius 1:** change any one word" in text


def test_the_lesson_shows_a_dissenting_copy():
    copies = [{"kept": [0, 1], "label_id": 0}] * 8 + [{"kept": [2, 3], "label_id": 1}]
    [picture, _] = [
        block
        for block in lesson(line(1, [0, 1], copies=copies)).blocks
        if isinstance(block, Example)
    ]
    assert len(picture.copies) == 6
    assert [copy.agrees for copy in picture.copies] == [True] * 5 + [False]
    assert [picture.words[place] for place in sorted(picture.copies[-1].kept)] == ["three", "four"]
    assert picture.copies[-1].vote == "class 1"  # no sentence tells its name
    assert picture.about == (
        "6 of the 10 copies, with their votes. Grey: hidden. Below: all votes."
    )
    assert picture.tally == [
        ("good", 9, True),
        ("class 1", 1, False),
    ]


def test_the_lesson_names_classes_by_their_own_run():
    """Other runs have other classes of the same numbers; without a name, there is the number."""
    copies = [{"kept": [0, 1], "label_id": 0}] * 8 + [{"kept": [2, 3], "label_id": 1}]
    shown = line(1, [0, 1], copies=copies)
    foreign = [{**line(0, [0]), "label": f"foreign {one}", "label_id": one} for one in (0, 1)]

    def named(**own):
        runs = [
            reproduction("certified", done("examples", Examples((shown,), **own))),
            reproduction("certified", done("examples", Examples(tuple(foreign), ("no", "nor")))),
        ]
        blocks = explainer.section(runs).blocks
        picture = next(block for block in blocks if isinstance(block, Example))
        votes = {copy.vote for copy in picture.copies}
        return votes, [label for label, _, _ in picture.tally]

    assert named() == ({"good", "class 1"}, ["good", "class 1"])
    assert named(labels=("good", "poor")) == ({"good", "poor"}, ["good", "poor"])


def test_a_copy_that_says_nothing_is_shown_as_such():
    copies = [{"kept": [0, 1], "label_id": 0}] * 3 + [{"kept": [2, 3], "label_id": None}]
    [picture, _] = [
        block
        for block in lesson(line(1, [0, 1], copies=copies)).blocks
        if isinstance(block, Example)
    ]
    assert [(copy.vote, copy.agrees) for copy in picture.copies][-1] == ("none", False)


@pytest.mark.parametrize(
    ("for_label", "against", "expected"),
    [
        *((30, 0, (6, 0)), (20, 10, (4, 2)), (29, 1, (5, 1))),
        *((1, 29, (1, 5)), (2, 1, (2, 1)), (0, 3, (0, 3))),
    ],
)
def test_copies_that_are_shown_are_a_fair_choice(for_label, against, expected):
    copies = [{"kept": [0], "label_id": 0}] * for_label + [{"kept": [1], "label_id": 1}] * against
    picture = next(
        block
        for block in lesson(line(1, [0, 1], copies=copies)).blocks
        if isinstance(block, Example)
    )
    agree = sum(copy.agrees for copy in picture.copies)
    assert (agree, len(picture.copies) - agree) == expected


def test_the_count_is_shown_where_it_gives_the_radius():
    # 5 words, 1 visible, all 5 copies: 4 to 1.  One changed word: 3 to 2.  Two: 2 to 3.
    counted = {"words": 5, "kept": 1, "masks": 5, "votes": [4, 1], "text": "a b c d e"}
    blocks = lesson({**line(1, [0, 1]), **counted, "family": "all"}).blocks
    [count, _] = tables(blocks)
    assert [[cell.text for cell in row] for row in count.rows] == [
        ["0", "0", "4", "1", "yes"],
        ["1", "1", "3", "2", "yes"],
        ["2", "2", "2", "3", "perhaps not"],
    ]
    [picture] = [block for block in blocks if isinstance(block, Picture)]
    [plot] = picture.charts
    [series] = plot.series
    assert [(point.x, point.y) for point in series.points] == [
        *((0, 3), (1, 1), (2, -1), (3, -3), (4, -5)),
    ]
    assert "After one word *good* is still ahead" in read(Section("", "", [picture]))
    drawn = inline(plot)
    assert "+3" in drawn and "−1" in drawn
    sampled, closer, wrong = {"family": "sampled"}, {"radius": 2}, {"radius": 0}
    for other in (sampled, {"family": "all", **closer}, {"family": "all", **wrong}):
        blocks = lesson({**line(1, [0, 1]), **counted, **other}).blocks
        assert len(list(tables(blocks))) == 1
        assert not any(isinstance(block, Picture) for block in blocks)


def test_the_lesson_prefers_a_sentence_whose_count_it_can_draw():
    counted = {"words": 5, "kept": 1, "masks": 5, "votes": [4, 1], "text": "a b c d e"}
    blocks = lesson(
        {**line(3, [0, 1]), "family": "sampled"},
        {**line(1, [0, 1]), **counted, "family": "all"},
    ).blocks
    assert any(isinstance(block, Picture) for block in blocks)
    picture = next(block for block in blocks if isinstance(block, Example))
    assert list(picture.words) == counted["text"].split()


def test_the_lesson_promises_nothing_where_nothing_is_proved():
    text = read(lesson(line(0, [1]), line(None, [])))
    assert "could turn the vote" in text
    assert "radius 0: changing this one word could be enough" in text
    assert "not certified even unchanged" in text


def test_the_worked_step_is_the_certificates_own():
    [table] = tables(lesson(line(1, [0])).blocks)
    values = [(row[0].text, row[2].text, row[3].text) for row in table.rows]
    assert values == [
        *(("0", ".900", "passes"), ("1", ".616", "passes")),
        *(("2", ".411", "fails"), ("3", ".266", "fails")),
    ]
    assert "what the test supports" in table.rows[1][4].text
    assert "what the paper prints" in table.rows[2][4].text
    text = read(lesson(line(1, [0])))
    assert ".316" in text  # a perfect classifier at 30 %
    assert "**.4856**" in text and ".5517" in text  # docs/certificates.md


def test_no_lesson_without_certificates():
    assert explainer.section([reproduction("empirical")]) is None


# Certified


def sst2(*steps):
    return reproduction("certified", *steps, paper="tb-sst2-certified")


def compared(radii, printed):
    other = Reading("paper-as-printed", False, (True,) * len(printed), tuple(printed))
    return votes(radii, others=(other,))


def test_certified_tables():
    one = sst2(done("certified", compared([0, 1, 1, 2, None], [1, 2, 2, 3, 3]), rate=0.7))
    section = certified.section([one])
    paper, proved, levels = tables(section.blocks)
    seventy = next(row for row in paper.rows if row[0].text == "70 %")
    assert [cell.text for cell in seventy] == [
        *("70 %", ".833", "2", "8.0 %", "1.000", "2", "10.0 %", "+.167", "0")
    ]
    assert [row[0].text for row in paper.rows] == [f"{rate} %" for rate in range(20, 100, 10)]
    assert [cell.text for cell in paper.rows[0]][4:7] == ["not run"] * 3
    # Right labels count in the accuracy; the median of N/A, 0, 1, 1, 2 is 1.
    assert [cell.text for cell in proved.rows[0]] == [*("70 %", "2", ".800", "1", "5.0 %", ".600")]
    assert proved.rows[0][2].interval == ".284\N{EN DASH}.995"
    assert proved.rows[0][3].interval == ""  # five texts are too few for an interval
    assert [cell.text for cell in levels.rows[0]] == [
        *("70 %", "exact", ".600", ".200", ".000", ".000", ".000")
    ]
    assert "no guarantee" in levels.rows[1][1].text
    assert "equals the paper's at **1 of 1** masking rates" in read(section)
    assert "At 50 %" not in read(section)
    low = sst2(done("certified", compared([0], [1]), rate=0.5))
    assert "At 50 % masked or less no certificate here" in read(certified.section([low]))


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.49, 0.5])
def test_half_masked_or_less_proves_no_word(rate):
    # What the sentence says: some word stands in half of the copies, for every number of words.
    assert all(2 * kept_count(words, mask_rate=rate) >= words for words in range(1, 300))


def test_nothing_is_said_to_agree_or_to_be_proved_that_is_not():
    other = sst2(done("certified", votes([2, 1]), rate=0.85))
    assert "No masking rate of the paper's table" in read(certified.section([other]))
    claimed = votes([2, 1], certificate="paper", guarantee=False)
    text = read(certified.section([sst2(done("certified", claimed, rate=0.7))]))
    assert "Nothing here is *proved*." in text
    assert "What is claimed of the votes, without guarantee" in text
    assert "votes prove" not in text


def test_every_column_of_the_papers_numbers_says_no_guarantee():
    one = sst2(done("certified", compared([0], [1]), rate=0.7))
    paper, proved, _ = tables(certified.section([one]).blocks)
    assert all("no guarantee" in column.group for column in paper.columns[1:7])
    assert "no guarantee" in proved.columns[1].group
    assert proved.columns[2].group == "exact, a proof"
    [curves, _] = [b for b in certified.section([one]).blocks if isinstance(b, Picture)]
    names = [series.name for series in curves.charts[0].series]
    assert names == ["exact", "paper, as printed (no guarantee)"]


def test_a_run_without_a_rate_and_without_a_guarantee():
    result = votes([2, 1], certificate="paper", guarantee=False)
    section = certified.section([reproduction("certified", done("certified", result))])
    proved, _ = tables(section.blocks)
    assert proved.rows[0][0].text == "as run"
    assert proved.columns[-1].group == "paper, off-by-one removed, no guarantee"
    tiles = overview.section([reproduction("certified", done("certified", result))]).blocks[1].tiles
    assert "without guarantee" in tiles[1].label


def test_the_lesson_says_what_a_radius_does_not_cover():
    plain = reproduction("certified", done("certified", votes([1])))
    assert "not words added or left out" in read(explainer.section([plain]))
    assert "SAFER" not in read(explainer.section([plain]))
    safer = votes([1], certificate="safer", threat="synonyms")
    text = read(explainer.section([reproduction("certified", done("certified", safer))]))
    assert "words of the table of synonyms only" in text
    assert "not words added" not in text


def test_a_radius_against_synonyms_says_so():
    result = votes([2, 1], certificate="safer", threat="synonyms")
    one = reproduction("certified", done("certified", result))
    assert "from a table of synonyms only" in read(certified.section([one]))
    assert "against a table of synonyms" in overview.section([one]).blocks[1].tiles[1].label


def test_a_certificate_that_needs_luck_is_no_proof():
    one = reproduction("certified", done("certified", votes([2, 1], certificate="ablation")))
    shown = list(tables(certified.section([one]).blocks))
    groups = {column.group for table in shown for column in table.columns}
    assert groups == {"", "Levine\N{EN DASH}Feizi"}
    assert overview.section([one]).blocks[1].tiles[1].label == "word certified at the median"


def test_single_runs_do_not_speak_of_the_paper():
    one = reproduction("certified", done("certified", votes([1]), rate=0.7))
    two = build([one, replace(one, name="y")])
    assert two.title == "Runs of ranmask" and "paper" not in two.summary[0].text
    assert "paper" in build([sst2(*one.steps)]).summary[0].text


def test_curves_fall_and_the_band_holds_them():
    result = votes([0, 1, 3, 3, None, 5])
    [curves, aside] = [
        block
        for block in certified.section([sst2(done("certified", result, rate=0.8))]).blocks
        if isinstance(block, Picture)
    ]
    points = curves.charts[0].series[0].points
    assert [round(point.y * 6) for point in points] == [5, 4, 3, 3, 1, 1, 0]
    assert all(point.low <= point.y <= point.high for point in points)
    assert len(aside.charts) == 1  # one rate makes no line
    again = done("certified", result, rate=0.7)
    both = certified.section([sst2(again, done("certified", result, rate=0.8))])
    [_, aside] = [block for block in both.blocks if isinstance(block, Picture)]
    lines = {
        line.name: [(p.x, round(p.y * 6)) for p in line.points] for line in aside.charts[0].series
    }
    assert lines == {
        name: [(70, held), (80, held)]
        for name, held in {
            "right": 5,
            "certified at 1 word": 4,
            "certified at 2 words": 3,
            "certified at 3 words": 3,
        }.items()
    }


# Attacks


def attack_run(held, fell, wrong=0, confirmed=True):
    statuses = ("failed",) * held + ("succeeded",) * fell + ("skipped",) * wrong
    texts = len(statuses)
    checked = (None,) * held + (confirmed,) * fell + (None,) * wrong
    return Attacked(
        "a",
        FRESH,
        tuple(range(1, texts + 1)),
        statuses,
        (9,) * texts,
        (1,) * texts,
        (5,) * texts,
        checked,
    )


def agnews(*cells):
    steps = [done("attack", run, method=method, attack=attack) for method, attack, run in cells]
    return reproduction("empirical", *steps, paper="tb-agnews-emperical")


def test_attack_tables():
    one = agnews(
        ("Baseline", "textfooler", attack_run(20, 70, 10)),
        ("RanMASK-90% (vote)", "textfooler", attack_run(50, 40, 10, confirmed=False)),
        ("Ours", "textfooler", attack_run(30, 60, 10)),
    )
    section = empirical.section([one])
    whole, order, details = tables(section.blocks)
    assert order.caption == "Ranked by robust accuracy"
    methods = [*published().empirical["tb-agnews-emperical"].methods, "Ours"]
    assert [row[0].text for row in whole.rows] == methods
    baseline = whole.rows[0]
    assert [(cell.text, cell.beside) for cell in baseline[1:4]] == [
        *(("90.0", "93.9"), ("20.0", "15.8"), ("77.8", "83.2"))
    ]
    assert (baseline[4].text, baseline[4].beside) == ("not run", "94.7")
    vote = whole.rows[methods.index("RanMASK-90% (vote)")]
    assert not any(cell.strong for cell in (*vote, *baseline))  # most of the methods are missing
    unlike, _ = tables(empirical.section([replace(one, paper="")]).blocks)
    by_name = {row[0].text: row for row in unlike.rows}
    assert [cell.strong for cell in by_name["RanMASK-90% (vote)"][1:4]] == [True, True, True]
    assert [cell.strong for cell in by_name["Baseline"][1:4]] == [True, False, False]
    assert whole.rows[-1][2].beside == ""
    told = details.rows[methods.index("RanMASK-90% (vote)")]
    assert [cell.text for cell in told[1:]] == [
        *("100", "90.0", "50.0", "\N{MINUS SIGN}5.1", "44.4", "100.0")
    ]
    assert told[3].interval == "39.8\N{EN DASH}60.2"


def test_the_order_of_methods_is_told():
    one = agnews(
        ("Baseline", "textfooler", attack_run(30, 60)),
        ("FreeLB", "textfooler", attack_run(20, 70)),
        ("RanMASK-90% (vote)", "textfooler", attack_run(50, 40)),
        ("Baseline", "deepwordbug", attack_run(60, 30)),
        ("FreeLB", "deepwordbug", attack_run(50, 40)),
    )
    told = order_of(one)
    missing = "PGD-10, Adv-Hotflip, Data Augmentation, RanMASK-90% (logit)"
    assert told["TextFooler"] == {
        "methods compared": Cell("3 of 7", beside="over 90 texts"),
        "pairs in the paper's order": Cell("2 of 3"),
        "rank correlation": Cell(".50"),
        # The most robust of those that were run need not be that of all.
        "most robust here": Cell(f"none named: {missing} not run"),
        "most robust in the paper": Cell("RanMASK-90% (vote)"),
        "is the lead here significant?": NOTHING,
        "furthest from the paper's rank": Cell("none by more than 1"),
        "Boa less the paper's": Cell("\N{MINUS SIGN}2.4 to +17.5", beside="FreeLB to Baseline"),
    }
    two = told["DeepWordBug"]
    assert two["pairs in the paper's order"].text == "0 of 1" and two["rank correlation"] == NOTHING
    assert list(told) == ["TextFooler", "DeepWordBug"]


def order_of(one):
    """What is said of the order, by attack."""
    [shown] = [
        table
        for table in tables(empirical.section([one]).blocks)
        if table.caption == "Ranked by robust accuracy"
    ]
    titles = [row[0].text for row in shown.rows]
    return {
        column.title: dict(zip(titles, (row[place] for row in shown.rows), strict=True))
        for place, column in enumerate(shown.columns)
        if place
    }


def of_all_methods(*found, attack="textfooler"):
    """The paper's methods in its order with these runs, the last one for all that are left."""
    methods = published().empirical["tb-agnews-emperical"].methods
    runs = [*found, *[found[-1]] * (len(methods) - len(found))]
    return [(name, attack, run) for name, run in zip(methods, runs, strict=True)]


def test_methods_are_compared_over_the_texts_that_all_met():
    """Of the first 100 texts the Baseline holds 40; PGD-10 met 200, and holds 39 of the 100."""
    statuses = ("failed",) * 39 + ("succeeded",) * 61 + ("failed",) * 100
    more = replace(
        attack_run(200, 0), statuses=statuses, confirmed=tuple(map({"failed": None}.get, statuses))
    )
    [attack, *_] = measured(
        experiments([agnews(*of_all_methods(attack_run(40, 60), more, attack_run(1, 99)))])[0]
    ).items()
    assert attack[1][1].robust == 69.5
    found = ranking(attack[1])
    assert found.leaders == ["Baseline"] and found.close == {"PGD-10": "p = 1.000"}
    one = agnews(*of_all_methods(attack_run(40, 60), more, attack_run(1, 99)))
    told = order_of(one)["TextFooler"]
    assert told["methods compared"] == Cell("7 of 7", beside="over 100 texts")
    assert told["most robust here"] == Cell("Baseline", strong=True)  # contradicts the paper
    assert told["most robust in the paper"].text == "RanMASK-90% (vote)"
    assert told["is the lead here significant?"].text == "not over PGD-10 (p = 1.000)"
    whole = next(tables(empirical.section([one]).blocks))
    assert {row[0].text for row in whole.rows if row[2].strong} == {"Baseline"}
    assert {row[0].text for row in whole.rows if row[3].strong} == {"Baseline"}


def test_a_lead_within_noise_is_said_where_the_paper_agrees():
    """The last method is the paper's first; it leads by one text of 90, or by all of them."""
    for most, close in ((31, ", lead not significant"), (90, "")):
        *others, (last, attack, _) = of_all_methods(attack_run(30, 60))
        one = agnews(*others, (last, attack, attack_run(most, 90 - most)))
        [found] = empirical.in_short(experiments([one])[0])[:1]
        assert found.verdict.partition(";")[0] == f"as in the paper{close}"
        [said] = [row["is the lead here significant?"].text for row in order_of(one).values()]
        assert (said == "yes") is not bool(close)


def test_one_method_is_not_the_most_robust():
    one = replace(agnews(("Mine", "textfooler", attack_run(0, 6))), paper="")
    [found] = empirical.in_short(experiments([one])[0])
    assert (found.what, found.ours) == ("robust accuracy under TextFooler", "Mine, 0.0 [0.0–45.9]")
    columns = [column.title for column in list(tables(empirical.section([one]).blocks))[1].columns]
    assert "Boa less the paper's" not in columns  # there is none


def test_the_methods_furthest_from_their_places_are_all_named():
    paper = [60, 50, 40, 30]
    assert method_order._furthest("abcd", [30, 40, 50, 60], paper) == "a and d, by 3"
    assert method_order._furthest("abcd", [50, 60, 40, 30], paper) == "none by more than 1"
    assert method_order._furthest("abcd", paper, paper) == "none"


def test_a_report_of_one_table_speaks_of_its_own_cells():
    one = agnews(*of_all_methods(attack_run(30, 60)))
    said = "".join(span.text for span in overview.one_sentence([one]))
    assert said.startswith("A part of the RanMASK paper") and "7 of its 21 cells" in said
    strip, table = overview.section([one]).blocks[1:]
    assert isinstance(strip, Strip) and isinstance(table, Table)
    assert [column.title for column in table.columns][-1] == "verdict"


def test_methods_that_tie_have_no_order():
    one = agnews(
        ("Baseline", "textfooler", attack_run(30, 60)),
        ("FreeLB", "textfooler", attack_run(30, 60)),
    )
    told = order_of(one)["TextFooler"]
    assert told["pairs in the paper's order"] == Cell("0 of 0", beside="1 tied")
    assert not [block for block in overview.section([one]).blocks if isinstance(block, Strip)]
    [strip] = [
        block
        for block in overview.section([replace(one, paper="")]).blocks
        if isinstance(block, Strip)
    ]
    [tile] = strip.tiles
    assert (tile.label, tile.note[:19]) == (
        "best of 2 methods under TextFooler",
        "Baseline and 1 more",
    )


def test_how_many_texts_is_said():
    short, long = attack_run(30, 60), attack_run(40, 80)
    cells = [("Baseline", "textfooler", short), ("FreeLB", "textfooler", short)]
    assert "90 texts each." in read(empirical.section([agnews(*cells)]))
    text = read(empirical.section([agnews(*cells, ("Ours", "textfooler", long))]))
    assert "90 to 120 texts" in text
    one = reproduction(
        "certified",
        done("certified", votes([1, 2], errors=3), rate=0.7),
        done("certified", votes([1]), rate=0.9),
    )
    assert "1 to 2 texts, at most 100 copies of each. 3 texts with errors" in read(
        certified.section([one])
    )


def test_a_single_attack_shows_no_other():
    run = done("attack", attack_run(5, 5), method="mine", attack="deepwordbug")
    text = read(empirical.section([reproduction("empirical", run)]))
    assert "DeepWordBug: Boa" in text
    assert "Bold" not in text and "**50.0**" not in text
    assert "TextFooler" not in text
    assert "hollow" not in text


def test_unfinished_attacks_are_not_counted():
    steps = [
        Step("a", "attack", "c", {"method": "Baseline", "attack": "textfooler"}, "todo"),
        Step("b", "attack", "c", {"method": "New", "attack": "textfooler"}, "failed", error="why"),
    ]
    one = reproduction("empirical", *steps, paper="tb-agnews-emperical")
    assert "nothing to show" in read(empirical.section([one]))
    [experiment] = experiments([one])
    assert "New" in {row.method for row in measured(experiment)["textfooler"]}


# The others


def test_beta_lines():
    result = Betas(
        (1, 2), (5, 1), (1, 2), (0.8, 0.6), ((0.8, 0.5), (0.7, None)), ((0.9, 0.8), (0.95, None))
    )
    assert betas.divergence_line(result) == [
        (1, jensen_shannon([0.8, 0.6], [0.8, 0.5])),
        (2, 0.0),
    ]
    assert betas.gap_line(result, chosen=False) == [
        (1, pytest.approx(0.05)),
        (2, pytest.approx(0.1)),
    ]
    assert betas.gap_line(result, chosen=True) == [
        (1, pytest.approx(0.15)),
        (2, pytest.approx(0.15)),
    ]
    assert betas.largest_gap(result) == pytest.approx(0.2)
    later = replace(result, changed=(2, 3))  # no figure for one changed word
    [table] = tables(
        betas.section([reproduction("beta", done("beta", later, corpus="x", rate=1))]).blocks
    )
    assert [cell.text for cell in table.rows[0]][4:6] == ["\N{EN DASH}"] * 2
    one = reproduction("beta", done("beta", result, corpus="sst2", rate=0.7))
    section = betas.section([one])
    [table] = tables(section.blocks)
    assert [cell.text for cell in table.rows[0]][4:] == [".050", ".150", ".200"]
    [picture] = [block for block in section.blocks if isinstance(block, Picture)]
    assert picture.charts[0].rules[0][0] == published().beta["below"]["sst2"]


def test_rates_count_seeds_together():
    steps = [
        done("attack", attack_run(*held), rate=0.9, ensemble="vote", attack="textfooler", seed=seed)
        for seed, held in enumerate([(50, 40, 10), (30, 60, 10)])
    ]
    section = rates.section([reproduction("rates", *steps)])
    _, table = tables(section.blocks)
    assert [cell.text for cell in table.rows[0]] == ["90 %", "40.0"]
    assert table.rows[0][1].interval == "30.0 to 50.0"
    [picture] = [block for block in section.blocks if isinstance(block, Picture)]
    [point] = picture.charts[0].series[0].points
    assert (point.x, point.y) == (90, 40)
    low, high = proportion_interval(40, 100)  # the texts of one seed
    assert (point.low, point.high) == (100 * low, 100 * high)
    assert "Up to 2 seeds are averaged" in read(section)


def test_entropy_table():
    result = Predicted((1, 2, 3, 4), (True, True, True, False), (0.1, 0.2, 0.3, 0.2), None)
    section = entropy.section([reproduction("entropy", done("predict", result, method="SAFER"))])
    [table] = tables(section.blocks)
    assert [cell.text for cell in table.rows[0]] == [
        *("SAFER", ".006", ".200", "no scores", ".750", "4")
    ]
    assert table.rows[0][2].interval == ".120\N{EN DASH}.280"
    assert [cell.text for cell in table.rows[1]][2:] == ["not run"] * 4


def test_arithmetic_is_shown_where_it_was_asked_for():
    risk = reproduction("arithmetic", name="risk-probability")
    headlines = reproduction("arithmetic", name="headline-averages")
    assert arithmetic.risk_section([headlines]) is None
    assert arithmetic.headline_section([risk]) is None
    first, second = tables(arithmetic.risk_section([risk]).blocks)
    assert [cell.text for cell in first.rows[1]] == ["1", ".023", ".093", ".100", ".093"]
    assert [cell.text for cell in second.rows[2]][2] == ".456"
    text = read(arithmetic.headline_section([headlines]))
    assert "21.06" in text and "13.87" in text and "contradict themselves" in text


def test_what_was_run_names_what_was_not():
    steps = [
        Step(
            "good",
            "certified",
            "ranmask certify",
            {},
            "done",
            75.0,
            result=votes([1], errors=3),
            data={"name": "sst2", "split": "test", "rows": 1000, "note": "partial"},
        ),
        Step("bad", "attack", "ranmask attack", {}, "failed", 1.0, "out of memory"),
        Step("later", "beta", "ranmask beta", {}, "todo"),
    ]
    one = reproduction("certified", *steps, size="smoke")
    text = read(provenance.section([one]))
    assert "size **smoke**, 76.0 s in all" in text
    assert "`bad`, failed: out of memory" in text
    assert "`later`, not run: not started" in text
    assert "measured on sst2, test, 1,000 rows: partial" in text
    assert "ranmask certify\nranmask attack\nranmask beta" in text
    assert "| good | certified | done | 1 | 3 | 75.0 s |" in text
    warnings = [
        block
        for block in overview.section([one]).blocks
        if isinstance(block, Paragraph) and block.tone == "warning"
    ]
    assert len(warnings) == 1  # a smoke run


def test_an_attack_that_did_without_something_says_so():
    step = done("attack", attack_run(1, 1), method="m", attack="textfooler")
    run = replace(step.result, attack="textfooler without sentence encoder")
    text = read(provenance.section([reproduction("empirical", replace(step, result=run))]))
    assert "TextFooler was run as textfooler without sentence encoder" in text


# What is done, and what contradicts the paper


def test_coverage_counts_the_papers_own_cells():
    one = agnews(
        ("Baseline", "textfooler", attack_run(30, 60)),
        ("Ours", "textfooler", attack_run(30, 60)),  # no cell of the paper
    )
    place = {"method": "FreeLB", "attack": "textfooler"}
    todo = Step("step", "attack", "x", place, "todo", error="No time: 99 s." + 500 * " x")
    [found] = coverage.covered([replace(one, steps=(*one.steps, todo))])
    assert (found.done, len(found.cells)) == (1, 21)
    assert "FreeLB under TextFooler" in found.open
    text = read(coverage.section([replace(one, steps=(*one.steps, todo))]))
    assert "| Under attack, AG News | **1 of 21** | **90** (paper: 1,000) | 1 |" in text
    # The one that failed has its own reason, the beginning of it; the others were not begun.
    assert "Under attack, AG News, 19: Baseline under BERT-Attack; " in text
    assert "Under attack, AG News, 1: FreeLB under TextFooler: No time: 99 s. x" in text
    assert " x" * 100 not in text
    assert coverage.section([replace(one, paper="")]) is None
    assert coverage.section([replace(one, size="smoke")]) is None
    as_many = agnews(("Baseline", "textfooler", attack_run(400, 600)))
    assert "| **1 of 21** | 1,000 (paper: 1,000) | 1 |" in read(coverage.section([as_many]))


def test_several_runs_are_held_against_the_whole_paper():
    rate = reproduction("rates", paper="fig:rate_ablation")
    sharp = reproduction("entropy", paper="footnote", name="y")
    whole = coverage.covered([rate, sharp])
    assert coverage.total(whole) == {"done": 0, "cells": 179, "measured": 0, "computed": 0}
    names = [one.title for one in whole]
    assert len(names) == len(set(names)) == 13
    averages = reproduction("arithmetic", paper="averages", name="headline-averages")
    done = coverage.total(coverage.covered([rate, averages]))
    assert done == {"done": 15, "cells": 179, "measured": 0, "computed": 15}


def test_only_a_finished_cell_is_done():
    step = done("certified", votes([1]), rate=0.7)
    one = reproduction("certified", step, paper="tb-sst2-certified")
    assert coverage.covered([one])[0].done == 1
    for unfinished in (replace(step, state="todo"), replace(step, result=None)):
        assert coverage.covered([replace(one, steps=(unfinished,))])[0].done == 0


def test_settings_that_differ_are_said():
    settings = {"base": "small", "masks": 16, "hide": "drop"}
    one = replace(agnews(("Baseline", "textfooler", attack_run(30, 60))), settings=settings)
    text = read(empirical.section([one]))
    assert "base small (paper: RoBERTa); texts 90 (paper: 1,000); masks 16 (paper: 100)" in text
    assert "hidden words left out" in text
    command = "ranmask attack --neighbours dne --attack-lm own-mlm --dtype float16 --output x"
    attacked = replace(one, steps=tuple(replace(step, command=command) for step in one.steps))
    text = read(empirical.section([attacked]))
    assert "candidates from the table dne (paper: 50 neighbours by GloVe); BERT-Attack's" in text
    assert "language model own-mlm (paper: BERT); victims in float16." in text
    some = replace(attacked, steps=(*attacked.steps, *one.steps))
    assert "victims in float16 in 1 of 2 attacks." in read(empirical.section([some]))
    same = replace(one, settings={**settings, "masks": 100, "hide": "mask"}, remarks=("By hand.",))
    [said, remark] = unlike(*experiments([same]), "RoBERTa")
    assert plain(said) == "Unlike the paper: base small (paper: RoBERTa); texts 90 (paper: 1,000)."
    assert plain(remark) == "By hand."
    [said, _] = unlike(*experiments([same]))
    assert plain(said).endswith(
        "texts 90 (paper: 1,000). Where the paper says nothing: base small."
    )


def test_the_remarks_of_all_runs_are_said_once():
    one = replace(agnews(("Baseline", "textfooler", attack_run(30, 60))), settings={"masks": 16})
    runs = [
        replace(one, remarks=("By hand.",)),
        replace(one, variant={"seed": 1}, settings={"seed": 1}, remarks=("By hand.", "Stopped.")),
        replace(one, variant={"base": "x/big"}, remarks=("Stopped.", "Cut short.")),
    ]
    remarks = [plain(block) for block in unlike(*experiments(runs))[1:]]
    assert remarks == ["By hand.", "seed 1: Stopped.", "big: Cut short."]
    unpublished = [replace(run, paper="") for run in runs[1:]]
    assert [plain(block) for block in unlike(*experiments(unpublished))] == [
        *("By hand.", "Stopped.", "big: Cut short.")
    ]


def test_trainings_that_differ_are_said():
    def trained(name, options, rows, note):
        train = {"name": name, "rows": rows, "note": note}
        step = done("training", Trained({"train": train}, {}))
        return replace(step, name=name, command=f"ranmask train {options} --output {name}")

    same = "--epochs 2 --batch-size 32 --learning-rate 5e-05"
    steps = [
        trained("none", same, 30, "60 of 90 training rows (partial); the first 30 of 60 rows"),
        trained("free", same, 30, "60 of 90 training rows (partial); the first 30 of 60 rows"),
        trained("pgd", same.replace("epochs 2", "epochs 1"), 30, None),
        trained("x+attacked", same, 45, "of 90 training rows (partial); 15 of 20 texts attacked"),
        trained("lm", f"--kind mlm {same} --learning-rate 1", 7, "of 90 training rows (partial)"),
    ]
    one = replace(agnews(("Baseline", "textfooler", attack_run(500, 500))), settings={"seed": 0})
    [said] = unlike(*experiments([replace(one, steps=(*one.steps, *steps))]))
    assert plain(said) == (
        "Unlike the paper: epochs 2, pgd: 1 (paper: at most 20); trained on 30 of 90 rows. "
        "Where the paper says nothing: 20 training texts attacked for augmentation."
    )
    faster = [replace(step, command=step.command.replace("5e-05", "1e-4")) for step in steps]
    [said] = unlike(*experiments([replace(one, steps=(*one.steps, *faster))]))
    assert "learning rate 1e-4 (paper: 5e-5)" in plain(said)


def test_who_is_first_here_and_not_in_the_paper():
    methods = published().empirical["tb-agnews-emperical"].methods
    cells = [(name, "textfooler", attack_run(10 + place, 80)) for place, name in enumerate(methods)]
    assert "Contradicts" not in read(empirical.section([agnews(*cells)]))
    cells[0] = ("Baseline", "textfooler", attack_run(60, 5))
    text = read(empirical.section([agnews(*cells)]))
    assert (
        "Contradicts the paper.** Under TextFooler Baseline is the most robust (92.3 %); " in text
    )
    assert "RanMASK-90% (vote), the most robust in the paper (55.1 %), has 24.6 %." in text
    [found] = empirical.in_short(experiments([agnews(*cells)])[0])
    assert found.verdict.startswith("contradicts the paper: another is first; rank correlation")
    # With one method missing, nobody is first, and nothing is contradicted.
    assert "Contradicts" not in read(empirical.section([agnews(cells[0], *cells[2:])]))


def test_attacks_that_nobody_ran_have_no_rank_correlation():
    methods = published().empirical["tb-agnews-emperical"].methods
    some = [methods[0], methods[1], methods[2], methods[5]]  # under TextFooler in this order there
    cells = [(name, "textfooler", attack_run(10 + n, 80)) for n, name in enumerate(some)]
    told = order_of(agnews(*cells))
    assert list(told) == ["TextFooler"]
    assert told["TextFooler"]["rank correlation"].text == "1.00"
    assert told["TextFooler"]["methods compared"].text == "4 of 7"


@pytest.mark.parametrize(
    ("held", "row", "contradicts"),
    [
        ((60, 30, 50, 70), ("90 %", "70.0", "70.0", "–", "rises, from 50.0 at 70 %"), False),
        ((80, 30, 20, 50), ("5 %", "80.0", "50.0", "yes", "rises, from 20.0 at 70 %"), True),
        ((55, 30, 60, 50), ("70 %", "60.0", "50.0", "yes", "falls, from 60.0 at 70 %"), True),
        # 6 or 7 texts of 100 are right at the one only: p = 1/32 or 1/64, times 3 other rates
        ((56, 30, 20, 50), ("5 %", "56.0", "50.0", "p = .094", "rises, from 20.0 at 70 %"), False),
        ((57, 30, 20, 50), ("5 %", "57.0", "50.0", "yes", "rises, from 20.0 at 70 %"), True),
    ],
    ids=["at the end", "at the start", "before the end", "within noise", "just significant"],
)
def test_a_peak_elsewhere_contradicts_the_paper(held, row, contradicts):
    steps = [
        done("attack", attack_run(n, 100 - n), rate=rate, ensemble="vote", attack="textfooler")
        for rate, n in zip((0.05, 0.3, 0.7, 0.9), held, strict=True)
    ]
    one = reproduction("rates", *steps)
    peaks, _ = tables(rates.section([one]).blocks)
    [shown] = peaks.rows
    assert tuple(cell.text for cell in shown) == (
        "Majority vote, TextFooler", *row
    )  # fmt: skip
    assert shown[1].strong is contradicts
    said = read(rates.section([one]))
    found = "Contradicts the paper.** Its curves all peak at 90 % masked; 1 of our 1 "
    assert (found in said) is contradicts and ("Contradicts" in said) is contradicts
    [found] = rates.in_short(experiments([one])[0])
    assert ("contradicts" in found.verdict) is contradicts
    assert ("as in the paper" in found.verdict) is (row[0] == "90 %")
    last = reproduction("rates", steps[-1])
    assert rates.in_short(experiments([last])[0])[0].verdict == "3 of 4 rates not run"


def test_the_results_in_short_of_several():
    """Ranked are the paper's methods alone, and none where one was not run."""
    methods = published().empirical["tb-agnews-emperical"].methods
    cells = [(name, "textfooler", attack_run(10 + place, 80)) for place, name in enumerate(methods)]
    cells.append(("Ours", "textfooler", attack_run(89, 1)))
    cells += [(name, "deepwordbug", attack_run(30, 60)) for name in methods[1:]]
    cells[0] = ("Baseline", "textfooler", attack_run(60, 30))
    votes_ = done("certified", votes([0, 1, 2, None]), rate=0.7)
    runs = [agnews(*cells), reproduction("certified", votes_, name="y", paper="tb-sst2-certified")]
    overview_ = next(one for one in build(runs).sections if one.anchor == "overview")
    [table] = tables(overview_.blocks)
    found = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert [row[0].text for row in table.rows] == ["Title", "", "Title", ""]
    assert found["largest median radius, proved"] == ["0", "none", "its radii are one too high"]
    assert found["highest CR@1, proved"][0] == ".500 (70 % masked)"
    ours, paper, verdict = found["most robust under TextFooler"]
    assert ours.startswith("Baseline, 66.7 [") and paper == "RanMASK-90% (vote), 55.1"
    assert verdict.startswith("contradicts the paper: another is first; rank correlation ")
    assert found["most robust under DeepWordBug"] == [
        "none named: Baseline not run", "RanMASK-90% (vote), 57.5", "",
    ]  # fmt: skip
    whole = next(tables(empirical.section(runs).blocks))
    bold = {row[0].text for row in whole.rows if row[2].strong}
    assert bold == {"Baseline"}


def test_single_runs_in_short_have_no_paper_beside_them():
    runs = [
        reproduction("certified", done("certified", votes([1]), rate=0.7), name="a"),
        reproduction("certified", done("certified", votes([2], guarantee=False)), name="b"),
    ]
    [table] = tables(overview.section(runs).blocks)
    assert [column.title for column in table.columns] == ["experiment", "figure", "ours"]
    assert table.rows[2][1].text == "largest median radius, claimed, no guarantee"


def test_boa_over_the_texts_that_all_met():
    first, second = attack_run(10, 10), attack_run(4, 1)  # rows 1 to 20, and 1 to 5
    one = agnews(("Baseline", "textfooler", first), ("PGD-10", "textfooler", second))
    *_, details = tables(empirical.section([one]).blocks)
    [place] = [
        number
        for number, column in enumerate(details.columns)
        if column.title == "Boa, 5 shared texts"
    ]
    shown = {row[0].text: row[place].text for row in details.rows}
    assert (shown["Baseline"], shown["PGD-10"], shown["FreeLB"]) == ("100.0", "80.0", "not run")


def test_a_median_that_is_not_the_papers():
    printed = Reading("paper-as-printed", False, (True,), (2,))
    for radius, said in ((2, False), (1, True)):
        one = reproduction(
            "certified",
            done("certified", votes([1], others=(replace(printed, radius=(radius,)),)), rate=0.7),
            paper="tb-sst2-certified",
        )
        text = read(certified.section([one]))
        assert ("At 70 % masked the paper has a median radius (MCB) of 2" in text) == said


@pytest.mark.parametrize(
    ("reach", "said"),
    [(30, "Contradicts the paper."), (49, "within noise. At 70 % masked"), (60, "")],
    ids=["far", "near", "the same"],
)
def test_a_median_may_differ_within_noise(reach, said):
    """Of 100 texts ``reach`` are certified at the paper's 2 words, the others at 1."""
    radii = (2,) * reach + (1,) * (100 - reach)
    printed = Reading("paper-as-printed", False, (True,) * 100, radii)
    one = reproduction(
        "certified",
        done("certified", votes([1] * 100, others=(printed,)), rate=0.7),
        paper="tb-sst2-certified",
    )
    assert certified.in_short(experiments([one])[0])[0].verdict.startswith("7 of 8 rates not run; ")
    text = read(certified.section([one])).replace("*", "")
    assert said in text
    assert ("Differs from the paper" in text) == (reach == 49)
    assert ("Contradicts" in text) == (reach == 30)


def test_sharper_in_the_paper_and_not_here():
    def one(safer, texts=10):
        rows, right = tuple(range(texts)), (True,) * texts
        steps = [
            done("predict", Predicted(rows, right, (value,) * texts, None), method=method)
            for method, value in (("SAFER", safer), ("RanMASK-5%", 0.1))
        ]
        found = [reproduction("entropy", *steps)]
        return read(entropy.section(found)), entropy.in_short(experiments(found)[0])[0].verdict

    text, verdict = one(0.01)
    assert "Contradicts" not in text and verdict == "3 of 5 methods not run"
    text, verdict = one(0.2)
    assert (
        "**Contradicts the paper.** SAFER has a higher vote entropy than RanMASK-5% (.200" in text
    )
    assert verdict == "contradicts the paper: RanMASK-5% before SAFER"
    text, verdict = one(0.2, texts=3)  # 2/8 at best
    assert "within noise.** SAFER has a higher" in text and "Contradicts" not in text
    assert verdict == "not significant: RanMASK-5% before SAFER"


def test_adversarial_examples_stand_beside_the_papers():
    lines = (
        {"text": "a good film", "status": "succeeded", "adversarial": "a goood flim"},
        {"text": "bad", "status": "failed", "adversarial": "baad"},
    )
    one = reproduction("adversarial", done("adversarial", Adversarial(lines), attack="deepwordbug"))
    text = read(adversarial.section([one]))
    assert "fo0tba1l" in text
    changed = next(tables(adversarial.section([one]).blocks)).rows
    assert changed[-2][2] == Cell("a goood flim", beside="good → goood, film → flim")
    assert changed[0][3].beside == "intact → untouched" and changed[0][3].quiet
    assert "| ours | a good film | a goood flim" in text
    assert "| ours | bad | no example found | not run |" in text


# The whole


def test_sections_follow_what_is_there():
    everything = [section.anchor for section in build(read_several(FILES)).sections]
    assert everything == [
        *(
            "coverage",
            "certificate",
            "overview",
            "certified",
            "attacks",
            "beta",
            "rates",
            "entropy",
        ),
        *("risk", "headlines", "provenance"),
    ]
    alone = build([reproduction("certified", done("certified", votes([1]), rate=0.7))])
    anchors = [section.anchor for section in alone.sections]
    assert anchors == ["certificate", "overview", "certified", "provenance"]


@pytest.mark.parametrize("kind", ["certified", "empirical", "beta", "rates", "entropy"])
def test_nothing_finished_is_no_error(kind):
    todo = Step("s", "certified", "ranmask x", {}, "todo")
    for one in (reproduction(kind), reproduction(kind, todo)):
        text = markdown.render(build([one]))
        assert "Title" in text
    assert "not started" in text


@pytest.mark.parametrize(
    ("kind", "measures", "result", "place"),
    [
        ("certified", "certified", votes([]), {"rate": 0.7}),
        ("certified", "certified", votes([None]), {"rate": 0.7}),
        ("certified", "examples", Examples(()), {}),
        ("certified", "examples", Examples(({"error": "no words", "row": 1},)), {}),
        ("empirical", "attack", attack_run(0, 0), {"method": "m", "attack": "textfooler"}),
        ("empirical", "attack", attack_run(0, 0, 2), {"method": "m", "attack": "textfooler"}),
        ("rates", "attack", attack_run(0, 0), {"rate": 0.1, "ensemble": "vote", "attack": "a"}),
        ("beta", "beta", Betas((), (), (1,), (), ((),), ((),)), {"corpus": "sst2", "rate": 0.1}),
        (
            "beta",
            "beta",
            Betas((1,), (1,), (2,), (0.5,), ((None,),), ((None,),)),
            {"corpus": "sst2", "rate": 0.1},
        ),
        (
            "beta",
            "beta",
            Betas((1,), (1,), (1,), (0.0,), ((0.0,),), ((0.0,),)),
            {"corpus": "other", "rate": 0.1},
        ),
        ("entropy", "predict", Predicted((), (), (), None), {"method": "SAFER"}),
        ("entropy", "predict", Predicted((1,), (True,), (0.0,), (0.0,)), {"method": "SAFER"}),
    ],
)
def test_empty_and_smallest_results_are_no_error(kind, measures, result, place):
    from ranmask.paper.report import html

    report = build([reproduction(kind, done(measures, result, **place))])
    assert "Title" in html.render(report) and "Title" in markdown.render(report, Path("f"))
    markdown.picture_files(report)


def test_the_best_rate_has_the_largest_median_then_the_most_texts():
    def with_radii(*radii):
        right = tuple(radius is not None for radius in radii)
        exact = Reading("exact", True, right, radii)
        places = tuple(range(1, len(radii) + 1))
        return Certified(places, (20,) * len(radii), 100, (exact,))

    wide = with_radii(1, 1, 1, 1, 1)
    deep = with_radii(3, 3, 3, None, None)
    assert ByRate({0.6: (wide,), 0.9: (deep,)}).best == 0.9
    shallow = with_radii(1, 0, 0, 0, None)
    better = with_radii(1, 1, 0, 0, None)
    assert ByRate({0.8: (better,), 0.9: (shallow,)}).best == 0.8
    nothing, none_changed = with_radii(None, None, 1), with_radii(0, 0, None)
    assert ByRate({0.3: (nothing,), 0.5: (none_changed,)}).best == 0.5
    assert ByRate({0.6: (wide,) * 3, 0.9: (deep, deep, shallow)}).best == 0.9
