"""Plugins for tests: one that needs nothing, and a way to be alone with the ones under test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.errors import InputError
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import (
    PLUGIN_API,
    Artifact,
    BackendInfo,
    Batch,
    DeviceInfo,
    Evaluator,
    Feature,
    Outcome,
    Probe,
    Support,
    hookimpl,
)

if TYPE_CHECKING:
    from alkahest.program import Program


@contextmanager
def isolated_plugins(*plugins: object | tuple[str, object]) -> Iterator[None]:
    """Have exactly these plugins meanwhile, whatever is installed; restore afterwards.

    The plugins are loaded by the first question inside, as installed ones are: a broken one is
    recorded and warned about, and the environment's switches apply. Not for tests that run in
    several threads of one process.

    Args:
        plugins: plugin objects, or pairs of the name to load one under and the object.

    Example::

        @pytest.fixture
        def backend():
            with isolated_plugins(NullPlugin()):
                yield "null"
    """
    from alkahest._plugins.registry import registry

    pairs = [entry if isinstance(entry, tuple) else (None, entry) for entry in plugins]
    with registry.isolated(pairs):
        yield


def _yes() -> Probe:
    return Probe(ok=True, detail="needs nothing")


@attrs.frozen(kw_only=True, eq=False)
class NullPlugin:
    """A plugin with one backend, which compiles every program and gives zeros.

    It exercises everything around a backend without what a real one needs. The fields vary what
    the plugin claims.

    Attributes:
        backend: name of the backend.
        features: capability bits; by default one, ``"<backend>.compile"``.
        probe: answer of every bit's probe.
        witness: call that proves every bit, or None.
        exports: names for ``alkahest``, each ``"module:attribute"``.
        dtypes: dtypes that it lowers every operation for.
        refuses: operations that it does not lower, with the reason.
        devices: number of devices that it claims.
        priority, group, placement, refusal_code: as in :class:`alkahest.plugin.BackendInfo`.
    """

    ALKAHEST_PLUGIN_API = PLUGIN_API

    backend: str = "null"
    features: tuple[str, ...] = ()
    probe: Callable[[], Probe] = _yes
    witness: Callable[[], Probe] | None = None
    exports: Mapping[str, str] = MappingProxyType({})
    dtypes: Iterable[str] = DTYPES
    refuses: Mapping[str, str] = MappingProxyType({})
    devices: int = 1
    priority: int = 50
    group: str = ""
    placement: str = "host"
    refusal_code: str = "E-JIT-001"

    @property
    def __name__(self) -> str:
        """The plugin's name, unless it is registered under another."""
        return self.backend

    @hookimpl
    def alkahest_register_backends(self) -> tuple[BackendInfo, ...]:
        """Describe the one backend."""
        bits = self.features or (f"{self.backend.replace('-', '_')}.compile",)
        return (
            BackendInfo(
                name=self.backend,
                features=tuple(
                    [Feature(name=bit, probe=self.probe, witness=self.witness) for bit in bits]
                ),
                exports=self.exports,
                support=self._support,
                priority=self.priority,
                group=self.group,
                placement=self.placement,
                refusal_code=self.refusal_code,
                summary="gives zeros",
            ),
        )

    def _support(self) -> Support:
        dtypes = frozenset(self.dtypes)
        lowers = {name: dtypes for name in OPS if name not in self.refuses}
        return Support(lowers=lowers, refuses=self.refuses)

    @hookimpl
    def alkahest_codegen(
        self, backend: str, program: Program, target: str | None, options: Mapping[str, Any]
    ) -> Artifact:
        """Generate nothing, for any program."""
        if options:
            raise InputError(
                "E-INPUT-011", f"backend {backend!r} has no option {sorted(options)[0]!r}"
            )
        return Artifact(kind="null", code="", target=target or "", program=program)

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> Evaluator:
        """Prepare to give zeros."""
        return NullEvaluator(backend=backend, program=artifact.program, device=device or 0)

    @hookimpl
    def alkahest_devices(self, backend: str) -> tuple[DeviceInfo, ...]:
        """As many devices as claimed."""
        return tuple(DeviceInfo(ordinal=i, name=f"{backend} {i}") for i in range(self.devices))


@attrs.frozen(kw_only=True)
class NullEvaluator:
    """Gives zeros of the right dtype and shape.

    Attributes:
        backend: name of the backend, for the report.
        program: what would run.
        device: where it would run, for the report.
    """

    backend: str
    program: Program
    device: int

    def evaluate(self, batch: Batch) -> Outcome:
        """Zeros for every output at every point, in ``batch.out`` where it is given."""
        outputs = batch.out
        if outputs is None:
            import numpy as np

            outputs = tuple(np.zeros(batch.n, dtype) for dtype in self.program.output_dtypes)
        else:
            for out in outputs:
                out[...] = 0
        return Outcome(outputs=outputs, report={"backend": self.backend, "device": self.device})
