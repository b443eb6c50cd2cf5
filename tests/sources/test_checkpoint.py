"""Spark's notes of micro-batches are synced while Spark removes the old ones of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater.sources import stream
from headwater.sources.checkpoint import Checkpoint
from headwater.storage.disk import sync_file
from tests.sources.feeding import QUICK, put, runner, status, wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (n INT, ts BIGINT NOT NULL) TIMESTAMP BY ts"


def note(folder: Path, name: str) -> Path:
    """One of Spark's notes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
    return path


def test_only_what_is_new_is_synced_and_a_replaced_note_again(tmp_path: Path) -> None:
    synced: list[str] = []
    checkpoint = Checkpoint(tmp_path, lambda path: synced.append(path.name))
    for number in range(100):
        note(tmp_path, f"offsets/{number}")
    assert checkpoint.sync() == 100
    synced.clear()
    assert checkpoint.sync() == 0
    note(tmp_path, "offsets/100")
    note(tmp_path, "sources/0/100")
    note(tmp_path, "fresh").rename(tmp_path / "offsets" / "3")
    assert checkpoint.sync() == 3
    assert sorted(synced) == ["100", "100", "3"]


def test_a_note_that_is_purged_between_the_listing_and_the_sync_is_no_error(
    tmp_path: Path,
) -> None:
    for number in range(20):
        note(tmp_path, f"offsets/{number}")
    synced: list[str] = []

    def purging(path: Path) -> None:
        """Spark is always one file ahead of us."""
        if int(path.name) < 18:
            path.unlink()
        sync_file(path)
        synced.append(path.name)

    Checkpoint(tmp_path, purging).sync()
    assert sorted(synced) == ["18", "19"]
    Checkpoint(tmp_path / "never made").sync()


def test_another_error_of_a_sync_is_told(tmp_path: Path) -> None:
    def failing(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path))

    note(tmp_path, "offsets/0")
    checkpoint = Checkpoint(tmp_path, failing)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            checkpoint.sync()


def test_a_source_outlives_the_purge_of_old_notes(
    db: headwater.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark keeps the notes of three micro-batches here, not of a hundred."""
    monkeypatch.setitem(stream.STREAM_SETTINGS, "spark.sql.streaming.minBatchesToRetain", "3")
    incoming = tmp_path / "in"
    for number in range(14):  # after ten, Spark also joins its notes of files
        put(incoming, f"{number:04d}.csv", f"{number},{number}\n")
    db.sql(TABLE)
    options = f"max_files_per_trigger = 1, {QUICK}"
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}' WITH ({options})")
    wait_for_rows(db, "s", 14)
    assert not (runner(db, "s").feed.checkpoint / "offsets" / "0").exists()
    assert db.sql("SELECT n FROM t").rows() == [(n,) for n in range(14)]


def test_resume_of_a_source_that_failed_goes_on_where_it_was(
    db: headwater.Database, tmp_path: Path
) -> None:
    incoming = tmp_path / "in"
    put(incoming, "a.csv", "1,1\n")
    db.sql(TABLE)
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}' WITH ({QUICK})")
    wait_for_rows(db, "s", 1)

    def failing(_number: int) -> None:
        raise OSError(2, "No such file or directory")

    runner(db, "s").after_commit = failing
    put(incoming, "b.csv", "2,2\n")
    assert "No such file" in (wait_for_state(db, "s", "failed").last_error or "")
    put(incoming, "c.csv", "3,3\n")
    db.sql("RESUME SOURCE s")
    wait_for_rows(db, "s", 3)
    assert status(db, "s").last_error is None
    assert db.sql("SELECT n FROM t").rows() == [(1,), (2,), (3,)]
