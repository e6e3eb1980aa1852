"""Which backend compiles, and why none does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import compile_expr
from alkahest.errors import CodegenError, CudaError
from alkahest.expr import ExprPool
from alkahest.plugin import Probe
from alkahest.program import lower
from alkahest.selection import choose, find, refusal
from alkahest.testing.plugins import NullPlugin, isolated_plugins

pool = ExprPool()
x = pool.symbol("x")
SUM = lower([x + 1], [x])
SINE = lower([pool.func("sin", [x])], [x])


def no() -> Probe:
    return Probe(ok=False, detail="out of order")


@pytest.fixture(autouse=True)
def no_preference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALKAHEST_BACKEND", raising=False)


@pytest.fixture
def three() -> Iterator[None]:
    """A slow and a fast backend of one group, and one with a GPU."""
    with isolated_plugins(
        NullPlugin(backend="slow", group="cpu", priority=0),
        NullPlugin(backend="fast", group="cpu", priority=50, refuses={"sin": "too round"}),
        NullPlugin(
            backend="gpu",
            placement="cuda",
            priority=100,
            refusal_code="E-CUDA-002",
            dtypes=("float64",),
        ),
    ):
        yield


@pytest.mark.usefixtures("three")
class TestChoice:
    def test_host_columns_go_to_the_best_host_backend(self) -> None:
        assert choose(SUM).name == "fast"

    def test_device_columns_go_where_they_are(self) -> None:
        assert choose(SUM, placement="cuda").name == "gpu"

    def test_a_backend_that_refuses_is_passed_over(self) -> None:
        assert choose(SINE).name == "slow"

    def test_a_name_is_taken_literally(self) -> None:
        assert choose(SUM, "slow").name == "slow"
        assert choose(SUM, "gpu").name == "gpu"

    def test_a_group_stands_for_its_best_member_that_lowers(self) -> None:
        assert [info.name for info in find("cpu")] == ["fast", "slow"]
        assert choose(SUM, "cpu").name == "fast"
        assert choose(SINE, "cpu").name == "slow"

    def test_a_named_backend_never_degrades(self) -> None:
        with pytest.raises(CodegenError) as caught:
            choose(SINE, "fast")
        assert caught.value.code == "E-JIT-001"
        assert "'fast'" in caught.value.message
        assert "sin: too round" in caught.value.message
        assert caught.value.remediation == "Use a backend that can: gpu, slow."

    def test_a_refusal_has_the_backends_own_code_and_class(self) -> None:
        with pytest.raises(CudaError) as caught:
            choose(lower([x + 1], [x], "float32"), "gpu")
        assert caught.value.code == "E-CUDA-002"
        assert "no float32 programs, only float64" in caught.value.message

    def test_an_unknown_name_lists_the_loaded_ones(self) -> None:
        with refused("E-JIT-009", "no backend 'tpu' is loaded; loaded: gpu, fast, slow"):
            choose(SUM, "tpu")

    def test_the_environment_names_the_backend_where_the_caller_does_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ALKAHEST_BACKEND", "slow")
        assert compile_expr(x, [x]).backend == "slow"
        assert compile_expr(x, [x], backend="fast").backend == "fast"
        assert compile_expr(x, [x], backend="auto").backend == "fast"


def test_a_known_backend_that_is_not_installed_names_its_extra() -> None:
    with isolated_plugins():
        for name, extra in (("nvptx", "nvptx"), ("cpu", "cpu"), ("cpu-jit", "jit")):
            with pytest.raises(CodegenError) as caught:
                compile_expr(x, [x], backend=name)
            assert caught.value.code == "E-JIT-009"
            assert f"pip install 'alkahest[{extra}]==0.1.0'" in caught.value.remediation


def test_without_any_backend_the_remedy_is_to_install_one() -> None:
    with isolated_plugins(), refused("E-JIT-004", "no backend is loaded"):
        compile_expr(x, [x])


def test_automatic_selection_says_why_each_backend_was_passed_over() -> None:
    with (
        isolated_plugins(
            NullPlugin(backend="broken", probe=no),
            NullPlugin(backend="idle", devices=0),
            NullPlugin(backend="plain", refuses={"sin": "too round"}),
        ),
        pytest.raises(CodegenError) as caught,
    ):
        choose(SINE)
    assert caught.value.code == "E-JIT-004"
    for part in ("broken: out of order", "idle: no device here", "plain: sin: too round"):
        assert part in caught.value.message


def test_a_gpu_is_used_for_host_columns_when_there_is_nothing_else() -> None:
    with isolated_plugins(NullPlugin(backend="gpu", placement="cuda")):
        assert choose(SUM).name == "gpu"
    with (
        isolated_plugins(NullPlugin(backend="gpu", placement="cuda", devices=0)),
        refused("E-JIT-004"),
    ):
        choose(SUM)


def test_a_named_backend_compiles_even_where_its_probe_says_no() -> None:
    with isolated_plugins(NullPlugin(backend="broken", probe=no)):
        assert choose(SUM, "broken").name == "broken"


def test_a_group_prefers_members_that_work_here() -> None:
    with isolated_plugins(
        NullPlugin(backend="good", group="cpu", priority=0),
        NullPlugin(backend="broken", group="cpu", priority=9, probe=no),
    ):
        assert choose(SUM, "cpu").name == "good"


def test_an_operation_that_a_backend_does_not_know_is_refused_by_name() -> None:
    with isolated_plugins(Arithmetic()):
        (info,) = find("arithmetic")
        assert refusal(info, SUM) is None
        assert refusal(info, SINE) == "sin: it is not arithmetic"
        reason = refusal(info, lower([pool.func("cos", [x])], [x]))
        assert reason is not None
        assert reason.startswith("cos: unknown to ")


@pytest.mark.filterwarnings("ignore::alkahest.errors.PluginLoadWarning")
def test_a_backend_with_broken_tables_is_passed_over_and_named_when_nothing_else_fits() -> None:
    broken = NullPlugin(backend="broken", priority=90, dtypes=("float16",))
    with isolated_plugins(broken, NullPlugin(backend="sound")):
        assert choose(SUM).name == "sound"
    with isolated_plugins(broken), pytest.raises(CodegenError, match="float16") as caught:
        choose(SUM)
    assert caught.value.code == "E-JIT-004"
