"""The page of the service in a real browser: what it opens on, choices, links, keyboard, themes."""

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


@pytest.mark.parametrize(("width", "height"), [(375, 667), (1280, 800)])
def test_the_first_screen_says_what_it_does_on_what_and_what_the_number_means(
    browser, service, width, height
):
    with Watched(browser, service.url) as opened:
        opened.page.set_viewport_size({"width": width, "height": height})
        opened.open()
        opened.shows("#lead", "sorts film reviews into positive and negative, and proves how many")
        opened.shows("#label", "^positive$")
        opened.shows("#left", r"^\d+$")
        opened.shows("#left-unit", "changes left before the proof ends")
        opened.shows("#verdict", r"any \d words, change them to anything at all: .* stays positive")
        for seen in ("#lead", "#text", "#label", "#left-unit", "#meter", "#verdict strong"):
            playwright.expect(opened.page.locator(seen)).to_be_in_viewport(ratio=1)
        assert not opened.page.evaluate("document.getElementById('options').open")


def test_another_model_says_what_it_sorts_and_opens_on_its_own_example(opened):
    opened.settled()
    opened.choose(model="news-words")
    opened.shows("#sorts", "^news into four topics$")
    opened.shows("#label", "^Business$")
    assert opened.page.input_value("#text").startswith("Oil prices climbed")
    opened.page.click("text=A cup final")
    opened.shows("#label", "^Sports$")


def test_one_s_own_text_is_proved_as_it_is_written(opened):
    page = opened.page
    page.click("#own")
    playwright.expect(page.locator("#text")).to_be_focused()
    opened.hides("#answer")
    for word in ("wonderful ", "superb "):
        with opened.answered("explain"):
            page.keyboard.type(word)
        opened.settled()
        opened.shows("#label", "positive")
    page.keyboard.type("perfect moving great film")
    opened.shows("#left", "^[1-9]$")
    opened.shows("#counted", "No word changed yet")
    opened.hides("#attack-within")
    page.click("#done")
    playwright.expect(page.locator("#text")).to_be_focused()
    opened.change({0: "terrible"})
    opened.shows("#counted", r"1 of \d words? changed")


def test_another_text_takes_the_place_of_the_first(opened):
    page = opened.page
    opened.certify()
    page.focus("#text")
    page.keyboard.press("Control+a")
    with opened.answered("explain"):
        page.keyboard.type("D")
    page.keyboard.type("ull , tedious mess")
    opened.shows("#label", "negative")
    opened.shows("#text-label", "Write a text")
    page.click("#done")
    page.keyboard.press("Control+a")
    with opened.answered("explain"):
        page.evaluate(
            """() => {
              const box = document.getElementById("text");
              box.value = "superb acting and wonderful songs";
              box.dispatchEvent(new InputEvent("input", { inputType: "insertFromPaste" }));
            }"""
        )
    opened.shows("#label", "positive")
    opened.shows("#counted", "No word changed yet")
    opened.shows("#text-label", "Change any word")


def test_mean_scores_are_no_shares_and_votes_add_up(opened):
    """Each class is judged by itself: mean scores of four classes add up to more than 1."""
    page = opened.page
    opened.choose(model="news-words")
    opened.certify("Oil prices climbed to a record high as traders worried about supplies")
    opened.shows("#votes-title", "^How its words score$")
    scores = [float(one) for one in page.locator("#votes .count").all_inner_texts()]
    assert sum(scores) > 1.1 and scores == sorted(scores, reverse=True)
    widths = page.locator("#votes .length").evaluate_all("all => all.map(one => one.style.width)")
    assert [float(one.rstrip("%")) / 100 for one in widths] == pytest.approx(scores, abs=6e-3)
    opened.shows("#votes-note", "from 0 to 1.*no shares of a whole")
    opened.choose(ensemble="vote")
    opened.shows("#votes-title", "^How its words vote$")
    votes = [int(one.split()[0]) for one in page.locator("#votes .count").all_inner_texts()]
    assert sum(votes) == 12


def test_the_table_of_certificates_is_what_choosing_each_gives(opened):
    page = opened.page
    opened.choose(model="news-words")
    opened.certify("Oil prices climbed to a record high as traders worried about supplies")
    page.click("#compared summary")
    kinds = ("exact", "ablation", "paper", "paper-as-printed")
    tables, chosen = [], []
    for kind in (*kinds[1:], "exact"):
        opened.choose(certificate=kind)
        playwright.expect(page.locator("#radii .number").last).not_to_have_text("…")
        tables.append(page.locator("#radii .number").all_inner_texts())
        chosen.append(page.locator("#radii .own .number").inner_text())
        assert chosen[-1] == page.inner_text("#left")
    assert tables == [[chosen[-1], *chosen[:-1]]] * 4
    assert len(set(chosen)) > 1


def test_model_words_kept_ensemble_and_certificate_can_be_chosen(opened):
    page = opened.page
    opened.certify()
    opened.choose(ensemble="vote")
    opened.shows("#votes .won .count", r"^\d+ of \d+$")
    opened.choose(keep="2")
    opened.shows("#voting-lead", "Each shows 2 words")
    opened.choose(certificate="ablation")
    opened.shows("#verdict", "at least 95 %")
    assert page.is_disabled("#ensemble")
    opened.choose(model="news-words")
    assert page.input_value("#keep") == ""
    opened.shows("#example-buttons", "A ceasefire")
    playwright.expect(page.locator("#votes li")).to_have_count(4)
    assert page.input_value("#text") == LOVED, "one's own text stays"


def test_every_certificate_can_be_chosen_and_the_papers_say_that_they_prove_nothing(opened):
    opened.certify()
    opened.page.click("#compared summary")
    options = opened.page.locator("#certificate option")
    kinds = options.evaluate_all("all => all.map((one) => one.value)")
    assert kinds == list(CERTIFICATES)
    for kind in kinds[1:]:
        opened.choose(certificate=kind)
        own = opened.page.locator("#radii tr.own")
        playwright.expect(own.locator(".number")).not_to_have_text("…")
        assert own.count() == 1
        paper = kind.startswith("paper")
        opened.shows("#verdict", "no guarantee" if paper else "at least 95 %")
        opened.shows("#left-unit", "before the claim ends" if paper else "before the proof ends")
        assert own.locator("td").last.inner_text() == ("no" if paper else "yes, with 95 %")


def test_edits_are_covered_where_the_model_is_blind_to_order(opened):
    page = opened.page
    opened.certify()
    opened.choose(threat="edits")
    opened.shows("#verdict", r"any \d words, replace, add or delete them: .* stays positive")
    opened.shows("#left-unit", "edits left before the proof ends")
    words = LOVED.split()
    with opened.answered("explain"):
        page.fill("#text", " ".join(reversed(words)))
    opened.shows("#counted", "Only the order is another")
    with opened.answered("explain"):
        page.fill("#text", "not " + " ".join(words[2:]))
    opened.shows("#counted", r"2 of \d edits: still proved to be positive")
    opened.shows("#changes", "A → not.*wonderful")
    opened.shows("#now", "still positive")
    page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack succeeded")
    opened.shows("#counted", "1 more than the")
    page.click("#restore")
    opened.shows("#counted", "No edit yet")
    opened.choose(certificate="paper")
    assert page.is_checked("#threat-substitutions") and page.is_disabled("#threat-edits")
    opened.shows("#threat-note", "added or deleted are covered by the exact certificate only")


def test_added_words_are_beyond_a_proof_about_replaced_ones_which_offers_to_cover_them(opened):
    page = opened.page
    opened.certify()
    with opened.answered("explain"):
        page.fill("#text", f"not {LOVED}")
    opened.shows("#counted", "Words were added or left out: beyond the proof")
    assert opened.left() == 0
    with opened.answered("explain"):
        page.click("#allow-edits")
    opened.shows("#counted", r"1 of \d edits: still proved")
    assert page.is_checked("#threat-edits")
    assert page.input_value("#text") == f"not {LOVED}"


def test_threats_are_questions_with_answers(opened):
    page = opened.page
    opened.certify()
    opened.shows("#menu", r"May words be added\?Yes, any \d+ words, anywhere: it stays positive")
    opened.shows("#menu", r"May letters and blanks be changed\?Yes, any \d characters?: it stays")
    opened.shows("#menu", r"May a run of neighbours be replaced\?Yes, any \d+ words in a row")
    assert "synonyms" not in page.inner_text("#menu")  # this model has no table
    opened.choose(keep="2")
    playwright.expect(page.locator("#menu dt")).to_have_count(1)  # the run
    opened.choose(certificate="paper")
    opened.hides("#menu")


def test_a_link_opens_on_what_was_shared(opened):
    page = opened.page
    opened.certify(f"{LOVED} 🎬 \x00 \ufeff &=#+%")
    opened.choose(ensemble="vote", keep="2")
    opened.change({1: "terrible"})
    opened.shows("#now", "still positive")
    playwright.expect(page).to_have_url(re.compile("terrible"))
    seen = opened.seen("#label", "#left", "#verdict", "#votes", "#counter", "#changes", "#piles")
    text, tones = page.input_value("#text"), opened.tones()
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still positive")
    assert opened.seen(*seen) == seen
    assert (page.input_value("#text"), opened.tones()) == (text, tones)
    assert (page.input_value("#keep"), page.input_value("#ensemble")) == ("2", "vote")


def test_a_link_reproduces_edits(opened):
    page = opened.page
    opened.certify()
    opened.choose(threat="edits")
    with opened.answered("explain"):
        page.fill("#text", f"not a {LOVED}")
    playwright.expect(page).to_have_url(re.compile("edited="))
    opened.shows("#now", "still")
    seen = opened.seen("#verdict", "#counter", "#changes")
    opened.open(page.url.removeprefix(opened.url))
    opened.shows("#now", "still")
    assert opened.seen(*seen) == seen
    assert page.is_checked("#threat-edits")


def test_links_that_others_wrote_do_no_harm(opened):
    opened.open("#text=a+superb+film&edited=+&keep=x&certificate=none&threat=%00&ensemble=3&more=1")
    opened.shows("#label", "positive")
    opened.shows("#counted", "No word changed yet")
    assert opened.page.input_value("#text") == "a superb film"
    assert opened.page.input_value("#certificate") == "exact"


def test_the_link_is_copied_as_the_page_is_now(opened):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.certify()
    opened.change({1: "terrible"})
    opened.page.click("#copy-link")
    opened.shows("#copied", "Copied")
    link = opened.page.evaluate("navigator.clipboard.readText()")
    assert link == opened.page.url and "terrible" in link


def test_back_and_forward_lead_from_view_to_view(opened):
    page = opened.page
    opened.certify()
    opened.change({1: "terrible"})
    opened.shows("#now", "still")
    playwright.expect(page).to_have_url(re.compile("terrible"))
    opened.choose(model="news-words", certificate="ablation")
    with opened.answered("explain"):
        page.go_back()
    opened.settled()
    assert (page.input_value("#model"), page.input_value("#certificate")) == ("news-words", "exact")
    with opened.answered("explain"):
        page.go_back()
    opened.shows("#label", "positive")
    assert page.input_value("#model") == "reviews-words"
    assert "terrible" in page.input_value("#text")
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
    opened.change({4: "<script>"})
    tiles = opened.page.locator("#tiles .tile").all_inner_texts()
    assert tiles == [*text.split()[:4], "<script>", *text.split()[5:]]
    assert opened.page.locator("main img, main script, #tiles b, #piles i").count() == 0


def test_all_of_it_can_be_reached_by_keyboard_and_has_a_name(opened):
    page = opened.page
    opened.certify()
    opened.change({1: "terrible"})
    opened.shows("#now", "still")
    page.keyboard.press("Tab")
    page.focus("#skip")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#text")).to_be_focused()
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.parentElement?.id")
        )
        if reached[-1] == "options":
            page.keyboard.press("Enter")
        if reached[-1] == "copy-link":
            break
    order = ["attack-within", "attack-beyond", "restore", "renew", "own", "options", "model"]
    order += ["certificate", "keep", "ensemble", "threat-substitutions", "copy-link"]
    assert [one for one in reached if one in order] == order
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button")]
            .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert nameless == []


def test_an_attack_is_begun_and_undone_by_keyboard_alone(opened):
    page = opened.page
    opened.certify()
    page.focus("#attack-beyond")
    page.keyboard.press("Enter")
    opened.shows("#attack-result", "The attack succeeded")
    playwright.expect(page.locator("#attack-beyond")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    opened.shows("#counted", "No word changed yet")
    playwright.expect(page.locator("#text")).to_be_focused()


def test_what_changes_is_announced(opened):
    """Each in a region of its own that screen readers speak, and only once it is settled."""
    for place in ("#counter", "#attack-result", "#progress"):
        assert opened.page.get_attribute(place, "role") == "status"
    assert opened.page.get_attribute("#error", "role") == "alert"
    opened.certify()
    opened.shows("#progress", r"^positive, proved for \d words\.$")
    assert opened.page.get_attribute("#meter", "aria-valuetext") == (
        f"{opened.left()} of {opened.left()} left"
    )
    assert opened.page.get_attribute("#tiles", "aria-hidden") == "true"  # the box says the same


def test_a_text_is_written_as_its_letters_are(opened):
    opened.certify("فيلم رائع superb جدا")
    styles = "(id) => getComputedStyle(document.getElementById(id)).direction"
    assert [opened.page.evaluate(styles, one) for one in ("text", "tiles")] == ["rtl", "rtl"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window_in_either_theme(browser, service, theme, width):
    with Watched(browser, service.url, theme=theme, width=width) as watched:
        watched.certify(f"{LOVED} {'unbreakable' * 12}")
        watched.page.click("#compared summary")
        watched.page.click("#attack-beyond")
        watched.shows("#attack-result", "The attack (succeeded|failed)")
        assert watched.page.evaluate(OVERFLOW) == []
        watched.page.set_viewport_size({"width": 320, "height": 700})
        watched.page.wait_for_timeout(200)
        assert watched.page.evaluate(OVERFLOW) == []
        light = watched.page.evaluate(BACKGROUND).startswith("rgb(2")
        assert light == (theme == "light")
        watched.page.emulate_media(media="print")
        assert watched.page.evaluate(BACKGROUND) == WHITE  # paper has no dark theme
        assert watched.page.locator("#attack-within").is_hidden()


def test_errors_are_told(opened):
    page = opened.page
    page.click("#own")
    with opened.answered("explain"):
        page.fill("#text", "word " * 2500)
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
        watched.shows("#label", "positive")
        assert KEY not in watched.page.url
        watched.context.close()
        assert watched.faults == []
