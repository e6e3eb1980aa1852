"""The strata of every operation's domain: the tables that say where it is measured."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from accuracy_measure import reference
from accuracy_measure.draws import (
    Draw,
    Format,
    bits,
    logarithmic,
    multiples,
    near,
    uniform,
    zeros,
)
from alkahest.ops import OPS


def _pairs(op: str, form: Format) -> dict[str, Any]:
    """Strata of operations on two and three numbers, where both are related or any."""
    e = form.largest
    ordinary, wide = logarithmic(-20, 20), logarithmic(form.least, e)
    arity = OPS[op].arity

    def alike(generator: np.random.Generator, n: int) -> Any:
        """Operands of nearly one magnitude, so that sums cancel."""
        a = ordinary(generator, n)
        columns = [a]
        for _ in range(arity - 1):
            ratio = 1 + np.exp2(generator.uniform(-form.digits, 1, n))
            columns.append(a * np.where(generator.random(n) < 0.5, -ratio, ratio))
        return columns

    return {
        "ordinary": (ordinary,) * arity,
        "moderate": (uniform(-10, 10),) * arity,
        "of one magnitude": alike,
        "all magnitudes": (wide,) * arity,
        "all numbers": (bits(form),) * arity,
        "subnormal": (logarithmic(form.least, form.least + form.digits + 2),) * arity,
        "one subnormal": (wide, *[logarithmic(form.least, form.least + form.digits)] * (arity - 1)),
    }


def _power_strata(form: Format) -> dict[str, Any]:
    e, digits = form.largest, form.digits

    def related(spread: Draw, low: float, high: float) -> Draw:
        """Bases, with exponents for results from ``2**low`` to ``2**high``."""

        def draw(generator: np.random.Generator, n: int) -> Any:
            base = np.abs(spread(generator, n))
            size = np.log2(base)
            size = np.where(size == 0, 1, size)
            return base, generator.uniform(low, high, n) / size

        return draw

    def integers(generator: np.random.Generator, n: int) -> Any:
        exponent = np.rint(generator.uniform(-70, 70, n))
        return -np.exp2(generator.uniform(-e, e, n) / np.maximum(np.abs(exponent), 1)), exponent

    return {
        "ordinary": (logarithmic(-10, 10, signed=False), uniform(-10, 10)),
        "any result": related(logarithmic(-40, 40), form.least, e),
        "bases of all magnitudes": related(logarithmic(form.least, e), form.least, e),
        "bases near 1": related(near([1.0], digits), form.least, e),
        "subnormal results": related(logarithmic(-40, 40), form.least - 1, form.least + digits),
        "near overflow": related(logarithmic(-40, 40), e - 2, e + 0.01),
        "small exponents": (logarithmic(form.least, e, signed=False), logarithmic(-digits, 0)),
        "negative bases, integers": integers,
        "all numbers": (bits(form), bits(form)),
    }


def strata(op: str, form: Format, parameter: int | None) -> dict[str, Any]:
    """Name -> a tuple of draws, one per operand, or one draw that gives all operands."""
    if op == "pow":
        return _power_strata(form)
    if op == "powi":
        reach = 1 / abs(parameter or 1)
        return {
            "any result": (logarithmic(form.least * reach, form.largest * reach),),
            "moderate": (uniform(-3, 3),),
            "near 1": (near([1.0, -1.0], form.digits),),
            "near overflow": (logarithmic((form.largest - 2) * reach, form.largest * reach),),
            "subnormal results": (
                logarithmic(form.least * reach, (form.least + form.digits) * reach),
            ),
            "all numbers": (bits(form),),
        }
    if OPS[op].arity > 1:
        return _pairs(op, form)
    own = _unary(form).get(op, {"ordinary": logarithmic(-20, 20), "moderate": uniform(-10, 10)})
    common = {
        "all numbers": bits(form, signed=op not in _POSITIVE),
        "subnormal": logarithmic(form.least, form.least + form.digits, signed=op not in _POSITIVE),
    }
    return {name: (draw,) for name, draw in (own | common).items()}


_POSITIVE = frozenset("log log2 log10 sqrt rsqrt acosh y0 y1".split())


@cache
def _unary(f: Format) -> dict[str, dict[str, Draw]]:
    """Strata of the functions of one operand, besides those that all of them have."""
    d, e = f.digits, f.largest
    small, tiny = logarithmic(-d - 6, 0), logarithmic(f.least, -d)
    unit, far = uniform(-1, 1), logarithmic(6, e)
    quarter = np.arctan2(reference.EXTENDED(1), reference.EXTENDED(0))
    logarithm = {
        "near 1": near([1.0], d),
        "0.5 to 2": uniform(0.5, 2),
        "ordinary": logarithmic(-30, 30, signed=False),
        "all magnitudes": logarithmic(f.least, e, signed=False),
    }
    root = {
        "1 to 4": uniform(1, 4),
        "all magnitudes": logarithmic(f.least, e, signed=False),
        "near squares": near(np.arange(1.0, 200) ** 2, d),
    }
    circle = {
        "one turn": uniform(-3.2, 3.2),
        "thousands": uniform(-1e4, 1e4),
        "small": small,
        "to 2**31": logarithmic(0, 31),
        "from 2**31": logarithmic(31, e),
        "near small multiples of pi/2": multiples(quarter, 1e5, d),
        "near large multiples of pi/2": multiples(quarter, 2.0 ** min(d, 60), d),
    }
    arc = {
        "all": unit,
        "near 1 and -1": near([1.0, -1.0], d),
        "near a half": near([0.5, -0.5], d),
        "small": small,
        "tiny": tiny,
    }
    hyperbolic = {
        "all": uniform(-f.top - 1, f.top + 1),
        "moderate": uniform(-3, 3),
        "small": small,
        "near overflow": uniform(f.top - 1, f.top + 0.7),
        "tiny": tiny,
    }
    bessel = {
        "small": small,
        "tiny": tiny,
        "to 8": uniform(-8, 8),
        "8 to 100": uniform(8, 100),
        "far": far,
        "to 1e6": logarithmic(3, 20),
    }
    second = {
        "small": logarithmic(-d - 6, 0, signed=False),
        "to 8": uniform(0, 8),
        "8 to 100": uniform(8, 100),
        "far": logarithmic(6, e, signed=False),
        "to 1e6": logarithmic(3, 20, signed=False),
    }
    integers = np.arange(1, 180)
    edge = 171.7 if d == 53 else 35.1
    reach = 27.3 if d == 53 else 10.1
    return {
        "exp": {
            "all": uniform(f.bottom - 1, f.top + 1),
            "-1 to 1": unit,
            "small": small,
            "subnormal results": uniform(f.bottom, f.bottom + d),
            "near overflow": uniform(f.top - 1, f.top + 0.01),
            "near multiples of log 2": multiples(np.log(reference.EXTENDED(2)), 700, d),
        },
        "exp2": {
            "all": uniform(f.least - 1, e + 1),
            "-1 to 1": unit,
            "small": small,
            "subnormal results": uniform(f.least - 1, f.least + d + 1),
            "near overflow": uniform(e - 2, e + 0.01),
            "near halves": multiples(0.5, 2000, d),
        },
        "expm1": {
            "all": uniform(-45, f.top + 0.1),
            "-1 to 1": unit,
            "small": small,
            "tiny": tiny,
            "near multiples of log 2": multiples(np.log(reference.EXTENDED(2)), 700, d),
        },
        "log": logarithm,
        "log2": logarithm | {"near powers of 2": near(np.exp2(np.arange(-60.0, 60)), d)},
        "log10": logarithm | {"near powers of 10": near(10.0 ** np.arange(-20.0, 21), d)},
        "log1p": {
            "-1 to 1": unit,
            "near -1": near([-1.0], d),
            "small": small,
            "tiny": tiny,
            "all magnitudes": logarithmic(f.least, e, signed=False),
        },
        "sqrt": root,
        "rsqrt": root,
        "cbrt": {
            "1 to 8": uniform(-8, 8),
            "all magnitudes": logarithmic(f.least, e),
            "near cubes": near(np.arange(1.0, 200) ** 3, d),
        },
        "sin": circle,
        "cos": circle,
        "tan": circle,
        "asin": arc,
        "acos": arc,
        "atan": {"moderate": uniform(-4, 4), "ordinary": logarithmic(-30, 30), "small": small},
        "sinh": hyperbolic,
        "cosh": hyperbolic,
        "tanh": {"all": uniform(-20, 20), "-1 to 1": unit, "small": small, "tiny": tiny},
        "asinh": {
            "moderate": uniform(-4, 4),
            "small": small,
            "ordinary": logarithmic(-30, 30),
            "far": far,
        },
        "acosh": {
            "near 1": near([1.0], d),
            "1 to 4": uniform(1, 4),
            "ordinary": logarithmic(0, 40, signed=False),
            "far": logarithmic(6, e, signed=False),
        },
        "atanh": {k: arc[k] for k in ("all", "near 1 and -1", "near a half", "small", "tiny")},
        "erf": {"all": uniform(-6.5, 6.5), "-1 to 1": unit, "small": small, "tiny": tiny},
        "erfc": {
            "all": uniform(-6.5, reach),
            "-1 to 1": unit,
            "small": small,
            "subnormal results": uniform(reach - 1.2, reach),
        },
        "erfinv": {
            "all": unit,
            "near 1 and -1": near([1.0, -1.0], d),
            "small": small,
            "tiny": tiny,
        },
        "gamma": {
            "positive": uniform(0, edge),
            "negative": uniform(-edge - 14, 0),
            "near poles": near(-integers, d),
            "1 to 3": uniform(1, 3),
            "near 0": small,
            "near overflow": uniform(edge - 2, edge),
        },
        "lgamma": {
            "0 to 20": uniform(0, 20),
            "near 1 and 2": near([1.0, 2.0], d),
            "far": logarithmic(4, e, signed=False),
            "negative": uniform(-40, 0),
            "near poles": near(-integers, d),
            "near zeros": near(zeros("lgamma", -12.3, -2.1), d),
            "near 0": small,
            "far negative": logarithmic(4, d),
        },
        "digamma": {
            "0 to 20": uniform(0, 20),
            "far": logarithmic(4, e, signed=False),
            "negative": uniform(-40, 0),
            "near zeros and poles": near(zeros("digamma", -12.3, 3.1), d),
            "near poles": near(-integers, d),
            "near 0": small,
            "far negative": logarithmic(4, d),
        },
        "j0": bessel | {"near zeros": near(zeros("j0", 0.1, 100), d)},
        "j1": bessel | {"near zeros": near(zeros("j1", 0.1, 100), d)},
        "y0": second | {"near zeros": near(zeros("y0", 0.1, 100), d)},
        "y1": second | {"near zeros": near(zeros("y1", 0.1, 100), d)},
    }
