"""The real disk: what each call does, and what its failures become."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headwater.errors import StorageError
from headwater.storage.disk import Disk, File, is_full, storage_error


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_write_read_resize(disk: Disk, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    file = disk.open(path, create=True)
    assert disk.pwritev(file, [b"abc", bytearray(b"def"), memoryview(b"ghi")], 5) == 9
    disk.fdatasync(file)
    disk.fsync(file)
    assert disk.pread(file, 100, 4) == b"\0abcdefghi"
    assert disk.pread(file, 3, 5) == b"abc"
    assert disk.pread(file, 3, 500) == b""
    disk.zero_fill(file, 6, 2)
    assert disk.read(path) == bytes(5) + b"a\0\0defghi"
    disk.truncate(file, 6)
    assert disk.size(path) == 6
    disk.allocate(file, 3 << 20)
    assert disk.size(path) == 3 << 20
    disk.zero_fill(file, 0, 3 << 20)
    assert disk.read(path) == bytes(3 << 20)
    disk.close(file)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_names(disk: Disk, tmp_path: Path) -> None:
    folder = str(tmp_path / "x" / "y")
    disk.mkdir(folder)
    disk.mkdir(folder)
    a, b, c = (f"{folder}/{name}" for name in "abc")
    disk.close(disk.open(a, create=True))
    disk.link(a, b)
    with pytest.raises(StorageError) as caught:
        disk.link(a, b)
    assert caught.value.sqlstate == "58P02"
    disk.rename(b, c)
    assert disk.listdir(folder) == ["a", "c"]
    disk.unlink(a)
    assert not disk.exists(a)
    assert disk.exists(c)
    disk.fsync_folder(folder)


def test_create_refuses_a_file_that_is_there(disk: Disk, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    disk.close(disk.open(path, create=True))
    with pytest.raises(StorageError) as caught:
        disk.open(path, create=True)
    assert caught.value.sqlstate == "58P02"


@pytest.mark.parametrize(
    ("number", "sqlstate"),
    [
        (errno.ENOSPC, "53100"),
        (errno.EDQUOT, "53100"),
        (errno.EIO, "58030"),
        (errno.EACCES, "42501"),
        (errno.EPERM, "42501"),
        (errno.EROFS, "42501"),
        (errno.ENOENT, "58P01"),
        (errno.EMFILE, "53000"),
        (errno.ELOOP, "58030"),
    ],
)
def test_errors(number: int, sqlstate: str) -> None:
    error = storage_error("write", "/x/y", OSError(number, "?"))
    assert error.sqlstate == sqlstate
    assert error.message.startswith("cannot write /x/y: ")
    assert errno.errorcode[number] in (error.detail or "")
    assert is_full(error) == (sqlstate == "53100")


@pytest.mark.parametrize(
    "call",
    [
        lambda d, p: d.open(p),
        lambda d, p: d.open(p + "/x", create=True),
        lambda d, p: d.fsync_folder(p),
        lambda d, p: d.rename(p, p + "2"),
        lambda d, p: d.link(p, p + "2"),
        lambda d, p: d.unlink(p),
        lambda d, p: d.listdir(p),
        lambda d, p: d.read(p),
        lambda d, p: d.size(p),
    ],
)
def test_a_name_that_is_not_there(disk: Disk, tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StorageError) as caught:
        call(disk, str(tmp_path / "none"))
    assert caught.value.sqlstate == "58P01"
    assert "none" in caught.value.message


@pytest.mark.parametrize(
    "call",
    [
        lambda d, f: d.pwritev(f, [b"x"], 0),
        lambda d, f: d.pread(f, 1, 0),
        lambda d, f: d.fdatasync(f),
        lambda d, f: d.fsync(f),
        lambda d, f: d.truncate(f, 1),
        lambda d, f: d.allocate(f, 1),
        lambda d, f: d.zero_fill(f, 0, 1),
        lambda d, f: d.close(f),
    ],
)
def test_a_closed_file(disk: Disk, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StorageError) as caught:
        call(disk, File("/gone", 999_999))
    assert caught.value.sqlstate == "58030"
    assert "/gone" in caught.value.message


def test_a_full_device(disk: Disk) -> None:
    file = disk.open("/dev/full")
    with pytest.raises(StorageError) as caught:
        disk.pwritev(file, [b"x"], 0)
    disk.close(file)
    assert caught.value.sqlstate == "53100"
    assert caught.value.hint
