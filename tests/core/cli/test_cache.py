"""``alkahest cache``, and the doctor's row about it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alkahest import cache
from alkahest.testing.plugins import isolated_plugins

Run = Callable[..., Any]
KEY = cache.key({})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the cache, which does not exist yet."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(path))
    monkeypatch.setenv("ALKAHEST_CACHE_SIZE", "1.5M")
    monkeypatch.setenv("COLUMNS", "300")
    return path


def test_it_shows_where_the_cache_is_and_how_full(run: Run, folder: Path) -> None:
    cache.store(KEY, b"x" * 100_000, label="nvptx sm_90")
    size = cache.status().size
    result = run("cache")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"cache of generated code\n  path     {folder}\n  entries  1\n"
        "  size     97.7 KiB of at most 1.5 MiB\n"
    )
    assert json.loads(run("cache", "--json").out) == {
        "path": str(folder),
        "reason": "",
        "entries": 1,
        "bytes": size,
        "limit": 3 * 2**19,
    }


def test_it_lists_entries_without_control_characters(run: Run, folder: Path) -> None:
    assert run("cache", "--list").out == "  none\n"
    cache.store(KEY, b"code", label="nvptx \x1b[2J")
    os.utime(folder / f"{KEY}.code", (0, 1000.0))
    line = run("cache", "--list").out
    assert line.startswith(f"  {KEY[:12]}  19")
    assert line.endswith("bytes  nvptx ?[2J\n")
    (entry,) = json.loads(run("cache", "--list", "--json").out)
    assert (entry["key"], entry["used"], entry["label"]) == (KEY, 1000.0, "nvptx \x1b[2J")


def test_it_clears_the_cache(run: Run) -> None:
    cache.store(KEY, b"code")
    assert run("cache", "--clear").out == "1 entry removed\n"
    assert cache.load(KEY) is None
    assert json.loads(run("cache", "--clear", "--json").out) == {"removed": 0, "kept": 0}


def test_what_cannot_be_cleared_is_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "clear", lambda: (3, 2))
    result = run("cache", "--clear")
    assert (result.code, result.out) == (1, "3 entries removed\n")
    assert result.err.startswith("alkahest: error: 2 entries could not be removed from ")


def test_listing_and_clearing_at_once_is_a_usage_error(run: Run) -> None:
    result = run("cache", "--list", "--clear")
    assert (result.code, result.out) == (2, "")


def test_a_cache_that_is_off_is_shown_as_that(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    assert run("cache").out == "no cache: ALKAHEST_CACHE_DIR=off\n"
    assert json.loads(run("cache", "--json").out)["path"] is None
    cleared = run("cache", "--clear")
    assert (cleared.code, cleared.out) == (0, "0 entries removed\n")


def test_a_refused_folder_is_explained_and_not_cleared(run: Run, folder: Path) -> None:
    cache.store(KEY, b"code")
    folder.chmod(0o777)
    result = run("cache")
    reason = f"{folder} can be written by others (mode 0777); chmod go-w it"
    assert (result.code, result.out) == (0, f"no cache: {reason}\n")
    cleared = run("cache", "--clear")
    assert (cleared.code, cleared.out) == (1, "")
    assert cleared.err.startswith(f"alkahest: error: there is no cache to clear: {reason}\nhint: ")


def test_the_doctor_has_a_row_about_it(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row() -> dict[str, Any]:
        with isolated_plugins():
            checks = json.loads(run("doctor", "--json").out)["checks"]
        (found,) = [check for check in checks if check["name"] == "cache"]
        return dict(found)

    cache.store(KEY, b"code")
    size = cache.status().size
    assert row() == {
        "plugin": "",
        "name": "cache",
        "ok": True,
        "detail": f"{folder}: 1 entry, {size} bytes of at most 1.5 MiB",
        "remedy": "",
    }
    folder.chmod(0o777)
    assert (row()["ok"], row()["remedy"][:6]) == (False, "Repair")
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    assert (row()["ok"], row()["detail"]) == (None, "no cache: ALKAHEST_CACHE_DIR=off")
