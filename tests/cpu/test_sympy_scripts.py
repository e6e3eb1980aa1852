"""Scripts written for SymPy, with one import changed: the numbers are right and SymPy's own.

Most of the formulae are published ones whose values are known to fifty digits.
"""

from types import SimpleNamespace

import casefiles
import numpy as np
import pytest
import sympy as sp

import alkahest as ak

SCRIPTS = casefiles.DATA / "sympy_scripts"
WORKLOADS = {workload.name: workload for workload in casefiles.workloads()}
KINDS = {
    "arm": "ur5_kinematics",
    "option": "black_scholes_greeks",
    "membrane": "hodgkin_huxley",
}
IMPORT = "from sympy.utilities.lambdify import lambdify\n"
CHANGED = "from alkahest import lambdify\n"


def script(name, own_import=IMPORT):
    """What the script defines, with ``own_import`` in the place of SymPy's ``lambdify``."""
    source = (SCRIPTS / f"{name}.py").read_text()
    assert source.count(IMPORT) == 1
    defined = {}
    exec(compile(source.replace(IMPORT, own_import), f"{name}.py", "exec"), defined)
    return SimpleNamespace(**defined)


def test_every_script_is_run():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*KINDS, "pendulum"}


@pytest.mark.parametrize("name", KINDS)
def test_a_script_keeps_its_calls_and_gives_the_right_values(name):
    workload = WORKLOADS[KINDS[name]]
    ours = script(name, CHANGED).outputs(workload.columns())
    assert workload.wrong(ours) == []
    with np.errstate(all="ignore"):
        theirs = script(name).outputs(workload.columns())
    for output, a, b in zip(workload.outputs, ours, theirs, strict=True):
        assert type(a) is type(b)
        assert a.shape == b.shape
        allowed = 2 * np.array(output["abs_tol"], dtype=float)
        assert np.all((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))


def test_a_differential_equation_is_solved_through_the_function():
    ours, theirs = script("membrane", CHANGED).spike(), script("membrane").spike()
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert 30 < ours < 45  # a spike overshoots 0 mV and stays below sodium's 50 mV


def test_equations_of_motion_take_functions_of_time_and_their_derivatives():
    pendulum = script("pendulum", CHANGED)
    energies = pendulum.energies()
    start = 1.5 * 9.81 * 0.8 * (-2 * np.cos(2.0) - np.cos(1.5))
    np.testing.assert_allclose(energies, start, rtol=1e-6)
    at = [0.3, -0.7, 1.1, 2.2]
    np.testing.assert_allclose(pendulum.field(0, at), script("pendulum").field(0, at), rtol=1e-12)


def test_equations_of_a_symbolic_regression_are_read_by_sympy_and_evaluated_here():
    workload = WORKLOADS["feynman_equations"]
    symbols = {name: sp.Symbol(name) for name in workload.inputs}
    exprs = [sp.sympify(output["expr"], locals=symbols) for output in workload.outputs]
    fn = ak.lambdify([symbols[name] for name in workload.inputs], exprs, "numpy")
    assert workload.wrong(fn(*workload.columns())) == []
