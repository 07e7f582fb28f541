"""``ranmask explain``: as JSON lines, and drawn."""

import io
import json

import pytest
from rich.console import Console

from commands import run_cli
from ranmask.cli.explain import draw

FAKE = "ranmask.models.testing:keyword_classifier"
TEXT = "good film good great acting"


def explained(*words):
    done = run_cli("explain", *words)
    assert done.stderr == ""
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


def drawn(found):
    out = io.StringIO()
    draw(Console(file=out, width=200), found)
    return out.getvalue()


def test_what_is_shown_is_what_was_certified():
    code, [first, second] = explained("-m", FAKE, "--keep", 1, "--copies", 3, TEXT, " ")
    assert code == 3 and second == {"row": 2, "error": "the text has no words: ' '"}
    certified = json.loads(run_cli("certify", "-m", FAKE, "--keep", 1, TEXT).stdout)
    assert first["result"].items() <= certified.items()
    assert [copy["kept"] for copy in first["copies"]] == [[0], [1], [2]]
    assert list(first["curves"]) == ["exact"]  # others would need votes of their own


def test_votes_are_drawn():
    _, [found] = explained("-m", FAKE, "--keep", 1, "--copies", 2, "--labels", "bad,good", TEXT)
    told = drawn(found).splitlines()
    assert told[:2] == [TEXT, "good, radius 0 of 5 words"]
    assert " bad  2 of 5 copies  " + "█" * 16 in told
    assert "good  3 of 5 copies  " + "█" * 24 in told
    assert "0  +0.100  " + "█" * 40 in told and any(line.startswith("1  -") for line in told)
    assert told[-2:] == ["good  good · · · ·", "bad   · film · · ·"]


@pytest.mark.parametrize("model", ["news", "news-words"])
def test_scores_are_drawn(model):
    _, [found] = explained("-m", model, "Oil prices soared on Monday as traders feared supply cuts")
    told = drawn(found)
    assert "Business, radius" in told and "mean score, and votes" in told
    assert f"{found['result']['scores'][2]:.2f}, " in told


def test_what_has_no_copies_is_drawn_without():
    _, [found] = explained("-m", "news-words", "--threat", "span", TEXT)
    assert found["curves"] == {} and "changed words" not in drawn(found)


def test_a_copy_that_says_nothing_is_drawn_with_no_class():
    asked = ("-m", FAKE, "--keep", 1, "--ensemble", "score", "--labels", "bad,good")
    _, [found] = explained(*asked, "good film bad")
    assert [copy["label_id"] for copy in found["copies"]] == [1, None, 0]
    assert drawn(found).splitlines()[-3:] == ["good  good · ·", "none  · film ·", "bad   · · bad"]
