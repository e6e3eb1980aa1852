"""What a plugin author imports: the hook marker, the API number, descriptors and protocols.

A plugin is a light module named by an entry point of the group ``alkahest.backends``. It sets
``ALKAHEST_PLUGIN_API``, imports nothing but this module and the standard library, and marks
its hooks (:mod:`alkahest.hookspecs`) with :data:`hookimpl`. Everything heavy is imported inside
the hooks, when they are called.

Descriptors are frozen records. New fields come with defaults; signatures never change within one
``PLUGIN_API``. A plugin declares the lowest version that has what it uses:

* 1: everything but what follows;
* 2: ``BackendInfo.arrays`` with :class:`ArrayEvaluator` and :class:`ArrayBatch`,
  ``Support.keeps_subnormals``; the hooks ``alkahest_tune``, with :class:`Tuned`, and
  ``alkahest_calibrate``, with :func:`calibrated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import attrs
import pluggy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.program import Program

PLUGIN_API = 2
"""Newest version of the plugin interface; a plugin declares one as ``ALKAHEST_PLUGIN_API``."""

OLDEST_PLUGIN_API = 1
"""Oldest version that this core still loads."""

hookimpl = pluggy.HookimplMarker("alkahest")

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class Probe:
    """Answer of a probe or a witness.

    Attributes:
        ok: whether what was asked about works here.
        detail: why not, or what was seen; shown to users.
        code: code of :data:`alkahest.errors.CODES` that goes with a "no", or "".
        facts: versions, paths and targets, JSON-serialisable.
    """

    ok: bool = attrs.field(validator=attrs.validators.instance_of(bool))
    detail: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    code: str = ""
    facts: Mapping[str, Any] = _EMPTY


@attrs.frozen(kw_only=True)
class Feature:
    """One capability bit and what proves it.

    Attributes:
        name: the bit; third parties use a dotted name of their own (``"rocm.compile"``).
        probe: cheap, touches no device, exercises the least likely part of the promise. Whoever
            asks waits for it; it must not ask alkahest about plugins itself.
        witness: makes the promised call, on a device where one is promised; run only by
            ``capabilities(verify=True)``.
    """

    name: str = attrs.field(validator=attrs.validators.instance_of(str))
    probe: Callable[[], Probe]
    witness: Callable[[], Probe] | None = None


def _feature_tuple(features: Iterable[Feature]) -> tuple[Feature, ...]:
    return tuple(features)


@attrs.frozen(kw_only=True)
class Support:
    """Which operations of :data:`alkahest.ops.OPS` a backend lowers.

    Attributes:
        lowers: operation name -> dtypes it is lowered for.
        refuses: operation name -> reason. An operation in neither table counts as refused.
        keeps_subnormals: False for a backend that may take subnormal operands and results for
            zeros of their sign, as processors do in a mode that some libraries switch on. It is
            the one rule of the operations that a backend need not keep.
    """

    lowers: Mapping[str, frozenset[str]]
    refuses: Mapping[str, str] = _EMPTY
    keeps_subnormals: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))


@attrs.frozen(kw_only=True)
class BackendInfo:
    """One backend, described without importing what it needs.

    Attributes:
        name: what users write in ``backend=``.
        features: the capability bits that this backend answers for.
        exports: names that appear on ``alkahest`` while every feature's probe passes, each as
            ``"module:attribute"``.
        support: imports and returns the operation tables; called at most once per process. None
            for a backend that evaluates no programs.
        priority: larger wins among backends that fit; ours are 0 (reference) to 100.
        group: several backends may share a group name (``"cpu"``), which then stands for the best
            of them.
        placement: ``"host"`` or ``"cuda"``: where the columns live that it reads without a copy.
        arrays: top-level modules of the classes of arrays that its evaluators take as they are,
            wherever they live, when users ask for the backend by name; each evaluator is an
            :class:`ArrayEvaluator` then. The arrays have ``__array_namespace__``, as the array API
            standard says.
        refusal_code: code under which this backend's refusals are raised.
        summary: one line for listings.
    """

    name: str = attrs.field(validator=attrs.validators.matches_re(r"[a-z][a-z0-9._-]*"))
    features: tuple[Feature, ...] = attrs.field(converter=_feature_tuple)
    exports: Mapping[str, str] = _EMPTY
    support: Callable[[], Support] | None = None
    priority: int = 50
    group: str = ""
    placement: str = attrs.field(default="host", validator=attrs.validators.in_(("host", "cuda")))
    arrays: tuple[str, ...] = attrs.field(
        default=(),
        validator=attrs.validators.deep_iterable(
            attrs.validators.instance_of(str), attrs.validators.instance_of(tuple)
        ),
    )
    refusal_code: str = "E-JIT-001"
    summary: str = ""


@attrs.frozen(kw_only=True)
class Artifact:
    """Generated code, ready to be stored, shipped or loaded.

    Attributes:
        kind: what ``code`` is, for instance ``"ptx"``, ``"llvm-ir"`` or ``"program"``.
        code: the code itself.
        entry: name of the entry point in ``code``.
        target: processor or device that the code is for (``"sm_90"``), or ``""``.
        program: the program it was generated from.
        metadata: JSON-serialisable facts: versions, options, where libdevice came from.
    """

    kind: str
    code: str | bytes
    program: Program
    entry: str = ""
    target: str = ""
    metadata: Mapping[str, Any] = _EMPTY


@attrs.frozen(kw_only=True)
class DeviceInfo:
    """One device that a backend can run on.

    Attributes:
        ordinal: what users pass as ``device=``; valid ordinals are ``range(len(devices))``.
        name: the vendor's name.
        memory: bytes of memory, or 0 where unknown.
        target: code generation target of this device (``"sm_90"``), or ``""``.
        facts: anything else, JSON-serialisable.
    """

    ordinal: int
    name: str
    memory: int = 0
    target: str = ""
    facts: Mapping[str, Any] = _EMPTY


@attrs.frozen(kw_only=True)
class Batch:
    """Columns to evaluate; already validated and converted, the same way for every backend.

    Attributes:
        columns: one array per program input, of the input's dtype, shape ``(n,)``, any stride
            (0 for a value spread over the batch), possibly read-only.
        n: number of points; 0 is possible.
        out: one writeable array per program output, of the output's dtype, shape ``(n,)``, any
            stride, never overlapping a column unless it is that column; or None.
        stream: the caller's stream for device backends, or None.
        threads: number of threads to use, or None for the backend's choice.
    """

    columns: tuple[NDArray[Any], ...]
    n: int
    out: tuple[NDArray[Any], ...] | None = None
    stream: Any = None
    threads: int | None = None


@attrs.frozen(kw_only=True)
class Outcome:
    """What an evaluation gave.

    Attributes:
        outputs: one array per program output, shape ``(n,)``; ``batch.out`` where it was given,
            else new writeable arrays that share no memory with columns or earlier outputs.
        report: JSON-serialisable facts about this call: device, target, chunks, threads.
    """

    outputs: tuple[NDArray[Any], ...]
    report: Mapping[str, Any] = _EMPTY


@attrs.frozen(kw_only=True, eq=False)
class DeviceColumn:
    """A column, or an output, in the memory of a device: described, not copied.

    Attributes:
        pointer: address of the element at index 0 of every dimension.
        dtype: NumPy's name of the dtype in memory. A column's may be another than the program's;
            it converts by the rules of :mod:`alkahest.conversion`.
        shape: the batch's.
        strides: bytes from one element to the next, one per dimension, of any sign; 0 where an
            element is repeated.
        device: ordinal of the device, or None where only the driver knows.
        readonly: whether writing to it is forbidden.
        stream: handle of the stream whose queued work produces the elements and has to be waited
            for (1 and 2 are the default streams), or None where there is nothing to wait for.
        in_order: whether the memory, when ``owner`` is gone, is given away in the order of
            ``stream``; otherwise it may be given away at once.
        owner: keeps the memory alive.
    """

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int | None
    readonly: bool = False
    stream: int | None = None
    in_order: bool = False
    owner: object = None


@attrs.frozen(kw_only=True, eq=False)
class DeviceBatch:
    """Columns on one device to evaluate there; validated, and never all in host memory.

    Attributes:
        columns: one per program input: a :class:`DeviceColumn` of the batch's shape, or a NumPy
            array of the program's dtype and shape ``()``, a value for every point.
        shape: of every column on the device, and of everything in ``out``.
        out: writeable columns that overlap no column unless they are that column.
        sources: for each of ``out``, which output of the program it receives; it has that dtype.
        stream: handle of the stream to queue the work on, 1 or 2 for the default streams.
        device: ordinal of the device.
    """

    columns: tuple[DeviceColumn | NDArray[Any], ...]
    shape: tuple[int, ...]
    out: tuple[DeviceColumn, ...]
    sources: tuple[int, ...]
    stream: int
    device: int

    @property
    def n(self) -> int:
        """Number of points."""
        return math.prod(self.shape)


@attrs.frozen(kw_only=True, eq=False)
class ArrayBatch:
    """Columns as arrays of a library that the backend has named; converted and broadcast by it.

    Attributes:
        columns: one array per program input, of the program's dtype and of ``shape``. They may
            stand for values that are not there yet, as in a function that is being traced.
        shape: of the points.
    """

    columns: tuple[Any, ...]
    shape: tuple[int, ...]


@runtime_checkable
class Evaluator(Protocol):
    """Runs one artifact on one device; thread-safe.

    Besides, it may have

    * ``settle()``, which does at once what it would put off until some later call, such as
      compiling; calibration wants to know the times after that;
    * ``make_fast_call(fallback, *, single)``, which returns a function ``(*columns, out=None)`` for
      :attr:`alkahest.CompiledFn.fast_call`, or None. The function passes everything but its own
      plain case on to ``fallback``; ``single`` says whether the one output is returned itself.
    * texts of generated code as attributes: ``llvm_ir``, ``assembly``.
    """

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point of ``batch``."""
        ...


@runtime_checkable
class DeviceEvaluator(Evaluator, Protocol):
    """An evaluator that also takes arrays where they are, on a device.

    It may have ``fast_call(*columns, out=None, stream=None)`` besides, which returns outputs of
    the caller's kind, the number of points and a report, or NotImplemented for anything but the
    case that it is made for. It is tried first, with whatever the caller passed, once a call of
    :meth:`evaluate_on_device` has succeeded.
    """

    def evaluate_on_device(self, batch: DeviceBatch) -> Mapping[str, Any]:
        """Queue the evaluation of ``batch`` on its stream, and give the report.

        It does not wait for the work; it keeps what the work still reads alive.
        """
        ...

    def allocate(self, shape: tuple[int, ...], dtype: str, device: int, stream: int) -> Any:
        """New memory in C order for results of work on ``stream``.

        Returns:
            An object with ``__cuda_array_interface__``, ``__dlpack__`` and ``__dlpack_device__``,
            whose consumers wait for the evaluation that it was an output of.
        """
        ...

    def locate(self, pointer: int) -> int:
        """Ordinal of the device that an address belongs to."""
        ...


@runtime_checkable
class ArrayEvaluator(Evaluator, Protocol):
    """An evaluator that also takes arrays of the libraries in :attr:`BackendInfo.arrays`.

    Such a call has no ``out=`` and no ``stream=``: the library orders its own work, and the results
    are new arrays of it.
    """

    def evaluate_arrays(self, batch: ArrayBatch) -> Outcome:
        """Every output at every point: arrays of the library, of ``batch.shape``."""
        ...


@attrs.frozen(kw_only=True)
class Estimate:
    """Predicted cost of one call.

    Attributes:
        seconds: wall time of the call, transfers included.
        reason: how it was arrived at.
    """

    seconds: float
    reason: str = ""


@attrs.frozen(kw_only=True)
class Tuned:
    """What measuring on a device says about one setting of a backend's generated code.

    Attributes:
        device: the kind of device that was measured, in the backend's words. It says whatever else
            the answer depends on, since it is all that is compared later.
        case: the kind of program, in the backend's words.
        settings: name -> number, what was quicker than the backend's own choice by more than noise;
            empty where nothing was.
        gain: time of the backend's own choice over that of the settings, 1 without any.
    """

    device: str
    case: str
    settings: Mapping[str, int] = attrs.field(factory=dict)
    gain: float = 1.0


@attrs.frozen(kw_only=True)
class Command:
    """A subcommand of the ``alkahest`` command line.

    Attributes:
        name: what users type.
        summary: one line of help.
        target: ``"module:function"``. The module also has ``add_arguments(parser)``, which gets
            an :class:`argparse.ArgumentParser`; ``function(namespace)`` returns the exit code.
    """

    name: str = attrs.field(validator=attrs.validators.matches_re(r"[a-z][a-z0-9-]*"))
    summary: str
    target: str = attrs.field(validator=attrs.validators.matches_re(r"[\w.]+:\w+"))


@attrs.frozen(kw_only=True)
class Diagnostic:
    """One row of ``alkahest doctor``.

    Attributes:
        name: the question, for instance ``"libdevice"``.
        ok: True, False, or None for a fact that is neither.
        detail: what was found, and where it was looked for.
        remedy: what to do when ``ok`` is False.
    """

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""


def make_reducer(backend: str, device: int | None) -> object | None:
    """Linear algebra for Gröbner bases, made by the plugin that registered ``backend``.

    How the plugin of Gröbner bases reaches a GPU's without importing it: the hook
    ``alkahest_make_reducer``.

    Args:
        backend: name of a backend.
        device: ordinal of the device, or None for the backend's choice.

    Returns:
        The reducer, or None where no plugin here offers that backend.
    """
    from alkahest._plugins import calls
    from alkahest._plugins.registry import registry

    if backend not in registry.snapshot().owners:
        return None
    return calls.make_reducer(backend, device)


def calibrated(backend: str) -> tuple[Mapping[str, float], str]:
    """What ``alkahest calibrate`` measured by the hook ``alkahest_calibrate`` of a backend.

    Args:
        backend: name of a loaded backend.

    Returns:
        The figures by name, or none of them and the reason: no calibration, or one of another
        version or other devices.
    """
    from alkahest.calibration.prediction import figures

    return figures(backend)


__all__ = [
    "OLDEST_PLUGIN_API",
    "PLUGIN_API",
    "ArrayBatch",
    "ArrayEvaluator",
    "Artifact",
    "BackendInfo",
    "Batch",
    "Command",
    "DeviceBatch",
    "DeviceColumn",
    "DeviceEvaluator",
    "DeviceInfo",
    "Diagnostic",
    "Estimate",
    "Evaluator",
    "Feature",
    "Outcome",
    "Probe",
    "Support",
    "Tuned",
    "calibrated",
    "hookimpl",
    "make_reducer",
]
