"""What stands behind the capability bit ``llvm_jit``."""

from __future__ import annotations

from typing import Any

from alkahest.errors import AlkahestError
from alkahest.plugin import Batch, Probe
from alkahest.program import Instruction, Program

_ERF_ONE = 0.8427007929497149
_POINTS = 37
"""Whole vectors and a rest, whatever their width."""


def probe() -> Probe:
    """Compile a kernel, load it and compare what it computes; the cache is used as always."""
    try:
        from alkahest.backends.cpu.jit import engine

        facts: dict[str, Any] = dict(engine.versions())
        values, report = _evaluate()
    except AlkahestError as error:
        return Probe(ok=False, detail=error.message, code=error.code)
    worst = max(abs(value - _ERF_ONE) for value in values)
    facts |= {name: report[name] for name in ("target", "width")}
    if not worst <= 1e-15:
        return Probe(
            ok=False, detail=f"erf(1) is off by {worst:.3g}", code="E-JIT-002", facts=facts
        )
    detail = f"machine code for {report['target']}, {report['width']} doubles in a vector"
    return Probe(ok=True, detail=detail, facts=facts)


def witness() -> Probe:
    """The same through ``compile_expr``."""
    from alkahest.compiled import compile_expr
    from alkahest.expr import ExprPool

    pool = ExprPool()
    x = pool.symbol("x")
    fn = compile_expr(pool.func("erf", [x]), [x], backend="cpu-jit", tier="compiled")
    values = fn.call_batch([[1.0] * _POINTS])
    worst = max(abs(value - _ERF_ONE) for value in values)
    ok = worst <= 1e-15 and fn.report["tier"] == "compiled"
    return Probe(ok=ok, detail=f"erf(1) = {values[0]}", code="" if ok else "E-JIT-002")


def _evaluate() -> tuple[Any, Any]:
    import numpy as np

    from alkahest.backends.cpu.jit.evaluator import JitEvaluator
    from alkahest.backends.cpu.jit.options import COMPILED, Options

    program = Program(
        dtype="float64",
        inputs=("x",),
        constants=(),
        code=(Instruction("erf", (0,)),),
        outputs=(1,),
    )
    evaluator = JitEvaluator(program, Options(tier=COMPILED))
    outcome = evaluator.evaluate(Batch(columns=(np.ones(_POINTS),), n=_POINTS))
    return outcome.outputs[0], outcome.report


__all__ = ["probe", "witness"]
