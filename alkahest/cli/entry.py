"""Running one command line, and what the user reads when it fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from alkahest.cli import commands, interrupted, messages
from alkahest.errors import AlkahestError


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; see :data:`alkahest.cli.messages.EXIT_CODES`."""
    with messages.warnings_as_lines():
        try:
            code = _run(arguments)
            if sys.stdout is not None:  # None when the process was started without one
                sys.stdout.flush()
        except BrokenPipeError:
            _abandon_stdout()
            code = messages.OK
        except OSError as error:  # files raise IoError; what is left is standard output
            _abandon_stdout()
            messages.show_error(f"standard output cannot be written: {error.strerror}")
            code = messages.FAILED
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        return commands.run(arguments)
    except SystemExit as request:  # --help, SIGTERM, or a plugin's command that exits
        return messages.code_of(request)
    except commands.UsageError as error:
        messages.show_error(str(error), hint=error.hint)
        return messages.USAGE
    except AlkahestError as error:
        return messages.show_alkahest_error(error)
    except KeyboardInterrupt:
        return interrupted()
    except MemoryError as error:
        chunks = arguments[:1] == ["eval"]
        hint = "Use smaller chunks: --chunk ROWS." if chunks else "Ask for less at a time."
        messages.show_error(f"out of memory: {error}", hint=hint)
        return messages.FAILED


def _abandon_stdout() -> None:
    """Point standard output nowhere, so that flushing it at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
