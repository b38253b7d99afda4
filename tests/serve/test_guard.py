"""Who is answered, without any server."""

import asyncio

import pytest

from tamiz.serve.guard import HEADERS, Guard


async def _answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b"page"})


def ask(path="/secret/", headers=(("host", "localhost:1"),), kind="http"):
    """Return what is sent for one request."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "path": path, "headers": [(name.encode(), value.encode()) for name, value in headers]}
    asyncio.run(Guard(_answer, "secret", ("localhost:1", "127.0.0.1:1"))(scope, None, send))
    return sent


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:1"])
def test_who_knows_the_address_is_answered(host):
    start, body = ask(headers=(("Host", host), ("Origin", f"http://{host}")))
    assert (start["status"], body["body"]) == (200, b"page")
    assert (b"x-own", b"1") in start["headers"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", [("host", "localhost:1")]),
        ("/secre/", [("host", "localhost:1")]),
        ("/secret/", []),
        ("/secret/", [("host", "evil.example")]),
        ("/secret/", [("host", "localhost:1"), ("origin", "http://evil.example")]),
        ("/secret/", [("host", "localhost:1"), ("origin", "null")]),
    ],
)
def test_others_are_not(path, headers):
    start, body = ask(path, headers)
    assert start["status"] == 403
    assert b"tamiz serve" in body["body"]
    assert b"page" not in body["body"]


@pytest.mark.parametrize("path", ["/secret/", "/other/"])
def test_every_answer_has_the_headers(path):
    start, _ = ask(path)
    assert {(name.encode(), value.encode()) for name, value in HEADERS.items()} <= set(start["headers"])


def test_other_protocols_get_no_answer():
    assert ask(kind="websocket") == []
    assert len(ask(kind="lifespan", headers=())) == 2
