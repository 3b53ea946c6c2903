"""A web server on 127.0.0.1, an empty cache, and a table of sources that refers to these two only."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from khot.datasets import _files, _sources
from tests.datasets.official import TINY, digest


@dataclass
class Answer:
    body: bytes
    promised: int | None = None  # the Content-Length, if it differs from that of the body


class Web:
    """Serves `answers` by path, and records the requested paths."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.removeprefix("/")
                web.asked.append(path)
                answer = web.answers.get(path)
                if answer is None:
                    return self.send_error(404)
                self.send_response(200)
                length = len(answer.body) if answer.promised is None else answer.promised
                self.send_header("Content-Length", str(length))
                if path.endswith(".gz") and "gzip" in self.headers["Accept-Encoding"]:
                    self.send_header("Content-Encoding", "gzip")  # some servers do so, and clients then unpack the file
                self.end_headers()
                self.wfile.write(answer.body)
                return None

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.server.shutdown()
    web.server.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, set as KHOT_DATA."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("KHOT_DATA", str(folder))
    return folder


@pytest.fixture(autouse=True)
def sources(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, _sources.Source]:
    """The table of sources, with the checksums and rows of the tiny files and with addresses on the test server."""
    files = {path: replace(s, urls=(web.url + path,) if s.urls else ()) for path, s in _sources.FILES.items()}
    for tiny in TINY.values():
        for path, content in (tiny.files | tiny.published).items():
            checksum = files[path].checksum
            files[path] = replace(
                files[path], checksum=checksum and digest(checksum, content), rows=tiny.rows.get(path, 0)
            )
    monkeypatch.setattr(_sources, "FILES", files)
    monkeypatch.setattr(_files, "cache", lambda: cache)
    monkeypatch.delenv("KHOT_DATA", raising=False)
    return files


@pytest.fixture
def put(sources: dict[str, _sources.Source]) -> Callable[..., Path]:
    """Write a file into a data folder; with `right=True` the table of sources expects its checksum."""

    def put(folder: Path, path: str, content: bytes, right: bool = False) -> Path:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        checksum = sources[path].checksum
        if right and checksum:
            sources[path] = replace(sources[path], checksum=digest(checksum, content))
        return place

    return put
