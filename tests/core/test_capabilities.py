"""What alkahest says it can do is what it can do."""

import json
import os

import pytest

import alkahest
from alkahest._plugins.builtin import BUILTIN_FEATURES, BY_EXPORT
from alkahest._plugins.registry import registry
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import Probe
from alkahest.testing.plugins import NullPlugin, isolated_plugins

BITS = {"cpu", "llvm_jit", "cuda", "groebner", "groebner_cuda"}


def no():
    return Probe(ok=False, detail="not here", code="E-CUDA-005")


@pytest.mark.skipif("ALKAHEST_EXPECT" not in os.environ, reason="this run promises nothing")
def test_exactly_the_promised_bits_are_true():
    promised = set(filter(None, os.environ["ALKAHEST_EXPECT"].split(",")))
    features = alkahest.capabilities()["features"]
    assert {bit for bit, value in features.items() if value} == promised


def test_bits_names_dir_and_all_agree_for_every_loaded_backend():
    features = alkahest.capabilities()["features"]
    names = {}
    for backend in registry.snapshot().backends.values():
        usable = all(features[feature.name] for feature in backend.features)
        names.update(dict.fromkeys(backend.exports, usable))
    for name in BY_EXPORT:
        names.setdefault(name, False)
    for name, usable in names.items():
        assert hasattr(alkahest, name) is usable
        assert (name in dir(alkahest)) is usable
        assert (name in alkahest.__all__) is usable


@pytest.mark.parametrize("usable", [True, False])
def test_one_predicate_decides_bit_attribute_dir_all_and_star_import(usable):
    exports = {"compile_null": "math:sqrt"}
    with isolated_plugins(
        NullPlugin(exports=exports) if usable else NullPlugin(probe=no, exports=exports)
    ):
        assert alkahest.capabilities()["features"]["null.compile"] is usable
        assert hasattr(alkahest, "compile_null") is usable
        assert ("compile_null" in dir(alkahest)) is usable
        assert ("compile_null" in alkahest.__all__) is usable
        namespace = {}
        exec("from alkahest import *", namespace)
        assert ("compile_null" in namespace) is usable
        assert "compile_null" not in vars(alkahest)
    assert not hasattr(alkahest, "compile_null")


def test_without_plugins_every_known_bit_is_false_and_no_cuda_name_is_anywhere():
    with isolated_plugins():
        answer = alkahest.capabilities()
        assert answer == {
            "contract_version": 4,
            "features": dict.fromkeys(sorted(BITS), False),
            "backends": {},
            "plugins": [],
            "primitives": [],
        }
        assert not {name for name in dir(alkahest) if "cuda" in name.lower()} - {"CudaError"}
        with pytest.raises(AttributeError, match=r"pip install 'alkahest\[nvptx\]==0.1.0'"):
            _ = alkahest.compile_cuda
        with pytest.raises(ImportError, match="compile_cuda"):
            exec("from alkahest import compile_cuda")


def test_the_table_of_our_bits_is_the_documented_one():
    assert set(BUILTIN_FEATURES) == BITS
    assert {f.backend for f in BUILTIN_FEATURES.values()} == {
        "cpu-reference",
        "cpu-jit",
        "nvptx",
        "groebner-cpu",
        "groebner-cuda",
    }


def test_the_answer_describes_backends_plugins_and_primitives():
    plugin = NullPlugin(dtypes=("float64", "float32"), refuses={"gamma": "too hard"}, group="nulls")
    with isolated_plugins(plugin):
        answer = alkahest.capabilities()
    assert answer["features"] == {**dict.fromkeys(sorted(BITS), False), "null.compile": True}
    assert answer["backends"] == {
        "null": {
            "summary": "gives zeros",
            "features": ["null.compile"],
            "reachable": True,
            "detail": "needs nothing",
            "placement": "host",
            "group": "nulls",
            "priority": 50,
            "distribution": "",
        }
    }
    assert answer["plugins"] == [
        {
            "name": "null",
            "distribution": "",
            "version": "",
            "status": "active",
            "detail": "",
            "hooks": [
                "alkahest_codegen",
                "alkahest_devices",
                "alkahest_make_evaluator",
                "alkahest_register_backends",
            ],
            "backends": ["null"],
        }
    ]
    names = [entry["name"] for entry in answer["primitives"]]
    assert names == sorted(OPS.keys() - {"gamma"})
    assert answer["primitives"][0]["backends"] == {"null": ["float32", "float64"]}


def test_an_unreachable_backend_is_listed_with_its_reason_and_offers_no_primitive():
    with isolated_plugins(NullPlugin(probe=no), NullPlugin(backend="other")):
        answer = alkahest.capabilities()
    assert answer["backends"]["null"]["reachable"] is False
    assert answer["backends"]["null"]["detail"] == "[E-CUDA-005] not here"
    assert answer["features"]["null.compile"] is False
    assert {tuple(entry["backends"]) for entry in answer["primitives"]} == {("other",)}
    assert len(answer["primitives"]) == len(OPS)
    assert answer["primitives"][0]["backends"]["other"] == sorted(DTYPES)


def test_a_probe_that_fails_badly_leaves_the_other_answers():
    def bad():
        raise SystemExit("in a probe")

    with isolated_plugins(NullPlugin(probe=bad), NullPlugin(backend="other")):
        answer = alkahest.capabilities()
    assert (answer["features"]["null.compile"], answer["features"]["other.compile"]) == (
        False,
        True,
    )
    assert "SystemExit: in a probe" in answer["backends"]["null"]["detail"]


def test_the_answer_is_json_and_a_new_one_each_time():
    with isolated_plugins(NullPlugin(), NullPlugin(backend="other", probe=no)):
        first = alkahest.capabilities()
        assert json.loads(json.dumps(first)) == first
        first["features"]["null.compile"] = False
        first["primitives"].clear()
        first["backends"]["null"]["features"].clear()
        first["plugins"][0]["hooks"].clear()
        second = alkahest.capabilities()
    assert second["features"]["null.compile"] is True
    assert second["primitives"]
    assert second["backends"]["null"]["features"] == ["null.compile"]
    assert second["plugins"][0]["hooks"]


def test_verifying_makes_the_promised_calls():
    calls = []

    def witness():
        calls.append(1)
        return Probe(ok=False, detail="the launch failed", code="E-CUDA-006")

    with isolated_plugins(NullPlugin(witness=witness), NullPlugin(backend="other")):
        assert alkahest.capabilities()["features"]["null.compile"] is True
        assert calls == []
        verified = alkahest.capabilities(verify=True)
    assert calls == [1]
    assert verified["features"]["null.compile"] is False
    assert verified["features"]["other.compile"] is True
    assert verified["backends"]["null"]["detail"] == "[E-CUDA-006] the launch failed"
    assert {tuple(entry["backends"]) for entry in verified["primitives"]} == {("other",)}
