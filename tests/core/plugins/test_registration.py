"""The rules of registration: each broken one is named, and only its plugin suffers."""

import types

import pytest

from alkahest._plugins.registry import Registry
from alkahest.errors import PluginError, PluginLoadWarning
from alkahest.plugin import BackendInfo, Feature, Probe, Support, hookimpl


def yes():
    return Probe(ok=True)


def describing(answer):
    """A plugin whose registration hook returns ``answer``."""
    plugin = types.ModuleType("describing")
    plugin.ALKAHEST_PLUGIN_API = 1

    @hookimpl
    def alkahest_register_backends():
        return answer

    plugin.alkahest_register_backends = alkahest_register_backends
    return plugin


def info(name="b", **fields):
    fields.setdefault("features", (Feature(name=f"{name}.compile", probe=yes),))
    return BackendInfo(name=name, **fields)


def refusal(plugin, *others):
    """What register() says about a plugin, after ``others``."""
    registry = Registry(list)
    for number, other in enumerate(others):
        registry.register(other, f"other{number}")
    with pytest.raises(PluginError) as caught:
        registry.register(plugin, "mine")
    assert caught.value.code == "E-PLUGIN-002"
    assert "mine" not in {record.name for record in registry.snapshot().records}
    return caught.value.message


@pytest.mark.parametrize("declared", [99, 0, -1, None, "abc", True, 1.0])
def test_another_interface_version_is_refused_with_both_numbers(site, source, declared):
    text = source("old", before="import sys; calls = []").replace(
        "ALKAHEST_PLUGIN_API = 1", f"ALKAHEST_PLUGIN_API = {declared!r}"
    )
    text += "\ndef __getattr__(name):\n    calls.append(name)\n    raise AttributeError(name)\n"
    site.install("old-dist", {"old": "old_plugin"}, {"old_plugin": text})
    site.install("toy", {"toy": "toy_plugin"}, {"toy_plugin": source("toy")})
    registry = site.registry()
    with pytest.warns(PluginLoadWarning, match="incompatible"):
        old, toy = registry.snapshot().records
    assert (old.status, toy.status) == ("incompatible", "active")
    assert f"ALKAHEST_PLUGIN_API {declared!r} and alkahest 0.1.0 speaks 1 to 2" in old.detail
    # No command for ourselves: unpinned, the name on the public index is another project's.
    remedy = "upgrade alkahest" if declared == 99 else "pip install --upgrade old-dist"
    assert old.detail.endswith(remedy)
    assert __import__("old_plugin").calls == []


def test_a_plugin_that_declares_no_interface_version_is_refused():
    plugin = describing([info()])
    del plugin.ALKAHEST_PLUGIN_API
    assert "ALKAHEST_PLUGIN_API None" in refusal(plugin)


def test_an_entry_point_that_names_none_is_refused(site):
    site.install("empty", {"empty": "empty_plugin:plugin"}, {"empty_plugin": "plugin = None"})
    with pytest.warns(PluginLoadWarning, match="ALKAHEST_PLUGIN_API None"):
        (record,) = site.registry().snapshot().records
    assert record.status == "incompatible"


def test_an_unknown_hook_is_refused_with_the_likely_name():
    plugin = describing([info()])
    plugin.alkahest_codgen = hookimpl(lambda backend: None)
    assert "unknown hook 'alkahest_codgen'; did you mean 'alkahest_codegen'?" in refusal(plugin)


def test_an_optional_unknown_hook_is_let_through():
    plugin = describing([info()])
    plugin.alkahest_of_the_future = hookimpl(optionalhook=True)(lambda: None)
    record = Registry(list).register(plugin)
    assert record.hooks == ("alkahest_register_backends",)


def test_a_hook_without_its_mark_is_refused():
    plugin = describing([info()])
    plugin.alkahest_codegen = lambda backend, program: None
    assert "alkahest_codegen is not marked with alkahest.plugin.hookimpl" in refusal(plugin)


def test_an_argument_that_the_hook_does_not_have_is_refused():
    plugin = describing([info()])
    plugin.alkahest_devices = hookimpl(lambda backend, kind: ())
    assert "kind" in refusal(plugin)


def test_a_parameter_with_a_default_is_warned_about():
    plugin = describing([info()])
    plugin.alkahest_codegen = hookimpl(lambda backend, program, options=None: None)
    registry = Registry(list)
    expected = "alkahest_codegen gives 'options' a default, so alkahest never passes it"
    with pytest.warns(PluginLoadWarning, match=expected):
        record = registry.register(plugin)
    assert record.status == "active"
    assert record.detail == expected


def test_a_plugin_may_have_no_backends():
    plugin = types.ModuleType("only_commands")
    plugin.ALKAHEST_PLUGIN_API = 1
    plugin.alkahest_commands = hookimpl(lambda: ())
    record = Registry(list).register(plugin)
    assert (record.status, record.backends) == ("active", ())
    assert Registry(list).register(describing(())).backends == ()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returned None"),
        (7, "returned 7, not an iterable"),
        ("toy", "gave 't', not a BackendInfo"),
        ([{"name": "toy"}], "not a BackendInfo"),
        ([info(features=())], "names no feature"),
        ([info(features=("b.compile",))], "is not a Feature"),
        ([info(features=(Feature(name="b.compile", probe=True),))], "not callable"),
        ([info(features=(Feature(name="b", probe=yes),))], "needs a dotted name"),
        ([info(features=(Feature(name="B.x y", probe=yes),))], "needs a dotted name"),
        ([info(support=Support(lowers={}))], "support is neither callable nor None"),
        ([info(exports=[("f", "m:f")])], "exports is not a mapping"),
        ([info(exports={"f": "m.f"})], "export 'f': 'm.f' is not 'module:attribute'"),
        ([info(exports={"_f": "m:f"})], "export '_f' is not a public name"),
        ([info(exports={"f g": "m:f"})], "export 'f g' is not a public name"),
        ([info(refusal_code="E-CUDA-999")], "'E-CUDA-999' is no code for refusals"),
        ([info(refusal_code="E-IO-001")], "'E-IO-001' is no code for refusals"),
        ([info(), info()], "backend 'b' is described twice"),
        (
            [info("b"), info("c", features=(Feature(name="b.compile", probe=yes),))],
            "feature 'b.compile' is described twice",
        ),
    ],
)
def test_a_descriptor_that_breaks_a_rule_is_refused(answer, message):
    assert message in refusal(describing(answer))


def test_what_registration_raises_is_kept_and_is_no_conflict():
    plugin = describing(None)

    @hookimpl
    def alkahest_register_backends():
        yield {}["missing"]

    plugin.alkahest_register_backends = alkahest_register_backends
    registry = Registry(list)
    with pytest.raises(PluginError, match="KeyError: 'missing'") as caught:
        registry.register(plugin)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        (info("taken"), "backend 'taken' already belongs to plugin 'other0'"),
        (
            info("b", features=(Feature(name="taken.compile", probe=yes),)),
            "feature 'taken.compile' already belongs to plugin 'other0'",
        ),
        (
            info("b", exports={"compile_taken": "m:f"}),
            "export 'compile_taken' already belongs to plugin 'other0'",
        ),
        (info("many"), "backend 'many' is the name of a group that plugin 'other0'"),
        (info("b", group="taken"), "group 'taken' is the name of a backend of plugin 'other0'"),
    ],
)
def test_a_name_that_is_taken_is_a_conflict_naming_its_owner(mine, message):
    first = describing([info("taken", group="many", exports={"compile_taken": "m:f"})])
    assert message in refusal(describing([mine]), first)


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        (info("auto"), "backend name 'auto' already has a meaning"),
        (info("cpu"), "backend name 'cpu' already has a meaning"),
        (info(exports={"sin": "m:f"}), "export 'sin' already is a name of alkahest itself"),
        (info(exports={"plugin": "m:f"}), "export 'plugin' already is a name of alkahest itself"),
        (
            info(exports={"compile_cuda": "m:f"}),
            "export 'compile_cuda' is reserved for backend 'nvptx' of distribution alkahest-nvptx",
        ),
        (
            info(features=(Feature(name="cuda", probe=yes),)),
            "feature 'cuda' is reserved for backend 'nvptx' of distribution alkahest-nvptx",
        ),
    ],
)
def test_names_with_a_meaning_in_core_are_not_given_away(mine, message):
    assert message in refusal(describing([mine]))


def test_a_foreign_distribution_cannot_take_a_known_backend_name(site, source):
    site.install("aaa-fast", {"aaa": "aaa_plugin"}, {"aaa_plugin": source("nvptx", "aaa.compile")})
    registry = site.registry()
    with pytest.warns(PluginLoadWarning, match=r"'aaa' \(aaa-fast 1.0\).*alkahest-nvptx"):
        snapshot = registry.snapshot()
    assert snapshot.records[0].status == "conflict"
    assert snapshot.backends == {}


def test_our_plugin_comes_before_a_stranger_of_the_same_name(site, source):
    site.install("aaa-fast", {"cpu": "aaa_plugin"}, {"aaa_plugin": source("aaa")})
    site.install(
        "alkahest-cpu", {"cpu": "zzz_plugin"}, {"zzz_plugin": source("cpu-reference", "cpu")}
    )
    registry = site.registry()
    with pytest.warns(PluginLoadWarning) as caught:
        ours, other = registry.snapshot().records
    assert (ours.distribution, ours.status) == ("alkahest-cpu", "active")
    assert (other.distribution, other.status) == ("aaa-fast", "conflict")
    assert "plugin 'cpu' (aaa-fast 1.0) is not used (conflict)" in str(caught[0].message)
    assert "plugin 'cpu' (alkahest-cpu 1.0) already has the name 'cpu'" in str(caught[0].message)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_strangers_with_one_backend_the_first_by_name_wins(site, source, reverse):
    pair = [("dist-a", "a"), ("dist-b", "b")]
    for distribution, name in reversed(pair) if reverse else pair:
        module = f"{name}_plugin"
        site.install(distribution, {name: module}, {module: source("same", f"{name}.compile")})
    registry = site.registry()
    with pytest.warns(PluginLoadWarning, match=r"\(dist-b 1.0\).*\(dist-a 1.0\)"):
        snapshot = registry.snapshot()
    assert snapshot.owner("same").distribution == "dist-a"
    assert [str(record.status) for record in snapshot.records] == ["active", "conflict"]
