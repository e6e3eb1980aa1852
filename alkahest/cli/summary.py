"""``python -m alkahest`` alone: a proof that it works here, then what is reachable."""

from __future__ import annotations

import argparse

import alkahest
from alkahest.cli.capabilities import describe
from alkahest.errors import CodegenError, install

_TEXT = "exp(-x**2/2)*cos(3*x)"
_POINTS = [0.0, 0.25, 0.5, 1.0, 2.0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The summary takes no arguments."""


def run(options: argparse.Namespace) -> int:
    """Evaluate a few points on the best backend here and show the capabilities."""
    pool = alkahest.ExprPool()
    x = pool.symbol("x")
    try:
        function = alkahest.compile_expr(alkahest.parse(_TEXT, pool, {"x": x}), [x])
    except CodegenError as error:
        if error.code != "E-JIT-004":
            raise
        print(f"No backend evaluates expressions here: {error.message}")
        print(f"To get one: {install('cpu')}")
    else:
        values = function.call_batch([_POINTS])
        print(f"f(x) = {_TEXT}, evaluated by backend {function.backend!r}:")
        for point, value in zip(_POINTS, values, strict=True):
            print(f"  f({point}) = {value!r}")
    print()
    print(describe(alkahest.capabilities()))
    print("\nMore: alkahest --help")
    return 0
