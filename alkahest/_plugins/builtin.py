"""The capability bits that core itself defines, and who provides each.

Core never imports these distributions. It knows their names so that a bit is always listed, a
missing name can say what to install, and nobody else's plugin can take a name that users already
associate with one of these.
"""

from __future__ import annotations

import attrs

from alkahest.errors import install


@attrs.frozen
class BuiltinFeature:
    """One capability bit of ours.

    Attributes:
        backend: the backend that answers for the bit.
        plugin: name of the plugin, as in its entry point.
        module: the plugin's module.
        distribution: what ships the plugin.
        extra: ``pip install 'alkahest[extra]==VERSION'`` brings the distribution and what the bit needs.
        exports: names that appear on ``alkahest`` with the bit.
    """

    backend: str
    plugin: str
    module: str
    distribution: str
    extra: str
    exports: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """The command that installs what the bit needs."""
        return install(self.extra)


BUILTIN_FEATURES: dict[str, BuiltinFeature] = {
    "cpu": BuiltinFeature(
        "cpu-reference", "cpu", "alkahest.backends.cpu.plugin", "alkahest-cpu", "cpu"
    ),
    "llvm_jit": BuiltinFeature(
        "cpu-jit", "cpu", "alkahest.backends.cpu.plugin", "alkahest-cpu", "jit"
    ),
    "cuda": BuiltinFeature(
        "nvptx",
        "nvptx",
        "alkahest.backends.nvptx.plugin",
        "alkahest-nvptx",
        "nvptx",
        ("CudaCompiledFn", "compile_cuda", "cuda_device_count"),
    ),
    "groebner": BuiltinFeature(
        "groebner-cpu",
        "groebner",
        "alkahest.groebner.plugin",
        "alkahest-groebner",
        "groebner",
        ("GF", "GbPoly", "GroebnerBasis", "QQ", "real_roots", "solve", "triangularize"),
    ),
    "groebner_cuda": BuiltinFeature(
        "groebner-cuda",
        "groebner_gpu",
        "alkahest.backends.groebner_gpu.plugin",
        "alkahest-groebner-gpu",
        "groebner-gpu",
        ("GpuBackendReport", "compute_groebner_basis_gpu"),
    ),
}

BY_BACKEND = {feature.backend: feature for feature in BUILTIN_FEATURES.values()}
BY_EXPORT = {name: feature for feature in BUILTIN_FEATURES.values() for name in feature.exports}
BY_MODULE = {feature.module: feature for feature in BUILTIN_FEATURES.values()}
DISTRIBUTIONS = frozenset(feature.distribution for feature in BUILTIN_FEATURES.values())

SELECTION_WORDS = frozenset({"auto", "cpu"})
"""What users write in ``backend=`` that is no single backend; no backend may be called so."""
