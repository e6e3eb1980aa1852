"""Comparing records of the engine field by field."""

import attrs
import numpy as np


def equal(a, b):
    """Whether two records have equal fields, records within them included; says which differ."""
    for field in attrs.fields(type(a)):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if attrs.has(type(x)):
            assert equal(x, y)
        elif isinstance(x, tuple) and x and attrs.has(type(x[0])):
            assert len(x) == len(y)
            assert all(map(equal, x, y))
        else:
            assert np.array_equal(x, y), field.name
            assert getattr(x, "dtype", None) == getattr(y, "dtype", None), field.name
    return True
