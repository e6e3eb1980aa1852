"""The kit of every backend, on the device."""

from functools import cache

from alkahest._plugins import calls
from alkahest.plugin import Evaluator
from alkahest.program import Program
from alkahest.testing import BackendConformance


@cache
def compiled(program: Program) -> Evaluator:
    return calls.make_evaluator("nvptx", calls.codegen("nvptx", program, None, {}), None)


class TestNvptx(BackendConformance):
    backend = "nvptx"
    plugin_module = "alkahest.backends.nvptx.plugin"
    samples = 128

    def evaluator(self, program: Program) -> Evaluator:
        return compiled(program)
