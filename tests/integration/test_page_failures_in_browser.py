"""The page when things go wrong: answers out of order, and a service that is busy, late or gone."""

import json

import pytest
from browser_page import LOVED, NEEDED, Watched, browsing, playwright, serving

pytestmark = NEEDED

EXPLAIN, ATTACK = "**/v1/explain", "**/v1/attack"


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


def refusing(watched, path, status, message="no", headers=None, times=1):
    """Answer one question of a sort with an error, or all; later ones are the service's again."""
    body = json.dumps({"error": {"code": "x", "message": message, "request_id": "x"}})
    watched.page.route(
        path,
        lambda route: route.fulfill(
            status=status,
            body=body,
            headers={"Content-Type": "application/json", **(headers or {})},
        ),
        times=times,
    )


class Held:
    """Questions of a sort that are not answered until the test says so."""

    def __init__(self, watched, path):
        self.page = watched.page
        self.routes = []
        self.page.route(path, lambda route: self.routes.append(route))

    def wait(self, number):
        for _ in range(200):
            if len(self.routes) == number:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{len(self.routes)} questions, not {number}")

    def answers(self):
        return [route.fetch().json() for route in self.routes]


def write(watched, word):
    watched.page.fill("#text", LOVED.replace("wonderful", word))


def test_late_answers_to_old_questions_are_not_shown(opened):
    opened.certify()
    held = Held(opened, EXPLAIN)
    for number, word in enumerate(("terrible", "awful"), 1):
        write(opened, word)
        held.wait(number)
    old, new = held.answers()
    new["result"]["label_id"] = 0
    held.routes[1].fulfill(json=new)
    opened.shows("#now", "Within the proof the answer changed to negative. That must not happen")
    late(held.routes[0], old)
    opened.page.wait_for_timeout(200)
    opened.shows("#now", "changed to negative")


def test_of_two_choices_the_last_one_is_answered(opened):
    opened.certify()
    opened.page.click("#options summary")
    held = Held(opened, EXPLAIN)
    for number, kind in enumerate(("ablation", "paper"), 1):
        opened.page.select_option("#certificate", kind)
        held.wait(number)
    old, new = held.answers()
    held.routes[1].fulfill(json=new)
    opened.settled()
    late(held.routes[0], old)
    opened.page.wait_for_timeout(200)
    opened.shows("#verdict", "The paper would claim")
    assert "certificate=paper&" in opened.page.url


def test_an_answer_to_what_was_not_yet_written_is_not_shown(opened):
    opened.page.click("#own")
    held = Held(opened, EXPLAIN)
    opened.page.fill("#text", "a wonderful")
    held.wait(1)
    opened.page.fill("#text", "a terrible , boring mess")
    held.wait(2)
    old, new = held.answers()
    late(held.routes[0], old)
    opened.page.wait_for_timeout(100)
    opened.hides("#answer")
    held.routes[1].fulfill(json=new)
    opened.shows("#label", "negative")
    opened.shows("#counted", "No word changed yet")


def test_an_example_that_was_left_is_not_shown(opened):
    held = Held(opened, EXPLAIN)
    opened.open()
    held.wait(1)
    opened.page.click("#own")
    [old] = held.answers()
    late(held.routes[0], old)
    opened.page.wait_for_timeout(200)
    opened.hides("#answer")
    opened.shows("#text-label", "Write a text")


def test_a_slow_service_is_asked_for_votes_alone(opened):
    """What takes long to explain is only classified again while words are edited."""

    def slowly(route):
        opened.page.wait_for_timeout(1300)
        route.continue_()

    opened.page.route(EXPLAIN, slowly)
    opened.certify()
    with opened.answered("predict"):
        write(opened, "terrible")
    opened.shows("#now", "still positive")
    opened.page.unroute(EXPLAIN)
    most = opened.left()
    opened.page.click("#attack-within")
    opened.shows("#attack-result", "The attack failed, as the proof says it must")
    assert most > opened.left() == 0


def late(route, answer):
    """What a browser that still listens would take for the answer."""
    try:
        route.fulfill(json=answer)
    except playwright.Error as error:
        assert "already" in str(error) or "cancelled" in str(error) or "closed" in str(error)


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (429, {"Retry-After": "7"}, "too much to do just now. Try again in 7 s"),
        (503, {}, "^No\\."),
        (504, {}, "no answer in time"),
        (500, {}, "^No\\."),
    ],
)
def test_a_failure_is_told_and_can_be_tried_again(opened, status, headers, message):
    page = opened.page
    opened.shows("#label", "positive")
    refusing(opened, EXPLAIN, status, headers=headers)
    opened.certify()
    opened.shows("#error", message)
    opened.shows("#progress", "^$")
    opened.hides("#answer")
    assert page.locator("#tiles .tile").all_inner_texts() == LOVED.split()
    opened.faults.clear()  # the browser itself tells of the status
    page.click("#error button")
    opened.shows("#verdict", "positive")
    opened.hides("#error")


@pytest.mark.parametrize("path", [EXPLAIN, ATTACK])
def test_a_failure_while_breaking_leaves_the_answer(opened, path):
    page = opened.page
    opened.certify()
    refusing(opened, path, 429, headers={"Retry-After": "1"})
    if path == EXPLAIN:
        write(opened, "terrible")
        opened.shows("#now", "The answer is not known")
    else:
        page.click("#attack-within")
    opened.shows("#error", "too much to do")
    playwright.expect(page.locator("#answer")).to_be_visible()
    opened.faults.clear()
    page.click("#error button")
    opened.shows("#now", "still positive")
    opened.hides("#error")
    page.click("#attack-within")
    opened.shows("#attack-result", "The attack failed, as the proof says it must")


def test_further_threats_that_are_not_answered_leave_the_answer(opened):
    refusing(opened, "**/v1/certify", 503, times=None)  # of the text that it opens with, too
    with opened.answered("certify"):
        opened.certify()
    opened.shows("#label", "positive")
    opened.hides("#menu")
    opened.hides("#error")
    opened.faults.clear()


def test_what_is_not_json_is_told(opened):
    opened.page.route(EXPLAIN, lambda route: route.fulfill(status=502, body="<html>"), times=1)
    opened.certify()
    opened.shows("#error", "The service answered with 502")
    opened.faults.clear()


def test_a_refused_option_is_told_and_the_next_choice_is_answered(opened):
    opened.certify()
    refusing(opened, EXPLAIN, 422, "threat='edits' needs keep=1")
    with opened.answered("explain"):
        opened.page.check("#threat-edits")
    opened.shows("#error", "^Threat='edits' needs keep=1\\.$")
    opened.faults.clear()
    opened.choose(threat="substitutions")
    opened.shows("#verdict", "positive")
    opened.hides("#error")


def test_a_service_that_is_gone_is_told(browser):
    with serving(("reviews-words",)) as running, Watched(browser, running.url) as watched:
        watched.certify()
        running.end()
        watched.page.fill("#text", "a film")
        watched.shows("#error", "cannot be reached. Is it still running?.*Try again")
        watched.shows("#now", "The answer is not known")
        watched.page.click("#error button")
        watched.shows("#error", "cannot be reached")
        watched.faults.clear()


def test_a_page_that_opens_before_its_service_begins_once_it_is_there(browser, service):
    watched = Watched(browser, service.url)
    watched.page.route("**/v1/models", lambda route: route.abort(), times=1)
    watched.page.goto(service.url)
    watched.shows("#error", "cannot be reached")
    watched.faults.clear()
    watched.page.click("#error button")
    watched.page.wait_for_selector("#model option", state="attached")
    watched.hides("#error")
    watched.context.close()
    assert watched.faults == []
