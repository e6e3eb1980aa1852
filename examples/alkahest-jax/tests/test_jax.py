"""The JAX backend passes the kit that every backend passes."""

from alkahest.testing import BackendConformance


class TestJax(BackendConformance):
    backend = "jax"
    plugin_module = "alkahest_jax.plugin"
    needs_modules = ("jax", "jaxlib")
