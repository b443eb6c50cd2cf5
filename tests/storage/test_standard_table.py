"""Standard tables: snapshots, batches, removed files, other writers and readers."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.errors import DataError
from headwater.storage.standard_table import StandardTable

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False), ("s", pa.string())])


class Table:
    """A standard table whose removed files are kept for a time that a test sets."""

    def __init__(self, folder: Path) -> None:
        self.kept_s = 1000.0
        self.folder = folder
        self.table = StandardTable.create(folder, SCHEMA, lambda: self.kept_s)

    def reopened(self) -> StandardTable:
        self.table = StandardTable(self.folder, SCHEMA, lambda: self.kept_s)
        return self.table


@pytest.fixture
def made(tmp_path: Path) -> Table:
    return Table(tmp_path / "t-1")


def rows(*values: int) -> pa.Table:
    return pa.table([list(values), [str(v) for v in values]], schema=SCHEMA)


def content(files: tuple[str, ...]) -> list[int]:
    return sorted(v for f in files for v in pq.read_table(f).column("a").to_pylist())


def test_a_snapshot_does_not_change(made: Table) -> None:
    table = made.table
    table.append(rows(1))
    with table.reading() as before:
        table.append(rows(2))
        assert content(before.files) == [1]
        assert content(table.snapshot.files) == [1, 2]
        assert (before.row_count, table.snapshot.row_count) == (1, 2)


def test_a_batch_counts_once_also_after_a_restart(made: Table) -> None:
    assert made.table.append(rows(1, 2), batch_id="b1") == 2
    assert made.table.append(rows(1, 2), batch_id="b1") == 0
    assert made.reopened().append(rows(1, 2), batch_id="b1") == 0
    assert made.table.append(rows(3), batch_id="b2") == 1
    assert made.table.append(rows(), batch_id="b3") == 0
    assert made.table.batch_was_applied("b3")
    assert content(made.table.snapshot.files) == [1, 2, 3]


def test_removed_files_stay_for_readers_and_go_after_them(made: Table) -> None:
    table = made.table
    table.append(rows(1))
    made.kept_s = 0.0
    with table.reading() as snapshot:
        with table.writing:
            table.commit((), snapshot.files)
        table.collect_garbage()
        assert content(snapshot.files) == [1]
        assert table.snapshot.row_count == 0
    table.collect_garbage()
    assert not any(Path(f).exists() for f in snapshot.files)


def test_removed_files_stay_for_others_for_the_time_set(made: Table) -> None:
    table = made.table
    table.append(rows(1))
    old = table.snapshot.files
    with table.writing:
        table.commit((), old)
    table.collect_garbage()
    assert all(Path(f).exists() for f in old)
    made.kept_s = 0.0
    table.collect_garbage()
    assert not any(Path(f).exists() for f in old)


def test_files_of_writes_that_never_committed_go_after_a_restart(made: Table) -> None:
    made.table.append(rows(1))
    left = made.folder / "rows-1234" / "part-0.parquet"
    left.parent.mkdir()
    pq.write_table(rows(99), left)
    table = made.reopened()
    assert content(table.snapshot.files) == [1]
    made.kept_s = 0.0
    table.collect_garbage()
    assert not left.parent.exists()
    assert content(table.snapshot.files) == [1]


def test_a_new_reader_does_not_hold_old_files(made: Table) -> None:
    table = made.table
    table.append(rows(1))
    old = table.snapshot.files
    with table.writing:
        table.commit((), old)
    made.kept_s = 0.0
    with table.reading():
        table.collect_garbage()
        assert not any(Path(f).exists() for f in old)


def test_commits_of_other_writers(made: Table) -> None:
    table = made.table
    table.append(rows(1))
    assert not table.look_for_foreign_commits()
    write_deltalake(made.folder, rows(7, 8), mode="append")
    assert table.look_for_foreign_commits()
    assert content(table.snapshot.files) == [1, 7, 8]
    assert table.snapshot.row_count == 3
    write_deltalake(made.folder, rows(9), mode="append")
    table.append(rows(2))  # without having looked
    assert content(table.snapshot.files) == [1, 2, 7, 8, 9]


def test_other_readers_see_the_same_rows(made: Table) -> None:
    table = made.table
    table.append(rows(1, 2))
    table.append(rows(3))
    with table.writing:
        table.commit((), table.snapshot.files[:1])
    wanted = content(table.snapshot.files)
    theirs = DeltaTable(made.folder)
    assert sorted(pa.table(theirs.to_pyarrow_table()).column("a").to_pylist()) == wanted
    files = [str(made.folder / f) for f in theirs.file_uris()]
    with duckdb.connect() as connection:
        found = connection.execute("SELECT a FROM read_parquet(?)", [files]).fetchall()
    assert sorted(row[0] for row in found) == wanted


def test_nulls_in_files_that_spark_wrote_are_found(made: Table) -> None:
    good, bad = made.folder / "good.parquet", made.folder / "bad.parquet"
    loose = pa.schema([f.with_nullable(True) for f in SCHEMA])
    pq.write_table(rows(1), good)
    pq.write_table(pa.table([[1, None], ["x", "y"]], schema=loose), bad)
    (found,) = made.table.written([good])
    assert found.row_count == 1
    good = made.folder / found.path
    with pytest.raises(DataError, match="NULL in column a") as caught:
        made.table.written([good, bad])
    assert caught.value.sqlstate == "23502"
    pq.write_table(pa.table([[1, None], ["x", "y"]], schema=loose), bad, write_statistics=False)
    with pytest.raises(DataError, match="NULL in column a"):
        made.table.written([bad])


def test_a_failed_commit_changes_nothing(made: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made.table
    table.append(rows(1))

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(table._log, "commit", full)
        with pytest.raises(OSError, match="No space"):
            table.append(rows(2))
    assert content(table.snapshot.files) == [1]
    table.append(rows(3))
    assert content(made.reopened().snapshot.files) == [1, 3]
