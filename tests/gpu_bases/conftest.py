"""The hardware tier of Gröbner bases: every test here runs kernels on a real device.

``ALKAHEST_GPU_TESTS=1`` promises the device: its absence is then an error and never a skip.
"""

from __future__ import annotations

import pytest

from alkahest.backends.groebner_gpu.gpu import Gpu, open_gpu


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this tier."""
    config.addinivalue_line("markers", "sanitize: the selection that runs under the sanitizers")


@pytest.fixture(autouse=True)
def devices(gpu: int) -> int:
    """Number of usable devices, at least 1."""
    return gpu


@pytest.fixture
def device(devices: int) -> Gpu:
    """The first device."""
    return open_gpu(0)
