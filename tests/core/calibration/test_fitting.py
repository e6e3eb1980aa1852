"""Fitting, on times that a known model gave."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from alkahest.calibration.experiments import experiments
from alkahest.calibration.fitting import Sample, fit, nonnegative_least_squares
from alkahest.calibration.model import Cost, Model, Work, coefficients
from alkahest.ops import OPS
from alkahest.plugin import Support

TRUTH = Model(
    call=5e-6,
    read=Cost(1e-7, 2e-10),
    write=Cost(3e-7, 4e-10),
    ops={
        "add": Cost(8e-7, 3e-10),
        "exp": Cost(1e-6, 9e-10),
        "gamma": Cost(9e-6, 2.5e-8),
        "mul": Cost(7e-7, 2e-10),
    },
)
SUPPORT = Support(lowers=dict.fromkeys(TRUTH.ops, frozenset({"float64"})))
LENGTHS = (64, 1 << 16, 1 << 18)


def samples(model: Model, noise: float = 0.0) -> list[Sample]:
    generator = np.random.default_rng(1)
    found = []
    for experiment in experiments(SUPPORT, "float64"):
        work = Work.of(experiment.program)
        for n in LENGTHS:
            factor = 1 + noise * generator.uniform(-1, 1)
            found.append(Sample(work, n, factor * model.seconds(work, n)))
    return found


def test_a_model_is_recovered_from_its_own_times() -> None:
    fitted = fit(samples(TRUTH))
    assert fitted.ops.keys() == TRUTH.ops.keys()
    assert list(coefficients(fitted)) == pytest.approx(list(coefficients(TRUTH)), rel=1e-6)


def test_noise_of_a_tenth_leaves_predictions_within_a_quarter() -> None:
    fitted = fit(samples(TRUTH, noise=0.1))
    assert min(coefficients(fitted)) >= 0
    work = Work(
        columns_in=3, bytes_in=24, columns_out=2, bytes_out=16, ops={"add": 9, "exp": 4, "gamma": 2}
    )
    for n in (1, 1_000, 1_000_000):
        assert fitted.seconds(work, n) == pytest.approx(TRUTH.seconds(work, n), rel=0.25)


def test_a_device_whose_operations_are_hidden_by_transfers_is_fitted_too() -> None:
    device = Model(
        call=3e-5,
        read=Cost(5e-6, 1.2e-10),
        write=Cost(5e-6, 0.8e-10),
        ops={name: Cost(0.0, 0.0) for name in TRUTH.ops},
    )
    fitted = fit(samples(device))
    assert fitted.call == pytest.approx(3e-5)
    assert fitted.read.unit == pytest.approx(1.2e-10)
    assert all(cost.unit < 1e-14 for cost in fitted.ops.values())


def test_what_fresh_memory_costs_is_told_from_what_writing_does() -> None:
    fresh = attrs.evolve(TRUTH, fresh=7e-10)
    fitted = fit(samples(fresh))
    assert fitted.fresh == pytest.approx(7e-10)
    assert fitted.write.unit == pytest.approx(TRUTH.write.unit)
    work = Work(columns_in=1, bytes_in=8, columns_out=1, bytes_out=8, ops={"add": 1})
    extra = [fresh.seconds(work, n) - TRUTH.seconds(work, n) for n in (1 << 17, 1 << 20)]
    assert extra == pytest.approx([0, 7e-10 * 7 * (1 << 20)])
    assert fresh.seconds(work, 1 << 20, moves=False) == TRUTH.seconds(work, 1 << 20, moves=False)


def test_operations_of_one_kernel_cost_nothing_per_call_and_alike_in_a_class() -> None:
    noisy = samples(
        Model(
            call=9e-5,
            read=Cost(2e-6, 2e-11),
            write=Cost(2e-6, 2e-11),
            ops={"add": Cost(0, 1e-13), "mul": Cost(0, 2e-13), "exp": Cost(0, 2e-12)},
        ),
        noise=0.2,
    )
    fitted = fit(noisy, one_kernel=True)
    assert {cost.call for cost in fitted.ops.values()} == {0}
    assert fitted.ops["add"] == fitted.ops["mul"] == fitted.classes["arithmetic"]
    long = Work(columns_in=2, bytes_in=16, columns_out=1, bytes_out=8, ops={"add": 40, "exp": 20})
    assert fitted.seconds(long, 1000) == pytest.approx(1e-4, rel=0.3)


def test_transfers_that_begin_slowly_are_fitted_too() -> None:
    device = Model(
        call=7e-5,
        read=Cost(1e-6, 2.4e-11),
        write=Cost(1e-6, 2.4e-11),
        filling=9e-11,
        ops={name: Cost(0.0, 1e-13) for name in TRUTH.ops},
    )
    fitted = fit(samples(device), one_kernel=True)
    assert fitted.filling == pytest.approx(9e-11)
    work = Work(columns_in=1, bytes_in=8, columns_out=1, bytes_out=8, ops={})
    for n, first in ((1000, 16_000), (1 << 16, 1 << 20), (1 << 20, 1 << 20)):
        want = 7e-5 + 2e-6 + 16 * n * 2.4e-11 + first * 9e-11
        assert device.seconds(work, n) == pytest.approx(want)
        assert fitted.seconds(work, n) == pytest.approx(want, rel=1e-6)
    assert fit(samples(device)).filling == 0


def test_least_squares_without_negative_coefficients() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert nonnegative_least_squares(matrix, np.array([3.0, 5.0, 7.0])) == pytest.approx([1, 2])
    # The plain solution is (10, -3); without the second coefficient the best first one is the mean.
    falling = np.array([7.0, 4.0, 1.0])
    assert nonnegative_least_squares(matrix, falling) == pytest.approx([4, 0])
    assert nonnegative_least_squares(matrix, -falling) == pytest.approx([0, 0])


def test_a_coefficient_leaves_when_another_explains_more() -> None:
    generator = np.random.default_rng(2)
    for _ in range(20):
        matrix = generator.uniform(0, 1, (12, 6))
        target = generator.uniform(-1, 1, 12)
        found = nonnegative_least_squares(matrix, target)
        slope = matrix.T @ (target - matrix @ found)
        assert found.min() >= 0
        assert slope.max() < 1e-8  # no coefficient could improve by growing
        assert abs(slope[found > 0]).max(initial=0) < 1e-8  # and those in use are optimal


def test_fitting_every_operation_is_quick_and_exact() -> None:
    lowers = dict.fromkeys(OPS, frozenset({"float64"}))
    known = Model(
        call=1e-6,
        read=Cost(0.0, 1e-10),
        write=Cost(0.0, 1e-10),
        ops={op: Cost(1e-6, 1e-9 * (1 + k % 7)) for k, op in enumerate(OPS)},
    )
    found = [
        Sample(work, n, known.seconds(work, n))
        for experiment in experiments(Support(lowers=lowers), "float64")
        for work in [Work.of(experiment.program)]
        for n in LENGTHS
    ]
    fitted = fit(found)
    assert len(fitted.ops) > 60
    for op, cost in fitted.ops.items():
        assert cost.unit == pytest.approx(known.ops[op].unit, rel=1e-4), op
