"""Pictures of benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import figures
import pytest


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    rows = [
        {
            "name": name,
            "group": "small",
            "points": 10**6,
            "instructions": count,
            "bytes": 24 * 10**6,
            "copy_gb_per_s": 100.0,
            "contenders": {
                "alkahest": {"ms": ms, "spread": 0.01},
                "numba": {"ms": 2 * ms, "spread": 0.01},
            },
        }
        for name, count, ms in (("waves", 8, 0.25), ("chain", 200, 3.0))
    ]
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps({"schema": 1, "machine": {"device": "a device"}, "rows": rows}))
    return path


@pytest.fixture
def cpu(tmp_path: Path) -> Path:
    sizes: dict[str, Any] = {
        "1": {"alkahest": 4e-6, "numpy": 1e-6, "numba": 9e-6},
        "10000": {"alkahest": 1e-5, "numpy": 1e-4, "numba": 9e-5},
    }
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"one": {"rows": {"seed": {"forms": {"same": {"sizes": sizes}}}}}}))
    return path


def test_the_roofline_names_its_rows(gpu: Path, tmp_path: Path) -> None:
    target = tmp_path / "roof.svg"
    assert figures.main(["roofline", str(gpu), str(target)]) == 0
    text = target.read_text(encoding="utf-8")
    for shown in ("waves", "chain", "100 GB/s", "a device", "the best peer"):
        assert shown in text


def test_the_crossover_says_from_where_on(cpu: Path, tmp_path: Path) -> None:
    target = tmp_path / "cross.svg"
    assert figures.main(["crossover", str(cpu), str(target)]) == 0
    text = target.read_text(encoding="utf-8")
    assert "numba: at every size" in text
    assert "numpy: from 32 points" in text
