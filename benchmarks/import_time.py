"""How long ``import alkahest`` takes, beside importing what its plugin layer is built on.

    python benchmarks/import_time.py [--rounds 30] [--json FILE]

Fresh interpreters, one after the other, alternating between the two, so that both see the same
machine. Times are of the import statement alone, taken inside the interpreter. Exits with 1 when
the ratio of the medians is above the limit.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

SUBJECT = "import alkahest"
YARDSTICK = "import attrs, pluggy, importlib.metadata"
LIMIT = 1.5

_TIMER = """
import sys
from time import perf_counter
start = perf_counter()
{statement}
print(perf_counter() - start)
"""


def seconds(statement: str) -> float:
    """Wall time of ``statement`` in a fresh interpreter."""
    code = _TIMER.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(rounds: int) -> dict[str, object]:
    """Medians over ``rounds`` alternating pairs, after one pair that warms the caches."""
    times: dict[str, list[float]] = {SUBJECT: [], YARDSTICK: []}
    for round_ in range(rounds + 1):
        for statement, series in times.items():
            taken = seconds(statement)
            if round_:
                series.append(taken)
    medians = {statement: statistics.median(series) for statement, series in times.items()}
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rounds": rounds,
        "median_ms": {statement: 1e3 * median for statement, median in medians.items()},
        "ratio": medians[SUBJECT] / medians[YARDSTICK],
        "limit": LIMIT,
    }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="pairs of interpreters (30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    options = parser.parse_args()
    result = measure(options.rounds)
    medians = result["median_ms"]
    assert isinstance(medians, dict)
    for statement, median in medians.items():
        print(f"{median:8.1f} ms  {statement}")
    print(f"{result['ratio']:8.2f}     ratio, limit {LIMIT}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if float(str(result["ratio"])) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
