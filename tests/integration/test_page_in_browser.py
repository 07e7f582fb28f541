"""The page of the service in a real browser: every control, both themes, a phone, own host only."""

import re

import pytest
from browser_page import LOVED, NEEDED, OVERFLOW, Watched, browsing, playwright, serving

from ranmask.options import CERTIFICATES

pytestmark = NEEDED

KEY = "a key of the tests".replace(" ", "-")
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
WHITE = "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def service():
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with browsing() as one:
        yield one


@pytest.fixture
def opened(browser, service):
    with Watched(browser, service.url) as watched:
        yield watched


def test_a_text_is_explained(opened):
    page = opened.page
    page.click("text=A film somebody loved")
    playwright.expect(page.locator("#verdict-title")).to_be_focused()
    playwright.expect(page.locator("#verdict")).to_be_in_viewport()
    opened.shows("#progress", r"^positive, proved for \d words\.$")
    opened.shows("#verdict", r"The answer is positive. It stays positive if any \d words are")
    opened.shows("#verdict-how", "proved, not estimated")
    assert page.locator("#shown-text mark").count() > 1
    assert page.locator("#votes li").count() == 2
    assert page.locator("#votes .won .name").inner_text() == "positive"
    assert page.locator("#copies li").count() == 8
    assert page.locator("#radii tr").count() == 4
    assert page.locator("#chart polyline").count() == 3
    assert page.locator("#chart .cross").count() == 1
    assert page.locator("#key-list li").count() == 4


def test_mean_scores_are_no_shares_and_votes_add_up(opened):
    """Each class is judged by itself: mean scores of four classes add up to more than 1."""
    page = opened.page
    page.select_option("#model", "news-words")
    opened.certify("Oil prices climbed to a record high as traders worried about supplies")
    opened.shows("#votes-title", "^How the copies scored it$")
    said = page.locator("#votes .count").all_inner_texts()
    assert all(re.fullmatch(r"\d\.\d{3} · best for \d+ of 12", one) for one in said), said
    scores = [float(one.split()[0]) for one in said]
    assert sum(scores) > 1.1 and scores == sorted(scores, reverse=True)
    widths = page.locator("#votes .bar span").evaluate_all("all => all.map(one => one.style.width)")
    assert [float(one.rstrip("%")) / 100 for one in widths] == pytest.approx(scores, abs=1e-3)
    opened.shows("#votes-note", "from 0 to 1.*no shares of a whole")
    opened.choose(ensemble="vote")
    opened.shows("#votes-title", "^How the copies voted$")
    votes = [int(one.split()[0]) for one in page.locator("#votes .count").all_inner_texts()]
    assert sum(votes) == 12


def test_the_table_of_certificates_is_what_choosing_each_gives(opened):
    page = opened.page
    page.select_option("#model", "news-words")
    opened.certify("Oil prices climbed to a record high as traders worried about supplies")
    kinds = ("exact", "ablation", "paper", "paper-as-printed")
    tables, chosen = [], []
    for kind in (*kinds[1:], "exact"):
        opened.choose(certificate=kind)
        tables.append(page.locator("#radii .number").all_inner_texts())
        chosen.append(page.locator("#radii .own .number").inner_text())
    assert tables == [[chosen[-1], *chosen[:-1]]] * 4
    assert len(set(chosen)) > 1


def test_words_are_counted_and_the_answer_follows(opened):
    opened.certify()
    opened.shows("#counted", "No word changed yet")
    fields = opened.fields()
    with opened.answered("predict"):
        fields.nth(1).fill("terrible")
    opened.shows("#counted", r"1 of \d words changed: still proved to be positive")
    opened.shows("#now", "still positive")
    for place, word in ((4, "awful"), (8, "dull"), (10, "boring"), (5, "worst"), (11, "waste")):
        fields.nth(place).fill(word)
    opened.shows("#counted", "beyond the proof")
    opened.shows("#now", "Broken: the answer is now negative")
    opened.shows("#changes", "wonderful → terrible.*superb → awful")
    assert opened.page.locator("#chart .now").count() == 1
    opened.page.click("#restore")
    opened.shows("#counted", "No word changed yet")
    opened.shows("#now", "The answer is positive")


def test_a_field_is_one_word_and_a_blank_moves_on(opened):
    opened.certify()
    fields = opened.fields()
    fields.nth(1).fill("two words")
    assert fields.nth(1).input_value() == "twowords"
    fields.nth(1).focus()
    opened.page.keyboard.press("End")
    opened.page.keyboard.press("Space")
    playwright.expect(fields.nth(2)).to_be_focused()
    fields.nth(2).fill("")
    opened.shows("#counted", "1 word left out: beyond the proof")


def test_the_machine_fails_within_the_proof_and_may_succeed_beyond_it(opened):
    opened.certify()
    opened.page.click("#attack-within")
    opened.shows("#attack-result", "The attack failed, as the proof says it must")
    opened.shows("#now", "still positive")
    opened.page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack succeeded.*now negative")
    opened.shows("#counted", "1 more than the")
    assert (
        opened.page.locator("#changes li").count() == opened.page.locator("input.changed").count()
    )
    assert "broken" in opened.page.locator("#counter").get_attribute("class")


def test_model_words_kept_ensemble_and_certificate_can_be_chosen(opened):
    page = opened.page
    opened.certify()
    opened.choose(ensemble="vote")
    opened.shows("#votes .won .count", r"^\d+ of \d+$")
    with opened.answered("explain"):
        page.fill("#keep", "2")
        page.press("#keep", "Enter")
    opened.shows("#copies-note", "Each shows 2 words")
    opened.choose(certificate="ablation")
    opened.shows("#verdict-how", "at least 95 %")
    assert page.is_disabled("#ensemble")
    opened.choose(model="news-words")
    assert page.input_value("#keep") == ""
    opened.shows("#example-buttons", "A ceasefire")
    playwright.expect(page.locator("#votes li")).to_have_count(4)


def test_every_certificate_can_be_chosen_and_the_papers_say_that_they_prove_nothing(opened):
    opened.certify()
    options = opened.page.locator("#certificate option")
    kinds = options.evaluate_all("all => all.map((one) => one.value)")
    assert kinds == list(CERTIFICATES)
    for kind in kinds[1:]:
        opened.choose(certificate=kind)
        own = opened.page.locator("#radii tr.own")
        assert own.count() == 1
        paper = kind.startswith("paper")
        opened.shows("#verdict-how", "no guarantee" if paper else "at least 95 %")
        opened.shows("#counted", "covered by the claim" if paper else "covered by the proof")
        assert own.locator("td").last.inner_text() == ("no" if paper else "yes, with 95 %")
        looks = opened.page.locator("#key-list svg").evaluate_all(
            "all => all.map(one => one.className.baseVal)"
        )
        assert len(set(looks)) == len(looks), "two certificates look alike"


def test_edits_are_covered_where_the_model_is_blind_to_order(opened):
    page = opened.page
    opened.certify()
    opened.choose(threat="edits")
    opened.shows("#verdict", r"if any \d words are replaced, added or deleted")
    opened.shows("#counted", r"No edit yet. Up to \d edits")
    words = LOVED.split()
    with opened.answered("predict"):
        page.fill("#free", " ".join(reversed(words)))
    opened.shows("#counted", "Only the order is another")
    with opened.answered("predict"):
        page.fill("#free", "not " + " ".join(words[2:]))
    opened.shows("#counted", r"2 of \d edits: still proved to be positive")
    opened.shows("#changes", "A → not.*wonderful")
    opened.shows("#now", "still positive")
    page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack succeeded")
    opened.shows("#counted", "1 more than the")
    page.fill("#free", "  ")
    opened.shows("#now", "There is no word left")
    page.click("#restore")
    opened.shows("#counted", "No edit yet")
    opened.choose(certificate="paper")
    assert (page.input_value("#threat"), page.is_disabled("#threat")) == ("substitutions", True)
    opened.shows("#choice-note", "added or deleted are covered by the exact certificate only")


def test_other_threats_stand_below_the_verdict(opened):
    page = opened.page
    opened.certify()
    assert page.is_hidden("#menu")
    opened.choose(threats="all")
    opened.shows("#menu-radii", r"insertions: any \d+ words added, anywhere")
    opened.shows("#menu-radii", r"characters: any \d characters? added, deleted or replaced")
    opened.shows("#menu-radii", r"span: any \d+ neighbouring words replaced by as many")
    assert "synonyms" not in page.inner_text("#menu-radii")  # this model has no table
    assert page.is_disabled("#threats option[value=synonyms]")
    opened.choose(threats="span")
    assert page.locator("#menu-radii li").count() == 1
    opened.choose(certificate="paper")
    assert (page.input_value("#threats"), page.is_disabled("#threats")) == ("", True)
    opened.choose(certificate="exact")
    page.fill("#keep", "2")
    page.dispatch_event("#keep", "change")
    assert page.is_disabled("#threats option[value=insertions]")


def test_a_link_reproduces_the_view(opened):
    page = opened.page
    page.select_option("#ensemble", "vote")
    page.fill("#keep", "2")
    opened.certify(f"{LOVED} 🎬 \x00 \ufeff &=#+%")
    with opened.answered("predict"):
        opened.fields().nth(1).fill("terrible")
    opened.shows("#now", "still positive")
    playwright.expect(page).to_have_url(re.compile("terrible"))
    seen = opened.seen("#verdict", "#votes", "#radii", "#counter", "#changes")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still positive")
    assert opened.seen(*seen) == seen
    assert opened.fields().nth(1).input_value() == "terrible"
    assert (page.input_value("#keep"), page.input_value("#ensemble")) == ("2", "vote")


def test_a_link_reproduces_edits(opened):
    page = opened.page
    page.select_option("#threat", "edits")
    opened.certify()
    with opened.answered("predict"):
        page.fill("#free", f"not a {LOVED}")
    playwright.expect(page).to_have_url(re.compile("edited="))
    opened.shows("#now", "still")
    seen = opened.seen("#verdict", "#counter", "#changes")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still")
    assert opened.seen(*seen) == seen
    assert page.input_value("#threat") == "edits"


def test_back_and_forward_lead_from_view_to_view(opened):
    page = opened.page
    opened.certify()
    first = page.url
    with opened.answered("predict"):
        opened.fields().nth(1).fill("terrible")
    opened.shows("#now", "still")
    playwright.expect(page).to_have_url(re.compile("terrible"))
    opened.choose(model="news-words", certificate="ablation")
    with opened.answered("explain"):
        page.go_back()
    opened.settled()
    assert (page.input_value("#model"), page.input_value("#certificate")) == ("news-words", "exact")
    with opened.answered("explain"):
        page.go_back()
    opened.shows("#verdict", "positive")
    assert page.input_value("#model") == "reviews-words"
    assert opened.fields().nth(1).input_value() == "terrible"
    assert page.url.startswith(first)
    with opened.answered("explain"):
        page.go_forward()
    playwright.expect(page.locator("#votes li")).to_have_count(4)


def test_a_link_to_a_model_that_is_not_here_says_so(opened):
    opened.open("#model=elsewhere&text=a+good+film")
    opened.shows("#error", "asks for the model elsewhere, which is not served here")
    opened.hides("#answer")
    assert opened.page.input_value("#text") == "a good film"


def test_what_users_write_is_text(opened):
    text = '<img src=x onerror="console.log(1)"> <b>superb</b> wonderful "film" & more'
    opened.certify(text)
    assert opened.page.inner_text("#shown-text").split() == text.split()
    assert opened.page.locator("#answer img").count() == 0
    assert opened.fields().nth(4).input_value() == text.split()[4]


def test_all_of_it_can_be_reached_by_keyboard_and_has_a_name(opened):
    opened.certify()
    opened.page.focus("#text")
    reached = []
    for _ in range(50):
        opened.page.keyboard.press("Tab")
        reached.append(opened.page.evaluate("document.activeElement.id"))
    for control in (
        "model",
        "keep",
        "certificate",
        "threat",
        "certify",
        "attack-within",
        "restore",
    ):
        assert control in reached
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button")]
            .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    opened.page.focus("#skip-words")
    opened.page.keyboard.press("Enter")
    opened.page.keyboard.press("Tab")
    playwright.expect(opened.page.locator("#attack-within")).to_be_focused()


def test_a_text_is_written_as_its_letters_are(opened):
    opened.certify("فيلم رائع superb جدا")
    assert opened.page.get_attribute("#fields", "dir") == "rtl"
    opened.fields().nth(0).focus()
    opened.page.keyboard.press("End")
    opened.page.keyboard.press("ArrowLeft")
    playwright.expect(opened.fields().nth(1)).to_be_focused()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window_in_either_theme(browser, service, theme, width):
    with Watched(browser, service.url, theme=theme, width=width) as watched:
        watched.certify(f"{LOVED} {'unbreakable' * 12}")
        watched.page.click("#attack-beyond")
        watched.shows("#attack-result", "The attack (succeeded|failed)")
        assert watched.page.evaluate(OVERFLOW) == []
        watched.page.set_viewport_size({"width": 320, "height": 700})
        watched.page.wait_for_timeout(200)
        assert watched.page.evaluate(OVERFLOW) == []
        assert (watched.page.evaluate(BACKGROUND) == WHITE) == (theme == "light")
        watched.page.emulate_media(media="print")
        assert watched.page.evaluate(BACKGROUND) == WHITE  # paper has no dark theme
        assert watched.page.locator("#attack-within").is_hidden()


def test_errors_are_told(opened):
    page = opened.page
    page.fill("#text", "   ")
    page.click("#certify")
    opened.shows("#error", "Write a text first")
    page.fill("#text", "word " * 2500)
    with opened.answered("explain"):
        page.click("#certify")
    opened.shows("#error", "2500|2,500")
    assert not page.is_visible("#answer")
    opened.faults.clear()  # the browser itself tells of the status 4xx
    opened.certify()
    assert not page.is_visible("#error")


def test_the_page_asks_for_the_key(browser):
    with serving(api_key=KEY) as keyed:
        watched = Watched(browser, keyed.url)
        watched.page.goto(keyed.url)
        watched.shows("#error", "asks for a key")
        watched.faults.clear()
        watched.page.fill("#key", KEY)
        watched.page.click("text=Use this key")
        watched.page.wait_for_selector("#model option", state="attached")
        watched.hides("#key-form")
        watched.certify()
        watched.shows("#verdict", "positive")
        assert KEY not in watched.page.url
        watched.context.close()
        assert watched.faults == []
