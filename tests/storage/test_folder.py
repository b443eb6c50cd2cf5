"""The data folder: whose it is, its lock and its mark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.errors import Error, StorageError
from headwater.storage import folder as folder_module
from headwater.storage.folder import FORMAT, LOCK, MARK, DataFolder


def test_a_new_folder_is_marked_and_can_be_opened_again(folder: Path) -> None:
    DataFolder(folder).close()
    assert json.loads((folder / MARK).read_text()) == {"format": FORMAT}
    DataFolder(str(folder)).close()


def test_a_relative_path_outlives_a_change_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are found by absolute paths, here and in Spark, whose directory is where it started."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    with headwater.connect("data") as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
        monkeypatch.chdir(tmp_path / "two")
        db.sql("INSERT INTO t VALUES (3)")
        assert db.sql("SELECT a FROM t ORDER BY a").rows() == [(1,), (2,), (3,)]
        assert db.sql("SELECT sum(a) FROM t").rows() == [(6,)]  # on Spark
    assert not (tmp_path / "two" / "data").exists()


def test_a_temporary_folder_goes_with_its_database() -> None:
    temporary = DataFolder(":memory:")
    assert temporary.path.is_dir()
    temporary.close()
    assert not temporary.path.exists()


def test_open_twice_in_this_process(folder: Path) -> None:
    first = DataFolder(folder)
    with pytest.raises(StorageError, match=rf"open in this process \({os.getpid()}\)") as caught:
        DataFolder(folder)
    first.close()
    assert caught.value.sqlstate == "55006"
    assert caught.value.hint
    DataFolder(folder).close()


def test_open_in_another_process_names_it(folder: Path) -> None:
    program = (
        "import sys; from headwater.storage.folder import DataFolder;"
        "f = DataFolder(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StorageError, match=f"open in process {other.pid} ") as caught:
            DataFolder(folder)
        assert caught.value.sqlstate == "55006"
        other.kill()
    DataFolder(folder).close()  # the lock of a dead process is no lock


def test_a_folder_with_other_things_is_not_touched(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(StorageError, match="not a Headwater folder") as caught:
        DataFolder(folder)
    assert caught.value.sqlstate == "58P01"
    assert "thesis.txt" in (caught.value.detail or "")
    assert [p.name for p in folder.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder(folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        DataFolder(folder)
    with pytest.raises(StorageError, match="cannot be written"):
        DataFolder(folder / "below")


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folder_module.os, "open", refused)  # the tests may run as root
    with pytest.raises(StorageError, match="cannot be written") as caught:
        DataFolder(folder)
    monkeypatch.undo()
    assert caught.value.sqlstate == "42501"
    assert "owner" in (caught.value.hint or "")


def test_a_read_only_file_system() -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        DataFolder("/proc/headwater")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": null}', "\0\0\0", '{"form": 1}'])
def test_a_damaged_mark(folder: Path, content: str) -> None:
    DataFolder(folder).close()
    (folder / MARK).write_text(content)
    with pytest.raises(StorageError, match="damaged") as caught:
        DataFolder(folder)
    assert caught.value.sqlstate == "XX001"
    (folder / MARK).write_text(json.dumps({"format": FORMAT}))
    DataFolder(folder).close()


def test_a_newer_format_is_refused(folder: Path) -> None:
    DataFolder(folder).close()
    (folder / MARK).write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(StorageError, match="newer Headwater"):
        DataFolder(folder)


def test_a_crash_while_the_folder_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", crash)
    with pytest.raises(KeyboardInterrupt):
        DataFolder(folder)
    monkeypatch.undo()
    assert sorted(p.name for p in folder.iterdir()) == [f"{MARK}.new", LOCK]
    DataFolder(folder).close()


def test_a_file_system_without_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(folder_module.fcntl, "flock", refused)
    with pytest.raises(Error, match="does not support file locks"):
        DataFolder(folder)
