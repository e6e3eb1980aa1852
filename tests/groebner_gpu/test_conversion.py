"""Changes of order whose steps a device follows for many primes: the processor's, or an error."""

import re
from functools import cache

import numpy as np
import pytest
from flint import nmod_mat
from polysystems import named

from alkahest import CudaError, GroebnerBasis, SolverError, compute_groebner_basis_gpu
from alkahest.backends.groebner_gpu import reducer
from alkahest.backends.groebner_gpu.conversion import follow
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.groebner_gpu.reducer import GpuReducer
from alkahest.groebner.fglm import Conversion
from alkahest.groebner.fields import GF
from alkahest.groebner.following import walk_of
from alkahest.groebner.orders import order_of
from alkahest.groebner.quotient import Border
from alkahest.groebner.settings import Settings

SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
PRIMES = [2147483629, 2147483587, 1073741827, 65521, 101, 11, 7, 5, 3]
CASES = [
    ("katsura-4", "lex", None),
    ("cyclic-5", "elimination(2)", None),
    ("noon-3", "grlex", None),
    ("eco-6", "lex", None),
    ("katsura-4", "grevlex", (1, 3)),
    ("noon-3", "grevlex", (2,)),
]


def nothing():
    """A checkpoint that lets everything pass."""


@cache
def learned(name, order, kept):
    """Basis under grevlex, border, conversion and walk; ``kept`` are variables, None for all."""
    polynomials, n = named(name)
    basis = GroebnerBasis.compute(polynomials, [f"x{i}" for i in range(n)])
    border, kept = Border.of(basis), range(n) if kept is None else kept
    steps = Conversion.modulo(basis, border, order_of(order, len(kept)), 2147483647, kept)
    return basis, border, steps, walk_of(steps, basis.engine_basis, border)


def compare(device, case, primes=PRIMES):
    """Follow on a device and on the processor; how many primes were lucky."""
    basis, border, steps, walk = learned(*case)
    lucky, tails, rows = follow(device, walk, primes, nothing, vectors=True)
    for q, p in enumerate(primes):
        expected = steps.followed(basis, border, steps.needed(border), p)
        assert lucky[q] == (expected is not None), p
        if expected is not None:
            assert np.array_equal(rows[q], expected.vectors), p
            assert np.array_equal(tails[q], expected.tails[:, : walk.vectors]), p
            assert not expected.tails[:, walk.vectors :].any()
    return int(lucky.sum())


@pytest.mark.parametrize("tensor", [False, True], ids=["integers", "tensor cores"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_prime_is_followed_as_on_the_processor_or_unlucky_as_there(case, tensor):
    device = EmulatedDevice(tensor_cores=tensor)
    assert 0 < compare(device, case) < len(PRIMES)
    assert ("compare" in device.launches) == (case[2] is not None)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("case", CASES[1:5:3], ids=str)
def test_the_kernels_sources_compute_what_the_twins_do(compiled, case, backward):
    compare(EmulatedDevice(launch=compiled(1, backward=backward)), case, PRIMES[::3])


def test_rows_are_the_residues_and_tails_their_combinations():
    """Against python-flint: every tail times the vectors is the residue of a leading monomial."""
    basis, _, steps, walk = learned("cyclic-5", "lex", None)
    p = 2147483629
    _, (tails,), (rows,) = follow(EmulatedDevice(), walk, [p], nothing, vectors=True)
    a, b = (nmod_mat(*matrix.shape, [int(v) for v in matrix.flat], p) for matrix in (tails, rows))
    assert int(b.det()) != 0
    monomials = [tuple(row) for row in Border.of(basis).monomials.tolist()]
    for element, row in zip(steps.leads, (a * b).tolist(), strict=True):
        rest = basis.reduce({element.leading: 1})
        expected = dict(rest.terms())
        for monomial, value in zip(monomials, row, strict=True):
            c = expected.get(monomial, 0)
            assert (
                int(value) == c.numerator * pow(c.denominator, -1, p) % p if c else not int(value)
            )


def test_a_larger_square_is_inverted_panel_by_panel_and_on_tensor_cores():
    device = EmulatedDevice()
    compare(device, ("cyclic-6", "lex", None), PRIMES[:2])
    assert device.launches.count("invert_panel") == 5
    assert "update_squares_tensor" in device.launches
    assert "update_squares" in device.launches  # the last panel is narrow


def test_primes_that_do_not_fit_into_memory_at_once_take_several_passes():
    case = CASES[0]
    walk = learned(*case)[3]
    words = walk.rows * walk.degree + 2 * walk.vectors**2 + 1000
    device = EmulatedDevice(memory=4 * 4 * words)
    compare(device, case)
    assert device.launches.count("enter_elements") > 1
    with pytest.raises(CudaError, match=r"bytes free, and a change of order needs") as caught:
        follow(EmulatedDevice(memory=4 * words // 2), walk, PRIMES, nothing, vectors=False)
    assert caught.value.code == "E-CUDA-003"


def test_a_walk_can_be_stopped_between_waves():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(EmulatedDevice(), learned(*CASES[0])[3], PRIMES, stop, vectors=False)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_devices_share_the_primes(count):
    walk = learned(*CASES[0])[3]
    devices = [EmulatedDevice(ordinal=i, is_gpu=True) for i in range(count)]
    found = GpuReducer(devices).follow(walk, PRIMES, nothing, vectors=True)
    lucky, tails, rows = follow(EmulatedDevice(), walk, PRIMES, nothing, vectors=True)
    assert found.on_gpu
    assert found.lucky == tuple(lucky.tolist())
    assert np.array_equal(found.tails[lucky], tails[lucky])
    assert np.array_equal(found.vectors[lucky], rows[lucky])
    assert all(device.launches for device in devices)


@pytest.mark.parametrize("field", [None, GF(65521), GF(3)], ids=str)
@pytest.mark.parametrize("name", ["katsura-3", "cyclic-5", "noon-3", "eco-5"])
def test_whole_conversions_are_the_processor_s(pretend, name, field):
    (device,) = pretend(EmulatedDevice(name="Some GPU"))
    polynomials, n = named(name)
    names = [f"x{i}" for i in range(n)]
    basis = GroebnerBasis.compute(polynomials, names, "lex", field, device="cuda")
    assert basis == GroebnerBasis.compute(polynomials, names, "lex", field)
    assert basis.report.ran_on_gpu()
    assert basis.report.device_name == "Some GPU"
    assert ("follow" in basis.report.seconds) == (field is None)
    assert ("times_variables" in device.launches) == (field is None)
    assert basis.report.seconds["fglm"] > 0


def test_certified_conversions_and_eliminations_are_the_processor_s(pretend):
    (device,) = pretend(EmulatedDevice())
    basis = GroebnerBasis.compute(SYSTEM, "x y z", "lex", device="cuda", certify=True)
    expected = GroebnerBasis.compute(SYSTEM, "x y z", "lex", certify=True)
    assert basis == expected
    assert basis.report.certainty == "certified"
    device.launches.clear()
    graded = GroebnerBasis.compute(SYSTEM, "x y z", device="cuda")
    assert graded.eliminate(["x", "y"]) == expected.eliminate(["x", "y"])
    assert "times_variables" in device.launches
    again = graded.fglm("lex").fglm("grlex")
    assert again == GroebnerBasis.compute(SYSTEM, "x y z", "grlex")
    assert again.report.reductions_on_gpu >= graded.report.reductions_on_gpu + 2
    assert again.report.seconds["follow"] > 0


def test_one_unlucky_prime_among_many_is_left_out(pretend, monkeypatch):
    """Primes just below 2**31 divide nothing here, so one is made to seem unlucky."""
    pretend(EmulatedDevice())
    plain = reducer.follow

    def spoiled(device, walk, primes, checkpoint, *, vectors):
        lucky, tails, rows = plain(device, walk, primes, checkpoint, vectors=vectors)
        lucky[1], tails[1] = False, 1
        return lucky, tails, rows

    monkeypatch.setattr(reducer, "follow", spoiled)
    basis = GroebnerBasis.compute(SYSTEM, "x y z", "lex", device="cuda")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", "lex")


def asked_for(**options):
    """The basis under grevlex, computed by the processor, whose conversions run as asked."""
    graded = GroebnerBasis.compute(SYSTEM, "x y z")
    settings = Settings(device="cuda", **options)
    return GroebnerBasis(
        graded.ring, graded.engine_basis, graded.generator_terms, settings, graded.report
    )


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"fails_at": 2}, "CUDA_ERROR_LAUNCH_FAILED"),
        ({"memory": 64}, "CUDA_ERROR_OUT_OF_MEMORY"),
        ({"memory": 1000}, "device 0 has 320 bytes free"),
        ({"shared_bytes": 71}, "device 0 has 71 bytes of shared memory .* of 8 rows needs 72"),
    ],
    ids=["lost", "out of memory", "too small for a prime", "too small for a column"],
)
def test_a_device_that_fails_in_the_conversion_is_an_error_or_the_processor_follows(
    pretend, broken, said
):
    pretend(EmulatedDevice(**broken))
    with pytest.raises(SolverError, match=rf"device='cuda' failed: .*{said}") as caught:
        asked_for().fglm("lex")
    assert caught.value.code == "E-SOLVE-010"
    pretend(EmulatedDevice(**broken))
    basis = asked_for(fallback="cpu").fglm("lex")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    assert basis.report.fell_back_to_cpu()
    assert not basis.report.ran_on_gpu()
    assert basis.report.reductions_on_cpu == 1
    assert re.search(said, basis.report.first_gpu_error)


def test_a_deadline_is_not_taken_for_a_failed_device(pretend):
    pretend(EmulatedDevice())
    with pytest.raises(SolverError) as caught:
        asked_for(fallback="cpu", deadline=1e-9).fglm("lex")
    assert caught.value.code == "E-SOLVE-012"


def test_auto_follows_where_a_calibration_says_that_the_device_wins(pretend, monkeypatch):
    quick = {"step": 1e-12, "product": 1e-15, "host_product": 1e-6}
    slow = {"step": 1e-3, "product": 1e-6, "host_product": 1e-12}
    expected = GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    for figures, wins in ((quick, True), (slow, False)):
        (device,) = pretend(EmulatedDevice(name="Some GPU"))
        monkeypatch.setattr(reducer, "calibrated", lambda backend, values=figures: (values, ""))
        basis, report = compute_groebner_basis_gpu(SYSTEM, "x y z", "lex", device="auto")
        assert basis == expected
        assert ("times_variables" in device.launches) == wins
        assert ("follow" in report.seconds) == wins
        assert "expected: " in basis.report.choice
        assert not report.fell_back_to_cpu()
