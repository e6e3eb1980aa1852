"""What stands behind the capability bit ``cuda``."""

from __future__ import annotations

import json
import math
from typing import Any

from alkahest import cache
from alkahest.backends.nvptx import accuracy, emit, libdevice, toolchain
from alkahest.backends.nvptx.lowerings import DTYPES, LOWERINGS
from alkahest.backends.nvptx.module import generate
from alkahest.errors import AlkahestError, CudaError
from alkahest.ops import OPS, Op, Signature
from alkahest.plugin import Batch, Probe
from alkahest.program import Instruction, Program

WITNESS_POINTS = 1000
"""Points of the witness: several blocks, the last one not full."""

_FACTS = ("llvm", "libdevice", "ptx_version")


def probe() -> Probe:
    """Whether every operation of the table can be emitted here; touches no driver.

    All operations are written as LLVM assembly, the libdevice found here has to have all functions
    that they call, and one kernel that calls it goes all the way to PTX. A yes is kept on disk for
    as long as compiler, libdevice and our sources stay as they are.
    """
    compilers = toolchain.compilers()
    key = None if compilers is None else cache.key({**compilers, "kind": "probe"})
    known = None if key is None else cache.load(key)
    try:
        facts: dict[str, str] = _checked() if known is None else json.loads(known)
    except AlkahestError as error:
        return Probe(ok=False, detail=error.message, code=error.code)
    if known is None and key is not None:
        cache.store(key, json.dumps(facts).encode(), label="whether PTX can be emitted")
    shown = {name: facts[name] for name in _FACTS}
    return Probe(ok=True, detail=f"PTX for {facts['target']} emitted", facts=shown)


def _checked() -> dict[str, str]:
    """Facts of the kernel that was emitted.

    Raises:
        CudaError: E-CUDA-001, 002, 005; what stands in the way.
    """
    for dtype in sorted(DTYPES):
        kernel = emit.kernel(every_operation(dtype), mode=accuracy.STRICT)
        libdevice.load().demand(sorted(kernel.symbols.library))
    artifact = generate(_sine(), None, {accuracy.OPTION: accuracy.STRICT})
    ptx = str(artifact.code)
    if f".entry {artifact.entry}" not in ptx or "__nv_" in ptx:
        raise CudaError("E-CUDA-002", "the generated PTX is not a kernel")
    return {**{name: artifact.metadata[name] for name in _FACTS}, "target": artifact.target}


def witness() -> Probe:
    """Evaluate ``sin(x)`` on device 0 and compare; a machine without a device fails."""
    import numpy as np

    from alkahest.backends.nvptx.evaluator import NvptxEvaluator
    from alkahest.backends.nvptx.kernel import compile_for

    points = np.linspace(-10.0, 10.0, WITNESS_POINTS)
    try:
        evaluator = NvptxEvaluator(compile_for(_sine(), None, {}), 0)
        outcome = evaluator.evaluate(Batch(columns=(points,), n=len(points)))
    except AlkahestError as error:
        return Probe(ok=False, detail=error.message, code=error.code)
    wanted = [math.sin(x) for x in points]
    worst = max(abs(got - want) for got, want in zip(outcome.outputs[0], wanted, strict=True))
    facts: dict[str, Any] = dict(outcome.report)
    if not worst <= 1e-15:
        detail = f"sin on {facts['device_name']} is off by {worst:.3g}"
        return Probe(ok=False, detail=detail, code="E-CUDA-006", facts=facts)
    return Probe(ok=True, detail=f"a kernel ran on {facts['device_name']}", facts=facts)


def every_operation(dtype: str) -> Program:
    """A program of three inputs in which every lowered operation occurs once, each an output."""
    condition = 3  # the first instruction: a < b
    code = [Instruction("lt", (0, 1))]
    for name in LOWERINGS:
        op = OPS[name]
        code.append(Instruction(name, _operands(op, condition), 7 if op.has_parameter else None))
    outputs = tuple(range(condition, condition + len(code)))
    return Program(
        dtype=dtype, inputs=("a", "b", "c"), constants=(), code=tuple(code), outputs=outputs
    ).verify()


def _operands(op: Op, condition: int) -> tuple[int, ...]:
    if op.signature is Signature.LOGIC:
        return (condition,) * op.arity
    if op.signature is Signature.SELECT:
        return (condition, 0, 1)
    return tuple(range(op.arity))


def _sine() -> Program:
    return Program(
        dtype="float64",
        inputs=("x",),
        constants=(),
        code=(Instruction("sin", (0,)),),
        outputs=(1,),
    ).verify()
