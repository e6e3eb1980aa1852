"""Time dense products, inverses and changes of order on the GPU of this machine.

    python tools/groebner_dense.py products [--sides LIST] [--primes LIST] [--json FILE]
    python tools/groebner_dense.py conversions [--systems LIST] [--primes LIST] [--json FILE]

``products`` times products and inverses of squares of residues by integers and on tensor cores, which
is what the figures in ``alkahest/backends/groebner_gpu/dense.py`` are for; ``conversions`` follows the
change from grevlex to lex for many primes, and compares one with the processor's. Exits with 1 when a
result is wrong.

Needs an NVIDIA GPU and an installed alkahest-groebner-gpu. The systems are those of
``benchmarks/groebner.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from groebner_benchmark.devices import opened, reported
from groebner_benchmark.systems import system

SYSTEMS = "katsura-8,katsura-9,cyclic-6,eco-10"
PRIMES = "64,128,512"
SIDES = "16,32,64,96,128,256,512,1024"

PANELS = (32, 64)
"""Columns that are eliminated at once."""

MOST_WORDS = 1 << 27
"""Of the squares that are timed."""


def multiplied(device: Any, sides: list[int], counts: list[int]) -> Iterator[dict[str, Any]]:
    """One row for each side of squares and number of primes: both forms of products and inverses."""
    from alkahest.groebner.engine.primes import primes_below

    source = primes_below()
    primes = np.array([next(source) for _ in range(max(counts))], np.uint32)
    forms = ("integers", "tensor") if device.device.capability >= (8, 0) else ("integers",)
    for side in sides:
        for count in counts:
            if count * side**2 > MOST_WORDS:
                continue
            squares = np.random.default_rng(side).integers(0, 2**30, (count, side, side), np.uint32)
            row: dict[str, Any] = {"side": side, "primes": count}
            found = []
            for form in forms:
                results, row[form] = timed_products(
                    device, squares, primes[:count], form == "tensor"
                )
                found.append(results)
            row["right"] = all(
                np.array_equal(one["product"], found[0]["product"])
                and all(np.array_equal(found[0]["inverse"], one[name]) for name in list(one)[1:])
                for one in found
            )
            yield row


def timed_products(
    device: Any, squares: Any, primes: Any, tensor: bool
) -> tuple[dict[str, Any], dict[str, float]]:
    """The product of the squares with themselves and their inverses, and the least seconds."""
    from types import SimpleNamespace

    from alkahest.backends.groebner_gpu.dense import Dense, launch_product
    from alkahest.backends.groebner_gpu.replay import field_of

    lanes, n = len(primes), squares.shape[1]
    form: Any = SimpleNamespace(tensor_cores=tensor)
    found: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    with device.session() as session:
        field, bad, smaller = (session.allocate(words) for words in (3 * lanes, lanes, n))
        left, out = session.allocate(squares.size), session.allocate(squares.size)
        session.write(field, field_of(primes))
        session.zero(bad, lanes)
        session.write(smaller, np.full(n, n, np.int32))
        session.write(left, squares)
        dense = Dense(session=session, device=form, field=field, lanes=lanes, bad=bad)

        def product() -> None:
            launch_product(
                session, "relate", 1, (n, n, lanes), tensor,
                left, n, n, left, smaller, field, lanes, out, bad,
            )  # fmt: skip

        def inverse(panel: int) -> None:
            session.copy(left, out, squares.size)
            dense.invert(out, n, panel)

        tasks: dict[str, Any] = {"product": product, "inverse": lambda: inverse(n)}
        for panel in PANELS:
            tasks[f"inverse by panels of {panel}"] = lambda panel=panel: inverse(panel)
        for name, task in tasks.items():
            times = []
            for _ in range(4):  # the first one loads the kernels
                session.wait()
                start = time.perf_counter()
                task()
                session.wait()
                times.append(time.perf_counter() - start)
            seconds[name] = min(times[1:])
            found[name] = np.empty_like(squares)
            session.read(out, found[name])
    return found, seconds


def shown_products(row: dict[str, Any]) -> str:
    """A line for squares of one size."""
    work = row["primes"] * row["side"] ** 3
    lines = [
        f"{'ok  ' if row['right'] else 'WRONG'} {row['side']:>5} rows, {row['primes']} primes:"
    ]
    for form in ("integers", "tensor"):
        rates = [f"{name} {work / s / 1e9:.1f} G/s" for name, s in row.get(form, {}).items()]
        lines.append(f"  {form:<8} {', '.join(rates)}")
    return "\n".join(lines)


def followed(device: Any, name: str, counts: list[int]) -> Iterator[dict[str, Any]]:
    """One row for each number of primes: the change of a system's basis from grevlex to lex."""
    from alkahest.backends.groebner_gpu.conversion import follow
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.engine.primes import primes_below
    from alkahest.groebner.engine.records import LARGEST_PRIME
    from alkahest.groebner.fglm import Conversion
    from alkahest.groebner.following import walk_of
    from alkahest.groebner.orders import order_of
    from alkahest.groebner.quotient import Border

    polynomials, names = system(name)
    basis = GroebnerBasis.compute(polynomials, names)
    border, order = Border.of(basis), order_of("lex", len(names))
    steps = Conversion.modulo(basis, border, order, LARGEST_PRIME, range(len(names)))
    assert steps is not None
    walk, needed = walk_of(steps, basis.engine_basis, border), steps.needed(border)
    source = primes_below(LARGEST_PRIME - 2)
    primes = [next(source) for _ in range(max(counts))]
    start = time.perf_counter()
    expected = steps.followed(basis, border, needed, primes[0])
    host = time.perf_counter() - start
    for count in counts:
        follow(device, walk, primes[:count], lambda: None, vectors=False)  # loads the kernels
        start = time.perf_counter()
        lucky, tails, _ = follow(device, walk, primes[:count], lambda: None, vectors=False)
        seconds = time.perf_counter() - start
        right = (
            expected is not None
            and bool(lucky.all())
            and np.array_equal(tails[0], expected.tails[:, : walk.vectors])
        )
        yield {
            "system": name,
            "primes": count,
            "right": right,
            "degree": walk.degree,
            "waves": len(walk.waves) - 1,
            "total": seconds,
            "processor_seconds_a_prime": host,
        }


def shown_conversion(row: dict[str, Any]) -> str:
    """A line for one conversion."""
    return (
        f"{'ok  ' if row['right'] else 'WRONG'} {row['system']:<11} {row['primes']:>4} primes, "
        f"degree {row['degree']}, {row['waves']} waves: {1e3 * row['total']:.1f} ms; "
        f"the processor {1e3 * row['processor_seconds_a_prime']:.1f} ms a prime"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("products", "conversions"))
    parser.add_argument("--systems", default=SYSTEMS, help="names, separated by commas")
    parser.add_argument("--sides", default=SIDES, help="rows of the squares")
    parser.add_argument("--primes", default=PRIMES, help="numbers of primes")
    parser.add_argument("--device", type=int, default=0, help="ordinal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args(arguments)
    device = opened(options.device)
    counts = [int(n) for n in options.primes.split(",")]
    if options.what == "products":
        sides = [int(side) for side in options.sides.split(",")]
        found, shown = multiplied(device, sides, counts), shown_products
    else:
        systems = options.systems.split(",")
        found = (row for name in systems for row in followed(device, name, counts))
        shown = shown_conversion
    return reported(device, found, shown, options.json)


if __name__ == "__main__":
    sys.exit(main())
