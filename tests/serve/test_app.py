"""The routes over plain HTTP: who is answered, what is taken, and what is told when something is wrong."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

import tamiz
from tamiz.serve.app import HEADERS


@pytest.fixture
def ask(server):
    """Sends a request and gives (status, headers, body)."""

    def send(path, method="GET", body=None, token=None, **headers):
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
        prefix = address.path if token is None else f"/{token}/"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, prefix + path, body=body, headers=sent)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    return send


@pytest.fixture
def uploaded(ask, small_file):
    status, _, body = ask("tables", "POST", small_file.read_bytes(), X_File_Name=quote("my table.csv"))
    assert status == 200
    return json.loads(body)


def events_of(body):
    found = []
    for block in body.decode().strip().split("\n\n"):
        kind, data = block.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("token", ["", "wrong", "ünknown"])
def test_without_the_token_nothing_is_answered(ask, token):
    for path in ("", "page.js", "start", "tables/first", "fit", "no-such-page"):
        status, headers, body = ask(path, token=quote(token))
        assert status == 403
        assert b"tamiz serve" in body
        assert headers["content-security-policy"] == HEADERS["content-security-policy"]


def test_other_names_and_sites_are_not_answered(ask, server):
    for host in ("example.com", "127.0.0.1", "127.0.0.1:1", "localhost.example.com:80", ""):
        assert ask("", Host=host)[0] == 403
    for origin in ("http://example.com", "null", f"https://127.0.0.1:{server.port}"):
        assert ask("start", Origin=origin)[0] == 403
    assert ask("", Host=f"localhost:{server.port}")[0] == 200
    assert ask("start", Origin=f"http://127.0.0.1:{server.port}")[0] == 200


def test_odd_request_lines_are_refused_without_a_traceback(server, capfd):
    for line in ("OPTIONS *", "GET x", "CONNECT h:443", "GET ", "BREW /"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            assert connection.recv(100).split()[1] in (b"400", b"403", b"405")
    assert "Traceback" not in capfd.readouterr().err


def test_every_answer_has_the_headers(ask):
    for path in ("", "page.css", "page.js", "start", "no-such-page"):
        headers = {name.lower(): value for name, value in ask(path)[1].items()}
        assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert "default-src 'none'" in HEADERS["content-security-policy"]


def test_files_of_the_machine_are_not_readable(ask):
    for path in (
        *("../../../../etc/passwd", "..%2f..%2fetc/passwd", "tables/..%2f..%2fetc%2fpasswd", "page/page.html"),
    ):
        status, _, body = ask(path)
        assert status in (403, 404, 422)
        assert b"root:" not in body


def test_a_file_name_does_not_leave_the_folder(ask, server, small_file, tmp_path):
    name = f"../../../..{tmp_path}/planted.csv"
    status, _, body = ask("tables", "POST", small_file.read_bytes(), X_File_Name=quote(name))
    assert status == 200
    assert json.loads(body)["name"] == "planted.csv"
    assert list(tmp_path.iterdir()) == []


def test_a_file_above_the_limit_is_not_stored(ask, server):
    folder = Path(server.app.tables.folder)
    before = len(list(folder.iterdir()))
    status, _, body = ask("tables", "POST", b"1,2\n" * 5_000_001, X_File_Name="large.csv")
    assert status == 422
    assert "larger than 20 MB" in json.loads(body)["error"]
    assert len(list(folder.iterdir())) == before


def test_a_broken_file_is_removed(ask, server):
    folder = Path(server.app.tables.folder)
    before = len(list(folder.iterdir()))
    broken = [
        *(("empty.csv", b""), ("blank.csv", b"\n\n\n"), ("header.csv", b"a,b,y\n"), ("zeros.csv", bytes(5000))),
        *(("binary.csv", bytes(range(256)) * 4), ("zip.npz", b"PK nonsense"), ("short.parquet", b"PAR1")),
        *(("odd.xlsx", b"\0\1"), ("odd.arff", b"@data"), ("odd.arrow", b"ARROW1"), ("packed.csv.gz", b"\x1f\x8b odd")),
        *(("noending", b"\x89PNG"), ("CON:/?*", b"\0")),
    ]
    for name, content in broken:
        status, _, body = ask("tables", "POST", content, X_File_Name=quote(name))
        message = json.loads(body)["error"]
        assert status == 422
        assert message
        assert str(folder) not in message
        assert "Traceback" not in message
    assert len(list(folder.iterdir())) == before


def test_the_parts_of_a_fit_are_streamed_in_order(ask, uploaded):
    wish = {"page": "p", "table": uploaded["table"], "target": "ill", "m": 2}
    status, headers, body = ask("fit", "POST", json.dumps(wish))
    events = [event for event in events_of(body) if event[0] != "progress"]
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert [kind for kind, _ in events] == ["fit", "heat", "score", "curve", "done", "end"]
    assert {one["name"] for one in events[0][1]["kept"]} == {"gene 2", "gene 5"}


def test_a_wrong_request_is_answered_with_a_message(ask, uploaded, small_file):
    wish = {"page": "p", "table": uploaded["table"], "target": "ill", "m": 2}
    wrong = [
        ({"m": 0}, "whole number"),
        ({"m": True}, "whole number"),
        ({"network": "forest"}, "must be one of"),
        ({"keep": "gene 1"}, "must be names"),
        ({"target": 3}, "must be names"),
        ({"table": "nothing"}, "Open the file again"),
        ({"table": str(small_file)}, "Open the file again"),  # a table cannot be named by its path
    ]
    bodies = [(json.dumps({**wish, **change}), words) for change, words in wrong]
    nonsense = (b"", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000)
    for body, words in [*bodies, *((body, "not understood") for body in nonsense)]:
        status, _, answer = ask("fit", "POST", body)
        assert status == 422
        assert words in json.loads(answer)["error"]
    status, _, body = ask("tables", "POST", b"a,b", X_Reading="[" * 20_000)
    assert (status, json.loads(body)["error"]) == (422, "The request is not understood.")
    # What the table cannot fulfil is found in the fit.
    for change, words in (({"target": "sick"}, "no target 'sick'"), ({"keep": ["nobody"]}, "'nobody'")):
        events = events_of(ask("fit", "POST", json.dumps({**wish, **change}))[2])
        assert [kind for kind, _ in events] == ["problem", "end"]
        assert words in events[0][1]["message"]


def test_a_page_that_goes_away_ends_its_fit(server, uploaded):
    """A network of many steps is left after its first bytes; nothing keeps running."""
    address = urlsplit(server.url)
    wish = {"page": "gone", "table": uploaded["table"], "target": "ill", "m": 6, "network": "linear"}
    for _ in range(3):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
        connection.request("POST", address.path + "fit", body=json.dumps(wish))
        connection.getresponse()
        connection.close()
    assert server.app.jobs.wait(300)


def test_fifty_wishes_of_one_page_leave_no_fit_running(ask, server, uploaded):
    kinds = []

    def one(m):
        wish = {"page": "many", "table": uploaded["table"], "target": "ill", "m": m}
        kinds.append([kind for kind, _ in events_of(ask("fit", "POST", json.dumps(wish))[2])])

    threads = []
    for i in range(50):
        threads.append(threading.Thread(target=one, args=(1 + i % 12,)))
        threads[-1].start()
        time.sleep(0.01)
    for thread in threads:
        thread.join(300)
    assert server.app.jobs.wait(300)
    assert len(kinds) == 50
    assert all(found[-1] == "end" for found in kinds)
    complete = [found for found in kinds if "done" in found]
    assert 1 <= len(complete) < 50


GERMAN = "Messung vom Montag\ngen;masse;ill\n" + "".join(
    f"{i % 7},5;{i % 2},25;{'ja' if i % 2 else 'nein'}\n" for i in range(40)
)


def test_a_file_is_read_as_the_page_says(ask):
    """With the upload where it cannot be read otherwise, and again for a table that is open."""
    reading = {"delimiter": ";", "decimal": ",", "skip_rows": 1, "header": True, "encoding": "latin1"}
    sent = quote(json.dumps({**reading, "missing": "nein"}))
    found = json.loads(ask("tables", "POST", GERMAN.encode(), X_File_Name="g.csv", X_Reading=sent)[2])
    assert (found["columns"], found["rows"]) == (["gen", "masse", "ill"], 40)
    assert found["reading"] == {**reading, "missing": "nein", "na_values": ["nein"]}
    status, _, body = ask(f"tables/{found['table']}/reading", "POST", json.dumps(reading))
    again = json.loads(body)
    assert (status, again["table"], again["reading"]["missing"], again["target"]) == (200, found["table"], "", "ill")
    wish = {"page": "p", "table": found["table"], "target": "ill", "m": 1}
    events = [event for event in events_of(ask("fit", "POST", json.dumps(wish))[2]) if event[0] == "fit"]
    assert [one["name"] for one in events[0][1]["kept"]] == ["masse"]
    code = json.loads(ask("code", "POST", json.dumps(wish))[2])["code"]
    for words in ("'g.csv',", "target='ill'", "encoding='latin1'", "delimiter=';'", "decimal=','", "skip_rows=1"):
        assert words in code


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ({"delimiter": "xx"}, "one character"),
        ({"decimal": ""}, "a point or a comma"),
        ({"skip_rows": -1}, "number of lines"),
        ({"skip_rows": 1000}, ""),
        ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ({"header": 3}, "not understood"),
        ([], "not understood"),
    ],
)
def test_a_wrong_way_of_reading_is_answered_with_a_message_and_the_table_stays(ask, uploaded, reading, words):
    status, _, body = ask(f"tables/{uploaded['table']}/reading", "POST", json.dumps(reading))
    assert status == 422
    assert words in json.loads(body)["error"]
    assert json.loads(ask(f"tables/{uploaded['table']}")[2])["columns"] == uploaded["columns"]


def test_a_page_that_goes_away_ends_its_export(server, ask, csv_of, monkeypatch):
    """The report of a wide table takes seconds; its page is closed after a moment."""
    ended = []

    def select(*arguments, **options):
        try:
            return tamiz.select(*arguments, **options)
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    monkeypatch.setattr("tamiz.serve.app.select", select)
    path = csv_of(200, 2000, "wide.csv")
    table = json.loads(ask("tables", "POST", path.read_bytes(), X_File_Name="wide.csv")[2])
    wish = {"page": "gone", "table": table["table"], "target": "ill", "m": 40}
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("POST", address.path + "report", body=json.dumps(wish))
    while server.app.jobs.wait(0):  # until it has begun
        time.sleep(0.01)
    connection.close()
    assert server.app.jobs.wait(300)
    assert ended == ["JobCancelled"]
