"""How a computation is to be run: where, for how long, how sure, telling whom."""

from __future__ import annotations

import re
import time
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.errors import CudaError, InputError, InputTypeError, install
from alkahest.plugin import make_reducer

if TYPE_CHECKING:
    from alkahest.groebner.engine.records import ProgressCallback

GPU_BACKEND = "groebner-cuda"
"""The backend whose plugin brings linear algebra on NVIDIA GPUs."""

AUTO = "auto"
"""In place of a device: the processor or the GPUs, as is expected to be quicker."""

FALLBACKS = ("error", "cpu")


@attrs.frozen(kw_only=True)
class Settings:
    """What the keyword arguments of :meth:`GroebnerBasis.compute` say; see there."""

    device: str | int | None = None
    executor: Executor | None = None
    certify: bool = False
    seed: int | None = None
    progress: ProgressCallback | None = None
    fallback: str = "error"
    deadline: float | None = None
    memory: int | None = None
    _start: float = attrs.field(init=False, factory=time.monotonic, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.fallback not in FALLBACKS:
            raise _option("fallback", self.fallback, "'error' or 'cpu'")
        if self.seed is not None and not _is_int(self.seed):
            raise _option("seed", self.seed, "an integer")
        if self.deadline is not None and not (_is_number(self.deadline) and self.deadline > 0):
            raise _option("deadline", self.deadline, "a positive number of seconds")
        if self.memory is not None and not (_is_number(self.memory) and self.memory > 0):
            raise _option("memory", self.memory, "a positive number of bytes")
        if not isinstance(self.certify, bool):
            raise _option("certify", self.certify, "True or False")
        if self.progress is not None and not callable(self.progress):
            raise InputTypeError(
                "E-INPUT-008", f"progress must be a function of one argument, not {self.progress!r}"
            )
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise InputTypeError(
                "E-INPUT-008",
                f"executor must be a concurrent.futures.Executor, not {self.executor!r}",
            )
        if device_ordinal(self.device) is not None and self.executor is not None:
            raise _option("executor", self.executor, "None where device= asks for a GPU")

    @property
    def until(self) -> float | None:
        """The deadline as a reading of :func:`time.monotonic`, counted from when this was made."""
        return None if self.deadline is None else self._start + self.deadline

    def renewed(self) -> Settings:
        """The same for another computation, whose deadline counts from now."""
        return attrs.evolve(self)

    def reducer(self) -> Any:
        """What does the linear algebra: None is the processor.

        With ``fallback="cpu"`` the processor takes over whatever the GPU fails at.

        Raises:
            CudaError: E-CUDA-003 where a GPU is asked for and no plugin brings one.
        """
        if self.device == AUTO:
            return self._choosing()
        ordinal = device_ordinal(self.device)
        if ordinal is None:
            return None
        reducer = make_reducer(GPU_BACKEND, None if ordinal < 0 else ordinal)
        if reducer is None:
            raise CudaError(
                "E-CUDA-003",
                f"device={self.device!r}: no plugin here reduces matrices on a GPU",
                remediation=f"{install('groebner-gpu')}; device=None computes on the processor.",
            )
        if self.fallback == "error":
            return reducer
        from alkahest.groebner.engine.reducers import with_fallback

        return with_fallback(reducer)  # type: ignore[arg-type]

    def _choosing(self) -> Any:
        """The processor or the GPUs, as is expected to be quicker."""
        from alkahest.groebner.engine.choosing import ChoosingReducer

        try:
            device, obstacle = make_reducer(GPU_BACKEND, None), ""
        except CudaError as error:
            device, obstacle = None, error.message
        if device is None:
            obstacle = obstacle or "no plugin here reduces matrices on a GPU"
        return ChoosingReducer(device, obstacle, fallback=self.fallback == "cpu")  # type: ignore[arg-type]


def device_ordinal(device: object) -> int | None:
    """Ordinal of a GPU, -1 for all of them, None for the processor and where that is open.

    Raises:
        InputError: E-INPUT-011 for a device that cannot be meant.
    """
    if device is None or device in ("cpu", AUTO):
        return None
    if _is_int(device) and device >= 0:  # type: ignore[operator]
        return int(device)  # type: ignore[call-overload, no-any-return]
    if isinstance(device, str) and (match := re.fullmatch(r"cuda(?::(\d+))?", device)):
        return -1 if match[1] is None else int(match[1])
    raise _option("device", device, "None, 'cpu', 'cuda', 'cuda:1', 'auto' or the ordinal of a GPU")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _option(name: str, value: object, wanted: str) -> InputError:
    return InputError(
        "E-INPUT-011", f"{name} must be {wanted}, not {value!r}", remediation=f"Pass {wanted}."
    )


__all__ = ["AUTO", "FALLBACKS", "GPU_BACKEND", "Settings", "device_ordinal"]
