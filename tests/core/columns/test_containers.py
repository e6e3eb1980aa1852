"""Lists, arrays of other libraries, arrays on devices: what comes back, and what is refused."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputTypeError
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def test_lists_come_out_only_if_every_column_is_a_list_or_tuple(weigh: CompiledFn) -> None:
    assert weigh.call_batch([[1, 2], (3, 4)]) == [7.0, 10.0]
    assert isinstance(weigh.call_batch([[1, 2], np.ones(2)]), np.ndarray)
    assert isinstance(weigh.call_batch([[1, 2], 3.0]), np.ndarray)
    assert isinstance(weigh([1, 2], [3, 4]), np.ndarray)


def test_a_compiled_list_gives_a_tuple_of_lists_for_lists(arithmetic: Arithmetic) -> None:
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


def test_host_and_device_columns_are_not_mixed(weigh: CompiledFn, arithmetic: Arithmetic) -> None:
    with refused("E-INPUT-010", "column 1 ('y') is a DeviceTensor", "column 0 ('x') is in host"):
        weigh.call_batch([np.ones(1), DeviceTensor([1.0])])
    assert arithmetic.batches == []
