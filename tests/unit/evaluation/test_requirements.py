"""The grammar of requirements: what is read, and what is said of what cannot be."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.errors import OptionError
from ranmask.evaluation.requirements import COMPARISONS, KINDS, FigureName, parse_requirement

RECIPES = ("textfooler", "bert-attack")


@pytest.mark.parametrize(
    ("text", "name", "comparison", "bound"),
    [
        ("accuracy >= .9", FigureName("accuracy"), ">=", "9/10"),
        ("Balanced  Accuracy>90%", FigureName("balanced accuracy"), ">", "9/10"),
        ("recall@fpr=1% >= .8", FigureName("recall", rate=Fraction(1, 100)), ">=", "4/5"),
        ("f1 @ FPR = 0.5 % >= 1.", None, None, None),  # a percent sign belongs to its number
        ("f1 @ FPR = 0.5% >= 1.", FigureName("f1", rate=Fraction(1, 200)), ">=", "1"),
        ("certified recall@2 >= .5", FigureName("certified recall", 2), ">=", "1/2"),
        (
            "certified recall@fpr=.01,10 >= 0",
            FigureName("certified recall", 10, Fraction(1, 100)),
            ">=",
            "0",
        ),
        ("median radius >= 3", FigureName("median radius"), ">=", "3"),
        ("false-positive rate < 2%", FigureName("false-positive rate"), "<", "1/50"),
        (
            "robust accuracy(bert-attack) >= .4",
            FigureName("robust accuracy", recipe="bert-attack"),
            ">=",
            "2/5",
        ),
        ("errors <= 0", FigureName("errors"), "<=", "0"),
    ],
)
def test_read(text, name, comparison, bound):
    if name is None:
        with pytest.raises(OptionError, match="'%'"):
            parse_requirement(text, RECIPES)
        return
    found = parse_requirement(text, RECIPES)
    assert (found.figure, found.comparison, found.bound) == (name, comparison, Fraction(bound))
    assert parse_requirement(str(found), RECIPES) == found  # written as it is read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acuracy >= .9", "'acuracy' is no figure; known are accuracy, balanced accuracy,"),
        ("", "'' is no figure"),
        ("accuracy", "one of >=, >, <=, < is wanted, not ''"),
        ("accuracy => .9", "one of >=, >, <=, < is wanted, not '='"),
        ("accuracy == .9", "not '='"),
        ("accuracy >= high", "a number is wanted, not 'high'"),
        ("accuracy >= -1", "a number is wanted, not '-1'"),
        ("accuracy >= 90", "lies between 0 and 1: write 90% or 0.9, not 90"),
        ("accuracy >= .9 always", "'always' is too much"),
        ("accuracy@2 >= .9", "'2' is no argument of accuracy, which takes no argument"),
        ("recall@2 >= .9", "'2' is no argument of recall, which takes fpr=RATE"),
        ("recall@far=1% >= .9", "'far' is no argument of recall"),
        ("recall@fpr 1% >= .9", "'=' is wanted after fpr, not '1%'"),
        ("recall@fpr=.1 percent >= .9", "not 'percent'"),
        ("recall@fpr=120% >= .9", "a rate lies below 1"),
        ("recall@fpr=1 >= .9", "a rate lies below 1: write 1% or 0.01"),  # it would flag all texts
        ("errors <= 1", "errors is never above 1, which is all: write 1% or 0.01"),
        ("certified accuracy >= .9", "needs a number of changed words, as certified accuracy@2"),
        ("certified recall@fpr=1% >= .9", "needs a number of changed words"),
        ("certified recall@11,fpr=1% >= .9", "up to 10 words, not 11"),
        ("robust accuracy >= .9", "needs an attack, as robust accuracy(textfooler)"),
        ("robust accuracy(foo) >= .9", "'foo' is no attack; known are textfooler, bert-attack"),
        ("robust accuracy(textfooler >= .9", "')' is wanted after textfooler, not '>='"),
        ("accuracy(textfooler) >= .9", "'(' is too much"),
    ],
)
def test_refused(text, said):
    with pytest.raises(OptionError) as caught:
        parse_requirement(text, RECIPES)
    assert said in str(caught.value) and repr(text) in str(caught.value)


@given(st.text(alphabet="accuryel rtifd@(),=<>%.019-", max_size=30))
def test_whatever_is_written_is_read_or_refused(text):
    try:
        found = parse_requirement(text, RECIPES)
    except OptionError:
        return
    assert parse_requirement(str(found), RECIPES).figure == found.figure


@given(
    st.sampled_from(sorted(COMPARISONS)),
    st.fractions(0, 1, max_denominator=40),
    st.integers(0, 99),
)
def test_what_holds(comparison, value, percent):
    found = parse_requirement(f"accuracy {comparison} {percent}%", ())
    expected = {
        ">=": value >= Fraction(percent, 100),
        ">": value > Fraction(percent, 100),
        "<=": value <= Fraction(percent, 100),
        "<": value < Fraction(percent, 100),
    }
    assert found.holds(value) == expected[comparison]
    assert found.least == (">" in comparison)


def test_every_figure_can_be_written():
    for name, kind in KINDS.items():
        at = "@1,fpr=1%" if kind.changed and kind.rate else "@1" if kind.changed else ""
        recipe = "(textfooler)" if kind.recipe else ""
        assert parse_requirement(f"{name}{at}{recipe} > 0", RECIPES).figure.name == name
