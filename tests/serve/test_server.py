"""The server before its first request."""

import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tamiz.serve.server import LiveServer

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")


def test_each_server_has_an_address_of_its_own():
    one, other = LiveServer(), LiveServer()
    try:
        assert one.url != other.url
        assert one.url.startswith(f"http://127.0.0.1:{one.port}/")
        assert len(one.url.split("/")[-2]) >= 32
    finally:
        for server in (one, other):
            server._socket.close()


def test_a_port_that_is_taken_or_none_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port in (taken.getsockname()[1], 99999):
            with pytest.raises(ValueError, match=f"Port {port} cannot be listened at"):
                LiveServer(port=port)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_an_interrupt_during_an_upload_is_quiet(tmp_path):
    command = [sys.executable, "-m", "tamiz.cli.main", "serve"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, **pipes) as process:
        try:
            address = urlsplit(process.stdout.readline().removeprefix("Live page: ").strip())
            with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
                head = (
                    f"POST {address.path}tables HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 1000000\r\n\r\n"
                )
                connection.sendall(head.encode() + b"a,b\n1,2\n")
                while not any(path.is_file() for path in tmp_path.rglob("table")):  # the upload has begun
                    assert process.poll() is None
                process.send_signal(signal.SIGINT)
                _, stderr = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert stderr.split("\n") == ["Ctrl-C ends it.", "Stopped.", ""]
