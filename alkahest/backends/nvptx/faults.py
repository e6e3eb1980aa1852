"""Errors of the CUDA driver, and what users see of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from alkahest.errors import CudaError

# Errors after which the driver answers every call on the same context with the same error.
_STICKY = frozenset({700, 710, 714, 715, 716, 717, 718, 719})


class DriverError(Exception):
    """A driver call that returned an error; never leaves this distribution."""

    def __init__(self, code: int, what: str) -> None:
        self.code = code
        super().__init__(f"{what}: {describe(code)}")


def describe(code: int) -> str:
    """``CUDA_ERROR_STUB_LIBRARY (34)`` for 34."""
    from cuda.bindings import driver

    with contextlib.suppress(ValueError):
        return f"{driver.CUresult(code).name} ({code})"
    return f"error {code}"


def check(result: tuple[Any, ...], what: str) -> Any:
    """Value of a ``cuda.bindings`` call, whose result is ``(code,)`` or ``(code, value, ...)``.

    Raises:
        DriverError: the code is not success; ``what`` names the call.
    """
    if int(result[0]):
        raise DriverError(int(result[0]), what)
    return result[1] if len(result) == 2 else result[1:]


@contextlib.contextmanager
def translated(error: str, doing: str, remedy: str | None = None) -> Iterator[None]:
    """Turn errors of driver calls in the block into ``CudaError`` ``error``; others pass.

    Errors that a failed kernel leaves behind are E-CUDA-006, whichever call reports them.
    """
    try:
        yield
    except Exception as exc:
        fault = _driver_fault(exc)
        if fault is None:
            raise
        text = f"{doing}: {_text(fault)}"
        if result_code(fault) in _STICKY:
            error = "E-CUDA-006"
            remedy = "The device's context is lost for this process; start a new process."
        raise CudaError(error, text, remediation=remedy) from exc


def result_code(exc: BaseException) -> int | None:
    """The ``CUresult`` number behind an exception, where its text or type tells."""
    if isinstance(exc, DriverError):
        return exc.code
    from cuda.bindings import driver

    name = re.match(r"CUDA_ERROR_\w+", str(exc))
    member = driver.CUresult.__members__.get(name[0]) if name else None
    return None if member is None else int(member)


def _driver_fault(exc: BaseException | None) -> BaseException | None:
    """``exc`` if the driver, its loader or the packages that call it are behind it.

    ``cuda.core`` keeps its exception class private, so the class's module tells. The loader of
    ``cuda.bindings`` raises kinds of RuntimeError, which become the cause of a SystemError where a
    function is missing that ``cuda.core`` calls from C.
    """
    if isinstance(exc, SystemError):
        return _driver_fault(exc.__cause__)
    is_known = isinstance(exc, (RuntimeError, ImportError, DriverError))
    return exc if is_known or type(exc).__module__.split(".")[0] == "cuda" else None


def _text(exc: BaseException) -> str:
    code = result_code(exc)
    if code is None or isinstance(exc, DriverError):
        return str(exc)
    return str(exc).replace(describe(code).split(" ")[0], describe(code), 1)
