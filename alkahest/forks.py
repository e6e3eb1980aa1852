"""Locks in processes that fork: a child has one thread only, and what others held stays locked."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any


class ForkSafeLock:
    """A re-entrant lock that a forked child finds free, whichever other thread held it.

    What it guards has to be usable wherever the guarded code may have stopped.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Free the lock, unless the calling thread holds it; only for children."""
        # Condition asks locks the same way; there is no public name for it.
        if not self._lock._is_owned():  # type: ignore[attr-defined]  # no stub has it
            self._lock = threading.RLock()


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in _locks:
        lock.renew()


_forking = threading.local()


def _begin() -> None:
    """Wait until no other thread is in LLVM, which the child could not enter any more.

    This module is imported before any that calls LLVM, so that of all that forks wait for its lock
    comes last: whoever holds another one may still need it.
    """
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    lock = getattr(library, "_lock", None)  # llvmlite has no public name for it
    held: AbstractContextManager[Any] = nullcontext() if lock is None else lock
    held.__enter__()
    _forking.held = held


def _end() -> None:
    _forking.held.__exit__(None, None, None)


def _end_in_child() -> None:
    _end()
    _renew_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin, after_in_parent=_end, after_in_child=_end_in_child)


__all__ = ["ForkSafeLock"]
