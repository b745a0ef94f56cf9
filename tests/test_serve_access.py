"""API keys, limits per minute, and who a request comes from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import DataError
from dragoman.serve import RequestLimits
from dragoman.serve.access import MAX_CLIENTS, AccessControl, Client, RateLimiter
from dragoman.serve.api_keys import ApiKeys, create_key, read_keys
from dragoman.serve.app import create_app
from dragoman.serve.errors import ApiError
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import BASE_URL, LIMITS, assert_error, place, registry

__all__ = ["place", "registry"]

MISSING, WRONG = "Please contact the server operator to get an API key", "Invalid API key"
TRANSLATE = {"q": "Der Hund schläft.", "source": "de", "target": "en"}
NEXT = {"models": ["bigrams"], "prefix": "the", "k": 1}


def client_with(
    registry: ModelRegistry, keys: Path | None = None, limits: RequestLimits = LIMITS, **options: Any
) -> TestClient:
    access = AccessControl(limits, None if keys is None else ApiKeys(keys))
    logged = options.pop("logged", None)
    service = Service(registry, limits, log_text=None if logged is None else logged.append, access=access)
    return TestClient(create_app(service, **options), base_url=BASE_URL)


# -- the file of keys --------------------------------------------------------------------------------------------------


def test_file_has_only_hashes_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys.txt"
    keys = {name: create_key(path, name) for name in ("alice", "bob@example.org")}
    assert len(set(keys.values())) == 2 and all(len(key) >= 43 for key in keys.values()), "256 bits in base 64"
    text = path.read_text()
    for name, key in keys.items():
        assert key not in text and f"{name} sha256:{hashlib.sha256(key.encode()).hexdigest()} " in text
    api_keys = ApiKeys(path)
    assert [api_keys.find(key) for key in keys.values()] == ["alice", "bob@example.org"]
    for wrong in ("", "alice", keys["alice"][:-1], keys["alice"] + "x", text.split("sha256:")[1][:64], "\ud800"):
        assert api_keys.find(wrong) is None


@pytest.mark.parametrize("name", ["", "a b", "#a", "a\nb", "-a", "a" * 65, "ä"])
def test_invalid_names_of_keys(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="--new-key"):
        create_key(tmp_path / "keys.txt", name)
    assert not (tmp_path / "keys.txt").exists()


def test_second_key_of_a_name_is_refused(tmp_path: Path) -> None:
    create_key(tmp_path / "keys.txt", "alice")
    before = (tmp_path / "keys.txt").read_text()
    with pytest.raises(DataError, match="there is a key alice already"):
        create_key(tmp_path / "keys.txt", "alice")
    assert (tmp_path / "keys.txt").read_text() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alice\n", ":1: not a line of the form NAME"),
        ("# comment\n\nalice sha256:12 2026-01-01\n", ":3: not a line"),
        (f"alice md5:{'a' * 64}\n", ":1: not a line"),
        (f"alice sha256:{'a' * 64}\nalice sha256:{'b' * 64}\n", ":2: this name was used before"),
        ("# only a comment\n", "contains no keys; make one by"),
        ("\xff", "not UTF-8"),
    ],
)
def test_damaged_files_of_keys(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        ApiKeys(path)


def test_missing_file_of_keys(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read.*--new-key NAME"):
        ApiKeys(tmp_path / "keys.txt")


def test_every_key_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, compared = tmp_path / "keys.txt", list[str]()
    keys = [create_key(path, name) for name in ("a", "b", "c")]

    def compare(one: str, two: str) -> bool:
        compared.append(two)
        return one == two

    monkeypatch.setattr("dragoman.serve.api_keys.hmac.compare_digest", compare)
    assert ApiKeys(path).find(keys[0]) == "a"
    assert compared == list(read_keys(path).values())


# -- keys in requests --------------------------------------------------------------------------------------------------


def test_both_apis_need_a_key(registry: ModelRegistry, tmp_path: Path) -> None:
    key = create_key(tmp_path / "keys.txt", "alice")
    bearer = {"Authorization": f"Bearer {key}"}
    with client_with(registry, tmp_path / "keys.txt") as client:
        for path in ("/translate", "/detect"):
            assert_error(client.post(path, json=TRANSLATE), 403, MISSING)
            assert_error(client.post(path, data=TRANSLATE | {"api_key": "wrong"}), 403, WRONG)
            assert_error(client.post(path, json=TRANSLATE | {"api_key": 5}), 403, WRONG)
            assert_error(client.post(path, content=b"{"), 403, MISSING)
            for request in (
                {"json": TRANSLATE | {"api_key": key}},
                {"data": TRANSLATE | {"api_key": key}},
                {"files": {name: (None, value) for name, value in (TRANSLATE | {"api_key": key}).items()}},
                {"params": {"api_key": key}, "json": TRANSLATE},
                {"headers": bearer, "json": TRANSLATE},
                {"headers": {"authorization": f"bearer {key}"}, "json": TRANSLATE},
            ):
                assert client.post(path, **request).status_code == 200, request
        assert_error(client.post("/v1/next", json=NEXT), 403, MISSING)
        assert_error(client.post("/v1/next", json=NEXT, headers={"Authorization": "Bearer x"}), 403, WRONG)
        assert client.post("/v1/next", json=NEXT, headers=bearer).status_code == 200
        assert client.post("/v1/next", json=NEXT | {"api_key": key}).status_code == 200
        assert client.post("/v1/next", json=NEXT, params={"api_key": key}).status_code == 200
        for path in ("models", "metrics/bigrams", "runs", "reports/bigrams"):
            assert_error(client.get(f"/v1/{path}"), 403, MISSING)
            assert client.get(f"/v1/{path}", headers=bearer).status_code == (404 if "reports" in path else 200)
        for path in ("/", "/page/main.js", "/languages", "/health", "/spec", "/frontend/settings"):
            assert client.get(path).status_code == 200, "public"


def test_cookie_is_accepted_for_reports_only(registry: ModelRegistry, tmp_path: Path) -> None:
    key = create_key(tmp_path / "keys.txt", "alice")
    with client_with(registry, tmp_path / "keys.txt") as client:
        client.cookies.set("api_key", key)
        assert_error(client.get("/v1/reports/bigrams"), 404, "no report.html")
        assert_error(client.get("/v1/models"), 403, MISSING)
        assert_error(client.post("/translate", json=TRANSLATE), 403, MISSING)


def test_settings_and_description_say_whether_a_key_is_required(registry: ModelRegistry, tmp_path: Path) -> None:
    create_key(tmp_path / "keys.txt", "alice")
    for keys, required in ((None, False), (tmp_path / "keys.txt", True)):
        with client_with(registry, keys) as client:
            settings, spec = client.get("/frontend/settings").json(), client.get("/spec").json()
        assert settings["keyRequired"] is settings["apiKeys"] is required
        for path, secured in (("/translate", True), ("/v1/next", True), ("/languages", False)):
            operation = next(iter(spec["paths"][path].values()))
            assert ("security" in operation) == (required and secured), path


def test_file_of_keys_is_read_again_when_it_changes(
    registry: ModelRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.txt"
    alice = create_key(path, "alice")
    with client_with(registry, path) as client:

        def status(key: str) -> int:
            return client.post("/detect", data={"q": "x", "api_key": key}).status_code

        assert status(alice) == 200
        bob = create_key(path, "bob")
        assert (status(alice), status(bob)) == (200, 200)
        path.write_text("".join(line for line in path.open() if not line.startswith("alice ")))
        assert (status(alice), status(bob)) == (403, 200), "the key of a removed line is revoked"
        good = path.read_text()
        for damaged in (good + "carol\n", None):
            path.unlink() if damaged is None else path.write_text(damaged)
            assert_error(client.post("/detect", data={"q": "x", "api_key": bob}), 503, "see the service's log")
            assert_error(client.post("/detect", data={"q": "x"}), 403, MISSING)
        assert f"{path}:3: not a line" in caplog.text and "cannot be read" in caplog.text
        path.write_text(good)
        assert status(bob) == 200


def test_names_of_keys_are_logged_and_keys_are_not(
    registry: ModelRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = create_key(tmp_path / "keys.txt", "alice")
    requests, texts = list[str](), list[str]()
    with client_with(registry, tmp_path / "keys.txt", logged=texts, log_request=requests.append) as client:
        client.post("/detect", params={"api_key": key, "q": "Geheimnis"})
        client.get("/v1/no%0Awhere", headers={"Authorization": f"Bearer {key}"})
        client.post("/detect", params={"api_key": "wrong"})
        monkeypatch.setattr(Service, "detect", lambda *_: 1 / 0)
        client.post("/detect", headers={"Authorization": f"Bearer {key}"}, data={"q": "x"})
    assert texts == ["alice: 'Geheimnis'", "alice: 'x'"]
    lines = [line.rsplit(" ", 2)[0] for line in requests]
    assert lines[0] == "testclient alice POST /detect 200" and lines[2:] == [
        "testclient - POST /detect 403",
        "testclient alice POST /detect 500",
    ]
    assert lines[1] == "testclient - GET /v1/no%0Awhere 404"
    assert "ZeroDivisionError (key alice)" in caplog.text
    everything = "\n".join([*requests, *texts, caplog.text])
    assert key not in everything and "Geheimnis" not in "\n".join([*requests, caplog.text])


# -- limits per minute -------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def retry_after(limiter: RateLimiter, client: str, amount: int) -> int:
    """Return the seconds to wait; 0 if the use is accepted."""
    try:
        limiter.spend(client, amount)
    except ApiError as error:
        assert error.status_code == 429 and error.headers is not None
        return int(error.headers["Retry-After"])
    return 0


def test_limit_per_minute_of_each_client() -> None:
    clock = Clock()
    limiter = RateLimiter(30, "requests", clock)
    assert [retry_after(limiter, "a", 1) for _ in range(31)] == [0] * 30 + [2], "one is paid back in 2 seconds"
    assert retry_after(limiter, "b", 30) == 0, "each client has its own limit"
    clock.now += 2
    assert [retry_after(limiter, "a", 1) for _ in range(2)] == [0, 2]
    clock.now += 60
    assert [retry_after(limiter, "a", 1) for _ in range(31)] == [0] * 30 + [2], "never more than the limit at once"


def test_waiting_as_long_as_told_is_enough() -> None:
    clock = Clock()
    limiter = RateLimiter(7, "requests", clock)
    accepted = 0
    for _ in range(200):
        wait = retry_after(limiter, "a", 1)
        accepted += not wait
        clock.now += wait
        assert not wait or not retry_after(limiter, "a", 1)
        accepted += bool(wait)
    assert accepted <= 7 * (1 + (clock.now - 1000) / 60)


def test_use_above_the_limit_takes_longer_to_pay_back() -> None:
    clock = Clock()
    limiter = RateLimiter(100, "characters", clock)
    assert retry_after(limiter, "a", 300) == 0
    assert retry_after(limiter, "a", 1) == 121
    clock.now += 121
    assert retry_after(limiter, "a", 1) == 0


def test_memory_of_the_limiter_is_bounded() -> None:
    limiter = RateLimiter(1, "requests", Clock())
    for number in range(3 * MAX_CLIENTS):
        limiter.spend(f"10.0.{number}", 1)
    assert len(limiter._paid_back) == MAX_CLIENTS
    assert retry_after(limiter, f"10.0.{3 * MAX_CLIENTS - 1}", 1), "the latest clients are remembered"
    RateLimiter(None, "requests").spend("a", 10**9)


def test_networks_of_ipv6_addresses_share_a_limit() -> None:
    assert Client("2001:db8:1:2:3::4").account == Client("2001:db8:1:2::ffff").account == "address 2001:db8:1:2::/64"
    assert Client("2001:db8:1:3::1").account != Client("2001:db8:1:2::1").account
    assert Client("192.0.2.1").account == "address 192.0.2.1" and len(Client("x" * 999).account) < 80
    assert Client("192.0.2.1", "alice").account == "key alice" != Client("key alice").account


def test_too_many_requests_and_characters(registry: ModelRegistry, tmp_path: Path) -> None:
    keys = [create_key(tmp_path / "keys.txt", name) for name in ("alice", "bob")]
    limits = LIMITS.model_copy(update={"requests_per_minute": 3, "characters_per_minute": 100})
    with client_with(registry, tmp_path / "keys.txt", limits) as client:

        def post(key: str, text: str = "x") -> Any:
            return client.post("/detect", data={"q": text, "api_key": key})

        assert [post(keys[0]).status_code for _ in range(3)] == [200] * 3
        refused = post(keys[0])
        assert_error(refused, 429, "Slowdown: 3 requests per minute")
        assert 1 <= int(refused.headers["retry-after"]) <= 20
        assert post(keys[1], "y" * 90).status_code == 200, "of another key"
        refused = post(keys[1], "y" * 30)
        assert_error(refused, 429, "Slowdown: 100 characters per minute")
        assert 1 <= int(refused.headers["retry-after"]) <= 12
        assert [post("wrong").status_code for _ in range(4)] == [403] * 3 + [429], "guesses count for the address"
        assert client.get("/health").status_code == 200
    with client_with(registry, None, limits) as client:
        assert [client.get("/v1/runs").status_code for _ in range(4)] == [200] * 3 + [429]
