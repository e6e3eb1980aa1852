"""``compile_cuda`` and what it returns, up to the driver's door."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx import api, targets
from alkahest.backends.nvptx.plugin import BACKEND
from alkahest.errors import CudaError, InputError, InputTypeError


@pytest.fixture
def xy() -> list[ak.Expr]:
    return ak.symbols("x y")


def test_the_names_on_alkahest_are_the_plugins_objects() -> None:
    assert ak.compile_cuda is api.compile_cuda
    assert ak.CudaCompiledFn is api.CudaCompiledFn
    assert ak.cuda_device_count is api.cuda_device_count
    assert {"compile_cuda", "CudaCompiledFn", "cuda_device_count"} <= set(ak.__all__)


def test_the_function_shows_its_ptx_target_and_inputs(xy) -> None:
    x, y = xy
    fn = ak.compile_cuda(ak.sin(x) * ak.cos(y) + (x * x + y * y) / 100, xy, target="sm_86")
    assert isinstance(fn, ak.CudaCompiledFn)
    assert isinstance(fn, ak.CompiledFn)
    assert fn.n_inputs == 2
    assert fn.backend == BACKEND
    assert fn.target == "sm_86"
    lines = fn.ptx.splitlines()
    assert ".target sm_86" in lines
    assert ".address_size 64" in lines
    assert any(line.startswith(".version 7.1") for line in lines)
    assert ".visible .entry alkahest_eval(" in fn.ptx
    assert "n_inputs=2" in repr(fn)


def test_the_explicit_backend_gives_the_same_code_as_compile_cuda(xy) -> None:
    x, y = xy
    by_name = ak.compile_expr(x * y, xy, backend="nvptx", target="sm_80")
    assert by_name.artifact.code == ak.compile_cuda(x * y, xy, target="sm_80").ptx


def test_to_ptx_gives_the_text_that_runs(xy) -> None:
    x, y = xy
    fn = ak.compile_cuda([ak.sin(x) * y, x < y], [x, y], target="sm_90", accuracy="strict")
    text = ak.to_ptx([ak.sin(x) * y, x < y], [x, y], target="sm_90", accuracy="strict")
    assert text == fn.ptx
    assert ".target sm_90" in text
    with pytest.raises(CudaError, match="unbound symbol 'y'"):
        ak.to_ptx(x + y, x)


@pytest.mark.parametrize("target", targets.supported())
def test_every_supported_target_can_be_asked_for(xy, target: str) -> None:
    fn = ak.compile_cuda(xy[0] + xy[1], xy, target=target)
    assert f".target {target}" in fn.ptx


def test_an_unknown_target_is_refused_with_the_known_ones(xy) -> None:
    with pytest.raises(InputError, match="'sm_61' is not a GPU target") as caught:
        ak.compile_cuda(xy[0], xy, target="sm_61")
    assert caught.value.code == "E-INPUT-011"
    assert "sm_75" in caught.value.remediation


def test_an_unbound_symbol_is_named_under_the_cuda_code(xy) -> None:
    x, y = xy
    with pytest.raises(ak.AlkahestError, match="unbound symbol 'y'") as caught:
        ak.compile_cuda(x * y, [x])
    assert isinstance(caught.value, CudaError)
    assert caught.value.code == "E-CUDA-002"
    assert caught.value.remediation


def test_ordering_complex_numbers_is_refused_under_the_cuda_code(xy) -> None:
    with pytest.raises(CudaError, match="complex") as caught:
        ak.compile_cuda(xy[0] < xy[1], xy, dtype="complex128")
    assert caught.value.code == "E-CUDA-002"


@pytest.mark.parametrize("columns", [[[1.0]], [[1.0], [2.0], [3.0]], []])
def test_a_wrong_number_of_columns_is_refused_before_the_device_is_touched(xy, columns) -> None:
    with pytest.raises(ValueError, match="2") as caught:
        ak.compile_cuda(xy[0] * xy[1], xy).call_batch(columns)
    assert caught.value.code == "E-INPUT-001"


def test_ragged_columns_are_refused_before_the_device_is_touched(xy) -> None:
    with pytest.raises(ValueError, match="length") as caught:
        ak.compile_cuda(xy[0] * xy[1], xy).call_batch([[1.0, 2.0], [1.0]])
    assert caught.value.code == "E-INPUT-002"


@pytest.mark.parametrize("ordinal", [True, 0.0, "0", None])
def test_what_is_no_integer_is_no_ordinal(xy, ordinal) -> None:
    fn = ak.compile_cuda(xy[0] * xy[1], xy)
    with pytest.raises(InputTypeError, match="is not a device ordinal") as caught:
        fn.call_batch_on(ordinal, [[1.0], [2.0]])
    assert caught.value.code == "E-INPUT-008"


def test_a_device_that_is_no_integer_is_refused_when_compiling(xy) -> None:
    with pytest.raises(InputTypeError, match="device must be an ordinal, 'all' or None"):
        ak.compile_cuda(xy[0], xy, device="cuda:0")


def test_derivatives_are_outputs_of_the_same_kernel(xy) -> None:
    x, y = xy
    fn = ak.compile_cuda(x * x * y, xy, derivatives=2, target="sm_80")
    assert (fn.derivatives, fn.n_outputs) == (2, 1 + 2 + 3)
    assert fn.ptx.count(".entry") == 1
    one = ak.compile_cuda([x * y, x + y], xy, derivatives=1, wrt=[y])
    assert (one.derivatives, one.n_outputs) == (1, 4)
    same = ak.compile_expr(x * x * y, xy, backend="nvptx", derivatives=2, target="sm_80")
    assert fn.ptx == same.artifact.code


@pytest.mark.parametrize(
    ("options", "code"),
    [({"derivatives": 3}, "E-INPUT-011"), ({"derivatives": 1, "wrt": [2]}, "E-INPUT-007")],
)
def test_derivatives_that_there_are_not_are_refused(xy, options, code) -> None:
    with pytest.raises(ak.AlkahestError) as caught:
        ak.compile_cuda(xy[0], xy, **options)
    assert caught.value.code == code


def test_addresses_need_one_device(xy) -> None:
    fn = ak.compile_cuda(xy[0] * xy[1], xy, device="all")
    assert fn.device == "all"
    with pytest.raises(InputError, match="addresses are on one device") as caught:
        fn.call_device_ptrs([0, 0], 1, [0])
    assert caught.value.code == "E-INPUT-011"


def test_the_count_is_a_number_and_never_an_exception() -> None:
    assert type(ak.cuda_device_count()) is int
    assert ak.cuda_device_count() >= 0


def test_a_function_survives_pickling_with_its_choices(xy) -> None:
    fn = ak.compile_cuda([xy[0] * xy[1], ak.exp(xy[0])], xy, target="sm_90", dtype="float32")
    copy = pickle.loads(pickle.dumps(fn))
    assert type(copy) is ak.CudaCompiledFn
    assert copy.ptx == fn.ptx
    assert (copy.target, copy.dtype, copy.n_outputs) == ("sm_90", "float32", 2)


def test_numpy_integers_are_ordinals(xy) -> None:
    fn = ak.compile_cuda(xy[0], xy, device=np.int64(1))
    assert fn.device == 1
    assert type(fn.device) is int
