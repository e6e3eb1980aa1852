"""Rosenbrock's function in ten variables with SciPy: exact gradient and Hessian.

Needs alkahest-cpu. Run it: ``python examples/minimisation.py``.
"""

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

import alkahest as ak

xs = ak.symbols(" ".join(f"x{k}" for k in range(10)))
valley = [100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(xs)]
fn = ak.compile_expr(xs[0].pool.add(valley), xs, derivatives=2)

result = minimize(
    lambda p: fn(*p)[0],
    np.full(10, -1.2),
    jac=lambda p: fn(*p)[1],
    hess=lambda p: fn(*p)[2],
    method="trust-exact",
)
assert result.success
assert np.allclose(result.x, 1)
print(f"{result.nit} iterations, {result.nhev} Hessians, minimum {result.fun:.1e}")
