"""The hardware tier: every test here runs kernels on a real device.

``ALKAHEST_GPU_TESTS=1`` promises the device: its absence is then an error and never a skip.
"""

from __future__ import annotations

from typing import Any

import pytest
from gpuarrays import cupy_arrays, torch_arrays


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this tier."""
    config.addinivalue_line("markers", "huge: needs tens of gigabytes; too slow under a sanitizer")
    config.addinivalue_line("markers", "sanitize: the selection that runs under the sanitizers")


@pytest.fixture(autouse=True)
def devices(gpu: int) -> int:
    """Number of usable devices, at least 1."""
    return gpu


@pytest.fixture
def cupy() -> Any:
    """CuPy, or a skip."""
    return cupy_arrays().library


@pytest.fixture
def torch() -> Any:
    """PyTorch, or a skip."""
    return torch_arrays().library
