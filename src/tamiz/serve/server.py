"""Bind the live page to a port of this machine and run it."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require

#: The only address that is listened at: other machines cannot reach it.
ADDRESS = "127.0.0.1"


class LiveServer:
    """Serve the live page.

    Parameters
    ----------
    file : Path or None, default=None
        A table to start with.
    target : str or None, default=None
        Its target.
    reading : mapping or None, default=None
        Options of :func:`tamiz.tables.read_table` for that table.
    port : int, default=0
        Port to listen at; 0 takes a free one.
    upload_limit : int, default=500_000_000
        Largest file that is taken, in bytes.

    Attributes
    ----------
    url : str
        Address of the page, with its token.
    """

    def __init__(
        self,
        file: Path | None = None,
        target: str | None = None,
        *,
        reading: Mapping[str, Any] | None = None,
        port: int = 0,
        upload_limit: int = 500_000_000,
    ) -> None:
        uvicorn = require("uvicorn", "serve", "tamiz serve")
        require("starlette", "serve", "tamiz serve")
        from tamiz.serve.app import LiveApp
        from tamiz.serve.tables import LiveTables

        self._socket = _listen(port)
        try:
            self._tables = LiveTables(file, target, reading)
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        self.url = f"http://{ADDRESS}:{self.port}/{token}/"
        self.app = LiveApp(self._tables, upload_limit)
        hosts = (f"{ADDRESS}:{self.port}", f"localhost:{self.port}")
        config = uvicorn.Config(
            self.app.asgi(token, hosts),
            log_level="error",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            ws="none",
            server_header=False,
        )
        # An upload that Ctrl-C ends is no error.
        logging.getLogger("uvicorn.error").addFilter(lambda record: "graceful shutdown" not in str(record.msg))
        self._server: Any = uvicorn.Server(config)
        self._stopped = False

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Serve until stopped, or raise KeyboardInterrupt when interrupted; uploads are removed at the end.

        Parameters
        ----------
        on_start : callable, default=nothing
            Called before the first request is answered.
        """
        threading.Thread(target=_load_engine, daemon=True, name="tamiz-warm-up").start()
        on_start()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.app.jobs.cancel_all()
            self.app.jobs.wait(1.0)
            self._socket.close()
            self._tables.close()
        if not self._stopped:  # uvicorn has taken the signal, also where the shell had it ignored
            raise KeyboardInterrupt

    def stop(self) -> None:
        """End :meth:`run`, from another thread."""
        self._stopped = True
        self._server.should_exit = True


def _listen(port: int) -> socket.socket:
    """Open a socket that listens at a port of this machine."""
    try:
        if not 0 <= port <= 65535:
            raise OSError("ports go from 0 to 65535")
        return socket.create_server((ADDRESS, port), backlog=128)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"Port {port} cannot be listened at: {reason}. Take another, or leave --port out.") from None


def _load_engine() -> None:
    """Fit a tiny table, so that what the first fit needs is loaded when the first table comes."""
    from tamiz import E2EFSClassifier

    estimator = E2EFSClassifier(2, random_state=0)
    table = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    estimator.fit_prepared(estimator.prepare(table, np.arange(12) % 2))
