"""What the tools share that time Gröbner bases on a GPU: the device, systems, what becomes of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groebner_benchmark.systems import system

if TYPE_CHECKING:
    from alkahest.backends.groebner_gpu.gpu import Gpu
    from alkahest.groebner.engine.records import MonomialOrder, PolynomialSystem

Row = dict[str, Any]
"""Figures by name; ``"right"`` says whether what was timed is as it should be."""


def opened(ordinal: int) -> Gpu:
    """A GPU, whose name and size are printed.

    Raises:
        CudaError: E-CUDA-003 or 004 where there is no such device, or its driver is too old.
    """
    from alkahest.backends.groebner_gpu.gpu import open_gpu

    device = open_gpu(ordinal)
    print(f"{device.name}, {device.multiprocessors} multiprocessors, {device.shared_bytes} bytes")
    return device


def packed_system(name: str) -> tuple[PolynomialSystem, MonomialOrder]:
    """A system as the engine takes it, and grevlex."""
    from alkahest.groebner.basis import read_system
    from alkahest.groebner.computing import system_of
    from alkahest.groebner.engine.records import MonomialOrder
    from alkahest.groebner.fields import QQ

    polynomials, names = system(name)
    ring, terms = read_system(polynomials, names, "grevlex", QQ, exact_floats=False)
    return system_of(terms, ring), MonomialOrder.grevlex(ring.n)


def reported(
    device: Gpu, rows: Iterable[Row], shown: Callable[[Row], str], file: Path | None
) -> int:
    """Print each row when it comes, then write all to a file.

    Args:
        device: what they were timed on.
        rows: computed as they are asked for.
        shown: the text of a row.
        file: of JSON, or None.

    Returns:
        The exit code: 1 where a row is not right.
    """
    listed = []
    for row in rows:
        print(shown(row), flush=True)
        listed.append(row)
    if file is not None:
        facts = {"device": device.name, "rows": listed}
        file.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["right"] for row in listed) else 1
