"""The rows of critical pairs."""

from __future__ import annotations

import random

import numpy as np

from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.packing import layout
from alkahest.groebner.engine.pairs import PairQueue
from alkahest.groebner.engine.records import MonomialOrder
from alkahest.groebner.engine.seeds import PIVOT, pair_seeds


def test_each_multiple_is_one_row_and_the_shortest_of_an_lcm_its_pivot():
    rng = random.Random(3)
    for nvars in (3, 12):  # monomials of one word and of several
        packing = layout(MonomialOrder.grevlex(nvars), 8)
        basis, queue = Basis.empty(packing), PairQueue.empty(packing)
        leads = np.array([[rng.randint(0, 2) for _ in range(nvars)] for _ in range(12)], np.uint32)
        sizes = np.array([rng.randint(1, 5) for _ in leads], np.int64)
        words = packing.pack(np.repeat(leads, sizes, axis=0))
        basis.append(words, np.ones(len(words), np.uint32), sizes)
        queue.update(basis, 0)
        before = sorted(queue.degree[: queue.count].tolist())
        while queue.count:
            degree, lcms, of = queue.take_lowest()
            assert [degree] * len(of) == before[: len(of)]
            del before[: len(of)]
            monomials = packing.unpack(lcms).tolist()
            halves = {}
            for lcm, pair in zip(map(tuple, monomials), of.tolist(), strict=True):
                assert lcm == tuple(np.maximum(*leads[pair]))
                halves.setdefault(lcm, set()).update(pair)
            seeds = pair_seeds(basis, lcms, of)
            multiples = packing.unpack(seeds.multiplier) + leads[seeds.of]
            rows = list(zip(map(tuple, multiples.tolist()), seeds.of.tolist(), strict=True))
            assert sorted(rows) == sorted((lcm, g) for lcm, them in halves.items() for g in them)
            pivots = [row for row, kind in zip(rows, seeds.kind, strict=True) if kind == PIVOT]
            shortest = {lcm: min(sizes[list(them)]) for lcm, them in halves.items()}
            assert {lcm: sizes[g] for lcm, g in pivots} == shortest
            assert len(pivots) == len(halves)
        assert not before
