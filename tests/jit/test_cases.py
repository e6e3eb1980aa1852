"""The right values of ``tests/data`` on compiled code, in every accuracy mode."""

from __future__ import annotations

from typing import Any

import attrs
import casefiles
import pytest

from alkahest import AlkahestError, ExprPool

FUNCTION_ULP = {"strict": 1, "default": 4, "fast": 4}
"""What a function may be off; a case states it for the best libraries."""


PLAIN_POWERS_ULP = 250
"""Of repeated squaring, which ``fast`` may use: 9 at x**100, 209 at x**1000."""


def within(case: casefiles.EvalCase, accuracy: str) -> casefiles.EvalCase:
    """The case with the bound of the mode, where it has one for rounding at all."""
    if not case.ulp:
        return case
    is_plain = accuracy == "fast" and "**" in case.text
    bound = PLAIN_POWERS_ULP if is_plain else FUNCTION_ULP[accuracy]
    return attrs.evolve(case, ulp=max(case.ulp, bound))


@pytest.mark.parametrize("case", casefiles.semantics_cases(), ids=str)
def test_the_numerical_rules_hold(case: Any, compiled: Any, accuracy: str) -> None:
    expression, inputs = case.expression(ExprPool())
    if case.expected is None:
        with pytest.raises(AlkahestError) as caught:
            compiled(expression, inputs, accuracy=accuracy)
        assert caught.value.code == "E-JIT-006"
        return
    fn = compiled(expression, inputs, accuracy=accuracy)
    assert within(case, accuracy).wrong(fn.call_batch(case.columns())) is None


@pytest.mark.parametrize("case", casefiles.open_cases(), ids=str)
def test_faults_of_other_libraries_are_not_ours(case: Any, compiled: Any, accuracy: str) -> None:
    expression, inputs = case.expression(ExprPool())
    fn = compiled(expression, inputs, accuracy=accuracy)
    assert case.wrong(fn.call_batch(case.columns())) is None


@pytest.mark.parametrize("workload", casefiles.workloads(), ids=str)
def test_published_formulae_are_within_their_tolerances(
    workload: Any, compiled: Any, accuracy: str
) -> None:
    expressions, inputs = workload.expressions(ExprPool())
    fn = compiled(expressions, inputs, accuracy=accuracy)
    assert workload.wrong(fn.call_batch(workload.columns())) == []
