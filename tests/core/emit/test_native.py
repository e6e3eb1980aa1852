"""Texts of backends, where the backends are not there; ``tests/jit`` and ``tests/nvptx`` read them."""

from collections.abc import Callable

import pytest
from refusals import refused

import alkahest as ak
from alkahest.testing.plugins import NullPlugin, isolated_plugins

POOL = ak.ExprPool()
X = POOL.symbol("x")


@pytest.mark.parametrize(("emit", "backend"), [(ak.to_llvm_ir, "cpu-jit"), (ak.to_ptx, "nvptx")])
def test_a_backend_that_is_missing_is_named(emit: Callable[..., str], backend: str) -> None:
    with isolated_plugins(NullPlugin()), refused("E-JIT-009", backend):
        emit(X + 1, X)


def test_a_refused_operation_is_named() -> None:
    for emit, backend, code in (
        (ak.to_llvm_ir, "cpu-jit", "E-JIT-001"),
        (ak.to_ptx, "nvptx", "E-CUDA-002"),
    ):
        plugin = NullPlugin(backend=backend, refuses={"erf": "too hard"}, refusal_code=code)
        with isolated_plugins(plugin), refused(code, "erf", "too hard"):
            emit(ak.erf(X), [X])


def test_every_emitter_is_a_name_of_the_package() -> None:
    from alkahest import emit

    for name in emit.__all__:
        if name != "emit_c_program":  # for authors of backends, who have a program
            assert getattr(ak, name) is getattr(emit, name)
            assert name in ak.__all__
