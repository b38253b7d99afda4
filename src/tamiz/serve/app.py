"""Answer the requests of the page: upload a table, fit, export."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from tamiz._utils.text import to_plain
from tamiz.errors import TamizError
from tamiz.report.page import render
from tamiz.report.text import clean_text
from tamiz.serve.fits import LIVE_NETWORKS, LiveJob, LiveJobs, python_code, read_request, run_request
from tamiz.serve.tables import LiveError, LiveTable, LiveTables, read_options
from tamiz.study import select

#: Bytes of a request other than an upload.
_MOST_BYTES = 4_000_000
#: Files of the page, in their folders, and their types; the style of the report comes before what the page adds to it.
_FILES = {
    "/": (["serve/page/page.html"], "text/html"),
    "/page.css": (["report/templates/report.css", "serve/page/page.css"], "text/css"),
    "/page.js": (["serve/page/page.js"], "text/javascript"),
}


#: The page loads its own script, style and data, and nothing else; nobody may frame it.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_REFUSED = PlainTextResponse("Not allowed. Open the address that `tamiz serve` printed.\n", status_code=403)


def guard(app: Any, token: str, hosts: tuple[str, ...]) -> Any:
    """Wrap an ASGI application: answer only who knows the address, and add headers to each answer.

    Parameters
    ----------
    app : ASGI application
        Answers what is let through.
    token : str
        First part of the path of every request.
    hosts : tuple of str
        Values of the header ``Host`` that are let through: a name that somebody pointed at this machine is not among them.
    """

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        here = "http://" + (host := headers.get("host", ""))
        # "*" of OPTIONS and the host of CONNECT have no part behind a slash.
        given = (scope["path"].split("/") + [""])[1]
        known = secrets.compare_digest(given.encode(), token.encode())
        allowed = known and host in hosts and headers.get("origin", here) == here
        await (app if allowed else _REFUSED)(scope, receive, send_with_headers)

    return answer


class LiveApp:
    """Hold what the routes share.

    Parameters
    ----------
    tables : LiveTables
        Tables of all pages.
    upload_limit : int, default=500_000_000
        Largest file that is taken, in bytes.
    """

    def __init__(self, tables: LiveTables, upload_limit: int = 500_000_000) -> None:
        self.tables, self.upload_limit, self.jobs = tables, upload_limit, LiveJobs()

    def asgi(self, token: str, hosts: tuple[str, ...]) -> Any:
        """Make the application, behind a token.

        Parameters
        ----------
        token : str
            First part of each address.
        hosts : tuple of str
            Hosts that are answered to, with their port.
        """
        routes = [
            *(Route(path, self._file) for path in _FILES),
            Route("/start", self._answer(self._start)),
            Route("/tables", self._answer(self._upload), methods=["POST"]),
            Route("/tables/{key}", self._answer(self._describe)),
            Route("/tables/{key}/reading", self._answer(self._read_again), methods=["POST"]),
            Route("/fit", self._answer(self._fit), methods=["POST"]),
            Route("/report", self._answer(self._report), methods=["POST"]),
            Route("/code", self._answer(self._code), methods=["POST"]),
        ]
        return guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), token, hosts)

    @staticmethod
    async def _file(request: Request) -> Response:
        names, kind = _FILES["/" + request.url.path.rpartition("/")[2]]
        texts = [resources.files("tamiz").joinpath(name).read_text(encoding="utf-8") for name in names]
        return Response("".join(texts), media_type=kind)

    async def _start(self, request: Request) -> Response:
        return JSONResponse({"table": self.tables.first, "networks": LIVE_NETWORKS})

    async def _describe(self, request: Request) -> Response:
        return await self._table(self.tables.find, request.path_params["key"])

    async def _table(self, read: Callable[..., tuple[str, LiveTable]], *arguments: Any) -> Response:
        """Read a table in a thread and describe it."""
        key, table = await run_in_threadpool(read, *arguments)
        return JSONResponse(to_plain(table.describe(key)))

    async def _read_again(self, request: Request) -> Response:
        """Read a table anew with the options of the page."""
        options = read_options(await _read_record(request))
        return await self._table(self.tables.read_again, request.path_params["key"], options)

    async def _upload(self, request: Request) -> Response:
        """Write the body to a file, up to the limit, and read it as a table."""
        options = read_options(_parse(unquote(request.headers.get("x-reading", "{}"))))
        name = unquote(request.headers.get("x-file-name", "table"))
        path = self.tables.new_file(name)
        size = 0
        try:
            with path.open("wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.upload_limit:
                        raise LiveError(
                            f"The file is larger than {self.upload_limit / 1e6:,.0f} MB. Raise --upload-limit, or name the "
                            "file on the command line: tamiz serve FILE."
                        )
                    file.write(chunk)
        except BaseException:
            self.tables.discard(path)
            raise
        return await self._table(self.tables.add, path, name, options)

    async def _read(self, request: Request) -> tuple[dict[str, Any], Any, Any]:
        """Read the body of a request, the table that it names and what it asks for."""
        record = await _read_record(request)
        asked = read_request(record)
        return record, self.tables.find(str(record.get("table")))[1], asked

    def _stream(self, page: str, work: Callable[[LiveJob], None]) -> Response:
        """Start a job, which ends an older one of the same page, and stream its parts as server-sent events."""
        queue: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def send(event: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, event)

        job = self.jobs.submit(page, work, send)

        async def stream() -> AsyncIterator[str]:
            try:
                while (event := await queue.get()) is not None:
                    kind, data = event
                    if kind == "problem":
                        data = {"message": self._message(data["error"])}
                    yield f"event: {kind}\ndata: {json.dumps(to_plain(data), allow_nan=False)}\n\n"
                yield "event: end\ndata: {}\n\n"
            finally:  # the page has gone, or asks for something else
                job.cancel()

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _fit(self, request: Request) -> Response:
        record, table, asked = await self._read(request)
        page = str(record.get("page", ""))
        return self._stream(page, lambda job: run_request(table.with_target(asked.target), asked, job))

    async def _report(self, request: Request) -> Response:
        _, table, asked = await self._read(request)

        def write(job: LiveJob) -> None:
            study = select(
                table.path, target=None if table.has_target else asked.target, k=asked.n_features_to_select,
                network=asked.network, keep=asked.keep or None, drop=asked.drop or None, permutations=0, n_jobs=1,
                progress=job.check, **table.options,
            )  # fmt: skip
            job.check()
            job.emit("report", text=render(study, title=table.name))

        return self._stream(uuid4().hex, write)

    async def _code(self, request: Request) -> Response:
        _, table, asked = await self._read(request)
        return JSONResponse({"code": python_code(table, asked)})

    def _message(self, error: Exception) -> str:
        """Say in one sentence what went wrong; what is no fault of the table also goes to the terminal."""
        if isinstance(error, (TamizError, ValueError)):
            return clean_text(self.tables.plain_message(error))
        if isinstance(error, MemoryError):
            return "There is not enough memory for this table."
        if isinstance(error, OSError):
            return f"The file cannot be stored: {error.strerror or error}."
        traceback.print_exception(error, file=sys.stderr)
        return f"This failed: {type(error).__name__}. The terminal of tamiz serve shows more."

    def _answer(self, route: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Turn an error into a message that the page shows."""

        async def answer(request: Request) -> Response:
            try:
                return await route(request)
            except (ClientDisconnect, asyncio.CancelledError):  # the page has gone, or the server ends
                return Response(status_code=400)
            except Exception as error:
                return JSONResponse({"error": self._message(error)}, status_code=422)

        return answer


async def _read_record(request: Request) -> Any:
    """Read the body of a request, which is JSON of a moderate size."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise LiveError("The request is too large.")
    return _parse(body)


def _parse(text: str | bytes) -> Any:
    """Read JSON; a hundred thousand brackets are no more understood than nonsense."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise LiveError("The request is not understood.") from None
