"""Children of a process whose other threads hold locks at the moment of the fork."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from alkahest._plugins import isolation
from alkahest._plugins.registry import registry
from alkahest.expr import ExprPool, pickling
from alkahest.forks import ForkSafeLock
from alkahest.testing.plugins import NullPlugin, isolated_plugins

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
    ),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]

PATIENCE = 30


@contextmanager
def held_elsewhere(lock: AbstractContextManager[Any]) -> Iterator[threading.Event]:
    """Another thread holds ``lock``; the event lets it go early."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            release.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(PATIENCE)
    try:
        yield release
    finally:
        release.set()
        holder.join()


def in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` gives in a forked child, which has to end."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=lambda: results.put(work()))
    child.start()
    child.join(PATIENCE)
    try:
        assert child.exitcode == 0
        return results.get()
    finally:
        child.kill()


def test_a_lock_that_another_thread_holds_is_free_in_the_child() -> None:
    lock = ForkSafeLock()

    def take() -> bool:
        with lock, lock:
            return True

    with held_elsewhere(lock):
        assert in_child(take)


def test_a_lock_that_the_forking_thread_holds_stays_its_own() -> None:
    lock = ForkSafeLock()

    def take_twice() -> bool:
        with lock:
            return in_child(lambda: leave(lock)) is True

    def leave(lock: ForkSafeLock) -> bool:
        lock.__exit__(None, None, None)  # what the child's copy of the block does at its end
        with lock:
            return True

    assert take_twice()


def test_plugins_can_be_asked_and_registered_in_the_child() -> None:
    def ask() -> bool:
        registry.register(NullPlugin(backend="late"), "late")
        return "late" in registry.snapshot().backends and registry.reachable("early").ok

    with isolated_plugins(NullPlugin(backend="early")):
        registry.snapshot()
        with held_elsewhere(registry._lock), held_elsewhere(isolation._divert_lock):
            assert in_child(ask)


def test_expressions_pickle_in_the_child() -> None:
    x = ExprPool().symbol("x")
    with held_elsewhere(pickling._lock):
        assert in_child(lambda: pickle.loads(pickle.dumps(x + 1)) is x + 1)


def test_a_fork_waits_until_no_other_thread_is_in_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.RLock()
    module = ModuleType("llvmlite.binding.ffi")
    module.lib = SimpleNamespace(_lock=lock)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    order: list[str] = []

    def take() -> bool:
        with lock:
            return True

    with held_elsewhere(lock) as release:

        def let_go() -> None:
            order.append("let go")
            release.set()

        timer = threading.Timer(0.2, let_go)
        timer.start()
        assert in_child(take)
        order.append("forked")
        timer.join()
    assert order == ["let go", "forked"]
    assert not lock._is_owned()  # type: ignore[attr-defined]  # no stub has it
