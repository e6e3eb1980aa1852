"""A backend for alkahest that evaluates programs with JAX, on whatever device JAX has."""
