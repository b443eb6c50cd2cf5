"""CREATE SOURCE and its relatives: what is refused before anything starts. No Spark needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater.errors import Error
from tests.sources.feeding import wait_for_state

TABLE = "CREATE STREAMING TABLE t (v INT, ts BIGINT) TIMESTAMP BY ts"


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE SOURCE s INTO t FROM 'kafka://h'", "22023", "is not complete"),
        ("CREATE SOURCE s INTO t FROM 'http://h/t'", "0A000", "kind http are not supported"),
        ("CREATE SOURCE s INTO t FROM 'cvs:/tmp'", "22023", "no kind of source named 'cvs'"),
        ("CREATE SOURCE s INTO t FROM 'csv:'", "22023", "not complete"),
        ("CREATE SOURCE s INTO t FROM 'csv:/no/such'", "58P01", "does not exist"),
        ("CREATE SOURCE s INTO t FROM 'csv:{file}'", "22023", "is a file"),
        ("CREATE SOURCE s INTO t FROM 'python:nope'", "42883", "no table function nope"),
        ("CREATE SOURCE s INTO u FROM 'csv:/tmp'", "42P01", "table u does not exist"),
        ("CREATE SOURCE s INTO p FROM 'csv:/tmp'", "42809", "not a streaming table"),
        ("CREATE SOURCE s INTO t FROM 'csv:/tmp' WITH (trigger = 5)", "22023", "an interval"),
        (
            "CREATE SOURCE s INTO t FROM 'csv:/tmp' WITH (max_files_per_trigger = 0)",
            "22023",
            "at least 1",
        ),
        ("INSERT INTO t FROM STREAM 'delta:/x'", "58P01", "does not exist"),
        ("CREATE SOURCE s INTO t FROM 'delta:/tmp'", "22023", "is no Delta table"),
        ("PAUSE SOURCE s", "42704", "source s does not exist"),
        ("RESUME SOURCE s", "42704", "source s does not exist"),
        ("DROP SOURCE s", "42704", "source s does not exist"),
    ],
)
def test_refused(
    db: headwater.Database, tmp_path: Path, statement: str, sqlstate: str, message: str
) -> None:
    (tmp_path / "file").touch()
    db.sql(TABLE)
    db.sql("CREATE TABLE p (a INT)")
    with pytest.raises(Error, match=message) as caught:
        db.sql(statement.format(file=tmp_path / "file"))
    assert caught.value.sqlstate == sqlstate
    assert db.sql("SHOW SOURCES").rows() == []
    db.sql("DROP SOURCE IF EXISTS s")


def test_names_and_dependence(db: headwater.Database, tmp_path: Path) -> None:
    db.sql(TABLE)
    db.sql(f"CREATE SOURCE s INTO t FROM 'json:{tmp_path}'")
    with pytest.raises(Error, match="source s exists already"):
        db.sql(f"CREATE SOURCE S INTO t FROM 'json:{tmp_path}'")
    db.sql(f"CREATE SOURCE IF NOT EXISTS s INTO t FROM 'json:{tmp_path}'")
    first = db.sql(f"INSERT INTO t FROM STREAM 'json:{tmp_path}'").rows()
    second = db.sql(f"INSERT INTO t FROM STREAM 'json:{tmp_path}'").rows()
    assert (first, second) == ([("t_source_1",)], [("t_source_2",)])
    assert [row[0] for row in db.sql("SHOW SOURCES").rows()] == ["s", *first[0], *second[0]]
    with pytest.raises(Error, match="is filled by source s") as caught:
        db.sql("DROP TABLE t")
    assert caught.value.hint == "DROP SOURCE s first"
    db.sql("DROP SOURCE s; DROP SOURCE t_source_1; DROP SOURCE t_source_2; DROP TABLE t")


def test_sources_are_rows_like_others(db: headwater.Database, tmp_path: Path) -> None:
    db.sql(TABLE)
    db.sql(f"CREATE SOURCE s INTO t FROM 'parquet:{tmp_path}'")
    db.sql("PAUSE SOURCE s")
    found = db.sql("SELECT name, table_name, url, state, row_count FROM headwater.sources").rows()
    assert found == [("s", "t", f"parquet:{tmp_path}", "paused", 0)]


def test_passwords_are_not_shown(db: headwater.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in headwater.sources nor in errors; a variable that is not set is refused, or stops it."""
    db.sql(TABLE)
    address = "postgresql://u:${{env:HEADWATER_TEST}}@127.0.0.1:1/d?sslpassword={}"
    with pytest.raises(Error, match="variable HEADWATER_TEST is not set"):
        db.sql(f"CREATE SOURCE s INTO t FROM '{address.format('hunter2')}'")
    monkeypatch.setenv("HEADWATER_TEST", "swordfish")
    db.sql(f"CREATE SOURCE s INTO t FROM '{address.format('hunter2')}'")
    wait_for_state(db, "s", "failed")
    ((url, error),) = db.sql("SELECT url, last_error FROM headwater.sources").rows()
    assert url == address.format("…")
    assert "could not read t" in error
    assert "swordfish" not in error
    assert "hunter2" not in error
    monkeypatch.delenv("HEADWATER_TEST")
    db.sql("RESUME SOURCE s")
    found = wait_for_state(db, "s", "failed").last_error or ""
    assert "the environment variable HEADWATER_TEST is not set" in found
