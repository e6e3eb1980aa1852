"""An arm of six joints: Denavit-Hartenberg matrices of a UR5, and the Jacobian of its tool."""

import numpy as np
from sympy import Matrix, cos, eye, pi, sin, symbols
from sympy.utilities.lambdify import lambdify

q = symbols("q1:7")


def joint(theta, d, a, alpha):
    return Matrix(
        [
            [cos(theta), -sin(theta) * cos(alpha), sin(theta) * sin(alpha), a * cos(theta)],
            [sin(theta), cos(theta) * cos(alpha), -cos(theta) * sin(alpha), a * sin(theta)],
            [0, sin(alpha), cos(alpha), d],
            [0, 0, 0, 1],
        ]
    )


lengths = [0.089159, 0, 0, 0.10915, 0.09465, 0.0823]
offsets = [0, -0.425, -0.39225, 0, 0, 0]
twists = [pi / 2, 0, 0, pi / 2, -pi / 2, 0]
tool = eye(4)
for parameters in zip(q, lengths, offsets, twists, strict=True):
    tool = tool * joint(*parameters)
position = tool[:3, 3]

forward = lambdify([q], tool, "numpy", cse=True)
jacobian = lambdify([q], position.jacobian(q), "numpy", cse=True)


def outputs(points):
    frames = [forward(angles) for angles in np.transpose(points)]
    slopes = [jacobian(angles) for angles in np.transpose(points)]
    place, turn = np.array(frames)[:, :3, 3], np.array(frames)[:, :3, :3]
    moved = np.array(slopes)[:, :, :5]
    nonzero = [(i, j) for i in range(3) for j in range(5) if (i, j) != (2, 0)]
    columns = [*place.T, *(moved[:, i, j] for i, j in nonzero)]
    return columns + [turn[:, i, j] for i in range(3) for j in range(3)]
