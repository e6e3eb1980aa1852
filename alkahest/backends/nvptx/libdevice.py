"""NVIDIA's libdevice: where it is, and the text of just those of its functions that are called.

libdevice is bitcode of about 350 functions. It is parsed once per process; a kernel gets the
functions it calls and what those call, as LLVM assembly, so that nothing has to be linked,
internalised and thrown away again.

Three things are settled on the way. ``__nvvm_reflect``, by which libdevice asks how it is compiled,
is answered in the text: subnormals are kept, square roots are correctly rounded (LLVM's own pass
answers 0 to every question it does not know, which selects approximate roots). Shifts by as many
bits as there are, or more, get the result that a GPU gives them: ``__nv_pow`` finds the parity of
its exponent by such a shift, which has no meaning in LLVM, so that it might do anything with it.
And metadata that refers to NVIDIA's sources is dropped.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from alkahest.backends.nvptx.targets import llvm
from alkahest.errors import CudaError

FILE = "libdevice.10.bc"
VARIABLE = "ALKAHEST_LIBDEVICE_PATH"

# (what it is, environment variable or None, pattern below its value or absolute)
_PLACES = (
    ("CUDA toolkit", "CUDA_HOME", "nvvm/libdevice"),
    ("CUDA toolkit", "CUDA_PATH", "nvvm/libdevice"),
    ("conda", "CONDA_PREFIX", "nvvm/libdevice"),
    ("conda on Windows", "CONDA_PREFIX", "Library/nvvm/libdevice"),
    ("NVIDIA HPC SDK", "NVHPC_ROOT", "cuda/nvvm/libdevice"),
)
SYSTEM_PLACES: tuple[tuple[str, str, str], ...] = (
    ("CUDA toolkit", "/usr/local", "cuda/nvvm/libdevice"),
    ("CUDA toolkit", "/usr/local", "cuda-*/nvvm/libdevice"),
    ("CUDA toolkit", "/opt/cuda", "nvvm/libdevice"),
    ("Debian package", "/usr/lib/nvidia-cuda-toolkit", "libdevice"),
    ("Debian package", "/usr/lib/cuda", "nvvm/libdevice"),
    ("NVIDIA HPC SDK", "/opt/nvidia/hpc_sdk", "*/*/cuda/nvvm/libdevice"),
    ("NVIDIA HPC SDK", "/opt/nvidia/hpc_sdk", "*/*/cuda/*/nvvm/libdevice"),
    ("CUDA toolkit", "C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA", "*/nvvm/libdevice"),
)
"""(what it is, folder, pattern below it) of the places looked at last."""


def find() -> Path:
    """The libdevice to use.

    The search order is that of :func:`places`. With ``ALKAHEST_LIBDEVICE_PATH`` set, to the file
    or its folder, nothing else is looked at.

    Raises:
        CudaError: E-CUDA-005 listing every place that was tried.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        path = Path(chosen) / FILE if Path(chosen).is_dir() else Path(chosen)
        if path.is_file():
            return path
        raise CudaError(
            "E-CUDA-005",
            f"{VARIABLE} is {chosen!r}, which is not a file, nor a folder with {FILE} in it",
            remediation=f"Correct {VARIABLE}, or unset it to search the usual places.",
        )
    tried = []
    for what, path in places():
        if path.is_file():
            return path
        tried.append(f"{path} ({what})")
    raise CudaError("E-CUDA-005", "libdevice was not found; tried: " + "; ".join(tried))


def places() -> Iterator[tuple[str, Path]]:
    """(what it is, path) of every file that :func:`find` considers, in order.

    First the pip wheels, then the folders that environment variables name, then the places where
    toolkits are usually installed. A pattern that matches nothing is listed as it stands.
    """
    for folder in _wheel_folders():
        yield from _matching("pip wheel", folder, "*/nvvm/libdevice")
    for what, variable, pattern in _PLACES:
        value = os.environ.get(variable)
        if value:
            yield from _matching(f"{what}, {variable}", Path(value), pattern)
    for what, root, pattern in SYSTEM_PLACES:
        yield from _matching(what, Path(root), pattern)


def _wheel_folders() -> list[Path]:
    """Folders of the ``nvidia`` namespace package: wheels install to ``nvidia/<part>/nvvm``."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except ValueError:  # a module called nvidia was put into sys.modules by hand
        return []
    return [Path(p) for p in (spec and spec.submodule_search_locations) or ()]


def _matching(what: str, root: Path, pattern: str) -> Iterator[tuple[str, Path]]:
    # Newest first: cu13 before cu12, cuda-13.0 before cuda-12.4.
    found = sorted(root.glob(pattern), key=_version, reverse=True) if "*" in pattern else []
    for folder in found or [root / pattern]:
        yield what, folder / FILE


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


@attrs.frozen
class Extract:
    """Functions of libdevice as LLVM assembly.

    Attributes:
        definitions: types, globals and functions; every function is internal.
        declarations: symbol of an intrinsic -> its declaration.
    """

    definitions: str
    declarations: dict[str, str]


class Libdevice:
    """One parsed libdevice; thread-safe.

    Attributes:
        path: where it came from.
    """

    def __init__(self, path: Path) -> None:
        """Parse ``path``.

        Raises:
            CudaError: E-CUDA-005 for a file that this LLVM cannot read, E-CUDA-001 without LLVM.
        """
        binding = llvm()
        self.path = path
        try:
            self._context = binding.create_context()
            self._module = binding.parse_bitcode(path.read_bytes(), context=self._context)
        except (OSError, RuntimeError) as error:
            version = ".".join(map(str, binding.llvm_version_info))
            raise CudaError(
                "E-CUDA-005", f"{path} cannot be read by LLVM {version}: {error}"
            ) from error
        self._functions: dict[str, Any] = {f.name: f for f in self._module.functions}
        self._globals: dict[str, Any] = {g.name: g for g in self._module.global_variables}
        self._types: dict[str, Any] = {t.name: t for t in self._module.struct_types}
        self._texts: dict[str, str] = {}

    def extract(self, symbols: Iterable[str], target: str) -> Extract:
        """The definitions of ``symbols`` and of everything they need.

        Args:
            symbols: names such as ``"__nv_sin"``.
            target: the target that libdevice is told it is compiled for.

        Raises:
            CudaError: E-CUDA-002 for a symbol that this libdevice does not have.
        """
        pending = sorted(symbols)
        self.demand(pending)
        parts: dict[str, str] = {}
        types: dict[str, str] = {}
        declarations: dict[str, str] = {}
        while pending:
            name = pending.pop()
            if name in parts or name in declarations:
                continue
            text = _REFLECT.sub(lambda m: self._answer(m[1], target), self._text(name))
            if name in self._functions and not self._is_defined(name):
                declarations[name] = text
                continue
            parts[name] = text
            pending += _SYMBOL.findall(text.partition("\n")[2] or text.partition("=")[2])
            for type_name in _TYPE.findall(text):
                types[type_name] = str(self._types[type_name]).strip()
        definitions = [types[t] for t in sorted(types)] + [parts[p] for p in sorted(parts)]
        return Extract("\n".join(definitions), declarations)

    def demand(self, symbols: Iterable[str]) -> None:
        """Refuse a libdevice that lacks one of ``symbols``.

        Raises:
            CudaError: E-CUDA-002 naming all that are missing.
        """
        missing = [symbol for symbol in symbols if not self._is_defined(symbol)]
        if missing:
            raise CudaError(
                "E-CUDA-002",
                f"{self.path} has no {', '.join(missing)}",
                remediation="Install a newer nvidia-nvvm.",
            )

    def _is_defined(self, name: str) -> bool:
        return name in self._functions and not self._functions[name].is_declaration

    def _answer(self, literal: str, target: str) -> str:
        """What replaces a call of ``__nvvm_reflect`` on the string constant ``literal``."""
        question = re.search(r'c"(\w+)\\00"', self._text(literal))
        answers = {**_ANSWERS, "__CUDA_ARCH": 10 * int(target.removeprefix("sm_"))}
        if question is None or question[1] not in answers:
            raise CudaError(
                "E-CUDA-002",
                f"{self.path} asks how it is compiled in a way that is not known: {literal}",
                remediation="Install nvidia-nvvm, and unset variables that name another libdevice.",
            )
        return f"add i32 {answers[question[1]]}, 0"

    def _text(self, name: str) -> str:
        """A function or global as text without metadata and attribute groups."""
        if name not in self._texts:
            value = self._functions.get(name) or self._globals[name]
            self._texts[name] = _plain(str(value))
        return self._texts[name]


@lru_cache(maxsize=4)
def _load(path: Path, modified: int) -> Libdevice:
    return Libdevice(path)


def load() -> Libdevice:
    """The libdevice of :func:`find`, parsed once per process and version of the file."""
    path = find()
    return _load(path, path.stat().st_mtime_ns)


_ANSWERS = {"__CUDA_FTZ": 0, "__CUDA_PREC_SQRT": 1, "__CUDA_PREC_DIV": 1}

_SYMBOL = re.compile(r"@([\w.$]+)")
_TYPE = re.compile(r"%(struct\.\w+)")
_METADATA = re.compile(r"(, ![\w.]+ !\d+)+")
_COMMENT = re.compile(r"^;.*\n| +; preds = .*$", re.MULTILINE)
_GROUP = re.compile(r" #\d+(?= \{$|$)", re.MULTILINE)
_REFLECT = re.compile(r"call i32 @__nvvm_reflect\([^@)]*@([\w.]+)[^)]*\)")
_SHIFT = re.compile(
    r"^  %([\w.]+) = (shl|lshr|ashr)([a-z ]*) i(\d+) (%?-?[\w.]+), (%[\w.]+)$", re.MULTILINE
)
_HEADER = re.compile(r"^define (?:internal )?(.*) \{$", re.MULTILINE)


def _plain(text: str) -> str:
    must_inline = "alwaysinline" in text.partition("define")[0]
    text = _GROUP.sub("", _METADATA.sub("", _COMMENT.sub("", text)))
    text = _SHIFT.sub(_clamped, text)
    attributes = "alwaysinline nounwind" if must_inline else "noinline nounwind"
    return _HEADER.sub(rf"define internal \1 {attributes} {{", text).strip()


def _clamped(shift: re.Match[str]) -> str:
    """A shift by a variable number of bits as PTX defines it: too many leave 0, or the sign."""
    name, opcode, flags, width, x, bits = shift.groups()
    fits = f"  %fits.{name} = icmp ult i{width} {bits}, {width}\n"
    if opcode == "ashr":
        last = int(width) - 1
        chosen = f"  %bits.{name} = select i1 %fits.{name}, i{width} {bits}, i{width} {last}\n"
        return f"{fits}{chosen}  %{name} = ashr{flags} i{width} {x}, %bits.{name}"
    shifted = f"  %shifted.{name} = {opcode}{flags} i{width} {x}, {bits}\n"
    chosen = f"  %{name} = select i1 %fits.{name}, i{width} %shifted.{name}, i{width} 0"
    return f"{fits}{shifted}{chosen}"
