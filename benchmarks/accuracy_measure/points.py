"""Where an operation is measured: strata of its domain, drawn at random, and edges.

A *stratum* is one way of drawing operands, such as ``uniform on [-1, 1]`` or ``near a multiple of
pi/2``. Every operation also has all of the format's numbers, drawn by their bits, so that huge and
subnormal operands are as frequent as the others, and a grid of edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

import numpy as np

from accuracy_measure.draws import FORMATS, Format
from accuracy_measure.strata import strata
from alkahest.ops import OPS

BLOCK = 1 << 18
"""Points of a block; a stratum is drawn block by block."""

POWERS = (
    *(2, 3, 4, -1, -2, -3, -4),
    *(5, 6, 7, 8, 15, 16, 17, 31, 33, 63, 64, -5, -8, -33, -64),
    *(65, 100, 1000, -65, -100, 1_000_001),
)
"""Exponents of ``powi`` that are measured."""


FAR = (
    *("from 2**31", "near large multiples of pi/2", "far", "far negative"),
    *("near overflow", "subnormal", "subnormal results", "tiny"),
    *("all magnitudes", "all numbers", "any result", "bases of all magnitudes"),
)
"""Strata of huge and tiny operands and results."""


def blocks(
    op: str,
    dtype: str,
    count: int,
    parameter: int | None,
    seed: int = 0,
    only: Collection[str] = (),
) -> Iterator[tuple[str, list[Any]]]:
    """Blocks of about ``count`` points in all: the stratum's name, and the operands in ``dtype``.

    The edges are always there; of the strata those in ``only``, or all where it is empty.
    """
    generator = np.random.default_rng(list(f"{op} {parameter} {seed}".encode()))
    form = FORMATS[dtype]
    edges = _grid(op, form)
    for start in range(0, len(edges[0]), BLOCK):
        yield "edges", [_cast(column[start : start + BLOCK], dtype) for column in edges]
    everything = strata(op, form, parameter)
    chosen = {name: draws for name, draws in everything.items() if not only or name in only}
    for name, draws in chosen.items():
        left = -(-count // len(chosen))
        while left > 0:
            n = min(left, BLOCK)
            yield name, [_cast(column, dtype) for column in _together(draws, generator, n)]
            left -= n


def _cast(column: Any, dtype: str) -> Any:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(column).astype(dtype)


def _together(draws: Any, generator: np.random.Generator, n: int) -> Any:
    """One column per operand: of draws that are independent, or of one that gives them all."""
    return [d(generator, n) for d in draws] if isinstance(draws, tuple) else draws(generator, n)


# Edges


def _grid(op: str, form: Format) -> list[Any]:
    """Edges, and for more than one operand every combination of a few of them."""
    arity = OPS[op].arity
    edges = _edges(form)
    if arity == 1:
        return [edges]
    few = edges[:: max(1, len(edges) // (400 if arity == 2 else 40))]
    return [axis.ravel() for axis in np.meshgrid(*[few] * arity, indexing="ij")]


@cache
def _edges(form: Format) -> Any:
    """Zeros, powers of two with their neighbours, small integers and halves, both signs."""
    powers = np.ldexp(1.0, np.arange(form.least, form.largest)).astype(form.dtype)
    halves = np.arange(1, 400) / 2
    tens = 10.0 ** np.arange(-30, 31)
    largest = [np.finfo(form.dtype).max]
    base = np.concatenate([powers, halves, tens, largest]).astype(form.dtype)
    with np.errstate(over="ignore", under="ignore"):
        up, down = np.nextafter(base, np.inf), np.nextafter(base, 0)
        twice = [np.nextafter(up, np.inf), np.nextafter(down, 0)]
    sizes = np.concatenate([np.zeros(1, form.dtype), base, up, down, *twice])
    sizes = np.unique(sizes[np.isfinite(sizes)])
    return np.concatenate([-sizes[::-1], sizes])
