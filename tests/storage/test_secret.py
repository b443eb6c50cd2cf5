"""The secret behind the salts of users who do not exist: made once, never half there, never in the way."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headwater.errors import StorageError
from headwater.storage.disk import Disk
from headwater.storage.secret import NAME, SECRET_BYTES, kept_secret


def test_it_stays(tmp_path: Path) -> None:
    """The same whenever it is asked for; nobody else may read it, and nothing lies beside it."""
    made = kept_secret(tmp_path)
    assert len(made) == SECRET_BYTES
    assert kept_secret(tmp_path) == made
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("damage", [b"", b"x" * 10, b"x" * 64, None])
def test_what_is_damaged_is_made_anew(tmp_path: Path, damage: bytes | None) -> None:
    """Cut, overwritten or gone: there is a new one, which stays; a file of a broken attempt is no matter."""
    old = kept_secret(tmp_path)
    (tmp_path / f"{NAME}.new").write_bytes(b"half")
    if damage is None:
        (tmp_path / NAME).unlink()
    else:
        (tmp_path / NAME).write_bytes(damage)
    fresh = kept_secret(tmp_path)
    assert fresh != old
    assert kept_secret(tmp_path) == fresh


class Full(Disk):
    """A disk that nothing fits on."""

    def open(self, path: str, *, create: bool = False) -> None:  # type: ignore[override]
        raise StorageError(f"cannot create {path}: the disk is full", sqlstate="53100")


def test_a_full_disk_keeps_nobody_out(tmp_path: Path) -> None:
    """There is a secret for this time; the next time there is another."""
    assert kept_secret(tmp_path, Full()) != kept_secret(tmp_path, Full())
    assert list(tmp_path.iterdir()) == []
