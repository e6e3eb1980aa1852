"""Programs to PTX: emit, add libdevice, optimise, generate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from alkahest.backends.nvptx import emit, libdevice, targets
from alkahest.errors import CudaError, InputError
from alkahest.plugin import Artifact
from alkahest.program import Program

INLINED_CALLS = 64
"""Up to so many calls of libdevice are inlined; beyond, the functions stay functions, because
both LLVM and the driver's compiler slow down on kernels of a million instructions."""

_LEVELS = ((20_000, 3), (10**9, 1))


@attrs.frozen
class Module:
    """An optimised LLVM module and what it was made with.

    Attributes:
        ref: the llvmlite module.
        machine: LLVM's code generator for the target.
        metadata: facts for the artifact.
    """

    ref: Any
    machine: Any
    metadata: Mapping[str, Any]


def generate(program: Program, target: str | None, options: Mapping[str, Any]) -> Artifact:
    """PTX of a verified program.

    The kernel is ``alkahest_eval``; see :mod:`alkahest.backends.nvptx.emit` for its parameters.

    Args:
        program: real, float64 or float32.
        target: ``"sm_90"`` or another of :func:`targets.supported`; None for the default.
        options: there are none; kept for the hook's sake.

    Returns:
        An artifact of kind ``"ptx"``. Its metadata: ``abi`` (``"pointers"`` or ``"table"``),
        ``ptx_version``, ``llvm``, ``llvmlite``, ``libdevice`` (path, or None where nothing of it
        is called), ``opt_level``, ``inlined`` (whether libdevice was inlined).

    Raises:
        InputError: E-INPUT-011 for an unknown target or option.
        CudaError: E-CUDA-001 without LLVM's target, E-CUDA-002 for what is not lowered,
            E-CUDA-005 where libdevice is needed and not found.
    """
    for name in options:
        raise InputError(
            "E-INPUT-011",
            f"backend nvptx has no option {name!r}",
            remediation="Remove the option.",
        )
    name = targets.resolve(target)
    module = build(program, name)
    ptx = str(module.machine.emit_assembly(module.ref))
    version = next(line.split()[1] for line in ptx.splitlines() if line.startswith(".version"))
    return Artifact(
        kind="ptx",
        code=ptx,
        program=program,
        entry=emit.ENTRY,
        target=name,
        metadata={**module.metadata, "ptx_version": version},
    )


def build(program: Program, target: str) -> Module:
    """The optimised module of a program, ready for PTX or for the emulated device."""
    binding = targets.llvm()
    kernel = emit.kernel(program)
    level = next(level for size, level in _LEVELS if len(program.code) <= size)
    machine = targets.machine(target, level)
    inline = kernel.library_calls <= INLINED_CALLS
    library, path = _library(kernel, target, inline)
    declarations = {**library.declarations, **kernel.declarations}
    text = "\n".join(
        [
            f'target triple = "{targets.TRIPLE}"',
            f'target datalayout = "{machine.target_data}"',
            *declarations.values(),
            library.definitions,
            kernel.text,
        ]
    )
    context = binding.create_context()
    try:
        ref = binding.parse_assembly(text, context=context)
        ref.verify()
    except RuntimeError as error:
        raise CudaError("E-CUDA-002", f"LLVM refused the generated code: {error}") from error
    tuning = binding.create_pipeline_tuning_options(speed_level=level)
    tuning.slp_vectorization = tuning.loop_vectorization = False
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(ref, passes)
    return Module(
        ref,
        machine,
        {
            "abi": kernel.abi,
            "llvm": ".".join(map(str, binding.llvm_version_info)),
            "libdevice": path,
            "opt_level": level,
            "inlined": inline,
        },
    )


def _library(
    kernel: emit.Kernel, target: str, inline: bool
) -> tuple[libdevice.Extract, str | None]:
    if not kernel.library:
        return libdevice.Extract("", {}), None
    library = libdevice.load()
    return library.extract(kernel.library, target, inline=inline), str(library.path)
