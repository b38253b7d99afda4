"""Answer only who knows the address: the token in the path, the right host, the same origin; add headers to each answer."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendMessage = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: The page loads its own script, style and data, and nothing else; nobody may frame it.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Wrap an ASGI application.

    Parameters
    ----------
    app : ASGI application
        Answers what is let through.
    token : str
        First part of the path of every request.
    hosts : sequence of str
        Values of the header ``Host`` that are let through: a name that somebody pointed at this machine is not among them.
    """

    def __init__(self, app: Any, token: str, hosts: tuple[str, ...]) -> None:
        self.app = app
        self.token = token
        self.hosts = hosts

    def _allows(self, scope: Scope) -> bool:
        headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if host not in self.hosts:
            return False
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return False
        given = (scope["path"].split("/") + [""])[
            1
        ]  # "*" of OPTIONS and the host of CONNECT have no part behind a slash
        return secrets.compare_digest(given.encode(), self.token.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        """Answer 403, or let the request through."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        if self._allows(scope):
            await self.app(scope, receive, send_with_headers)
            return
        body = b"Not allowed. Open the address that `tamiz serve` printed.\n"
        start = {
            "type": "http.response.start",
            "status": 403,
            "headers": [(b"content-type", b"text/plain; charset=utf-8")],
        }
        await send_with_headers(start)
        await send({"type": "http.response.body", "body": body})
