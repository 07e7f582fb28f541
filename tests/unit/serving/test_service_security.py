"""Who may call the service, and what it tells browsers."""

import hmac

import pytest
from starlette.testclient import TestClient

from ranmask.errors import OptionError
from ranmask.serving.app import create_app
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings

KEY = "a-key-that-is-long-enough"
ORIGIN = "https://example.org"


@pytest.fixture(scope="module")
def host():
    host = ModelRegistry({"keywords": "ranmask.models.testing:keyword_classifier"}, keep=1)
    yield host
    host.close()


@pytest.fixture
def client_of(host):
    def make(base_url="http://localhost", **settings):
        return TestClient(create_app(host, ServiceSettings(**settings)), base_url=base_url)

    return make


class TestSettings:
    @pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
    def test_other_machines_need_a_key(self, address):
        with pytest.raises(OptionError, match="without an API key"):
            ServiceSettings(host=address)
        ServiceSettings(host=address, api_key=KEY)

    @pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
    def test_this_machine_needs_none(self, address):
        ServiceSettings(host=address)

    @pytest.mark.parametrize("key", ["", "short", "a key with blanks in it", "schlüssel" * 3])
    def test_poor_keys(self, key):
        with pytest.raises(OptionError, match="at least 16"):
            ServiceSettings(api_key=key)

    def test_the_key_is_not_shown(self):
        assert KEY not in repr(ServiceSettings(api_key=KEY))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"port": 70000},
            {"models": ()},
            {"deadline_seconds": 0},
            {"deadline_seconds": float("nan")},
            {"deadline_seconds": float("inf")},
            {"arrival_seconds": float("inf")},
            {"drain_seconds": float("inf")},
            {"threads": 0},
            {"waiting_requests": -1},
            {"cors_origins": ("*",)},
            {"cors_origins": ("https://example.org/page",)},
        ],
    )
    def test_wrong_settings(self, wrong):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            ServiceSettings(**wrong)


class TestKey:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"X-API-Key": "wrong"},
            {"X-API-Key": KEY + "x"},
            {"X-API-Key": b"\xff\xfe"},
            {"Authorization": KEY},
            {"Authorization": f"Basic {KEY}"},
            {"Authorization": f"Digest {KEY}"},
            {"Authorization": "Bearer "},
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/models", "/v1/predict", "/v1/nothing", "/metrics"])
    def test_without_it(self, client_of, headers, path):
        client = client_of(api_key=KEY)
        response = client.get(path, headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"]["code"] == "wrong_key"

    @pytest.mark.parametrize(
        "headers",
        [
            {"X-API-Key": KEY},
            {"Authorization": f"Bearer {KEY}"},
            {"Authorization": f"bearer {KEY}"},
        ],
    )
    def test_with_it(self, client_of, headers):
        client = client_of(api_key=KEY, base_url="http://anything.example")
        assert client.get("/v1/models", headers=headers).status_code == 200
        described = client.get("/openapi.json").json()
        assert described["paths"]["/v1/certify"]["post"]["security"]
        assert "security" not in described["paths"]["/healthz"]["get"]

    @pytest.mark.parametrize(
        "path",
        [
            *("/metrics%0A", "/metrics%0a", "/%6detrics", "/metrics/", "/Metrics"),
            *("/page", "/pages", "/private"),
            *("/v1/models%0A", "/v1/models/", "/v1%2Fmodels", "/V1/models", "/v1"),
        ],
    )
    def test_another_spelling_is_no_way_around_it(self, client_of, path):
        response = client_of(api_key=KEY).get(path, follow_redirects=False)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "wrong_key")

    def test_it_is_compared_in_constant_time(self, client_of, monkeypatch):
        compared = []
        monkeypatch.setattr(
            hmac, "compare_digest", lambda sent, key: compared.append((sent, key)) or True
        )
        assert client_of(api_key=KEY).get("/v1/models", headers={"X-API-Key": "a"}).is_success
        [(sent, key)] = compared
        assert len(sent) == len(key) == 32

    @pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json", "/"])
    def test_what_needs_none(self, client_of, path):
        assert client_of(api_key=KEY).get(path).status_code == 200


class TestNames:
    @pytest.mark.parametrize(
        "name", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"]
    )
    def test_of_this_machine(self, client_of, name):
        assert client_of().get("/healthz", headers={"Host": name}).status_code == 200

    @pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1"])
    def test_of_others(self, client_of, name):
        response = client_of().get("/v1/models", headers={"Host": name})
        assert (response.status_code, response.json()["error"]["code"]) == (421, "wrong_host")

    @pytest.mark.parametrize("name", ["texts.example", "TEXTS.Example"])
    def test_allowed(self, client_of, name):
        client = client_of(base_url="http://Texts.Example", allowed_hosts=(name,))
        assert client.get("/healthz").status_code == 200


def test_nobody_is_sent_to_a_host_that_the_caller_names(client_of):
    for client in (client_of(), client_of(api_key=KEY, base_url="http://evil.example")):
        for path in ("/healthz/", "/docs/", "/v1/models/"):
            response = client.get(path, headers={"X-API-Key": KEY}, follow_redirects=False)
            assert response.status_code == 404
            assert "location" not in response.headers


class TestBrowsers:
    @pytest.mark.parametrize("path", ["/", "/docs", "/nothing", "/v1/models", "/docs.css"])
    def test_headers_are_on_every_answer(self, client_of, path):
        headers = client_of().get(path).headers
        policy = headers["content-security-policy"].split("; ")
        assert set(policy) == {
            *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"),
            *("img-src 'self' data:", "base-uri 'none'", "form-action 'none'"),
            "frame-ancestors 'none'",
        }
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers.get("cache-control") == ("no-store" if path == "/v1/models" else None)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers

    def test_no_other_page_may_call_by_default(self, client_of):
        client = client_of()
        preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
        response = client.options("/v1/predict", headers=preflight)
        assert response.status_code == 405
        assert "access-control-allow-origin" not in response.headers

    def test_the_pages_that_were_named_may(self, client_of):
        client = client_of(cors_origins=(ORIGIN,), api_key=KEY)
        preflight = {
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-api-key,content-type",
        }
        response = client.options("/v1/predict", headers=preflight)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == ORIGIN
        other = client.options(
            "/v1/predict", headers={**preflight, "Origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in other.headers
        refused = client.get("/v1/models", headers={"Origin": ORIGIN})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == ORIGIN
