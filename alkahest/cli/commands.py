"""Which commands there are, and how one is parsed and run."""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from alkahest._plugins import calls
from alkahest._plugins.records import PluginRecord
from alkahest.cli import messages
from alkahest.errors import AlkahestError
from alkahest.plugin import Command

CORE = {
    command.name: command
    for command in (
        Command(
            name="eval",
            summary="evaluate expressions over a data file or a grid",
            target="alkahest.cli.evaluate:run",
        ),
        Command(
            name="plot",
            summary="draw expressions over one or two axes",
            target="alkahest.cli.plot:run",
        ),
        Command(
            name="capabilities",
            summary="show what is reachable here",
            target="alkahest.cli.capabilities:run",
        ),
        Command(
            name="plugins",
            summary="show the installed plugins and what became of them",
            target="alkahest.cli.plugins:run",
        ),
        Command(
            name="devices",
            summary="show the devices of every backend",
            target="alkahest.cli.devices:run",
        ),
        Command(
            name="calibrate",
            summary="measure the backends, so that the quicker one can be chosen",
            target="alkahest.cli.calibrate:run",
        ),
        Command(
            name="cache",
            summary="show or clear the generated code that is kept on disk",
            target="alkahest.cli.cache:run",
        ),
        Command(
            name="doctor",
            summary="check this installation and say what to do",
            target="alkahest.cli.doctor:run",
        ),
    )
}


class UsageError(Exception):
    """A command line that cannot be understood.

    Attributes:
        hint: where to read more.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """An argument parser that raises :class:`UsageError` instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and exiting."""
        hint = f"see {self.prog} --help"
        taken = re.match(r"unrecognized arguments: (-[^-\s]\S*)", message)
        minus = taken[1] if taken else "-x" if "required" in message and "EXPR" in message else ""
        if minus and any("EXPR" in str(action.metavar) for action in self._actions):
            hint += f"; an expression that begins with a minus goes into parentheses: '({minus})'"
        raise UsageError(message, hint)


def run(arguments: Sequence[str]) -> int:
    """Run the command that ``arguments`` begin with; without any, show a summary.

    Raises:
        UsageError, AlkahestError: what the user must be told.
    """
    if not arguments:
        return _run(Command(name="summary", summary="", target="alkahest.cli.summary:run"), ())
    name, *rest = arguments
    if name.startswith("-"):
        return _parse_options(arguments)
    if name in CORE:
        return _run(CORE[name], rest)
    added = plugin_commands()
    if name not in added:
        known = [*CORE, *added]
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(known)}"
        raise UsageError(f"unknown command {name!r}{meant}", "see alkahest --help")
    return _run_added(*added[name], rest)


def plugin_commands() -> Mapping[str, tuple[PluginRecord, Command]]:
    """Name -> owner and command, for the commands that plugins bring.

    A name of core's is not given away: a warning says so.
    """
    added: dict[str, tuple[PluginRecord, Command]] = {}
    for owner, command in calls.commands():
        if command.name in CORE:
            messages.show_warning(
                f"{owner.label}: command {command.name!r} is ignored, alkahest has one of this name"
            )
        else:
            added[command.name] = owner, command
    return added


def _parse_options(arguments: Sequence[str]) -> int:
    """Handle what may stand before a command: ``--help`` and ``--version``."""
    parser = Parser(
        prog="alkahest",
        usage="alkahest [-h] [--version] COMMAND ...",
        description="Evaluate symbolic expressions over many points on the hardware that is here.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    # The list of commands needs the plugins; only the user who asks for it waits for them.
    if not {"-h", "--help"}.isdisjoint(arguments):
        parser.epilog = f"{_listing()}\n\n{messages.EXIT_CODES}"
    _, rest = parser.parse_known_args(arguments)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    from alkahest import __version__

    print(f"alkahest {__version__}")
    return messages.OK


def _listing() -> str:
    added = [command for _, command in plugin_commands().values()]
    lines = [f"  {command.name:<13} {command.summary}" for command in [*CORE.values(), *added]]
    return "\n".join(
        ["commands:", *lines, "", "Without a command: evaluate a few points and show a summary."]
    )


def _run(command: Command, arguments: Sequence[str]) -> int:
    """Parse ``arguments`` for a command and run it."""
    module_name, _, function = command.target.partition(":")
    module = import_module(module_name)
    parser = Parser(
        prog=f"alkahest {command.name}",
        description=command.summary[:1].upper() + command.summary[1:] + ".",
        epilog=messages.EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    code = getattr(module, function)(_parse(parser, arguments))
    return code if isinstance(code, int) else messages.OK


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse with options allowed between the positional arguments."""
    if "--" in arguments:  # argparse loses what follows when it intermixes
        return parser.parse_args(arguments)
    try:
        return parser.parse_intermixed_args(arguments)
    except TypeError:  # argparse's way of saying that this parser, with subcommands, cannot
        return parser.parse_args(arguments)


def _run_added(owner: PluginRecord, command: Command, arguments: Sequence[str]) -> int:
    """Run a plugin's command; whatever it raises becomes one line that names the plugin."""
    try:
        return _run(command, arguments)
    except (UsageError, AlkahestError, BrokenPipeError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get("ALKAHEST_STRICT_PLUGINS") == "1":
            raise
        messages.show_error(
            f"command {command.name!r} of {owner.label} failed: {type(error).__name__}: {error}",
            hint=f"Report it to the authors of {owner.origin}; "
            "ALKAHEST_STRICT_PLUGINS=1 shows the traceback.",
        )
        return messages.FAILED
