"""``benchmarks/gpu.py`` from its arguments to its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import gpu
import pytest
from gpu_benchmark import contenders, first_call, host_arrays, results, small_batches

import alkahest

SCRIPT = Path(gpu.__file__)


def test_the_script_runs_wherever_it_is_started_from(tmp_path: Path) -> None:
    tested = str(Path(alkahest.__file__).parents[1])
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": tested}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), "--list", "--rows", "small"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["product", "waves", "cubic", "damped", "horner", "waves_gradient"]


def test_without_cupy_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.main(["--peers", "cupy"]) == 2
    assert "this benchmark needs CuPy and a GPU: not installed" in capsys.readouterr().err


def test_without_a_device_the_reason_is_given(
    cupy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cupy.cuda.runtime.getDeviceCount = lambda: 0
    assert gpu.main(["--peers", "cupy"]) == 2
    assert "no usable GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "nothing"], "no row 'nothing'"),
        (["--peers", "fortran"], "no peer 'fortran'; there are cupy, torch, jax, numba"),
        (["--parts", "lunch"], "no part 'lunch'; there are rows, small, host, first"),
        (["--option", "accuracy"], "'accuracy' is not NAME=VALUE"),
    ],
)
def test_mistakes_in_the_arguments_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        gpu.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_arrays, "QUICK_SIZES", (1000, 5000))
    monkeypatch.setattr(host_arrays, "_PIECE", 1 << 14)
    monkeypatch.setattr(small_batches, "QUICK_CALLS", 20)


@pytest.mark.usefixtures("cupy", "backend", "small_sizes")
def test_a_whole_run_leaves_a_complete_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_call, "_process", lambda name, folder: 50.0)
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "result.json"
    arguments = "--quick --peers cupy,torch --rows product,robot_jacobian --points 2000 --repeats 4"
    assert gpu.main([*arguments.split(), "--json", str(path)]) == 0
    document = results.read(path)
    assert list(document["skipped"]) == ["torch"]
    assert document["skipped"]["torch"].startswith("not installed")
    assert document["machine"]["device"] == "Pretended GPU"
    assert [row["name"] for row in document["rows"]] == ["product", "robot_jacobian"]
    for row in document["rows"]:
        assert list(row["contenders"]) == ["alkahest", "cupy"]
        assert all("ms" in contender for contender in row["contenders"].values())
    assert [size["points"] for size in document["host"]["sizes"]] == [1000, 5000]
    assert {"reused_ms", "fresh_ms", "cupy_ms"} <= document["host"]["sizes"][0].keys()
    assert document["first_call"]["contenders"]["alkahest"]["cold_ms"] == 50.0
    assert set(document["small_batches"]["us"]) == {"alkahest", "cupy"}
    assert set(document["summary"]["geometric_means"]) == {"small", "heavy"}
    text = capsys.readouterr().out
    assert "without torch: not installed" in text
    assert text.rstrip().splitlines()[-1].startswith("geometric mean, heavy rows")
    assert gpu.main(["--table", str(path)]) == 0
    assert "| row | ours, ms | best peer, ms |" in capsys.readouterr().out


@pytest.mark.usefixtures("cupy", "backend")
def test_a_failure_of_ours_is_shown_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(problem: Any) -> Any:
        raise RuntimeError("not today")

    monkeypatch.setattr("gpu_benchmark.device_rows.alkahest_arrays", refuse)
    arguments = "--parts rows --rows product --peers cupy --points 500 --repeats 2"
    assert gpu.main(arguments.split()) == 1
    assert "FAILED  row product: RuntimeError: not today" in capsys.readouterr().out


@pytest.mark.usefixtures("cupy", "backend")
def test_a_part_that_breaks_does_not_stop_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*arguments: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(small_batches, "measure", broken)
    path = tmp_path / "result.json"
    arguments = "--parts small,rows --rows product --peers cupy --points 500 --repeats 2"
    assert gpu.main([*arguments.split(), "--json", str(path)]) == 1
    document = json.loads(path.read_text())
    assert document["errors"] == {"small": "MemoryError: no message"}
    assert "ms" in document["rows"][0]["contenders"]["alkahest"]


@pytest.mark.usefixtures("cupy", "backend")
@pytest.mark.parametrize("name", ["alkahest", "cupy"])
def test_a_first_calls_process_prints_its_milliseconds(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_call, "register_plugins", lambda: None)
    monkeypatch.setattr(first_call, "_PACKAGES", ("alkahest.program",))
    monkeypatch.setattr(first_call, "_LATE", {})
    first_call.main(name, "waves")
    mark, _, number = capsys.readouterr().out.strip().rpartition(" ")
    assert mark == "first call:"
    assert 0 < float(number) < 60_000


def test_a_first_call_has_fresh_caches_and_its_process_is_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caches: list[str] = []

    def run(command: list[str], *, env: dict[str, str], **_: Any) -> Any:
        caches.append(env["ALKAHEST_CACHE_DIR"])
        assert env["CUDA_CACHE_PATH"].endswith("driver")
        return types.SimpleNamespace(stdout=f"noise\nfirst call: {len(caches)}.5\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    record = first_call.measure(["cupy"], print)
    assert record["contenders"]["alkahest"] == {
        "processes": 3,
        "cold_ms": 3.5,
        "cached_ms": 4.5,
    }
    assert caches[0] == caches[1] != caches[2] == caches[3]
    assert len(caches) == 8


def test_a_first_call_that_dies_is_reported_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(command: list[str], **_: Any) -> Any:
        return types.SimpleNamespace(stdout="", stderr="Traceback\nImportError: no such thing\n")

    monkeypatch.setattr(subprocess, "run", run)
    said: list[str] = []
    record = first_call.measure([], said.append)
    assert record["contenders"]["alkahest"] == {"error": "RuntimeError: ImportError: no such thing"}
    assert said[-1] == "  alkahest: RuntimeError: ImportError: no such thing"


def test_a_peer_that_breaks_when_imported_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart is too old')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert contenders.missing(["torch"]) == {
        "torch": "cannot be imported: OSError: libcudart is too old"
    }
