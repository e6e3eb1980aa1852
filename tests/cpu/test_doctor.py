"""The rows of ``alkahest doctor`` about compiled code and its threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from alkahest.backends.cpu.jit import doctor
from alkahest.plugin import Diagnostic


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of the files of a machine of eight processors, all for this process."""
    monkeypatch.delenv("ALKAHEST_NUM_THREADS", raising=False)
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    return tmp_path


def threads() -> Diagnostic:
    (row,) = [row for row in doctor.diagnose() if row.name == "CPU threads"]
    return row


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.usefixtures("machine")
def test_there_are_as_many_threads_as_processors() -> None:
    row = threads()
    assert (row.ok, row.remedy) == (None, "")
    assert row.detail == "8, unless ALKAHEST_NUM_THREADS or threads= says else"


@pytest.mark.usefixtures("machine")
def test_fewer_processors_than_the_machine_has_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 3}, raising=False)
    detail = threads().detail
    assert detail.startswith("2, unless ")
    assert detail.endswith("this process may use 2 of the machine's 8 processors")


@pytest.mark.usefixtures("machine")
def test_a_variable_that_sets_the_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_NUM_THREADS", "1")
    row = threads()
    assert row.ok is None
    assert row.detail == "1, by ALKAHEST_NUM_THREADS; this process may use 8 processors"


@pytest.mark.usefixtures("machine")
def test_a_variable_that_holds_no_number_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_NUM_THREADS", "many")
    row = threads()
    assert row.ok is False
    assert "ALKAHEST_NUM_THREADS='many' is not a number of threads" in row.detail
    assert "unset ALKAHEST_NUM_THREADS" in row.remedy


def test_a_control_group_of_less_time_than_threads_is_told_with_the_number_to_set(
    machine: Path,
) -> None:
    put(machine / "proc/self/cgroup", "4:memory:/x\n0::/jobs/mine\n")
    put(machine / "sys/fs/cgroup/cpu.max", "max 100000\n")
    put(machine / "sys/fs/cgroup/jobs/cpu.max", "250000 100000\n")
    put(machine / "sys/fs/cgroup/jobs/mine/cpu.max", "400000 100000\n")
    row = threads()
    assert row.ok is None
    assert row.detail.endswith("; the control group allows the time of 2.5")
    assert row.remedy.startswith("Set ALKAHEST_NUM_THREADS=2: ")


@pytest.mark.parametrize(("quota", "limit"), [("150000", 1.5), ("-1", None)])
def test_control_groups_of_version_1_are_read_too(
    machine: Path, quota: str, limit: float | None
) -> None:
    put(machine / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    put(machine / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    assert doctor.processor_quota() == limit


@pytest.mark.usefixtures("machine")
def test_without_control_groups_there_is_no_limit() -> None:
    assert doctor.processor_quota() is None
