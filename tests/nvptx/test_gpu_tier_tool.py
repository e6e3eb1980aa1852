"""``tools/gpu_tier.py``: its steps, limits, logs and summary, with commands of the test's choice."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scripts


@pytest.fixture(scope="module")
def tier() -> ModuleType:
    return scripts.tool("gpu_tier")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "alkahest-0.1.0-py3-none-any.whl").touch()
    return folder


@pytest.fixture
def folders(tier: ModuleType, wheels: Path, tmp_path: Path) -> Any:
    return tier.Folders(wheels, tmp_path / "installed", tmp_path / "out")


def step(tier: ModuleType, name: str, code: str, limit: float = 30, vital: bool = False) -> Any:
    return tier.Step(name, f"about {name}", limit, lambda folders, tests: ["-c", code], vital)


def summary(folders: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folders.out / "summary.json").read_text())
    return found


def test_every_step_has_a_command_and_all_fit_into_an_hour(
    tier: ModuleType, wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ",".join(entry.name for entry in tier.STEPS)
    arguments = [str(wheels), "--out", str(tmp_path / "out"), "--steps", names, "--dry-run"]
    assert tier.main(arguments) == 0
    shown = capsys.readouterr().out
    for entry in tier.STEPS:
        assert f"{entry.name}, at most {entry.limit} s: {entry.about}" in shown
    assert not (tmp_path / "out").exists()
    assert str(wheels / "alkahest-0.1.0-py3-none-any.whl") in shown
    for word in (
        "tests/gpu",
        "sanitize.py",
        "accuracy.py",
        "shapes.py",
        "gpu.py",
        "calibration.py",
    ):
        assert word in shown


def test_the_scripts_of_the_steps_take_their_options(tier: ModuleType, folders: Any) -> None:
    for entry in tier.STEPS:
        command = entry.command(folders, [])
        script = Path(command[0])
        if script.suffix != ".py":
            continue
        assert script.is_file()
        text = script.read_text()
        for option in command[1:]:
            if option.startswith("--"):
                assert f'"{option}"' in text, (script.name, option)


def test_steps_run_in_order_and_leave_logs_and_a_summary(
    tier: ModuleType, folders: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        step(tier, "good", "import os; print(os.environ['ALKAHEST_GPU_TESTS'])"),
        step(tier, "bad", "import sys; print('why'); sys.exit(3)"),
    ]
    ended = tier.perform(steps, folders, [], 60)
    assert [entry.passed for entry in ended] == [True, False]
    assert (folders.out / "good.log").read_text() == "1\n"
    assert (folders.out / "bad.log").read_text() == "why\n"
    assert summary(folders)["good"]["passed"] is True
    assert summary(folders)["bad"]["text"] == "exit code 3; see bad.log"
    assert "FAIL  bad          exit code 3; see bad.log" in capsys.readouterr().out


def test_a_step_that_takes_too_long_is_ended_with_its_children(
    tier: ModuleType, folders: Any
) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    (ended,) = tier.perform([step(tier, "slow", code, limit=3)], folders, [], 60)
    assert not ended.passed
    assert ended.text == "not done after 3 s; see slow.log"
    child = int((folders.out / "slow.log").read_text())
    for _ in range(500):
        if not Path(f"/proc/{child}").exists() or "Z" in _state(child):
            break
        time.sleep(0.01)
    else:
        pytest.fail("the child still runs")


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_nothing_runs_behind_a_vital_step_that_failed_or_without_time(
    tier: ModuleType, folders: Any
) -> None:
    steps = [step(tier, "first", "raise SystemExit(1)", vital=True), step(tier, "next", "")]
    assert tier.perform(steps, folders, [], 60)[1].text == "not run: first failed"
    steps = [step(tier, "next", "")]
    assert tier.perform(steps, folders, [], 0)[0].text == "not run: no time is left"
    assert not (folders.out / "next.log").exists()


def test_the_limit_for_all_shortens_that_of_a_step(tier: ModuleType, folders: Any) -> None:
    code = "import time; time.sleep(60)"
    (ended,) = tier.perform([step(tier, "slow", code, limit=50)], folders, [], 2)
    assert ended.text == "not done after 2 s; see slow.log"


def test_steps_of_earlier_runs_stay_in_the_summary(tier: ModuleType, folders: Any) -> None:
    tier.perform([step(tier, "one", "")], folders, [], 60)
    tier.perform([step(tier, "two", "raise SystemExit(1)")], folders, [], 60)
    assert {name: entry["passed"] for name, entry in summary(folders).items()} == {
        "one": True,
        "two": False,
    }
    assert os.listdir(folders.out).count("summary.part") == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "tests,dance"], "no step 'dance'; there are install, facts"),
        (["--steps", "tests", "--limit", "soon"], "invalid float value"),
    ],
)
def test_wrong_arguments_are_told(
    tier: ModuleType,
    wheels: Path,
    tmp_path: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        tier.main([str(wheels), "--out", str(tmp_path / "out"), *arguments])
    assert words in capsys.readouterr().err


def test_a_folder_without_wheels_is_told(
    tier: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tier.main([str(tmp_path), "--out", str(tmp_path / "out")])
    assert "no wheels in" in capsys.readouterr().err
