"""Answer the requests of the page: upload a table, fit, export."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from tamiz._utils.records import to_plain
from tamiz.errors import TamizError
from tamiz.report.page import render
from tamiz.report.text import clean_text
from tamiz.serve.fits import LIVE_NETWORKS, python_code, read_request, run_request
from tamiz.serve.guard import Guard
from tamiz.serve.jobs import JobCancelled, LiveJob, LiveJobs
from tamiz.serve.tables import LiveError, LiveTable, LiveTables, read_options
from tamiz.study import select

#: Bytes of a request other than an upload.
_MOST_BYTES = 4_000_000
#: How often an export looks whether its page is still there.
_LOOK_SECONDS = 0.2
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


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
        self.tables = tables
        self.jobs = LiveJobs()
        #: Exports that run.
        self.exports: set[asyncio.Future[str]] = set()
        self.upload_limit = upload_limit

    def asgi(self, token: str, hosts: tuple[str, ...]) -> Guard:
        """Return the application, behind a token.

        Parameters
        ----------
        token : str
            First part of each address.
        hosts : tuple of str
            Hosts that are answered to, with their port.
        """
        routes = [
            Route("/", self._file("page.html")),
            Route("/page.css", self._style),
            Route("/page.js", self._file("page.js")),
            Route("/start", _answer(self._start)),
            Route("/tables", _answer(self._upload), methods=["POST"]),
            Route("/tables/{key}", _answer(self._describe)),
            Route("/tables/{key}/reading", _answer(self._read_again), methods=["POST"]),
            Route("/fit", _answer(self._fit), methods=["POST"]),
            Route("/report", _answer(self._report), methods=["POST"]),
            Route("/code", _answer(self._code), methods=["POST"]),
        ]
        return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), token, hosts)

    @staticmethod
    def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
        text = resources.files("tamiz.serve").joinpath("page", name).read_text(encoding="utf-8")

        async def send(request: Request) -> Response:
            return Response(text, media_type=_TYPES[Path(name).suffix])

        return send

    @staticmethod
    async def _style(request: Request) -> Response:
        """Send the style of the report with what the live page adds to it."""
        shared = resources.files("tamiz.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
        own = resources.files("tamiz.serve").joinpath("page", "page.css").read_text(encoding="utf-8")
        return Response(shared + own, media_type="text/css")

    async def _start(self, request: Request) -> Response:
        return JSONResponse({"table": self.tables.first, "networks": LIVE_NETWORKS, "uploadLimit": self.upload_limit})

    async def _describe(self, request: Request) -> Response:
        key = request.path_params["key"]
        return self._description(key, self.tables.get(key))

    @staticmethod
    def _description(key: str, table: LiveTable) -> Response:
        return JSONResponse(to_plain(table.describe(key)))

    async def _read_again(self, request: Request) -> Response:
        """Read a table anew with the options of the page."""
        key = request.path_params["key"]
        options = read_options(await _read_record(request))
        try:
            key, table = await run_in_threadpool(self.tables.read_again, key, options)
        except (TamizError, ValueError) as error:
            raise LiveError(self.tables.plain_message(error)) from None
        return self._description(key, table)

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
        try:
            key, table = await run_in_threadpool(self.tables.add, path, name, options)
        except (TamizError, ValueError) as error:
            raise LiveError(self.tables.plain_message(error)) from None
        return self._description(key, table)

    async def _read(self, request: Request) -> tuple[dict[str, Any], Any, Any]:
        """Return the body of a request, the table that it names and what it asks for."""
        record = await _read_record(request)
        asked = read_request(record)
        return record, self.tables.get(str(record.get("table"))), asked

    async def _fit(self, request: Request) -> Response:
        """Start a fit, which ends an older one of the same page, and stream its parts as server-sent events."""
        record, table, asked = await self._read(request)
        queue: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def send(event: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, event)

        def work(job: LiveJob) -> None:
            try:
                run_request(table.with_target(asked.target), asked, job)
            except JobCancelled:
                raise
            except Exception as error:
                job.emit("problem", message=self._message(error))

        job = self.jobs.submit(str(record.get("page", "")), work, send)

        async def stream() -> AsyncIterator[str]:
            try:
                while (event := await queue.get()) is not None:
                    kind, data = event
                    yield f"event: {kind}\ndata: {json.dumps(to_plain(data), allow_nan=False)}\n\n"
                yield "event: end\ndata: {}\n\n"
            finally:  # the page has gone, or asks for something else
                job.cancel()

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _report(self, request: Request) -> Response:
        _, table, asked = await self._read(request)

        def write(check: Callable[..., None]) -> str:
            study = select(
                table.path, target=None if table.has_target else asked.target, k=asked.n_features_to_select,
                network=asked.network, keep=asked.keep or None, drop=asked.drop or None, permutations=0, n_jobs=1,
                progress=check, **table.options,
            )  # fmt: skip
            check()
            return render(study, title=table.name)

        page = await self._run_while_connected(request, write)
        headers = {"content-disposition": 'attachment; filename="report.html"'}
        return Response(page, media_type="text/html", headers=headers)

    async def _code(self, request: Request) -> Response:
        _, table, asked = await self._read(request)

        def write(check: Callable[..., None]) -> str:
            return python_code(table, table.with_target(asked.target), asked)

        return JSONResponse({"code": await self._run_while_connected(request, write)})

    async def _run_while_connected(self, request: Request, work: Callable[[Callable[..., None]], str]) -> str:
        """Do an export in a thread; it ends at its next check when the page has gone."""
        gone = threading.Event()

        def check(*_: Any) -> None:
            if gone.is_set():
                raise JobCancelled

        def run() -> str:
            try:
                return work(check)
            except (TamizError, ValueError) as error:
                raise LiveError(self._message(error)) from None

        task = asyncio.ensure_future(run_in_threadpool(run))
        self.exports.add(task)
        task.add_done_callback(self.exports.discard)
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK_SECONDS))[0]:
                if await request.is_disconnected():
                    gone.set()
        finally:
            gone.set()
        try:
            return task.result()
        except JobCancelled:
            raise ClientDisconnect from None

    def _message(self, error: Exception) -> str:
        """Return one sentence on an error; what is no fault of the table also goes to the terminal."""
        if not isinstance(error, (TamizError, ValueError)):
            traceback.print_exception(error, file=sys.stderr)
            return f"This failed: {type(error).__name__}. The terminal of tamiz serve shows more."
        return clean_text(self.tables.plain_message(error))


async def _read_record(request: Request) -> Any:
    """Return the body of a request, which is JSON of a moderate size."""
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


def _answer(route: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn an error into a message that the page shows."""

    async def answer(request: Request) -> Response:
        try:
            return await route(request)
        except (ClientDisconnect, asyncio.CancelledError):  # the page has gone, or the server ends
            return Response(status_code=400)
        except TamizError as error:
            return JSONResponse({"error": clean_text(str(error))}, status_code=422)
        except MemoryError:
            return JSONResponse({"error": "There is not enough memory for this table."}, status_code=422)
        except OSError as error:
            return JSONResponse(
                {"error": f"The file cannot be stored: {os.strerror(error.errno or 0)}."}, status_code=422
            )
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            text = f"This failed: {type(error).__name__}. The terminal of tamiz serve shows more."
            return JSONResponse({"error": text}, status_code=500)

    return answer
