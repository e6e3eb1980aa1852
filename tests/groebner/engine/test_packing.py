"""Packed monomials: order, products, divisibility and least common multiples."""

from __future__ import annotations

import random

import numpy as np
import pytest

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.packing import (
    WIDTHS,
    ExponentOverflowError,
    divides,
    layout,
    lcm,
)
from alkahest.groebner.engine.records import MonomialOrder

ORDERS = [
    MonomialOrder.grevlex(5),
    MonomialOrder.lex(5),
    MonomialOrder.grlex(5),
    MonomialOrder.blocks((2, 3)),
    MonomialOrder.weighted((1, 4, 2, 3, 1)),
    MonomialOrder(
        name="signs",
        weights=[[1, 0, 0, 2, 1], [0, 1, 1, -2, 0], [1, -1, 0, 0, 0], [0, 0, -1, 0, 0], [0, -1, 0, 1, -1]],
    ),
]  # fmt: skip
NAMED = pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)


@kernel("boolean(uint64[:, ::1], uint64[:, ::1], uint64[::1])")
def _divides(a, b, guard):
    return divides(a, 0, b, 0, guard)


@kernel(
    "boolean(uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], int64[::1], int64[:, ::1],"
    "int64[::1], uint64[::1], int64)"
)
def _lcm(a, b, out, form_at, forms, variable_at, guard, bits):
    return lcm(a, 0, b, 0, out, 0, form_at, forms, variable_at, guard, bits)


def _monomials(count, largest=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, largest + 1, (count, 5)).astype(np.uint32)


@NAMED
@pytest.mark.parametrize("bits", WIDTHS)
def test_packing_loses_nothing_and_sorts_as_the_weights_say(order, bits):
    packing = layout(order, bits)
    monomials = _monomials(300, 1 if bits == 8 else 5)
    packed = packing.pack(monomials)
    assert np.array_equal(packing.unpack(packed), monomials)
    keys = [
        tuple(order.weights @ m.astype(np.int64)) for m in monomials[packing.descending(packed)]
    ]
    assert keys == sorted(keys, reverse=True)


@NAMED
def test_products_add_and_divisibility_is_that_of_exponents(order):
    packing = layout(order, 16)
    monomials = _monomials(60, 2)
    packed = packing.pack(monomials)
    assert np.array_equal(packing.pack(monomials + monomials[::-1]), packed + packed[::-1])
    for i in range(60):
        for j in range(60):
            expected = bool((monomials[i] <= monomials[j]).all())
            assert _divides(packed[i : i + 1], packed[j : j + 1], packing.guard) == expected


@NAMED
def test_the_least_common_multiple_has_the_larger_exponents_and_its_own_degrees(order):
    packing = layout(order, 16)
    monomials = _monomials(80, 3)
    packed = packing.pack(monomials)
    out = np.empty((1, packing.words), np.uint64)
    for i, j in zip(range(0, 80, 2), range(1, 80, 2), strict=True):
        assert _lcm(
            packed[i : i + 1], packed[j : j + 1], out, packing.form_at, packing.forms,
            packing.variable_at, packing.guard, packing.bits,
        )  # fmt: skip
        assert np.array_equal(out, packing.pack(np.maximum(monomials[i], monomials[j])[None]))


def test_what_does_not_fit_a_field_is_refused():
    packing = layout(MonomialOrder.grevlex(2), 8)
    assert packing.largest == 127
    assert np.array_equal(
        packing.unpack(packing.pack(np.array([[100, 27]], np.uint32))), [[100, 27]]
    )
    with pytest.raises(ExponentOverflowError):
        packing.pack(np.array([[100, 28]], np.uint32))


def test_an_overflow_of_an_lcm_is_noticed():
    packing = layout(MonomialOrder.grevlex(2), 8)
    packed = packing.pack(np.array([[100, 0], [0, 100]], np.uint32))
    out = np.empty((1, packing.words), np.uint64)
    assert not _lcm(
        packed[:1], packed[1:], out, packing.form_at, packing.forms, packing.variable_at,
        packing.guard, packing.bits,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "why"),
    [([[1, 1]], "leave different monomials equal"), ([[1, -1], [0, 1]], "smaller than 1")],
)
def test_matrices_that_give_no_order_are_refused(weights, why):
    with pytest.raises(ValueError, match=why):
        MonomialOrder(name="none", weights=weights)


def test_weights_must_be_positive():
    with pytest.raises(ValueError, match="positive integers"):
        MonomialOrder.weighted((1, 0))


def test_only_orders_that_begin_with_a_degree_are_graded():
    graded = {order.name for order in ORDERS if order.is_graded}
    assert graded == {"grevlex", "grlex", "weighted"}


def test_random_orders_agree_with_their_weights():
    rng = random.Random(5)
    for _ in range(50):
        rows = np.array([[rng.randint(-3, 3) for _ in range(4)] for _ in range(4)])
        rows[0] = [rng.randint(1, 4) for _ in range(4)]
        if np.linalg.matrix_rank(rows) < 4:
            continue
        order = MonomialOrder(name="random", weights=rows)
        packing = layout(order, 16)
        monomials = _monomials(40, 4, rng.randint(0, 99))[:, :4]
        chosen = monomials[packing.descending(packing.pack(monomials))]
        keys = [tuple(rows @ m.astype(np.int64)) for m in chosen]
        assert keys == sorted(keys, reverse=True)
