"""The kernels of the nvptx backend, run on the emulated device, pass the kit of every backend."""

from functools import cache

from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.program import Program
from alkahest.testing import BackendConformance

emulated = cache(EmulatedEvaluator)


class TestEmulatedDevice(BackendConformance):
    backend = "nvptx"
    plugin_module = "alkahest.backends.nvptx.plugin"

    def evaluator(self, program: Program) -> EmulatedEvaluator:
        return emulated(program)
