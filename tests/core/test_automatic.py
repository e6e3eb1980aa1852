"""Which backend takes a call, and what the report says about it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest import automatic, calibration
from alkahest._plugins import calls
from alkahest.automatic import Automatic, placement_of
from alkahest.calibration import Calibration
from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import CodegenError
from alkahest.executable import Executable
from alkahest.expr import ExprPool
from alkahest.plugin import Artifact, BackendInfo, DeviceInfo, Estimate, Outcome, hookimpl
from alkahest.program import Program, lower
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Keep = Callable[..., Calibration]

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
ADDERS = {"gpu": ("adder 0", "adder 1"), "plain": ("adder 0", "adder 1")}

# A column costs 1 ns per byte to read and to write, on both; a call costs 1 µs on both.
SLOW, QUICK = 1e-6, 1e-12


@pytest.fixture(autouse=True)
def no_preference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALKAHEST_BACKEND", raising=False)


@pytest.fixture
def plugins() -> Iterator[dict[str, Arithmetic]]:
    """A host backend and one with devices, both of which know their arithmetic."""
    found = {"plain": Arithmetic(), "gpu": Arithmetic(placement="cuda")}
    for name, plugin in found.items():
        plugin.name = name
    with isolated_plugins(*((f"the {name}", plugin) for name, plugin in found.items())):
        yield found


def chosen(fn: CompiledFn, n: int) -> tuple[str, str]:
    """Backend and reason of a call with ``n`` points, whose values are right."""
    assert np.array_equal(fn(np.arange(float(n))), np.arange(float(n)) + 1)
    return fn.report["backend"], fn.report["reason"]


# Host columns


def test_without_a_calibration_host_columns_stay_on_the_host(
    plugins: dict[str, Arithmetic], place: object
) -> None:
    fn = compile_expr(x + 1, [x])
    assert chosen(fn, 100) == ("plain", "host columns, no calibration")
    assert plugins["gpu"].evaluators == 0


def test_a_backend_that_wins_by_the_margin_takes_long_batches_only(
    plugins: dict[str, Arithmetic], keep: Keep
) -> None:
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    fn = compile_expr(x + 1, [x])
    # Without points both take a microsecond, which is no win.
    assert chosen(fn, 0) == (
        "plain",
        "host columns, predicted 1 µs on plain against 1 µs on gpu",
    )
    assert chosen(fn, 1000) == ("gpu", "predicted 17 µs on gpu against 1.02 ms on plain")
    assert chosen(fn, 1000)[0] == "gpu"
    assert chosen(fn, 0)[0] == "plain"
    assert plugins["gpu"].evaluators == 1


@pytest.mark.parametrize(
    ("point", "backend"),
    [(2.2e-9, "gpu"), (1.5e-9, "plain"), (1e-13, "plain")],
    ids=["13 % slower", "9 % slower", "quicker"],
)
def test_a_win_of_less_than_a_tenth_is_none(
    plugins: dict[str, Arithmetic], keep: Keep, point: float, backend: str
) -> None:
    # 16 ns per point for the columns, on either backend.
    keep(plain=point, gpu=QUICK, devices=ADDERS)
    assert chosen(compile_expr(x + 1, [x]), 1 << 16)[0] == backend


def test_transfers_count(plugins: dict[str, Arithmetic], keep: Keep) -> None:
    kept = keep(plain=5e-9, gpu=QUICK, devices=ADDERS)
    far = attrs.evolve(kept.backends["gpu"].models["float64"], read=calibration.Cost(0.0, 10e-9))
    gpu = attrs.evolve(kept.backends["gpu"], models={"float64": far})
    calibration.store(attrs.evolve(kept, backends={**kept.backends, "gpu": gpu}))
    assert chosen(compile_expr(x + 1, [x]), 1 << 16)[0] == "plain"


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"plain": SLOW}, "host columns, the calibration lacks gpu"),
        ({"gpu": QUICK}, "host columns, the calibration lacks plain"),
        (
            {"plain": SLOW, "gpu": QUICK, "plugin": "abacus 3000"},
            "host columns, the calibration of plain is of abacus 3000, here is registered by",
        ),
        (
            {"plain": SLOW, "gpu": QUICK, "devices": {"gpu": ("abacus",)}},
            "but gpu: the calibration is of other devices of gpu: abacus",
        ),
    ],
    ids=["other lacking", "host lacking", "plugin", "devices"],
)
def test_what_a_calibration_cannot_tell_leaves_columns_on_the_host(
    plugins: dict[str, Arithmetic], keep: Keep, stored: Any, reason: str
) -> None:
    keep(**stored)
    backend, shown = chosen(compile_expr(x + 1, [x]), 1000)
    assert backend == "plain"
    assert reason in shown


def test_a_program_of_another_dtype_is_not_predicted(
    plugins: dict[str, Arithmetic], keep: Keep
) -> None:
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    fn = compile_expr(x + 1, [x], dtype="float32")
    fn(np.zeros(10, np.float32))
    assert fn.report["reason"] == "host columns, the calibration lacks float32 on plain"


def test_a_driver_is_only_asked_when_its_backend_would_win(
    plugins: dict[str, Arithmetic], keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    devices = calls.devices

    def note(backend: str) -> tuple[DeviceInfo, ...]:
        asked.append(backend)
        return devices(backend)

    monkeypatch.setattr(calls, "devices", note)
    keep(plain=QUICK, gpu=SLOW, devices=ADDERS)
    chosen(compile_expr(x + 1, [x]), 1000)
    assert set(asked) == {"plain"}
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    chosen(compile_expr(x + 1, [x]), 1000)
    assert set(asked) == {"plain", "gpu"}


def test_a_choice_is_made_once_for_similar_lengths(
    plugins: dict[str, Arithmetic], place: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[int] = []
    decide = Automatic._decide

    def note(self: Automatic, n: int, placement: str, device: int | str | None) -> Any:
        decided.append(n)
        return decide(self, n, placement, device)

    monkeypatch.setattr(Automatic, "_decide", note)
    fn = compile_expr(x + 1, [x])
    for n in (1000, 1001, 1000, 1023, 500, 520, 1024, 2**20, 2**20 + 1):
        fn(np.zeros(n))
    assert decided == [1000, 500, 520, 1024, 2**20]


# Backends that know their cost, or fail


@attrs.frozen(kw_only=True, eq=False)
class Costly(NullPlugin):
    """Says what a call costs; may refuse to compile."""

    seconds: Any = None
    error: Exception | None = None

    @hookimpl
    def alkahest_estimate(
        self, backend: str, program: Program, n: int, placement: str
    ) -> Estimate | None:
        assert placement == "host"
        if isinstance(self.seconds, Exception):
            raise self.seconds
        return Estimate(seconds=self.seconds)

    @hookimpl
    def alkahest_codegen(
        self, backend: str, program: Program, target: str | None, options: Any
    ) -> Artifact:
        if self.error is not None:
            raise self.error
        return Artifact(kind="null", code="", program=program)


def report_with(*plugins: NullPlugin, device: int | str | None = None) -> dict[str, Any]:
    with isolated_plugins(*plugins):
        fn = compile_expr(x + 1, [x], device=device)
        fn(np.zeros(100))
        return fn.report


def gpu(**fields: Any) -> Costly:
    return Costly(backend="gpu", placement="cuda", priority=100, **fields)


HOST = Costly(backend="plain", seconds=9.8e-3)


def test_the_backends_own_estimates_decide() -> None:
    report = report_with(HOST, gpu(seconds=3.1e-3))
    assert report["backend"] == "gpu"
    assert report["reason"] == "predicted 3.1 ms on gpu against 9.8 ms on plain"
    report = report_with(HOST, gpu(seconds=2.0))
    assert report["backend"] == "plain"
    assert report["reason"] == "host columns, predicted 9.8 ms on plain against 2 s on gpu"


def test_the_quickest_of_several_wins() -> None:
    other = Costly(backend="gpu2", placement="cuda", seconds=1e-3)
    assert report_with(HOST, gpu(seconds=3e-3), other)["backend"] == "gpu2"
    assert report_with(HOST, gpu(seconds=0.5e-3), other)["backend"] == "gpu"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seconds": float("nan")}, "against nan µs on gpu"),
        ({"seconds": RuntimeError("oops")}, "the estimate of gpu failed: RuntimeError: oops"),
        ({"seconds": 1e-3, "devices": 0}, "but gpu: no device here"),
        ({"seconds": 1e-3, "refuses": {"add": "too hard"}}, "no other backend"),
        (
            {"seconds": 1e-3, "error": CodegenError("E-JIT-002", "no way")},
            "but gpu: [E-JIT-002] no way",
        ),
    ],
    ids=["nan", "raises", "no device", "refuses", "codegen"],
)
def test_a_backend_that_cannot_take_the_call_does_not_and_the_report_says_why(
    fields: Any, reason: str
) -> None:
    report = report_with(HOST, gpu(**fields))
    assert report["backend"] == "plain"
    assert reason in report["reason"]


def test_a_device_is_only_taken_from_a_backend_that_has_it() -> None:
    report = report_with(HOST, gpu(seconds=1e-3, devices=2), device=1)
    assert (report["backend"], report["device"]) == ("gpu", 1)
    assert report["reason"] == "host columns, no backend for them here"
    assert report_with(HOST, gpu(seconds=1e-3, devices=2), device=0)["backend"] == "gpu"


def test_the_only_host_backend_needs_no_prediction() -> None:
    assert report_with(HOST)["reason"] == "host columns, no other backend"


def test_without_a_host_backend_the_device_is_used() -> None:
    report = report_with(gpu(seconds=1.0))
    assert (report["backend"], report["reason"]) == (
        "gpu",
        "host columns, no backend for them here",
    )


# Columns elsewhere


class OnDevice:
    """An array of some other library, in device memory."""

    __cuda_array_interface__: ClassVar = {"shape": (3,), "typestr": "<f8", "data": (1, True)}


class OnMetal:
    """An array in the memory of a device that nobody here knows."""

    def __dlpack__(self) -> None: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        return 8, 0


@pytest.mark.parametrize(
    ("columns", "place"),
    [
        ([], "host"),
        ([1.0, [2.0], np.ones(2)], "host"),
        ([1.0, OnDevice()], "cuda"),
        ([OnMetal()], "dlpack type 8"),
    ],
)
def test_the_first_column_elsewhere_says_where_the_columns_are(columns: Any, place: str) -> None:
    assert placement_of(columns) == place


def pick(placement: str) -> automatic.Choice:
    program = lower([x + 1], [x])

    def compile_for(info: BackendInfo) -> Executable:
        return Executable(program, info, casting="safe", target=None, options={})

    return Automatic(program, compile_for, None).pick(100, placement, None)


def test_columns_on_a_device_go_where_they_are(plugins: dict[str, Arithmetic]) -> None:
    choice = pick("cuda")
    assert (choice.executable.backend, choice.reason) == ("gpu", "columns on cuda")


def test_columns_that_no_backend_reads_are_left_to_the_host_backend_to_refuse(
    plugins: dict[str, Arithmetic],
) -> None:
    choice = pick("dlpack type 8")
    assert choice.reason == "columns on dlpack type 8, which no backend here reads"
    with refused("E-INPUT-010", "DLPack type 8"):
        compile_expr(x + 1, [x])(OnMetal())


# The function


def test_a_named_backend_is_used_whatever_is_predicted(
    plugins: dict[str, Arithmetic], keep: Keep
) -> None:
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    assert chosen(compile_expr(x + 1, [x], backend="plain"), 1000) == ("plain", "asked for by name")


def test_the_backend_of_an_automatic_function_is_the_one_for_unpredicted_host_columns(
    plugins: dict[str, Arithmetic], keep: Keep
) -> None:
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    fn = compile_expr(x + 1, [x])
    chosen(fn, 1000)
    assert fn.report["backend"] == "gpu"
    assert fn.backend == "plain"
    assert "backend=plain" in repr(fn)


def test_an_automatic_function_travels_as_one(plugins: dict[str, Arithmetic], keep: Keep) -> None:
    data = pickle.dumps(compile_expr(x + 1, [x]))
    named = pickle.dumps(compile_expr(x + 1, [x], backend="plain"))
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    assert chosen(pickle.loads(data), 1000)[0] == "gpu"
    assert chosen(pickle.loads(named), 1000)[0] == "plain"


def test_options_are_checked_by_the_backend_for_host_columns(
    plugins: dict[str, Arithmetic],
) -> None:
    assert compile_expr(x, [x], flavour="plain")._options == {"flavour": "plain"}
    with refused("E-INPUT-011", "smell"):
        compile_expr(x, [x], smell="none")


def test_a_stream_is_refused_where_the_call_stays_on_the_host(
    plugins: dict[str, Arithmetic], keep: Keep
) -> None:
    fn = compile_expr(x + 1, [x])
    with refused("E-INPUT-011", "backend 'plain' runs on the host"):
        fn(np.zeros(1000), stream=7)
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    fn = compile_expr(x + 1, [x])
    fn(np.zeros(1000), stream=7)
    assert plugins["gpu"].batches[-1].stream == 7


def test_outputs_of_a_chosen_backend_are_checked_too(
    plugins: dict[str, Arithmetic], keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(plain=SLOW, gpu=QUICK, devices=ADDERS)
    fn = compile_expr(x + 1, [x])
    fn(np.zeros(1000))
    monkeypatch.setattr("arithmetic.ArithmeticEvaluator.evaluate", lambda *_: Outcome(outputs=()))
    with refused("E-PLUGIN-003", "backend 'gpu' returned outputs"):
        fn(np.zeros(1000))
