"""PTX to a kernel on a device; machine code on disk, where that costs the kernel nothing.

The driver compiles PTX as it loads it, and keeps what it has made in a cache of its own. Linking
hands machine code over instead, which is kept in ours, so that later processes need no compiler at
all. But what is linked is compiled apart from the modules that it may be linked with: functions keep
to the common calling convention, and addresses of tables are not known. On an H200, kernels that call
functions were up to 7 % slower. A kernel without either is the same to the register, and is linked.
"""

from __future__ import annotations

import ctypes
import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from alkahest import cache
from alkahest.backends.nvptx import driver, faults, toolchain
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from alkahest.backends.nvptx.device import Device
    from alkahest.plugin import Artifact

# Functions, instructions that the assembler replaces by calls of functions of its own, and tables.
_CHANGED = re.compile(
    rb"\.func|\b(?:div|rcp|sqrt)\.rn\.|\brsqrt\.approx\.f64|\b(?:div|rem)\.[us]64"
    rb"|\.const\b|^\s*\.global\b",
    re.MULTILINE,
)

_LOG_BYTES = 8192


class CompilerError(faults.DriverError):
    """The driver's compiler refused code; the text ends with what it says."""

    def __init__(self, error: faults.DriverError, log: str) -> None:
        super().__init__(error.code, "")
        self.args = (f"{error}; the driver's compiler says: {log}" if log else str(error),)


def load(artifact: Artifact, device: Device, doing: str, remedy: str) -> Any:
    """The ``cuda.core.Kernel`` of an artifact on a device, which is current.

    Args:
        artifact: PTX.
        device: where.
        doing: what is being done, for messages.
        remedy: what to do when the driver refuses the code.

    Raises:
        CudaError: E-CUDA-003, the driver refused; E-CUDA-006, a kernel has ruined the context.
    """
    code = artifact.code.encode() if isinstance(artifact.code, str) else artifact.code
    key = None if is_changed_by_linking(code) else key_of(code, device)
    stored = None if key is None else cache.load(key)
    if stored is not None:
        try:
            with faults.translated("E-CUDA-003", doing, remedy):
                return _kernel(stored, artifact.entry, "cubin")
        except CudaError as error:
            if error.code != "E-CUDA-003":
                raise
            # Not what this driver loads, whatever it is: made again below.
    with faults.translated("E-CUDA-003", doing, remedy):
        if key is None:
            return _compiled(code, artifact.entry)
        made = assemble(code)
        kernel = _kernel(made, artifact.entry, "cubin")
    major, minor = device.capability
    cache.store(key, made, label=f"machine code for sm_{major}{minor}, from {artifact.target}")
    return kernel


def _compiled(code: bytes, entry: str) -> Any:
    """PTX, compiled by the driver as it loads it."""
    try:
        return _kernel(code, entry, "ptx")
    except Exception as error:
        if faults.result_code(error) in driver.CODE_REFUSALS:
            assemble(code)  # refused again, with the compiler's log
        raise


def is_changed_by_linking(code: bytes) -> bool:
    """Whether PTX has anything that is compiled in another way in order to be linked."""
    return _CHANGED.search(code) is not None


def key_of(code: bytes, device: Device) -> str:
    """The key of the machine code that this driver makes from ``code`` for this device."""
    return cache.key(
        {
            "kind": "cubin",
            "ptx": sha256(code).hexdigest(),
            "capability": ".".join(map(str, device.capability)),
            "driver": _driver(),
        }
    )


def assemble(code: bytes) -> bytes:
    """Machine code of the PTX ``code`` for the device that is current.

    Raises:
        CompilerError: the driver refused, with its compiler's log.
    """
    from cuda.bindings import driver as cu

    names = cu.CUjit_option
    log = bytearray(_LOG_BYTES)
    options = [names.CU_JIT_ERROR_LOG_BUFFER, names.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    state = faults.check(cu.cuLinkCreate(len(options), options, [log, len(log)]), "cuLinkCreate")
    try:
        kind = cu.CUjitInputType.CU_JIT_INPUT_PTX
        added = cu.cuLinkAddData(state, kind, code, len(code), b"alkahest", 0, [], [])
        faults.check(added, "cuLinkAddData")
        address, size = faults.check(cu.cuLinkComplete(state), "cuLinkComplete")
        return ctypes.string_at(int(address), size)
    except faults.DriverError as error:
        text = bytes(log).split(b"\0")[0].decode(errors="replace").strip()
        raise CompilerError(error, text) from error
    finally:
        cu.cuLinkDestroy(state)


def _driver() -> str:
    """What tells drivers apart, and with them their compilers.

    The release of CUDA that a driver reports is the same for many drivers; the file that its
    library's name leads to is named after the driver's own version.
    """
    found = driver.started()
    path = os.path.realpath(found.library)
    try:
        stamp = toolchain.stamp(path)
    except OSError:  # a name that only the loader can follow
        stamp = "unknown"
    return f"CUDA {found.version}, {os.path.basename(path)}, {stamp}"


def _kernel(code: bytes, entry: str, kind: str) -> Any:
    from cuda.bindings import driver as cu
    from cuda.core import ObjectCode

    load_code = {"cubin": ObjectCode.from_cubin, "ptx": ObjectCode.from_ptx}[kind]
    kernel = load_code(code).get_kernel(entry)
    # Drivers put loading off until the first launch, where its errors would look like ours.
    faults.check(cu.cuKernelGetFunction(kernel.handle), "cuKernelGetFunction")
    return kernel


__all__ = ["CompilerError", "assemble", "is_changed_by_linking", "key_of", "load"]
