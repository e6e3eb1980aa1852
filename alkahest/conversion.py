"""One column of a call: whatever the caller has, read as a NumPy array of the program's dtype.

Conversions, the same for every backend:

* bool, integers and narrower floating point widen; 64-bit integers beyond 2**53 are rounded;
* a wider column is refused unless ``casting="same_kind"``, and so is a complex column of a real
  program, which converts only where every imaginary part is zero;
* Python numbers, and lists and tuples of numbers, always convert;
* other byte orders are swapped, masked arrays and columns on a device are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from numbers import Complex, Real
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest import dlpack
from alkahest.errors import InputTypeError

FromDLPack = Callable[[Any], Any]


@attrs.frozen
class Column:
    """One column, converted.

    Attributes:
        values: the program's dtype, any shape and strides; the caller's memory where possible.
        listed: whether the caller passed a list or tuple.
        back: ``from_dlpack`` of the library that the column came from, or None for NumPy.
    """

    values: NDArray[Any]
    listed: bool = False
    back: FromDLPack | None = None


def device_of(value: Any) -> str | None:
    """What is to be said of a column that the host cannot read, or None for one that it can."""
    if isinstance(value, np.ndarray):
        return None
    try:
        kind = _memory_kind(value)
    except Exception:  # noqa: BLE001 - the producer's code raises what it likes
        return None  # read() asks the producer again and reports its words
    if kind in dlpack.HOST_DEVICES:
        return None
    return "CUDA" if kind in dlpack.CUDA_DEVICES else f"DLPack type {kind}"


def _memory_kind(value: Any) -> int:
    """DLPack's number for where ``value`` is; anything without a protocol is on the host."""
    if hasattr(value, "__dlpack_device__"):
        # Asked first: the other protocol's attribute may wait for the device.
        return int(value.__dlpack_device__()[0])
    if hasattr(value, "__cuda_array_interface__"):
        return dlpack.CUDA
    return dlpack.read(value).kind if dlpack.is_capsule(value) else 1


def read(value: Any, label: str, dtype: np.dtype[Any], casting: str) -> Column:
    """Read one column.

    Args:
        value: array, DLPack producer on the host, list, tuple or number.
        label: how messages name the column, for instance ``"column 1 ('y')"``.
        dtype: the program's dtype.
        casting: ``"safe"`` or ``"same_kind"``.

    Raises:
        InputTypeError: E-INPUT-003 for something that holds no numbers, E-INPUT-004 for a
            conversion that would lose range, precision or the imaginary part.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InputTypeError(
            "E-INPUT-003",
            f"{label} is a masked array, and its mask would be ignored",
            remediation="Pass column.filled(numpy.nan), or column.compressed().",
        )
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, (float, complex)):
        return Column(convert(np.asarray(value), label, dtype, casting))
    if isinstance(value, (list, tuple)):
        return Column(_from_sequence(value, label, dtype), listed=True)
    if isinstance(value, Complex) or _is_decimal(value):
        return Column(_from_rows([value], label, dtype).reshape(()))
    if dlpack.is_capsule(value):
        array = _from_dlpack(_HostCapsule(value), label, type(value).__name__)
        return Column(convert(array, label, dtype, casting))
    if hasattr(value, "__dlpack__"):
        array = _from_dlpack(value, label, type(value).__name__)
        return Column(convert(array, label, dtype, casting), back=_returning(value))
    if hasattr(value, "__array__") or _is_buffer(value):
        return Column(convert(_as_array(value, label), label, dtype, casting))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Column(_from_sequence(value, label, dtype))
    raise InputTypeError("E-INPUT-003", f"{label} holds no numbers: {type(value).__name__}")


def convert(array: NDArray[Any], label: str, dtype: np.dtype[Any], casting: str) -> NDArray[Any]:
    """``array`` as an aligned array of ``dtype``, itself where nothing has to change."""
    if array.dtype == dtype:
        return array if array.flags.aligned else array.copy()
    check_dtype(array.dtype, label, dtype, casting)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = _real_part(array, label, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def check_dtype(given: np.dtype[Any], label: str, dtype: np.dtype[Any], casting: str) -> None:
    """Refuse a column of dtype ``given`` that ``casting`` does not let become ``dtype``.

    A complex column that ``"same_kind"`` lets into a real program may still have imaginary parts.

    Raises:
        InputTypeError: E-INPUT-003, 004, see :func:`read`.
    """
    if given.kind not in "biufc":
        raise InputTypeError("E-INPUT-003", f"{label} has dtype {given}, which holds no numbers")
    if given.kind not in "fc" or casting == "same_kind":
        return
    if _width(given) > _width(dtype):
        raise InputTypeError("E-INPUT-004", f"{label} has dtype {given}, wider than {dtype}")
    if given.kind == "c" and dtype.kind != "c":
        raise InputTypeError("E-INPUT-004", f"{label} has dtype {given}, {dtype} is real")


def dtype_on_device(name: object, label: str, dtype: np.dtype[Any], casting: str) -> np.dtype[Any]:
    """NumPy's dtype of a column whose elements are on a device, where nobody looks at them.

    Args:
        name: its dtype, which has NumPy's name as text.
        label: of the column, for messages.
        dtype: of the program.
        casting: of the program.

    Raises:
        InputTypeError: E-INPUT-003 for a dtype that NumPy does not know; E-INPUT-003, 004 as
            :func:`check_dtype`, and E-INPUT-004 for every complex column of a real program.
    """
    try:
        given = np.dtype(str(name))
    except TypeError:
        raise InputTypeError(
            "E-INPUT-003", f"{label} has dtype {name}, which is not read"
        ) from None
    check_dtype(given, label, dtype, casting)
    if given.kind == "c" and dtype.kind != "c":
        raise InputTypeError(
            "E-INPUT-004",
            f"{label} has dtype {given}, {dtype} is real, and imaginary parts on a device are not "
            "looked at",
            remediation="Pass the real part.",
        )
    return given


def _width(dtype: np.dtype[Any]) -> int:
    """Bytes of one real number of ``dtype``."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def _real_part(array: NDArray[Any], label: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    (rows,) = np.nonzero(np.imag(array).reshape(-1))
    if rows.size:
        row = int(rows[0])
        raise InputTypeError(
            "E-INPUT-004",
            f"{label}, row {row}: {array.reshape(-1)[row]} has an imaginary part, {dtype} is real",
            remediation="Compile for complex128, or pass the real part.",
        )
    return np.real(array)


def _from_sequence(rows: Sequence[Any], label: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of any Python or NumPy type; text, None and ragged nesting are refused by row."""
    try:
        array = np.asarray(rows)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)  # ragged, or an element that refuses: find the row
    if array.dtype.kind not in "biufc":
        return _from_rows(rows, label, dtype)
    if array.dtype.kind == "c" and dtype.kind != "c":
        row = next(i for i, value in enumerate(rows) if np.iscomplexobj(value))
        raise InputTypeError("E-INPUT-004", f"{label}, row {row}: {rows[row]} is complex")
    return convert(array, label, dtype, "same_kind")


def _from_rows(rows: Sequence[Any], label: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert row by row, for numbers that NumPy has no dtype for, and to name the bad row."""
    number: type = complex if dtype.kind == "c" else float
    values = []
    for row, value in enumerate(rows):
        is_complex = isinstance(value, Complex) and not isinstance(value, Real)
        if is_complex and number is float:
            raise InputTypeError("E-INPUT-004", f"{label}, row {row}: {value!r} is complex")
        if not (isinstance(value, Complex) or _is_decimal(value)):
            raise InputTypeError(
                "E-INPUT-003",
                f"{label}, row {row}: {value!r:.60} is not a number",
                remediation="Replace it by a number, for instance nan.",
            )
        try:
            values.append(number(value))
        except OverflowError:
            raise InputTypeError(
                "E-INPUT-004", f"{label}, row {row}: the number is too large for {dtype}"
            ) from None
    with np.errstate(all="ignore"):
        return np.array(values, dtype=number).astype(dtype)


def _is_decimal(value: Any) -> bool:
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(value, decimal.Decimal)


class _HostCapsule:
    """A DLPack capsule as the object that NumPy wants."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        dlpack.read(self._capsule)  # says so if it was used before
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.read(self._capsule).kind, 0


def _from_dlpack(value: Any, label: str, name: str) -> NDArray[Any]:
    try:
        return np.from_dlpack(value)
    except Exception as error:  # the producer's code may raise anything
        raise InputTypeError("E-INPUT-003", f"{label}: {name} cannot be read: {error}") from error


def _returning(value: Any) -> FromDLPack | None:
    """``from_dlpack`` of the library that ``value`` comes from, if it has one."""
    namespace = getattr(value, "__array_namespace__", None)
    if callable(namespace):
        found: FromDLPack | None = getattr(namespace(), "from_dlpack", None)
        if found is not None:
            return found
    for base in type(value).__mro__:
        module = sys.modules.get(base.__module__.partition(".")[0])
        found = getattr(module, "from_dlpack", None)
        if found is not None:
            return cast(FromDLPack, found)
    return None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _as_array(value: Any, label: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # the array's code may raise anything
        raise InputTypeError(
            "E-INPUT-003", f"{label}: {type(value).__name__} cannot be read: {error}"
        ) from error


__all__ = ["Column", "check_dtype", "convert", "device_of", "dtype_on_device", "read"]
