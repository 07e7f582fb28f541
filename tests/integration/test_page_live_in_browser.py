"""What moves on the page: tiles, bars and meter as words are edited; attacks; the two pictures."""

import pytest
from browser_page import LOVED, NEEDED, Watched, browsing, playwright, serving

pytestmark = NEEDED

MOVES = """() => {
  window.moves = [];
  const look = () => {
    const changed = document.querySelectorAll("#tiles .changed").length;
    if (changed !== window.moves.at(-1)) window.moves.push(changed);
  };
  new MutationObserver(look).observe(document.getElementById("tiles"), { childList: true });
}"""


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


def explained(watched, text, **options):
    """What the service says of a text, asked beside the page."""
    body = {"model": "reviews-words", "text": text, "copies": 100, "options": options}
    return watched.context.request.post(f"{watched.url}v1/explain", data=body).json()


def widths(watched):
    return watched.page.locator("#votes .length").evaluate_all(
        "all => all.map((one) => Number.parseFloat(one.style.width))"
    )


def test_every_word_is_a_tile_with_the_colour_of_its_vote(opened):
    opened.certify()
    votes = explained(opened, LOVED)["word_votes"]
    assert opened.tones() == [str(vote["label_id"]) for vote in votes]
    assert len(set(opened.tones())) == 2
    leads = opened.page.locator("#tiles .tile").evaluate_all(
        "all => all.map((one) => Number(one.style.getPropertyValue('--lead')))"
    )
    assert leads == pytest.approx([vote["lead"] for vote in votes], abs=0.006)


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_tiles_lie_under_their_words(opened, width):
    """The text and its tiles are two layers: they break lines alike, or nothing fits."""
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.certify(f"{LOVED} {'unbreakable' * 9}  two  blanks\nand a line " * 3)
    [text, tiles] = opened.page.evaluate(
        """() => ["text", "tiles"].map((id) => {
          const one = document.getElementById(id);
          const { width, height, left, top } = one.getBoundingClientRect();
          const style = getComputedStyle(one);
          const names = ["font", "letterSpacing", "wordSpacing", "lineHeight", "padding",
            "borderWidth", "whiteSpace", "overflowWrap", "wordBreak", "textIndent", "direction"];
          const look = names.map((name) => style[name]);
          return [width, height, left, top, one.scrollHeight, ...look];
        })"""
    )
    assert text == tiles


def test_edits_move_tiles_bars_and_meter(opened):
    opened.certify()
    most, before, bars = opened.left(), opened.tones(), widths(opened)
    pips = opened.page.locator("#meter .pip:not(.used)")
    assert most == pips.count() > 2
    opened.change({1: "terrible"})
    opened.shows("#counted", rf"1 of {most} words changed: still proved to be positive")
    opened.shows("#now", "still positive")
    assert (opened.left(), pips.count()) == (most - 1, most - 1)
    after = opened.tones()
    assert [place for place in range(len(after)) if after[place] != before[place]] == [1]
    assert opened.page.locator("#tiles .changed").all_inner_texts() == ["terrible"]
    moved = widths(opened)
    assert moved[0] < bars[0] and moved[1] > bars[1]
    opened.change({4: "awful", 8: "dull", 10: "boring", 5: "worst", 11: "waste"})
    opened.shows("#counted", "6 words changed, . more than the . covered: beyond the proof")
    opened.shows("#left", "^Broken$")
    opened.shows("#label", "^negative$")
    opened.shows("#was", "was positive")
    opened.shows("#now", "Broken: the answer is now negative")
    opened.shows("#changes", "wonderful → terrible.*superb → awful")
    assert (opened.left(), pips.count()) == (0, 0)
    assert "broken" in opened.page.get_attribute("#answer", "class")
    opened.page.click("#restore")
    opened.shows("#counted", "No word changed yet")
    opened.shows("#label", "^positive$")
    assert (opened.left(), opened.tones()) == (most, before)
    assert widths(opened) == pytest.approx(bars)


def test_the_meter_and_known_words_do_not_wait_for_the_service(opened):
    opened.certify()
    most = opened.left()
    held = []
    opened.page.route("**/v1/explain", lambda route: held.append(route))
    words = LOVED.split()
    opened.page.fill("#text", " ".join([*words[:1], "superb", *words[2:]]))
    assert opened.left() == most - 1
    assert "unknown" not in opened.tones()[1]  # the same word stands elsewhere in the text
    opened.shows("#label", "^positive$")
    opened.page.fill("#text", " ".join([*words[:1], "neverseen", *words[2:]]))
    assert opened.tones()[1] == "-unknown"
    opened.page.wait_for_timeout(200)
    held[-1].continue_()
    opened.shows("#now", "still positive")
    assert opened.tones()[1] in ("0", "1")


def test_keys_in_quick_succession_are_one_question(opened):
    opened.certify()
    asked = []
    opened.page.on("request", lambda one: asked.append(one.url.endswith("/v1/explain")))
    with opened.answered("explain"):
        opened.page.evaluate(
            """() => {
              const box = document.getElementById("text");
              for (const letter of "unbelievably") {
                box.value = letter + box.value;
                box.dispatchEvent(new InputEvent("input", { inputType: "insertText" }));
              }
            }"""
        )
    opened.shows("#now", "still|Broken")
    assert sum(asked) == 1


def test_a_word_that_is_being_replaced_is_one_change_all_the_time(opened):
    """Between its last letter and the next word's first there is a word less: that is no edit."""
    page = opened.page
    opened.certify()
    most = opened.left()
    page.focus("#text")
    page.evaluate("document.getElementById('text').setSelectionRange(2, 11)")
    page.keyboard.press("Delete")
    assert page.input_value("#text").startswith("A  film")
    opened.shows("#counted", rf"1 of {most} words changed")
    assert opened.left() == most - 1
    for letter in "dull":
        page.keyboard.type(letter)
        assert opened.left() == most - 1
    opened.shows("#now", "still positive")
    opened.shows("#changes", "wonderful → dull")
    page.keyboard.type(" dull")
    opened.shows("#counted", "Words were added or left out: beyond the proof")


def test_long_texts_have_all_their_tiles(opened):
    opened.certify(" ".join(f"{LOVED} {number}" for number in range(12)))
    tones = opened.tones()
    assert len(tones) == 12 * 17 and set(tones) == {"0", "1"}


# -- attacks --------------------------------------------------------------------------------------


def test_the_machine_fails_within_the_proof_and_may_succeed_beyond_it(opened):
    opened.certify()
    most = opened.left()
    opened.page.evaluate(MOVES)
    opened.page.click("#attack-within")
    opened.shows("#attack-result", "The attack failed, as the proof says it must")
    opened.shows("#now", "still positive")
    assert opened.page.evaluate("window.moves") == list(range(most + 1)), "word by word"
    assert opened.left() == 0
    opened.page.evaluate("window.moves = []")
    opened.page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack succeeded.*now negative")
    opened.shows("#counted", "1 more than the")
    opened.shows("#left", "^Broken$")
    assert opened.page.evaluate("window.moves") == list(range(most + 2))
    changed = opened.page.locator("#tiles .changed").count()
    assert opened.page.locator("#changes li").count() == changed == most + 1


def test_on_a_phone_the_attack_is_seen(browser, service):
    with Watched(browser, service.url) as opened:
        opened.page.set_viewport_size({"width": 375, "height": 667})
        opened.certify()
        opened.page.locator("#attack-beyond").scroll_into_view_if_needed()
        opened.page.click("#attack-beyond")
        opened.shows("#attack-result", "The attack succeeded")
        playwright.expect(opened.page.locator("#box")).to_be_in_viewport(ratio=1)
        playwright.expect(opened.page.locator("#left")).to_be_in_viewport(ratio=1)
        playwright.expect(opened.page.locator("#attack-beyond")).to_be_focused()


def test_without_motion_the_attack_is_there_at_once(opened):
    opened.page.emulate_media(reduced_motion="reduce")
    opened.certify()
    most = opened.left()
    opened.page.evaluate(MOVES)
    opened.page.click("#attack-beyond")
    opened.shows("#attack-result", "The attack succeeded")
    assert opened.page.evaluate("window.moves") == [0, most + 1]
    running = "document.getAnimations().filter((one) => one.playState === 'running').length"
    assert opened.page.evaluate(running) == 0


def test_whoever_types_stops_the_attack(opened):
    opened.certify()
    with opened.answered("attack"):
        opened.page.click("#attack-beyond")
    opened.page.wait_for_selector("#tiles .changed")
    opened.page.fill("#text", LOVED.replace("film", "movie"))
    opened.page.wait_for_timeout(1500)
    assert opened.page.input_value("#text") == LOVED.replace("film", "movie")
    opened.shows("#attack-result", "^$")
    opened.page.click("#attack-within")
    opened.shows("#attack-result", "The attack failed")


# -- two pictures that teach ----------------------------------------------------------------------


def test_the_first_picture_is_of_the_real_votes(opened):
    opened.certify()
    for text in (LOVED, LOVED.replace("wonderful", "terrible")):
        if text != LOVED:
            opened.change({1: "terrible"})
            opened.shows("#now", "still")
        said = explained(opened, text)
        opened.shows("#voting-lead", r"reads 16 copies of the text. Each shows 1 word")
        piles = opened.page.locator("#piles li")
        names = [pile.split()[:2] for pile in piles.all_inner_texts()]
        votes = said["result"]["votes"]
        assert sorted(names) == [["negative", str(votes[0])], ["positive", str(votes[1])]]
        words = [pile.locator(".ballot").all_inner_texts() for pile in piles.all()]
        own = [
            sorted(
                word
                for word, vote in zip(text.split(), said["word_votes"], strict=True)
                if said["labels"][vote["label_id"]] == name
            )
            for name, _ in names
        ]
        assert [sorted(one) for one in words] == own
        for row in opened.page.locator("#copies li").all():
            word, label = row.locator(".tile").inner_text(), row.locator(".chip").inner_text()
            assert word in words[[name for name, _ in names].index(label.split()[-1])]
            assert row.locator(".hidden-word").count() == 15


def test_the_second_picture_is_the_real_margin_and_no_text_is_below_it(opened):
    opened.certify()
    [curve] = explained(opened, LOVED)["curves"].values()
    bars = opened.page.locator("#stairs rect")
    heights = bars.evaluate_all("all => all.map((one) => one.height.baseVal.value)")
    margins = curve["margins"]
    assert len(heights) == len(margins)
    scale = heights[0] / margins[0]
    assert heights == pytest.approx([max(1.5, abs(left) * scale) for left in margins], rel=0.01)
    kinds = bars.evaluate_all("all => all.map((one) => one.className.baseVal)")
    assert kinds == ["ahead" if left > 0 else "behind" for left in margins]
    assert kinds.count("ahead") == curve["radius"] + 1
    assert opened.page.locator("#stairs circle").count() == 0
    edits = {1: "terrible", 4: "awful", 8: "dull", 10: "boring"}
    for number, (place, word) in enumerate(edits.items(), 1):
        opened.change({place: word})
        opened.shows("#now", "still")
        playwright.expect(opened.page.locator("#stairs circle")).to_have_count(1)
        dot, bar, zero = opened.page.evaluate(
            """(number) => [
              document.querySelector("#stairs circle").cy.baseVal.value,
              document.querySelectorAll("#stairs rect")[number].y.baseVal.value,
              document.querySelector("#stairs .zero").y1.baseVal.value,
            ]""",
            number,
        )
        assert dot <= bar + 0.01 and dot < zero, "within the proof the lead is above the bar"


def test_pictures_of_copies_that_show_several_words(opened):
    opened.certify()
    opened.choose(ensemble="vote", keep="2")
    opened.shows("#voting-lead", "reads 120 copies of the text. Each shows 2 words")
    for row in opened.page.locator("#copies li").all():
        assert row.locator(".tile").count() == 2
    assert opened.page.locator("#piles .ballot").count() > 30
    opened.shows("#enough-lead", "copies that show it: 13 % of them")


# -- accessibility --------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_axe_finds_nothing(browser, service, theme, width):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    with Watched(browser, service.url, theme=theme, width=width) as watched:

        def violations():
            found = axe.Axe().run(watched.page).response["violations"]
            return [(one["id"], one["impact"], one["nodes"][0]["html"][:90]) for one in found]

        watched.settled()
        assert violations() == []
        watched.page.emulate_media(reduced_motion="reduce")
        for details in ("#options", "#compared", "#assumes"):
            watched.page.click(f"{details} summary")
        watched.page.click("#attack-beyond")
        watched.shows("#attack-result", "The attack succeeded")
        assert violations() == []
        watched.choose(model="news-words")
        watched.page.click("#own")
        assert violations() == []
