"""A cache of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from alkahest.cache import settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the cache, which does not exist yet; its size is the default."""
    path = tmp_path / "cache"
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, str(path))
    monkeypatch.delenv(settings.SIZE_VARIABLE, raising=False)
    return path
