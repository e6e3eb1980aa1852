"""The machine code that every kernel shares: workers, strided columns, fast calls.

Built once for a machine, then taken from the cache.
"""

from __future__ import annotations

from functools import cache

import attrs

from alkahest import cache as stored
from alkahest.backends.cpu.jit import engine, glue_code, strided, threads
from alkahest.backends.cpu.jit.host import HostTarget

_EXPORTED = ("fast_call", "share", "strided", "worker")


@attrs.frozen(eq=False)
class Runtime:
    """The shared code, loaded.

    Attributes:
        code: keeps it in memory.
        pool: the workers.
    """

    code: engine.Code
    pool: threads.Pool

    @property
    def strided(self) -> int:
        """Address of ``strided``."""
        return self.code.address("strided")

    @property
    def fast_call(self) -> int:
        """Address of ``fast_call``."""
        return self.code.address("fast_call")


@cache
def runtime() -> Runtime:
    """The runtime of this process.

    Raises:
        CodegenError: E-JIT-002, E-JIT-004 where LLVM does not work.
    """
    target = HostTarget.detect()
    text = "\n".join(
        (threads.code(target.triple.partition("-")[0]), strided.code(), glue_code.code())
    )
    key = engine.key(target, {"what": "runtime", "text": text})
    object_code = stored.load(key)
    if object_code is None:
        object_code = engine.compile_ir(text, target)
        stored.store(key, object_code, label="cpu-jit runtime")
    code = engine.Code(object_code, _EXPORTED)
    return Runtime(code, threads.Pool(code.address))


__all__ = ["Runtime", "runtime"]
