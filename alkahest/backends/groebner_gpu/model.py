"""How long replays take, on the devices and on the processor of this machine.

    device:     step * steps + product * (products + dense products) * primes
    processor:  host_product * (products + dense products) * primes

The figures come from ``alkahest calibrate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.groebner.engine.lanes import LANES

if TYPE_CHECKING:
    from alkahest.backends.groebner_gpu.reducer import GpuReducer
    from alkahest.groebner.engine.work import Work

_REPEATS = 3
_LEAST = 1e-15
"""Seconds below which a figure is noise: it must be positive."""


def predicted(
    figures: Mapping[str, float], devices: int, work: Work, lanes: int, primes: int
) -> tuple[float, float]:
    """Seconds for ``lanes`` primes on the devices, and for ``primes`` on the processor.

    Args:
        figures: of :func:`measured`.
        devices: that share the primes.
        work: for one prime.
        lanes: primes of a replay on the devices.
        primes: primes on the processor.
    """
    products = work.products + work.dense_products
    device = figures["step"] * work.steps + figures["product"] * products * lanes / devices
    return device, figures["host_product"] * products * primes


def measured(reducer: GpuReducer, *, quick: bool) -> dict[str, float]:
    """The figures of one device and of the processor, from a system of the family katsura.

    Args:
        reducer: of one device.
        quick: take a smaller system.
    """
    from alkahest.groebner.engine.reducers import host_reducer
    from alkahest.groebner.engine.work import work_of

    given, trace, primes = _learned(6 if quick else 8, 4 * reducer.lanes)
    work = work_of(trace)
    products = work.products + work.dense_products

    def seconds(what: Any, lanes: int) -> float:
        inputs = given.images(primes[:lanes])
        times = []
        for _ in range(_REPEATS + 1):
            start = perf_counter()
            what.replay(trace, inputs, primes[:lanes], lambda: None)
            times.append(perf_counter() - start)
        return min(times[1:])  # the first one compiles and loads

    few, many = seconds(reducer, reducer.lanes), seconds(reducer, len(primes))
    slope = max((many - few) / (len(primes) - reducer.lanes), _LEAST)
    return {
        "step": max(few - slope * reducer.lanes, _LEAST) / work.steps,
        "product": max(slope / products, _LEAST),
        "host_product": max(seconds(host_reducer(), LANES) / (LANES * products), _LEAST),
    }


def _learned(n: int, count: int) -> tuple[Any, Any, list[int]]:
    """Generators, trace and primes of katsura-``n``."""
    from alkahest.groebner.engine.f4 import groebner_modp
    from alkahest.groebner.engine.prepare import generators
    from alkahest.groebner.engine.primes import primes_below
    from alkahest.groebner.engine.records import LARGEST_PRIME, MonomialOrder, PolynomialSystem

    polynomials = katsura(n)
    system = PolynomialSystem(
        exponents=np.array([e for terms in polynomials for e, _ in terms], np.uint32),
        coefficients=[c for terms in polynomials for _, c in terms],
        offsets=np.cumsum([0, *map(len, polynomials)], dtype=np.int64),
    )
    order = MonomialOrder.grevlex(n + 1)
    trace = groebner_modp(system, LARGEST_PRIME, order, record=True)[2]
    assert trace is not None
    given = generators(system, trace.layout)
    source = primes_below(LARGEST_PRIME - 1000, given.leading())
    return given, trace, [next(source) for _ in range(count)]


def katsura(n: int) -> list[Sequence[tuple[tuple[int, ...], int]]]:
    """Terms of the system: sums of u[k] * u[m - k] are u[m], where u[-k] is u[k], and all add to 1."""

    def monomial(*variables: int) -> tuple[int, ...]:
        return tuple(variables.count(i) for i in range(n + 1))

    quadrics = [
        [(monomial(abs(k), abs(m - k)), 1) for k in range(-n, n + 1) if abs(m - k) <= n]
        + [(monomial(m), -1)]
        for m in range(n)
    ]
    linear = [(monomial(), -1), (monomial(0), 1), *((monomial(i), 2) for i in range(1, n + 1))]
    return [*quadrics, linear]


__all__ = ["katsura", "measured", "predicted"]
