"""From measured times to a model: least squares over non-negative costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alkahest.calibration.model import FILLING_BYTES, FRESH_BYTES, Cost, Model, Work, op_class

Array = NDArray[Any]

_FIXED = 7  # coefficients before those of the operations
_FILLING = 6  # position of that of the first transfers


class Sample(NamedTuple):
    """One measurement.

    Attributes:
        work: of the program that ran.
        n: number of points.
        seconds: wall time of one call.
    """

    work: Work
    n: int
    seconds: float


def fit(samples: Sequence[Sample], *, one_kernel: bool = False) -> Model:
    """The model whose predictions are closest to the samples, in proportion to their times.

    Costs are never negative; what the samples do not tell is 0.

    Args:
        samples: of one backend and dtype, at least one; times above 0.
        one_kernel: whether a call is one kernel on a device, which the first transfers hold up.
            Operations then cost nothing per call, and per point so little beside the columns that one
            cost is fitted for all of a class: the sum of many that are noise for the most part
            would be far too large.
    """
    names = sorted({name for sample in samples for name in sample.work.ops})
    groups = sorted(set(map(op_class, names))) if one_kernel else names
    group_of = op_class if one_kernel else str
    seconds = np.array([sample.seconds for sample in samples])
    rows = np.array([_row(sample, groups, group_of) for sample in samples])
    rows[:, slice(_FIXED, None, 2) if one_kernel else _FILLING] = 0
    # Dividing by the time makes one percent of a short call as important as of a long one.
    costs = nonnegative_least_squares(rows / seconds[:, None], np.ones(len(samples))).tolist()
    found = dict(zip(groups, map(Cost, costs[_FIXED::2], costs[_FIXED + 1 :: 2]), strict=True))
    return Model(
        call=costs[0],
        read=Cost(costs[1], costs[2]),
        write=Cost(costs[3], costs[4]),
        fresh=costs[5],
        filling=costs[_FILLING],
        ops={name: found[group_of(name)] for name in names},
    )


def _row(sample: Sample, groups: Sequence[str], group_of: Callable[[str], str]) -> list[float]:
    """What each coefficient is multiplied by; the order is that of :func:`fit`."""
    work, n = sample.work, float(sample.n)
    written = n * work.bytes_out
    row = [1.0, work.columns_in, n * work.bytes_in, work.columns_out, written]
    row.append(max(0.0, written - FRESH_BYTES))
    row.append(min(n * work.bytes_in + written, FILLING_BYTES))
    counts = dict.fromkeys(groups, 0)
    for name, count in work.ops.items():
        counts[group_of(name)] += count
    for count in counts.values():
        row += [count, n * count]
    return row


def nonnegative_least_squares(matrix: Array, target: Array) -> Array:
    """The ``x >= 0`` that minimises ``|matrix @ x - target|``.

    Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23: coefficients enter the
    solution one by one, the steepest first, and leave it when they would turn negative. It begins
    with those that are left when negative ones are dropped from the plain solution.

    Args:
        matrix: shape (samples, coefficients).
        target: shape (samples,).
    """
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1
    scaled = matrix / scale  # seconds per call and per byte differ by twelve orders
    count = matrix.shape[1]
    used = np.ones(count, dtype=bool)
    solution = _solve(scaled, target, used)
    while (solution[used] <= 0).any():
        used &= solution > 0
        solution = _solve(scaled, target, used)
    tolerance = 1e-10 * np.linalg.norm(target)
    for _ in range(3 * count):  # the number of rounds that the authors found to be ample
        slope = scaled.T @ (target - scaled @ solution)
        slope[used] = -np.inf
        entering = int(np.argmax(slope))
        if slope[entering] <= tolerance:
            break
        used[entering] = True
        candidate = _solve(scaled, target, used)
        while (candidate[used] <= 0).any():
            leaving = used & (candidate <= 0)
            falls = solution[leaving] - candidate[leaving]
            step = float(np.min(solution[leaving] / np.where(falls > 0, falls, 1)))
            solution = solution + step * (candidate - solution)
            solution[leaving & (solution <= 1e-14)] = 0
            used &= solution > 0
            candidate = _solve(scaled, target, used)
        solution = candidate
    costs: Array = solution / scale
    return costs


def _solve(matrix: Array, target: Array, used: NDArray[np.bool_]) -> Array:
    """Plain least squares over the coefficients in use; the others are 0."""
    solution = np.zeros(matrix.shape[1])
    if used.any():
        solution[used] = np.linalg.lstsq(matrix[:, used], target, rcond=None)[0]
    return solution


__all__ = ["Sample", "fit", "nonnegative_least_squares"]
