"""Without llvmlite there is no compiled code, and everything else works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import alkahest
from alkahest.backends.cpu import plugin

_MISSING = "sys.modules['llvmlite'] = None"
_BROKEN = """
import importlib.abc
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == 'llvmlite.binding':
            raise OSError('libllvmlite.so: cannot open shared object file')
sys.meta_path.insert(0, Broken())
"""

_PROGRAM = """
import sys
{before}
import json, alkahest
from alkahest._plugins.registry import registry
if 'cpu-jit' not in registry.snapshot().backends:
    from alkahest.backends.cpu import plugin
    alkahest.register(plugin)
x = alkahest.ExprPool().symbol('x')
expression = alkahest.erf(x)
found = dict(features=alkahest.capabilities()['features'],
             entry=alkahest.capabilities()['backends']['cpu-jit'])
for name in ('auto', 'cpu'):
    fn = alkahest.compile_expr(expression, [x], backend=name)
    found[name] = [fn.backend, fn([1.0]).tolist(), fn.fast_call([1.0]).tolist()]
try:
    alkahest.compile_expr(expression, [x], backend='cpu-jit')
except alkahest.CodegenError as error:
    found['error'] = [error.code, error.message, error.remediation]
print(json.dumps(found))
"""


@pytest.fixture(params=[_MISSING, _BROKEN], ids=["missing", "broken"])
def answer(request: pytest.FixtureRequest) -> Any:
    """What a process says in which llvmlite cannot be imported."""
    root = str(Path(alkahest.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    environment = {k: v for k, v in os.environ.items() if k != "ALKAHEST_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(before=request.param)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**environment, "PYTHONPATH": path},
    )
    return json.loads(done.stdout)


def test_the_bit_is_false_with_the_reason_and_the_reference_takes_over(answer: Any) -> None:
    assert answer["features"]["cpu"] is True
    assert answer["features"]["llvm_jit"] is False
    assert "llvmlite" in answer["entry"]["detail"]
    assert answer["entry"]["reachable"] is False
    for name in ("auto", "cpu"):
        backend, *values = answer[name]
        assert backend == "cpu-reference"
        assert values == [[pytest.approx(0.8427007929497149, rel=1e-15)]] * 2


def test_compiled_code_asked_for_by_name_says_what_to_install(answer: Any) -> None:
    code, message, remedy = answer["error"]
    assert code == "E-JIT-004"
    assert "llvmlite" in message
    assert remedy.startswith("pip install 'alkahest[jit]==")


def test_the_doctor_has_a_row_about_the_compiler_whatever_is_there() -> None:
    rows = {row.name: row for row in plugin.alkahest_diagnostics()}
    assert rows.keys() == {"CPU compiler", "CPU threads"}
    compiler = rows["CPU compiler"]
    assert compiler.ok or compiler.remedy
    assert "llvmlite" in compiler.detail
