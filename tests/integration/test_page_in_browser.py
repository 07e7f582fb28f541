"""The page of the service in a real browser: every control, both themes, a phone, no foreign host.

Needs chromium on the path (Debian: apt-get install chromium) and playwright.
"""

import re
import shutil
import threading
import time
from types import SimpleNamespace

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium on the path"),
]

KEY = "a key of the tests".replace(" ", "-")
LOVED = "A wonderful film , superb acting and a moving , perfect story that stays with you"
OVERFLOW = """() => {
  const root = document.documentElement;
  return [...document.body.querySelectorAll("*")]
    .filter((one) => !one.closest(".table, svg, .spoken, .skip"))
    .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 90))
    .concat(root.scrollWidth > root.clientWidth ? ["the page"] : []);
}"""


def started(**settings):
    """The real application on a free port of this machine: its address, and how to end it."""
    from ranmask.serving.app import create_app
    from ranmask.serving.hosting import Host, named_models
    from ranmask.serving.settings import ServiceSettings

    models = ("reviews-words", "news-words")
    host = Host(named_models(models))
    app = create_app(host, ServiceSettings(models=models, **settings))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none", http="h11"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]

    def end():
        server.should_exit = True
        thread.join(30)
        host.close(timeout=10)

    return SimpleNamespace(url=f"http://127.0.0.1:{port}/", end=end)


@pytest.fixture(scope="module")
def service():
    running = started()
    yield running
    running.end()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


class Watched:
    """A page, and all that went wrong on it."""

    def __init__(self, browser, url, *, theme="light", width=1000):
        self.url = url
        self.context = browser.new_context(
            color_scheme=theme, viewport={"width": width, "height": 900}
        )
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.faults = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._own)

    def _own(self, request):
        if not request.url.startswith((self.url, "data:")):
            self.faults.append(f"asked for {request.url}")

    def open(self, fragment=""):
        self.page.goto("about:blank")
        self.page.goto(self.url + fragment)
        self.page.wait_for_selector("#model option", state="attached")

    def certify(self, text=LOVED):
        self.page.fill("#text", text)
        with self.answered("explain"):
            self.page.click("#certify")
        self.shows("#progress", "^$")

    def answered(self, sort):
        return self.page.expect_response(lambda one: one.url.endswith(f"/v1/{sort}"))

    def shows(self, selector, pattern):
        playwright.expect(self.page.locator(selector)).to_have_text(re.compile(pattern))

    def fields(self):
        return self.page.locator("#fields input")


@pytest.fixture
def opened(browser, service):
    watched = Watched(browser, service.url)
    watched.open()
    yield watched
    watched.context.close()
    assert watched.faults == []


def test_a_text_is_explained(opened):
    page = opened.page
    page.click("text=A film somebody loved")
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
    assert "broken" in opened.page.locator("#counter").get_attribute("class")


def test_model_words_kept_ensemble_and_certificate_can_be_chosen(opened):
    page = opened.page
    opened.certify()
    with opened.answered("explain"):
        page.select_option("#ensemble", "vote")
    opened.shows("#votes .won .count", r"^\d+ of \d+$")
    with opened.answered("explain"):
        page.fill("#keep", "2")
        page.press("#keep", "Enter")
    opened.shows("#copies-note", "Each shows 2 words")
    with opened.answered("explain"):
        page.select_option("#certificate", "ablation")
    opened.shows("#verdict-how", "at least 95 %")
    assert page.is_disabled("#ensemble")
    with opened.answered("explain"):
        page.select_option("#certificate", "paper-as-printed")
    opened.shows("#verdict-how", "no guarantee")
    with opened.answered("explain"):
        page.select_option("#model", "news-words")
    assert page.input_value("#keep") == ""
    opened.shows("#example-buttons", "A ceasefire")
    playwright.expect(page.locator("#votes li")).to_have_count(4)


def test_a_link_reproduces_the_view(opened):
    page = opened.page
    page.select_option("#ensemble", "vote")
    page.fill("#keep", "2")
    opened.certify()
    with opened.answered("predict"):
        opened.fields().nth(1).fill("terrible")
    opened.shows("#now", "still positive")
    playwright.expect(page).to_have_url(re.compile("terrible"))
    link = page.url
    seen = {name: page.inner_text(name) for name in ("#verdict", "#votes", "#radii", "#counter")}
    opened.open(link.removeprefix(opened.url))
    opened.shows("#now", "still positive")
    assert {name: page.inner_text(name) for name in seen} == seen
    assert opened.fields().nth(1).input_value() == "terrible"
    assert (page.input_value("#keep"), page.input_value("#ensemble")) == ("2", "vote")


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
    for _ in range(45):
        opened.page.keyboard.press("Tab")
        reached.append(opened.page.evaluate("document.activeElement.id"))
    for control in ("model", "keep", "certificate", "certify", "attack-within", "restore"):
        assert control in reached
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button")]
            .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim())
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert nameless == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window_in_either_theme(browser, service, theme, width):
    watched = Watched(browser, service.url, theme=theme, width=width)
    watched.open()
    watched.certify(f"{LOVED} {'unbreakable' * 12}")
    watched.page.click("#attack-beyond")
    watched.shows("#attack-result", "The attack (succeeded|failed)")
    assert watched.page.evaluate(OVERFLOW) == []
    watched.page.set_viewport_size({"width": 320, "height": 700})
    watched.page.wait_for_timeout(200)
    assert watched.page.evaluate(OVERFLOW) == []
    background = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (theme == "light")
    watched.context.close()
    assert watched.faults == []


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
    keyed = started(api_key=KEY)
    watched = Watched(browser, keyed.url)
    watched.page.goto(keyed.url)
    watched.shows("#error", "asks for a key")
    watched.faults.clear()
    watched.page.fill("#key", KEY)
    watched.page.click("text=Use this key")
    watched.page.wait_for_selector("#model option", state="attached")
    assert not watched.page.is_visible("#key-form")
    watched.certify()
    watched.shows("#verdict", "positive")
    assert KEY not in watched.page.url
    watched.context.close()
    keyed.end()
    assert watched.faults == []
