"""Programs to PTX: emit, add libdevice, optimise, generate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from alkahest.backends.nvptx import accuracy, block, emit, fastmath, libdevice, pairs, targets
from alkahest.backends.nvptx.access import Access
from alkahest.backends.nvptx.shapes import UNTUNED, Tuning, choose
from alkahest.errors import CudaError
from alkahest.plugin import Artifact
from alkahest.program import Program

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


def generate(
    program: Program,
    target: str | None,
    options: Mapping[str, Any],
    access: Access | None = None,
    tuning: Tuning = UNTUNED,
) -> Artifact:
    """PTX of a verified program.

    The kernel is ``alkahest_eval``; see :mod:`alkahest.backends.nvptx.emit` for its parameters.

    Args:
        program: of any dtype.
        target: ``"sm_90"`` or another of :func:`targets.supported`; None for the default.
        options: ``accuracy``, one of :data:`accuracy.MODES`.
        access: how columns and outputs are reached; None is :meth:`Access.plain`.
        tuning: the shapes of the device that it is for; they count where there is no access.

    Returns:
        An artifact of kind ``"ptx"``. Its metadata: ``abi`` (``"pointers"`` or ``"table"``),
        ``ptx_version``, ``llvm``, ``libdevice`` (path, or None where nothing of it
        is called), ``opt_level``, ``inlined`` (whether functions were inlined), ``accuracy``,
        ``points`` (per thread), ``work`` (its kind, by which a launch is shaped), ``tuning`` (what
        ``points`` was chosen by), ``split`` (whether it is complex, and numbers are pairs).

    Raises:
        InputError: E-INPUT-011 for an unknown target or option.
        CudaError: E-CUDA-001 without LLVM's target, E-CUDA-002 for what is not lowered,
            E-CUDA-005 where libdevice is needed and not found.
    """
    mode = accuracy.mode_of(options)
    name = targets.resolve(target)
    module = build(program, name, access, mode, tuning)
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


def build(
    program: Program,
    target: str,
    access: Access | None = None,
    mode: str = accuracy.DEFAULT,
    tuning: Tuning = UNTUNED,
) -> Module:
    """The optimised module of a program, ready for PTX or for the emulated device."""
    binding = targets.llvm()
    choice = choose(program, mode, tuning)
    access = access or Access.plain(program, mode, choice.points)
    kernel = (pairs if program.is_complex else emit).kernel(program, access, mode)
    symbols = kernel.symbols
    level = next(level for size, level in _LEVELS if kernel.instructions <= size)
    machine = targets.machine(target, level)
    library, path = _library(symbols.library, target)
    own = fastmath.assembly(symbols.own)
    declarations = {**library.declarations, **own.declarations, **symbols.declarations}
    functions = block.with_pool(library.definitions, symbols)
    text = "\n".join(
        [
            f'target triple = "{targets.TRIPLE}"',
            f'target datalayout = "{machine.target_data}"',
            *declarations.values(),
            *symbols.constants,
            functions,
            own.definitions,
            kernel.text,
        ]
    )
    context = binding.create_context()
    try:
        ref = binding.parse_assembly(text, context=context)
        ref.verify()
    except RuntimeError as error:
        raise CudaError("E-CUDA-002", f"LLVM refused the generated code: {error}") from error
    effort = binding.create_pipeline_tuning_options(speed_level=level)
    effort.slp_vectorization = effort.loop_vectorization = effort.loop_unrolling = False
    passes = binding.create_pass_builder(machine, effort)
    passes.getModulePassManager().run(ref, passes)
    return Module(
        ref,
        machine,
        {
            "abi": kernel.abi,
            "llvm": ".".join(map(str, binding.llvm_version_info)),
            "libdevice": path,
            "opt_level": level,
            "inlined": kernel.inlined,
            "accuracy": mode,
            "points": access.points,
            "work": choice.work,
            "tuning": tuning.text(program.dtype),
            "split": program.is_complex,
        },
    )


def _library(called: Collection[str], target: str) -> tuple[libdevice.Extract, str | None]:
    if not called:
        return libdevice.Extract("", {}), None
    library = libdevice.load()
    return library.extract(called, target), str(library.path)
