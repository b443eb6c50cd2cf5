"""The Delta log: commits, statistics, transactions, damage."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headwater.errors import StorageError
from headwater.storage import delta, folder
from headwater.storage.delta import DeltaLog, described, write_file

SCHEMA = pa.schema(
    [pa.field("a", pa.int64(), nullable=False), ("s", pa.string()), ("d", pa.float64())]
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    DeltaLog.create(tmp_path / "t-1", SCHEMA)
    return tmp_path / "t-1"


def created(folder: Path, schema: pa.Schema) -> DeltaLog:
    DeltaLog.create(folder, schema)
    return DeltaLog(folder)


def rows(*values: int) -> pa.Table:
    names = [f"n{v}" for v in values]
    return pa.table([list(values), names, [float(v) for v in values]], schema=SCHEMA)


def test_files_are_seen_after_their_commit_only(table: Path) -> None:
    log = DeltaLog(table)
    file = write_file(table, rows(1, 2, 3))
    assert log.files() == []
    assert log.commit([file]) == 1
    assert [(f.path, f.row_count) for f in log.files()] == [(file.path, 3)]
    assert [f.path for f in DeltaLog(table).files()] == [file.path]


def test_adding_and_removing_in_one_commit(table: Path) -> None:
    log = DeltaLog(table)
    old, new = write_file(table, rows(1)), write_file(table, rows(2))
    log.commit([old])
    log.commit([new], [old.path])
    assert [f.path for f in log.files()] == [new.path]
    assert (table / old.path).exists()  # the log deletes nothing


def test_many_commits_go_through_checkpoints(table: Path) -> None:
    log = DeltaLog(table)
    for number in range(2 * delta.CHECKPOINT_INTERVAL + 3):
        log.commit([write_file(table, rows(number))])
    assert list((table / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(DeltaLog(table).files()) == len(log.files()) == 2 * delta.CHECKPOINT_INTERVAL + 3


def test_transactions(table: Path) -> None:
    log = DeltaLog(table)
    assert log.transaction("batch:x") is None
    log.commit([], transactions={"batch:x": 0, "wal": 17})
    again = DeltaLog(table)
    assert (again.transaction("batch:x"), again.transaction("wal")) == (0, 17)


def test_statistics_name_plain_bounds_and_nulls(table: Path) -> None:
    file = described(table, table / write_file(table, rows(5, 1, 9)).path)
    assert file.statistics["numRecords"] == 3
    assert file.statistics["minValues"] == {"a": 1, "s": "n1"}
    assert file.statistics["maxValues"] == {"a": 9, "s": "n9"}
    assert file.statistics["nullCount"] == {"a": 0, "s": 0, "d": 0}


def test_long_text_has_no_bounds(table: Path) -> None:
    long = pa.table({"a": [1], "s": ["x" * 1000], "d": [1.0]}, schema=SCHEMA)
    assert "s" not in write_file(table, long).statistics["minValues"]


def test_everything_is_synced_before_and_after_the_commit(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def recording(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    log = DeltaLog(table)
    file = write_file(table, rows(1))
    monkeypatch.setattr(folder.os, "fsync", recording)
    log.commit([file])
    commit = str(table / "_delta_log" / f"{1:020d}.json")
    assert synced == [str(table / file.path), str(table), commit, str(table / "_delta_log")]


def test_foreign_commits_are_seen_on_refresh(table: Path) -> None:
    from deltalake import write_deltalake

    log = DeltaLog(table)
    assert not log.refresh()
    write_deltalake(table, rows(1, 2), mode="append")
    assert log.refresh()
    assert [f.row_count for f in log.files()] == [2]


@pytest.mark.parametrize("damage", ["garbage", "missing", "empty folder"])
def test_a_damaged_log_is_an_error_that_names_the_folder(table: Path, damage: str) -> None:
    DeltaLog(table).commit([write_file(table, rows(1))])
    first = table / "_delta_log" / f"{0:020d}.json"
    if damage == "garbage":
        first.write_text("}{")
    elif damage == "missing":
        first.unlink()
    else:
        for file in (table / "_delta_log").iterdir():
            file.unlink()
    with pytest.raises(StorageError, match="Delta log") as caught:
        DeltaLog(table)
    assert caught.value.sqlstate == "XX001"
    assert str(table) in caught.value.message
    assert "\n" not in (caught.value.detail or "")


def test_commits_are_plain_delta(table: Path) -> None:
    log = DeltaLog(table)
    log.commit([write_file(table, rows(4))])
    lines = (table / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    (add,) = [json.loads(line)["add"] for line in lines if "add" in json.loads(line)]
    assert json.loads(add["stats"])["numRecords"] == 1
    assert add["dataChange"] is True


def test_add_columns(table: Path) -> None:
    log = DeltaLog(table)
    log.add_columns([pa.field("x", pa.list_(pa.int32()))])
    assert log.schema.names == ["a", "s", "d", "x"]
    assert DeltaLog(table).version == 1


NTZ_IN_MAPS = [
    pa.map_(pa.string(), pa.struct([("n", pa.timestamp("us"))])),
    pa.map_(pa.timestamp("us"), pa.int32()),
    pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.timestamp("us"))))])),
]


@pytest.mark.parametrize("type_", NTZ_IN_MAPS, ids=str)
def test_a_timestamp_without_a_zone_may_hide_in_a_map(tmp_path: Path, type_: pa.DataType) -> None:
    """delta-rs does not look there when it says which features a table needs."""
    schema = pa.schema([("v", type_), ("a", pa.int32())])
    made = created(tmp_path / "made", schema)
    assert made.schema.names == ["v", "a"]
    changed = created(tmp_path / "changed", pa.schema([("a", pa.int32())]))
    changed.add_columns([pa.field("v", type_)])
    for log in (made, changed):
        rows = pa.table({"v": pa.nulls(1, type_), "a": pa.array([1], pa.int32())})
        log.commit([write_file(log.folder, rows.select(log.schema.names))])
        again = DeltaLog(log.folder)
        assert [f.row_count for f in again.files()] == [1]
        assert again.schema.field("v").type == made.schema.field("v").type


def test_columns_that_cannot_be_added_leave_the_log_as_it_was(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_has_ntz", lambda _: False)
    log = DeltaLog(table)
    with pytest.raises(StorageError):
        log.add_columns([pa.field("v", NTZ_IN_MAPS[0])])
    assert DeltaLog(table).schema.names == ["a", "s", "d"]
    log.commit([write_file(table, rows(1))])
    assert [f.row_count for f in DeltaLog(table).files()] == [1]


@pytest.mark.parametrize(
    ("type_", "versions"),
    [(pa.timestamp("us", "UTC"), (1, 2)), (pa.timestamp("us"), (3, 7)), (NTZ_IN_MAPS[0], (3, 7))],
    ids=str,
)
def test_a_table_asks_of_readers_only_what_its_types_need(
    tmp_path: Path, type_: pa.DataType, versions: tuple[int, int]
) -> None:
    log = created(tmp_path / "t", pa.schema([("v", type_)]))
    protocol = DeltaTable(log.folder).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == versions
    assert log.transaction("app") is None
    log.commit([], transactions={"app": 7})
    assert log.transaction("app") == DeltaLog(log.folder).transaction("app") == 7
