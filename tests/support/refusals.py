"""Checking an error of ours: its code, its words, and that it says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from alkahest.errors import AlkahestError


@contextmanager
def refused(code: str, *parts: str) -> Iterator[None]:
    """The block raises an error with this code, these parts of its message, and a remedy."""
    with pytest.raises(AlkahestError) as caught:
        yield
    error = caught.value
    assert error.code == code, error
    for part in parts:
        assert part in error.message
    assert error.remediation, f"{error} has no remedy"
