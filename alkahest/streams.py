"""Streams as callers pass them: objects of any library, or handles."""

from __future__ import annotations

from typing import Any

from alkahest.errors import InputTypeError

LEGACY = 1
"""Handle of the legacy default stream in every protocol; 0 has no fixed meaning and is not used."""

PER_THREAD = 2
"""Handle of the calling thread's default stream."""

_HANDLES = 1 << 64

# What streams of libraries without __cuda_stream__ call their handle.
_HANDLE_NAMES = ("cuda_stream", "ptr", "handle")


def stream_handle(stream: Any) -> int:
    """The handle of a stream that the caller passed.

    Args:
        stream: an object with ``__cuda_stream__``, a stream of CuPy, PyTorch or numba, or a
            handle, where 0 and 1 are the legacy default stream and 2 is the calling thread's.

    Raises:
        InputTypeError: E-INPUT-008 for anything else.
    """
    try:
        handle = _handle_of(stream)
    except Exception as error:  # the stream's own code may raise anything
        raise _no_stream(stream) from error
    if not 0 <= handle < _HANDLES:
        raise _no_stream(stream)
    return handle or LEGACY


def _handle_of(stream: Any) -> int:
    handle: Any = stream
    if hasattr(stream, "__cuda_stream__"):
        _, handle = stream.__cuda_stream__()
    elif not hasattr(stream, "__index__"):
        handle = next((getattr(stream, a) for a in _HANDLE_NAMES if hasattr(stream, a)), None)
    if handle is None or isinstance(handle, (bool, float, str)):
        raise TypeError(f"its handle is {handle!r}")
    return int(handle)


def _no_stream(stream: object) -> InputTypeError:
    return InputTypeError(
        "E-INPUT-008",
        f"stream= is {stream!r:.60}, not a CUDA stream",
        remediation="Pass an object with __cuda_stream__, or the integer handle of a stream.",
    )


__all__ = ["LEGACY", "PER_THREAD", "stream_handle"]
