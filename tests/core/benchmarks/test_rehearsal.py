"""Compiling in a process that can be killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import rehearsed
from gpu_benchmark.rehearsal import Rehearsal
from gpu_benchmark.timing import OutOfTime


@pytest.fixture
def rehearsal() -> Iterator[Rehearsal]:
    with closing(Rehearsal(rehearsed.work)) as made:
        yield made


def test_what_takes_too_long_is_killed_and_the_next_call_has_a_new_process(
    rehearsal: Rehearsal,
) -> None:
    with pytest.raises(OutOfTime):
        rehearsal.within(0.2, "sleep")
    rehearsal.within(30)


def test_errors_come_with_their_message_and_the_process_goes_on(rehearsal: Rehearsal) -> None:
    with pytest.raises(RuntimeError, match="ValueError: no such row"):
        rehearsal.within(30, "fail")
    rehearsal.within(30)


def test_a_process_that_dies_is_an_error(rehearsal: Rehearsal) -> None:
    with pytest.raises(RuntimeError, match="the compiling process died"):
        rehearsal.within(30, "die")
    rehearsal.within(30)
