"""``device="all"``: one device that stands for several, emulated and with the fake driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakedriver import FakeGpuChild

from alkahest import ExprPool, parse
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.plugin import Batch
from alkahest.program import lower
from alkahest.splitting import SplitEvaluator

SETUP = """
import numpy as np
x, y = ak.symbols("x y")
xs = np.arange(1000.0)
ys = xs + 0.5
"""


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 5, 1001])
def test_any_number_of_devices_gives_the_same_bits(devices: int, n: int) -> None:
    pool = ExprPool()
    x, y = pool.symbol("x"), pool.symbol("y")
    program = lower([parse("sin(x)*y", pool), parse("x < y", pool)], [x, y])
    columns = np.linspace(-3.0, 3.0, n), np.linspace(2.0, -2.0, 2 * n)[::2]
    batch = Batch(columns=columns, n=n)
    alone = EmulatedEvaluator(program)
    split = SplitEvaluator("nvptx", program, [alone] * devices)
    for got, want in zip(split.evaluate(batch).outputs, alone.evaluate(batch).outputs, strict=True):
        assert got.tobytes() == want.tobytes()


def test_a_function_for_all_devices_shares_every_batch(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        'fn = ak.compile_cuda(x + 2*y, [x, y], device="all")\n'
        "values = fn.call_batch([xs, ys])\n"
        "parts = fn.report['devices']\n"
        "result = [bool(np.array_equal(values, xs + 2*ys)), fn.report['device'],\n"
        "          [[p['device'], p['n'], p['device_name'], p['target']] for p in parts]]"
    )
    assert two_gpus.ask(code) == [
        True,
        "all",
        [[0, 500, "Fake GPU 0", "sm_90"], [1, 500, "Fake GPU 1", "sm_75"]],
    ]


def test_columns_on_one_device_are_not_shared(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "import fakearrays as fake\n"
        'fn = ak.compile_cuda(x + 2*y, [x, y], device="all")\n'
        "try:\n    fn(fake.Producer(xs), fake.Producer(ys))\n"
        "except ak.InputTypeError as error:\n    result = [error.code, error.message]"
    )
    code, message = two_gpus.ask(code)
    assert code == "E-INPUT-010"
    assert 'device="all" splits columns in host memory' in message


def test_the_command_shares_the_rows_of_a_table(two_gpus: FakeGpuChild, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    two_gpus.calls()
    code = (
        "import contextlib, io\n"
        "from alkahest.cli import main\n"
        "with contextlib.redirect_stderr(io.StringIO()):\n"
        "    result = main(['eval', 'x + x', '--grid', 'x=0:4:5', '--backend', 'nvptx',\n"
        f"                   '--device', 'all', '-o', {str(out)!r}])"
    )
    assert two_gpus.ask(code) == 0
    # The fake's kernels give their first column.
    assert out.read_text().split() == ["f0", "0.0", "1.0", "2.0", "3.0", "4.0"]
    launches = [call.split() for call in two_gpus.calls() if call.startswith("launch")]
    assert sorted(int(points) for _, _, _, points, _ in launches) == [2, 3]
