"""What the host needs of a device: memory in 32-bit words, copies, launches.

:mod:`~alkahest.backends.groebner_gpu.gpu` has devices of the CUDA driver;
:mod:`~alkahest.backends.groebner_gpu.emulated` has one that runs the kernels' twins on the host.
Everything above this goes through the same calls on both.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@attrs.frozen(eq=False)
class Words:
    """Words of a device's memory.

    Attributes:
        memory: what the session made of them.
        start: the first word meant.
    """

    memory: Any
    start: int = 0

    def __add__(self, words: int) -> Words:
        """The same memory from a later word on."""
        return Words(self.memory, self.start + words)


Argument = Words | int | None
"""Of a kernel: a pointer, a 32-bit integer, or a null pointer."""


def checked(argument: int) -> int:
    """A number that a kernel is given.

    Raises:
        CudaError: E-CUDA-003, it does not fit into 32 bits.
    """
    if not -(2**31) <= argument < 2**31:
        raise CudaError(
            "E-CUDA-003",
            f"a kernel would have to count to {argument}, beyond 32 bits",
            remediation="Compute with device=None.",
        )
    return argument


class Session(Protocol):
    """A device during one computation, made current for the calling thread.

    All calls but the waiting ones are queued in order. Memory that is not freed goes back at the end.
    """

    def free_bytes(self) -> int:
        """Memory that can be allocated now."""
        ...

    def allocate(self, words: int) -> Words:
        """New memory, not initialised."""
        ...

    def free(self, words: Words) -> None:
        """Give memory back when all that was queued is done."""
        ...

    def keep(self, words: Words) -> None:
        """Leave memory to the caller: it outlives the session, until :meth:`Device.release`."""
        ...

    def write(self, words: Words, values: NDArray[Any]) -> None:
        """Copy a C-contiguous array of a 32-bit type.

        It must not change until the device has been waited for; the session keeps it until then.
        """
        ...

    def read(self, words: Words, values: NDArray[Any]) -> None:
        """Fill a C-contiguous array of a 32-bit type; waits."""
        ...

    def zero(self, words: Words, count: int) -> None:
        """Set words to zero."""
        ...

    def copy(self, source: Words, target: Words, count: int) -> None:
        """Copy words on the device; the places do not overlap."""
        ...

    def launch(
        self,
        kernel: str,
        group: int,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared: int,
        *arguments: Argument,
    ) -> None:
        """Queue a kernel, compiled for ``group``, with ``shared`` bytes of dynamic shared memory."""
        ...

    def wait(self) -> None:
        """Return when all that was queued is done."""
        ...


class Device(Protocol):
    """One device.

    Attributes:
        name: for reports.
        ordinal: its number.
        multiprocessors: number of them.
        shared_bytes: most shared memory of a block.
        tensor_cores: whether it multiplies in double precision faster on tensor cores.
        is_gpu: False where it is emulated.
    """

    @property
    def name(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def multiprocessors(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def tensor_cores(self) -> bool: ...
    @property
    def is_gpu(self) -> bool: ...

    def session(self) -> AbstractContextManager[Session]:
        """Use the device in this thread.

        Errors of the driver in the block become ``CudaError``: E-CUDA-003 where a request was
        refused, as when memory runs out, E-CUDA-006 where a kernel failed. Nothing that was queued
        is left running.
        """
        ...

    def release(self, words: Words) -> None:
        """Give back what a session has kept and nothing uses any more; a failure is not reported."""
        ...


__all__ = ["Argument", "Device", "Session", "Words", "checked"]
