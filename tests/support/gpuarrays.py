"""The array libraries that the hardware tier meets; one that is absent is a skip with its name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest


class Arrays(NamedTuple):
    """What the tests do with a library."""

    library: Any
    kind: type
    make: Callable[..., Any]
    back: Callable[[Any], np.ndarray]
    pointer: Callable[[Any], int]


def imported(name: str) -> Any:
    """The library, or a skip that names it."""
    # JAX would take three quarters of the memory, which other tests need.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed", exc_type=ImportError)


def cupy_arrays() -> Arrays:
    cupy = imported("cupy")
    return Arrays(cupy, cupy.ndarray, cupy.asarray, cupy.asnumpy, lambda a: a.data.ptr)


def torch_arrays() -> Arrays:
    torch = imported("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch is built without CUDA")

    def make(values: Any) -> Any:
        return torch.tensor(values, device="cuda")

    return Arrays(torch, torch.Tensor, make, lambda t: t.cpu().numpy(), lambda t: t.data_ptr())


def jax_arrays() -> Arrays:
    jax = imported("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX is built without CUDA")
    jax.config.update("jax_enable_x64", True)
    return Arrays(
        jax,
        jax.Array,
        jax.device_put,
        np.asarray,
        lambda a: a.addressable_data(0).unsafe_buffer_pointer(),
    )


def numba_arrays() -> Arrays:
    numba = imported("numba.cuda") and imported("numba")
    return Arrays(
        numba,
        type(numba.cuda.to_device(np.zeros(1))),
        numba.cuda.to_device,
        lambda a: a.copy_to_host(),
        lambda a: a.__cuda_array_interface__["data"][0],
    )


MAKERS = {
    "cupy": cupy_arrays,
    "torch": torch_arrays,
    "jax": jax_arrays,
    "numba": numba_arrays,
}
