"""One formula over a million points: on the CPU and, where there is one, on an NVIDIA GPU.

Works with whatever is installed: without a GPU it says what is missing and goes on without.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

import alkahest as ak

POINTS = 1_000_000


def timed(fn: ak.CompiledFn, columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Evaluate twice, so that the second time counts no preparation; print what it took."""
    fn.call_batch(columns)
    start = time.perf_counter()
    result = fn.call_batch(columns)
    seconds = time.perf_counter() - start
    where = fn.report.get("device_name", "CPU")
    print(f"{fn.backend} on {where}: {POINTS / seconds / 1e6:.1f} million points per second")
    return np.asarray(result)


def main() -> None:
    """Compile the formula for every kind of hardware here and compare the results."""
    x, y = ak.symbols("x y")
    expr = ak.sin(x) * ak.cos(y) + (x * x + y * y) / 100
    print(f"f(x, y) = {expr}")

    generator = np.random.default_rng(0)
    columns = [generator.uniform(-10, 10, POINTS) for _ in range(2)]
    xs, ys = columns
    expected = np.sin(xs) * np.cos(ys) + (xs * xs + ys * ys) / 100

    features = ak.capabilities()["features"]
    if features["cpu"]:
        result = timed(ak.compile_expr(expr, [x, y], backend="cpu"), columns)
        print(f"  largest difference from NumPy: {np.abs(result - expected).max():.1e}")
    else:
        print("no CPU backend: `alkahest doctor` says what is missing")

    if not features["cuda"]:
        print("no GPU backend: `alkahest doctor` says what is missing")
        return
    fn = ak.compile_cuda(expr, [x, y])
    print(f"compiled for {fn.target}: {len(fn.ptx.splitlines())} lines of PTX")
    count = ak.cuda_device_count()
    if count == 0:
        print("no usable GPU here: `alkahest doctor` says why")
    for ordinal in range(count):
        result = timed(ak.compile_cuda(expr, [x, y], device=ordinal), columns)
        print(f"  largest difference from NumPy: {np.abs(result - expected).max():.1e}")


if __name__ == "__main__":
    main()
