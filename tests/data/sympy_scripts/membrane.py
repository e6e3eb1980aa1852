"""The squid axon of Hodgkin and Huxley: rates with their limits where 0/0 stands, and a spike."""

from scipy.integrate import solve_ivp
from sympy import Eq, Piecewise, Rational, UnevaluatedExpr, exp, symbols
from sympy.utilities.lambdify import lambdify

V, m, h, n, current = symbols("V m h n I")

# Not multiplied out, which would lose the digits near the limits.
v40, v55 = UnevaluatedExpr(V + 40), UnevaluatedExpr(V + 55)
opening_m = Rational(1, 10) * v40 / (1 - exp(-v40 / 10))
opening_n = Rational(1, 100) * v55 / (1 - exp(-v55 / 10))
alpha_m = Piecewise((1, Eq(V, -40)), (opening_m, True))
alpha_n = Piecewise((Rational(1, 10), Eq(V, -55)), (opening_n, True))
alpha_h = Rational(7, 100) * exp(-(V + 65) / 20)
beta_m = 4 * exp(-(V + 65) / 18)
beta_n = exp(-(V + 65) / 80) / 8
beta_h = 1 / (1 + exp(-(V + 35) / 10))

leak = 0.3 * UnevaluatedExpr(V + 54.387)
dV = current - 120 * m**3 * h * (V - 50) - 36 * n**4 * (V + 77) - leak
dm = alpha_m * (1 - m) - beta_m * m
dh = alpha_h * (1 - h) - beta_h * h
dn = alpha_n * (1 - n) - beta_n * n

field = lambdify([V, m, h, n, current], (dV, dm, dh, dn), "numpy")
rates = lambdify(V, [alpha_m / (alpha_m + beta_m), 1 / (alpha_m + beta_m), opening_m, opening_n])


def outputs(points):
    return [*field(*points), *rates(points[0])]


def spike():
    """The highest voltage within 20 ms of 10 uA/cm^2."""
    resting = [-65.0, 0.05, 0.6, 0.32]
    solution = solve_ivp(lambda t, y: field(*y, 10.0), (0.0, 20.0), resting, rtol=1e-10, atol=1e-12)
    return solution.y[0].max()
