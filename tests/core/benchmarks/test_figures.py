"""The numbers behind the roofline and the crossovers; ``tests/pictures`` draws them."""

from __future__ import annotations

from typing import Any

import figures
import pytest

GPU: dict[str, Any] = {
    "schema": 1,
    "machine": {"device": "a device"},
    "rows": [
        {
            "name": "waves",
            "group": "small",
            "points": 10**6,
            "instructions": 8,
            "bytes": 24 * 10**6,
            "copy_gb_per_s": 100.0,
            "contenders": {
                "alkahest": {"ms": 0.25, "spread": 0.01},
                "numba": {"ms": 0.5, "spread": 0.01},
            },
        },
        {
            "name": "lost",
            "group": "heavy",
            "points": 10**6,
            "instructions": 200,
            "bytes": 16 * 10**6,
            "copy_gb_per_s": 300.0,
            "contenders": {"alkahest": {"error": "out of luck"}},
        },
        {"name": "broken", "group": "heavy", "error": "nothing came of it"},
    ],
}


def forms(**sizes: dict[str, float]) -> dict[str, Any]:
    return {"same": {"sizes": {size.lstrip("n"): times for size, times in sizes.items()}}}


CPU: dict[str, Any] = {
    "one": {
        "rows": {
            "seed": {
                "forms": forms(
                    n1={"alkahest": 4e-6, "numpy": 1e-6},
                    n100={"alkahest": 5e-6, "numpy": 5e-6},
                    n10000={"alkahest": 1e-5, "numpy": 1e-4},
                )
            }
        }
    }
}


def test_a_mark_is_operations_per_byte_and_per_second() -> None:
    waves, lost = figures.marks(GPU)
    assert waves == ("waves", pytest.approx(1 / 3), pytest.approx(32.0), "numba", pytest.approx(16))
    assert (lost.ours, lost.best) == (None, None)
    assert figures.copy_rate(GPU) == 200.0


def test_a_run_without_rows_has_no_roof() -> None:
    with pytest.raises(ValueError, match="no rates of copies"):
        figures.copy_rate({"rows": []})


def test_the_crossover_is_where_the_times_meet() -> None:
    ours, theirs = {1: 4.0, 100: 4.0, 10_000: 4.0}, {1: 1.0, 100: 2.0, 10_000: 8.0}
    assert figures.crossover(ours, theirs) == pytest.approx(1000)
    assert figures.crossover(theirs, ours) is None
    assert figures.crossover({1: 1.0}, {1: 2.0}) == 0
    assert figures.crossover({}, {1: 2.0}) is None


def test_only_the_last_crossing_counts() -> None:
    ours, theirs = dict.fromkeys([1, 10, 100, 1000], 1.0), {1: 2.0, 10: 0.5, 100: 2.0, 1000: 3.0}
    assert figures.crossover(ours, theirs) == pytest.approx(10**1.5)


def test_times_are_by_contender_and_size() -> None:
    times = figures.times_by_size(CPU, "seed")
    assert times["numpy"] == {1: 1e-6, 100: 5e-6, 10_000: 1e-4}
    assert figures.crossover(times["alkahest"], times["numpy"]) == pytest.approx(100)
    with pytest.raises(ValueError, match="there are: seed"):
        figures.times_by_size(CPU, "waves")


def test_mistakes_end_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"schema": 1, "rows": []}')
    for kind in ("roofline", "crossover"):
        with pytest.raises(SystemExit):
            figures.main([kind, str(path), str(tmp_path / "out.svg")])
    assert "there is no row 'seed'" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()
