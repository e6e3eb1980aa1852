"""``benchmarks/shapes.py``: tuned shapes against the built-in ones, with invented times."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from fakedriver import FakeGpuChild

from alkahest.backends.nvptx.shapes import MEMORY, Shape, Tuning
from alkahest.program import Program

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def shapes_benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import shapes

    return shapes


class Invented:
    """A kernel that takes ``1 / speed`` in blocks of 256 threads, and a second in others."""

    registers = 32

    def __init__(self, speed: float) -> None:
        self.speed = speed

    def seconds(self, threads: int) -> float:
        return 1 / self.speed if threads == 256 else 1.0


def product(module: ModuleType) -> Program:
    (row,) = module.formulae.select(["product"])
    program: Program = row.program
    return program


@pytest.mark.parametrize(("speed", "slower"), [(1.25, False), (0.99, False), (0.8, True)])
def test_what_changed_is_timed_in_both_shapes(
    shapes_benchmark: ModuleType, speed: float, slower: bool
) -> None:
    tuned = Tuning({("float64", MEMORY): Shape(1, 256)})
    facts = shapes_benchmark.compare(
        product(shapes_benchmark), tuned, lambda program, points: Invented(speed), 5
    )
    assert facts == {
        "work": MEMORY,
        "own": {"points": 2, "threads": 128},
        "tuned": {"points": 1, "threads": 256},
        "ratio": speed,
        "deviation": 0.0,
    }
    assert shapes_benchmark.is_slower(facts) is slower
    assert f"{speed:.3f} times as fast" in shapes_benchmark.report("GPU", (), {"product": facts})


def test_what_did_not_change_is_not_timed(shapes_benchmark: ModuleType) -> None:
    facts = shapes_benchmark.compare(
        product(shapes_benchmark), Tuning(), lambda program, points: Invented(1.0), 5
    )
    assert "ratio" not in facts
    assert not shapes_benchmark.is_slower(facts)
    assert "unchanged" in shapes_benchmark.report("GPU", (), {"product": facts})


def test_rows_of_many_columns_are_left_out(shapes_benchmark: ModuleType) -> None:
    names = shapes_benchmark.programs(shapes_benchmark.formulae.ROWS)
    assert "product" in names
    assert "float32 compute" in names
    assert "robot_jacobian" not in names


def test_the_command_runs_on_a_device(fake_driver: Path, tmp_path: Path) -> None:
    code = (
        "import contextlib, io, sys\n"
        f"sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "import shapes\n"
        "from alkahest.backends.nvptx import tuning\n"
        "tuning.THREADS, tuning.QUICK_ROUNDS = (128,), 1\n"
        "cases = list(tuning.archetypes())\n"
        "tuning.archetypes = lambda: [case for case in cases if case.work == 'memory']\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    shapes.main('--quick --rows product --rounds 2 --json found.json'.split())\n"
        "result = out.getvalue()\n"
    )
    settings = {"FAKE_CUDA_IDLE": "1", "FAKE_CUDA_MEMORY": str(1 << 20)}
    with FakeGpuChild(fake_driver, tmp_path, **settings) as process:
        assert process.ask(code).startswith("Fake GPU 0, sm_90, driver for CUDA 13.0: ")
    found = json.loads((tmp_path / "found.json").read_text())
    assert list(found["rows"]) == ["float64 memory", "float32 memory", "product"]
    assert found["device"].startswith("Fake GPU 0")
    assert len(found["tuned"]) == 2
