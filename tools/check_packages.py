"""Build every distribution of this tree and prove what each one ships.

    python tools/check_packages.py FOLDER

FOLDER receives one sdist and one wheel, built from that sdist, per distribution. The rule that is
checked: a folder named as ``portion`` in ``plugins/*/pyproject.toml`` is exactly one distribution,
and everything else under ``alkahest/`` is core. Exits with 1 and a list of what is wrong.

Needs the packages of the dependency group ``packaging``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
CORE = "alkahest"


@dataclass(frozen=True)
class Distribution:
    """One distribution of the tree.

    Attributes:
        name: as in its metadata.
        version: as in its metadata.
        project: folder of its ``pyproject.toml``.
        portion: folder of the source tree that it ships, with a slash at the end.
    """

    name: str
    version: str
    project: Path
    portion: str

    @property
    def stem(self) -> str:
        """Beginning of its file names."""
        return f"{self.name.replace('-', '_')}-{self.version}"


def distributions() -> tuple[Distribution, ...]:
    """Every distribution that the tree describes, core first."""
    return tuple(
        _describe(file.parent)
        for file in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml")))
    )


def _describe(project: Path) -> Distribution:
    text = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    hooks = text["tool"]["hatch"].get("build", {}).get("hooks", {})
    portion = hooks.get("custom", {}).get("portion", CORE)
    return Distribution(
        name=text["project"]["name"],
        version=text["project"]["version"],
        project=project,
        portion=f"{portion}/",
    )


def build(folder: Path) -> None:
    """Build all sdists, and all wheels from those sdists, into ``folder``, which must be empty."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    for dist in distributions():
        command = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(dist.project)]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{dist.name} does not build:\n{done.stdout}{done.stderr}")


def source_files() -> frozenset[str]:
    """Files under ``alkahest/`` that belong to the project: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "alkahest"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return frozenset(name for name in listing.split("\0") if name and (ROOT / name).is_file())


def complaints(folder: Path) -> Iterator[str]:
    """Everything that is wrong with what :func:`build` left in ``folder``."""
    every = distributions()
    expected = {f"{d.stem}-py3-none-any.whl" for d in every} | {f"{d.stem}.tar.gz" for d in every}
    found = {path.name for path in folder.iterdir()}
    if found != expected:
        yield f"{folder} holds {sorted(found)}, not {sorted(expected)}"
        return
    shipped = {d.name: _wheel_files(folder / f"{d.stem}-py3-none-any.whl") for d in every}
    yield from _ownership(every, shipped)
    yield from _completeness(shipped, source_files())
    for dist in every:
        yield from _sdist(dist, folder / f"{dist.stem}.tar.gz")
        yield from _metadata(dist, folder / f"{dist.stem}-py3-none-any.whl")
    yield from _twine(sorted(folder.iterdir()))


def _wheel_files(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(n for n in archive.namelist() if ".dist-info/" not in n)


def _ownership(
    every: Iterable[Distribution], shipped: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    portions = {d.name: d.portion for d in every}
    for name, files in shipped.items():
        foreign = tuple(p for other, p in portions.items() if other not in (name, CORE))
        for file in sorted(files):
            if not file.startswith(portions[name]) or file.startswith(foreign):
                yield f"{name} ships {file}, which is not its own"


def _completeness(shipped: Mapping[str, frozenset[str]], tree: frozenset[str]) -> Iterator[str]:
    together: frozenset[str] = frozenset().union(*shipped.values())
    yield from (f"no wheel ships {file}" for file in sorted(tree - together))
    yield from (f"a wheel ships {file}, which the tree lacks" for file in sorted(together - tree))


def _sdist(dist: Distribution, sdist: Path) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        names = [PurePosixPath(member.name) for member in archive.getmembers()]
    for name in names:
        if ".." in name.parts or name.parts[0] != dist.stem:
            yield f"{sdist.name} reaches outside of itself: {name}"
    inside = {"/".join(name.parts[1:]) for name in names}
    wanted = ["PKG-INFO", "README.md", "LICENSE", "pyproject.toml", f"{dist.portion}py.typed"]
    if dist.name != CORE:
        wanted.append("hatch_build.py")
    yield from (f"{sdist.name} lacks {name}" for name in wanted if name not in inside)


def _metadata(dist: Distribution, wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{dist.stem}.dist-info/METADATA").decode()
    metadata = HeaderParser().parsestr(text)
    if (metadata["Name"], metadata["Version"]) != (dist.name, dist.version):
        yield f"{wheel.name} calls itself {metadata['Name']} {metadata['Version']}"
    if "Private :: Do Not Upload" not in metadata.get_all("Classifier", []):
        yield f"{wheel.name} could be uploaded"
    for requirement in metadata.get_all("Requires-Dist", []):
        ours = requirement.startswith(("alkahest-", "alkahest="))
        if ours and f"=={dist.version}" not in requirement:
            yield f"{wheel.name} does not pin {requirement}"


def _twine(files: Iterable[Path]) -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        yield f"twine refuses the metadata:\n{done.stdout}{done.stderr}"


def main() -> int:
    """Build into the folder named on the command line, and check."""
    parser = argparse.ArgumentParser(description="build every distribution, check what it ships")
    parser.add_argument("folder", type=Path, help="new or empty; filled with sdists and wheels")
    folder = parser.parse_args().folder.resolve()
    build(folder)
    wrong = list(complaints(folder))
    print("\n".join(wrong) or f"{len(distributions())} distributions ship what they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
