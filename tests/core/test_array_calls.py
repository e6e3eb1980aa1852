"""Arrays of a library that the backend has named: taken as they are, new ones of it out."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import fakearrays
import numpy as np
import pytest
from arithmetic import Arithmetic, ArithmeticEvaluator
from fakearrays import Producer
from refusals import refused

from alkahest import array_libraries
from alkahest.compiled import compile_expr
from alkahest.expr import ExprPool
from alkahest.plugin import ArrayBatch, Artifact, BackendInfo, Batch, Outcome, hookimpl
from alkahest.testing.plugins import isolated_plugins

x, y = ExprPool().symbols("x y")
XS = np.arange(6.0)


class Grid:
    """An array of the library ``grids``, whose elements nobody but it may look at."""

    def __init__(self, values: Any) -> None:
        self.secret = np.asarray(values)
        self.shape = self.secret.shape
        self.dtype = self.secret.dtype

    def __array_namespace__(self) -> Any:
        return NAMESPACE


Grid.__module__ = "grids.core"


def _secret(value: Any) -> Any:
    return value.secret if isinstance(value, Grid) else value


NAMESPACE = SimpleNamespace(
    float64=np.float64,
    float32=np.float32,
    complex128=np.complex128,
    asarray=lambda value, dtype: Grid(np.asarray(_secret(value), dtype)),
    broadcast_to=lambda grid, shape: Grid(np.broadcast_to(grid.secret, shape)),
    stack=lambda grids: Grid(np.stack([g.secret for g in grids])),
    reshape=lambda grid, shape: Grid(grid.secret.reshape(shape)),
    zeros=lambda shape: Grid(np.zeros(shape)),
)


@attrs.define
class GridEvaluator(ArithmeticEvaluator):
    """Evaluates grids, and notes the batches."""

    lost: bool = False

    def evaluate_arrays(self, batch: ArrayBatch) -> Outcome:
        assert all(type(column) is Grid for column in batch.columns)
        self.batches.append(batch)  # type: ignore[arg-type]
        flat = tuple(column.secret.reshape(-1) for column in batch.columns)
        n = int(np.prod(batch.shape))
        outputs = self.evaluate(Batch(columns=flat, n=n)).outputs[self.lost :]
        return Outcome(
            outputs=tuple(Grid(o.reshape(batch.shape)) for o in outputs), report={"kind": "grids"}
        )


@attrs.define
class Grids(Arithmetic):
    """The plugin."""

    name: str = "gridder"
    lost: bool = False
    evaluator: Any = GridEvaluator

    @hookimpl
    def alkahest_register_backends(self) -> list[BackendInfo]:
        (info,) = Arithmetic.alkahest_register_backends(self)
        return [attrs.evolve(info, arrays=("grids",))]

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> ArithmeticEvaluator:
        extra = (self.lost,) if self.evaluator is GridEvaluator else ()
        return self.evaluator(artifact.program, device or 0, self.batches, *extra)


@pytest.fixture
def grids() -> Iterator[Grids]:
    """The only plugin."""
    plugin = Grids()
    with isolated_plugins(plugin):
        yield plugin


def weigh(**choices: Any) -> Any:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y], backend="gridder", **choices)


def test_grids_come_back_as_grids_of_the_broadcast_shape(grids: Grids) -> None:
    fn = weigh()
    got = fn(Grid(XS[:, None]), Grid(XS[:4]))
    assert type(got) is Grid
    assert np.array_equal(got.secret, XS[:, None] + 2 * XS[:4])
    assert grids.batches[0].shape == (6, 4)
    assert fn.report["kind"] == "grids"
    assert fn.report["n"] == 24


def test_a_grid_beside_numbers_lists_and_numpy_arrays_makes_the_result_a_grid(grids: Grids) -> None:
    fn = weigh()
    for other in (3, 3.0, [3.0] * 6, np.full(6, 3, np.int32), np.float32(3)):
        assert fn(other, Grid(XS)).secret.tolist() == (3 + 2 * XS).tolist()
    assert fn.call_batch([Grid(XS), 1.0]).secret.tolist() == (XS + 2).tolist()


def test_without_a_grid_the_same_function_works_in_host_memory(grids: Grids) -> None:
    assert weigh()(XS, 1.0).tolist() == (XS + 2).tolist()
    assert all(type(batch) is Batch for batch in grids.batches)


def test_narrow_and_integer_grids_widen(grids: Grids) -> None:
    for dtype in (np.int16, bool, np.float32, np.uint8):
        got = weigh()(Grid(XS.astype(dtype)), 1.0)
        assert got.dtype == np.float64
        assert got.secret.tolist() == (XS.astype(dtype) + 2.0).tolist()


@pytest.mark.parametrize("count", [None, 2])
def test_derivatives_are_stacked_into_grids(grids: Grids, count: int | None) -> None:
    exprs = [x * x * y, x - y * y]
    fn = compile_expr(
        exprs[0] if count is None else exprs, [x, y], backend="gridder", derivatives=2
    )
    want = fn(XS[:, None], XS[:3])
    got = fn(Grid(XS[:, None]), Grid(XS[:3]))
    assert [type(array) for array in got] == [Grid] * 3
    for mine, numpys in zip(got, want, strict=True):
        assert mine.secret.tolist() == numpys.tolist()


def test_a_gradient_without_variables_has_its_axis_of_length_zero(grids: Grids) -> None:
    fn = compile_expr(x * y, [x, y], backend="gridder", derivatives=1, wrt=[])
    value, gradient = fn(Grid(XS), 2.0)
    assert value.shape == (6,)
    assert gradient.shape == (0, 6)


@pytest.mark.parametrize(
    ("columns", "choices", "code", "shown"),
    [
        ((Grid(XS),), {}, "E-INPUT-001", "expected 2 columns"),
        ((Grid(XS), Grid(XS[:4])), {}, "E-INPUT-002", "do not broadcast"),
        ((Grid(XS), [None]), {}, "E-INPUT-003", "column 1 ('y')"),
        ((Grid(XS.astype("U4")), 1.0), {}, "E-INPUT-003", "holds no numbers"),
        ((Grid(XS * 1j), 1.0), {}, "E-INPUT-004", "column 0 ('x') has dtype complex128"),
        ((Grid(XS), 1.0), {"out": np.empty(6)}, "E-INPUT-009", "out= was given"),
        ((Grid(XS), 1.0), {"stream": 1}, "E-INPUT-011", "stream= was given"),
        ((Grid(XS), 1.0), {"n": 5}, "E-INPUT-006", "n=5"),
        ((Grid(XS), 1.0), {"threads": 0}, "E-INPUT-011", "threads"),
        ((Grid(XS), Producer(XS)), {}, "E-INPUT-010", "column 1 ('y') is a Producer on a device"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    grids: Grids, columns: Any, choices: Any, code: str, shown: str
) -> None:
    with refused(code, shown):
        weigh()(*columns, **choices)
    assert grids.batches == []


def test_every_device_at_once_is_refused(grids: Grids) -> None:
    with refused("E-INPUT-011", 'device="all" was given'):
        weigh(device="all")(Grid(XS), 1.0)


def test_wider_grids_need_a_permission_and_imaginary_parts_are_never_dropped(grids: Grids) -> None:
    with refused("E-INPUT-004", "wider than float32"):
        weigh(dtype="float32")(Grid(XS), 1.0)
    assert weigh(dtype="float32", casting="same_kind")(Grid(XS), 1.0).dtype == np.float32
    with refused("E-INPUT-004", "imaginary"):
        weigh(casting="same_kind")(Grid(XS * 1j), 1.0)


def test_a_library_that_would_round_is_not_given_the_chance(
    grids: Grids, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = array_libraries.Library(
        name="grids", holds=lambda module, dtype: dtype.replace("64", "32")
    )
    monkeypatch.setitem(array_libraries.LIBRARIES, "grids", row)
    module = type(fakearrays)("grids")
    with fakearrays.installed(module), refused("E-INPUT-004", "would hold that as float32"):
        weigh()(Grid(XS), 1.0)


def test_a_backend_that_breaks_its_promise_is_named() -> None:
    with isolated_plugins(Grids(lost=True)), refused("E-PLUGIN-003", "'gridder'", "shapes []"):
        weigh()(Grid(XS), 1.0)
    with (
        isolated_plugins(Grids(evaluator=ArithmeticEvaluator)),
        refused("E-PLUGIN-003", "'gridder' has no evaluator for arrays"),
    ):
        weigh()(Grid(XS), 1.0)


def test_names_of_libraries_are_a_tuple() -> None:
    with pytest.raises(TypeError):
        BackendInfo(name="jax", features=(), arrays="jax")  # type: ignore[arg-type]
