"""Typed hook calls: to the owner only, and what comes back is what was promised."""

from typing import ClassVar

import pytest

from alkahest._plugins import calls
from alkahest.errors import CudaError, InputError, PluginError, PluginLoadWarning
from alkahest.plugin import Artifact, Batch, Command, DeviceInfo, Diagnostic, Estimate, hookimpl
from alkahest.program import Instruction, Program
from alkahest.testing.plugins import NullPlugin, isolated_plugins

PROGRAM = Program(
    dtype="float64", inputs=("x",), constants=(), code=(Instruction("sin", (0,)),), outputs=(1,)
)


class Answering(NullPlugin):
    """A null plugin whose hooks return what the test says, or raise it."""

    answers: ClassVar = {}

    def _answer(self, hook):
        answer = self.answers[hook]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @hookimpl
    def alkahest_codegen(self, backend):
        return self._answer("codegen")

    @hookimpl
    def alkahest_make_evaluator(self, backend):
        return self._answer("make_evaluator")

    @hookimpl
    def alkahest_devices(self, backend):
        return self._answer("devices")

    @hookimpl
    def alkahest_estimate(self, backend):
        return self._answer("estimate")

    @hookimpl
    def alkahest_make_reducer(self, backend):
        return self._answer("make_reducer")

    @hookimpl
    def alkahest_commands(self):
        return self._answer("commands")

    @hookimpl
    def alkahest_diagnostics(self):
        return self._answer("diagnostics")


def answering(backend="null", **answers):
    plugin = Answering(backend=backend)
    object.__setattr__(plugin, "answers", answers)
    return plugin


ASK = {
    "codegen": lambda: calls.codegen("null", PROGRAM, None, {}),
    "make_evaluator": lambda: calls.make_evaluator("null", None, None),
    "devices": lambda: calls.devices("null"),
    "estimate": lambda: calls.estimate("null", PROGRAM, 10, "host"),
}


def test_a_program_goes_through_code_generation_to_zeros():
    import numpy

    with isolated_plugins(NullPlugin()):
        artifact = calls.codegen("null", PROGRAM, None, {})
        assert (artifact.kind, artifact.program) == ("null", PROGRAM)
        evaluator = calls.make_evaluator("null", artifact, None)
        column = numpy.ones(3)
        outcome = evaluator.evaluate(Batch(columns=(column,), n=3))
        assert outcome.outputs[0].tolist() == [0.0, 0.0, 0.0]
        out = (numpy.ones(3),)
        assert evaluator.evaluate(Batch(columns=(column,), n=3, out=out)).outputs is out
        assert out[0].tolist() == [0.0, 0.0, 0.0]
        assert [device.name for device in calls.devices("null")] == ["null 0"]
        assert calls.estimate("null", PROGRAM, 10, "host") is None
        assert calls.make_reducer("null", None) is None


def test_no_plugin_answers_for_the_backend_of_another():
    artifact = Artifact(kind="first", code="", program=PROGRAM)
    first = answering("first", codegen=artifact)
    second = answering("second", codegen=artifact)
    with isolated_plugins(first, NullPlugin(), second):
        assert calls.codegen("first", PROGRAM, None, {}).kind == "first"
        assert calls.codegen("null", PROGRAM, None, {}).kind == "null"


@pytest.mark.parametrize(
    ("hook", "answer", "promised"),
    [
        ("codegen", None, "Artifact"),
        ("codegen", "ptx", "Artifact"),
        ("make_evaluator", None, "Evaluator"),
        ("make_evaluator", len, "Evaluator"),
        ("devices", [DeviceInfo(ordinal=0, name="d")], "a tuple of DeviceInfo"),
        ("devices", ("d",), "a tuple of DeviceInfo"),
        ("devices", 2, "a tuple of DeviceInfo"),
        ("devices", (DeviceInfo(ordinal=1, name="d"),), "ordinals 0, 1, ..."),
        ("estimate", 0.5, "Estimate"),
    ],
)
def test_a_wrong_answer_is_an_error_naming_plugin_and_hook(hook, answer, promised):
    with isolated_plugins(answering(**{hook: answer})), pytest.raises(PluginError) as caught:
        ASK[hook]()
    assert caught.value.code == "E-PLUGIN-003"
    start = f"plugin 'null' (registered by the application): alkahest_{hook} returned "
    assert caught.value.message == f"{start}{answer!r} instead of {promised}"


def test_what_a_backend_refuses_passes_unchanged():
    error = CudaError("E-CUDA-002", "no such target")
    with isolated_plugins(answering(codegen=error)), pytest.raises(CudaError) as caught:
        calls.codegen("null", PROGRAM, "sm_1", {})
    assert caught.value is error
    with isolated_plugins(NullPlugin()), pytest.raises(InputError, match="no option 'fast'"):
        calls.codegen("null", PROGRAM, None, {"fast": True})


def test_right_answers_pass():
    estimate, reducer = Estimate(seconds=0.5), object()
    with isolated_plugins(answering(estimate=estimate, make_reducer=reducer, devices=())):
        assert calls.estimate("null", PROGRAM, 10, "host") is estimate
        assert calls.make_reducer("null", 0) is reducer
        assert calls.devices("null") == ()


class Deviceless(NullPlugin):
    """A plugin that leaves the devices hook out."""

    alkahest_devices = None


@pytest.mark.parametrize(("placement", "names"), [("host", ["host"]), ("cuda", [])])
def test_a_backend_without_the_devices_hook_has_the_host_or_nothing(placement, names):
    with isolated_plugins(Deviceless(placement=placement)):
        assert [device.name for device in calls.devices("null")] == names


def test_a_backend_that_is_not_loaded_is_a_key_error():
    with isolated_plugins(), pytest.raises(KeyError):
        calls.codegen("null", PROGRAM, None, {})


def test_commands_come_from_every_plugin_and_a_failing_one_is_warned_about():
    ptx = Command(name="ptx", summary="show PTX", target="m:f")
    with (
        isolated_plugins(
            answering("a", commands=[ptx]),
            NullPlugin(),
            answering("b", commands=SystemExit(1)),
            answering("c", commands=["ptx"]),
            answering("d", commands=[Command(name="ptx", summary="mine", target="m:f")]),
        ),
        pytest.warns(PluginLoadWarning) as caught,
    ):
        found = calls.commands()
    assert [(record.name, command) for record, command in found] == [("a", ptx)]
    texts = [str(warning.message) for warning in caught]
    assert (
        "plugin 'b' (registered by the application): alkahest_commands raised SystemExit"
        in texts[0]
    )
    assert "alkahest_commands returned 'ptx' instead of Command" in texts[1]
    assert "command 'ptx' already belongs to plugin 'a'" in texts[2]


def test_a_failing_diagnosis_is_a_row_of_its_own_and_others_follow():
    good = Diagnostic(name="libdevice", ok=True, detail="found")
    with isolated_plugins(
        answering("a", diagnostics=RuntimeError("broken")), answering("b", diagnostics=(good,))
    ):
        (first, failed), (second, row) = calls.diagnostics()
    assert (first.name, second.name) == ("a", "b")
    assert (failed.name, failed.ok) == ("plugin a", False)
    assert "alkahest_diagnostics raised RuntimeError: broken" in failed.detail
    assert row is good


@pytest.mark.parametrize(
    ("count", "ordinal", "remedy"),
    [(0, 0, "none here"), (1, 1, "only device is 0"), (2, 2, "0 to 1"), (2, -1, "0 to 1")],
)
def test_a_host_backend_is_never_asked_for_a_device_that_it_does_not_list(count, ordinal, remedy):
    with isolated_plugins(NullPlugin(devices=count)):
        artifact = calls.codegen("null", PROGRAM, None, {})
        with pytest.raises(InputError, match=f"'null' has no device {ordinal}") as caught:
            calls.make_evaluator("null", artifact, ordinal)
    assert caught.value.code == "E-INPUT-011"
    assert remedy in caught.value.remediation


def test_a_device_backend_looks_for_its_devices_when_it_is_called():
    with isolated_plugins(NullPlugin(devices=0, placement="cuda")):
        artifact = calls.codegen("null", PROGRAM, None, {})
        assert calls.make_evaluator("null", artifact, 3).device == 3
