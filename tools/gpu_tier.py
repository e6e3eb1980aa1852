"""Prove on a machine with an NVIDIA GPU what the wheels do there, and how fast.

    python tools/gpu_tier.py WHEELS --out FOLDER [--steps NAMES] [--limit SECONDS] [--dry-run]
                               [-- PYTEST...]

WHEELS is a folder with the wheels of alkahest and its plugins, and of whatever else the machine
lacks; they are installed with ``pip --no-index --no-deps --target`` and nothing is downloaded. The
steps of :data:`STEPS` then run against what was installed, with the device promised, one after the
other, each with a time limit of its own, within a limit for all of them. What a step prints goes
into ``FOLDER/NAME.log`` as it comes, what it measures into ``FOLDER/NAME.json``, how it ended into
``FOLDER/summary.json``; steps of an earlier run that are not repeated stay there. Exits with 0 when
every chosen step passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"

LIMIT = 1200
"""Seconds for all steps together."""

ENDING = 5
"""Seconds that a step which is told to end has before it is killed."""

FAR_OPS = "sin,cos,tan,exp,exp2,expm1,log,log2,log10,log1p,sinh,cosh,tanh,pow,sqrt,div"

FACTS = """
import json, sys
from importlib import metadata
from pathlib import Path
import alkahest as ak
from alkahest.backends.nvptx.doctor import diagnose
features = ak.capabilities(verify=True)["features"]
names = ("alkahest", "alkahest-cpu", "alkahest-nvptx", "llvmlite", "cuda-core", "cuda-bindings")
facts = {
    "file": ak.__file__,
    "versions": {name: metadata.version(name) for name in names},
    "features": features,
    "devices": ak.cuda_device_count(),
    "rows": {row.name: row.detail for row in diagnose()},
}
Path(sys.argv[1]).write_text(json.dumps(facts, indent=2))
print(json.dumps(facts, indent=2))
if not Path(ak.__file__).is_relative_to(sys.argv[2]):
    sys.exit("alkahest is not the one that was installed")
if not (features["cuda"] and facts["devices"]):
    sys.exit("no kernel ran here")
"""


@dataclass(frozen=True)
class Folders:
    """Where things are.

    Attributes:
        wheels: what is installed.
        target: where it is installed.
        out: for results.
    """

    wheels: Path
    target: Path
    out: Path

    def result(self, name: str) -> str:
        """File for what a step measures."""
        return str(self.out / f"{name}.json")


@dataclass(frozen=True)
class Step:
    """One thing to prove.

    Attributes:
        name: short.
        about: what it shows.
        limit: seconds it may take.
        command: arguments for Python, from the folders and the selection of tests.
        vital: whether the steps behind it are pointless where it fails.
        chosen: whether it runs unless steps are named.
        bits: the capabilities that the wheels promise.
    """

    name: str
    about: str
    limit: int
    command: Callable[[Folders, list[str]], list[str]]
    vital: bool = False
    chosen: bool = True
    bits: str = "cpu,cuda"


@dataclass(frozen=True)
class Ended:
    """How a step ended.

    Attributes:
        name: of the step.
        passed: whether it exited with 0 in time.
        text: for the summary.
        seconds: that it took.
    """

    name: str
    passed: bool
    text: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name:<12} {self.text}"


def _install(folders: Folders, tests: list[str]) -> list[str]:
    wheels = sorted(str(wheel) for wheel in folders.wheels.glob("*.whl"))
    command = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--upgrade"]
    return [*command, "--target", str(folders.target), *wheels]


def _facts(folders: Folders, tests: list[str]) -> list[str]:
    return ["-c", FACTS, folders.result("facts"), str(folders.target)]


def _tests(folders: Folders, tests: list[str]) -> list[str]:
    chosen = tests or ["-q", "--durations=5"]
    return ["-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu"), *chosen]


def _sanitizers(folders: Folders, tests: list[str]) -> list[str]:
    return [str(ROOT / "tools" / "sanitize.py"), "--log", str(folders.out / "sanitizers")]


def _accuracy(folders: Folders, name: str, *options: str) -> list[str]:
    command = [str(BENCHMARKS / "accuracy.py"), "--processes", str(os.cpu_count() or 1)]
    return [*command, "--json", folders.result(name), *options]


def _far(folders: Folders, tests: list[str]) -> list[str]:
    return _accuracy(folders, "far", "--far", "--points", "1e6", "--ops", FAR_OPS)


def _every_point(folders: Folders, tests: list[str]) -> list[str]:
    return _accuracy(folders, "accuracy")


def _benchmark(folders: Folders, tests: list[str]) -> list[str]:
    return [str(BENCHMARKS / "gpu.py"), "--json", folders.result("benchmark")]


def _shapes(folders: Folders, tests: list[str]) -> list[str]:
    return [str(BENCHMARKS / "shapes.py"), "--json", folders.result("shapes")]


def _calibration(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(BENCHMARKS / "calibration.py"), "--backend", "nvptx"]
    return [*command, "--json", folders.result("calibration")]


def _bases(folders: Folders, tests: list[str]) -> list[str]:
    chosen = tests or ["-q", "--durations=5"]
    return ["-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu_bases"), *chosen]


def _sanitized_bases(folders: Folders, tests: list[str]) -> list[str]:
    watched = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "sanitize",
        str(ROOT / "tests" / "gpu_bases"),
    ]
    log = ["--log", str(folders.out / "sanitized-bases")]
    return [str(ROOT / "tools" / "sanitize.py"), *log, *watched]


def _replays(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(ROOT / "tools" / "groebner_gpu.py"), "--layouts"]
    return [*command, "--json", folders.result("replays")]


def _dense(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(ROOT / "tools" / "groebner_dense.py"), "products", "--primes", "1,64"]
    return [*command, "--json", folders.result("dense")]


def _conversions(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(ROOT / "tools" / "groebner_dense.py"), "conversions", "--primes", "64"]
    return [*command, "--json", folders.result("conversions")]


def _learning(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(ROOT / "tools" / "groebner_learning.py")]
    return [*command, "--json", folders.result("learning")]


def _seeds(folders: Folders, tests: list[str]) -> list[str]:
    command = [str(ROOT / "tools" / "groebner_seeds.py")]
    return [*command, "--json", folders.result("seeds")]


_BASES = "cpu,cuda,groebner,groebner_cuda"

STEPS = (
    Step("install", "the wheels install without an index", 90, _install, vital=True),
    Step("facts", "what was installed runs a kernel", 60, _facts, vital=True),
    Step("tests", "tests/gpu", 300, _tests),
    Step("far", "errors at huge and tiny numbers, in every mode", 150, _far),
    Step("sanitizers", "compute-sanitizer's four tools", 300, _sanitizers),
    Step("shapes", "tuned shapes against built-in ones", 90, _shapes),
    Step("calibration", "how well a calibration predicts", 120, _calibration),
    Step("benchmark", "benchmarks/gpu.py, everything", 540, _benchmark),
    Step("accuracy", "errors at 10^7 points of all", 1200, _every_point, chosen=False),
    Step("bases", "tests/gpu_bases", 300, _bases, chosen=False, bits=_BASES),
    Step(
        "sanitized-bases",
        "compute-sanitizer's four tools over Gröbner bases",
        300,
        _sanitized_bases,
        chosen=False,
        bits=_BASES,
    ),
    Step("replays", "times of replays by layout", 300, _replays, chosen=False, bits=_BASES),
    Step("dense", "times of dense products", 120, _dense, chosen=False, bits=_BASES),
    Step("conversions", "times of order changes", 120, _conversions, chosen=False, bits=_BASES),
    Step("learning", "times of learning", 120, _learning, chosen=False, bits=_BASES),
    Step(
        "seeds",
        "bases of ten seeds against the processor's",
        300,
        _seeds,
        chosen=False,
        bits=_BASES,
    ),
)
"""In the order in which they run: what is short and shows most comes first. The last seven also need
the wheels of alkahest-groebner and alkahest-groebner-gpu."""


def environment(target: Path, bits: str) -> dict[str, str]:
    """Environment in which the installed wheels are found before anything else, and not the tree."""
    paths = os.pathsep.join(filter(None, [str(target), os.environ.get("PYTHONPATH", "")]))
    promised = {
        "ALKAHEST_EXPECT": bits,
        "ALKAHEST_GPU_TESTS": "1",
        "ALKAHEST_INSTALLED": "1",
        "PYTHONPATH": paths,
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **promised}


def run(step: Step, command: list[str], log: Path, limit: float, target: Path) -> Ended:
    """Run one step into its log; what takes too long is ended with everything that it started."""
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=environment(target, step.bits),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
            text = "" if code == 0 else f"exit code {code}; see {log.name}"
        except subprocess.TimeoutExpired:
            code, text = -1, f"not done after {limit:.0f} s; see {log.name}"
        finally:
            if process.poll() is None:
                _end(process)
    seconds = time.perf_counter() - start
    return Ended(step.name, code == 0, text or f"{step.about}, {seconds:.0f} s", seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a step's process and its children, which are a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)


def select(names: str) -> list[Step]:
    """The steps of these names, or those that run unless steps are named, in their order.

    Raises:
        ArgumentTypeError: there is no such step.
    """
    wanted = [name for name in names.split(",") if name]
    known = [step.name for step in STEPS]
    for name in wanted:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no step {name!r}; there are {', '.join(known)}")
    return [step for step in STEPS if (step.name in wanted if wanted else step.chosen)]


def perform(steps: list[Step], folders: Folders, tests: list[str], limit: float) -> list[Ended]:
    """Run steps in order, keeping the summary up to date; returns how each ended."""
    folders.out.mkdir(parents=True, exist_ok=True)
    deadline = time.perf_counter() + limit
    ended: list[Ended] = []
    obstacle = ""
    for step in steps:
        left = deadline - time.perf_counter()
        if obstacle or left <= 0:
            last = Ended(step.name, False, f"not run: {obstacle or 'no time is left'}")
        else:
            print(f"--- {step.name}: {step.about}", flush=True)
            log = folders.out / f"{step.name}.log"
            command = step.command(folders, tests)
            last = run(step, command, log, min(step.limit, left), folders.target)
            if step.vital and not last.passed:
                obstacle = f"{step.name} failed"
        print(last, flush=True)
        ended.append(last)
        keep(ended, folders.out / "summary.json")
    return ended


def keep(ended: list[Ended], path: Path) -> None:
    """Write how steps ended, beside those of earlier runs; readers see the old or the new file."""
    found: dict[str, Mapping[str, object]] = {}
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
    found |= {entry.name: asdict(entry) for entry in ended}
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("wheels", type=Path, help="folder with the wheels")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for logs and results")
    add("--target", type=Path, metavar="FOLDER", help="where to install (OUT/installed)")
    names = ",".join(step.name for step in STEPS)
    add("--steps", type=select, default="", metavar="NAMES", help=f"with commas, of {names}")
    add("--limit", type=float, default=LIMIT, metavar="SECONDS", help=f"for all ({LIMIT})")
    add("--dry-run", action="store_true", help="print the commands and run nothing")
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)
    options, tests = parser.parse_args(given[:end]), given[end + 1 :]
    if not sorted(options.wheels.glob("*.whl")):
        parser.error(f"no wheels in {options.wheels}")
    out = options.out.resolve()
    target = (options.target or out / "installed").resolve()
    folders = Folders(options.wheels.resolve(), target, out)
    if options.dry_run:
        for step in options.steps:
            print(f"{step.name}, at most {step.limit} s: {step.about}")
            print(
                "   ",
                *(repr(word) if "\n" in word else word for word in step.command(folders, tests)),
            )
        return 0
    ended = perform(options.steps, folders, tests, options.limit)
    print("--- summary", *ended, f"results in {out}", sep="\n")
    return 0 if all(entry.passed for entry in ended) else 1


if __name__ == "__main__":
    sys.exit(main())
