"""The accuracy modes: what a kernel may change about the arithmetic of its program.

=========== ==================================================================================
mode        what it does
=========== ==================================================================================
``strict``  every operation as it stands, in order, functions from libdevice
``default`` own sin, cos, exp, exp2, log, quotients and square roots in double precision; sums of
            products are nested; a product that is added to something is not rounded in between;
            division by a constant is a multiplication; integer powers by compensated
            multiplications
``fast``    besides: a reciprocal is shared by quotients of one divisor; integer powers by plain
            multiplications; sine and cosine right below 2**31 only
=========== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alkahest.errors import InputError

STRICT, DEFAULT, FAST = MODES = ("strict", "default", "fast")

OPTION = "accuracy"
"""Name of the option of ``compile_expr``."""


def mode_of(options: Mapping[str, Any]) -> str:
    """The mode that the options of a backend ask for.

    Raises:
        InputError: E-INPUT-011 for another option, or a mode that there is not.
    """
    for name in options:
        if name != OPTION:
            raise InputError(
                "E-INPUT-011",
                f"backend nvptx has no option {name!r}",
                remediation=f"Its only option is {OPTION}.",
            )
    mode = options.get(OPTION, DEFAULT)
    if mode not in MODES:
        raise InputError(
            "E-INPUT-011",
            f"{OPTION}={mode!r} is not a mode of backend nvptx",
            remediation=f"Use one of {', '.join(map(repr, MODES))}.",
        )
    return str(mode)
