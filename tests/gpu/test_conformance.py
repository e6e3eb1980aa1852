"""The kit of every backend, on the device."""

from functools import cache

from nvptxmodes import Promises

from alkahest._plugins import calls
from alkahest.backends.nvptx.accuracy import FAST, STRICT
from alkahest.plugin import Evaluator
from alkahest.program import Program
from alkahest.testing import AccuracyConformance, BackendConformance


@cache
def compiled(program: Program, mode: str) -> Evaluator:
    artifact = calls.codegen("nvptx", program, None, {"accuracy": mode})
    return calls.make_evaluator("nvptx", artifact, None)


class OnTheDevice(Promises):
    """Programs are compiled once for all tests."""

    backend = "nvptx"
    plugin_module = "alkahest.backends.nvptx.plugin"
    samples = 128

    def evaluator(self, program: Program) -> Evaluator:
        return compiled(program, self.mode)


class TestNvptx(OnTheDevice, BackendConformance):
    """The default mode."""


class TestNvptxWhenStrict(OnTheDevice, AccuracyConformance):
    mode = STRICT


class TestNvptxWhenFast(OnTheDevice, AccuracyConformance):
    mode = FAST
