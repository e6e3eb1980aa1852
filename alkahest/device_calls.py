"""One call whose columns are on a device: checked, given memory for its results, queued.

The rules are those of columns in host memory (:mod:`alkahest.columns`), with the same codes. What
is added: every array is on one device, nothing is copied, results are arrays of the library that
the first array came from, and work is queued on ``stream=`` or on that library's current stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.arguments import type_name
from alkahest.array_libraries import library_of
from alkahest.conversion import device_of, read
from alkahest.device_columns import check_column, describe, spread
from alkahest.device_outputs import DeviceOutputs, as_tuple
from alkahest.errors import InputError, InputTypeError
from alkahest.plugin import DeviceBatch, DeviceColumn
from alkahest.rules import batch_shape, check_count, check_integers
from alkahest.streams import stream_handle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.derivative_outputs import Layout
    from alkahest.plugin import DeviceEvaluator
    from alkahest.rules import Rules

_ONE_PLACE = (
    "Move every column to one place: to the device with cupy.asarray(x) or tensor.cuda(), to host "
    "memory with x.get() or tensor.cpu()."
)


@attrs.frozen(eq=False)
class DeviceCall:
    """What the caller passed.

    Attributes:
        columns: one per input.
        rules: the program's.
        layout: how the outputs form value, gradient and Hessian, or None.
        broadcast: True for a call with ufunc broadcasting, False for a batch.
        out: array or sequence of arrays for the results, or None.
        n: batch length, or None where the columns tell it.
        stream: the caller's stream, or None.
        threads: checked, and of no effect.
        device: ordinal that was asked for, or None for the one where the columns are; ``"all"`` is
            not for such columns.
    """

    columns: Sequence[Any]
    rules: Rules
    layout: Layout | None
    broadcast: bool
    out: Any
    n: int | None
    stream: Any
    threads: int | None
    device: int | str | None


@attrs.frozen(kw_only=True)
class Queued:
    """A call whose work is queued.

    Attributes:
        results: one array per result, of the caller's kind.
        n: number of points.
        device: where it runs.
        report: the backend's.
    """

    results: tuple[Any, ...]
    n: int
    device: int
    report: Mapping[str, Any]


def queue(call: DeviceCall, evaluator: DeviceEvaluator) -> Queued:
    """Check everything about a call, then queue it.

    Raises:
        InputError: E-INPUT-001, 002, 005, 006, 009, 011 as :func:`alkahest.columns.prepare`.
        InputTypeError: E-INPUT-003, 004 for columns that do not convert or would have to be
            copied; E-INPUT-008 for a stream that is none; E-INPUT-010 for arrays in several
            places.
        AlkahestError: what the backend or the device refuses.
    """
    rules = call.rules
    check_count(call.columns, rules)
    given = as_tuple(call.out)
    named = [(rules.label(i), value) for i, value in enumerate(call.columns)]
    first = _check_places(named, [(f"out array {i}", a) for i, a in enumerate(given or ())])
    check_integers(call.n, call.threads)
    library = library_of(first)
    if call.stream is None:
        stream = library.stream(library.module, _ordinal(first))
    else:
        stream = stream_handle(call.stream)
    asked = call.device if isinstance(call.device, int) else None
    reader = _Reader(rules, stream, evaluator, asked)
    operands = [reader.operand(value, label) for label, value in named]
    outputs = DeviceOutputs(rules=rules, layout=call.layout, library=library)
    targets = None
    if given is not None:
        targets = [reader.array(array, f"out array {i}") for i, array in enumerate(given)]
    shape = batch_shape(
        [operand.shape for operand in operands],
        rules,
        broadcast=call.broadcast,
        n=call.n,
        of_out=outputs.points(targets),
    )
    columns = tuple(
        spread(operand, shape) if isinstance(operand, DeviceColumn) else operand
        for operand in operands
    )
    device = reader.device
    assert device is not None  # _check_places() found an array, and it was read
    if targets is None:
        arrays, targets = outputs.allocate(shape, device, stream, evaluator)
    else:
        arrays = given or ()
        outputs.check(targets, shape, columns)
    rows, sources = outputs.rows(targets)
    batch = DeviceBatch(
        columns=columns, shape=shape, out=rows, sources=sources, stream=stream, device=device
    )
    report = evaluator.evaluate_on_device(batch)
    if given is None:
        arrays = outputs.handed_over(arrays)
    return Queued(results=arrays, n=batch.n, device=device, report=report)


class _Reader:
    """Reads the arrays of one call, all of which are on one device.

    Attributes:
        device: its ordinal, once known.
    """

    def __init__(
        self, rules: Rules, stream: int, evaluator: DeviceEvaluator, device: int | None
    ) -> None:
        self.device = device
        self._rules = rules
        self._stream = stream
        self._locate = evaluator.locate
        self._first = "the call"

    def operand(self, value: Any, label: str) -> DeviceColumn | NDArray[Any]:
        """A column, or the value of a scalar in host memory."""
        dtype, casting = self._rules.dtype, self._rules.casting
        if device_of(value) is None:
            values = read(value, label, dtype, casting).values
            if values.ndim:  # something that does not look like an array, and is one
                message = f"{label} is in host memory while another column is on a device"
                raise InputTypeError("E-INPUT-010", message, remediation=_ONE_PLACE)
            return values
        return check_column(self.array(value, label), label, dtype, casting)

    def array(self, value: Any, label: str) -> DeviceColumn:
        """An array; where its protocol does not tell the device, the driver does.

        Raises:
            InputTypeError: E-INPUT-003 where it cannot be read, E-INPUT-010 on another device.
        """
        column = describe(value, label, self._stream)
        device = column.device
        if device is None:
            # Nothing says where an empty array is, and it does not matter.
            device = self._locate(column.pointer) if column.pointer else self.device or 0
            column = attrs.evolve(column, device=device)
        if self.device is None:
            self.device, self._first = device, label
        if device != self.device:
            where = "is for" if self._first == "the call" else "is on"
            raise InputTypeError(
                "E-INPUT-010",
                f"{label} is on device {device}, {self._first} {where} device {self.device}",
                remediation="Move every array to one device; device= names it where it is given.",
            )
        return column


def _check_places(columns: list[tuple[str, Any]], outputs: list[tuple[str, Any]]) -> Any:
    """The array that decides what kind the results are, if all of them are on CUDA devices.

    Raises:
        InputTypeError: E-INPUT-010 for columns in several places, or on other devices.
        InputError: E-INPUT-009 for outputs elsewhere than the columns.
    """
    places = [(label, value, device_of(value)) for label, value in columns]
    outside = [label for label, value, place in places if place is None and not _is_scalar(value)]
    there = [(label, value, place) for label, value, place in places if place is not None]
    for label, value, place in there:
        if outside or place != "CUDA":
            what = f"{label} is a {type_name(value)} on a device ({place})"
            rest = f" while {outside[0]} is in host memory" if outside else ""
            raise InputTypeError("E-INPUT-010", what + rest, remediation=_ONE_PLACE)
    for label, value in outputs:
        if outside or device_of(value) != "CUDA":
            place = "on a device" if device_of(value) else "in host memory"
            other = (
                f"{outside[0]} is in host memory" if outside else f"{there[0][0]} is on a device"
            )
            raise InputError(
                "E-INPUT-009",
                f"{label} is a {type_name(value)} {place}, {other}",
                remediation="Pass arrays where the columns are.",
            )
    found = [value for _, value, _ in there] or [value for _, value in outputs]
    if not found:  # the caller has just been told that one is there
        raise InputTypeError(
            "E-INPUT-003",
            f"{type_name(columns[0][1])} no longer says that it is on a device",
            remediation="Pass an array that nothing changes during the call.",
        )
    return found[0]


def _is_scalar(value: Any) -> bool:
    """Whether something in host memory is no list and no array; what it is, reading it tells."""
    return not isinstance(value, (list, tuple)) and not getattr(value, "shape", ())


def _ordinal(array: Any) -> int:
    """The device of ``array`` for asking its library about streams; 0 where it does not tell."""
    try:
        return int(array.__dlpack_device__()[1])
    except Exception:  # noqa: BLE001 - reading the array reports it
        return 0


__all__ = ["DeviceCall", "Queued", "queue"]
