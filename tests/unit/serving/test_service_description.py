"""The OpenAPI description says everything of every field; refusals are in the service's words."""

import json
import re

import pytest
from starlette.testclient import TestClient

from ranmask.serving.app import create_app
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings

KEY = "a-key-that-is-long-enough"
JSON = {"content-type": "application/json"}
FOREIGN = re.compile(
    r"[Ii]nput should|valid (string|integer|list|dictionary)|Field required|Value error|pydantic|"
    r"Extra inputs|\bdict\b|\bstr\b|\bint\b|NoneType|literal\[|[a-z][A-Z][a-z]+|[A-Z][a-z]+[A-Z]"
)
"""Words of pydantic, types of Python, names of classes."""


@pytest.fixture(scope="module")
def host():
    models = {"keywords": "ranmask.models.testing:keyword_classifier", "spam-sms": "spam-sms"}
    host = ModelRegistry(models, keep=1)
    yield host
    host.close()


@pytest.fixture(scope="module")
def client_of(host):
    def make(**given):
        app = create_app(host, ServiceSettings(**given))
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    return make


def description_of(client):
    return client.get("/openapi.json").json()


def described_fields(description):
    for name, schema in description["components"]["schemas"].items():
        for field, about in schema.get("properties", {}).items():
            yield f"{name}.{field}", about


def exemplified(about, schemas):
    """Whether a field has an example, or consists of what has some."""
    if about.get("examples"):
        return True
    parts = [about, about.get("items", {}), *about.get("anyOf", ())]
    parts += about.get("items", {}).get("anyOf", ())
    references = [part["$ref"].rpartition("/")[2] for part in parts if "$ref" in part]
    return bool(references) and all(
        exemplified(field, schemas)
        for name in references
        for field in schemas[name]["properties"].values()
    )


def test_every_field_is_described_typed_and_exemplified(client_of):
    description = description_of(client_of())
    schemas = description["components"]["schemas"]
    fields = dict(described_fields(description))
    assert len(fields) > 90
    for name, about in fields.items():
        referred = schemas.get(about.get("$ref", "").rpartition("/")[2], {})
        assert {**referred, **about}.get("description", "").endswith("."), name
        assert about.keys() & {"type", "$ref", "anyOf", "oneOf"}, name
        assert exemplified(about, schemas), name
    for schema in schemas.values():
        assert schema["description"]


def test_every_answer_is_described(client_of):
    for path, methods in description_of(client_of())["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], path
            assert operation["operationId"].isidentifier(), path
            for status, answer in operation["responses"].items():
                assert answer["description"].endswith("."), (path, method, status)
                assert ("Retry-After" in answer.get("headers", {})) is (status in ("429", "503"))


def test_examples_are_answered(client_of):
    client = client_of()
    for path, methods in description_of(client)["paths"].items():
        body = methods.get("post", {}).get("requestBody", {}).get("content", {})
        for example in body.get("application/json", {}).get("examples", {}).values():
            if path != "/v1/jobs":
                assert client.post(path, json=example["value"]).status_code == 200


@pytest.mark.parametrize("most", [7, 256, 20_000])
def test_limits_are_those_of_the_running_service(client_of, most):
    client = client_of(most_texts=most, most_words=77, body_bytes=12_345, deadline_seconds=9)
    description = description_of(client)
    for name in ("ManyTexts", "DetectTexts"):
        texts = description["components"]["schemas"][name]["properties"]["texts"]
        assert (texts["minItems"], texts["maxItems"]) == (1, min(most, 10_000))
    said = description["info"]["description"]
    assert all(limit in said for limit in ("77 words", "12,345 bytes", "9 s"))
    limits = client.get("/v1/models").json()["limits"]
    jobs = {"job_bytes": None, "job_rows": None}
    assert limits == {"texts": most, "words": 77, "body_bytes": 12_345, **jobs}


def test_keys_are_described_where_there_are_some(client_of):
    for key in (None, KEY):
        description = description_of(client_of(api_key=key))
        assert ("securitySchemes" in description["components"]) is (key is not None)
        operations = description["paths"]
        assert ("security" in operations["/v1/certify"]["post"]) is (key is not None)
        assert "security" not in operations["/healthz"]["get"]
        for methods in operations.values():
            for operation in methods.values():
                assert ("401" in operation["responses"]) is ("security" in operation)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_command_for_every_route(client_of, key):
    page = client_of(api_key=key).get("/docs").text
    commands = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    paths = description_of(client_of())["paths"]
    assert len(commands) == sum(map(len, paths.values()))
    for command in commands:
        assert command.startswith("curl -s ")
        open_to_all = "/healthz" in command or "/readyz" in command
        assert ("RANMASK_API_KEY" in command) is (key is not None and not open_to_all)
    assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", page)


BAD = [
    *({}, [], 3, "text", None, {"text": 3}, {"text": None}, {"text": ["a"]}, {"text": ["a", 3]}),
    *({"text": {"a": 1}}, {"text": "a", "texts": ["a"]}, {"texts": []}, {"texts": "a"}),
    *({"texts": ["a", 3]}, {"texts": ["a", ["b"]]}, {"texts": [["a", "b", "c"]]}, {"texts": {}}),
    *({"texts": ["a"] * 10_001}, {"text": "a", "more": 1}, {"text": "a", "Model": "x"}),
    *({"text": "a", "model": 3}, {"text": "a", "model": "x" * 300}, {"text": "a", "options": 3}),
    *({"text": "a", "options": {name: value}} for name, value in (
        *(("masks", "5"), ("masks", 0), ("masks", 1.5), ("masks", True), ("masks", 10**9)),
        *(("keep", []), ("mask_rate", 1), ("mask_rate", "0.5"), ("alpha", 0), ("alpha", 2)),
        *(("seed", -1), ("seed", 2**64), ("certificate", "x"), ("certificate", 3)),
        *(("threats", "edits"), ("threats", ["x"]), ("threats", ["edits"] * 9), ("device", 1)),
        *(("family", {}), ("maks", 5), ("ensemble", "mean")),
    )),
]  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=lambda body: json.dumps(body)[:40])
def test_refusals_are_in_our_words(client_of, body):
    client = client_of()
    for path in ("/v1/certify", "/v1/explain", "/v1/attack", "/v1/detect"):
        response = client.post(path, json=body)
        assert response.status_code == 422, response.text
        message = response.json()["error"]["message"]
        assert not FOREIGN.search(message), message
        assert len(message) <= 500


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": "a", "options": {"masks": "5"}}, 'options.masks must be a whole number, not "5"'),
        ({"text": "a", "options": {"masks": 0}}, "options.masks must be at least 1, not 0"),
        ({"texts": []}, "texts must be a list of at least 1, not a list of 0"),
        ({"text": "a", "optoins": {}}, "optoins is no field here: leave it out; did you mean opt"),
        ({"text": "a", "model": "x" * 201}, "model must be a string of at most 200 characters"),
        ({"texts": ["a", 3]}, "texts[1] must be a string, or a list of two strings for a pair"),
        ({"text": "a", "options": {"threats": ["x"]}}, "options.threats[0] must be substitutions"),
    ],
)
def test_what_is_said(client_of, body, message):
    said = client_of().post("/v1/certify", json=body).json()["error"]["message"]
    assert said.startswith(message)


def test_where_json_ends_to_be_json(client_of):
    answer = client_of().post("/v1/certify", content=b'{"text": "a",}', headers=JSON)
    assert "from character 13 on" in answer.json()["error"]["message"]
