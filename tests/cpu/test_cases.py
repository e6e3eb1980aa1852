"""The right values of ``tests/data`` on the CPU reference."""

import casefiles
import pytest

import alkahest
from alkahest import AlkahestError, ExprPool


@pytest.mark.parametrize("case", casefiles.semantics_cases(), ids=str)
def test_the_numerical_rules_hold(case):
    expression, inputs = case.expression(ExprPool())
    if case.expected is None:
        with pytest.raises(AlkahestError) as caught:
            alkahest.compile_expr(expression, inputs, backend="cpu-reference")
        assert caught.value.code == "E-JIT-006"
        return
    fn = alkahest.compile_expr(expression, inputs, backend="cpu-reference")
    assert case.wrong(fn.call_batch(case.columns())) is None


@pytest.mark.parametrize("case", casefiles.open_cases(), ids=str)
def test_faults_of_other_libraries_are_not_ours(case):
    expression, inputs = case.expression(ExprPool())
    fn = alkahest.compile_expr(expression, inputs, backend="cpu-reference")
    assert case.wrong(fn.call_batch(case.columns())) is None


@pytest.mark.parametrize("workload", casefiles.workloads(), ids=str)
def test_published_formulae_are_within_their_tolerances(workload):
    expressions, inputs = workload.expressions(ExprPool())
    fn = alkahest.compile_expr(expressions, inputs, backend="cpu-reference")
    assert workload.wrong(fn.call_batch(workload.columns())) == []


def test_several_outputs_come_in_the_order_of_the_list():
    x, y = alkahest.symbols("x y")
    fn = alkahest.compile_expr([x**y, x + y, x * y], [x, y], backend="cpu-reference")
    assert [o.tolist() for o in fn([2.0], [3.0])] == [[8.0], [5.0], [6.0]]
