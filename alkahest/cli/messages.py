"""What the user reads on standard error, and the exit code that goes with it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

from alkahest.errors import (
    AlkahestError,
    DiffError,
    EvalError,
    ParseError,
    PluginLoadWarning,
    PoolError,
)

OK = 0
FAILED = 1
USAGE = 2

EXIT_CODES = """\
exit codes:
  0    done (also when the reader of a pipe has had enough)
  1    the job failed: file, data, device, or no backend here
  2    the command is wrong: unknown option, bad expression or value
  130  interrupted with Ctrl-C"""

_USAGE_CLASSES = (ParseError, PoolError, EvalError, DiffError)
_USAGE_CODES = {
    "E-CUDA-002",
    "E-INPUT-011",
    "E-JIT-001",
    "E-JIT-005",
    "E-JIT-006",
    "E-JIT-009",
    "E-JIT-010",
    "E-SOLVE-007",
    "E-SOLVE-008",
}


def exit_code(error: AlkahestError) -> int:
    """2 when another command line would help, 1 when the job itself failed."""
    is_usage = isinstance(error, _USAGE_CLASSES) or error.code in _USAGE_CODES
    return USAGE if is_usage else FAILED


def show_error(message: str, *, code: str = "", notes: str = "", hint: str = "") -> None:
    """Write one error: the line, what belongs under it, the remedy."""
    shown = f"[{code}] " if code else ""
    print(f"alkahest: error: {shown}{one_line(message)}", file=sys.stderr)
    if notes:
        print(notes, file=sys.stderr)
    if hint:
        print(f"hint: {one_line(hint)}", file=sys.stderr)


def show_alkahest_error(error: AlkahestError) -> int:
    """Write an error of ours and return its exit code."""
    notes = "\n".join(getattr(error, "__notes__", ()))
    show_error(error.message, code=error.code, notes=notes, hint=error.remediation)
    return exit_code(error)


def code_of(request: SystemExit) -> int:
    """Exit code that a SystemExit asks for; a text is an error message, as in Python itself."""
    if request.code is None:
        return OK
    if isinstance(request.code, int):
        return request.code
    show_error(str(request.code))
    return FAILED


def show_warning(message: str) -> None:
    """Write one warning line."""
    print(f"alkahest: warning: {one_line(message)}", file=sys.stderr)


def one_line(text: str) -> str:
    """``text`` without line breaks."""
    return " ".join(text.split("\n")).strip()


def pointing_at(text: str, span: tuple[int, int]) -> str:
    """``text`` with a line of carets under ``span``, for the note of an error.

    Long texts are cut to the neighbourhood of the span, so that the carets fit a terminal line.
    """
    start, stop = span[0], max(span[1], span[0] + 1)
    left = max(0, start - 40)
    right = min(len(text), max(stop + 20, left + 72))
    before, after = "..." if left else "", "..." if right < len(text) else ""
    width = min(stop, right + 1) - start
    # Tabs and line breaks would move the carets away from what they point at.
    shown = "".join(" " if mark.isspace() else mark for mark in text[left:right])
    return f"  {before}{shown}{after}\n  {' ' * (len(before) + start - left)}{'^' * max(1, width)}"


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show Python warnings as lines of ours instead of source positions.

    A broken plugin warns, and costs the command no more than the line.
    """

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        show_warning(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default", PluginLoadWarning)
        warnings.showwarning = show
        yield
