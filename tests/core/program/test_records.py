"""A program says what it is, and refuses to be anything else."""

import pytest

from alkahest.errors import CodegenError
from alkahest.program import Instruction, Kind, Program


def program(**changes):
    parts = {
        "dtype": "float64",
        "inputs": ("x",),
        "constants": (2.0,),
        "code": (Instruction("mul", (0, 1)), Instruction("lt", (2, 1))),
        "outputs": (2, 3),
    }
    return Program(**{**parts, **changes})


def test_kinds_and_output_dtypes_follow_from_the_instructions():
    verified = program().verify()
    assert verified.kinds == (Kind.REAL, Kind.REAL, Kind.REAL, Kind.BOOL)
    assert verified.output_dtypes == ("float64", "bool")
    assert verified.first_instruction == 2
    assert verified.ops_used == {"mul", "lt"}


def test_real_parts_of_complex_programs_are_real_columns():
    verified = program(
        dtype="complex64",
        constants=(),
        code=(Instruction("abs", (0,)), Instruction("exp", (0,))),
        outputs=(1, 2),
    ).verify()
    assert verified.output_dtypes == ("float32", "complex64")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, "float16"),
        ({"inputs": (3,)}, "inputs must be texts"),
        ({"constants": (2,)}, "constant 2 is not a float"),
        ({"code": (Instruction("frobnicate", (0,)),)}, "unknown operation 'frobnicate'"),
        ({"code": (Instruction("mul", (0,)),)}, "mul takes 2 operands"),
        ({"code": (Instruction("mul", (0, 2)),)}, "not earlier"),
        ({"code": (Instruction("mul", (0, -1)),)}, "not earlier"),
        ({"code": (Instruction("powi", (0,)),)}, "parameter of powi"),
        ({"code": (Instruction("neg", (0,), 3),)}, "parameter of neg"),
        ({"outputs": (4,)}, "are not values"),
        ({"outputs": ()}, "are not values"),
    ],
)
def test_a_program_that_breaks_a_rule_is_refused_with_the_rule(changes, message):
    with pytest.raises(CodegenError, match=message) as caught:
        program(**changes).verify()
    assert caught.value.code == "E-JIT-007"


@pytest.mark.parametrize(
    "changes",
    [
        {"constants": (2j,)},
        {"code": (Instruction("not", (0,)),), "outputs": (2,)},
        {"code": (Instruction("complex", (0, 1)),), "outputs": (2,)},
        {"dtype": "complex128", "code": (Instruction("lt", (0, 0)),), "outputs": (2,)},
        {"dtype": "complex128", "code": (Instruction("add", (0, 1)),), "outputs": (2,)},
    ],
)
def test_operations_without_meaning_for_their_operands_are_refused(changes):
    with pytest.raises(CodegenError) as caught:
        program(**changes).verify()
    assert caught.value.code == "E-JIT-010"
