"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from alkahest.cli.pending import PendingFile, check_target
from alkahest.errors import IoError


def test_the_file_appears_when_the_block_ends_and_not_before(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with PendingFile(str(target)) as pending:
        Path(pending.path).write_text("new")
        assert not target.exists()
        assert Path(pending.path).parent == tmp_path
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("ending", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_the_block_early_leaves_things_as_they_were(
    tmp_path: Path, ending: type[BaseException]
) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    def write_half() -> None:
        with PendingFile(str(target)) as pending:
            Path(pending.path).write_text("half")
            raise ending

    with pytest.raises(ending):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_existing_files_permissions_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(0o640)
    with PendingFile(str(target)):
        pass
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (tmp_path / "out.csv").symlink_to(folder / "real.csv")
    with PendingFile(str(tmp_path / "out.csv")) as pending:
        Path(pending.path).write_text("new")
    assert (tmp_path / "out.csv").is_symlink()
    assert (folder / "real.csv").read_text() == "new"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(IoError, match="there is no folder") as caught:
        check_target(str(tmp_path / "absent" / "out.csv"))
    assert caught.value.code == "E-IO-002"


def test_a_folder_and_a_device_are_no_targets(tmp_path: Path) -> None:
    with pytest.raises(IoError, match="it is a folder"):
        check_target(str(tmp_path))
    with pytest.raises(IoError, match="not a regular file"):
        check_target(os.devnull)


def test_a_folder_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(IoError, match="is not writeable"):
        check_target(str(tmp_path / "out.csv"))


def test_a_file_that_cannot_be_put_in_place_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.raises(IoError, match="No space left on device") as caught,
        PendingFile(str(tmp_path / "out.csv")),
    ):
        pass
    assert caught.value.code == "E-IO-002"
    assert list(tmp_path.iterdir()) == []
