"""Compute Gröbner bases on the GPU of this machine with one seed after the other, and compare.

    python tools/groebner_seeds.py [--seeds N] [--gfp LIST] [--qq LIST] [--json FILE]

Each system is computed on the processor once, then on the device with seeds 0, 1, 2 ...; every basis
must be the processor's, and be computed on the device. Exits with 1 where one is not.

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

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from groebner_benchmark.devices import opened, reported
from groebner_benchmark.systems import PRIME, system

GFP = "katsura-10,katsura-11,cyclic-7,noon-7,eco-11,reimer-6,chandra-10,random-10"
QQ = "katsura-9,katsura-10,cyclic-7,noon-7,eco-11,reimer-6,chandra-10,henrion-6"


def runs(name: str, p: int, seeds: int, where: str) -> Iterator[dict[str, Any]]:
    """One row for each seed."""
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.fields import GF
    from alkahest.groebner.fields import QQ as RATIONALS

    polynomials, names = system(name)
    field = GF(p) if p else RATIONALS
    expected = GroebnerBasis.compute(polynomials, names, field=field)
    for seed in range(seeds):
        start = time.perf_counter()
        found = GroebnerBasis.compute(polynomials, names, field=field, device=where, seed=seed)
        yield {
            "system": name,
            "field": str(field),
            "seed": seed,
            "right": found == expected and found.report.ran_on_gpu(),
            "seconds": time.perf_counter() - start,
            "reductions_on_gpu": found.report.reductions_on_gpu,
            "planned_on_cpu": found.report.planned_on_cpu,
        }


def shown_run(row: dict[str, Any]) -> str:
    """A line of the table."""
    return (
        f"{'ok  ' if row['right'] else 'WRONG'} {row['system']:<11} {row['field']:<14} "
        f"seed {row['seed']:2}: {row['seconds']:7.3f} s, {row['reductions_on_gpu']} matrices on the "
        f"GPU, {row['planned_on_cpu']} by plan on the processor"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="how many (10)")
    parser.add_argument("--gfp", default=GFP, metavar="LIST", help=f"systems over GF({PRIME})")
    parser.add_argument("--qq", default=QQ, metavar="LIST", help="systems over the rationals")
    parser.add_argument("--device", type=int, default=0, help="ordinal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args(arguments)
    device = opened(options.device)
    listed = [(name, PRIME) for name in filter(None, options.gfp.split(","))]
    listed += [(name, 0) for name in filter(None, options.qq.split(","))]
    where = f"cuda:{options.device}"
    rows = (row for name, p in listed for row in runs(name, p, options.seeds, where))
    return reported(device, rows, shown_run, options.json)


if __name__ == "__main__":
    sys.exit(main())
