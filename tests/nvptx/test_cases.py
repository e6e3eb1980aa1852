"""The right values of ``tests/data`` on the emulated device."""

import attrs
import casefiles
import numpy as np
import pytest

from alkahest import AlkahestError, CudaError, ExprPool, compile_expr
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.plugin import Batch
from alkahest.program import Program, lower


def evaluate(program: Program, columns: list) -> tuple[np.ndarray, ...]:
    arrays = np.broadcast_arrays(*[np.asarray(c, program.dtype) for c in columns])
    batch = Batch(columns=tuple(arrays), n=len(arrays[0]))
    return EmulatedEvaluator(program).evaluate(batch).outputs


@pytest.mark.parametrize("case", casefiles.semantics_cases(), ids=str)
def test_the_numerical_rules_hold(case):
    expression, inputs = case.expression(ExprPool())
    if case.expected is None:
        with pytest.raises(CudaError) as caught:
            compile_expr(expression, inputs, backend="nvptx")
        assert caught.value.code == "E-CUDA-002"
        return
    (got,) = evaluate(lower([expression], inputs), case.columns())
    if case.text == "exp(x)":  # libdevice's exp is within 1 ulp, which at the least number is 0
        case = attrs.evolve(case, atol=5e-324)
    assert case.wrong(got) is None


@pytest.mark.parametrize("case", casefiles.open_cases(), ids=str)
def test_faults_of_other_libraries_are_not_ours(case):
    expression, inputs = case.expression(ExprPool())
    try:
        program = lower([expression], inputs)
    except AlkahestError:
        assert case.accept_refusal
        return
    (got,) = evaluate(program, case.columns())
    assert case.wrong(got) is None


@pytest.mark.parametrize("workload", casefiles.workloads(), ids=str)
def test_published_formulae_are_within_their_tolerances(workload):
    expressions, inputs = workload.expressions(ExprPool())
    outputs = evaluate(lower(expressions, inputs), workload.columns())
    assert workload.wrong(outputs) == []
