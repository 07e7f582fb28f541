"""Several threats asked of the service: answers, what is refused, and what the page is told."""

import json

import pytest
from starlette.testclient import TestClient

from ranmask import load_default
from ranmask.certificates.threats import MOVING
from ranmask.serving.app import create_app
from ranmask.serving.explaining import attack_once, explain
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings

TEXT = "A wonderful film , superb acting and a moving , perfect story that stays with you"
FUNCTION = "ranmask.models.testing:keyword_classifier"
TABLE = {"wonderful": ["great", "awful"], "superb": ["good"]}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    saved = tmp_path_factory.mktemp("models") / "synonyms"
    load_default("reviews-words", synonyms=TABLE).save_pretrained(str(saved))
    models = {"words": "reviews-words", "function": FUNCTION, "synonyms": str(saved)}
    host = ModelRegistry(models, keep=1)
    app = create_app(host, ServiceSettings())
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client
    host.close()


def ask(client, route="certify", model="words", **options):
    body = {"text": TEXT, "model": model, "options": options}
    return client.post(f"/v1/{route}", json=body)


def test_radii_are_those_of_the_library(client):
    threats = [*MOVING, "span", "synonyms"]
    [result] = ask(client, model="synonyms", threats=threats).json()["results"]
    smoothed = load_default("reviews-words", synonyms=TABLE)
    assert result == smoothed.certify([TEXT], threats=threats)[0].to_dict()
    assert list(result["radii"]) == ["substitutions", *threats]
    [result] = ask(client).json()["results"]
    assert result == smoothed.certify([TEXT])[0].to_dict() and "radii" not in result
    explained = ask(client, "explain", threat="characters", threats=["insertions"]).json()
    assert explained["result"]["radii"]["characters"] == explained["result"]["radius"]


@pytest.mark.parametrize(
    ("model", "options", "status", "said"),
    [
        ("words", {"threats": ["magic"]}, 422, "options.threats[0] must be"),
        ("words", {"threats": "span"}, 422, "threats"),
        ("words", {"threats": ["span"] * 9}, 422, "threats"),
        ("words", {"threat": "magic"}, 422, "threat"),
        ("words", {"threats": ["synonyms"]}, 422, "needs a table"),
        ("words", {"threats": ["edits"], "keep": 2}, 422, "needs keep=1"),
        ("words", {"threats": ["span"], "certificate": "ablation"}, 422, "certificate='exact'"),
        ("function", {"threats": ["characters"]}, 422, "blind to the order"),
        ("synonyms", {"threats": ["synonyms"], "keep": 2}, 422, "needs keep=1"),
    ],
)
@pytest.mark.parametrize("route", ["certify", "explain"])
def test_what_is_refused(client, route, model, options, status, said):
    response = ask(client, route, model, **options)
    assert response.status_code == status, response.text
    assert said in response.json()["error"]["message"]


def test_the_page_is_told_whether_there_is_a_table(client):
    cards = {card["name"]: card for card in client.get("/v1/models").json()["models"]}
    assert {name: card["synonyms"] for name, card in cards.items()} == {
        "words": None,
        "function": None,
        "synonyms": "table",
    }


@pytest.mark.parametrize("family", [None, "distinct"])
@pytest.mark.parametrize("threat", MOVING)
def test_a_curve_is_above_zero_up_to_the_radius(threat, family):
    smoothed = load_default("reviews-words", threat=threat, family=family or "all")
    explained = json.loads(json.dumps(explain(smoothed, TEXT)))
    curve = explained["curves"]["exact"]
    above = [margin > 0 for margin in curve["margins"]]
    assert above == [steps <= curve["radius"] for steps in range(len(above))]
    assert list(explained["curves"]) == ["exact"]


def test_spans_and_synonyms_have_no_curve():
    smoothed = load_default("reviews-words", threat="synonyms", synonyms=TABLE)
    explained = explain(smoothed, TEXT)
    assert explained["curves"] == {} and explained["replacements"][1] == ["great", "awful"]
    assert explain(smoothed.with_options(threat="span"), TEXT)["curves"] == {}


def test_an_attack_counts_replaced_words_whatever_the_radius_counts():
    smoothed = load_default("reviews-words", threat="insertions", threats=["span"])
    [result] = smoothed.certify([TEXT])
    [plain] = load_default("reviews-words").certify([TEXT])
    assert result.radius > plain.radius
    outcome = attack_once(smoothed, TEXT)
    assert (outcome.status, outcome.radius, outcome.budget) == (
        "failed",
        plain.radius,
        plain.radius,
    )
