"""Devices for this tier: emulated ones that pass for GPUs."""

from __future__ import annotations

import pytest

from alkahest.backends.groebner_gpu import gpu
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
