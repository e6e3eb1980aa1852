"""Threads and processes share one cache without locks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import alkahest
from alkahest import cache
from alkahest.cache import settings


def key(number: int) -> str:
    return cache.key({"number": str(number)})


def test_threads_that_store_load_and_clear_see_whole_entries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "40K")
    wrong: list[bytes] = []

    def work(seed: int) -> None:
        for step in range(60):
            number = (seed + step) % 7
            cache.store(key(number), bytes([number]) * (1000 + seed))
            data = cache.load(key(number))
            if data is not None and set(data) != {number}:
                wrong.append(data)
            if step % 20 == 19:
                cache.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all(path.suffix == ".code" for path in folder.iterdir())


def test_processes_share_one_cache(folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from alkahest import cache\n"
        "for step in range(150):\n"
        "    key = cache.key({'number': str(step % 5)})\n"
        "    cache.store(key, bytes([step % 5]) * (1 + 5000 * int(sys.argv[2])))\n"
        "    assert set(cache.load(key)) == {step % 5}\n"
    )
    root = str(Path(alkahest.__file__).parents[1])
    children = [subprocess.Popen([sys.executable, "-c", code, root, str(n)]) for n in (1, 2)]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    assert all(set(cache.load(key(number)) or b"") == {number} for number in range(5))
    assert cache.status().entries == 5
