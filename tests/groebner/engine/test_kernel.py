"""Kernels come from numba's cache as long as nothing that they are made of has changed."""

import importlib
import sys

import pytest

PART = """
from alkahest.groebner.engine._kernel import inlined

ADDED = {added}

@inlined
def image(x):
    return {factor} * x
"""

KERNEL = """
from alkahest.groebner.engine._kernel import inlined, kernel
from {folder}_part import ADDED, image

@inlined
def between(x):
    return image(x)

@kernel("int64(int64)")
def result(x):
    return between(x) + ADDED
"""


@pytest.fixture
def result(tmp_path, monkeypatch):
    """The kernel, compiled or loaded as in a new process."""
    name = f"kernel_of_{tmp_path.name}"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / f"{name}.py").write_text(KERNEL.format(folder=name))

    def load(factor, added):
        (tmp_path / f"{name}_part.py").write_text(PART.format(factor=factor, added=added))
        for module in (name, f"{name}_part"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        return importlib.import_module(name).result

    return load


def test_a_kernel_is_loaded_where_nothing_has_changed(result):
    assert result(2, 1)(10) == 21
    again = result(2, 1)
    assert again(10) == 21
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_kernel_is_compiled_anew_where_a_function_of_another_file_has_changed(result):
    assert result(2, 1)(10) == 21
    assert result(3, 1)(10) == 31


def test_a_kernel_is_compiled_anew_where_a_constant_of_another_file_has_changed(result):
    assert result(2, 1)(10) == 21
    assert result(2, 5)(10) == 25
