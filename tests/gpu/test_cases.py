"""The right values of ``tests/data`` on the device, through the public functions."""

from __future__ import annotations

import casefiles
import numpy as np
import pytest

import alkahest as ak


@pytest.mark.parametrize("case", casefiles.semantics_cases(), ids=str)
def test_the_numerical_rules_hold(case: casefiles.EvalCase) -> None:
    expression, inputs = case.expression(ak.ExprPool())
    if case.expected is None:
        with pytest.raises(ak.CudaError) as caught:
            ak.compile_cuda(expression, inputs)
        assert caught.value.code == "E-CUDA-002"
        return
    got = ak.compile_cuda(expression, inputs).call_batch(case.columns())
    if case.text == "exp(x)":  # libdevice's exp is within 1 ulp, which at the least number is 0
        assert got[0] in (case.expected[0], 0.0)
        return
    assert case.wrong(got) is None


@pytest.mark.parametrize("case", casefiles.open_cases(), ids=str)
def test_faults_of_other_libraries_are_not_ours(case: casefiles.EvalCase) -> None:
    expression, inputs = case.expression(ak.ExprPool())
    columns = case.columns()
    scalar_only = all(np.ndim(column) == 0 for column in columns)
    try:
        fn = ak.compile_cuda(expression, inputs)
        got = fn.call_batch(columns, n=len(case.expected or ()) if scalar_only else None)
    except ak.AlkahestError:
        assert case.accept_refusal
        return
    assert case.wrong(got) is None


@pytest.mark.parametrize("workload", casefiles.workloads(), ids=str)
def test_published_formulae_are_within_their_tolerances(workload: casefiles.Workload) -> None:
    expressions, inputs = workload.expressions(ak.ExprPool())
    fn = ak.compile_cuda(expressions, inputs)
    assert workload.wrong(fn.call_batch(workload.columns())) == []


@pytest.mark.parametrize("workload", casefiles.workloads(), ids=str)
def test_published_formulae_agree_with_the_reference_far_from_their_points(
    workload: casefiles.Workload,
) -> None:
    expressions, inputs = workload.expressions(ak.ExprPool())
    generator = np.random.default_rng(3)
    rows = generator.integers(0, len(workload.columns()[0]), 20_000)
    columns = [
        column[rows] * generator.uniform(0.99, 1.01, len(rows)) for column in workload.columns()
    ]
    gpu = ak.compile_cuda(expressions, inputs).call_batch(columns)
    cpu = ak.compile_expr(expressions, inputs, backend="cpu-reference").call_batch(columns)
    for name, got, want in zip([o["name"] for o in workload.outputs], gpu, cpu, strict=True):
        assert got.dtype == want.dtype
        if got.dtype == np.bool_:
            assert (got != want).mean() < 1e-3, name  # points on an edge may fall to either side
            continue
        scale = np.maximum(np.abs(want), np.nanmedian(np.abs(want)))
        assert np.isnan(got[np.isnan(want)]).all(), name
        off = np.abs(got - want) / scale
        assert np.nanquantile(off, 0.999) < 1e-10, name
