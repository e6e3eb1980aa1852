"""What a call accepts as columns, and how it refuses the rest."""

from __future__ import annotations

import array
import sys
import types
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputError, InputTypeError
from alkahest.expr import ExprPool
from alkahest.testing.plugins import isolated_plugins

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


@pytest.fixture
def plugin() -> Iterator[Arithmetic]:
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


@pytest.fixture
def weigh(plugin: Arithmetic) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y])


@pytest.fixture
def twice(plugin: Arithmetic) -> CompiledFn:
    return compile_expr(2 * x, [x])


# The number of columns


def test_a_missing_column_is_refused_with_the_names_of_the_inputs(weigh: CompiledFn) -> None:
    with refused("E-INPUT-001", "expected 2 columns (x, y), got 1"):
        weigh.call_batch([[1.0]])
    with refused("E-INPUT-001", "got 3"):
        weigh(1.0, 2.0, 3.0)


def test_columns_passed_in_one_list_are_told_to_be_unpacked(weigh: CompiledFn) -> None:
    with pytest.raises(InputError) as caught:
        weigh([[1.0, 2.0], [3.0, 4.0]])
    assert "fn(*columns)" in caught.value.remediation


@pytest.mark.parametrize("columns", [{0: [1.0]}, {1.0}, iter([[1.0]]), np.ones(3), "ab", None, 3])
def test_a_batch_that_is_no_list_of_columns_is_refused(weigh: CompiledFn, columns: Any) -> None:
    with refused("E-INPUT-008", "call_batch needs a list of columns"):
        weigh.call_batch(columns)


def test_rows_of_a_two_dimensional_array_are_columns(weigh: CompiledFn) -> None:
    table = np.arange(6.0).reshape(2, 3)
    assert weigh.call_batch(table).tolist() == [6.0, 9.0, 12.0]
    assert weigh.call_batch(table.T[:, :2].T).tolist() == [6.0, 9.0, 12.0]


# Lengths and shapes


def test_ragged_columns_are_refused_by_name(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 1 ('y') has 2 rows", "column 0 ('x') has 3"):
        weigh.call_batch([[1.0, 2.0, 3.0], [1.0, 2.0]])


def test_a_column_of_length_one_is_not_spread_in_a_batch(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 1 ('y') has 1 rows"):
        weigh.call_batch([np.ones(5), np.ones(1)])


def test_scalars_of_every_kind_are_spread_over_the_batch(
    weigh: CompiledFn, plugin: Arithmetic
) -> None:
    for scalar in (
        10.0,
        10,
        np.float64(10),
        np.array(10.0),
        Fraction(10),
        Decimal(10),
        np.int8(10),
    ):
        assert weigh.call_batch([np.ones(5), scalar]).tolist() == [21.0] * 5
    assert plugin.batches[-1].columns[1].strides == (0,)


def test_a_two_dimensional_column_is_refused_in_a_batch(weigh: CompiledFn) -> None:
    with refused("E-INPUT-005", "column 1 ('y') has shape (2, 2)"):
        weigh.call_batch([np.ones(2), np.ones((2, 2))])


def test_a_call_broadcasts_like_a_ufunc(weigh: CompiledFn) -> None:
    a, b = np.arange(3.0).reshape(3, 1), np.arange(4.0)
    np.testing.assert_array_equal(weigh(a, b), a + 2 * b)
    np.testing.assert_array_equal(weigh(np.ones(1), b), 1 + 2 * b)
    np.testing.assert_array_equal(
        weigh(a.T, np.asfortranarray(np.ones((2, 3)))), a.T + np.full((2, 3), 2)
    )


def test_a_call_with_scalars_gives_a_scalar(weigh: CompiledFn) -> None:
    result = weigh(1, 2)
    assert type(result) is np.float64
    assert result == 5.0


def test_shapes_that_do_not_broadcast_are_refused_by_name(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 0 ('x') (3,)", "column 1 ('y') (2,)"):
        weigh(np.ones(3), np.ones(2))


def test_an_empty_batch_gives_empty_results(weigh: CompiledFn) -> None:
    assert weigh.call_batch([np.zeros(0), np.empty(0)]).shape == (0,)
    assert weigh.call_batch([[], []]) == []
    assert weigh(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_constants_keep_the_shape_of_the_batch(plugin: Arithmetic) -> None:
    two = compile_expr(pool.integer(2), [x])
    assert two.call_batch([np.arange(4.0)]).tolist() == [2.0] * 4
    assert two(np.ones((2, 3))).tolist() == [[2.0] * 3] * 2


def test_the_batch_length_is_given_where_no_column_tells_it(
    plugin: Arithmetic, weigh: CompiledFn
) -> None:
    three = compile_expr(pool.integer(3), [])
    assert three.call_batch([], n=4).tolist() == [3.0] * 4
    assert three(n=2).tolist() == [3.0, 3.0]
    assert three().shape == ()
    assert three.call_batch([], out=np.zeros(3)).tolist() == [3.0] * 3
    assert weigh.call_batch([1.0, 2.0], n=3).tolist() == [5.0] * 3
    assert weigh(1.0, 2.0, n=3).tolist() == [5.0] * 3
    with refused("E-INPUT-006", "no column tells the number of points"):
        three.call_batch([])


def test_a_batch_length_that_contradicts_the_columns_is_refused(weigh: CompiledFn) -> None:
    with refused("E-INPUT-006", "column 0 ('x') has 2 rows, n=3"):
        weigh.call_batch([np.ones(2), 1.0], n=3)
    with refused("E-INPUT-006", "shape (2,), n=3"):
        weigh(np.ones(2), 1.0, n=3)
    for call in (weigh, weigh.call_batch):
        with pytest.raises(InputError) as caught:
            call(np.ones(2), 1.0, n=3) if call is weigh else call([np.ones(2), 1.0], n=3)
        assert caught.value.remediation.startswith("Leave out n=")


@pytest.mark.parametrize("options", [{"n": -1}, {"n": 2.5}, {"n": True}, {"threads": 0}])
def test_counts_that_are_no_counts_are_refused(weigh: CompiledFn, options: Any) -> None:
    with refused("E-INPUT-011", next(iter(options))):
        weigh.call_batch([1.0, 2.0], **options)


# Dtypes


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4"])
def test_narrower_dtypes_widen(twice: CompiledFn, dtype: str) -> None:
    result = twice(np.array([1, 0, 1]).astype(dtype))
    assert result.dtype == np.float64
    assert result.tolist() == [2.0, 0.0, 2.0]


def test_large_integers_round_to_the_nearest_double(twice: CompiledFn) -> None:
    assert twice(np.array([2**53 + 1]))[0] == 2.0**54
    assert twice(np.array([2**64 - 1], dtype=np.uint64))[0] == 2.0**65
    assert twice.call_batch([[2**53 + 1, 2**70]]) == [2.0**54, 2.0**71]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, 2.0], dtype=object),
        np.array(["1", "2"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([1], dtype="m8[s]"),
        np.zeros(2, dtype=[("a", "f8")]),
        np.array([b"ab"]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_dtypes_without_numbers_are_refused_by_name(twice: CompiledFn, column: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x') has dtype"):
        twice(column)


@pytest.mark.skipif(np.dtype("longdouble").itemsize == 8, reason="longdouble is double here")
def test_extended_precision_is_wider_than_a_float64_program(plugin: Arithmetic) -> None:
    column = np.array([1.5], dtype=np.longdouble)
    with refused("E-INPUT-004", "column 0 ('x') has dtype", "wider than float64"):
        compile_expr(2 * x, [x])(column)
    assert compile_expr(2 * x, [x], casting="same_kind")(column).tolist() == [3.0]


def test_float64_into_a_float32_program_needs_same_kind(plugin: Arithmetic) -> None:
    column = np.array([0.1, 1e300])
    with refused("E-INPUT-004", "column 0 ('x') has dtype float64, wider than float32"):
        compile_expr(2 * x, [x], dtype="float32")(column)
    result = compile_expr(2 * x, [x], dtype="float32", casting="same_kind")(column)
    assert result.dtype == np.float32
    assert result.tolist() == [np.float32(0.1) * 2, np.inf]


def test_python_numbers_and_lists_always_convert(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 2 * y, [x, y], dtype="float32")
    assert fn.call_batch([[0.5, 1, True], np.float64(0.25)]).tolist() == [1.0, 1.5, 1.5]
    assert fn(0.1, 0).dtype == np.float32


def test_complex_into_a_real_program_keeps_the_imaginary_part_or_is_refused(
    plugin: Arithmetic,
) -> None:
    column = np.array([1 + 0j, 2 + 1j])
    fn = compile_expr(2 * x, [x])
    same_kind = compile_expr(2 * x, [x], casting="same_kind")
    with refused("E-INPUT-004", "column 0 ('x') has dtype complex128", "float64 is real"):
        fn(column)
    with refused("E-INPUT-004", "column 0 ('x'), row 1", "imaginary part"):
        same_kind(column)
    assert same_kind(column[:1]).tolist() == [2.0]
    with refused("E-INPUT-004", "row 1: 2j is complex"):
        fn.call_batch([[1.0, 2j]])
    with refused("E-INPUT-004", "is complex"):
        fn(1j)


def test_real_columns_widen_into_a_complex_program(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 2 * y, [x, y], dtype="complex128")
    assert fn.call_batch([[1, 2j], np.array([0.5, 0.5])]).tolist() == [2.0, 1 + 2j]


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i2", "<f8"])
def test_every_byte_order_is_read_as_the_numbers_it_means(twice: CompiledFn, dtype: str) -> None:
    assert twice(np.array([1.0, 2.5, -3.0]).astype(dtype)).tolist()[2] == -6.0


def test_masked_arrays_are_refused_by_name(twice: CompiledFn) -> None:
    with refused("E-INPUT-003", "column 0 ('x') is a masked array"):
        twice(np.ma.array([1.0, 2.0], mask=[False, True]))


@pytest.mark.parametrize("bad", ["2", None, [1.0], object(), b"2", Ellipsis])
def test_a_list_with_something_else_than_numbers_names_the_row(twice: CompiledFn, bad: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x'), row 1"):
        twice.call_batch([[1.0, bad]])


def test_a_list_of_numeric_text_is_no_list_of_numbers(twice: CompiledFn) -> None:
    with refused("E-INPUT-003", "row 0: '1' is not a number"):
        twice.call_batch([["1", "2"]])


def test_exact_numbers_in_lists_convert(twice: CompiledFn) -> None:
    assert twice.call_batch([[Fraction(1, 4), Decimal("0.5"), 10**20]]) == [0.5, 1.0, 2e20]
    with refused("E-INPUT-004", "row 1", "too large"):
        twice.call_batch([[1, 10**400]])


@pytest.mark.parametrize("column", [{1.0}, {1: 2}, (v for v in [1.0]), "12", None, lambda: 1])
def test_things_that_hold_no_numbers_are_refused_by_type(twice: CompiledFn, column: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x') holds no numbers", type(column).__name__):
        twice(column)


@pytest.mark.parametrize(
    "column", [range(1, 4), array.array("d", [1, 2, 3]), memoryview(np.arange(1.0, 4.0))]
)
def test_sequences_and_buffers_are_read(twice: CompiledFn, column: Any) -> None:
    result = twice.call_batch([column])
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [2.0, 4.0, 6.0]


# Memory layout


def test_strided_reversed_and_read_only_views_are_read_in_place(
    twice: CompiledFn, plugin: Arithmetic
) -> None:
    table = np.arange(8.0).reshape(4, 2)
    assert twice(table[:, 0]).tolist() == [0, 4, 8, 12]
    assert twice(table[::-1, 1]).tolist() == [14, 10, 6, 2]
    assert twice(table.T[1][::2]).tolist() == [2, 10]
    table.flags.writeable = False
    assert twice(table[:, 1]).tolist() == [2, 6, 10, 14]
    assert all(np.shares_memory(batch.columns[0], table) for batch in plugin.batches)


def test_a_read_only_memory_map_is_read_without_copying(
    twice: CompiledFn, plugin: Arithmetic, tmp_path: Path
) -> None:
    np.arange(3.0).tofile(tmp_path / "column")
    column = np.memmap(tmp_path / "column", mode="r")
    values = column.view("f8")
    assert twice(values).tolist() == [0, 2, 4]
    assert type(twice(values)) is np.ndarray
    assert np.shares_memory(plugin.batches[0].columns[0], column)


def test_unaligned_columns_are_read(twice: CompiledFn, plugin: Arithmetic) -> None:
    column = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype="f8", offset=1)
    assert twice(column).tolist() == [0, 2, 4]
    assert plugin.batches[0].columns[0].flags.aligned


def test_one_array_may_serve_as_two_columns(weigh: CompiledFn) -> None:
    column = np.arange(3.0)
    assert weigh.call_batch([column, column]).tolist() == [0, 3, 6]


# Kinds of containers


def test_lists_come_out_only_if_every_column_is_a_list_or_tuple(weigh: CompiledFn) -> None:
    assert weigh.call_batch([[1, 2], (3, 4)]) == [7.0, 10.0]
    assert isinstance(weigh.call_batch([[1, 2], np.ones(2)]), np.ndarray)
    assert isinstance(weigh.call_batch([[1, 2], 3.0]), np.ndarray)
    assert isinstance(weigh([1, 2], [3, 4]), np.ndarray)


def test_a_compiled_list_gives_a_tuple_of_lists_for_lists(plugin: Arithmetic) -> None:
    fn = compile_expr([x + y, x < y], [x, y])
    assert fn.call_batch([[1, 2], [3, 0]]) == ([4.0, 2.0], [True, False])


class Tensor:
    """An array of another library, which shares memory through DLPack."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class DeviceTensor(Tensor):
    """The same on a device that the host cannot read."""

    kind = 2

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, 0)

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("a device column must not be touched")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that Tensor belongs to, with its ``from_dlpack``."""
    module = types.ModuleType("tensors")
    module.from_dlpack = lambda producer: Tensor(np.from_dlpack(producer))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensors", module)
    monkeypatch.setattr(Tensor, "__module__", "tensors.core")


@pytest.mark.usefixtures("library")
def test_arrays_of_another_library_come_back_as_its_arrays(weigh: CompiledFn) -> None:
    result = weigh.call_batch([Tensor([1.0, 2.0]), np.ones(2)])
    assert isinstance(result, Tensor)
    assert result.values.tolist() == [3.0, 4.0]
    assert weigh(Tensor([[1.0], [2.0]]), [1.0, 2.0]).values.tolist() == [[3, 5], [4, 6]]


def test_the_array_api_namespace_of_a_library_is_preferred(weigh: CompiledFn) -> None:
    class Standard(Tensor):
        def __array_namespace__(self) -> Any:
            return types.SimpleNamespace(from_dlpack=lambda p: ("made", np.from_dlpack(p)))

    made, values = weigh.call_batch([Standard([1.0, 2.0]), 1.0])
    assert made == "made"
    assert values.tolist() == [3.0, 4.0]


def test_a_producer_without_a_library_gives_numpy_arrays(weigh: CompiledFn) -> None:
    assert isinstance(weigh.call_batch([Tensor([1.0]), 1.0]), np.ndarray)


def test_a_producer_that_fails_is_refused_with_its_words(weigh: CompiledFn) -> None:
    class Broken(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("requires gradient")

    with refused("E-INPUT-003", "column 1 ('y')", "Broken", "requires gradient"):
        weigh.call_batch([[1.0], Broken([1.0])])


@pytest.mark.parametrize(("kind", "place"), [(2, "CUDA"), (13, "CUDA"), (10, "DLPack type 10")])
def test_device_columns_are_refused_with_the_remedy(
    twice: CompiledFn, kind: int, place: str
) -> None:
    column = DeviceTensor([1.0])
    column.kind = kind
    with pytest.raises(InputTypeError) as caught:
        twice.call_batch([column])
    assert caught.value.code == "E-INPUT-010"
    assert "column 0 ('x') is a DeviceTensor on a device" in caught.value.message
    assert place in caught.value.message
    assert "host memory" in caught.value.remediation


def test_a_cuda_array_interface_marks_a_device_column(twice: CompiledFn) -> None:
    class DeviceArray:
        __cuda_array_interface__ = {"shape": (1,)}  # noqa: RUF012 - as libraries have it

    with refused("E-INPUT-010", "DeviceArray"):
        twice(DeviceArray())


def test_host_and_device_columns_are_not_mixed(weigh: CompiledFn, plugin: Arithmetic) -> None:
    with refused("E-INPUT-010", "column 1 ('y') is a DeviceTensor", "column 0 ('x') is in host"):
        weigh.call_batch([np.ones(1), DeviceTensor([1.0])])
    assert plugin.batches == []


# Output arrays


def test_results_go_to_out_which_is_returned(weigh: CompiledFn) -> None:
    out = np.zeros(2)
    assert weigh.call_batch([[1, 2], [3, 4]], out=out) is out
    assert out.tolist() == [7.0, 10.0]
    assert weigh(1.0, 2.0, out=np.zeros(())).tolist() == 5.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_out_may_have_any_shape_and_order(weigh: CompiledFn, order: Any) -> None:
    a = np.arange(6.0).reshape(2, 3)
    out = np.zeros((2, 3), order=order)
    weigh(a, 1.0, out=out)
    np.testing.assert_array_equal(out, a + 2)
    wide = np.zeros((2, 6))
    weigh(a, 1.0, out=wide[:, ::2])
    np.testing.assert_array_equal(wide, np.kron(a + 2, [1, 0]))


def test_strided_out_leaves_its_neighbours_alone(weigh: CompiledFn) -> None:
    memory = np.full(9, -1.0)
    weigh.call_batch([np.arange(3.0), 0.0], out=memory[7:0:-3])
    assert memory.tolist() == [-1, 2, -1, -1, 1, -1, -1, 0, -1]


def test_several_outputs_take_several_arrays(plugin: Arithmetic) -> None:
    fn = compile_expr([x + y, x < y], [x, y])
    sums, flags = np.zeros(2), np.empty(2, dtype=bool)
    assert fn([1.0, 2.0], 1.5, out=(sums, flags))[1] is flags
    assert sums.tolist() == [2.5, 3.5]
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize(
    ("out", "fault"),
    [
        (np.zeros(3), "has shape (3,), the result has (2,)"),
        (np.zeros((2, 1)), "has shape (2, 1)"),
        (np.zeros(2, dtype="f4"), "has dtype float32, the output is float64"),
        (np.zeros(2, dtype=">f8"), "has dtype >f8"),
        (np.broadcast_to(np.zeros(1), (2,)), "is read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (0,)), "repeats its memory"),
        ([0.0, 0.0], "out has 2 arrays for 1 outputs"),
        (3.0, "is a float, not a NumPy array"),
        (np.ma.zeros(2), "not a NumPy array"),
        ((), "out has 0 arrays"),
    ],
    ids=str,
)
def test_unusable_out_is_refused_before_anything_runs(
    weigh: CompiledFn, plugin: Arithmetic, out: Any, fault: str
) -> None:
    with refused("E-INPUT-009", fault):
        weigh.call_batch([np.ones(2), 1.0], out=out)
    assert plugin.batches == []


def test_out_arrays_that_share_memory_are_refused(plugin: Arithmetic) -> None:
    fn = compile_expr([x + y, x - y], [x, y])
    memory = np.empty(4)
    with refused("E-INPUT-009", "out array 1 shares memory with out array 0"):
        fn.call_batch([np.ones(3), 1.0], out=[memory[:3], memory[1:]])
    repeating = np.lib.stride_tricks.as_strided(memory, (3,), (0,))
    for out, remedy in (
        ([memory[:3], memory[1:]], "Pass arrays that do not overlap."),
        ([memory[:3]], "Pass one array per output."),
        ([repeating, memory[:3]], "Pass a writeable array like np.empty((3,), 'float64')."),
    ):
        with pytest.raises(InputError) as caught:
            fn.call_batch([np.ones(3), 1.0], out=out)
        assert caught.value.remediation == remedy
    fn.call_batch([np.ones(2), 1.0], out=[memory[::2], memory[1::2]])
    assert memory.tolist() == [2, 0, 2, 0]


def test_out_may_be_a_column_and_other_overlaps_are_copied(
    weigh: CompiledFn, plugin: Arithmetic
) -> None:
    memory = np.arange(6.0)
    weigh.call_batch([memory, memory], out=memory)
    assert memory.tolist() == [0, 3, 6, 9, 12, 15]
    assert np.shares_memory(plugin.batches[-1].columns[0], memory)

    memory = np.arange(6.0)
    weigh.call_batch([memory[:-1], memory[::-1][1:]], out=memory[1:])
    assert memory.tolist() == [0, 8, 7, 6, 5, 4]
    assert not np.shares_memory(plugin.batches[-1].columns[0], memory)

    memory = np.arange(3.0)
    weigh(memory[1:2], memory, out=memory)
    assert memory.tolist() == [1, 3, 5]


def test_interleaved_views_do_not_overlap(weigh: CompiledFn, plugin: Arithmetic) -> None:
    table = np.arange(6.0).reshape(3, 2)
    weigh.call_batch([table[:, 0], 1.0], out=table[:, 1])
    assert table.tolist() == [[0, 2], [2, 4], [4, 6]]
    assert np.may_share_memory(plugin.batches[-1].columns[0], table)


def test_checks_come_before_the_backend_in_a_fixed_order(
    weigh: CompiledFn, plugin: Arithmetic
) -> None:
    ragged_and_text = [["a"], [1.0, 2.0]]
    with refused("E-INPUT-003"):
        weigh.call_batch(ragged_and_text)
    with refused("E-INPUT-001"):
        weigh.call_batch([*ragged_and_text, 1.0])
    with refused("E-INPUT-002"):
        weigh.call_batch([[1.0], [1.0, 2.0]], out=3)
    assert plugin.batches == []
