"""The ``alkahest`` command line: ``alkahest COMMAND ...`` or ``python -m alkahest COMMAND ...``.

Core's commands and those that plugins bring go the same way: a :class:`alkahest.plugin.Command`
names a module, which adds its arguments to a parser and runs. A module is imported when its command
is used, and plugins are asked for theirs only when core has no command of the name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; see :data:`alkahest.cli.messages.EXIT_CODES`.

    Args:
        argv: the arguments after the program's name; those of the process when omitted.
    """
    try:
        # Importing takes most of a short command's time, and Ctrl-C then is no traceback either.
        from alkahest.cli.entry import run

        return run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        return interrupted()


def interrupted() -> int:
    """Say that the user stopped the command, and return its exit code."""
    print("alkahest: interrupted", file=sys.stderr)
    return INTERRUPTED


def is_this_process() -> bool:
    """Whether the process was started as the command, not as a program that imports the library."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # Python sets the path of the module once it has found it
        return "alkahest" in sys.orig_argv
    return program.replace("\\", "/").rpartition("/")[2] in ("alkahest", "alkahest.exe")
