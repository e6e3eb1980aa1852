"""Devices for this tier: emulated ones that pass for GPUs, and kernels compiled for the host."""

from __future__ import annotations

import copy

import pytest
from hostkernels import HostKernels

from alkahest.backends.groebner_gpu import compiling, gpu, reducer
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice


@pytest.fixture
def pretend(monkeypatch):
    """Make emulated devices, which then count as GPUs, the ones that are here."""

    def install(*devices: EmulatedDevice):
        for ordinal, device in enumerate(devices):
            device.ordinal, device.is_gpu = ordinal, True
        monkeypatch.setattr(gpu, "open_all", lambda: list(devices))
        monkeypatch.setattr(gpu, "open_gpu", lambda ordinal: devices[ordinal])
        return devices

    return install


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The kernels for a group, as an emulated device launches them; files compile when needed."""
    made: dict[tuple[str, int], HostKernels] = {}

    def kernels_of(file, group):
        if (file, group) not in made:
            made[file, group] = HostKernels(
                compiling.FOLDER / file,
                compiling.SOURCES[file],
                tmp_path_factory.mktemp("kernels"),
                group,
            )
        return made[file, group]

    def get(group, *, backward=False):
        def launch(kernel, *rest):
            kernels = copy.copy(kernels_of(compiling.FILE_OF[kernel], group))
            kernels.backward = backward
            kernels(kernel, *rest)

        return launch

    return get


@pytest.fixture(autouse=True)
def every_matrix_is_large(monkeypatch):
    """Systems that a twin computes in no time would be left to the processor."""
    monkeypatch.setattr(reducer, "LEAST_PRODUCTS", 0)
