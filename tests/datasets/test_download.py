"""Downloads from a server that misbehaves: the right file or a clear error, never a wrong file in the cache."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from tamiz.errors import DownloadError
from tamiz.paper.download import DownloadSettings, download, file_checksum

BODY = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("checksum", [SHA, MD5, SHA[:7] + SHA[7:].upper(), None])
def test_plain_download(server, hasty, tmp_path, checksum):
    target = tmp_path / "file.bin"
    download(server.put("a", BODY), target, checksum=checksum, settings=hasty)
    assert target.read_bytes() == BODY
    assert leftovers(tmp_path) == ["file.bin"]
    assert file_checksum(target) == SHA[7:]


def test_existing_file_is_replaced_only_by_a_whole_one(server, hasty, tmp_path):
    target = tmp_path / "file.bin"
    target.write_bytes(b"old")
    with pytest.raises(DownloadError):
        download(server.put("a", BODY, cut_after=1000, ranges=False), target, checksum=SHA, settings=hasty)
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("checksum", [SHA, None])
def test_cut_connections_are_resumed_where_they_stopped(server, hasty, tmp_path, checksum):
    target = tmp_path / "file.bin"
    download(server.put("a", BODY, cut_after=70_000), target, checksum=checksum, settings=hasty)
    assert target.read_bytes() == BODY
    asked = [asked for _, asked in server.requests]
    assert asked == [None, "bytes=70000-", "bytes=140000-", "bytes=210000-", "bytes=280000-"]
    assert leftovers(tmp_path) == ["file.bin"]


def test_a_cut_download_is_continued_by_a_later_call(server, tmp_path):
    target = tmp_path / "file.bin"
    once = DownloadSettings(timeout=60, retries=0, backoff=0.01)
    url = server.put("a", BODY, cut_after=100_000, cut_times=1)
    _refuse_after_first(server, "a")
    with pytest.raises(DownloadError, match=r"answered 503"):
        download(url, target, checksum=SHA, settings=once)
    assert leftovers(tmp_path) == ["file.bin.part", "file.bin.part.json"]
    server.files["a"].statuses = []
    download(url, target, checksum=SHA, settings=once)
    assert target.read_bytes() == BODY
    assert server.requests[-1] == ("a", "bytes=100000-")


def _refuse_after_first(server, path):
    """After the first answer to ``path``, answer 503 until told otherwise."""
    original = server.answer

    def answer(handler):
        original(handler)
        server.files[path].statuses = [503] * 50
        server.answer = original

    server.answer = answer


def test_server_without_ranges_starts_again(server, hasty, tmp_path):
    target = tmp_path / "file.bin"
    download(server.put("a", BODY, cut_after=70_000, cut_times=2, ranges=False), target, checksum=SHA, settings=hasty)
    assert target.read_bytes() == BODY


def test_endless_cuts_without_ranges_give_up(server, hasty, tmp_path):
    url = server.put("a", BODY, cut_after=70_000, ranges=False)
    with pytest.raises(DownloadError, match=r"cut after 70000 of 300000 bytes \(tried 3 times\)"):
        download(url, tmp_path / "file.bin", settings=hasty)
    assert not (tmp_path / "file.bin").exists()


def test_truncated_file_is_found_by_its_checksum(server, hasty, tmp_path):
    url = server.put("a", BODY, cut_after=299_999, cut_is_silent=True)
    with pytest.raises(DownloadError, match="damaged or was changed: its checksum is sha256:"):
        download(url, tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert leftovers(tmp_path) == []


def test_altered_file_is_fetched_twice_then_refused(server, hasty, tmp_path):
    altered = bytes([BODY[0] ^ 1]) + BODY[1:]
    with pytest.raises(DownloadError, match=SHA):
        download(server.put("a", altered), tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert len(server.requests) == 2
    assert leftovers(tmp_path) == []


def test_mirror_is_used_when_the_first_address_fails(server, hasty, tmp_path):
    urls = [server.url("missing"), server.put("bad", BODY[::-1]), server.put("good", BODY)]
    download(urls, tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_part_of_another_file_is_not_continued(server, hasty, tmp_path):
    """A part that was left by an older version: with a checksum it is fetched anew, without one not even tried."""
    for checksum in (SHA, None):
        target = tmp_path / "file.bin"
        (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
        download(server.put("a", BODY), target, checksum=checksum, settings=hasty)
        assert target.read_bytes() == BODY
    assert [asked for _, asked in server.requests] == ["bytes=1000-", None, None]


def test_file_that_changes_between_two_tries(server, tmp_path):
    """The validator of the first answer is sent along, so the server sends the new file from its start."""
    once = DownloadSettings(timeout=60, retries=0, backoff=0.01)
    url = server.put("a", BODY[::-1], cut_after=1000, cut_times=1)
    _refuse_after_first(server, "a")
    with pytest.raises(DownloadError):
        download(url, tmp_path / "file.bin", settings=once)
    server.put("a", BODY)
    download(url, tmp_path / "file.bin", settings=once)
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_whole_part_left_by_a_killed_process_needs_no_network(server, hasty, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY)
    download(server.url("missing"), tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert server.requests == []


def test_part_that_is_too_long_is_thrown_away(server, hasty, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY + b"more")
    download(server.put("a", BODY), tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_wrong_content_range_is_refused(server, hasty, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY[:500])
    with pytest.raises(DownloadError, match="another part than asked for"):
        download(server.put("a", BODY, wrong_range=True), tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert not (tmp_path / "file.bin").exists()


def test_stall_is_noticed_and_resumed(server, hasty, tmp_path):
    url = server.put("a", BODY, stall_after=50_000, stall_times=1)
    download(url, tmp_path / "file.bin", checksum=SHA, settings=replace(hasty, timeout=1.0))
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert server.requests[-1] == ("a", "bytes=50000-")


def test_a_server_that_always_stalls_is_given_up(server, hasty, tmp_path):
    with pytest.raises(DownloadError, match="stalled after 0 bytes"):
        download(server.put("a", BODY, stall_after=0), tmp_path / "file.bin", settings=replace(hasty, timeout=0.5))


def test_passing_faults_are_retried(server, hasty, tmp_path):
    url = server.put("a", BODY, statuses=[503, 429], headers={"Retry-After": "0.01"})
    download(url, tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert len(server.requests) == 3


def test_missing_file_is_not_asked_for_again(server, hasty, tmp_path):
    with pytest.raises(DownloadError, match=r"file\.bin:\n.*answered 404 Not Found"):
        download(server.url("missing"), tmp_path / "file.bin", settings=hasty)
    assert len(server.requests) == 1


def test_status_without_a_reason_phrase(server, hasty, tmp_path):
    """HTTP allows an empty reason."""
    answer = server.plain

    def without_reason(handler, status, headers=None):
        handler.responses = {**handler.responses, status: ("", "")}
        answer(handler, status, headers)

    server.plain = without_reason
    with pytest.raises(DownloadError, match=r"the server answered 404\n"):
        download(server.url("missing"), tmp_path / "file.bin", settings=hasty)


def test_lasting_503_gives_up(server, hasty, tmp_path):
    with pytest.raises(DownloadError, match=r"503 .*tried 3 times"):
        download(server.put("a", BODY, statuses=[503] * 9), tmp_path / "file.bin", settings=hasty)


def test_redirect_is_followed_and_a_circle_is_not(server, hasty, tmp_path):
    server.put("a", BODY)
    download(server.put("b", b"", redirect="/a"), tmp_path / "file.bin", checksum=SHA, settings=hasty)
    assert (tmp_path / "file.bin").read_bytes() == BODY
    with pytest.raises(DownloadError, match="302"):
        download(server.put("c", b"", redirect="/c"), tmp_path / "other.bin", settings=hasty)
    with pytest.raises(DownloadError, match=r"not allowed|302"):
        download(server.put("d", b"", redirect="file:///etc/hostname"), tmp_path / "other.bin", settings=hasty)
    assert leftovers(tmp_path) == ["file.bin"]


def test_no_network(hasty, tmp_path):
    with pytest.raises(DownloadError, match=r"no connection .*\n?.*Check the network"):
        download("http://127.0.0.1:9/file", tmp_path / "file.bin", settings=hasty)
    with pytest.raises(DownloadError, match="only http and https"):
        download("file:///etc/hostname", tmp_path / "file.bin", settings=hasty)


def test_full_disk(server, hasty, small_disk):
    """With an announced size it is refused at once; without one it is noticed when it happens, and cleaned up."""
    with pytest.raises(DownloadError, match=r"disk is full.*needs 300\.0 kB.*TAMIZ_DATA_HOME"):
        download(server.put("a", BODY), small_disk / "file.bin", settings=hasty)
    server.put("b", BODY, cut_after=len(BODY), cut_is_silent=True)
    with pytest.raises(DownloadError, match="disk is full"):
        download(server.url("b"), small_disk / "file.bin", settings=hasty)
    assert leftovers(small_disk) == []


def test_read_only_folder(server, hasty, read_only_disk):
    with pytest.raises(DownloadError, match=r"Read-only file system.*TAMIZ_DATA_HOME"):
        download(server.put("a", BODY[:100]), read_only_disk / "file.bin", settings=hasty)


def test_progress_counts_up_to_the_size(server, hasty, tmp_path):
    seen = []
    url = server.put("a", BODY, cut_after=200_000, cut_times=1)
    download(url, tmp_path / "file.bin", progress=lambda *call: seen.append(call), settings=hasty)
    received = [call[1] for call in seen]
    assert received == sorted(received)
    assert seen[-1] == ("file.bin", len(BODY), len(BODY))
