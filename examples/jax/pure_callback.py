"""A compiled function inside JAX's own transformations, with its exact derivative.

Needs alkahest-cpu and JAX. Run it: ``python examples/jax/pure_callback.py``.
"""

import jax
import numpy as np

import alkahest as ak

jax.config.update("jax_enable_x64", True)

x = ak.symbols("x")[0]
formula = ak.j0(x) * ak.exp(-x / 4)  # JAX has no Bessel function J0
fn = ak.compile_expr(formula, [x], derivatives=1)


def _shape(values: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(values.shape, values.dtype)


def _values(values: jax.Array) -> np.ndarray:
    return np.asarray(fn(np.asarray(values))[0])


def _slopes(values: jax.Array) -> np.ndarray:
    return np.asarray(fn(np.asarray(values))[1][0])


@jax.custom_jvp
def damped_bessel(values: jax.Array) -> jax.Array:
    """The formula, for arrays of any shape, under ``jit``, ``vmap`` and ``grad``."""
    return jax.pure_callback(_values, _shape(values), values, vmap_method="expand_dims")


@damped_bessel.defjvp
def _derivative(primals, tangents):
    (values,), (direction,) = primals, tangents
    slope = jax.pure_callback(_slopes, _shape(values), values, vmap_method="expand_dims")
    return damped_bessel(values), slope * direction


points = np.linspace(0.5, 4.0, 8)
total, gradient = jax.jit(jax.value_and_grad(lambda v: damped_bessel(v).sum()))(points)
assert np.isclose(total, fn(points)[0].sum())
assert np.allclose(gradient, fn(points)[1][0])
assert np.allclose(jax.vmap(damped_bessel)(points), fn(points)[0])
print(f"sum {total:.6f}, slope at 0.5 {gradient[0]:.6f}")
