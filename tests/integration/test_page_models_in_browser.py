"""The page with models of other kinds: pairs, synonyms, classes without names."""

import pytest
from browser_page import NEEDED, OVERFLOW, Watched, browsing, playwright, serving

pytestmark = NEEDED

TABLE = {"film": ["story", "plot"], "good": ["great", "fine"], "great": ["good"], "was": ["is"]}


@pytest.fixture(scope="module")
def service(classifier, tmp_path_factory):
    """A tiny encoder with the paper's head for pairs, one smoothed by synonyms, two tables."""
    from ranmask import (
        ProtectedClassifier,
        SmoothedClassifier,
        SynonymSets,
        SynonymSmoothedClassifier,
        load_default,
    )

    folder = tmp_path_factory.mktemp("served")
    SmoothedClassifier(classifier("pair_bert"), keep=1).save_pretrained(str(folder / "pairs"))
    SynonymSmoothedClassifier(
        classifier("bert"), SynonymSets(TABLE, name="made up"), masks=300, selection_masks=50
    ).save_pretrained(str(folder / "synonyms"))
    table = load_default("reviews-words").base
    ProtectedClassifier(
        table, reader=table, reader_weights=[0.25, 0.75], **table.smoothing
    ).save_pretrained(str(folder / "parts"))
    models = (*(str(folder / name) for name in ("pairs", "synonyms", "parts")), "reviews-words")
    with serving(models) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with browsing() as one:
        yield one


@pytest.fixture
def opened(browser, service):
    with Watched(browser, service.url) as watched:
        yield watched


def test_a_model_of_pairs_asks_for_a_premise(opened):
    page = opened.page
    playwright.expect(page.locator("#premise")).to_be_visible()
    page.fill("#text", "the film was good and the plot was great")
    page.click("#certify")
    playwright.expect(page.locator("#premise")).to_be_focused()
    page.fill("#premise", "a dull story")
    opened.certify("the film was good and the plot was great")
    opened.shows("#shown-premise", "stays as it is: a dull story")
    opened.shows("#assumptions", "the premise does not change")
    with opened.answered("predict") as answer:
        opened.fields().nth(0).fill("a")
    sent = answer.value.request.post_data_json["text"]
    assert sent == ["a dull story", "a film was good and the plot was great"]
    opened.shows("#now", "still")
    with opened.answered("attack"):
        page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack (succeeded|failed)")
    seen = opened.seen("#verdict", "#counted", "#shown-premise")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still|now")
    assert opened.seen(*seen) == seen
    opened.choose(model="reviews-words")
    opened.hides("#pair")
    opened.hides("#shown-premise")  # a table reads no pairs, and is sent none


def test_a_reader_of_parts_is_asked_what_it_proves(opened):
    page = opened.page
    page.select_option("#model", "parts")
    assert page.is_disabled("#threat")
    assert page.is_disabled("#threats option[value=insertions]")
    opened.shows("#choice-note", "reads parts of the text, too, which are cut by place")
    page.select_option("#threats", "all")
    opened.certify("the film was good and the plot was great")
    opened.shows("#menu-radii", "span: ")
    assert page.locator("#menu-radii li").count() == 1
    opened.choose(model="reviews-words")
    assert not page.is_disabled("#threat")


def test_a_model_of_synonyms_says_what_its_proof_covers(opened):
    page = opened.page
    page.select_option("#model", "synonyms")
    for name in ("keep", "certificate", "threat", "ensemble"):
        opened.hides(f"#{name}")
    opened.shows(".lead", "to a synonym that its table lists")
    opened.certify("the film was good")
    opened.shows("#verdict", "words are replaced by synonyms that its table lists")
    opened.shows("#verdict-how", "95 %.*nothing of any other word")
    opened.shows("#how-to-break", "and no others")
    opened.shows("#assumptions", "the table 'made up' lists")
    opened.hides("#attack-within")
    opened.hides("#chart")
    fields = opened.fields()
    with opened.answered("predict"):
        fields.nth(1).fill("plot")
    opened.shows("#listed", "Listed for “film”: story, plot")
    opened.shows("#counted", r"1 of \d words changed: still 95 % sure to be")
    with opened.answered("predict"):
        fields.nth(3).fill("bad")
    opened.shows("#counted", "1 word is not among the listed synonyms: beyond the proof")
    with opened.answered("predict"):
        fields.nth(3).fill("fine")
    opened.shows("#counted", r"2 of \d words changed: still 95 % sure to be")
    opened.shows("#now", "The answer is")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#counted", r"2 of \d words changed: still")


@pytest.mark.parametrize("width", [360, 1200])
def test_many_classes_without_names(browser, width):
    models = ("many=browser_page:of_twenty_classes",)
    with serving(models, keep=1) as running, Watched(browser, running.url, width=width) as opened:
        opened.certify("one two three four five six seven eight nine ten eleven twelve")
        opened.shows("#verdict", r"^The answer is class \d+")
        assert opened.page.locator("#votes li").count() == 8
        opened.shows("#others-title", "12 more classes")
        opened.page.click("#others-title")
        playwright.expect(opened.page.locator("#other-votes li").last).to_be_visible()
        assert opened.page.evaluate(OVERFLOW) == []
        opened.page.click("#attack-beyond")
        opened.shows("#attack-result", r"The attack .* class \d+")
        assert opened.page.is_disabled("#threat")
        opened.shows("#choice-note", "added or deleted ones are not covered")
