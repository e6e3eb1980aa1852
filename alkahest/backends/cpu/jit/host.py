"""The processor that code is written for: its name, its features, the width of its vectors.

``ALKAHEST_CPU_TARGET`` replaces what was found, for instance to test narrower vectors::

    ALKAHEST_CPU_TARGET=x86-64-v3        a name of :data:`LEVELS`: the levels of the x86-64 psABI
    ALKAHEST_CPU_TARGET=native/256       this processor, with vectors of at most 256 bits
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from alkahest.errors import InputError

ENVIRONMENT = "ALKAHEST_CPU_TARGET"

WIDTHS = (512, 256, 128)

ITEM_BITS: Mapping[str, int] = MappingProxyType(
    {"float64": 64, "float32": 32, "complex128": 64, "complex64": 32}
)
"""Bits of one real number of a program's dtype; a complex number is two of them."""

LEVELS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "x86-64": ("", 128),
        "x86-64-v2": ("+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16", 128),
        "x86-64-v3": ("+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe", 256),
        "x86-64-v4": (
            "+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,"
            "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
            512,
        ),
    }
)
"""Name of a level -> features and bits of a vector."""


def _is_width(instance: HostTarget, attribute: attrs.Attribute[int], value: int) -> None:
    if value not in WIDTHS:
        raise InputError(
            "E-INPUT-011",
            f"a vector of {value} bits is not one of those that code is written for",
            remediation=f"Use one of {', '.join(map(str, WIDTHS))}.",
        )


@attrs.frozen
class HostTarget:
    """A processor, in LLVM's terms.

    Attributes:
        triple: architecture, vendor, system.
        cpu: LLVM's name of the processor.
        features: what it has (``+fma``) and lacks (``-avx512f``), separated by commas.
        vector_bits: 512, 256 or 128.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int = attrs.field(validator=_is_width)

    @classmethod
    def detect(cls) -> HostTarget:
        """The processor that runs this, or what ``ALKAHEST_CPU_TARGET`` says.

        Raises:
            InputError: E-INPUT-011, the variable names no target.
        """
        import llvmlite.binding as llvm

        triple = llvm.get_process_triple()
        features = llvm.get_host_cpu_features()
        native = cls(triple, llvm.get_host_cpu_name(), features.flatten(), _widest(features))
        wanted = os.environ.get(ENVIRONMENT, "").strip()
        return native if not wanted else native.narrowed(wanted, ENVIRONMENT)

    def narrowed(self, wanted: str, said: str = "target") -> HostTarget:
        """This target, or a level of its architecture, as :data:`ENVIRONMENT` writes it.

        Args:
            wanted: the text.
            said: where it was written, for the message.

        Raises:
            InputError: E-INPUT-011, the text names no target.
        """
        name, _, bits = wanted.partition("/")
        levels = LEVELS if self.triple.startswith("x86_64") else {}
        if (name != "native" and name not in levels) or (bits and bits not in map(str, WIDTHS)):
            raise InputError(
                "E-INPUT-011",
                f"{said}={wanted!r} names no target for {self.triple}",
                remediation=f"Use one of {', '.join(['native', *levels])}, then /128, /256 or /512"
                " for narrower vectors.",
            )
        found = self
        if name != "native":
            features, widest = levels[name]
            found = HostTarget(self.triple, name, features, widest)
        return attrs.evolve(found, vector_bits=min(int(bits or 512), found.vector_bits))

    def width(self, dtype: str) -> int:
        """How many real numbers of a program's dtype a vector holds."""
        return self.vector_bits // ITEM_BITS[dtype]

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by LLVM's name of it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def fuses(self) -> bool:
        """Whether a multiply-add with one rounding is an instruction here."""
        return not self.triple.startswith(("x86_64", "i686", "i386")) or self.has("fma")

    @property
    def registers(self) -> int:
        """Vector registers that instructions can name."""
        is_old = self.triple.startswith(("x86_64", "i686", "i386")) and not self.has("avx512vl")
        return 16 if is_old else 32

    @property
    def has_wide_masks(self) -> bool:
        """Whether the instructions of AVX-512 for full vectors of doubles can be used."""
        return self.vector_bits == 512 and self.has("avx512f") and self.has("avx512dq")


def _widest(features: Mapping[str, bool]) -> int:
    if all(features.get(f"avx512{part}") for part in ("f", "dq", "vl", "bw")):
        return 512
    return 256 if features.get("avx2") else 128
