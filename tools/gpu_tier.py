"""Prove on a machine with an NVIDIA GPU what the wheels do there.

    python tools/gpu_tier.py WHEELS [--target FOLDER] [--no-sanitizers] [--log FOLDER]
                               [--benchmark FILE] [--accuracy FILE] [-- PYTEST...]

WHEELS is a folder with the wheels of alkahest and its plugins, and of whatever else the machine
lacks; they are installed with ``pip --no-index --no-deps --target`` and nothing is downloaded. The
tests in ``tests/gpu`` then run against what was installed, with the device promised, and after
them compute-sanitizer's tools (``tools/sanitize.py``); with ``--benchmark``, a quick run of
``benchmarks/gpu.py`` whose JSON goes into FILE, with ``--accuracy`` a run of
``benchmarks/accuracy.py``, which fails where an error is above its bound. One summary is printed;
exits with 0 when everything passed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FACTS = """
import json, sys
from importlib import metadata
import alkahest as ak
from alkahest.backends.nvptx.doctor import diagnose
features = ak.capabilities(verify=True)["features"]
names = ("alkahest", "alkahest-cpu", "alkahest-nvptx", "llvmlite", "cuda-core", "cuda-bindings")
json.dump({
    "file": ak.__file__,
    "versions": {name: metadata.version(name) for name in names},
    "features": features,
    "devices": ak.cuda_device_count(),
    "rows": {row.name: row.detail for row in diagnose()},
}, sys.stdout)
"""


def install(wheels: Path, target: Path) -> None:
    """Install every wheel of a folder into ``target``."""
    files = sorted(str(wheel) for wheel in wheels.glob("*.whl"))
    if not files:
        raise SystemExit(f"no wheels in {wheels}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--upgrade", "--target", str(target), *files], check=True)


def environment(target: Path) -> dict[str, str]:
    """Environment in which the installed wheels are found before anything else, and not the tree."""
    paths = os.pathsep.join(filter(None, [str(target), os.environ.get("PYTHONPATH", "")]))
    promised = {
        "ALKAHEST_EXPECT": "cpu,cuda",
        "ALKAHEST_GPU_TESTS": "1",
        "ALKAHEST_INSTALLED": "1",
        "PYTHONPATH": paths,
        "PYTHONSAFEPATH": "1",
    }
    return {**os.environ, **promised}


def step(name: str, command: list[str], variables: dict[str, str]) -> tuple[bool, str]:
    """Run one command, showing its output; returns whether it passed, and its line."""
    print(f"--- {name}", flush=True)
    start = time.perf_counter()
    code = subprocess.run([sys.executable, *command], env=variables, check=False).returncode
    seconds = time.perf_counter() - start
    return code == 0, f"{'pass' if code == 0 else 'FAIL'}  {name}, {seconds:.0f} s"


def main(arguments: list[str] | None = None) -> int:
    """Install, test, sanitize; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with the wheels")
    parser.add_argument("--target", type=Path, help="where to install; a fresh folder if omitted")
    parser.add_argument("--no-sanitizers", action="store_true")
    parser.add_argument("--log", type=Path, help="folder for the sanitizers' complete outputs")
    parser.add_argument("--benchmark", type=Path, metavar="FILE", help="also time, into FILE")
    parser.add_argument("--accuracy", type=Path, metavar="FILE", help="also measure, into FILE")
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)
    options, selection = parser.parse_args(given[:end]), given[end + 1 :]
    target = (options.target or Path(tempfile.mkdtemp(prefix="alkahest-gpu-"))).resolve()
    install(options.wheels, target)
    variables = environment(target)

    told = subprocess.run(
        [sys.executable, "-c", FACTS], env=variables, stdout=subprocess.PIPE, text=True, check=True
    )
    facts = json.loads(told.stdout)
    installed = Path(facts["file"]).is_relative_to(target)
    lines = [f"{name} {version}" for name, version in facts["versions"].items()]
    lines += [f"{name}: {detail}" for name, detail in facts["rows"].items()]
    works = facts["features"]["cuda"] and facts["devices"] > 0
    tests = ["-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu")]
    results = [
        (installed, f"{'pass' if installed else 'FAIL'}  tested from {facts['file']}"),
        (works, f"{'pass' if works else 'FAIL'}  a kernel ran; {facts['devices']} devices"),
        step("tests", [*tests, *(selection or ["-q", "--durations=5"])], variables),
    ]
    if not options.no_sanitizers:
        log = ["--log", str(options.log)] if options.log else []
        command = [str(ROOT / "tools" / "sanitize.py"), *log]
        results.append(step("sanitizers", command, variables))
    if options.benchmark:
        command = [str(ROOT / "benchmarks" / "gpu.py"), "--quick", "--json", str(options.benchmark)]
        results.append(step("benchmark", command, variables))
    if options.accuracy:
        command = [str(ROOT / "benchmarks" / "accuracy.py"), "--quiet"]
        command += ["--processes", str(os.cpu_count() or 1), "--json", str(options.accuracy)]
        results.append(step("accuracy", command, variables))
    print("--- summary", *lines, *(line for _, line in results), sep="\n")
    return 0 if all(passed for passed, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
