"""The capability bit, the names that go with it, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import alkahest as ak
from alkahest._plugins import calls
from alkahest._plugins.builtin import BUILTIN_FEATURES
from alkahest.plugin import make_reducer

NAMES = BUILTIN_FEATURES["groebner"].exports


def test_the_bit_is_true_and_the_names_are_there():
    assert ak.capabilities()["features"]["groebner"] is True
    assert set(NAMES) <= set(ak.__all__) & set(dir(ak))
    assert [getattr(ak, name).__name__ for name in NAMES if name != "QQ"] == [
        name for name in NAMES if name != "QQ"
    ]


def test_the_witness_computes_bases_over_both_kinds_of_field():
    from alkahest.groebner.probe import witness

    answer = witness()
    assert answer.ok
    assert "y**2 - 1/2" in answer.detail


def test_the_backend_evaluates_no_programs():
    with pytest.raises(ak.CodegenError):
        ak.compile_expr(ak.symbol("x"), [ak.symbol("x")], backend="groebner-cpu")


def test_the_commands_are_offered():
    offered = {command.name for _, command in calls.commands()}
    assert {"groebner", "solve"} <= offered


def test_a_reducer_is_asked_of_a_backend_that_is_loaded():
    assert make_reducer("groebner-cpu", None).name == "cpu"
    assert make_reducer("no-such-backend", None) is None


def test_importing_the_api_loads_neither_numba_nor_flint():
    code = (
        "import sys, alkahest.groebner.basis, alkahest.groebner.solving, alkahest.groebner.plugin\n"
        "found = {'numba', 'flint', 'sympy'} & set(sys.modules)\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ASK = """
import sys
from alkahest.groebner.probe import probe
answer = probe()
print("numba" in sys.modules, answer)
"""


def test_a_probe_that_passed_is_remembered_for_these_installations(tmp_path, monkeypatch):
    def ask(code=ASK):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return done.stdout.split(" ", 1)

    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "cache"))
    imported, answer = ask()
    assert imported == "True"
    assert "ok=True" in answer
    assert "python-flint" in answer
    assert ask() == ["False", answer]
    # Another numba is found from here on, which cannot be imported.
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('a broken numba')")
    broken = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{ASK}"
    assert "ok=False, detail='a broken numba" in ask(broken)[1]
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    assert ask() == ["True", answer]
