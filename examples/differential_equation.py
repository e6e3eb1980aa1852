"""The van der Pol oscillator with SciPy: right-hand side and Jacobian from one formula.

Needs alkahest-cpu. Run it: ``python examples/differential_equation.py``.
"""

import numpy as np
from scipy.integrate import solve_ivp

import alkahest as ak

MU = 1000  # stiff: an implicit method that knows the Jacobian is in its element

x, v = ak.symbols("x v")
field = [v, MU * (1 - x**2) * v - x]

rhs = ak.compile_expr(field, [x, v])
jacobian = ak.compile_expr([d for row in ak.jacobian(field, [x, v]) for d in row], [x, v])

solution = solve_ivp(
    lambda t, y: rhs(*y),
    (0.0, 2000.0),
    [2.0, 0.0],
    method="Radau",
    jac=lambda t, y: np.reshape(jacobian(*y), (2, 2)),
    rtol=1e-6,
)
assert solution.success
turns = np.flatnonzero(np.diff(np.sign(solution.y[0])))
period = 2 * np.diff(solution.t[turns])[-1]
print(f"{solution.t.size} steps, {solution.njev} Jacobians, period about {period:.0f}")
