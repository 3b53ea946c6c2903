"""Downloads that fail: the next address is tried, the error names every cause, and no partial file is kept."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pooch
import pytest

from khot.datasets import load
from khot.errors import DownloadError, KhotError
from tests.datasets.conftest import Answer, Web
from tests.datasets.official import TINY, digest

PATH = "20news_w100.mat"
GOOD = TINY["20newsgroups-w100"].files[PATH]
CHANGED = GOOD[:-1] + bytes([GOOD[-1] ^ 1])
CLOSED = "http://127.0.0.1:1/"  # no server listens there

FAILURES: dict[str, tuple[Answer | None, str]] = {
    "missing": (None, "404"),
    "changed": (Answer(CHANGED), digest("sha256", CHANGED)[7:]),
    "short": (Answer(GOOD[:-5]), digest("sha256", GOOD[:-5])[7:]),
    "interrupted": (Answer(GOOD[:-5], promised=len(GOOD)), "IncompleteRead"),
    "empty": (Answer(b""), "its sha256 must be"),
}
each_failure = pytest.mark.parametrize(("answer", "reason"), FAILURES.values(), ids=FAILURES)


def files_in(cache: Path) -> list[Path]:
    return [place for place in cache.rglob("*") if place.is_file()]


def two_addresses(sources: dict, first: str, second: str) -> None:
    sources[PATH] = replace(sources[PATH], urls=(first, second))


@each_failure
def test_nothing_is_kept_and_the_error_says_why(answer: Answer | None, reason: str, web: Web, cache: Path):
    if answer:
        web.answers[PATH] = answer
    with pytest.raises(DownloadError) as raised:
        load("20newsgroups-w100")
    message = str(raised.value)
    assert isinstance(raised.value, KhotError)
    assert message.startswith(f"{PATH} could not be downloaded ({web.url}{PATH}: ")
    assert reason in message
    assert f"set the environment variable KHOT_DATA to a folder that holds it as {PATH}" in message
    assert "\n" not in message
    if "sha256" in message:
        assert digest("sha256", GOOD)[7:] in message
    assert files_in(cache) == []
    web.answers[PATH] = Answer(GOOD)
    assert len(load("20newsgroups-w100").train) == 7


@each_failure
def test_the_next_address_is_tried(answer: Answer | None, reason: str, web: Web, sources: dict):
    two_addresses(sources, f"{web.url}first", f"{web.url}second")
    if answer:
        web.answers["first"] = answer
    web.answers["second"] = Answer(GOOD)
    assert load("20newsgroups-w100").files[0].read_bytes() == GOOD
    assert web.asked == ["first", "second"]


def test_no_network(sources: dict, cache: Path):
    two_addresses(sources, f"{CLOSED}first", f"{CLOSED}second")
    with pytest.raises(DownloadError, match="KHOT_DATA") as raised:
        load("20newsgroups-w100")
    message = str(raised.value)
    assert all(f"{CLOSED}{name}: " in message for name in ("first", "second"))
    assert message.count("refused") == 2
    assert "Max retries" not in message  # the wording of urllib3, which does not help
    assert files_in(cache) == []


@pytest.mark.parametrize("name", ["20newsgroups-w100", "cifar10"])
def test_ctrl_c_leaves_nothing(name: str, web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch):
    def stop(self: object, url: str, place: str, pooch: object) -> None:
        Path(place).write_bytes(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        load(name)
    assert files_in(cache) == []


def test_a_folder_without_the_file_does_not_stop_the_download(folder: Path, cache: Path, web: Web):
    web.answers[PATH] = Answer(GOOD)
    assert load("20newsgroups-w100").files == (cache / PATH,)
    assert list(folder.iterdir()) == []


def test_what_is_there_is_not_downloaded(cache: Path, put: Callable, web: Web):
    files = TINY["mnist"].files
    for path in list(files)[:3]:
        put(cache, path, files[path])
    missing = list(files)[3]
    web.answers[missing] = Answer(files[missing])
    load("mnist")
    assert web.asked == [missing]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_progress_bar_only_on_a_terminal(
    terminal: bool, web: Web, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    web.answers[PATH] = Answer(GOOD)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    load("20newsgroups-w100")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("100%" in printed.err) == terminal
    assert bool(printed.err) == terminal
