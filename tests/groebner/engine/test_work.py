"""The work of a record against counting it entry by entry."""

import pytest
from traces import learned

from alkahest.groebner.engine.work import work_of


def counted(trace):
    products = steps = 0
    for one in trace.rounds:
        most = 0
        for r in one.lower:
            live = set(
                one.entries[one.row_start[r] : one.row_start[r] + one.row_length[r]].tolist()
            )
            met = 0
            for column, pivot in enumerate(one.pivot_row):
                if column in live:
                    start = one.row_start[pivot]
                    live |= set(one.entries[start : start + one.row_length[pivot]].tolist())
                    products += int(one.row_length[pivot]) - 1
                    met += 1
            most = max(most, met)
        steps += most
    return products, steps


@pytest.mark.parametrize("name", ["katsura-4", "cyclic-5", "noon-4"])
def test_products_and_steps_are_counted_as_the_elimination_meets_them(name):
    trace = learned(name)[1]
    work = work_of(trace)
    assert (work.products, work.steps) == counted(trace)
    assert work.rounds == len(trace.rounds)
    assert work.dense_products > 0
    sampled = work_of(trace, 2)
    assert 0 < sampled.products < 5 * work.products
    assert work_of(trace, 10**6) == work
