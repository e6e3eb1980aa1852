"""From LLVM IR to machine code in this process, and to the cache and back.

Straight-line kernels gain nothing from LLVM's middle end: what it would find has been done when the
program was numbered. So the only pass is the one that puts functions in line that ask for it, and
building takes a fifth of the time.

A process may fork while another of its threads compiles. The child has no such thread, and would wait
for it for ever; so forks wait until nothing is being made.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from alkahest import cache
from alkahest.backends.cpu.jit import symbols
from alkahest.errors import CodegenError, install

if TYPE_CHECKING:
    from alkahest.backends.cpu.jit.host import HostTarget

LEVEL = 2
"""LLVM's effort in choosing and ordering instructions, 0 to 3."""


making = threading.RLock()
"""Held while a function's code is made, which LLVM does for one thread at a time, and during a fork."""

_held_in_fork: list[Any] = []


def _begin_fork() -> None:
    making.acquire()
    # Objects of LLVM that are let go of take llvmlite's lock outside of ours, and so do its other users.
    # llvmlite has no public name for it.
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    lock = getattr(library, "_lock", nullcontext())
    lock.__enter__()
    _held_in_fork.append(lock)


def _end_fork() -> None:
    """In the parent, and in the child, where the thread that forked holds the same locks."""
    _held_in_fork.pop().__exit__(None, None, None)
    making.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_end_fork)


@functools.cache
def llvm() -> Any:
    """``llvmlite.binding``, ready to generate code for this machine.

    Raises:
        CodegenError: E-JIT-004, llvmlite is missing or does not work.
    """
    try:
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        binding.initialize_native_asmparser()
    except (ImportError, OSError, RuntimeError) as error:
        raise CodegenError(
            "E-JIT-004",
            f"llvmlite cannot be used: {type(error).__name__}: {error}",
            remediation=install("jit"),
        ) from error
    return binding


@functools.cache
def versions() -> Mapping[str, str]:
    """Versions of llvmlite and of the LLVM in it.

    Raises:
        CodegenError: E-JIT-004, llvmlite cannot be used.
    """
    binding = llvm()  # before its metadata are asked for, which may be missing with it
    return {
        "llvmlite": importlib.metadata.version("llvmlite"),
        "llvm": ".".join(map(str, binding.llvm_version_info)),
    }


class Code:
    """Machine code in this process; it stays while this object does.

    Args:
        object_code: what :func:`compile_ir` gave.
        exported: names of the functions that are called from outside.
        imported: names of the system's functions that the code calls.
        linked: other code that has functions which it calls, by name; kept as long as this.

    Raises:
        CodegenError: E-JIT-002, the code does not load, or a function is missing here.
    """

    def __init__(
        self,
        object_code: bytes,
        exported: Iterable[str],
        imported: Iterable[str] = (),
        linked: Mapping[str, Code] = MappingProxyType({}),
    ) -> None:
        builder = llvm().JITLibraryBuilder().add_object_img(object_code).add_current_process()
        self._linked = tuple(linked.values())
        for name, other in linked.items():
            builder.import_symbol(name, other.address(name))
        for name in imported:
            address = symbols.address(name)
            if address is None:
                raise CodegenError(
                    "E-JIT-002",
                    f"no library of this system has {name}()",
                    remediation='Use backend="cpu-reference".',
                )
            builder.import_symbol(name, address)
        exported = tuple(exported)
        for name in exported:
            builder.export_symbol(name)
        with making:
            _count[0] += 1
            try:
                self._tracker = builder.link(_session(), f"alkahest-{_count[0]}")
                self._addresses = {name: int(self._tracker[name]) for name in exported}
            except RuntimeError as error:
                raise CodegenError(
                    "E-JIT-002",
                    f"LLVM cannot load the code: {str(error).strip()}",
                    remediation='Use backend="cpu-reference".',
                ) from error

    def address(self, name: str) -> int:
        """Where the exported function ``name`` is."""
        return self._addresses[name]


_count = [0]


@functools.cache
def _session() -> Any:
    """What holds the code of this process; made once, kept for good."""
    return llvm().create_lljit_compiler(_machine("", "", LEVEL))


def _machine(cpu: str, features: str, level: int, triple: str = "") -> Any:
    binding = llvm()
    target = binding.Target.from_triple(triple or binding.get_process_triple())
    return target.create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small", jit=True
    )


def compile_ir(text: str, target: HostTarget, level: int = LEVEL) -> bytes:
    """Object code of the IR ``text`` for ``target``.

    Raises:
        CodegenError: E-JIT-002, LLVM refuses the text.
    """
    machine, module = _inlined(text, target, level)
    code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, target: HostTarget, level: int = LEVEL) -> str:
    """The same as assembly."""
    machine, module = _inlined(text, target, level)
    shown: str = machine.emit_assembly(module)
    return shown


def _inlined(text: str, target: HostTarget, level: int) -> tuple[Any, Any]:
    binding = llvm()
    machine = _machine(target.cpu, target.features, level, target.triple)
    try:
        # A context of its own: LLVM's are not for several threads at once.
        module = binding.parse_assembly(text, context=binding.create_context())
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(
            "E-JIT-002",
            f"LLVM refuses the generated code: {str(error).strip()[:500]}",
            remediation="This is a fault of alkahest; please report the expression.",
        ) from error
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.PipelineTuningOptions(0)))
    return machine, module


def key(target: HostTarget, parts: Mapping[str, str]) -> str:
    """What object code is stored under that depends on ``parts``, the processor and our sources."""
    return cache.key(
        {
            **parts,
            **versions(),
            "triple": target.triple,
            "cpu": target.cpu,
            "features": target.features,
            "sources": cache.sources(Path(__file__).parent),
        }
    )


__all__ = ["LEVEL", "Code", "assembly", "compile_ir", "key", "llvm", "making", "versions"]
