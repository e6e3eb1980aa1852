"""Run the device tests under compute-sanitizer's four tools and judge their summaries.

    python tools/sanitize.py [--sanitizer PATH] [--tool TOOL ...] [--one-by-one] [pytest arguments]

Each of memcheck, racecheck, initcheck and synccheck runs the tests marked ``sanitize``, with
``--target-processes all``; the four run at once unless told otherwise. A tool passes when pytest
passed, every summary it printed counts no error, and there is one: a sanitizer that watched nothing
prints none. memcheck and initcheck must also find the fault of a kernel that has one, which shows
that they see this library's launches.
Exits with 0 when all passed; needs an NVIDIA GPU and an installed alkahest-nvptx.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SELECTION = [
    "-q",
    "-p",
    "no:cacheprovider",
    "-m",
    "sanitize and not huge",
    str(ROOT / "tests" / "gpu"),
]
HANGS_AFTER = 1800

FIRST_PORT, PORTS = 49152, 16
"""The sanitizer's own first port, and how many apart tools are that run at once; each uses ten."""

# "ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")

OPTIONS = {"memcheck": ("--report-api-errors", "no")}
"""Options of some tools.

cuda-bindings asks for functions that are newer than the driver, and memcheck would count each such call;
but one of this library that fails raises, so that a test fails, unless it only gives something back.
"""

FAULTY = """
import sys
import alkahest as ak
from alkahest.backends.nvptx.device import open_device
from alkahest.backends.nvptx.kernel import load

x = ak.symbols("x")[0]
device = open_device(0)
with device.current() as stream:
    kernel = load(ak.compile_cuda(x + 1, [x]).artifact, device)
    buffers = [device.allocate(8 * 256, stream) for _ in range(2)]  # never written
    kernel.launch(buffers, int(sys.argv[1]), stream)
    stream.sync()
"""
"""Reads memory that nobody wrote and, with more than 256 points, memory that nobody has."""

FAULTS = {"memcheck": 1 << 22, "initcheck": 256}
"""Points for :data:`FAULTY` that each tool must complain about."""


@dataclass(frozen=True)
class Verdict:
    """What one run under one tool showed."""

    tool: str
    passed: bool
    text: str

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.tool:<10} {self.text}"


def find_sanitizer() -> str | None:
    """compute-sanitizer on the path, or in the toolkit that CUDA_HOME or CUDA_PATH names."""
    found = shutil.which("compute-sanitizer")
    folders = [os.environ[v] for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ]
    for folder in (*folders, "/usr/local/cuda"):
        found = found or shutil.which("compute-sanitizer", path=f"{folder}/bin")
        found = found or shutil.which("compute-sanitizer", path=f"{folder}/compute-sanitizer")
    return found


def errors_in(output: str) -> list[int]:
    """The number of errors in each summary of a sanitizer's output."""
    return [int(count) for count in SUMMARY.findall(output)]


def judge(tool: str, output: str, code: int) -> Verdict:
    """Judge the tests' run under ``tool``: its output and exit code."""
    counts = errors_in(output)
    tests = re.findall(r"^(?:=+ )?(\d+ passed.*?)(?: =+)?$", output, re.MULTILINE)
    shown = f"{len(counts)} summaries, {sum(counts)} errors; {tests[-1] if tests else 'no tests'}"
    return Verdict(tool, bool(code == 0 and counts and not any(counts) and tests), shown)


def judge_fault(tool: str, output: str) -> Verdict:
    """Judge whether ``tool`` noticed the faulty kernel."""
    found = sum(errors_in(output))
    return Verdict(tool, found > 0, f"found {found} errors of a kernel that has them")


def command_line(sanitizer: str, tool: str) -> list[str]:
    """How a tool is started; the program that it watches follows."""
    options = [sanitizer, "--tool", tool, "--target-processes", "all", "--print-limit", "5"]
    options += ["--port", str(FIRST_PORT + PORTS * TOOLS.index(tool))]
    return [*options, *OPTIONS.get(tool, ())]


def run(sanitizer: str, tool: str, command: list[str]) -> tuple[str, int]:
    """Output and exit code of a Python command under ``tool``."""
    done = subprocess.run(
        [*command_line(sanitizer, tool), sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "ALKAHEST_GPU_TESTS": "1"},
        timeout=HANGS_AFTER,
        check=False,
    )
    return done.stdout, done.returncode


def check(sanitizer: str, tool: str, selection: list[str], log: Path | None) -> list[Verdict]:
    """Run the tests under one tool, and the faulty kernel where it must find something."""
    output, code = run(sanitizer, tool, ["-m", "pytest", *selection])
    found = [judge(tool, output, code)]
    if tool in FAULTS:
        fault, _ = run(sanitizer, tool, ["-c", FAULTY, str(FAULTS[tool])])
        found.append(judge_fault(tool, fault))
        output += fault
    if log:
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{tool}.txt").write_text(output)
    if not all(verdict.passed for verdict in found):
        print(output[-6000:])
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the tools; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sanitizer", default=find_sanitizer(), help="path of compute-sanitizer")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool")
    parser.add_argument("--log", type=Path, help="folder for the complete outputs")
    parser.add_argument("--one-by-one", action="store_true", help="one tool after the other")
    options, selection = parser.parse_known_args(arguments)
    if options.sanitizer is None:
        print("FAIL  compute-sanitizer is not on the path, nor under CUDA_HOME", file=sys.stderr)
        return 1

    def watch(tool: str) -> list[Verdict]:
        return check(options.sanitizer, tool, selection or SELECTION, options.log)

    tools = options.tool or TOOLS
    with ThreadPoolExecutor(1 if options.one_by_one else len(tools)) as pool:
        verdicts = [verdict for found in pool.map(watch, tools) for verdict in found]
    print(*verdicts, sep="\n")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
