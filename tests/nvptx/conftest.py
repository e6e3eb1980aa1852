"""Processes that meet a CUDA driver without a GPU; see :mod:`fakedriver`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakedriver import COMPILER, FakeGpuChild, build
from hostbatches import THREE

StartChild = Callable[..., FakeGpuChild]


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the fake ``libcuda.so.1``; needs a C compiler."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"no C compiler {COMPILER!r} to build the fake driver with")
    return build(tmp_path_factory.mktemp("fake-driver"))


@pytest.fixture
def child(fake_driver: Path, tmp_path: Path) -> StartChild:
    """Starts a process of its own, with the fake and settings of the test's choice."""

    def start(drivers: Path = fake_driver, **settings: str) -> FakeGpuChild:
        return FakeGpuChild(drivers, tmp_path, **settings)

    return start


@pytest.fixture(scope="session")
def shared_child(
    fake_driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FakeGpuChild]:
    """One process with two healthy devices, of compute capability 9.0 and 7.5, for all tests."""
    folder = tmp_path_factory.mktemp("two-gpus")
    with FakeGpuChild(
        fake_driver, folder, FAKE_CUDA_COUNT="2", FAKE_CUDA_CAPABILITY="90,75"
    ) as process:
        yield process


@pytest.fixture(scope="session")
def unusable(fake_driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeGpuChild]:
    """One process whose driver never starts; a refusal is asked for anew by every call."""
    folder = tmp_path_factory.mktemp("unusable")
    with FakeGpuChild(fake_driver, folder, FAKE_CUDA_INIT="3") as process:
        yield process


@pytest.fixture
def two_gpus(shared_child: FakeGpuChild) -> FakeGpuChild:
    """The shared process, with an empty log of calls."""
    shared_child.calls()
    return shared_child


@pytest.fixture(scope="session")
def three_threads_child(
    fake_driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FakeGpuChild]:
    """One process with one device and three copy threads, for all tests."""
    with FakeGpuChild(fake_driver, tmp_path_factory.mktemp("three-threads"), **THREE) as process:
        yield process


@pytest.fixture
def three_threads(three_threads_child: FakeGpuChild) -> FakeGpuChild:
    """That process, with an empty log of calls."""
    three_threads_child.calls()
    return three_threads_child
