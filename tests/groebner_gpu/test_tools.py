"""``tools/groebner_*.py`` on an emulated device: they end with rows, a file and an exit code."""

import json

import pytest
import scripts
from groebner_benchmark import devices

from alkahest.backends.groebner_gpu.emulated import EmulatedDevice

SYSTEMS = ["--systems", "katsura-3,cyclic-4"]


def run(monkeypatch, tmp_path, name, *arguments):
    """Exit code and rows of a tool."""
    tool, file = scripts.tool(name), tmp_path / "figures.json"
    monkeypatch.setattr(tool, "opened", lambda ordinal: EmulatedDevice(ordinal=ordinal))
    code = tool.main([*arguments, "--json", str(file)])
    facts = json.loads(file.read_text())
    assert facts["device"] == "emulated"
    return code, facts["rows"]


def test_replays_are_timed_in_every_layout_and_liftings_after_them(monkeypatch, tmp_path, capsys):
    arguments = ["--systems", "katsura-3", "--primes", "8,16", "--layouts"]
    code, rows = run(monkeypatch, tmp_path, "groebner_gpu", *arguments)
    assert code == 0
    *replays, lifting = rows
    assert {row["primes"] for row in replays} == {8, 16}
    assert {row["group"] for row in replays} == {1, 2, 4, 8, 16, 32}
    assert {row["threads"] for row in replays} == {None, 64, 128, 256, 512}
    assert lifting["lifting"]
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(rows)
    assert all(line.startswith("ok   katsura-3") for line in shown)


def test_conversions_and_learning_are_timed_for_each_system(monkeypatch, tmp_path):
    code, rows = run(
        monkeypatch, tmp_path, "groebner_dense", "conversions", "--systems", "katsura-3",
        "--primes", "2,8",
    )  # fmt: skip
    assert code == 0
    assert [row["primes"] for row in rows] == [2, 8]
    code, rows = run(monkeypatch, tmp_path, "groebner_learning", *SYSTEMS)
    assert code == 0
    assert [row["system"] for row in rows] == ["katsura-3"] * 4 + ["cyclic-4"] * 4
    assert [row["record"] for row in rows[:4]] == [True, True, False, False]


def test_every_seed_must_give_the_processor_s_basis_on_the_device(pretend, monkeypatch, tmp_path):
    (device,) = pretend(EmulatedDevice())
    tool, file = scripts.tool("groebner_seeds"), tmp_path / "figures.json"
    monkeypatch.setattr(tool, "opened", lambda ordinal: device)
    given = ["--seeds", "3", "--gfp", "", "--qq", "katsura-4,cyclic-4", "--json", str(file)]
    assert tool.main(given) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [(row["system"], row["seed"]) for row in rows] == [
        (name, seed) for name in ("katsura-4", "cyclic-4") for seed in range(3)
    ]
    assert all(row["reductions_on_gpu"] for row in rows)


@pytest.mark.parametrize("right", [True, False])
def test_a_row_that_is_not_right_is_the_exit_code(right, tmp_path, capsys):
    rows = [{"right": True}, {"right": right}]
    file = tmp_path / "figures.json"
    assert devices.reported(EmulatedDevice(), rows, str, file) == (0 if right else 1)
    assert json.loads(file.read_text()) == {"device": "emulated", "rows": rows}
    assert capsys.readouterr().out == f"{rows[0]}\n{rows[1]}\n"
