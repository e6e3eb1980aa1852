"""Where the cache is, by platform and by the user's wish."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from alkahest import cache
from alkahest.cache import settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of a user who set nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    names = (settings.DIRECTORY_VARIABLE, settings.SIZE_VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", ".cache/alkahest"),
        ("freebsd14", ".cache/alkahest"),
        ("darwin", "Library/Caches/alkahest"),
        ("win32", "AppData/Local/alkahest"),
    ],
)
def test_every_platform_has_its_place(
    home: Path, platform: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert settings.current() == settings.Settings(home / place, 256 * 1024**2)


@pytest.mark.parametrize(
    ("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")]
)
def test_the_platforms_variable_moves_it_unless_it_is_relative(
    home: Path, platform: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(home / "caches"))
    assert settings.current().path == home / "caches" / "alkahest"
    monkeypatch.setenv(variable, "caches")
    assert settings.current().path not in (None, Path("caches/alkahest").absolute())


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("text", "place"), [("{home}/a b", "a b"), ("~/c", "c"), ("d", "d")])
def test_our_variable_names_the_folder_itself(
    home: Path, text: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, text.format(home=home))
    assert settings.current().path == home / place


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("text", ["off", "OFF", " Off "])
def test_off_switches_it_off(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, text)
    assert cache.directory() is None
    assert (cache.status().path, cache.status().wanted) == (None, False)
    key = cache.key({})
    cache.store(key, b"code")
    assert cache.load(key) is None
    assert (cache.entries(), cache.clear()) == ([], (0, 0))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1024**2),
        ("100M", 100 * 1024**2),
        ("100 MiB", 100 * 1024**2),
        ("64kb", 64 * 1024),
        ("1.5G", 3 * 1024**3 // 2),
        ("1t", 1024**4),
        ("12b", 12),
        ("0", 0),
        ("", None),
        ("-1", None),
        ("lots", None),
        ("1e3", None),
        ("M", None),
        ("1 X", None),
        ("9" * 400, None),
    ],
)
def test_sizes_are_written_with_or_without_units(text: str, size: int | None) -> None:
    assert settings.parse_size(text) == size


def test_a_size_that_is_none_switches_the_cache_off_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "lots")
    cache.store(cache.key({}), b"code")
    assert not folder.exists()
    status = cache.status()
    assert (status.path, status.wanted) == (None, True)
    assert status.reason == "ALKAHEST_CACHE_SIZE=lots is no size; write it like 500M or 2G"
    monkeypatch.setenv(settings.SIZE_VARIABLE, "0")
    assert cache.status() == (None, 0, "ALKAHEST_CACHE_SIZE=0", False, 0, 0)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", fail)
    for name in (settings.DIRECTORY_VARIABLE, settings.SIZE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.load(cache.key({})) is None
    assert cache.status().reason.endswith("home directory.; set ALKAHEST_CACHE_DIR")


def test_settings_are_those_of_the_moment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.key({})
    cache.store(key, b"code")
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, f"{folder}{os.sep}other")
    assert cache.load(key) is None
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, str(folder))
    assert cache.load(key) == b"code"
