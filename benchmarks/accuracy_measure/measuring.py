"""The largest error of an operation on a backend, in two steps.

Every point is compared with the extended reference, whose own error is a thousandth of a unit in
the last place. The points where that difference is largest, some of every stratum, are then
compared with mpmath's value; what is reported comes from there alone. The first step can hide a
worse point only where it is wrong by more than the gap to the last point that it kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import attrs
import numpy as np

from accuracy_measure import draws, points, reference
from accuracy_measure.promises import EMULATED, Promises
from alkahest.backends.nvptx.bounds import Part
from alkahest.ops import OPS, Exactness, Signature
from alkahest.plugin import Batch, Evaluator
from alkahest.testing import oracle
from alkahest.testing.programs import single

KEPT = 48
"""Points of every stratum, part of the domain and measure that mpmath confirms."""

MEASURES = ("ulp", "scaled")
"""Units in the last place of the exact value, and of ``max(|value|, 1)``."""

Evaluators: TypeAlias = Mapping[str, Callable[[list[Any]], Any]]
"""Accuracy mode -> values of the operation."""


@attrs.frozen
class Case:
    """What one measurement is of."""

    op: str
    dtype: str
    parameter: int | None = None


@attrs.define
class _Worst:
    """The points of one mode and part with the largest errors, and what is wrong beyond measure."""

    points: int = 0
    kept: list[tuple[tuple[float, ...], float]] = attrs.Factory(list)
    wrong: int = 0
    wrong_at: str = ""


def cases(ops: Iterable[str], dtypes: Iterable[str]) -> list[Case]:
    """One case per operation and dtype; for integer powers one per exponent."""
    return [
        Case(op, dtype, parameter)
        for op in ops
        for dtype in dtypes
        for parameter in (points.POWERS if OPS[op].has_parameter else (None,))
    ]


def evaluators(backend: str, case: Case, modes: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """How ``backend`` evaluates the operation, in every mode.

    Args:
        backend: name of a backend, or ``"emulated"`` for the kernels of nvptx without a GPU.
        case: the operation.
        modes: its accuracy modes; ``""`` for a backend without any.
    """
    program = single(case.op, case.dtype, case.parameter)
    made: dict[str, Callable[..., Any]] = {}
    for mode in modes:
        evaluator: Evaluator
        if backend == EMULATED:
            from alkahest.backends.nvptx.emulate import EmulatedEvaluator

            evaluator = EmulatedEvaluator(program, mode=mode)
        else:
            from alkahest._plugins import calls

            options = {"accuracy": mode} if mode else {}
            if backend == "cpu-jit":
                options["tier"] = "compiled"  # and not the reference for the first few calls
            artifact = calls.codegen(backend, program, None, options)
            evaluator = calls.make_evaluator(backend, artifact, None)

        def evaluate(columns: list[Any], evaluator: Evaluator = evaluator) -> Any:
            batch = Batch(columns=tuple(columns), n=len(columns[0]))
            return evaluator.evaluate(batch).outputs[0]

        made[mode] = evaluate
    return made


def measure(
    case: Case,
    functions: Evaluators,
    count: int,
    promises: Promises,
    seed: int = 0,
    only: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Records, one per mode and part of the domain, as JSON takes them.

    Args:
        case: the operation.
        functions: what is measured.
        count: of points.
        promises: whose parts of the domain are told apart.
        seed: of the points.
        only: the strata to measure; all where it is empty.
    """
    domain = promises.parts(case.op, case.dtype)
    # Units of 1 matter for functions whose bounds are absolute near their zeros.
    measures = MEASURES if OPS[case.op].exactness is Exactness.SPECIAL else MEASURES[:1]
    found = {(mode, part.text): _Worst() for mode in functions for part in domain}
    for _, columns in points.blocks(case.op, case.dtype, count, case.parameter, seed, only):
        truths = _truth_operands(case.op)
        wide = [
            column > 0 if k in truths else column.astype(reference.EXTENDED)
            for k, column in enumerate(columns)
        ]
        want = _Wanted(reference.values(case.op, wide, case.parameter), case.dtype, measures)
        inside = [(part, part.contains(case.parameter, *columns)) for part in domain]
        for mode, function in functions.items():
            got = function(columns)
            errors, wrong = want.errors(got)
            for part, mask in inside:
                _keep(found[mode, part.text], columns, got, errors, wrong, mask)
    exact: dict[tuple[float, ...], Any] = {}
    return [
        _record(case, mode, part, found[mode, part.text], exact)
        for mode in functions
        for part in domain
    ]


def _truth_operands(op: str) -> frozenset[int]:
    row = OPS[op]
    if row.signature is Signature.LOGIC:
        return frozenset(range(row.arity))
    return frozenset({0}) if row.signature is Signature.SELECT else frozenset()


class _Wanted:
    """A block's values by the extended reference, ready to be compared with several results.

    An infinite value counts as the power of two that the format no longer has, so that results on
    either side of the overflow are measured like all others.
    """

    def __init__(self, values: Any, dtype: str, measures: Sequence[str]) -> None:
        self._values = values
        if values.dtype == np.bool_:
            return
        form = draws.FORMATS[dtype]
        self._end = np.ldexp(reference.EXTENDED(1), form.largest)
        self._missing = np.isnan(values)
        self._near = self._clipped(values)
        size = np.abs(self._near)
        scales = {"ulp": size, "scaled": np.maximum(size, 1)}
        self._units = [_spacing(scales[name], form) for name in measures]

    def errors(self, got: Any) -> tuple[list[Any], Any]:
        """Errors in every measure, and where there is no comparing: a nan on one side only."""
        if got.dtype == np.bool_:
            return [], got != self._values
        with np.errstate(all="ignore"):
            off = np.abs(self._clipped(got.astype(reference.EXTENDED)) - self._near)
            found = [np.nan_to_num((off / unit).astype(float)) for unit in self._units]
        return found, np.isnan(got) != self._missing

    def _clipped(self, values: Any) -> Any:
        return np.minimum(np.maximum(values, -self._end), self._end)


def _spacing(size: Any, form: draws.Format) -> Any:
    _, exponent = np.frexp(size)
    exponent = np.clip(exponent, form.least + form.digits, form.largest) - form.digits
    return _powers(form)[exponent - form.least]


@cache
def _powers(form: draws.Format) -> Any:
    return np.ldexp(reference.EXTENDED(1), np.arange(form.least, form.largest))


def _keep(
    worst: _Worst, columns: list[Any], got: Any, errors: list[Any], wrong: Any, mask: Any
) -> None:
    """Remember the worst points of a block; a stratum of several blocks gives more of them."""
    worst.points += int(mask.sum())
    # mpmath has one zero only; the signs of zeros are a matter of the conformance kit.
    mask = mask & np.all([column != 0 for column in columns], axis=0)
    (bad,) = np.nonzero(wrong & mask)
    if len(bad):
        worst.wrong += len(bad)
        worst.wrong_at = worst.wrong_at or _shown(columns, got, bad[0])
    chosen: set[int] = set()
    for error in errors:
        error = np.where(mask & ~wrong, error, 0)
        place = np.argpartition(error, -min(KEPT, len(error)))[-KEPT:]
        chosen.update(int(k) for k in place if error[k] > 0)
    worst.kept += [
        (tuple(float(column[k]) for column in columns), float(got[k])) for k in sorted(chosen)
    ]


def _shown(columns: list[Any], got: Any, k: int) -> str:
    operands = ", ".join(repr(float(column[k])) for column in columns)
    return f"{got[k].item()!r} at {operands}"


def _record(
    case: Case, mode: str, part: Part, worst: _Worst, exact: dict[tuple[float, ...], Any]
) -> dict[str, Any]:
    """What mpmath says of the points that were kept."""
    record: dict[str, Any] = {
        **attrs.asdict(case),
        "mode": mode,
        "part": part.text,
        "points": worst.points,
        "confirmed": len(worst.kept),
        "wrong": worst.wrong,
        "wrong_at": worst.wrong_at,
    }
    largest = {name: (0.0, "") for name in MEASURES}
    for operands, got in worst.kept:
        if operands not in exact:
            exact[operands] = _exact(case, operands)
        want = exact[operands]
        for name, scale in zip(MEASURES, (0.0, 1.0), strict=True):
            error = _distance(got, want, case.dtype, scale)
            if error > largest[name][0]:
                largest[name] = error, ", ".join(map(repr, operands))
    for name, (error, place) in largest.items():
        record[name], record[f"{name}_at"] = error, place
    return record


def _exact(case: Case, operands: tuple[float, ...]) -> Any:
    truths = _truth_operands(case.op)
    return oracle.exact(
        case.op, [x > 0 if k in truths else x for k, x in enumerate(operands)], case.parameter
    )


def _distance(got: float, want: Any, dtype: str, scale: float) -> float:
    """As :func:`alkahest.testing.oracle.error_in_ulps`, with infinities as the next power of two."""
    import mpmath

    form = draws.FORMATS[dtype]
    with mpmath.workdps(oracle.DIGITS):
        end = mpmath.ldexp(1, form.largest)
        a, b = (min(max(mpmath.mpf(x), -end), end) for x in (got, want))
        _, exponent = mpmath.frexp(max(abs(b), scale))
        exponent = min(max(exponent, form.least + form.digits), form.largest)
        return float(mpmath.ldexp(abs(a - b), form.digits - exponent))
