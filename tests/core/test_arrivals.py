"""Pickled functions are compiled once in a process."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arithmetic import Arithmetic

from alkahest import arrivals
from alkahest.compiled import compile_expr
from alkahest.expr import ExprPool
from alkahest.testing.plugins import isolated_plugins

pool = ExprPool()
x = pool.symbol("x")


@pytest.fixture(autouse=True)
def nothing_kept(arithmetic: Arithmetic) -> Iterator[None]:
    arrivals._kept.clear()
    yield
    arrivals._kept.clear()


def test_equal_pickles_give_one_function(arithmetic: Arithmetic) -> None:
    pickled = pickle.dumps(compile_expr(x * x + 1, [x]))
    made = arithmetic.evaluators
    first, *others = [pickle.loads(pickled) for _ in range(5)]
    assert all(other is first for other in others)
    assert arithmetic.evaluators == made + 1
    assert first(np.array([3.0])).tolist() == [10.0]


def test_other_choices_give_another_function() -> None:
    plain, narrow = compile_expr(x, [x]), compile_expr(x, [x], casting="same_kind")
    assert pickle.loads(pickle.dumps(plain)) is not pickle.loads(pickle.dumps(narrow))
    listed = pickle.loads(pickle.dumps(compile_expr([x], [x])))
    assert isinstance(listed(1.0), tuple)
    assert copy.deepcopy(plain) is pickle.loads(pickle.dumps(plain))


def test_a_pickle_holds_the_program_alone() -> None:
    total = compile_expr(sum(((x + k) ** 2 for k in range(50)), start=pool.constant(0)), [x])
    before = pickle.dumps(total)
    total(np.zeros(100_000))
    assert pickle.dumps(total) == before
    assert len(before) < 5_000


def test_other_plugins_compile_it_anew() -> None:
    pickled = pickle.dumps(compile_expr(x + 1, [x]))
    first = pickle.loads(pickled)
    with isolated_plugins(Arithmetic()):
        assert pickle.loads(pickled) is not first


def test_many_threads_get_one_function(arithmetic: Arithmetic) -> None:
    pickled = pickle.dumps(compile_expr(x + 2, [x]))
    made = arithmetic.evaluators
    barrier = threading.Barrier(6)

    def arrive(_: int) -> object:
        barrier.wait()
        return pickle.loads(pickled)

    with ThreadPoolExecutor(6) as threads:
        assert len(set(map(id, threads.map(arrive, range(6))))) == 1
    assert arithmetic.evaluators == made + 1


def test_the_one_needed_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_KEPT", 2)
    pickles = [pickle.dumps(compile_expr(x + k, [x])) for k in range(3)]
    zero, one = pickle.loads(pickles[0]), pickle.loads(pickles[1])
    pickle.loads(pickles[0])
    pickle.loads(pickles[2])
    assert pickle.loads(pickles[0]) is zero
    assert pickle.loads(pickles[1]) is not one
