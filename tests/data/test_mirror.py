"""The downloader against a local server that can misbehave in every way that matters."""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from src.data.mirror import FILES, MIRRORS, fetch_mirror
from src.files import sha256

CONTENT = {
    "dev_20200228.csv": "id,query1,query2,label\r\n0,甲,乙,1\r\n".encode() * 500,
    "train_20200228 (1).csv": "id,query1,query2,label\r\n0,丙,丁,0\r\n".encode() * 2000,
}
LOCAL = {
    name: (remote, hashlib.sha256(CONTENT[remote]).hexdigest())
    for name, (remote, _) in FILES.items()
}


class Mirror:
    """A server whose behaviour is the first part of the path; `events` is what happened."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.release = threading.Event()
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, behaviour, name = unquote(self.path).split("/", 2)
                mirror.events.append(f"request {behaviour} {name}")
                body = CONTENT[name]
                if behaviour == "silent":
                    mirror.release.wait(30)
                    return
                if behaviour == "broken" or (behaviour == "devonly" and "train" in name):
                    self.send_error(503)
                    return
                self.send_response(200)
                if behaviour == "chunks":
                    # A chunk is announced whose second half never comes.
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"%x\r\n" % len(body) + body[: len(body) // 2])
                    return
                if behaviour == "wrong":
                    body = body.replace(b"0", b"9")
                if behaviour != "unsized":
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                half = behaviour in ("half", "unsized")
                self.wfile.write(body[: len(body) // 2] if half else body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, behaviour: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{behaviour}"

    def fetch(self, target: Path, *mirrors: str) -> bool:
        return fetch_mirror(
            target,
            mirrors,
            echo=lambda line: self.events.append(f"echo {line}"),
            timeout=(1.0, 0.3),
            files=LOCAL,
        )

    def requests(self) -> list[str]:
        return [event for event in self.events if event.startswith("request")]


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Mirror()
    yield server
    server.release.set()
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def dead() -> str:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/data"


def assert_whole(target: Path) -> None:
    assert sorted(os.listdir(target)) == ["dev.csv", "train.csv"]
    for name, (remote, _) in LOCAL.items():
        assert (target / name).read_bytes() == CONTENT[remote]


def test_right_files_arrive_and_each_address_is_printed_before_it_is_asked(
    mirror: Mirror, tmp_path: Path
) -> None:
    target = tmp_path / "raw"
    assert mirror.fetch(target, mirror.url("good"))
    assert_whole(target)
    good = mirror.url("good")
    assert mirror.events == [
        f"echo Asking {good}/dev_20200228.csv",
        "request good dev_20200228.csv",
        f"echo Asking {good}/train_20200228%20%281%29.csv",
        "request good train_20200228 (1).csv",
    ]


FAULTS = ["wrong", "half", "unsized", "chunks", "silent", "broken"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_mirror_leaves_nothing_behind(mirror: Mirror, tmp_path: Path, fault: str) -> None:
    target = tmp_path / "raw"
    target.mkdir()
    started = time.monotonic()
    assert not mirror.fetch(target, mirror.url(fault))
    assert time.monotonic() - started < 3
    assert os.listdir(target) == []
    assert mirror.requests() == [f"request {fault} dev_20200228.csv"]
    assert mirror.events[-1].startswith("echo   failed: ")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_mirror_is_asked_after_a_faulty_one(
    mirror: Mirror, tmp_path: Path, fault: str
) -> None:
    assert mirror.fetch(tmp_path, mirror.url(fault), mirror.url("good"))
    assert_whole(tmp_path)


def test_a_dead_server_is_passed_over(mirror: Mirror, tmp_path: Path, dead: str) -> None:
    assert not mirror.fetch(tmp_path, dead)
    assert os.listdir(tmp_path) == []
    assert mirror.fetch(tmp_path, dead, mirror.url("good"))
    assert_whole(tmp_path)


def test_an_unknown_host_and_no_mirror_at_all_are_no_exceptions(
    mirror: Mirror, tmp_path: Path
) -> None:
    assert not mirror.fetch(tmp_path, "http://mirror.invalid/data", "http://[::1/data")
    assert not mirror.fetch(tmp_path)
    assert os.listdir(tmp_path) == []


def test_one_file_of_two_is_not_left_alone(mirror: Mirror, tmp_path: Path) -> None:
    assert not mirror.fetch(tmp_path, mirror.url("devonly"))
    assert os.listdir(tmp_path) == []
    # Taken from two mirrors, each file is asked for only where it is still missing.
    mirror.events.clear()
    assert mirror.fetch(tmp_path, mirror.url("devonly"), mirror.url("good"))
    assert_whole(tmp_path)
    assert mirror.requests() == [
        "request devonly dev_20200228.csv",
        "request devonly train_20200228 (1).csv",
        "request good train_20200228 (1).csv",
    ]


def test_files_that_are_there_are_kept(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_bytes(CONTENT["dev_20200228.csv"])
    assert mirror.fetch(tmp_path, mirror.url("good"))
    assert_whole(tmp_path)
    assert mirror.requests() == ["request good train_20200228 (1).csv"]

    (tmp_path / "train.csv").unlink()
    (tmp_path / "dev.csv").write_text("my own")
    assert not mirror.fetch(tmp_path, mirror.url("good"))
    assert os.listdir(tmp_path) == ["dev.csv"]
    assert (tmp_path / "dev.csv").read_text() == "my own"


def test_the_public_addresses_are_https() -> None:
    assert [url.split("/")[:3] for url in MIRRORS] == [
        ["https:", "", "raw.githubusercontent.com"],
        ["https:", "", "cdn.jsdelivr.net"],
    ]


def test_the_hashes_are_those_of_the_competition_files(competition: Path) -> None:
    for name, (_, checksum) in FILES.items():
        assert sha256(competition / "tianchi" / name) == checksum
