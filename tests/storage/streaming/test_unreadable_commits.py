"""A commit that the Delta library cannot read back does not stay in the log, and costs no row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headwater.errors import StorageError
from headwater.storage import delta, delta_sums
from headwater.storage.delta import DataFile, DeltaLog
from headwater.storage.streaming import blocks
from tests.crash.stream_store import SCHEMA, Opened, ids, rows_of

Statistics = Callable[..., Mapping[str, Any]]
REAL = blocks._statistics


def broken(change: Callable[[dict[str, Any]], object]) -> Statistics:
    """Statistics with something in them that Delta readers refuse."""

    def statistics(*arguments: Any) -> Mapping[str, Any]:
        found = dict(REAL(*arguments))
        change(found)
        return found

    return statistics


BROKEN = {
    "an object for a number": broken(lambda s: s.update(nullCount={"id": {"x": 0}})),
    "a text for a number": broken(lambda s: s.update(minValues={"id": "one"})),
    "a number that is too large": broken(lambda s: s.update(maxValues={"id": 1 << 70})),
    "no JSON": broken(lambda s: s.update(minValues={"id": float("nan")})),
}


def commits(folder: Path) -> list[str]:
    """The names of all commits, those put aside too."""
    return sorted(p.name for p in (folder / "_delta_log").iterdir() if ".json" in p.name)


def break_statistics(
    patch: pytest.MonkeyPatch, kind: str = "an object for a number", *, checked: bool = False
) -> None:
    """Makes seals write wrong statistics; not `checked`: only the Delta library can notice."""
    patch.setattr(blocks, "_statistics", BROKEN[kind])
    if not checked:
        patch.setattr(delta, "misfit", lambda *_: None)


@pytest.mark.parametrize("checked", [True, False], ids=["by us", "by the Delta library"])
@pytest.mark.parametrize("kind", BROKEN)
def test_a_seal_that_cannot_be_read_back_fails_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, checked: bool
) -> None:
    found = Opened(tmp_path / "data")
    table = found.create("a")
    table.insert(rows_of([1, 2]), "first")
    with monkeypatch.context() as patch:
        break_statistics(patch, kind, checked=checked)
        for _ in range(2):
            with pytest.raises(StorageError, match="could not be read back") as caught:
                found.store.seal(table)
            assert caught.value.sqlstate == "58030"
            assert "no acknowledged row is lost" in (caught.value.hint or "")
        assert DeltaTable(table.folder).version() == 0  # others can read the table, too
        assert ids(table) == [0, 1]
        table.insert(rows_of([3], 2))
        assert ids(table) == [0, 1, 2]
    first = f"{1:020d}.json"
    aside = [] if checked else [f"{first}.unreadable"]
    assert commits(table.folder) == [f"{0:020d}.json", *aside]
    assert not list(table.folder.glob("blocks/**/*.parquet"))
    found.drop()
    with Opened(tmp_path / "data") as found:
        table = found.table("a")
        assert ids(table) == [0, 1, 2]
        found.store.seal(table)
        assert table.insert(rows_of([9], 9), "first") == 0
        assert first in commits(table.folder)
    with Opened(tmp_path / "data") as found:
        assert ids(found.table("a")) == [0, 1, 2]


def test_after_a_seal_that_cannot_be_read_back_the_next_one_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Opened(tmp_path / "data") as found:
        table = found.create("a")
        table.insert(rows_of([1, 2]))
        with monkeypatch.context() as patch:
            break_statistics(patch)
            with pytest.raises(StorageError):
                found.store.seal(table)
        found.store.seal(table)
        assert table.tail_bytes == 0
        assert len(table.blocks) == 1
        assert ids(table) == [0, 1]
    with Opened(tmp_path / "data") as found:
        assert ids(found.table("a")) == [0, 1]


def test_a_compaction_that_cannot_be_read_back_leaves_the_blocks_that_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Opened(tmp_path / "data", compact_files=2) as found:
        table = found.create("a")
        for number in range(3):
            table.insert(rows_of([number], number))
            found.store.seal(table)
        before = table.blocks
        with monkeypatch.context() as patch:
            break_statistics(patch)
            with pytest.raises(StorageError, match="could not be read back"):
                table.compact()
        assert table.blocks == before
        assert ids(table) == [0, 1, 2]
        assert table.compact() == 3
    with Opened(tmp_path / "data") as found:
        assert ids(found.table("a")) == [0, 1, 2]


def die_before_undo(monkeypatch: pytest.MonkeyPatch, found: Opened) -> None:
    """A seal that writes an unreadable commit, in a process that ends right then."""
    (table,) = found.store.all()
    with monkeypatch.context() as patch:
        break_statistics(patch)
        patch.setattr(DeltaLog, "_undo", lambda *_: None)
        with pytest.raises(StorageError):
            found.store.seal(table)
    found.drop()


def test_a_folder_with_an_unreadable_seal_in_the_log_opens_with_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As release 0.1 left it after the first seal of a STRUCT column."""
    found = Opened(tmp_path / "data")
    table = found.create("a")
    table.insert(rows_of([1, 2]))
    found.store.seal(table)
    table.insert(rows_of([3], 2))
    die_before_undo(monkeypatch, found)
    with pytest.raises(Exception, match="nullCount"):
        delta._read(DeltaTable(table.folder))
    for _ in range(2):
        with Opened(tmp_path / "data") as found:
            assert ids(found.table("a")) == [0, 1, 2]


def test_an_unreadable_commit_whose_rows_the_log_no_longer_has_is_an_error(tmp_path: Path) -> None:
    """Then it was read once, and is damaged: no row may vanish without a word."""
    filled = pa.schema([*SCHEMA, pa.field("filler", pa.string())])
    with Opened(tmp_path / "data") as found:
        table = found.create("a", filled)
        for number in range(40):
            table.insert([{"t": number, "id": number, "filler": "x" * 60_000}])
        found.store.seal_all()
        assert found.store.log_state().first_lsn > 1, "nothing was freed: the test shows nothing"
    commit = table.folder / "_delta_log" / f"{1:020d}.json"
    text = commit.read_text()
    commit.write_text(text.replace('\\"t\\": 0', '\\"t\\": {}'))
    assert commit.read_text() != text
    with Opened(tmp_path / "data") as found:
        (error,) = found.store.damaged.values()
    assert error.sqlstate == "XX001"
    assert str(commit) in error.message
    assert commit.exists()


def test_an_unreadable_commit_that_removed_files_is_never_put_aside_at_open(
    tmp_path: Path,
) -> None:
    """It may be a DELETE that somebody relies on."""
    folder = tmp_path / "t-1"
    DeltaLog.create(folder, SCHEMA)
    log = DeltaLog(folder)
    first = DataFile("a.parquet", 1, 1, {"numRecords": 1})
    (folder / "a.parquet").touch()
    log.commit([first])
    log.commit([], ["a.parquet"])
    newest = folder / "_delta_log" / f"{2:020d}.json"
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    lines.append({"add": {"path": 7}})
    newest.write_text("\n".join(json.dumps(line) for line in lines))
    (
        folder / "_delta_log" / delta_sums.NAME
    ).unlink()  # they tell it before anybody reads the commit
    with pytest.raises(StorageError, match="cannot be read"):
        DeltaLog(folder, cut_torn=True)
    assert newest.exists()


STRICT = pa.schema([*SCHEMA, pa.field("b", pa.bool_())])  # delta-rs passes over much without one


def bad_file(folder: Path) -> DataFile:
    """A file with statistics that cannot be read."""
    good = delta.write_file(folder, pa.table([[1], [1], [True]], schema=STRICT))
    return DataFile(good.path, good.size, 1, {"numRecords": 1, "nullCount": {"id": "x"}})


def test_a_commit_that_another_writer_built_upon_is_not_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-1"
    DeltaLog.create(folder, STRICT)
    log = DeltaLog(folder)
    real = DeltaLog._read_back

    def read_back(self: DeltaLog, mark: str = "") -> None:
        other = folder / "_delta_log" / f"{2:020d}.json"
        other.write_text('{"commitInfo":{}}\n')
        real(self, mark)

    monkeypatch.setattr(DeltaLog, "_read_back", read_back)
    monkeypatch.setattr(delta, "misfit", lambda *_: None)
    with pytest.raises(StorageError, match="could not be read back"):
        log.commit([bad_file(folder)])
    assert log.failed
    assert commits(folder) == [f"{n:020d}.json" for n in range(3)]
    with pytest.raises(StorageError, match="could not be read back"):
        log.commit([])


def test_a_standard_table_goes_on_after_a_commit_that_cannot_be_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-1"
    DeltaLog.create(folder, STRICT)
    log = DeltaLog(folder)
    bad = bad_file(folder)
    with monkeypatch.context() as patch:
        patch.setattr(delta, "misfit", lambda *_: None)
        with pytest.raises(StorageError, match="could not be read back"):
            log.commit([bad])
    assert log.files() == []
    assert log.commit([delta.described(folder, folder / bad.path)]) == 1
    assert [f.path for f in DeltaLog(folder).files()] == [bad.path]
