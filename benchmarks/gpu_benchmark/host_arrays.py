"""Arrays in host memory: in, evaluated, out again, beside what the link to the device allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import alkahest
from alkahest import ExprPool
from gpu_benchmark import statements
from gpu_benchmark.contenders import describe
from gpu_benchmark.formulae import ROWS, Row
from gpu_benchmark.timing import wall_samples

ROW = "waves"
"""The row that is evaluated: two columns up, one down."""

SIZES, QUICK_SIZES = (1 << 16, 1 << 20, 1 << 24, 1 << 27), (1 << 16, 1 << 20, 1 << 24)

_PIECE = 256 << 20
_AT_LEAST, _QUICK_AT_LEAST = 20, 5


class Link:
    """Copies between pinned host memory and the device, both directions at once."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        self._pinned = [cupy.cuda.alloc_pinned_memory(_PIECE) for _ in range(2)]
        self._device = [cupy.empty(_PIECE, cupy.uint8) for _ in range(2)]
        self._streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]

    def move(self, up: int, down: int) -> None:
        """Move so many bytes each way and wait for them."""
        kinds = self._cupy.cuda.runtime
        for done in range(0, max(up, down), _PIECE):
            sizes = [max(0, min(_PIECE, total - done)) for total in (up, down)]
            addresses = [(self._device[0].data.ptr, self._pinned[0].ptr)]
            addresses += [(self._pinned[1].ptr, self._device[1].data.ptr)]
            directions = kinds.memcpyHostToDevice, kinds.memcpyDeviceToHost
            for (target, source), size, kind, stream in zip(
                addresses, sizes, directions, self._streams, strict=True
            ):
                if size:
                    kinds.memcpyAsync(target, source, size, kind, stream.ptr)
        for stream in self._streams:
            stream.synchronize()


def measure(
    quick: bool, options: dict[str, Any], say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """The record of this part, once for every size that it has grown by: rates of the link, sizes."""
    link = Link()
    most = 4 * _PIECE
    rates = {
        name: wall_samples(partial(link.move, up, down), at_least=5, seconds=0.5)
        for name, up, down in (("up", most, 0), ("down", 0, most), ("both", most, most))
    }
    record: dict[str, Any] = {
        "row": ROW,
        "link_gb_per_s": {
            name: most * (2 if name == "both" else 1) / sample.median / 1e6
            for name, sample in rates.items()
        },
        "sizes": [],
    }
    (row,) = (row for row in ROWS if row.name == ROW)
    for points in QUICK_SIZES if quick else SIZES:
        say(f"host arrays, {points} points")
        record["sizes"].append(_size(row, points, quick, link, options, say))
        yield record


def _size(
    row: Row,
    points: int,
    quick: bool,
    link: Link,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(1)
    columns = [random.uniform(low, high, points) for low, high in row.ranges]
    out = np.full(points, np.nan)
    outputs, symbols = row.build(ExprPool())
    fn = alkahest.compile_expr(outputs[0], symbols, backend="nvptx", **options)
    subjects: dict[str, Callable[[], Any]] = {
        "reused": lambda: fn(*columns, out=out),
        "fresh": lambda: fn(*columns),
        "cupy": _cupy_plain(row, columns),
    }
    up, down = sum(column.nbytes for column in columns), out.nbytes
    sample = partial(wall_samples, at_least=_QUICK_AT_LEAST if quick else _AT_LEAST, seconds=0.5)
    record: dict[str, Any] = {
        "points": points,
        "bytes_up": up,
        "bytes_down": down,
        "link_ms": sample(partial(link.move, up, down)).median,
    }
    some = slice(0, None, max(1, points // 4096))
    x, y = (column[some] for column in columns)
    want = np.sin(x) * np.cos(y) + (x * x + y * y) / 100
    for name, run in subjects.items():
        try:
            got = np.asarray(run())
            if np.isnan(got).any() or not np.allclose(got[some], want, rtol=1e-10, atol=1e-12):
                raise ValueError("the results are wrong")
            del got
            times = sample(run)
            record[f"{name}_ms"] = times.median
            record[f"{name}_spread"] = times.spread
        except Exception as error:  # noqa: BLE001 - one that fails must not end the others' run
            record[f"{name}_error"] = describe(error)
            say(f"  {name}: {record[f'{name}_error']}")
    return record


def _cupy_plain(row: Row, columns: list[Any]) -> Callable[[], Any]:
    """What one writes first: ``asnumpy(kernel(asarray(x), asarray(y)))``."""
    import cupy

    kernel = cupy.ElementwiseKernel(
        ", ".join(f"float64 x{i}" for i in range(len(columns))),
        "float64 o0",
        statements.cuda_body(row.program),
        "benchmark_host",
    )
    return lambda: cupy.asnumpy(kernel(*[cupy.asarray(column) for column in columns]))
