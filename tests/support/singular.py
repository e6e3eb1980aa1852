"""Singular as a second engine: many ideals in one process of it, each in a ring of its own."""

from __future__ import annotations

import re
import subprocess

from groebner_benchmark.contenders import program
from groebner_benchmark.systems import text_of

_ORDERS = {"grevlex": "dp", "lex": "lp", "grlex": "Dp"}


def bases(ideals, seconds):
    """The reduced bases of ``ideals``, as texts of elements separated by commas.

    Args:
        ideals: tuples of polynomials, names, order and characteristic.
        seconds: after which the process is ended, and the test with it.
    """
    script = ["option(redSB);"]
    for k, (polys, names, order, prime) in enumerate(ideals):
        given = ",".join(text_of(p, names, prime) for p in polys)
        script += [
            f"ring R{k}={prime},({','.join(names)}),{_order(order, len(names))};short=0;",
            f'ideal I={given};string(std(I));"--";',
        ]
    done = subprocess.run(
        [program("Singular"), "-q", "--cpus=1"],
        input="\n".join([*script, "quit;\n"]),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=True,
    )
    found = re.sub(r"\s", "", done.stdout).split("--")
    assert len(found) == len(ideals) + 1, done.stdout[-1000:]
    assert not found.pop(), done.stdout[-1000:]
    return found


def _order(order, n):
    kind, _, numbers = order.rstrip(")").partition("(")
    if kind == "elimination":
        return f"(dp({numbers}),dp({n - int(numbers)}))"
    return f"wp({numbers})" if kind == "weights" else _ORDERS[kind]
