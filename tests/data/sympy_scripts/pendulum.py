"""A double pendulum by Lagrange's method: equations of motion, and five seconds of it."""

import numpy as np
from scipy.integrate import solve_ivp
from sympy import cos, sin, symbols
from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols
from sympy.utilities.lambdify import lambdify

a, b = dynamicsymbols("a b")
t = dynamicsymbols._t
va, vb = a.diff(t), b.diff(t)
m, r, g = symbols("m r g")

x1, y1 = r * sin(a), -r * cos(a)
x2, y2 = x1 + r * sin(b), y1 - r * cos(b)
kinetic = m / 2 * sum(position.diff(t) ** 2 for position in (x1, y1, x2, y2))
potential = m * g * (y1 + y2)
method = LagrangesMethod(kinetic - potential, [a, b])
method.form_lagranges_equations()

state = [a, b, va, vb]
mass = lambdify([*state, m, r, g], method.mass_matrix_full)
forcing = lambdify([*state, m, r, g], method.forcing_full)
energy = lambdify([*state, m, r, g], kinetic + potential)

constants = (1.5, 0.8, 9.81)


def field(time, values):
    arguments = (*values, *constants)
    return np.linalg.solve(mass(*arguments), forcing(*arguments))[:, 0]


def energies():
    """Total energy along five seconds of a large swing, in joules."""
    swing = solve_ivp(field, (0.0, 5.0), [2.0, 1.5, 0.0, 0.0], rtol=1e-9, atol=1e-9)
    return energy(*swing.y, *constants)
