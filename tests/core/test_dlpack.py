"""Reading DLPack capsules, with NumPy as the producer."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from alkahest import dlpack

VALUES = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}], ids=["before 1", "version 1"])
@pytest.mark.parametrize("view", ["[:]", "[1:, ::2]", "[::-1]", "[:, 0]", ".T", "[2, 3, ...]"])
def test_address_shape_and_strides_are_those_of_the_array(options, view: str) -> None:
    array = eval(f"VALUES{view}")
    tensor = dlpack.read(array.__dlpack__(**options))
    assert tensor.pointer == array.ctypes.data
    assert (tensor.shape, tensor.strides) == (array.shape, array.strides)
    assert (tensor.dtype, tensor.kind, tensor.device) == ("float64", 1, 0)
    assert not tensor.readonly


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "complex128"]
)
def test_dtypes_have_the_names_that_numpy_gives_them(dtype: str) -> None:
    assert dlpack.read(np.zeros(3, dtype).__dlpack__()).dtype == dtype


def test_version_1_says_what_is_read_only() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    assert dlpack.read(array.__dlpack__(max_version=(1, 0))).readonly


def test_a_capsule_that_is_only_read_belongs_to_its_producer() -> None:
    array = np.zeros(3)
    gone = weakref.ref(array)
    capsule = array.__dlpack__()
    del array
    assert dlpack.read(capsule) == dlpack.read(capsule)
    gc.collect()
    assert gone() is not None
    del capsule
    assert gone() is None


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}], ids=["before 1", "version 1"])
def test_a_capsule_that_is_taken_is_used_up_and_its_memory_given_back(options) -> None:
    array = np.zeros(3)
    gone = weakref.ref(array)
    capsule = array.__dlpack__(**options)
    del array
    taken = dlpack.Taken(capsule)
    assert taken.tensor.shape == (3,)
    for use in (dlpack.read, dlpack.Taken):
        with pytest.raises(BufferError, match="has been used already"):
            use(capsule)
    del capsule
    assert gone() is not None
    del taken
    assert gone() is None


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("bits", 32, "type code 6 of 32 bits, 1 lanes"),
        ("bits", 1, "of 1 bits"),
        ("bits", 0, "of 0 bits"),
        ("lanes", 2, "2 lanes"),
        ("code", 7, "type code 7"),
        ("ndim", -1, "has -1 dimensions"),
    ],
)
def test_what_no_array_can_be_is_refused(field: str, value: int, words: str) -> None:
    capsule = np.zeros(3, bool).__dlpack__()
    address, _ = dlpack._address(capsule)
    tensor = dlpack._Managed.from_address(address).tensor
    setattr(tensor, field, value)
    with pytest.raises(BufferError, match=words):
        dlpack.read(capsule)


def test_other_capsules_are_refused() -> None:
    import datetime

    with pytest.raises(BufferError, match="none of DLPack's"):
        dlpack.read(datetime.datetime_CAPI)  # type: ignore[attr-defined]  # no stub has it


def test_contiguous_strides_are_those_of_numpy() -> None:
    for shape in ((), (5,), (2, 3, 4), (3, 1, 2)):
        assert dlpack.contiguous_strides(shape, 8) == np.zeros(shape).strides
