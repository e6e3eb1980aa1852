"""One predicate: a bit, the names that belong to it, and what is said where they are missing."""

import pytest

from alkahest._plugins.registry import Registry
from alkahest.errors import CudaError, PluginError
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import BackendInfo, Feature, Probe, Support, hookimpl


class Custom:
    """A plugin with one backend described in the test."""

    ALKAHEST_PLUGIN_API = 1

    def __init__(self, **fields):
        self.fields = {"name": "b", "features": (Feature(name="b.one", probe=yes),), **fields}

    @hookimpl
    def alkahest_register_backends(self):
        return [BackendInfo(**self.fields)]


def yes():
    return Probe(ok=True, detail="seen")


def no():
    return Probe(ok=False, detail="libdevice was not found", code="E-CUDA-005")


def raising(error):
    def probe():
        raise error

    return probe


@pytest.mark.parametrize(
    ("probe", "detail", "code"),
    [
        (no, "libdevice was not found", "E-CUDA-005"),
        (raising(OSError("no file")), "the probe of 'null.compile' raised OSError: no file", ""),
        (raising(SystemExit(2)), "the probe of 'null.compile' raised SystemExit: 2", ""),
        (raising(CudaError("E-CUDA-001", "no NVPTX target")), "no NVPTX target", "E-CUDA-001"),
        (lambda: None, "the probe of 'null.compile' returned None instead of a Probe", ""),
        (lambda: "yes", "the probe of 'null.compile' returned 'yes' instead of a Probe", ""),
        (lambda: True, "the probe of 'null.compile' returned True instead of a Probe", ""),
        (lambda: Probe(ok="yes"), "raised TypeError", ""),
    ],
)
def test_anything_but_a_yes_is_a_no_with_the_reason(registry_of, null, probe, detail, code):
    registry = registry_of(null(probe=probe), null(backend="other"))
    answer = registry.probe("null.compile")
    assert not answer.ok
    assert detail in answer.detail
    assert answer.code == code
    assert not registry.reachable("null").ok
    assert registry.probe("other.compile").ok


def test_an_interrupted_probe_has_not_answered(registry_of, null):
    answers = iter([KeyboardInterrupt, None])

    def probe():
        error = next(answers)
        if error:
            raise error
        return Probe(ok=True)

    registry = registry_of(null(probe=probe))
    with pytest.raises(KeyboardInterrupt):
        registry.probe("null.compile")
    assert registry.probe("null.compile").ok


def test_asking_for_one_bit_runs_its_own_probe_once_and_no_other(registry_of, null):
    asked = []

    def probe(name):
        return lambda: asked.append(name) or Probe(ok=True)

    registry = registry_of(null(backend="a", probe=probe("a")), null(backend="b", probe=probe("b")))
    assert registry.probe("a.compile") is registry.probe("a.compile")
    assert asked == ["a"]
    assert registry.probe("unknown.bit").detail == "no loaded plugin has the feature 'unknown.bit'"
    assert asked == ["a"]


def test_a_name_runs_the_probe_of_its_own_backend_only(registry_of, null):
    asked = []
    exports = {"compile_a": "math:sqrt"}
    registry = registry_of(
        null(backend="a", exports=exports),
        null(backend="b", probe=lambda: asked.append("b") or Probe(ok=True)),
    )
    assert registry.resolve_export("compile_a")(4) == 2
    with pytest.raises(AttributeError, match="module 'alkahest' has no attribute 'compyle_a'"):
        registry.resolve_export("compyle_a")
    assert asked == []


def test_a_probe_that_asks_about_features_is_a_no(null):
    registry = Registry(list)
    registry.register(null(backend="a", probe=lambda: registry.probe("b.compile")))
    registry.register(null(backend="b"))
    answer = registry.probe("a.compile")
    assert (answer.ok, answer.code) == (False, "E-PLUGIN-004")
    assert "the probe of 'a.compile' asked alkahest" in answer.detail
    assert registry.probe("b.compile").ok


def test_names_appear_only_while_every_feature_of_their_backend_passes(registry_of, null):
    answers = {"b.one": Probe(ok=True), "b.two": Probe(ok=False, detail="second is not here")}
    features = tuple(Feature(name=name, probe=lambda name=name: answers[name]) for name in answers)
    plugin = Custom(features=features, exports={"compile_b": "math:sqrt"})
    registry = registry_of(plugin)
    assert registry.probe("b.one").ok
    assert registry.reachable("b").detail == "second is not here"
    assert registry.exports() == {}
    with pytest.raises(AttributeError, match="second is not here"):
        registry.resolve_export("compile_b")
    answers["b.two"] = Probe(ok=True)
    registry.refresh()
    assert registry.exports() == {"compile_b": "math:sqrt"}


@pytest.mark.parametrize("target", ["module_that_is_missing:f", "math:no_such_function"])
def test_a_bit_is_not_true_while_a_name_that_comes_with_it_cannot_be_imported(
    registry_of, null, target
):
    registry = registry_of(null(exports={"compile_b": target}))
    answer = registry.probe("null.compile")
    assert not answer.ok
    assert target.strip("f").split(":")[target.startswith("math")] in answer.detail
    assert registry.exports() == {}


def test_a_missing_name_tells_code_reason_and_remedy(registry_of, null):
    registry = registry_of(null(probe=no, exports={"compile_null": "math:sqrt"}))
    with pytest.raises(AttributeError) as caught:
        registry.resolve_export("compile_null")
    text = str(caught.value)
    assert text.startswith("module 'alkahest' has no attribute 'compile_null': plugin 'null' (")
    assert "backend 'null' does not work here: [E-CUDA-005] libdevice was not found" in text
    assert "Remediation: pip install nvidia-nvvm" in text
    assert caught.value.name == "compile_null"


def test_a_known_name_of_a_plugin_that_is_not_installed_names_the_extra(registry_of):
    with pytest.raises(AttributeError, match=r"pip install 'alkahest\[nvptx\]==0.1.0'"):
        registry_of().resolve_export("compile_cuda")
    answer = registry_of().probe("llvm_jit")
    assert answer.detail == "alkahest-cpu is not installed; pip install 'alkahest[jit]==0.1.0'"


def test_a_known_name_of_a_disabled_plugin_says_what_disabled_it(site, source, monkeypatch):
    site.install("alkahest-nvptx", {"nvptx": "nvptx_plugin"}, {"nvptx_plugin": "1/0"})
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "nvptx")
    with pytest.raises(AttributeError) as caught:
        site.registry().resolve_export("cuda_device_count")
    assert "plugin 'nvptx' (alkahest-nvptx 1.0) is disabled: by ALKAHEST_DISABLE_PLUGINS" in str(
        caught.value
    )


def test_a_bit_that_a_loaded_plugin_of_ours_does_not_offer_names_the_extra(site, source):
    text = source("cpu-reference", "cpu")
    site.install("alkahest-cpu", {"cpu": "cpu_plugin"}, {"cpu_plugin": text})
    answer = site.registry().probe("llvm_jit")
    assert answer.detail == (
        "plugin 'cpu' (alkahest-cpu 1.0) is installed and does not offer it; "
        "if a part of it is missing: pip install 'alkahest[jit]==0.1.0'"
    )


def test_tables_are_completed_with_what_their_author_could_not_know(site, source):
    text = source("toy").replace("exports={}", "support=support")
    text += (
        "from alkahest.plugin import Support\n"
        "def support():\n"
        "    return Support(lowers={'add': ['float64'], 'of_the_future': {'float64'}},"
        " refuses={'erf': 'too hard'})\n"
    )
    site.install("toy-dist", {"toy": "toy_plugin"}, {"toy_plugin": text}, "0.7")
    registry = site.registry()
    support = registry.support("toy")
    assert support.lowers == {"add": frozenset({"float64"})}
    assert support.refuses["erf"] == "too hard"
    assert support.refuses["sin"] == "unknown to toy-dist 0.7"
    assert support.refuses.keys() | support.lowers.keys() == OPS.keys()
    assert registry.support("toy") is support


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (raising(ImportError("no llvmlite")), "ImportError: no llvmlite"),
        (dict, "it returned {} instead of Support"),
        (lambda: Support(lowers={"add": {"float16"}}), "add has no dtype"),
        (lambda: Support(lowers={"add": "float64"}), "add has no dtype"),
        (lambda: Support(lowers=["add"]), "AttributeError"),
    ],
)
def test_tables_that_do_not_load_make_the_bit_false_and_are_an_error_when_needed(
    registry_of, support, message
):
    registry = registry_of(Custom(support=support))
    answer = registry.probe("b.one")
    assert (answer.ok, answer.code) == (False, "E-PLUGIN-003")
    with pytest.raises(PluginError) as caught:
        registry.support("b")
    assert caught.value.code == "E-PLUGIN-003"
    assert "plugin" in caught.value.message
    assert message in caught.value.message


def test_a_backend_without_tables_can_be_reachable_and_has_no_support(registry_of):
    registry = registry_of(Custom())
    assert registry.reachable("b").ok
    with pytest.raises(PluginError, match="evaluates no programs"):
        registry.support("b")


def test_the_null_backend_lowers_everything(registry_of, null):
    support = registry_of(null()).support("null")
    assert support.lowers == dict.fromkeys(OPS, frozenset(DTYPES))


def test_a_witness_is_called_only_when_asked_and_after_a_yes(registry_of, null):
    called = []

    def witness():
        called.append(1)
        return Probe(ok=False, detail="the launch failed", code="E-CUDA-006")

    good = registry_of(null(witness=witness))
    assert good.probe("null.compile").ok
    assert called == []
    assert good.witness("null.compile").code == "E-CUDA-006"
    assert called == [1]
    assert good.probe("null.compile").ok
    bad = registry_of(null(witness=witness, probe=no))
    assert bad.witness("null.compile").code == "E-CUDA-005"
    assert called == [1]
    assert registry_of(null()).witness("null.compile").ok


def test_a_witness_may_ask_what_else_works(null):
    registry = Registry(list)
    registry.register(null(backend="a", witness=lambda: registry.probe("b.compile")))
    registry.register(null(backend="b"))
    assert registry.witness("a.compile").ok


def test_questions_about_unknown_backends(registry_of):
    assert registry_of().reachable("b").detail == "no backend named 'b' is loaded"
    with pytest.raises(KeyError):
        registry_of().support("b")
