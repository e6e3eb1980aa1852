"""Systems and bases in files: plain text, msolve's format, JSON.

* **text**: one polynomial a line, in the language of :func:`alkahest.parse`. Lines beginning with
  ``#`` are comments; ``# vars: x, y``, ``# field: GF(65521)`` and ``# order: lex`` count.
* **msolve**: the variables on the first line, the characteristic on the second, then polynomials
  separated by commas.
* **json**: an object with ``vars``, ``polynomials``, and optionally ``field`` and ``order``; a
  polynomial is a text or a list of pairs ``[coefficient, exponents]`` with the coefficient as a
  text or an integer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm

import attrs

from alkahest.errors import AlkahestError, IoError, SolverError
from alkahest.expr import ExprPool, parse
from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.fields import GF, QQ, Field
from alkahest.groebner.reading import labelled
from alkahest.groebner.text import number_text, text_of

_DIRECTIVE = re.compile(r"#\s*(vars|field|order)\s*:\s*(.*?)\s*")
_NUMBERED = re.compile(r"(\d+)")


@attrs.frozen(kw_only=True)
class System:
    """What a file says.

    Attributes:
        polynomials: anything that :meth:`GroebnerBasis.compute` reads.
        variables: names, the largest first; None where the file lists none.
        field: the field, or None where the file names none.
        order: the order, or None where the file names none.
    """

    polynomials: Sequence[object]
    variables: tuple[str, ...] | None = None
    field: Field | None = None
    order: str | None = None

    def chosen_variables(self) -> tuple[str, ...]:
        """The variables listed, or else the names in the polynomials, alphabetically.

        Numbers in names count as numbers, so that x2 comes before x10.
        """
        if self.variables is not None:
            return self.variables
        pool = ExprPool()
        free: set[str] = set()
        for place, text in enumerate(self.polynomials, 1):
            if isinstance(text, str):
                with labelled(f"polynomial {place}"):
                    free.update(str(symbol.value) for symbol in parse(text, pool).free_symbols)
        return tuple(sorted(free, key=_natural))


def field_named(text: object) -> Field:
    """The field that ``QQ``, ``GF(p)``, 0 or a prime names.

    Raises:
        SolverError: E-SOLVE-007 for anything else.
    """
    match = re.fullmatch(r"\s*(?:GF\(\s*(\d+)\s*\)|(QQ|0)|(\d+))\s*", str(text))
    if match is None:
        raise SolverError("E-SOLVE-007", f"there is no field {text!r}")
    return QQ if match[2] else GF(int(match[1] or match[3]))


def read_text(text: str) -> System:
    """A system in plain text; see the module's docstring."""
    said: dict[str, str] = {}
    polynomials = []
    for line in text.splitlines():
        if match := _DIRECTIVE.fullmatch(line):
            said[match[1]] = match[2]
        elif line.strip() and not line.lstrip().startswith("#"):
            polynomials.append(line.strip().rstrip(",;"))
    return System(
        polynomials=polynomials,
        variables=tuple(said["vars"].replace(",", " ").split()) if "vars" in said else None,
        field=field_named(said["field"]) if "field" in said else None,
        order=said.get("order"),
    )


def read_msolve(text: str) -> System:
    """A system in msolve's format; see the module's docstring.

    Raises:
        IoError: E-IO-003 where the first two lines are not variables and a characteristic.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 3 or not lines[1].strip().isdigit():
        raise IoError(
            "E-IO-003",
            "this is not msolve's format: the first line lists the variables, the second is the "
            "characteristic, polynomials follow",
        )
    polynomials = [part.strip() for part in "\n".join(lines[2:]).split(",")]
    return System(
        polynomials=[part.replace("\n", " ") for part in polynomials if part],
        variables=tuple(name.strip() for name in lines[0].split(",") if name.strip()),
        field=field_named(lines[1]),
    )


def read_json(text: str) -> System:
    """A system in JSON; see the module's docstring.

    Raises:
        IoError: E-IO-003 for what is no such object.
    """
    try:
        data = json.loads(text)
        polynomials = [_json_polynomial(poly) for poly in data["polynomials"]]
        variables = data.get("vars")
        return System(
            polynomials=polynomials,
            variables=None if variables is None else tuple(str(name) for name in variables),
            field=field_named(data["field"]) if "field" in data else None,
            order=data.get("order"),
        )
    except AlkahestError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError) as error:
        raise IoError(
            "E-IO-003",
            f"this is no system in JSON: {type(error).__name__}: {error}",
            remediation='Write {"vars": ["x"], "polynomials": ["x**2 - 2"]}.',
        ) from None


def _json_polynomial(poly: object) -> object:
    if isinstance(poly, str):
        return poly
    return [(tuple(exponents), Fraction(c)) for c, exponents in poly]  # type: ignore[attr-defined]


def write_text(basis: GroebnerBasis) -> str:
    """A basis in plain text, readable by :func:`read_text`."""
    head = [
        f"# vars: {', '.join(basis.variables())}",
        f"# field: {basis.field}",
        f"# order: {basis.order}",
        f"# {basis.report.certainty}, {len(basis)} polynomials",
    ]
    return "\n".join([*head, *map(str, basis)]) + "\n"


def write_msolve(basis: GroebnerBasis) -> str:
    """A basis in msolve's format, with denominators cleared."""
    bodies = []
    for element in basis:
        factor = lcm(*(c.denominator for c in element.coefficients))
        terms = [(e, int(c * factor)) for e, c in element.terms()]
        bodies.append(text_of(terms, basis.variables(), power="^").replace(" ", ""))
    head = f"{','.join(basis.variables())}\n{basis.field.characteristic}\n"
    return head + ",\n".join(bodies or ["0"]) + "\n"


def write_json(basis: GroebnerBasis) -> str:
    """A basis in JSON, readable by :func:`read_json`, with its report."""
    data = {
        "vars": list(basis.variables()),
        "field": str(basis.field),
        "order": basis.order,
        "certainty": basis.report.certainty,
        "polynomials": [
            [[number_text(c), list(e)] for e, c in element.terms()] for element in basis
        ],
        "report": basis.report.to_dict(),
    }
    return json.dumps(data, indent=1) + "\n"


def format_of(path: str) -> str:
    """``"json"`` and ``"msolve"`` by the suffixes .json and .ms, else ``"text"``."""
    return {"json": "json", "ms": "msolve"}.get(path.rpartition(".")[2].lower(), "text")


def _natural(name: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in _NUMBERED.split(name) if part
    ]


READERS: Mapping[str, Callable[[str], System]] = {
    "text": read_text,
    "msolve": read_msolve,
    "json": read_json,
}
WRITERS: Mapping[str, Callable[[GroebnerBasis], str]] = {
    "text": write_text,
    "msolve": write_msolve,
    "json": write_json,
}


__all__ = ["READERS", "WRITERS", "System", "field_named", "format_of"]
