"""Fixtures of the tier of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alkahest.backends.cpu.jit import compile as kernels
from alkahest.backends.cpu.jit import shared
from alkahest.backends.cpu.jit.options import ACCURACIES
from alkahest.compiled import CompiledFn, compile_expr

Compile = Callable[..., CompiledFn]


@pytest.fixture(params=ACCURACIES)
def accuracy(request: pytest.FixtureRequest) -> str:
    """Each accuracy mode in turn."""
    mode: str = request.param
    return mode


@pytest.fixture
def compiled() -> Compile:
    """``compile_expr`` for code from the first call on."""

    def compile_now(expr: Any, inputs: Any, **choices: Any) -> CompiledFn:
        return compile_expr(expr, inputs, backend="cpu-jit", tier="compiled", **choices)

    return compile_now


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of one's own, on disk and in memory."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(folder))
    monkeypatch.setattr(shared, "_loaded", {})
    kernels.forget()
    yield folder
    kernels.forget()
