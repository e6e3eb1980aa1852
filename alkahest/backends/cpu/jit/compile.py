"""From a program to a kernel in memory, through the caches."""

from __future__ import annotations

import functools
import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from alkahest import cache
from alkahest.backends.cpu.jit import engine, shared, threads
from alkahest.backends.cpu.jit.emit import KernelCode, emit_kernel
from alkahest.backends.cpu.jit.host import HostTarget
from alkahest.forks import ForkSafeLock
from alkahest.program import digest

if TYPE_CHECKING:
    from alkahest.backends.cpu.jit.options import Options
    from alkahest.program import Program

KEPT = 128
"""Kernels that stay in memory when no function uses them any more: the last ones used."""


@attrs.frozen(kw_only=True, eq=False)
class Kernel:
    """A program as machine code in this process.

    Attributes:
        code: keeps it in memory.
        address: of the entry; its parameters are described in :mod:`alkahest.backends.cpu.jit.emit`.
        scratch: bytes of scratch memory of one call, a multiple of 64.
        width: numbers in a vector.
        interleave: vectors that are computed together.
        cost: estimated cycles for one point.
        record: what is remembered of its shared calls.
        facts: what there is to say about it, for reports.
        seconds: that making it took: writing, compiling, loading.
    """

    code: engine.Code
    address: int
    scratch: int
    width: int
    interleave: int
    cost: float
    record: Any
    facts: Mapping[str, Any]
    seconds: float


class Compiler:
    """Makes the kernel of one program.

    Args:
        program: verified.
        options: checked.
    """

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.target = target(options.target)
        self._key = ""

    @property
    def key(self) -> str:
        """What the kernel is stored under."""
        # A cached_property has a lock of its own in Python 3.11, which a forked child may find held.
        if not self._key:
            self._key = engine.key(
                self.target,
                {
                    "what": "kernel",
                    "program": digest(self.program),
                    "accuracy": self.options.accuracy,
                    "vector_bits": str(self.target.vector_bits),
                    "system": _system_library(),
                },
            )
        return self._key

    def written(self) -> KernelCode:
        """The kernel as LLVM assembly."""
        return emit_kernel(self.program, self.target, accuracy=self.options.accuracy)

    def assembly(self) -> str:
        """The kernel as the processor's assembly."""
        return engine.assembly(self.written().ir, self.target)

    def found(self) -> Kernel | None:
        """The kernel, if it is in memory or on disk."""
        kernel = _kept.get(self.key)
        if kernel is not None:
            return kernel
        start = perf_counter()
        record = cache.load(self.key)
        if record is None:
            return None
        head, _, object_code = record.partition(b"\n")
        description = json.loads(head)
        linked = shared.find_all(description["shared"])
        if linked is None:
            return None  # they were stored too, and have been pushed out
        return self._load(description, object_code, linked, "disk", start)

    def kernel(self) -> Kernel:
        """The kernel, found or made.

        Raises:
            CodegenError: E-JIT-001, E-JIT-002, E-JIT-004 where it cannot be made.
        """
        found = self.found()
        if found is not None:
            return found
        start = perf_counter()
        written = self.written()
        parts = shared.Parts(written.ir, self.target)
        linked = parts.code(set(written.symbols))
        object_code = engine.compile_ir(parts.text, self.target)
        description = {
            "entry": written.entry,
            "symbols": written.symbols,
            "shared": parts.keys,
            "scratch": written.scratch_bytes,
            "width": written.width,
            "interleave": written.interleave,
            "cost": written.cost,
            "report": dict(written.report),
        }
        kernel = self._load(description, object_code, linked, "compiled", start)
        head = json.dumps(description).encode()
        label = f"cpu-jit {self.target.cpu} {self.options.accuracy}"
        cache.store(self.key, b"\n".join((head, object_code)), label=label)
        return kernel

    def _load(
        self,
        description: Mapping[str, Any],
        object_code: bytes,
        linked: Mapping[str, engine.Code],
        source: str,
        start: float,
    ) -> Kernel:
        entry = description["entry"]
        code = engine.Code(object_code, (entry,), description["symbols"], linked)
        seconds = perf_counter() - start
        facts = {
            "target": self.target.cpu,
            "width": description["width"],
            "interleave": description["interleave"],
            **description["report"],
            "accuracy": self.options.accuracy,
            "code": source,
        }
        kernel = Kernel(
            code=code,
            address=code.address(entry),
            scratch=-(-description["scratch"] // 64) * 64,
            width=description["width"],
            interleave=description["interleave"],
            cost=description["cost"],
            record=threads.record(),
            facts=facts,
            seconds=seconds,
        )
        return _kept.put(self.key, kernel)


class _Kept:
    """The kernels that were used last, by key; safe to use from many threads."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[str, Kernel] = OrderedDict()
        self._lock = ForkSafeLock()

    def get(self, key: str) -> Kernel | None:
        with self._lock:
            kernel = self._kernels.get(key)
            if kernel is not None:
                self._kernels.move_to_end(key)
            return kernel

    def put(self, key: str, kernel: Kernel) -> Kernel:
        """Keep the kernel, unless another thread was quicker; what is kept."""
        with self._lock:
            kernel = self._kernels.setdefault(key, kernel)
            self._kernels.move_to_end(key)
            while len(self._kernels) > KEPT:
                self._kernels.popitem(last=False)
            return kernel

    def clear(self) -> None:
        with self._lock:
            self._kernels.clear()


_kept = _Kept()


def forget() -> None:
    """Let go of the kernels in memory that no function uses."""
    _kept.clear()


@functools.lru_cache(maxsize=16)
def _narrowed(wanted: str | None, environment: str) -> HostTarget:
    found = HostTarget.detect()
    return found if wanted is None else found.narrowed(wanted)


def target(wanted: str | None = None) -> HostTarget:
    """The processor that code is written for.

    Args:
        wanted: as ``ALKAHEST_CPU_TARGET`` is written; None is this processor.

    Raises:
        InputError: E-INPUT-011, it names no target.
        CodegenError: E-JIT-004, llvmlite cannot be used.
    """
    engine.llvm()
    return _narrowed(wanted, os.environ.get("ALKAHEST_CPU_TARGET", ""))


def _system_library() -> str:
    """The C library and its version; its functions differ from one to the next."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


__all__ = ["Compiler", "Kernel", "forget", "target"]
