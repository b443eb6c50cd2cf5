"""Damage to Spark's notes of a source: no row twice, none left out, or the source says what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import headwater
from headwater.errors import StorageError
from headwater.sources.checkpoint import Checkpoint
from tests.sources.feeding import PATIENCE_S, QUICK, put, status, wait_for_rows

TABLE = "CREATE STREAMING TABLE t (n INT, ts BIGINT NOT NULL) TIMESTAMP BY ts"
FILES = 3
HOW = ("flip", "cut", "delete")
CHOSEN = [  # of all pairs of file and way, those where a mistake would show in the rows
    ("offsets/2", "flip"),
    ("offsets/2", "delete"),
    ("commits/2", "delete"),
    ("commits/2", "cut"),
    ("sources/0/2", "delete"),
    ("sources/0/1", "delete"),
    ("sources/0/2", "flip"),
    ("metadata", "cut"),
    ("commits/2", "flip"),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a source that has delivered three files, and where they came from."""
    base = tmp_path_factory.mktemp("notes")
    incoming, folder = base / "incoming", base / "data"
    incoming.mkdir()
    with headwater.connect(folder) as db:
        db.sql(TABLE)
        db.sql(f"CREATE SOURCE c INTO t FROM 'csv:{incoming}' WITH (header = true, {QUICK})")
        for number in range(FILES):
            put(incoming, f"{number}.csv", f"n,ts\n{number},{number}\n")
            wait_for_rows(db, "c", number + 1)
        while not list(folder.glob(f"sources/c-*/commits/{FILES - 1}")):
            db.flush()
    return folder, incoming


def outcome(filled: tuple[Path, Path], where: Path, name: str, how: str) -> tuple[list[int], str]:
    """The rows after one more file, and what the source says if it has stopped."""
    folder, incoming = filled
    shutil.copytree(folder, where)
    (note,) = where.glob(f"sources/c-*/{name}")
    data = bytearray(note.read_bytes())
    if how == "flip":
        data[-2] ^= 1
    elif how == "cut":
        del data[len(data) // 2 :]
    note.write_bytes(data)
    if how == "delete":
        note.unlink()
    with headwater.connect(where) as db:
        put(incoming, "later.csv", f"n,ts\n{FILES},{FILES}\n")
        try:

            def settled() -> bool:
                now = status(db, "c")
                return now.row_count > FILES or now.last_error is not None

            assert db._context.sources.wait_until(settled, PATIENCE_S), status(db, "c")
        finally:
            (incoming / "later.csv").unlink()
        found = sorted(n for (n,) in db.sql("SELECT n FROM t").rows())
        return found, status(db, "c").last_error or ""


@pytest.mark.parametrize(("name", "how"), CHOSEN)
def test_no_row_comes_twice_or_not_at_all(
    filled: tuple[Path, Path], tmp_path: Path, name: str, how: str
) -> None:
    rows, error = outcome(filled, tmp_path / "data", name, how)
    assert rows == list(range(FILES + (not error))), error
    if error:
        assert name.partition("/")[0] in error, "the note is named, or the folder of its kind"


def test_missing_notes_are_told(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.check(None)
    with pytest.raises(StorageError, match="offsets/0 of a source is missing"):
        checkpoint.check(0)
    for number in range(9, 13):
        note = tmp_path / "offsets" / str(number)
        note.parent.mkdir(exist_ok=True)
        note.write_text(f'v1\n{{}}\n{{"logOffset":{number - 1}}}')
    checkpoint.check(12)
    with pytest.raises(StorageError, match="13"):
        checkpoint.check(13)
    seen = tmp_path / "sources" / "0"
    seen.mkdir(parents=True)
    for name in ("9.compact", "10", "11"):
        (seen / name).write_text("v1")
    checkpoint.check(12)
    (seen / "10").unlink()
    with pytest.raises(StorageError, match="sources/0/10 of a source is missing"):
        checkpoint.check(11)
    (tmp_path / "offsets" / "12").write_text("v1\n{}\n7")
    checkpoint.check(12)
