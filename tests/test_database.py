"""The Python API: connect, statements, inserts, results, and folders that cannot be opened."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater
from headwater.cli import check_folder
from headwater.errors import ClosedError, StorageError
from headwater.kernel.kernel import Kernel
from headwater.storage.folder import DataFolder
from headwater.storage.streaming.store import StreamStore

Connect = Callable[..., headwater.Database]


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails whatever asks for Spark."""

    def refused(*_: object) -> None:
        raise AssertionError("this asked for Spark")

    monkeypatch.setattr(Kernel, "_started", refused)


def test_statements_that_need_no_spark(no_spark: None, connect: Connect, folder: Path) -> None:
    db = connect(folder)
    for statement in (
        "CREATE TABLE t (a INT, s STRING, x ARRAY<INT>)",
        "INSERT INTO t VALUES (1, 'x', NULL)",
        "ALTER TABLE t ADD COLUMN d DOUBLE",
        "ALTER TABLE t RENAME TO u",
        "CREATE OR REPLACE TABLE w (a INT)",
        "SELECT * FROM u WHERE a > 0 ORDER BY s LIMIT 3",
        "DESCRIBE u",
        "SHOW TABLES",
        "SELECT * FROM headwater.tables",
        "EXPLAIN SELECT a FROM u",
        "SET rows_at_once = 5",
        "CREATE PROCEDURE p(n INT) AS BEGIN INSERT INTO w VALUES (n); SELECT * FROM w; END",
        "CALL p(5)",
        "DELETE FROM w",
        "TRUNCATE TABLE u",
        "DROP TABLE w",
        "FLUSH",
    ):
        db.sql(statement)
    db.insert("u", [{"a": 1}])
    db.close()
    assert connect(folder).sql("SELECT a FROM u").rows() == [(1,)]


def test_results(db: headwater.Database, capsys: pytest.CaptureFixture[str]) -> None:
    made = db.sql("CREATE TABLE t (a INT, s STRING)")
    assert (made.kind, made.has_rows, made.row_count, made.rows()) == (
        "CREATE TABLE",
        False,
        None,
        [],
    )
    assert repr(made) == "<Result CREATE TABLE>"
    inserted = db.sql("INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    assert (inserted.row_count, repr(inserted)) == (2, "<Result INSERT 2>")
    found = db.sql("SELECT * FROM t")
    assert found.rows() == list(found) == [(1, "x"), (2, None)]
    assert found.schema == pa.schema([("a", pa.int32()), ("s", pa.string())])
    assert found.arrow().to_pydict() == {"a": [1, 2], "s": ["x", None]}
    assert list(found.pandas()["a"]) == [1, 2]
    assert (len(found), found.row_count, repr(found)) == (2, 2, "<Result 2 rows: a, s>")
    found.show()
    assert "x" in capsys.readouterr().out
    assert db.sql("").kind == "EMPTY"
    assert db.sql(" ; -- nothing\n").kind == "EMPTY"


def test_a_script_gives_each_result(db: headwater.Database) -> None:
    kinds = [
        r.kind
        for r in db.script("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); SELECT * FROM t;")
    ]
    assert kinds == ["CREATE TABLE", "INSERT", "SELECT"]
    assert db.sql("INSERT INTO t VALUES (2); SELECT a FROM t WHERE a = 2").rows() == [(2,)]


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"a": [1, 2], "s": ["x", None]}),
        pd.DataFrame({"a": [1, 2], "s": ["x", None]}),
        pl.DataFrame({"a": [1, 2], "s": ["x", None]}),
        [{"a": 1, "s": "x"}, {"a": 2}],
        [(1, "x"), (2, None)],
    ],
    ids=["arrow", "pandas", "polars", "dicts", "tuples"],
)
def test_insert(db: headwater.Database, rows: Any) -> None:
    db.sql("CREATE TABLE t (a INT, s STRING)")
    assert db.insert("t", rows) == 2
    assert db.insert("T", rows, batch_id="b") == 2
    assert db.insert("t", rows, batch_id="b") == 0
    assert sorted(db.sql("SELECT a FROM t").rows()) == [(1,), (1,), (2,), (2,)]


def test_insert_refuses(db: headwater.Database) -> None:
    db.sql("CREATE TABLE orders (a INT)")
    with pytest.raises(headwater.Error, match="table order does not exist") as caught:
        db.insert("order", [(1,)])
    assert (caught.value.sqlstate, caught.value.hint) == ("42P01", "did you mean orders?")
    with pytest.raises(headwater.Error):
        db.insert("orders", [("x",)])
    assert db.sql("SELECT * FROM orders").rows() == []


def test_nested_rows_round_trip(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t (s STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, ARRAY<DOUBLE>>)")
    row = ({"x": 1, "y": ["a", None]}, {"k": [1.5, None]})
    db.insert("t", [row, (None, None)])
    assert db.sql("SELECT * FROM t").rows() == [(row[0], [("k", [1.5, None])]), (None, None)]
    assert db.sql("SELECT s.y[0], m['k'][0] FROM t WHERE s IS NOT NULL").rows() == [("a", 1.5)]


def test_after_closing(folder: Path) -> None:
    with headwater.connect(folder) as db:
        db.sql("CREATE TABLE t (a INT)")
    db.close()  # twice does nothing
    for use in (
        lambda: db.sql("SELECT 1"),
        lambda: db.insert("t", [(1,)]),
        lambda: db.flush(),
        lambda: db.create_function("f", len, returns="INT"),
    ):
        with pytest.raises(ClosedError) as caught:
            use()
        assert caught.value.sqlstate == "08003"


def test_a_forgotten_database_closes_itself(folder: Path) -> None:
    db: headwater.Database | None = headwater.connect(folder)
    assert db is not None
    del db
    gc.collect()
    headwater.connect(folder).close()


@pytest.mark.parametrize(
    "setting", [{"row_at_once": 1}, {"rows_at_once": "x"}, {"time_zone": "Mars"}]
)
def test_bad_settings_open_nothing(folder: Path, setting: dict[str, object]) -> None:
    with pytest.raises(headwater.Error):
        headwater.connect(folder, settings=setting)
    assert not folder.exists()


def test_a_crash_between_folder_and_catalog_leaves_nothing(
    connect: Connect, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = connect(folder)
    for crash, seen in ((KeyboardInterrupt, KeyboardInterrupt), (OSError, StorageError)):

        def add(*_: object, crash: type[BaseException] = crash) -> None:
            raise crash

        with monkeypatch.context() as patch:
            patch.setattr(db._context.catalog, "add", add)
            with pytest.raises(seen):
                db.sql("CREATE TABLE t (a INT)")
            with pytest.raises(seen):
                db.sql("CREATE TABLE t AS SELECT 1 AS a")
        assert list((folder / "tables").iterdir()) == []
    db.sql("CREATE TABLE t (a INT)")


def test_folders_of_no_table_are_removed_at_open(connect: Connect, folder: Path) -> None:
    db = connect(folder)
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1)")
    db.close()
    (folder / "tables" / "left-7" / "_delta_log").mkdir(parents=True)
    db = connect(folder)
    assert not (folder / "tables" / "left-7").exists()
    assert db.sql("SELECT * FROM t").rows() == [(1,)]


def made(folder: Path) -> Path:
    """A database with one table of two rows; the table's folder."""
    with headwater.connect(folder) as db:
        db.sql("CREATE TABLE t (a INT)")
        db.insert("t", [(i,) for i in range(1000)])
        return Path(db.sql("SELECT location FROM headwater.tables").rows()[0][0])


def test_a_damaged_catalog(folder: Path) -> None:
    made(folder)
    before = sorted((folder / "tables").iterdir())
    (folder / "catalog" / "0000000001.wal").write_bytes(b"nonsense" * 1000)
    with pytest.raises(StorageError, match="is damaged") as caught:
        headwater.connect(folder)
    assert caught.value.sqlstate == "XX001"
    assert sorted((folder / "tables").iterdir()) == before


def test_a_missing_catalog_is_not_an_empty_one(folder: Path) -> None:
    table = made(folder)
    (folder / "catalog").rename(folder.parent / "elsewhere")
    with pytest.raises(StorageError, match="is missing") as caught:
        headwater.connect(folder)
    assert caught.value.sqlstate == "XX001"
    assert table.exists()
    (folder.parent / "elsewhere").rename(folder / "catalog")
    with headwater.connect(folder) as db:
        assert len(db.sql("SELECT * FROM t").rows()) == 1000


def test_what_no_object_needs_is_put_aside(folder: Path) -> None:
    """Only a durable DROP removes rows: a folder that the catalog does not know may be somebody's."""
    table = made(folder)
    shutil.copytree(table, folder / "tables" / "stranger-77")
    with headwater.connect(folder) as db:
        db.sql("DROP TABLE t")
    assert (folder / "aside" / "stranger-77" / "_delta_log").is_dir()
    assert list((folder / "tables").iterdir()) == []
    finding = check_folder.put_aside(folder)
    assert (finding.status, "stranger-77" in finding.text) == ("warning", True)


def test_a_damaged_delta_log(folder: Path) -> None:
    table = made(folder)
    commit = table / "_delta_log" / f"{1:020d}.json"
    whole = commit.read_bytes()
    commit.write_bytes(b"{")
    with headwater.connect(folder) as db, pytest.raises(StorageError) as caught:
        db.sql("SELECT * FROM t")
    assert caught.value.sqlstate == "XX001"
    assert str(table) in caught.value.message
    commit.write_bytes(whole)
    with headwater.connect(folder) as db:
        assert len(db.sql("SELECT * FROM t")) == 1000


def test_a_failed_open_is_closed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(folder)
    (folder / "catalog" / "0000000001.wal").write_bytes(b"nonsense" * 1000)
    closed: list[DataFolder] = []
    close = DataFolder.close

    def recording(self: DataFolder) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(DataFolder, "close", recording)
    with pytest.raises(StorageError):
        headwater.connect(folder)
    gc.collect()  # a second close would close a file handle that is another's by now
    assert len(closed) == 1


@pytest.mark.parametrize("damage", ["cut", "missing", "overwritten"])
def test_a_damaged_parquet_file(connect: Connect, folder: Path, damage: str) -> None:
    (path,) = made(folder).glob("*.parquet")
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[:-50])
    elif damage == "overwritten":
        path.write_bytes(whole[:100] + b"\xff" * 300 + whole[400:])
    else:
        path.unlink()
    db = connect(folder)
    for sql in (
        "SELECT * FROM t",
        "SELECT sum(a) FROM t",
        "UPDATE t SET a = 1",
        "INSERT INTO t SELECT a FROM t",
    ):
        with pytest.raises(headwater.Error) as caught:
            db.sql(sql)
        assert caught.value.sqlstate == "XX001", sql
        assert path.name in str(caught.value), sql
    path.write_bytes(whole)
    assert db.sql("SELECT count(*) FROM t").rows() == [(1000,)]


def test_rows_of_other_delta_writers_are_seen(connect: Connect, folder: Path) -> None:
    from deltalake import write_deltalake

    table = made(folder)
    write_deltalake(table, pa.table({"a": pa.array([5000], pa.int32())}), mode="append")
    db = connect(folder)
    assert db.sql("SELECT a FROM t WHERE a > 1000").rows() == [(5000,)]
    assert db.sql("SELECT max(a), count(*) FROM t").rows() == [(5000, 1001)]


def test_a_dropped_table_can_be_read_to_the_end(connect: Connect, folder: Path) -> None:
    made(folder)
    db = connect(folder)
    table = db._context.standard_table("t")
    with table.reading() as snapshot:
        db.sql("CREATE OR REPLACE TABLE t (b STRING)")
        assert pq.read_table(snapshot.files[0]).num_rows == 1000
    assert db.sql("SELECT * FROM t").rows() == []
    db.close()
    assert len(list((folder / "tables").iterdir())) == 1


def test_copy(db: headwater.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (a INT, s STRING)")
    (tmp_path / "in.csv").write_text('a,s\n1,x\n2,"a ""b"", c"\n3,\n')
    assert db.sql(f"COPY t FROM '{tmp_path}/in.csv' CSV HEADER").row_count == 3
    assert db.sql("SELECT * FROM t ORDER BY a").rows() == [(1, "x"), (2, 'a "b", c'), (3, None)]
    assert db.sql(f"COPY t TO '{tmp_path}/out.csv' CSV HEADER").row_count == 3
    db.sql("CREATE TABLE u (a INT, s STRING)")
    db.sql(f"COPY u FROM '{tmp_path}/out.csv' CSV HEADER")
    assert sorted(db.sql("SELECT a FROM u").rows()) == [(1,), (2,), (3,)]
    (tmp_path / "bad.csv").write_text("a,s\n1,x\nnot a number,y\n")
    with pytest.raises(headwater.Error, match="line 3") as caught:
        db.sql(f"COPY u FROM '{tmp_path}/bad.csv' CSV HEADER")
    assert caught.value.sqlstate == "22P04"
    with pytest.raises(headwater.Error, match="does not exist"):
        db.sql("COPY u FROM '/nonexistent.csv' CSV")
    assert len(db.sql("SELECT a FROM u")) == 3


def test_rows_that_go_with_their_folder_are_not_sealed_at_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed: list[StreamStore] = []
    monkeypatch.setattr(StreamStore, "seal_all", lambda self: sealed.append(self))
    for place in (":memory:", folder):
        with headwater.connect(place, settings={"eager_spark": False}) as db:
            db.sql("CREATE STREAMING TABLE s (t INT) TIMESTAMP BY t")
            db.insert("s", [(1,)])
            streams = db._context.streams
        assert sealed == ([] if place == ":memory:" else [streams])


def test_values_go_in_beside_the_text(no_spark: None, connect: Connect) -> None:
    """As a list or by name, in any statement; a text in them is never code."""
    db = connect()
    db.sql("CREATE STREAMING TABLE t (a INT, s STRING)")
    wicked = "x'); DROP TABLE t; --"
    assert db.execute("INSERT INTO t VALUES (?, ?), ($1, $2)", [1, wicked]).row_count == 2
    db.sql("INSERT INTO t VALUES ($a, $s)", {"a": 2, "s": None})
    assert db.sql("SELECT s FROM t WHERE a = ?", [1]).rows() == [(wicked,)] * 2
    assert db.sql("SELECT a FROM t WHERE a > $low ORDER BY a", {"low": 1}).rows() == [(2,)]
    assert (
        db.sql("SELECT a FROM t WHERE a IN (?, ?) AND s = ?", [1, 2, wicked]).rows() == [(1,)] * 2
    )
    with pytest.raises(headwater.Error) as raised:
        db.sql("SELECT ? AS a FROM tt", ["long text"])
    assert str(raised.value.place).count("long text") == 0
    assert raised.value.place is not None
    assert raised.value.place.column == 20


def test_a_result_in_every_form(connect: Connect) -> None:
    """Rows one by one, frames, Arrow's stream, and HTML that shows a text as it is."""
    db = connect()
    db.sql("CREATE TABLE t (a INT, s STRING)")
    db.insert("t", [(1, "<b>"), (2, None), (3, "c")])
    result = db.sql("SELECT a, s FROM t ORDER BY a")
    assert result.columns == ["a", "s"]
    assert (result.fetchone(), result.fetchmany(1)) == ((1, "<b>"), [(2, None)])
    assert (result.fetchall(), result.fetchone()) == ([(3, "c")], None)
    assert len(result.rows()) == 3
    assert result.df()["a"].tolist() == [1, 2, 3]
    assert result.polars().equals(
        pl.DataFrame({"a": [1, 2, 3], "s": ["<b>", None, "c"]}).cast({"a": pl.Int32})
    )
    assert pa.table(result) == result.arrow()
    shown = result._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert ("NULL" in shown, "STRING" in shown, "more rows" in shown) == (True, True, False)
    db.insert("t", [(n, "x") for n in range(100)])
    assert "63 more rows" in db.sql("SELECT * FROM t")._repr_html_()
    assert (
        db.sql("CREATE TABLE u (a INT)")._repr_html_() == "<code>&lt;Result CREATE TABLE&gt;</code>"
    )


def test_completion_offers_what_programs_use(connect: Connect) -> None:
    """`dir` of the package and of a database; everything in it is there."""
    assert "connect" in dir(headwater)
    db = connect()
    assert {"sql", "insert", "subscribe", "close"} <= set(dir(db))
    assert not [name for name in dir(db) if not hasattr(db, name) or name.startswith("_")]
