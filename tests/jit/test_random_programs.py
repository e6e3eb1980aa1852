"""Random programs give what the reference gives, but for rounding.

``ALKAHEST_RANDOM_PROGRAMS`` is the number of programs, a few hundred by default. A hundred thousand take
a few hours.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import randomprograms

from alkahest.backends.cpu.jit import compile as kernels
from alkahest.backends.cpu.jit.evaluator import JitEvaluator
from alkahest.backends.cpu.jit.options import COMPILED, Options
from alkahest.plugin import Batch

COUNT = int(os.environ.get("ALKAHEST_RANDOM_PROGRAMS", "240"))
GROUPS = 8
FUNCTION_ULP = {"strict": 1.0, "default": 4.0, "fast": 8.0}


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_programs_agree_with_the_reference(
    group: int, accuracy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    compared = total = 0
    for seed in range(group, COUNT // 3, GROUPS):
        dtype = "float32" if seed % 5 == 4 else "float64"
        program = randomprograms.random_program(seed, dtype)
        n = 1 + seed * 7 % 71
        columns = randomprograms.points(seed, n, dtype)
        evaluator = JitEvaluator(program, Options(tier=COMPILED, accuracy=accuracy))
        outputs = evaluator.evaluate(Batch(columns=columns, n=n)).outputs
        wanted = randomprograms.expected(program, columns, FUNCTION_ULP[accuracy])
        for k, (got, (want, allowed)) in enumerate(zip(outputs, wanted, strict=True)):
            known = np.isfinite(want) & np.isfinite(allowed)
            with np.errstate(all="ignore"):
                far = known & ~(np.abs(got - want) <= allowed + np.finfo(dtype).tiny)
            shown = f"seed {seed}, {dtype}, output {k}: {got[far][:1]} for {want[far][:1]}"
            assert not far.any(), f"{shown}, allowed {allowed[far][:1]}"
            compared += int(known.sum())
            total += n
    kernels.forget()
    assert compared > total / 2 or total == 0
