"""The page with models of other kinds: pairs, synonyms, classes without names."""

import re

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
    opened.shows("#sorts", "pairs of texts")
    page.fill("#text", "the film was good and the plot was great")
    opened.shows("#error", "Write a premise, too")
    with opened.answered("explain"):
        page.fill("#premise", "a dull story")
        page.press("#premise", "Tab")
    opened.settled()
    opened.hides("#error")
    page.click("#done")
    page.click("#assumes summary")
    opened.shows("#assumptions", "the premise does not change")
    with opened.answered("explain") as answer:
        page.fill("#text", "a film was good and the plot was great")
    sent = answer.value.request.post_data_json["text"]
    assert sent == ["a dull story", "a film was good and the plot was great"]
    opened.shows("#now", "still|Broken")
    with opened.answered("attack"):
        page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack (succeeded|failed)")
    playwright.expect(page).to_have_url(re.compile("edited="))
    seen = opened.seen("#verdict", "#counted")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still|now")
    assert opened.seen(*seen) == seen
    assert page.input_value("#premise") == "a dull story"
    opened.choose(model="reviews-words")
    opened.hides("#pair")  # a table reads no pairs, and is sent none


def test_a_reader_of_parts_is_asked_what_it_proves(opened):
    page = opened.page
    opened.choose_model("parts")
    assert page.is_disabled("#threat-edits")
    opened.shows("#threat-note", "reads parts of the text, too, which are cut by place")
    opened.certify("the film was good and the plot was great")
    opened.shows("#menu", "May a run of neighbours be replaced")
    assert page.locator("#menu dt").count() == 1
    opened.choose(model="reviews-words")
    assert not page.is_disabled("#threat-edits")


def test_the_voter_of_the_whole_text_stands_beside_the_tiles(opened):
    page = opened.page
    opened.choose_model("parts")
    opened.certify("the film was good and the plot was great")
    rows = page.locator("#readings li")
    assert rows.count() == 2  # the whole text, and its halves
    opened.shows("#readings li >> nth=0", r"^Whole-text voter: positive · counts 0.25 words$")
    assert rows.nth(1).locator(".reading").count() == 2
    opened.shows("#voting-lead", "one voter more, which reads the whole text")
    opened.shows("#enough-lead", "and the voter that reads the whole text")
    page.click("#compared summary")
    opened.shows("#compared-note", "only the exact certificate allows for that")
    with opened.answered("explain"):
        page.fill("#text", "the film was awful and the plot was terrible")
    opened.shows("#readings li >> nth=0", "Whole-text voter: negative")
    opened.choose(model="reviews-words")
    opened.hides("#readings")


def test_a_model_of_synonyms_says_what_its_proof_covers(opened):
    page = opened.page
    opened.choose_model("synonyms")
    for name in ("keep", "certificate", "ensemble", "attacker"):
        opened.hides(f"#{name}")
    opened.shows("#lead", "to a synonym that its table lists")
    opened.certify("the film was good")
    opened.shows("#verdict", "words? ?.*synonyms that its table lists")
    opened.shows("#verdict", "95 %.*nothing of any other word")
    page.click("#assumes summary")
    opened.shows("#assumptions", "the table 'made up' lists")
    for hidden in ("#attack-within", "#voting", "#enough", "#compared"):
        opened.hides(hidden)
    with opened.answered("explain"):
        page.fill("#text", "the plot was good")
    page.evaluate("document.getElementById('text').setSelectionRange(5, 5)")
    opened.shows("#listed", "Listed for “film”: story, plot")
    opened.shows("#counted", r"1 of \d words changed: still 95 % sure to be")
    with opened.answered("explain"):
        page.fill("#text", "the plot was bad")
    opened.shows("#counted", "1 word is not among the listed synonyms: beyond the proof")
    with opened.answered("explain"):
        page.fill("#text", "the plot was fine")
    opened.shows("#counted", r"2 of \d words changed: still 95 % sure to be")
    opened.shows("#now", "The answer is|Broken")
    playwright.expect(page).to_have_url(re.compile("fine"))
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#counted", r"2 of \d words changed: still")


@pytest.mark.parametrize("width", [360, 1200])
def test_many_classes_without_names(browser, width):
    models = ("many=browser_page:of_twenty_classes",)
    with serving(models, keep=1) as running, Watched(browser, running.url, width=width) as opened:
        opened.certify("one two three four five six seven eight nine ten eleven twelve")
        opened.shows("#label", r"^class \d+$")
        assert opened.page.locator("#votes li").count() == 8
        opened.shows("#others-title", "12 more classes")
        opened.page.click("#others-title")
        playwright.expect(opened.page.locator("#other-votes li").last).to_be_visible()
        assert opened.page.evaluate(OVERFLOW) == []
        opened.page.click("#attack-beyond")
        opened.shows("#attack-result", r"The attack .* class \d+")
        assert opened.page.is_disabled("#threat-edits")
        opened.shows("#threat-note", "added or deleted ones are not covered")
