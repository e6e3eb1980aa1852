"""Threads that share a step, and how many there are."""

import os
import threading

import pytest

from alkahest.groebner.engine import threads
from alkahest.groebner.engine.reducers import host_reducer
from alkahest.groebner.engine.threads import Team, threads_beside


class Gpu:
    on_gpu = True


def test_the_processor_uses_one_thread_and_beside_a_gpu_all_that_it_has(monkeypatch):
    assert threads_beside(host_reducer()) == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert threads_beside(Gpu()) == 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 4}, raising=False)
    assert threads_beside(Gpu()) == 2


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("entries", [0, 1, 5000, 100_000])
def test_every_entry_is_in_one_part_and_no_part_is_too_small_for_a_thread(size, entries):
    seen = []
    with Team(size) as team:
        bounds = team.split(entries)
        team.each(lambda first, last: seen.append((first, last)), bounds)
    assert len(seen) <= size
    assert sorted(x for part in seen for x in range(*part)) == list(range(entries))
    assert len(seen) == 1 or min(b - a for a, b in seen) >= threads._SHARE - 1


def test_parts_are_worked_on_side_by_side_and_no_thread_stays():
    before, meeting = threading.active_count(), threading.Barrier(3, timeout=30)
    with Team(3) as team:
        team.each(lambda first, last: meeting.wait(), [0, 1, 2, 3])
    assert threading.active_count() == before


@pytest.mark.parametrize("broken", [0, 1])
def test_an_error_of_any_part_is_raised_when_the_others_have_ended(broken):
    done = []

    def work(first, last):
        if first == broken:
            raise ValueError("no")
        done.append(first)

    with Team(2) as team, pytest.raises(ValueError, match="no"):
        team.each(work, [0, 1, 2])
    assert done == [1 - broken]
