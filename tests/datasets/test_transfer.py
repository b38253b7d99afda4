"""One connection: what is asked for, and which faults may pass."""

from __future__ import annotations

import urllib.request

import pytest

from tamiz.paper.download import PartialFile, PermanentError, TransientError, _SafeRedirects, transfer

BODY = bytes(range(256)) * 40


@pytest.fixture
def part(tmp_path):
    return PartialFile(tmp_path / "file.part")


def fetch(url, part, checksum=None):
    transfer(url, part, "file", checksum, None, 5.0)


def test_a_cut_connection_is_transient_and_its_bytes_are_kept(server, part):
    url = server.put("a", BODY, cut_after=1000, cut_times=1)
    with pytest.raises(TransientError, match="cut after 1000 of 10240 bytes"):
        fetch(url, part)
    assert part.size() == 1000
    fetch(url, part)
    assert part.path.read_bytes() == BODY
    assert server.requests == [("a", None), ("a", "bytes=1000-")]


def test_a_part_is_continued_only_from_the_address_it_came_from(server, part):
    url = server.put("a", BODY, cut_after=1000, cut_times=1)
    with pytest.raises(TransientError):
        fetch(url, part)
    assert part.validator(url)
    other = server.put("b", BODY[::-1])
    assert part.validator(other) is None
    fetch(other, part)
    assert part.path.read_bytes() == BODY[::-1]
    assert server.requests[-1] == ("b", None)


@pytest.mark.parametrize("note", ["", "[]", "{", "\x00", '{"url": 3}'])
def test_a_damaged_note_is_as_good_as_none(server, part, note):
    part.path.write_bytes(b"x" * 100)
    part.note_path.write_text(note)
    fetch(server.put("a", BODY), part)
    assert part.path.read_bytes() == BODY


def test_a_weak_tag_does_not_identify_a_file(part):
    part.note("u", {"ETag": 'W/"abc"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"})
    assert part.validator("u") == "Mon, 01 Jan 2024 00:00:00 GMT"
    part.note("u", {"ETag": 'W/"abc"'})
    assert part.validator("u") is None


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, PermanentError), (403, PermanentError), (410, PermanentError), (429, TransientError), (503, TransientError)],
)
def test_status_codes(server, part, status, error):
    with pytest.raises(error, match=f"answered {status}"):
        fetch(server.put("a", BODY, statuses=[status]), part)
    assert part.size() == 0


@pytest.mark.parametrize(
    ("header", "wait"), [("7", 7.0), ("-1", 0.0), ("soon", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)]
)
def test_retry_after(server, part, header, wait):
    with pytest.raises(TransientError) as caught:
        fetch(server.put("a", BODY, statuses=[503], headers={"Retry-After": header}), part)
    assert caught.value.wait == wait


def test_a_part_that_the_server_cannot_continue_is_discarded(server, part):
    part.path.write_bytes(BODY[:10])
    with pytest.raises(TransientError, match="could not continue"):
        fetch(server.put("a", BODY, always_416=True), part, checksum="md5:0")
    assert part.size() == 0


def test_redirects_from_https_to_http_are_not_followed():
    request = urllib.request.Request("https://example.org/a")
    redirect = _SafeRedirects().redirect_request
    followed = redirect(request, None, 302, "Found", {}, "https://mirror.example.org/a")
    assert followed.full_url == "https://mirror.example.org/a"
    with pytest.raises(PermanentError, match="from https to the unprotected http://"):
        redirect(request, None, 302, "Found", {}, "http://mirror.example.org/a")
