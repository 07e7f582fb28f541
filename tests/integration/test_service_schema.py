"""What the OpenAPI description says is true: schemathesis tries every route."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ranmask.serving.app import create_app
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings

schemathesis = pytest.importorskip("schemathesis")

KEY = "a-key-that-is-long-enough"
ROUTES = {
    *(("/v1/predict", "POST"), ("/v1/certify", "POST"), ("/v1/explain", "POST")),
    *(("/v1/attack", "POST"), ("/v1/detect", "POST"), ("/v1/models", "GET"), ("/metrics", "GET")),
    *(("/healthz", "GET"), ("/readyz", "GET"), ("/v1/jobs", "POST"), ("/v1/jobs", "GET")),
    *(("/v1/jobs/{id}", "GET"), ("/v1/jobs/{id}", "DELETE"), ("/v1/jobs/{id}/result", "GET")),
}


@pytest.fixture(scope="module")
def host():
    host = ModelRegistry({"news-words": "news-words", "reviews": "reviews-words", "spam": "spam"})
    yield host
    host.close()


@pytest.fixture(scope="module")
def schema_of(host, tmp_path_factory):
    def make(**given):
        given = {"jobs": str(tmp_path_factory.mktemp("jobs")), "most_jobs": 10_000, **given}
        app = create_app(host, ServiceSettings(allowed_hosts=("testserver",), **given))
        return schemathesis.openapi.from_asgi("/openapi.json", app)

    return make


@pytest.fixture(scope="module")
def schema(schema_of):
    return schema_of()


def check_route(operation, mode, examples, headers=None):
    strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
    # Options that do not go together, and texts without words, cannot be told by a schema.
    excluded = [schemathesis.checks.positive_data_acceptance]

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=strategy)
    def tried(case):
        if mode == "positive" and isinstance(case.body, dict):
            case.body.pop("model", None)  # made-up names only ever lead to 404
            case.query = {}  # it goes with files
        seen.add(case.call_and_validate(headers=headers, excluded_checks=excluded).status_code)

    seen = set()
    tried()
    return seen


def test_every_route_is_described(schema):
    described = {
        (path, method.upper()) for path in schema for method in schema[path] if method != "head"
    }
    assert described == ROUTES


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", sorted(path for path, method in ROUTES if method == "POST"))
def test_questions(schema, path, mode):
    seen = check_route(schema[path]["POST"], mode, 50)
    assert bool(seen & {200, 201}) is (mode == "positive")


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(
    ("path", "method"), sorted(route for route in ROUTES if "{id}" in route[0])
)
def test_jobs_by_their_ids(schema, path, method, mode):
    assert check_route(schema[path][method], mode, 20) <= {404, 422}


@pytest.mark.parametrize(
    "path", sorted(path for path, method in ROUTES if method == "GET" and "{id}" not in path)
)
def test_other_routes(schema, path):
    check_route(schema[path]["GET"], "positive", 2)


@pytest.mark.parametrize(("path", "method"), [("/v1/certify", "POST"), ("/v1/models", "GET")])
def test_with_a_key(schema_of, path, method):
    operation = schema_of(api_key=KEY)[path][method]
    check_route(operation, "positive", 10, {"Authorization": f"Bearer {KEY}"})
