"""The kernels of the nvptx backend, run on the emulated device, pass the kit of every backend."""

from functools import cache

from nvptxmodes import Promises

from alkahest.backends.nvptx.accuracy import FAST, STRICT
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.program import Program
from alkahest.testing import AccuracyConformance, BackendConformance

emulated = cache(EmulatedEvaluator)


class Emulated(Promises):
    """Programs run on the emulated device."""

    backend = "nvptx"
    plugin_module = "alkahest.backends.nvptx.plugin"
    needs_modules = ("llvmlite",)

    def evaluator(self, program: Program) -> EmulatedEvaluator:
        return emulated(program, mode=self.mode)


class TestEmulatedDevice(Emulated, BackendConformance):
    """The default mode."""


class TestEmulatedDeviceWhenStrict(Emulated, AccuracyConformance):
    mode = STRICT


class TestEmulatedDeviceWhenFast(Emulated, AccuracyConformance):
    mode = FAST
