"""The server before its first request."""

import socket

import pytest

from tamiz.serve.server import LiveServer, PortError

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


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortError, match=f"Port {port} cannot be listened at"):
            LiveServer(port=port)


def test_a_port_that_is_none_is_named():
    with pytest.raises(PortError, match="Port 99999"):
        LiveServer(port=99999)
