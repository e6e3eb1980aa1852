"""Shapes of kernels that were measured: how winners are found, kept and used."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import pytest
from fakedriver import FakeGpuChild

import alkahest as ak
from alkahest import calibration
from alkahest._plugins.registry import registry
from alkahest.backends.nvptx import shapes, stored, tuning
from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.backends.nvptx.shapes import COMPUTE, FUNCTION, MEMORY, Shape, Tuning, choose
from alkahest.calibration import BackendModel, Calibration, storage
from alkahest.plugin import Batch, Tuned
from alkahest.program import Program, lower

H200 = tuning.kind("NVIDIA H200", (9, 0), "13.0")
x, y = ak.symbols("x y")


# Winners


def times(median: float, spread: float, seed: int = 1) -> list[float]:
    drawn = random.Random(seed)
    return [median * (1 + spread * drawn.uniform(-1, 1)) for _ in range(15)]


OWN, OTHER, THIRD = Shape(2, 128), Shape(1, 256), Shape(1, 512)


@pytest.mark.parametrize(
    ("own", "other", "wins"),
    [
        (times(1.0, 0.01), times(0.9, 0.01, 2), True),
        (times(1.0, 0.0), times(0.97, 0.0, 2), False),  # below 5 %
        (times(1.0, 0.2), times(0.93, 0.2, 2), False),  # within the noise
        (times(1.0, 0.01), times(1.2, 0.01, 2), False),
    ],
    ids=["clear", "too little", "noise", "slower"],
)
def test_a_shape_wins_by_more_than_noise(
    own: Sequence[float], other: Sequence[float], wins: bool
) -> None:
    best, gain = tuning.winner({OWN: own, OTHER: other}, OWN)
    assert best == (OTHER if wins else OWN)
    assert gain == pytest.approx(1 / 0.9, rel=0.02) if wins else gain == 1.0


def test_of_several_winners_the_quickest_is_taken() -> None:
    best, gain = tuning.winner({OTHER: [0.9] * 9, THIRD: [0.8] * 9, OWN: [1.0] * 9}, OWN)
    assert (best, gain) == (THIRD, 1.25)


def test_drift_during_the_measurement_is_no_win() -> None:
    slowing = [1.0 + 0.1 * k for k in range(15)]
    assert tuning.winner({OWN: slowing, OTHER: slowing}, OWN) == (OWN, 1.0)


# Measuring, on the emulated device with invented times


class EmulatedKernel:
    """A kernel that runs on the emulated device and takes as long as the test says."""

    registers = 40

    def __init__(
        self, program: Program, points: int, invent: Callable[[Program, Shape], float]
    ) -> None:
        self.emulated = EmulatedEvaluator(program, points=points)
        self.points = points
        self.invent = invent

    def seconds(self, threads: int) -> float:
        program, n = self.emulated.program, 3 * threads + 1
        xs, ys = (np.linspace(k, k + 0.9, n).astype(program.dtype) for k in (0.1, 0.4))
        self.emulated.threads = threads
        (got,) = self.emulated.evaluate(Batch(columns=(xs, ys), n=n)).outputs
        assert np.allclose(got, values(program, xs, ys), rtol=1e-5, atol=1e-6)
        return self.invent(program, Shape(self.points, threads))


def values(program: Program, *columns: np.ndarray) -> np.ndarray:
    """What NumPy makes of an archetype."""
    ops = {"mul": np.multiply, "add": np.add, "sin": np.sin, "exp": np.exp}
    found = list(columns)
    for instruction in program.code:
        found.append(ops[instruction.op](*[found[k] for k in instruction.args]))
    return found[program.outputs[0]]


def test_every_shape_that_is_tried_computes_the_same_and_the_quickest_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "THREADS", (128, 256))
    monkeypatch.setattr(tuning, "QUICK_ROUNDS", 1)
    monkeypatch.setattr(tuning, "_CHAIN", 4)
    quickest = {"float64": Shape(1, 256), "float32": Shape(4, 128)}

    def invent(program: Program, shape: Shape) -> float:
        return 1e-3 if shape == quickest[program.dtype] else 2e-3

    found = tuning.tune(H200, lambda p, points: EmulatedKernel(p, points, invent), quick=True)
    assert [entry.case for entry in found] == [
        f"{dtype} {work}" for dtype in quickest for work in (MEMORY, FUNCTION, COMPUTE)
    ]
    assert {entry.device for entry in found} == {H200}
    by_case = {entry.case: (dict(entry.settings), entry.gain) for entry in found}
    assert by_case["float64 memory"] == ({"points": 1, "threads": 256}, 2.0)
    assert by_case["float32 memory"] == ({}, 1.0)  # what the tables choose
    assert by_case["float32 compute"] == ({"points": 4, "threads": 128}, 2.0)


def test_blocks_that_do_not_fit_are_not_tried() -> None:
    tried: list[Shape] = []

    class Large:
        registers = 200

        def seconds(self, threads: int) -> float:
            tried.append(Shape(1, threads))
            return 1.0

    tuning.tune(H200, lambda program, points: Large(), quick=True)
    assert {shape.threads for shape in tried} == {64, 128, 192, 256}


def test_archetypes_are_of_the_work_that_they_stand_for() -> None:
    for work, program in tuning.archetypes():
        assert choose(program, DEFAULT).work == work


# What tuned shapes change


TUNED = Tuning({("float64", MEMORY): Shape(1, 256), ("float64", COMPUTE): Shape(2, 192)})


def chain(length: int) -> Program:
    value = x
    for _ in range(length):
        value = ak.sin(value) + y
    return lower([value], [x, y])


def test_points_are_those_that_were_measured_for_the_work() -> None:
    product, wave, long = lower([x * y], [x, y]), lower([ak.exp(x) + y], [x, y]), chain(12)
    assert [choose(p, DEFAULT).points for p in (product, wave, long)] == [2, 2, 1]
    assert [choose(p, DEFAULT, TUNED).points for p in (product, wave, long)] == [1, 2, 2]
    single = lower([x * y], [x, y], "float32")
    assert choose(single, DEFAULT, TUNED) == choose(single, DEFAULT)


def test_many_columns_many_values_and_complex_numbers_stay_as_they_are() -> None:
    symbols = ak.symbols(" ".join(f"x{k}" for k in range(12)))
    many = lower([x.pool.add(symbols)], symbols)
    assert choose(many, DEFAULT, TUNED) == choose(many, DEFAULT)
    products = [(x + k) * (y - k) for k in range(40)]
    total = sum((p / q for p, q in zip(products, reversed(products), strict=True)), start=x)
    assert choose(lower([total], [x, y]), DEFAULT, TUNED).points == 1
    assert choose(lower([x * y], [x, y], "complex128"), DEFAULT, TUNED).points == 1


def test_threads_count_where_a_block_fits() -> None:
    assert shapes.threads_per_block(40, 512) == 512
    assert shapes.threads_per_block(200, 512) == shapes.threads_per_block(200)
    assert shapes.threads_per_block(40, None) == 128


def test_code_of_other_points_has_another_key_and_other_threads_have_not() -> None:
    program = lower([x * y], [x, y])

    def key(tuned: Tuning) -> str | None:
        return stored.key_of(program, "sm_90", {}, None, tuned)

    assert key(TUNED) is not None
    assert key(TUNED) != key(Tuning())
    blocks = Tuning({case: Shape(s.points, 512) for case, s in TUNED.shapes.items()})
    assert key(TUNED) == key(blocks)
    assert key(Tuning({("float32", MEMORY): Shape(1, 256)})) == key(Tuning())


def test_generated_code_says_how_it_was_shaped() -> None:
    program = lower([x * y], [x, y])
    facts = stored.generate(program, "sm_90", {}, tuning=TUNED).metadata
    assert (facts["points"], facts["work"]) == (1, MEMORY)
    assert facts["tuning"] == "compute 2, memory 1"
    assert stored.generate(program, "sm_90", {}).metadata["points"] == 2


# What is kept


def keep(found: Sequence[Tuned], **changes: str) -> None:
    plugin = changes.get("plugin", storage.plugin_of("nvptx"))
    entry = BackendModel(
        plugin=plugin, devices=("NVIDIA H200",), placement="cuda", models={}, tuned=tuple(found)
    )
    calibration.store(
        Calibration(machine=storage.machine(), measured="now", backends={"nvptx": entry})
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "calibration.json"
    monkeypatch.setenv(calibration.VARIABLE, str(path))
    return path


FOUND = [
    Tuned(device=H200, case="float64 memory", settings={"points": 1, "threads": 256}, gain=1.1),
    Tuned(device=H200, case="float64 function"),
    Tuned(device=H200, case="float32 compute", settings={"points": 4, "threads": 192}, gain=1.2),
]


def test_what_was_measured_is_used_on_that_kind_of_device_and_driver(place: Path) -> None:
    assert tuning.of_device(H200).shapes == {}
    keep(FOUND)
    assert tuning.of_device(H200).shapes == {
        ("float64", MEMORY): Shape(1, 256),
        ("float32", COMPUTE): Shape(4, 192),
    }
    for other in (
        tuning.kind("NVIDIA H200", (9, 0), "12.8"),
        tuning.kind("NVIDIA H100", (9, 0), "13.0"),
    ):
        assert tuning.of_device(other).shapes == {}


def test_what_another_version_of_the_plugin_measured_does_not_count(place: Path) -> None:
    keep(FOUND, plugin="alkahest-nvptx 0.0.1")
    assert tuning.of_device(H200).shapes == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"points": 3, "threads": 100},
        {"points": 0, "threads": 128},
        {"points": 2},
        {"points": 4, "threads": 128},
        {"points": 1, "threads": 1 << 20},
    ],
    ids=str,
)
def test_settings_that_no_kernel_has_are_ignored(place: Path, settings: dict[str, int]) -> None:
    keep([Tuned(device=H200, case="float64 memory", settings=settings, gain=2.0)])
    assert tuning.of_device(H200).shapes == {}


# On devices: the fake driver


FAKE = "Fake GPU 0, sm_90, driver for CUDA 13.0"


def test_kernels_are_launched_as_tuned_on_the_device_that_was_measured(
    child: Callable[..., FakeGpuChild], place: Path
) -> None:
    keep([attrs.evolve(FOUND[0], device=FAKE)])
    code = (
        "import numpy as np, fakearrays as fake\n"
        "x, y = ak.symbols('x y')\n"
        "fn = ak.compile_cuda(x + 2*y, [x, y])\n"
        "xs = np.arange(10_000.0)\n"
        "result = [fn.artifact.metadata['points']]\n"
        "for device in (0, 1):\n"
        "    got = fn.call_batch_on(device, [xs, xs])\n"
        "    columns = [fake.Producer(xs, device=device) for _ in range(2)]\n"
        "    fn(*columns)\n"
        "    result += [bool(np.array_equal(got, 3*xs)), fn.report['access']]\n"
    )
    with child(FAKE_CUDA_COUNT="2", FAKE_CUDA_CAPABILITY="90,90") as process:
        process.ask("result = None")
        answer = process.ask(code)
        launches = [call.split()[1:4] for call in process.calls() if call.startswith("launch")]
    plain = "float64, float64 -> 0 contiguous"
    assert answer == [1, True, plain, True, f"{plain}, 2 points a thread"]
    assert launches == [["40", "256", "10000"]] * 2 + [["40", "128", "10000"]] * 2


def test_calibrating_times_every_kind_of_device_once_and_keeps_nothing_on_it(
    child: Callable[..., FakeGpuChild],
) -> None:
    code = (
        "from alkahest._plugins import calls\n"
        "from alkahest.backends.nvptx import tuning\n"
        "tuning.THREADS, tuning.QUICK_ROUNDS = (128,), 1\n"
        "cases = list(tuning.archetypes())\n"
        "tuning.archetypes = lambda: [case for case in cases if case.work == 'memory']\n"
        "found = calls.tune('nvptx', quick=True)\n"
        "result = [[t.device, t.case] for t in found]\n"
    )
    settings = {"FAKE_CUDA_COUNT": "2", "FAKE_CUDA_CAPABILITY": "90,75", "FAKE_CUDA_IDLE": "1"}
    with child(**settings, FAKE_CUDA_MEMORY=str(1 << 20)) as process:
        found = process.ask(code)
        calls = process.calls()
    other = "Fake GPU 1, sm_75, driver for CUDA 13.0"
    cases = "float64 memory", "float32 memory"
    assert found == [[device, case] for device in (FAKE, other) for case in cases]
    assert sum(c.startswith("allocate") for c in calls) == 2
    assert sum(c.startswith("release") for c in calls) == 2


def test_the_doctor_says_what_was_tuned(child: Callable[..., FakeGpuChild], place: Path) -> None:
    code = (
        "from alkahest.backends.nvptx.doctor import diagnose\n"
        "result = [row.detail for row in diagnose() if row.name == 'GPU 0'][0]\n"
    )
    with child() as process:
        assert "`alkahest calibrate` tunes them" in process.ask(code)
        keep([attrs.evolve(found, device=FAKE) for found in FOUND])
        shown = process.ask(code)
    assert shown.endswith("3 shapes of kernels tuned, better: float64 memory, float32 compute")


def test_the_file_holds_them_by_name(place: Path) -> None:
    assert registry.snapshot().owner("nvptx")
    keep(FOUND)
    stored_rows = json.loads(place.read_text())["backends"]["nvptx"]["tuned"]
    assert stored_rows[0] == {
        "device": H200,
        "case": "float64 memory",
        "settings": {"points": 1, "threads": 256},
        "gain": 1.1,
    }
