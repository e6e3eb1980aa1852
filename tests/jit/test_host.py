"""The processor that code is written for."""

from __future__ import annotations

import pytest

from alkahest.backends.cpu.jit.host import ENVIRONMENT, LEVELS, HostTarget
from alkahest.errors import InputError

LINUX = HostTarget("x86_64-unknown-linux-gnu", "znver4", "+avx2,+fma,-avx512f", 256)
ARM = HostTarget("aarch64-unknown-linux-gnu", "neoverse-v1", "+neon", 128)


def test_a_vector_holds_as_many_numbers_as_fit() -> None:
    assert [LINUX.width(d) for d in ("float64", "float32", "complex128", "complex64")] == [
        4,
        8,
        4,
        8,
    ]


def test_features_are_looked_up_by_name() -> None:
    assert LINUX.has("fma")
    assert not LINUX.has("avx512f")
    assert not LINUX.has("avx")


@pytest.mark.parametrize(("level", "fuses"), [("x86-64", False), ("x86-64-v3", True)])
def test_levels_say_whether_multiply_adds_are_fused(level: str, fuses: bool) -> None:
    assert LINUX.narrowed(level).fuses is fuses
    assert ARM.fuses


def test_narrowed_vectors_are_never_wider_than_there_are() -> None:
    assert LINUX.narrowed("native/128").vector_bits == 128
    assert LINUX.narrowed("native/512").vector_bits == 256
    assert LINUX.narrowed("x86-64-v4").vector_bits == LEVELS["x86-64-v4"][1]
    assert LINUX.narrowed("native") == LINUX


@pytest.mark.parametrize("wanted", ["pentium", "native/64", "x86-64-v9"])
def test_a_text_that_names_no_target_is_refused(wanted: str) -> None:
    with pytest.raises(InputError, match=rf"E-INPUT-011\] target='{wanted}' names no target"):
        LINUX.narrowed(wanted)


def test_levels_are_those_of_the_architecture() -> None:
    with pytest.raises(InputError, match=r"Use one of native, then"):
        ARM.narrowed("x86-64-v3")


def test_other_widths_are_refused() -> None:
    with pytest.raises(InputError, match=r"a vector of 96 bits"):
        HostTarget("x86_64-unknown-linux-gnu", "znver4", "", 96)


def test_the_environment_replaces_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "native/128")
    assert HostTarget.detect().vector_bits == 128
    monkeypatch.setenv(ENVIRONMENT, "native/64")
    with pytest.raises(InputError, match=f"{ENVIRONMENT}='native/64' names no target"):
        HostTarget.detect()
    monkeypatch.delenv(ENVIRONMENT)
    assert HostTarget.detect().vector_bits >= 128
