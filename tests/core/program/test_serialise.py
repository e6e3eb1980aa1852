"""Programs travel as bytes and are checked on arrival."""

import json
import math

import attrs
import pytest

from alkahest.errors import CodegenError
from alkahest.program import Instruction, Program, digest, dumps, loads

PROGRAM = Program(
    dtype="complex128",
    inputs=("x", "y z", "λ"),
    constants=(0.1, -0.0, math.inf, 5e-324, 1 - 2j, True),
    code=(
        Instruction("re", (0,)),
        Instruction("mul", (3, 9)),
        Instruction("powi", (1,), -(10**30) - 1),
        Instruction("lt", (10, 5)),
        Instruction("and", (12, 8)),
        Instruction("select", (13, 11, 7)),
    ),
    outputs=(14, 10),
).verify()


def test_a_program_comes_back_equal():
    assert loads(dumps(PROGRAM)) == PROGRAM
    assert math.copysign(1, loads(dumps(PROGRAM)).constants[1]) == -1


def test_nan_constants_survive():
    program = Program(dtype="float64", inputs=(), constants=(math.nan,), code=(), outputs=(0,))
    assert math.isnan(loads(dumps(program)).constants[0])


def test_the_digest_depends_on_everything_but_the_names_of_inputs():
    assert digest(PROGRAM) == digest(attrs.evolve(PROGRAM, inputs=("a", "b", "c")))
    assert digest(PROGRAM) != digest(attrs.evolve(PROGRAM, outputs=(14, 11)))
    assert digest(PROGRAM) != digest(
        attrs.evolve(PROGRAM, constants=(0.1, 0.0, *PROGRAM.constants[2:]))
    )
    assert len(digest(PROGRAM)) == 64


def test_an_unknown_version_is_refused_with_both_numbers():
    document = json.loads(dumps(PROGRAM))
    document["version"] = 99
    with pytest.raises(CodegenError, match="version 99, this alkahest reads 1") as caught:
        loads(json.dumps(document).encode())
    assert caught.value.code == "E-JIT-008"


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("code"),
        lambda d: d.update(extra=1),
        lambda d: d.update(format="something else"),
        lambda d: d.update(outputs=["0"]),
        lambda d: d.update(outputs=[True]),
        lambda d: d.update(inputs=[1]),
        lambda d: d.update(constants=["0x1.zp0"]),
        lambda d: d.update(constants=[[1, 2, 3]]),
        lambda d: d["code"].append(["add"]),
        lambda d: d["code"].append(["add", [0, 0], "0x1", "0x2"]),
        lambda d: d.update(code=3),
    ],
)
def test_damaged_bytes_are_refused(damage):
    document = json.loads(dumps(PROGRAM))
    damage(document)
    with pytest.raises(CodegenError) as caught:
        loads(json.dumps(document).encode())
    assert caught.value.code == "E-JIT-008"


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"null", b"{", b"[" * 100_000])
def test_bytes_that_are_no_program_are_refused(data):
    with pytest.raises(CodegenError) as caught:
        loads(data)
    assert caught.value.code == "E-JIT-008"


def test_a_well_formed_program_that_breaks_a_rule_is_refused_by_the_rule():
    document = json.loads(dumps(PROGRAM))
    document["outputs"] = [99]
    with pytest.raises(CodegenError) as caught:
        loads(json.dumps(document).encode())
    assert caught.value.code == "E-JIT-007"
