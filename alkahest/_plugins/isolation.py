"""Running a plugin's code so that whatever it does stays the plugin's own failure.

Everything that loading and probing call on a plugin goes through :func:`contained`. It keeps
exceptions from spreading, keeps a plugin's ``print`` out of standard output (which may be JSON
that a program reads), and remembers whose code is running, so that a plugin which asks alkahest
about plugins in the middle of it gets an error instead of a recursion or a deadlock.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO, TypeVar

import attrs

from alkahest.errors import PluginError
from alkahest.forks import ForkSafeLock

T = TypeVar("T")

_running: ContextVar[str] = ContextVar("alkahest_running_plugin", default="")


@attrs.frozen
class Failure:
    """What a plugin's code raised."""

    error: BaseException

    @property
    def detail(self) -> str:
        """The exception in one line."""
        # format_exception_only survives exceptions whose own __str__ raises.
        lines = traceback.format_exception_only(self.error)
        return " ".join("".join(lines).split())


def contained(what: str, call: Callable[[], T], *, may_ask: bool = False) -> T | Failure:
    """Call a plugin's code and return its result, or the failure instead of raising it.

    Args:
        what: the code in words, for the error that a re-entrant question gets.
        call: the code.
        may_ask: whether the code may ask alkahest about plugins: not while these are being loaded
            or probed.

    Raises:
        KeyboardInterrupt: the one exception that is never a plugin's.
    """
    token = _running.set("" if may_ask else what)
    try:
        with _stdout_diverted():
            return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  sys.exit() and a Rust panic count as failures too
        return Failure(error)
    finally:
        _running.reset(token)


def refuse_reentry() -> None:
    """Raise if a plugin's code is running in this context.

    Raises:
        PluginError: E-PLUGIN-004 naming the code that asked.
    """
    if what := _running.get():
        raise PluginError(
            "E-PLUGIN-004", f"{what} asked alkahest about plugins while it was running"
        )


_divert_lock = ForkSafeLock()
_diverted = 0
_real_stdout: TextIO | None = None


@contextmanager
def _stdout_diverted() -> Iterator[None]:
    """Send what is printed to standard error, whichever threads overlap.

    contextlib.redirect_stdout restores what it found on entry, so that of two overlapping threads
    the later one would leave standard output diverted for good. This one counts.
    """
    global _diverted, _real_stdout
    with _divert_lock:
        if _diverted == 0:
            _real_stdout, sys.stdout = sys.stdout, sys.stderr
        _diverted += 1
    try:
        yield
    finally:
        with _divert_lock:
            _diverted -= 1
            if _diverted == 0:
                sys.stdout, _real_stdout = _real_stdout, None
