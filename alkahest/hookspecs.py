"""Every hook that alkahest calls on its plugins.

A hook marked *first result* goes only to the plugin that registered the backend named in its
``backend`` argument; the others go to every active plugin. Hooks build things; none is called
while a batch is being evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from alkahest.plugin import (
        Artifact,
        BackendInfo,
        Command,
        DeviceInfo,
        Diagnostic,
        Estimate,
        Evaluator,
        Tuned,
    )
    from alkahest.program import Program

hookspec = pluggy.HookspecMarker("alkahest")


@hookspec
def alkahest_register_backends() -> Iterable[BackendInfo]:  # type: ignore[empty-body]
    """Describe the backends that this plugin offers.

    Called once per process (and after ``alkahest.testing.isolated_plugins``), when the first
    question needs plugins, never at ``import alkahest``. Must not import anything heavy: probes,
    tables and exports are named, not run. Whatever it raises is recorded as the plugin's failure.
    """


@hookspec(firstresult=True)
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact | None:
    """Generate code for ``program``; called by ``compile_expr`` once per compiled function.

    Args:
        backend: name of the backend, one that the plugin registered.
        program: verified; holds only operations and dtypes that the backend's tables lower.
        target: processor or device to generate for, or None for the backend's choice.
        options: what the caller passed beyond the named arguments; an unknown key must raise
            ``InputError`` E-INPUT-011.

    Raises:
        CodegenError, CudaError: under the backend's codes, naming the node and the remedy.
    """


@hookspec(firstresult=True)
def alkahest_make_evaluator(
    backend: str, artifact: Artifact, device: int | None
) -> Evaluator | None:
    """Prepare ``artifact`` for running; called once per compiled function and device.

    Must not touch a device: contexts and modules are created by the first ``evaluate``, so that
    code compiles on machines without one. A backend of placement ``"cuda"`` returns a
    :class:`alkahest.plugin.DeviceEvaluator`, which takes columns where they are; one that names
    ``arrays`` returns an :class:`alkahest.plugin.ArrayEvaluator`.

    Args:
        backend: name of the backend.
        artifact: what :func:`alkahest_codegen` returned, here or in another process.
        device: ordinal, or None for the backend's default. A host backend is asked only for
            devices that :func:`alkahest_devices` lists.
    """


@hookspec(firstresult=True)
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...] | None:
    """Devices that ``backend`` can run on, ordinals 0, 1, ...

    Called by ``alkahest devices``, automatic selection and device checks. Returns an empty tuple
    when there is none; never raises for "no device here". A host backend that leaves this hook
    out has one device, the host.
    """


@hookspec(firstresult=True)
def alkahest_estimate(backend: str, program: Program, n: int, placement: str) -> Estimate | None:
    """Predict one call's cost for automatic selection, or None without a calibrated model.

    Args:
        backend: name of the backend.
        program: what would run.
        n: number of points.
        placement: ``"host"`` or ``"cuda"``: where the columns are.
    """


@hookspec(firstresult=True)
def alkahest_tune(backend: str, quick: bool) -> tuple[Tuned, ...] | None:
    """Measure how generated code is best shaped for the devices here; None where that is nothing.

    Called by ``alkahest calibrate``, which keeps the answer with the machine's calibration. The
    backend finds it in :func:`alkahest.calibration.tuned`; without a calibration it chooses by
    itself. May take seconds for each kind of device.

    Args:
        backend: name of the backend, which has a device here.
        quick: whether less time is to be taken.

    Raises:
        AlkahestError: what a device refuses; the calibration is then kept without tuning.
    """


@hookspec(firstresult=True)
def alkahest_calibrate(backend: str, quick: bool) -> Mapping[str, float] | None:
    """Measure what a model of the backend's own needs, for backends that evaluate no programs.

    Called by ``alkahest calibrate``, which keeps the figures for
    :func:`alkahest.plugin.calibrated`; may take a minute.

    Args:
        backend: name of the backend.
        quick: whether a few seconds have to do.

    Returns:
        Name -> positive number, or None where there is nothing to measure.
    """


@hookspec(firstresult=True)
def alkahest_make_reducer(backend: str, device: int | None) -> object | None:
    """Linear algebra over prime fields for Gröbner bases.

    Called once per computation that asks for a device. Must find out now whether the device is
    usable: an error of the work itself is reported as a failure during the run.

    Args:
        backend: name of the backend.
        device: ordinal of the device, or None for the backend's choice.

    Returns:
        A ``Reducer``, as described in ``alkahest.groebner.engine.reducers``, or None. It may be a
        ``LiftingReducer``, which keeps what it computes and lifts it to the rationals itself, and a
        ``Follower``, as in ``alkahest.groebner.following``, which does changes of order as well.

    Raises:
        CudaError: E-CUDA-003 where there is no such device.
    """


@hookspec
def alkahest_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Subcommands to add to ``alkahest``; called once per run of the command line."""


@hookspec
def alkahest_diagnostics() -> Iterable[Diagnostic]:  # type: ignore[empty-body]
    """Rows for ``alkahest doctor``; may look at the machine, may be slow, must not raise."""
