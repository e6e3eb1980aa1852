"""Which values are numbers, and what they become."""

import enum
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from alkahest.errors import PoolError
from alkahest.expr.numbers import payload, truth


def test_subclasses_of_numbers_become_plain_numbers():
    class Level(enum.IntEnum):
        HIGH = 3

    class Metres(float):
        pass

    assert type(payload(Level.HIGH)) is int
    assert type(payload(Metres(1.5))) is float
    assert payload(Level.HIGH) == 3


def test_decimals_are_exact():
    assert payload(Decimal("0.1")) == Fraction(1, 10)
    assert payload(Decimal("-1E+3")) == -1000
    assert payload(Decimal("-Infinity")) == -math.inf
    assert math.isnan(payload(Decimal("NaN")))
    assert math.isnan(payload(Decimal("sNaN")))


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999"])
def test_decimals_whose_exact_value_is_too_long_are_refused(text):
    with pytest.raises(PoolError, match=r"E-POOL-006.*1E"):
        payload(Decimal(text))


@pytest.mark.parametrize("text", ["0.1", "1e4000", "1e-4000"])
def test_wide_floats_become_numbers_only_where_a_float64_equals_them(text):
    import numpy

    kind = numpy.longdouble
    assert payload(kind(0.1)) == 0.1
    assert payload(kind("inf")) == math.inf
    assert math.isnan(payload(kind("nan")))
    assert payload(numpy.clongdouble(0.5 - 2j)) == 0.5 - 2j
    assert str(payload(numpy.clongdouble(complex(math.nan, -0.0)))) == "(nan-0j)"
    assert payload(numpy.float32(0.1)) == float(numpy.float32(0.1))
    if numpy.finfo(kind).nmant > 52:  # elsewhere it is float64 by another name
        for value in (kind(text), numpy.clongdouble(kind(text)) * 1j):
            with pytest.raises(PoolError, match=r"E-POOL-006.*float64") as caught:
                payload(value)
            assert "float()" in caught.value.remediation


@pytest.mark.parametrize("value", ["1", b"1", None, [1], (1,), {1}, object(), int])
def test_everything_else_is_no_number(value):
    assert payload(value) is None


def test_numpy_scalars_are_numbers_and_arrays_are_not():
    import numpy

    assert type(payload(numpy.int32(7))) is int
    assert type(payload(numpy.float64(1.5))) is float
    assert type(payload(numpy.complex64(1j))) is complex
    assert payload(numpy.array(1.0)) is None
    assert payload(numpy.datetime64("2020-01-01")) is None
    assert truth(numpy.bool_(False)) is False
    assert truth(1) is None
