"""Bases asked for with ``device=`` on a device that is there."""

from __future__ import annotations

import pytest
from polysystems import named

import alkahest
from alkahest import GF, CudaError, GroebnerBasis, compute_groebner_basis_gpu, solve


@pytest.mark.parametrize("name", ["katsura-7", "cyclic-6", "noon-6", "eco-9"])
def test_rational_bases_are_the_processor_s(name: str) -> None:
    polynomials, n = named(name)
    names = [f"x{i}" for i in range(n)]
    basis, report = compute_groebner_basis_gpu(polynomials, names)
    assert report.ran_on_gpu()
    assert report.reductions_on_gpu >= 2  # replays, and the lifting
    assert not report.fell_back_to_cpu()
    assert basis == GroebnerBasis.compute(polynomials, names)


def test_ten_seeds_give_one_basis() -> None:
    polynomials, n = named("katsura-6")
    names = [f"x{i}" for i in range(n)]
    for field in (None, GF(2147483647)):
        expected = GroebnerBasis.compute(polynomials, names, field=field)
        for seed in range(10):
            found = GroebnerBasis.compute(polynomials, names, field=field, seed=seed, device="cuda")
            assert found == expected


def test_solving_reaches_the_device() -> None:
    system = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
    found = solve(system, "x y z", device="cuda")
    assert found.report.ran_on_gpu()
    assert [dict(s) for s in found] == [dict(s) for s in solve(system, "x y z")]


def test_every_device_can_be_named_and_one_more_cannot(devices: int) -> None:
    for ordinal in range(devices):
        _, report = compute_groebner_basis_gpu(["x*y - 1", "x^2 - y"], "x y", device=ordinal)
        assert report.ran_on_gpu()
    with pytest.raises(CudaError) as caught:
        GroebnerBasis.compute(["x*y - 1"], "x y", device=f"cuda:{devices}")
    assert caught.value.code == "E-CUDA-003"


def test_the_witness_passes() -> None:
    assert alkahest.capabilities(verify=True)["features"]["groebner_cuda"]
