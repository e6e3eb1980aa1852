"""What the generated PTX looks like, in the few lines that matter."""

import re

import attrs
import pytest

from alkahest import ExprPool, parse
from alkahest.backends.nvptx import libdevice, module, targets
from alkahest.backends.nvptx.access import Access
from alkahest.backends.nvptx.accuracy import MODES, STRICT
from alkahest.backends.nvptx.lowerings import DTYPES, LOWERINGS
from alkahest.backends.nvptx.probe import every_operation
from alkahest.errors import CudaError, InputError
from alkahest.program import Instruction, Program, lower
from alkahest.testing.programs import chain, single

STRICTLY = {"accuracy": STRICT}


def generate(text, names="x y z", dtype="float64", target=None, options=STRICTLY):
    pool = ExprPool()
    inputs = [pool.symbol(name) for name in names.split()]
    return module.generate(lower([parse(text, pool)], inputs, dtype), target, options)


def body(artifact):
    """The kernel's instructions, without operands."""
    code = artifact.code[artifact.code.index(".entry") :]
    return re.findall(r"^\t(?:@!?%\w+ )?([a-z][\w.:]*)", code, re.MULTILINE)


def test_the_smallest_kernel_has_its_target_its_entry_and_nothing_else():
    artifact = generate("x + y", "x y")
    assert (artifact.kind, artifact.entry, artifact.target) == ("ptx", "alkahest_eval", "sm_75")
    assert ".version 6.3\n.target sm_75\n" in artifact.code
    assert artifact.code.count(".visible .entry alkahest_eval(") == 1
    assert artifact.metadata["ptx_version"] == "6.3"
    assert artifact.metadata["libdevice"] is None
    assert artifact.metadata["abi"] == "pointers"
    assert body(artifact).count("add.rn.f64") >= 1
    assert not [i for i in body(artifact) if i.startswith(("call", "fma", "mul.rn"))]


@pytest.mark.parametrize("target", targets.supported())
def test_the_target_asked_for_is_the_target_of_the_code(target):
    artifact = generate("exp(x)", "x", target=target)
    assert artifact.target == target
    assert f"\n.target {target}\n" in artifact.code


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_no_operation_leaves_an_unresolved_symbol(dtype, mode):
    code = module.generate(every_operation(dtype), None, {"accuracy": mode}).code
    assert ".extern" not in code
    assert "__nvvm_reflect" not in code
    assert "vprintf" not in code


@pytest.mark.parametrize(("dtype", "suffix"), [("float64", "f64"), ("float32", "f32")])
def test_products_are_rounded_before_they_are_added(dtype, suffix):
    # A plain mul and add could still be fused by the driver's compiler; .rn forbids it.
    instructions = body(generate("x*y + z", dtype=dtype))
    assert f"mul.rn.{suffix}" in instructions
    assert f"add.rn.{suffix}" in instructions
    assert not [i for i in instructions if i.startswith("fma")]


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("x / y", "div.rn"),
        ("sqrt(x)", "sqrt.rn"),
        ("fma(x, y, z)", "fma.rn"),
        ("round(x)", "cvt.rni"),
        ("floor(x)", "cvt.rmi"),
    ],
)
@pytest.mark.parametrize(("dtype", "suffix"), [("float64", "f64"), ("float32", "f32")])
def test_arithmetic_is_correctly_rounded_and_keeps_subnormals(text, instruction, dtype, suffix):
    instructions = body(generate(text, dtype=dtype))
    assert any(i.startswith(instruction) and suffix in i for i in instructions)
    assert not [i for i in instructions if "approx" in i or "ftz" in i]


def test_a_case_split_selects_and_does_not_blend():
    instructions = body(generate("Piecewise((1/x, y < 0), (x, True))"))
    assert any(i.startswith("selp") for i in instructions)
    assert not [i for i in instructions if i.startswith(("mul.rn", "fma.rn"))]


def test_constants_are_exact_bits():
    code = generate("x + 0.1", "x").code
    assert "0d3FB999999999999A" in code
    code = generate("x + 0.1", "x", dtype="float32").code
    assert "0f3DCCCCCD" in code


def test_infinities_and_nan_are_constants_like_others():
    code = generate("Piecewise((x, x < oo), (nan, True))", "x").code
    assert "0d7FF0000000000000" in code
    assert "0d7FF8000000000000" in code


def test_names_of_symbols_do_not_get_into_the_code():
    names = "sin exp n i tid entry define double %1 x.1 r1 func_retval0"
    pool = ExprPool()
    inputs = [pool.symbol(name) for name in names.split()]
    program = lower([pool.add(inputs)], inputs)
    renamed = Program(
        dtype=program.dtype,
        inputs=tuple(f"input{k}" for k in range(len(inputs))),
        constants=program.constants,
        code=program.code,
        outputs=program.outputs,
    )
    assert module.generate(program, None, {}).code == module.generate(renamed, None, {}).code


def test_the_same_program_gives_the_same_code():
    assert generate("gamma(x)*j0(y)").code == generate("gamma(x)*j0(y)").code


def test_libdevice_is_not_needed_where_nothing_of_it_is_called(monkeypatch):
    monkeypatch.setenv(libdevice.VARIABLE, "/nowhere")
    assert generate("sqrt(x*y) + Max(x, z)").metadata["libdevice"] is None
    with pytest.raises(CudaError) as caught:
        generate("erf(x)", "x")
    assert caught.value.code == "E-CUDA-005"


def test_the_artifact_says_where_libdevice_came_from():
    assert generate("erf(x)", "x").metadata["libdevice"] == str(libdevice.find())


def test_few_calls_are_inlined_and_many_stay_functions():
    program = single("erf")
    many = Program(
        dtype="float64",
        inputs=("x",),
        constants=(),
        code=tuple(Instruction("erf", (k,)) for k in range(1000)),
        outputs=(1000,),
    ).verify()
    one_point = attrs.evolve(Access.plain(program), points=1)
    assert ".func" not in module.generate(program, None, {}, one_point).code
    artifact = module.generate(many, None, {})
    assert artifact.code.count(" alkahest_call_erf(\n") == 1
    assert artifact.code.count("call.uni") == 1000
    assert artifact.metadata["inlined"] is False


def sum_of_columns(count):
    """A program that adds ``count`` columns."""
    code = [Instruction("add", (0, 1))]
    code += [Instruction("add", (count + k, k + 2)) for k in range(count - 2)]
    return Program(
        dtype="float64",
        inputs=tuple(f"c{k}" for k in range(count)),
        constants=(),
        code=tuple(code),
        outputs=(count + len(code) - 1,),
    ).verify()


def test_parameters_beyond_four_kilobytes_come_in_a_table():
    few, many = (module.generate(sum_of_columns(n), None, {}) for n in (510, 511))
    assert (few.metadata["abi"], many.metadata["abi"]) == ("pointers", "table")
    assert few.code.count("ld.param.b64") == 512
    assert many.code.count("ld.param.b64") == 2


def test_a_column_that_is_not_used_is_not_read():
    instructions = body(generate("x + 1", "x y z"))
    assert len([i for i in instructions if i.startswith("ld.global")]) == len(
        [i for i in instructions if i.startswith("st.global")]
    )


def test_indices_have_64_bits():
    instructions = body(generate("x + y", "x y"))
    assert "setp.ge.u64" in instructions or "setp.lt.u64" in instructions
    assert not [i for i in instructions if i.startswith("setp") and "32" in i]


def test_truth_values_are_stored_as_bytes():
    assert "st.global.b8" in " ".join(body(generate("x < y", "x y")))


def test_a_large_program_is_optimised_less_and_says_so(monkeypatch):
    monkeypatch.setattr(module, "_LEVELS", ((100, 3), (10**9, 1)))
    small, large = (module.generate(chain(n), None, {}) for n in (10, 51))
    assert (small.metadata["opt_level"], large.metadata["opt_level"]) == (3, 1)


def test_options_that_there_are_not_are_refused():
    with pytest.raises(InputError, match="no option 'fastmath'") as caught:
        generate("x", "x", options={"fastmath": True})
    assert caught.value.code == "E-INPUT-011"


def test_complex_numbers_are_loaded_and_stored_as_pairs():
    artifact = module.generate(single("conjugate", "complex128"), None, {})
    assert artifact.program == single("conjugate", "complex128")
    assert artifact.metadata["split"] is True
    assert re.search(r"ld\.global\S*\.v2\.(b64|f64)", artifact.code)
    assert re.search(r"st\.global\S*\.v2\.(b64|f64)", artifact.code)


@pytest.mark.parametrize(("mode", "counts"), [("default", [4, 0, 1]), ("fast", [2, 2, 0])])
def test_recovering_infinities_is_a_branch_that_finite_products_jump_over(mode, counts):
    artifact = module.generate(single("mul", "complex128"), None, {"accuracy": mode})
    before, jump, behind = artifact.code.partition("setp.num")
    assert [before.count(f"{op}.rn.f64") for op in ("mul", "fma", "add")] == counts
    assert jump
    assert "selp" not in before
    assert "bra" in behind.split("selp")[0]


def test_an_operation_without_a_row_is_refused_by_name(monkeypatch):
    monkeypatch.delitem(LOWERINGS, "erf")
    with pytest.raises(CudaError, match="operation 'erf' is not lowered") as caught:
        generate("erf(x)", "x")
    assert caught.value.code == "E-CUDA-002"
