"""The page of the service in a real browser, and all that goes wrong on it.

Needs chromium on the path (Debian: apt-get install chromium) and playwright.
"""

import re
import shutil
import threading
import time
import zlib
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium on the path"),
]

LOVED = "A wonderful film , superb acting and a moving , perfect story that stays with you"
OVERFLOW = """() => {
  const root = document.documentElement;
  return [...document.body.querySelectorAll("*")]
    .filter((one) => !one.closest(".table, svg, .spoken, .skip"))
    .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 90))
    .concat(root.scrollWidth > root.clientWidth ? ["the page"] : []);
}"""


def of_twenty_classes(texts):
    """A model for the page: no names of classes, and every word speaks for one of them."""
    return [
        [float(sum(zlib.crc32(word.encode()) % 20 == one for word in text.split()))
         for one in range(20)]
        for text in texts
    ]  # fmt: skip


@contextmanager
def serving(models=("reviews-words", "news-words"), keep=None, **settings):
    """The real application on a free port of this machine: its address, and how to end it."""
    from ranmask.serving.app import create_app
    from ranmask.serving.registry import ModelRegistry, named_models
    from ranmask.serving.settings import ServiceSettings

    host = ModelRegistry(named_models(models), keep=keep)
    app = create_app(host, ServiceSettings(models=models, **settings))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none", http="h11"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    ended = []

    def end():
        if not ended:
            ended.append(True)
            server.should_exit = True
            thread.join(30)
            host.close(timeout=10)

    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}/", end=end)
    finally:
        end()


@contextmanager
def browsing():
    """A browser without a window."""
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

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert self.faults == []

    def open(self, fragment=""):
        self.page.goto("about:blank")
        self.page.goto(self.url + fragment)
        self.page.wait_for_selector("#model option", state="attached")

    def certify(self, text=LOVED):
        """Write a text of one's own, and pin it."""
        self.page.click("#own")
        with self.answered("explain"):
            self.page.fill("#text", text)
        self.settled()
        if self.page.is_visible("#done"):
            self.page.click("#done")

    def choose(self, **choices):
        """Choose, one after the other, and wait for the answer to each."""
        self.page.evaluate("document.getElementById('options').open = true")
        for name, value in choices.items():
            with self.answered("explain"):
                if name == "threat":
                    self.page.check(f"#threat-{value}")
                elif name == "keep":
                    self.page.fill("#keep", value)
                    self.page.press("#keep", "Enter")
                else:
                    self.page.select_option(f"#{name}", value)
            self.settled()

    def choose_model(self, name):
        """Another model, before there is a text to answer for."""
        self.page.evaluate("document.getElementById('options').open = true")
        self.page.select_option("#model", name)

    def change(self, changes):
        """Put other words in some places of the box, and wait for the answer."""
        words = self.page.input_value("#text").split()
        for place, word in changes.items():
            words[place] = word
        with self.answered("explain"):
            self.page.fill("#text", " ".join(words))

    def settled(self):
        playwright.expect(self.page.locator("#answer")).to_have_attribute("aria-busy", "false")

    def answered(self, sort):
        return self.page.expect_response(lambda one: one.url.endswith(f"/v1/{sort}"))

    def shows(self, selector, pattern):
        playwright.expect(self.page.locator(selector)).to_have_text(re.compile(pattern))

    def hides(self, selector):
        playwright.expect(self.page.locator(selector)).to_be_hidden()

    def tones(self):
        """The colour of each word's tile, as the number of its class."""
        names = self.page.locator("#tiles .tile").evaluate_all("all => all.map((o) => o.className)")
        return [re.search(r"tone(-?\w+)", name)[1] for name in names]

    def left(self):
        """How many changes the meter says are left."""
        return int(self.page.get_attribute("#meter", "aria-valuenow"))

    def seen(self, *selectors):
        return {name: self.page.inner_text(name) for name in selectors}
