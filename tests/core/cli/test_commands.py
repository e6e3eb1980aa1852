"""Which commands there are, and how a command line is understood."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import alkahest
from alkahest.cli import commands
from alkahest.plugin import Command, hookimpl
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Run = Callable[..., Any]


class Greeter:
    """A plugin that brings subcommands and no backend."""

    ALKAHEST_PLUGIN_API = 1

    def __init__(self, *names: str, target: str = "greeting:run") -> None:
        self.commands = [Command(name=n, summary="say hello", target=target) for n in names]

    @hookimpl
    def alkahest_commands(self) -> list[Command]:
        return self.commands


@pytest.fixture
def greeting(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module behind the greeter's commands."""
    module = types.ModuleType("greeting")

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("names", nargs="+")
        parser.add_argument("--loud", action="store_true")

    def run(options: argparse.Namespace) -> int:
        text = " ".join(["hello", *options.names])
        print(text.upper() if options.loud else text)
        return 7

    module.add_arguments = add_arguments  # type: ignore[attr-defined]
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "greeting", module)
    return module


@pytest.mark.usefixtures("greeting")
def test_a_plugin_brings_a_command_with_its_arguments_and_exit_code(run: Run) -> None:
    with isolated_plugins(Greeter("greet")):
        result = run("greet", "ann", "--loud", "bob")
        assert (result.code, result.out, result.err) == (7, "HELLO ANN BOB\n", "")
        assert "greet         say hello" in run("--help").out
        helped = run("greet", "--help")
        assert helped.code == 0
        assert helped.out.startswith("usage: alkahest greet")
        wrong = run("greet")
        assert (wrong.code, wrong.out) == (2, "")
        assert wrong.err.endswith("hint: see alkahest greet --help\n")


@pytest.mark.usefixtures("greeting")
def test_a_command_named_like_one_of_cores_is_reported_and_ignored(run: Run) -> None:
    with isolated_plugins(("greeter", Greeter("plugins", "greet"))):
        assert run("plugins").out.startswith("greeter: active\n")
        result = run("greet", "ann")
        assert result.out == "hello ann\n"
        assert result.err == (
            "alkahest: warning: plugin 'greeter' (registered by the application): "
            "command 'plugins' is ignored, alkahest has one of this name\n"
        )


@pytest.mark.usefixtures("greeting")
def test_of_two_plugins_with_one_command_the_first_has_it_and_the_other_is_reported(
    run: Run,
) -> None:
    with isolated_plugins(("a", Greeter("greet")), ("b", Greeter("greet", target="no:where"))):
        result = run("greet", "ann")
    assert result.out == "hello ann\n"
    assert "plugin 'b'" in result.err
    assert "'greet' already belongs to plugin 'a'" in result.err


@pytest.mark.parametrize(
    ("raised", "code", "shown"),
    [
        (RuntimeError("boom"), 1, "failed: RuntimeError: boom"),
        (SystemExit(5), 5, ""),
        (SystemExit("no luck"), 1, "alkahest: error: no luck"),
        (KeyboardInterrupt(), 130, "alkahest: interrupted"),
        (BrokenPipeError(), 0, ""),
        (alkahest.CudaError("E-CUDA-003", "no device"), 1, "[E-CUDA-003] no device"),
    ],
)
def test_whatever_a_plugins_command_raises_is_no_traceback(
    run: Run, greeting: Any, raised: BaseException, code: int, shown: str
) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise raised

    greeting.run = fail
    with isolated_plugins(Greeter("greet")):
        result = run("greet", "ann")
    assert result.code == code
    assert shown in result.err
    assert "Traceback" not in result.err


def test_a_command_whose_module_does_not_import_is_one_line(run: Run) -> None:
    with isolated_plugins(("greeter", Greeter("greet", target="absent_module:run"))):
        result = run("greet")
    assert result.code == 1
    assert result.err.splitlines()[0] == (
        "alkahest: error: command 'greet' of plugin 'greeter' (registered by the application) "
        "failed: ModuleNotFoundError: No module named 'absent_module'"
    )


def test_developers_may_ask_for_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_STRICT_PLUGINS", "1")
    greeter = Greeter("greet", target="absent_module:run")
    with isolated_plugins(greeter), pytest.raises(ModuleNotFoundError):
        run("greet")


def test_a_parser_with_subcommands_of_its_own_works(run: Run, greeting: Any) -> None:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_subparsers(dest="names", required=True).add_parser("ann")

    def show(options: argparse.Namespace) -> None:
        print(options.names)

    greeting.add_arguments, greeting.run = add_arguments, show
    with isolated_plugins(Greeter("greet")):
        result = run("greet", "ann")
        assert (result.code, result.out) == (0, "ann\n")


def test_cores_own_commands_ask_no_plugin_for_its_commands(run: Run) -> None:
    class Dangerous(NullPlugin):
        @hookimpl
        def alkahest_commands(self) -> list[Command]:
            raise AssertionError("nobody should ask")

    with isolated_plugins(Dangerous()):
        assert run("devices").err == ""
        assert "nobody should ask" in run("--help").err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["evla"], "unknown command 'evla'; did you mean 'eval'?"),
        (["qqq"], f"unknown command 'qqq'; there are: {', '.join(commands.CORE)}"),
        (["--fast"], "unrecognized arguments: --fast"),
        (["plugins", "--fast"], "unrecognized arguments: --fast"),
        (["doctor", "now"], "unrecognized arguments: now"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(
    run: Run, arguments: list[str], shown: str
) -> None:
    with isolated_plugins():
        result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"alkahest: error: {shown}\nhint: see alkahest")


def test_help_lists_every_command_and_the_exit_codes(run: Run) -> None:
    with isolated_plugins():
        result = run("--help")
    assert result.code == 0
    for name in commands.CORE:
        assert f"\n  {name} " in result.out
    assert "130  interrupted" in result.out


@pytest.mark.parametrize("name", commands.CORE)
def test_every_command_explains_itself(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: alkahest {name}")
    assert "exit codes:" in result.out


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").out == f"alkahest {alkahest.__version__}\n"


def test_memory_that_does_not_suffice_is_explained(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(arguments: object) -> int:
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr(commands, "run", fail)
    for command, hint in (("eval", "Use smaller chunks: --chunk"), ("plot", "Ask for less")):
        result = run(command)
        assert result.code == 1
        assert result.err.startswith("alkahest: error: out of memory: Unable to allocate 7 TiB\n")
        assert f"hint: {hint}" in result.err


def test_a_minus_is_explained_where_an_expression_can_stand(run: Run) -> None:
    grid = ("--grid", "x=0:1:3", "-o", "a.png")
    assert "goes into parentheses: '(-x**2)'" in run("plot", "x", "-x**2", *grid).err
    assert "goes into parentheses: '(-x)'" in run("plot", "-x", *grid).err
    assert "parentheses" not in run("capabilities", "-o", "a.html").err


def module(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ALKAHEST_PLUGINS": "none", **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "alkahest", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        **options,
    )


def test_the_module_runs_and_without_a_backend_says_what_to_install() -> None:
    result = module()
    assert result.returncode == 0, result.stderr
    assert "No backend evaluates expressions here" in result.stdout
    assert "pip install 'alkahest[cpu]==0.1.0'" in result.stdout
    assert "features\n" in result.stdout


def test_a_closed_pipe_ends_quietly() -> None:
    script = (
        f"{sys.executable} -m alkahest capabilities --json | exec true; exit ${{PIPESTATUS[0]}}"
    )
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_listings_import_no_numpy() -> None:
    code = (
        "import sys; from alkahest.cli import main; main(['capabilities']); main(['plugins']);"
        "main(['devices']); main(['doctor']); sys.exit('numpy' in sys.modules)"
    )
    environment = {**os.environ, "ALKAHEST_PLUGINS": "none"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment, timeout=60, check=False
    )
    assert result.returncode == 0


def test_an_interrupt_while_the_command_line_is_imported_is_no_traceback() -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'alkahest.cli.commands':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from alkahest.cli import main\n"
        "sys.exit(main(['plugins']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (
        130,
        "",
        "alkahest: interrupted\n",
    )


INTERRUPTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "alkahest.capabilities":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""
SCRIPT = "import sys\nfrom alkahest.cli import main\nsys.exit(main())\n"


@pytest.mark.parametrize(
    ("start", "code", "shown"),
    [
        (["alkahest"], 130, "alkahest: interrupted\n"),
        (["-m", "alkahest"], 130, "alkahest: interrupted\n"),
        (["program"], -signal.SIGINT, "KeyboardInterrupt\n"),
    ],
)
def test_an_interrupt_while_the_package_is_imported_is_a_traceback_in_other_programs_only(
    tmp_path: Path, start: list[str], code: int, shown: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    for name in ("alkahest", "program"):
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(SCRIPT)
    if start != ["-m", "alkahest"]:
        start = [str(tmp_path / "bin" / start[0])]
    result = subprocess.run(
        [sys.executable, *start, "plugins"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.endswith(shown)
    assert ("Traceback" in result.stderr) == (code < 0)
