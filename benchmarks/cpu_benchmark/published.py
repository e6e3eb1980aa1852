"""The published package of our name, in an environment and a process of its own.

Run by that environment's Python, with the path of :mod:`cpu_benchmark.formulae` left out: it needs
NumPy and the package only. Reads one JSON request a line and answers with one::

    {"do": "build", "row": NAME, "program": [...]}       -> {"seconds": S}
    {"do": "values", "row": NAME, "columns": FILE.npy}   -> {"outputs": FILE.npy}
    {"do": "time", "row": NAME, "columns": FILE.npy, "warm": N, "calls": N, "clock": "cpu"}
                                                         -> {"seconds": S}
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


class Published:
    """Its functions, one per row."""

    def __init__(self) -> None:
        import alkahest

        self._library = alkahest
        self._functions: dict[str, Any] = {}
        self._columns: dict[str, Any] = {}

    def build(self, request: dict[str, Any]) -> dict[str, Any]:
        library, pool = self._library, self._library.ExprPool()
        symbols: list[Any] = []
        values: list[Any] = []
        outputs: list[Any] = []
        for operation, *operands in request["program"]:
            if operation == "symbol":
                symbols.append(pool.symbol(operands[0]))
                values.append(symbols[-1])
            elif operation == "number":
                p, q = operands
                is_exact = isinstance(p, int)
                if is_exact:
                    values.append(pool.integer(p) if q == 1 else pool.rational(p, q))
                else:
                    values.append(pool.float(p))
            elif operation == "power":
                values.append(values[operands[0]] ** operands[1])
            elif operation == "root-power":
                values.append(library.sqrt(values[operands[0]]) ** operands[1])
            elif operation == "outputs":
                outputs = [values[k] for k in operands]
            elif operation in ("add", "mul"):
                found = values[operands[0]]
                for k in operands[1:]:
                    found = found + values[k] if operation == "add" else found * values[k]
                values.append(found)
            else:
                values.append(getattr(library, operation)(*[values[k] for k in operands]))
        start = time.perf_counter()
        compiled = [library.compile_expr(output, symbols) for output in outputs]
        self._functions[request["row"]] = compiled
        return {"seconds": time.perf_counter() - start}

    def values(self, request: dict[str, Any]) -> dict[str, Any]:
        columns = np.load(request["columns"])
        outputs = self._call(request["row"], columns)
        path = Path(request["columns"]).with_suffix(".out.npy")
        np.save(path, np.array([np.broadcast_to(o, columns.shape[1:]) for o in outputs]))
        return {"outputs": str(path)}

    def time(self, request: dict[str, Any]) -> dict[str, Any]:
        path, row = request["columns"], request["row"]
        if path not in self._columns:
            self._columns = {path: list(np.load(path))}
        columns = self._columns[path]
        clock = time.process_time if request["clock"] == "cpu" else time.perf_counter
        for _ in range(request["warm"]):
            self._call(row, columns)
        start = clock()
        for _ in range(request["calls"]):
            self._call(row, columns)
        return {"seconds": (clock() - start) / request["calls"]}

    def _call(self, row: str, columns: Any) -> list[Any]:
        evaluate = self._library.numpy_eval
        return [evaluate(function, *columns) for function in self._functions[row]]


def main() -> None:
    """Answer requests until there are no more."""
    published = Published()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(published, request["do"])(request)
        except Exception as error:  # noqa: BLE001 - the row is left out and the reason is shown
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
