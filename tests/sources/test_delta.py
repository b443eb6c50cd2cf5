"""Sources of kind delta: what is appended to a Delta table comes once, over restarts. No Spark needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import headwater
from headwater.errors import NotSupportedError
from headwater.sources.delta import AddedFile, added_files, log_file
from tests.sources.feeding import QUICK, runner, status, wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (v INT, place STRING, ts BIGINT NOT NULL) TIMESTAMP BY ts"
Connect = Callable[..., headwater.Database]


def append(folder: Path, first: int, count: int, **options: object) -> None:
    """One version with so many rows."""
    numbers = list(range(first, first + count))
    rows = pa.table(
        {
            "ts": pa.array(numbers, pa.int64()),
            "v": pa.array(numbers, pa.int32()),
            "place": [f"p{n % 2}" for n in numbers],
            "other": numbers,
        }
    )
    write_deltalake(str(folder), rows, mode="append", **options)  # type: ignore[call-overload]


def begun(db: headwater.Database, folder: Path, options: str = QUICK) -> None:
    db.sql(TABLE)
    db.sql(f"CREATE SOURCE s INTO t FROM 'delta:{folder}' WITH ({options})")


def times(db: headwater.Database) -> list[int]:
    return [ts for (ts,) in db.sql("SELECT ts FROM t ORDER BY ts").rows()]


def test_versions_come_as_they_are_written(db: headwater.Database, tmp_path: Path) -> None:
    """What is there, then what follows; columns by name, those that the table lacks left out."""
    append(tmp_path / "d", 0, 3)
    begun(db, tmp_path / "d")
    wait_for_rows(db, "s", 3)
    append(tmp_path / "d", 3, 2)
    wait_for_rows(db, "s", 5)
    assert db.sql("SELECT * FROM t WHERE ts = 4").rows() == [(4, "p0", 4)]
    assert times(db) == [0, 1, 2, 3, 4]


def test_each_row_comes_once_over_restarts(folder: Path, connect: Connect, tmp_path: Path) -> None:
    """It goes on in the middle of a file, and files that were put together are not read again."""
    append(tmp_path / "d", 0, 2500)
    with connect(folder) as db:
        begun(db, tmp_path / "d", f"{QUICK}, batch_rows = 1000")
        wait_for_rows(db, "s", 2500)
    append(tmp_path / "d", 2500, 700)
    with connect(folder) as db:
        wait_for_rows(db, "s", 3200)
        db.sql("PAUSE SOURCE s")
    DeltaTable(str(tmp_path / "d")).optimize.compact()
    append(tmp_path / "d", 3200, 1)
    with connect(folder) as db:
        db.sql("RESUME SOURCE s")
        wait_for_rows(db, "s", 3201)
        assert times(db) == list(range(3201))


def test_it_goes_on_within_a_file(db: headwater.Database, tmp_path: Path) -> None:
    """Rows that are stored are skipped, however the file is cut into batches."""
    append(tmp_path / "d", 0, 10)
    append(tmp_path / "d", 10, 10)
    begun(db, tmp_path / "d", f"{QUICK}, batch_rows = 7")
    wait_for_rows(db, "s", 20)
    run = runner(db, "s")
    files = [f for v in (0, 1) for f in added_files(v, log_file(tmp_path / "d", v).read_text())]
    for skipped in range(10):
        found = list(run._of_file(tmp_path / "d", files[1], skipped))
        assert pa.concat_tables(found).column("ts").to_pylist() == list(range(10 + skipped, 20))


def test_partitions(db: headwater.Database, tmp_path: Path) -> None:
    """A column that is only in the log is a column."""
    append(tmp_path / "d", 0, 4, partition_by=["place"])
    begun(db, tmp_path / "d")
    wait_for_rows(db, "s", 4)
    assert db.sql("SELECT ts, place FROM t ORDER BY ts").rows() == [
        (0, "p0"), (1, "p1"), (2, "p0"), (3, "p1")]  # fmt: skip


def test_a_version_that_removes_rows_stops_the_source(
    db: headwater.Database, tmp_path: Path
) -> None:
    """It says which one; what came before stays."""
    append(tmp_path / "d", 0, 3)
    begun(db, tmp_path / "d")
    wait_for_rows(db, "s", 3)
    DeltaTable(str(tmp_path / "d")).delete("ts = 1")
    wait_for_state(db, "s", "failed")
    assert "version 1 of the Delta table removes or changes rows" in (
        status(db, "s").last_error or ""
    )
    assert times(db) == [0, 1, 2]


def test_what_the_log_says() -> None:
    """Files in their order, names as they are on disk; what is not read is named."""
    added = '{"add": {"path": "a%20b.parquet", "partitionValues": {"k": null}, "dataChange": true}}'
    moved = '{"add": {"path": "c.parquet", "partitionValues": {}, "dataChange": false}}'
    gone = '{"remove": {"path": "x.parquet", "dataChange": false}}'
    assert added_files(3, "\n".join([added, moved, gone])) == [
        AddedFile("a b.parquet", (("k", None),))
    ]
    for text, said in (
        (gone.replace("false", "true"), "version 3"),
        ('{"protocol": {"readerFeatures": ["deletionVectors"]}}', "deletionVectors"),
        ('{"metaData": {"configuration": {"delta.columnMapping.mode": "id"}}}', "columnMapping"),
    ):
        with pytest.raises(NotSupportedError, match=said):
            added_files(3, text)
