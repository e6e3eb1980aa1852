"""How well a calibration predicts: random programs, measured and predicted.

    python benchmarks/calibration.py [--backend cpu-reference] [--programs 40] [--json FILE]

Measures the backend as ``alkahest calibrate`` does, without storing anything, then times random
programs of its operations at several lengths. The reference backend says which programs have ordinary
values, so that no other has to compile all the rest. Wants a quiet machine. Exits with 1 when fewer
than nine in ten predictions are within a factor of two.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.calibration import Work
from alkahest.calibration.measuring import measure
from alkahest.ops import OPS, Kind, result_kind
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program
from alkahest.selection import find

FACTOR = 2.0
SHARE = 0.9
LENGTHS = (16, 1_000, 30_000, 300_000)
ROUNDS = 7
LARGEST = 100.0
REFERENCE = "cpu-reference"


def random_program(seed: int, ops: list[str]) -> Program:
    """A float64 program of 5 to 60 of ``ops`` over 1 to 5 inputs, with 1 to 4 outputs.

    Values stay ordinary: what they cost where they overflow or turn into nan is another question.
    """
    pick = random.Random(seed)
    inputs = pick.randint(1, 5)
    length = pick.randint(5, 60)
    kinds = [Kind.REAL] * inputs
    code: list[Instruction] = []
    while len(code) < length:
        op = OPS[pick.choice(ops)]
        args = tuple(pick.randrange(len(kinds)) for _ in range(op.arity))
        kind = result_kind(op, tuple(kinds[a] for a in args))
        if kind is None:
            continue
        parameter = pick.choice((2, 3, 5)) if op.has_parameter else None
        step = Instruction(op.name, args, parameter)
        if is_tame(program_of(inputs, [*code, step], 1)):
            code.append(step)
            kinds.append(kind)
    return program_of(inputs, code, pick.randint(1, 4))


def program_of(inputs: int, code: list[Instruction], outputs: int) -> Program:
    """The program whose outputs are its last values."""
    last = inputs + len(code) - 1
    return Program(
        dtype="float64",
        inputs=tuple(f"x{k}" for k in range(inputs)),
        constants=(),
        code=tuple(code),
        outputs=tuple(last - k for k in range(outputs)),
    ).verify()


def is_tame(program: Program) -> bool:
    """Whether the last value is finite and of moderate size at some points."""
    artifact = calls.codegen(REFERENCE, program, None, {})
    evaluator = calls.make_evaluator(REFERENCE, artifact, None)
    (values,) = evaluator.evaluate(batch_for(program, 32)).outputs
    return bool(np.all(np.abs(values.astype(float)) < LARGEST))


def batch_for(program: Program, n: int) -> Batch:
    """Columns between 0.1 and 0.9."""
    generator = np.random.default_rng(n)
    return Batch(columns=tuple(generator.uniform(0.1, 0.9, n) for _ in program.inputs), n=n)


def seconds(backend: str, program: Program, n: int) -> float:
    """Median wall time of one call, the first one aside."""
    evaluator = calls.make_evaluator(backend, calls.codegen(backend, program, None, {}), None)
    batch = batch_for(program, n)
    evaluator.evaluate(batch)
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        evaluator.evaluate(batch)
        times.append(perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default=REFERENCE)
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    options = parser.parse_args()
    infos = find(options.backend)[:1]
    backend = infos[0].name
    model = measure(infos).backends[backend].models["float64"]
    tables = [registry.support(name).lowers for name in (backend, REFERENCE)]
    ops = [op for op in OPS if all("float64" in table.get(op, ()) for table in tables)]
    ratios: dict[int, list[float]] = {n: [] for n in LENGTHS}
    for seed in range(options.programs):
        program = random_program(seed, ops)
        for n, found in ratios.items():
            predicted = model.seconds(Work.of(program), n)
            found.append(predicted / seconds(backend, program, n))
    everything = [ratio for found in ratios.values() for ratio in found]
    within = sum(1 / FACTOR <= ratio <= FACTOR for ratio in everything) / len(everything)
    print(f"{'points':>8}  predicted/measured: least, median, most")
    for n, found in ratios.items():
        print(f"{n:8}  {min(found):.2f} {statistics.median(found):.2f} {max(found):.2f}")
    print(f"within a factor of {FACTOR:g}: {100 * within:.0f} % of {len(everything)}")
    if options.json:
        result = {
            "backend": backend,
            "machine": platform.machine(),
            "programs": options.programs,
            "ratios": ratios,
            "within": within,
        }
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if within >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
