"""Python processes of their own, for what a process can show only once.

Run as a script, this module is the child: it executes the pieces of code that it reads, one JSON
line each, and answers with what they leave in ``result``, or with the alkahest error they raise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import Any


class Failed(Exception):
    """An alkahest error in the child."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message
        self.remedy = remedy


class Child:
    """One process; use it as a context manager.

    Leaving it demands that the process ended by itself with exit code 0 and wrote no errors.

    Args:
        folder: where the process starts and its errors are kept.
        hidden: prefixes of environment variables that it does not inherit.
        settings: environment variables, beyond those of this process.
    """

    def __init__(self, folder: Path, *, hidden: tuple[str, ...] = (), **settings: str) -> None:
        import alkahest

        paths = [str(Path(alkahest.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        environment = {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                cwd=folder,
            )

    def ask(self, code: str, **settings: str) -> Any:
        """The value of ``result`` after ``code``, run with extra environment variables.

        Raises:
            Failed: the code raised an error of alkahest.
            AssertionError: it raised something else, or the process died.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": code, "settings": settings}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the process died: {self._process.wait()}\n{self._errors.read_text()}"
        answer = json.loads(line)
        assert "traceback" not in answer, answer["traceback"]
        if "code" in answer:
            raise Failed(answer["code"], answer["message"], answer["remedy"])
        return answer["result"]

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
        if error is None:
            assert self._process.returncode == 0
            assert self._errors.read_text() == ""


def _serve() -> None:
    # Python in safe-path mode leaves out the script's folder, where the tests' helpers are.
    sys.path.insert(0, str(Path(__file__).parent))
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        before = dict(os.environ)
        os.environ.update(request["settings"])
        print(json.dumps(_answer(request["code"])), file=answers, flush=True)
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _answer(code: str) -> dict[str, Any]:
    import alkahest as ak

    space: dict[str, Any] = {"ak": ak, "result": None}
    try:
        exec(code, space)
        return {"result": space["result"]}
    except ak.AlkahestError as error:
        return {"code": error.code, "message": error.message, "remedy": error.remediation}
    except BaseException:  # noqa: BLE001 - whatever it is, the parent shows it
        return {"traceback": traceback.format_exc()}


def _register() -> None:
    """Where nothing is installed and the tree is tested, the plugin is registered by hand."""
    import alkahest
    from alkahest.backends.nvptx import plugin

    if plugin.__name__ not in {point.value for point in entry_points(group="alkahest.backends")}:
        alkahest.register(plugin)


if __name__ == "__main__":
    _register()
    _serve()
