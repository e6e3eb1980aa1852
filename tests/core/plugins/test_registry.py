"""Loading: lazy, once, from any thread, and past every way in which a plugin can be broken."""

import sys
import threading
import warnings

import pytest

from alkahest._plugins.registry import Registry
from alkahest.errors import PluginError, PluginLoadWarning

GOOD = {"toy": "toy_plugin"}

DEATHS = {
    "missing_module": ("import module_that_is_missing", "No module named 'module_that_is_missing'"),
    "missing_library": ("raise OSError('libcuda.so.1')", "OSError: libcuda.so.1"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "panic": ("class Panic(BaseException): pass\nraise Panic('rust')", "Panic: rust"),
    "syntax": ("def", "SyntaxError"),
    "unprintable": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        "Odd: <exception str() failed>",
    ),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_plugin_that_dies_on_import_is_reported_and_others_load(site, source, death):
    text, detail = DEATHS[death]
    site.install("bad-dist", {"bad": "bad_plugin"}, {"bad_plugin": text}, "0.3")
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    registry = site.registry()
    with pytest.warns(
        PluginLoadWarning, match=r"plugin 'bad' \(bad-dist 0.3\) is not used \(failed\)"
    ):
        snapshot = registry.snapshot()
    bad, toy = snapshot.records
    assert (bad.status, toy.status) == ("failed", "active")
    assert detail in bad.detail
    assert "\n" not in bad.detail
    assert isinstance(snapshot.errors[bad], BaseException)
    assert snapshot.errors[bad].__traceback__ is not None
    assert toy not in snapshot.errors


@pytest.mark.parametrize("death", ["raise SystemExit", "raise KeyError('x')", "return 1/0"])
def test_a_plugin_that_dies_in_registration_is_invalid_and_others_load(site, source, death):
    text = source("bad").replace("    feature =", f"    {death}\n    feature =")
    site.install("bad-dist", {"bad": "bad_plugin"}, {"bad_plugin": text})
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    with pytest.warns(PluginLoadWarning, match=r"'bad'.* is not used \(invalid\)"):
        snapshot = site.registry().snapshot()
    assert [str(record.status) for record in snapshot.records] == ["invalid", "active"]
    assert list(snapshot.backends) == ["toy"]


def test_an_interrupt_is_not_swallowed_and_the_next_question_loads(site, source):
    text = source(
        "toy", before="import builtins\nif not hasattr(builtins, 'again'): raise KeyboardInterrupt"
    )
    site.install("toy", GOOD, {"toy_plugin": text})
    registry = site.registry()
    with pytest.raises(KeyboardInterrupt):
        registry.snapshot()
    import builtins

    builtins.again = True
    try:
        assert list(registry.snapshot().backends) == ["toy"]
    finally:
        del builtins.again


def test_eight_threads_load_once_and_see_one_snapshot(site, source):
    text = source("toy", before="import time; time.sleep(0.05); registered = []").replace(
        "    feature =", "    registered.append(1)\n    feature ="
    )
    site.install("toy", GOOD, {"toy_plugin": text})
    registry = site.registry()
    barrier = threading.Barrier(8)
    seen = []

    def ask():
        barrier.wait()
        seen.append(registry.snapshot())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(snapshot) for snapshot in seen}) == 1
    assert sys.modules["toy_plugin"].registered == [1]


def test_a_thread_that_imports_the_plugin_meanwhile_does_not_deadlock(site, source):
    # The importing thread holds the module's import lock while it asks; had the loading thread
    # held our lock across its import of the same module, both would wait for ever.
    text = source(
        "toy",
        before=(
            "import sys, time\n"
            "test = sys.modules['deadlock_test']\n"
            "test.importing.set(); time.sleep(0.05)\n"
            "try: test.registry.snapshot()\n"
            "except ValueError as error: test.seen.append(error.code)"
        ),
    )
    site.install("toy", GOOD, {"toy_plugin": text})
    (site.folder / "deadlock_test.py").write_text(
        "import threading\nimporting = threading.Event()\nseen = []\nregistry = None\n"
    )
    test = __import__("deadlock_test")
    test.registry = site.registry()
    importer = threading.Thread(target=__import__, args=("toy_plugin",), daemon=True)
    importer.start()
    assert test.importing.wait(5)
    loader = threading.Thread(target=test.registry.snapshot, daemon=True)
    loader.start()
    for thread in (importer, loader):
        thread.join(10)
        assert not thread.is_alive()
    assert test.seen == ["E-PLUGIN-004"]
    assert list(test.registry.snapshot().backends) == ["toy"]


@pytest.mark.parametrize(
    "question",
    [
        "alkahest.capabilities()",
        "alkahest.compile_cuda",
        "from alkahest import compile_cuda",
        "alkahest.register(alkahest)",
        "dir(alkahest)",
    ],
)
def test_a_plugin_that_asks_while_it_is_loaded_gets_an_error(site, source, monkeypatch, question):
    registry = site.registry()
    monkeypatch.setattr("alkahest._plugins.registry.registry", registry)
    for name, text in {
        "a": source("a", before=f"import alkahest\n{question}"),
        "b": source("b").replace(
            "    feature =", f"    import alkahest\n    {question}\n    feature ="
        ),
    }.items():
        site.install(f"dist-{name}", {name: f"{name}_plugin"}, {f"{name}_plugin": text})
    with pytest.warns(PluginLoadWarning):
        a, b = registry.snapshot().records
    assert (a.status, b.status) == ("failed", "invalid")
    assert "[E-PLUGIN-004] the import of plugin 'a' asked alkahest about plugins" in a.detail
    assert "[E-PLUGIN-004] alkahest_register_backends of plugin 'b'" in b.detail


def test_importing_a_plugin_that_uses_a_plugins_name_at_its_top_says_so(site, source, monkeypatch):
    registry = site.registry()
    monkeypatch.setattr("alkahest._plugins.registry.registry", registry)
    text = source("toy", before="import alkahest\nalkahest.compile_cuda")
    site.install("toy", GOOD, {"toy_plugin": text})
    with pytest.raises(PluginError, match="'toy' used a plugin-provided name") as caught:
        __import__("toy_plugin")
    assert caught.value.code == "E-PLUGIN-004"
    assert "inside functions, and not in probes" in caught.value.remediation


def test_modules_of_core_can_be_imported_from_the_package_while_plugins_load(
    site, source, monkeypatch
):
    registry = site.registry()
    monkeypatch.setattr("alkahest._plugins.registry.registry", registry)
    text = source("toy", before="from alkahest import errors, hookspecs, plugin, testing")
    site.install("toy", GOOD, {"toy_plugin": text})
    assert [str(record.status) for record in registry.snapshot().records] == ["active"]


def test_warnings_turned_into_errors_do_not_lose_the_snapshot(site, source):
    site.install("bad", {"bad": "bad_plugin"}, {"bad_plugin": "1/0"})
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    registry = site.registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PluginLoadWarning, match="ALKAHEST_DISABLE_PLUGINS=bad leaves it out"):
            registry.snapshot()
        assert list(registry.snapshot().backends) == ["toy"]


def test_of_plugins_that_share_a_name_the_warning_names_the_distribution(site, source, monkeypatch):
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    site.install("twin-plug", {"toy": "twin_plugin"}, {"twin_plugin": "1/0"})
    with pytest.warns(PluginLoadWarning, match="ALKAHEST_DISABLE_PLUGINS=twin-plug leaves it out"):
        assert list(site.registry().snapshot().backends) == ["toy"]
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "twin-plug")
    assert list(site.registry().snapshot().backends) == ["toy"]


def test_a_warning_points_at_the_code_that_asked(site):
    site.install("bad", {"bad": "bad_plugin"}, {"bad_plugin": "1/0"})
    registry = site.registry()
    with pytest.warns(PluginLoadWarning) as caught:
        registry.probe("cpu")
    assert caught[0].filename == __file__


def test_the_strict_switch_names_every_troubled_plugin_every_time(site, source, monkeypatch):
    site.install("bad-a", {"a": "a_plugin"}, {"a_plugin": "1/0"})
    site.install("bad-b", {"b": "b_plugin"}, {"b_plugin": "raise SystemExit"})
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    monkeypatch.setenv("ALKAHEST_STRICT_PLUGINS", "1")
    registry = site.registry()
    with pytest.warns(PluginLoadWarning), pytest.raises(PluginError) as caught:
        registry.snapshot()
    assert caught.value.code == "E-PLUGIN-001"
    for part in ("plugin 'a' (bad-a 1.0) is failed: ZeroDivisionError", "plugin 'b' (bad-b 1.0)"):
        assert part in caught.value.message
    assert "toy" not in caught.value.message
    kinds = {type(error) for error in caught.value.__cause__.exceptions}
    assert kinds == {ZeroDivisionError, SystemExit}
    with pytest.raises(PluginError, match="E-PLUGIN-001"):
        registry.exports()
    assert list(registry.snapshot(strict=False).backends) == ["toy"]


def test_the_strict_switch_is_content_with_active_and_disabled_plugins(site, source, monkeypatch):
    site.install("bad", {"bad": "bad_plugin"}, {"bad_plugin": "1/0"})
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    monkeypatch.setenv("ALKAHEST_STRICT_PLUGINS", "1")
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "bad")
    assert list(site.registry().snapshot().backends) == ["toy"]


@pytest.mark.parametrize("loaded_before", [False, True])
def test_register_adds_to_what_is_installed(site, source, null, loaded_before):
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    registry = site.registry()
    before = registry.snapshot() if loaded_before else None
    record = registry.register(null(), "mine")
    assert (record.name, record.distribution, record.origin) == (
        "mine",
        "",
        "registered by the application",
    )
    assert sorted(registry.snapshot().backends) == ["null", "toy"]
    if before is not None:
        assert sorted(before.backends) == ["toy"]


def test_a_bit_asked_for_before_its_plugin_is_registered_is_asked_again(null):
    registry = Registry(list)
    assert not registry.probe("null.compile").ok
    registry.register(null())
    assert registry.probe("null.compile").ok


def test_registering_twice_changes_nothing(null):
    registry, plugin = Registry(list), null()
    first = registry.register(plugin)
    snapshot = registry.snapshot()
    assert registry.register(plugin, "other name") is first
    assert registry.snapshot() is snapshot


def test_a_plugin_that_is_registered_and_installed_counts_once_after_a_refresh(site, source):
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    registry = site.registry()
    registry.snapshot()
    other = Registry(list)
    other.register(sys.modules["toy_plugin"])
    other._find = registry._find
    other.refresh()
    (record,) = other.snapshot().records
    assert (record.distribution, record.status) == ("toy", "active")


def test_a_registered_plugin_survives_a_refresh_and_the_switches_are_read_again(
    site, source, null, monkeypatch
):
    site.install("toy", GOOD, {"toy_plugin": source("toy")})
    registry = site.registry()
    registry.register(null())
    monkeypatch.setenv("ALKAHEST_DISABLE_PLUGINS", "toy")
    assert sorted(registry.snapshot().backends) == ["null", "toy"]
    registry.refresh()
    assert sorted(registry.snapshot().backends) == ["null"]


def test_what_plugins_print_goes_to_standard_error(site, source, capsys):
    text = source(
        "toy", before="print('from import')", probe="print('from probe'); return Probe(ok=True)"
    ).replace("    feature =", "    print('from registration')\n    feature =")
    site.install("toy", GOOD, {"toy_plugin": text})
    assert site.registry().probe("toy.compile").ok
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split("\n") == ["from import", "from registration", "from probe", ""]


def test_standard_output_comes_back_when_probes_of_two_threads_overlap(null, registry_of):
    from alkahest.plugin import Probe

    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first():
        first_in.set()
        assert second_in.wait(5)
        return Probe(ok=True)

    def second():
        second_in.set()
        assert first_out.wait(5)
        return Probe(ok=True)

    registry = registry_of(null(backend="one", probe=first), null(backend="two", probe=second))
    before = sys.stdout
    one = threading.Thread(target=registry.probe, args=("one.compile",))
    one.start()
    assert first_in.wait(5)
    two = threading.Thread(target=registry.probe, args=("two.compile",))
    two.start()
    one.join(5)
    assert sys.stdout is sys.stderr
    first_out.set()
    two.join(5)
    assert sys.stdout is before
