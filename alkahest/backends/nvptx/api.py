"""The names that ``alkahest`` has while the bit ``cuda`` is True."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from alkahest.backends.nvptx import driver
from alkahest.backends.nvptx.access import SIZES
from alkahest.backends.nvptx.accuracy import DEFAULT, OPTION
from alkahest.compiled import CompiledFn
from alkahest.errors import InputError, InputTypeError
from alkahest.expr import Expr

if TYPE_CHECKING:
    from alkahest.backends.nvptx.evaluator import NvptxEvaluator

BACKEND = "nvptx"


class CudaCompiledFn(CompiledFn):
    """A function compiled for NVIDIA GPUs; made by :func:`compile_cuda`.

    Everything a :class:`alkahest.CompiledFn` does, and:

    * :attr:`ptx`, the generated assembly;
    * :meth:`call_batch_on`, the batch call on a chosen device;
    * :meth:`call_device_ptrs`, for addresses in the memory of a device.

    ``call_batch`` runs on the device that was chosen when compiling, the first by default; columns
    that are on a device are evaluated there, without copies and without waiting. Arrays give arrays
    of their kind, lists give lists. Columns are checked before the device is touched, and the device
    is checked even for empty batches. ``report`` tells where the calling thread's last call ran:
    ``device`` (ordinal), ``device_name``, ``target``, ``launches``; for columns in host memory also
    ``chunks``, ``bytes_up``, ``bytes_down`` and ``staging``: ``"pinned"``, or ``"direct"`` where all
    of them were page-locked already; for large batches ``seconds_copying_in``, ``seconds_waiting``
    and ``seconds_copying_out``, summed over the copy threads.
    """

    @property
    def ptx(self) -> str:
        """The generated PTX; ``target`` is the one in its ``.target`` line.

        A device of another compute capability than ``target`` gets code of its own when it is
        first used, unless ``target=`` was given; ``report["target"]`` says which ran.
        """
        code = self.artifact.code
        return code if isinstance(code, str) else code.decode()

    def call_batch_on(
        self,
        ordinal: int,
        columns: Any,
        *,
        out: Any = None,
        n: int | None = None,
        stream: Any = None,
    ) -> Any:
        """As ``call_batch``, on device ``ordinal``.

        Args:
            ordinal: one of ``range(alkahest.cuda_device_count())``.
            columns: one column per input, shape ``(n,)``, structure of arrays.
            out: as in ``call_batch``.
            n: number of points; needed when no column has a length.
            stream: the caller's stream on that device.

        Raises:
            InputTypeError: E-INPUT-008 for an ordinal that is not an integer.
            InputError, InputTypeError: E-INPUT-... for columns that do not fit.
            CudaError: E-CUDA-003 for an ordinal without a device, naming it and the count;
                E-CUDA-003, E-CUDA-004, E-CUDA-006 where the device or the driver refuses.
        """
        return self.call_batch(columns, out=out, n=n, stream=stream, device=_ordinal(ordinal))

    def call_device_ptrs(
        self,
        inputs: Sequence[int],
        n: int,
        outputs: Sequence[int],
        *,
        stream: Any = None,
        device: int | None = None,
    ) -> None:
        """Queue the evaluation of memory that is known by its addresses.

        Each input is the address of ``n`` contiguous aligned elements of the function's dtype on
        ``device``, each output that of as many of the output's dtype (bytes for conditions). That
        it could be one is all that is checked, not what memory is there: an output overlaps no
        input unless it is that input, and no other output. The memory has to stay until the work
        is done. Returns without waiting for it.

        Args:
            inputs: one address per input.
            n: number of points.
            outputs: one address per output.
            stream: a stream of the device, or None for the legacy default stream.
            device: ordinal; None is the compiled function's, else the first.

        Raises:
            InputError: E-INPUT-001, E-INPUT-009 for another number of addresses; E-INPUT-011 for
                an address that is none or not aligned, an ``n`` that is none, and where no one
                device was named.
            InputTypeError: E-INPUT-008 for addresses that are no integers, and for a stream or
                ordinal that is none.
            CudaError: E-CUDA-003, E-CUDA-004, E-CUDA-006 where the device or the driver refuses.
        """
        chosen = self.device if device is None else _ordinal(device)
        if isinstance(chosen, str):  # "all"
            raise InputError(
                "E-INPUT-011",
                'addresses are on one device, and the function was compiled for device="all"',
                remediation="Pass device=, the ordinal of the device that the memory is on.",
            )
        if isinstance(n, bool) or not hasattr(n, "__index__") or operator.index(n) < 0:
            raise InputError(
                "E-INPUT-011",
                f"n must be an integer of at least 0, got {n!r}",
                remediation="Pass the number of points.",
            )
        points = operator.index(n)
        program = self.program
        addresses = (
            *_addresses(inputs, (program.dtype,) * self.n_inputs, "input", points),
            *_addresses(outputs, program.output_dtypes, "output", points),
        )
        evaluator = cast("NvptxEvaluator", self._evaluation.first.prepare(chosen))
        evaluator.evaluate_addresses(addresses, points, stream)


def compile_cuda(
    expr: Any,
    inputs: Sequence[Expr],
    *,
    target: str | None = None,
    dtype: Any = "float64",
    device: int | str | None = None,
    accuracy: str = DEFAULT,
    derivatives: int = 0,
    wrt: Sequence[Expr] | None = None,
) -> CudaCompiledFn:
    """Compile one expression, or a flat list of them, for NVIDIA GPUs.

    Compiling needs no GPU and no driver. The code is for the first device here, or without one for
    the oldest supported target, ``sm_75``.

    Args:
        expr: an expression or a number; or a list or tuple of them, for a function that returns
            a tuple of arrays.
        inputs: list or tuple of distinct symbols; their order is the order of the columns.
        target: for instance ``"sm_90"``, to generate code for that target whatever is here.
        dtype: ``"float64"``, ``"float32"``, ``"complex128"`` or ``"complex64"``.
        device: ordinal of the device that calls run on, ``"all"`` to split batches of host columns
            over every device; None is the first.
        accuracy: ``"strict"``, ``"default"`` or ``"fast"``: what may be done for speed.
        derivatives: 1 for a function that returns (value, gradient), 2 for (value, gradient,
            Hessian), all from one kernel; see :func:`alkahest.compile_expr`.
        wrt: the inputs to differentiate with respect to, in the order of the gradient; all of
            them by default.

    Raises:
        CudaError: E-CUDA-001 without LLVM's NVPTX target; E-CUDA-002 naming the unbound symbol,
            operation or dtype that is refused; E-CUDA-005 where libdevice is needed and missing.
        InputError, InputTypeError, PoolError, DiffError: see :func:`alkahest.compile_expr`.
    """
    return CudaCompiledFn.compile(
        expr,
        inputs,
        backend=BACKEND,
        dtype=dtype,
        device=device,
        target=target,
        derivatives=derivatives,
        wrt=wrt,
        options={OPTION: accuracy},
    )


def cuda_device_count() -> int:
    """Number of GPUs that kernels can run on; never raises.

    The valid ordinals are exactly ``range(cuda_device_count())``. It is 0 without a driver library,
    with a stub or a driver that is too old, without devices, and in a process forked from one
    that has used CUDA; ``alkahest doctor`` says which. No context is created. Devices older than
    compute capability 7.5 do not count, nor do those that the driver lists after one.
    """
    return driver.device_count()


def _ordinal(value: Any) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise InputTypeError(
        "E-INPUT-008",
        f"{value!r} is not a device ordinal",
        remediation="Pass an int below alkahest.cuda_device_count().",
    )


def _addresses(given: Any, dtypes: Sequence[str], what: str, n: int) -> list[int]:
    """Addresses that could be those of ``n`` elements of each of ``dtypes``.

    Raises:
        InputError: E-INPUT-001, E-INPUT-009 for another number of them; E-INPUT-011 for one that
            is none or not aligned.
        InputTypeError: E-INPUT-008 for what are no integers.
    """
    try:
        found = [operator.index(address) for address in given]
    except TypeError:
        raise InputTypeError(
            "E-INPUT-008",
            f"the addresses of the {what}s must be integers, got {given!r:.60}",
            remediation=f"Pass a list with one address for each {what}.",
        ) from None
    if len(found) != len(dtypes):
        raise InputError(
            "E-INPUT-001" if what == "input" else "E-INPUT-009",
            f"expected the addresses of {len(dtypes)} {what}s, got {len(found)}",
            remediation=f"Pass one address for each of the {what}s.",
        )
    for position, (address, dtype) in enumerate(zip(found, dtypes, strict=True)):
        size = SIZES[dtype]
        if n and not (0 < address <= 2**64 - n * size and address % _alignment(dtype) == 0):
            raise InputError(
                "E-INPUT-011",
                f"{what} {position}: {address:#x} is no address of {n} aligned elements of {dtype}",
                remediation="Pass the address of the first of them.",
            )
    return found


def _alignment(dtype: str) -> int:
    """Bytes that addresses are multiples of: for a complex number, those of its parts."""
    return SIZES[dtype] // 2 if dtype.startswith("complex") else SIZES[dtype]
