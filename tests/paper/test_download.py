"""Downloads from a server that misbehaves: the right file or a clear error, never a wrong file in the cache."""

from __future__ import annotations

import hashlib
import urllib.request

import numpy as np
import pytest

from tamiz.errors import DownloadError
from tamiz.paper.download import TransferError, _SafeRedirects, download

BODY = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("answers", "checksum", "n_requests"),
    [
        ([], SHA, 1),
        ([{"cut": 70_000}] * 2, MD5, 3),
        ([{"cut": 50_000, "stall": True}], SHA[:7] + SHA[7:].upper(), 2),
        ([{"status": 503}, {"status": 429}], None, 3),
    ],
)
def test_faults_that_pass(server, tmp_path, monkeypatch, answers, checksum, n_requests):
    monkeypatch.setattr("tamiz.paper.download.TIMEOUT", 1.0 if "stall" in str(answers) else 60)
    seen = []
    url = server.put("a", BODY, *answers)
    download(url, tmp_path / "file.bin", checksum=checksum, progress=lambda *call: seen.append(call))
    assert leftovers(tmp_path) == ["file.bin"]
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert len(server.requests) == n_requests
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))


@pytest.mark.parametrize(
    ("answer", "checksum", "message", "n_requests"),
    [
        ({"cut": 70_000}, None, r"cut after 70000 of 300000 bytes \(tried 3 times\)", 3),
        ({"cut": 0, "stall": True}, None, "stalled after 0 bytes", 3),
        ({"status": 503}, None, r"answered 503 .*tried 3 times", 3),
        ({"status": 404}, None, r"file\.bin:\n.*answered 404 Not Found", 1),
        ({"cut": 299_999, "headers": {"Content-Length": ""}}, SHA, "was changed: its checksum is sha256:", 1),
        ({"status": 302, "headers": {"Location": "/a"}}, None, "302", None),
        ({"status": 302, "headers": {"Location": "file:///etc/hostname"}}, None, r"not allowed|302", None),
    ],
)
def test_faults_that_stay(server, tmp_path, monkeypatch, answer, checksum, message, n_requests):
    (tmp_path / "file.bin").write_bytes(b"old")
    monkeypatch.setattr("tamiz.paper.download.TIMEOUT", 0.5 if "stall" in answer else 60)
    with pytest.raises(DownloadError, match=message):
        download(server.put("a", BODY, *[answer] * 20), tmp_path / "file.bin", checksum=checksum)
    assert (tmp_path / "file.bin").read_bytes() == b"old"
    assert leftovers(tmp_path) == ["file.bin"]
    assert n_requests in (None, len(server.requests))


def test_mirrors_and_redirects(server, tmp_path):
    server.put("good", BODY)
    there = server.put("there", b"", {"status": 302, "headers": {"Location": "/good"}})
    download([server.url("missing"), server.put("bad", BODY[::-1]), there], tmp_path / "file.bin", checksum=SHA)
    assert server.requests == ["missing", "bad", "there", "good"]
    redirect = _SafeRedirects().redirect_request
    request = urllib.request.Request("https://example.org/a")
    assert redirect(request, None, 302, "", {}, "https://mirror.example.org/a").full_url.startswith("https")
    with pytest.raises(TransferError, match="from https to the unprotected http://"):
        redirect(request, None, 302, "", {}, "http://mirror.example.org/a")


def test_full_disk(server, small_disk):
    """With an announced size it is refused at once; without one it is noticed when it happens, and cleaned up."""
    with pytest.raises(DownloadError, match=r"disk is full.*needs 300\.0 kB.*TAMIZ_DATA_HOME"):
        download(server.put("a", BODY), small_disk / "file.bin")
    server.put("b", BODY, {"headers": {"Content-Length": ""}})
    with pytest.raises(DownloadError, match="disk is full"):
        download(server.url("b"), small_disk / "file.bin")
    assert leftovers(small_disk) == []
