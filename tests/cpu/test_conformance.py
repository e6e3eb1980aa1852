"""The CPU reference passes the kit that every backend passes."""

from alkahest.testing import BackendConformance


class TestReference(BackendConformance):
    backend = "cpu-reference"
    plugin_module = "alkahest.backends.cpu.plugin"
    float32_ulp = 1.0
