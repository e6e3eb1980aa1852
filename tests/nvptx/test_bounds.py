"""What is promised, beside what NVIDIA documents."""

import math

import numpy as np
import pytest

from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, MODES, STRICT
from alkahest.backends.nvptx.bounds import BOUNDS, documented, parts, promised
from alkahest.backends.nvptx.lowerings import LOWERINGS
from alkahest.ops import OPS, Exactness, Signature

REAL_OPS = [op for op in LOWERINGS if OPS[op].signature is not Signature.BUILD]
DTYPES = ("float64", "float32")
POWERS = (-1025, -64, -5, -1, 0, 2, 4, 5, 64, 65, 1024, 1025, 10**30 + 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", REAL_OPS)
def test_the_default_mode_costs_at_most_two_ulps_more_than_libdevice(op: str, dtype: str) -> None:
    for part in parts(op, dtype):
        known = documented(op, dtype, part.text)
        bound = promised(op, dtype, DEFAULT, part.text)
        if known is None or bound is None:
            continue
        if not math.isnan(known.absolute):
            unit = np.finfo(dtype).eps  # values are below 1 there
            assert bound.scale == 1.0
            assert bound.ulp * unit <= known.absolute
        elif not math.isnan(known.ulp):
            assert bound.ulp <= known.ulp + 0.5 + 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", REAL_OPS)
def test_only_the_fast_mode_gives_operands_up(op: str, dtype: str) -> None:
    for parameter in POWERS if OPS[op].has_parameter else (None,):
        for part in parts(op, dtype):
            for mode in (STRICT, DEFAULT):
                bound = promised(op, dtype, mode, part.text, parameter)
                assert bound is not None
                assert bound.of(parameter) <= 64


def test_what_is_exact_or_rounded_is_so_in_the_strict_mode() -> None:
    for op in REAL_OPS:
        if OPS[op].exactness in (Exactness.EXACT, Exactness.ROUNDED):
            limit = 0.0 if OPS[op].exactness is Exactness.EXACT else 0.5
            for part in parts(op, "float64"):
                assert promised(op, "float64", STRICT, part.text).ulp == limit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", REAL_OPS)
def test_every_point_is_in_exactly_one_part(op: str, dtype: str) -> None:
    values = np.array([0.0, -0.0, 5e-324, -1e-3, 1.0, -3.5, 8.0, 1e5, -1e10, 1e300, math.nan])
    columns = [values] * OPS[op].arity
    counts = sum(np.asarray(p.contains(3, *columns), int) for p in parts(op, dtype))
    assert (counts == 1).all()
    for value in values.tolist():
        assert sum(bool(p.contains(3, *[value] * OPS[op].arity)) for p in parts(op, dtype)) == 1


def test_the_fast_mode_gives_up_far_sines_and_no_powers() -> None:
    near, far = parts("sin", "float64")
    assert promised("sin", "float64", FAST, near.text) == promised(
        "sin", "float64", DEFAULT, near.text
    )
    assert promised("sin", "float64", FAST, far.text) is None
    within, beyond = parts("powi", "float64")
    assert promised("powi", "float64", FAST, within.text, -7).of(-7) == 7
    assert within.contains(7, 1e300)
    assert not within.contains(-7, 1e300)
    assert promised("powi", "float64", FAST, beyond.text, -7).of(-7) == 7


def test_every_mode_has_bounds_of_what_depends_on_the_mode() -> None:
    for op, bounds in BOUNDS.items():
        assert set(bounds) == set(MODES)
        assert bounds[STRICT].ulp <= max(bounds[DEFAULT].ulp, 2.0), op
