"""What ``compile_expr(..., backend="cpu-jit")`` understands besides the arguments of every backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from alkahest.errors import InputError

STRICT, DEFAULT, FAST = ACCURACIES = ("strict", "default", "fast")

AUTO, COMPILED = TIERS = ("auto", "compiled")


@attrs.frozen(kw_only=True)
class Options:
    """Checked options.

    Attributes:
        accuracy: ``"strict"``, ``"default"`` or ``"fast"``: what may be done for speed.
        tier: ``"auto"``, or ``"compiled"`` to run machine code from the first call on.
        target: the processor to write code for, as ``ALKAHEST_CPU_TARGET`` is written, or None.
    """

    accuracy: str = DEFAULT
    tier: str = AUTO
    target: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], target: str | None) -> Options:
        """Check what the caller passed.

        Raises:
            InputError: E-INPUT-011 for another option or another value.
        """
        for name in options:
            if name not in _VALUES:
                raise InputError(
                    "E-INPUT-011",
                    f"backend 'cpu-jit' has no option {name!r}",
                    remediation=f"Its options are {' and '.join(_VALUES)}.",
                )
        for name, value in options.items():
            if value not in _VALUES[name]:
                raise InputError(
                    "E-INPUT-011",
                    f"{name}={value!r} is not one that backend 'cpu-jit' has",
                    remediation=f"Use one of {', '.join(map(repr, _VALUES[name]))}.",
                )
        return cls(target=target, **options)

    @property
    def may_wait(self) -> bool:
        """Whether the reference may answer while nothing is compiled.

        Its last bits differ from the code's, so it does not where they were asked for.
        """
        return self.tier == AUTO and self.accuracy != STRICT


_VALUES: Mapping[str, Sequence[str]] = {"accuracy": ACCURACIES, "tier": TIERS}


__all__ = ["ACCURACIES", "TIERS", "Options"]
