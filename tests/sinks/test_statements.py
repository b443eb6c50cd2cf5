"""CREATE SINK, DROP SINK, SHOW SINKS: what is refused, what is shown. No Spark needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater
from headwater.connectors import runner
from headwater.errors import Error
from tests.sinks.flowing import QUICK, Connect, feed, make_query, wait_for, wait_for_rows


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE SINK k FROM q INTO 'http://h/t'", "0A000", "kind http are not supported yet"),
        ("CREATE SINK k FROM q INTO 'cvs:/tmp'", "22023", "no kind of sink named 'cvs'"),
        ("CREATE SINK k FROM q INTO 'csv:'", "22023", "not complete"),
        ("CREATE SINK k FROM q INTO 'csv:{file}'", "22023", "is a file"),
        (
            "CREATE SINK k FROM nope INTO 'csv:/tmp'",
            "42P01",
            "no continuous query, view or table nope",
        ),
        ("CREATE SINK k FROM h INTO 'csv:/tmp'", "55000", "stream h keeps no rows"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (key = 'k')", "22023", "no option key of a csv"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (interval = 5)", "22023", "an interval"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (batch_rows = 0)", "22023", "at least 1"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (start = 'noon')", "22023", "no start 'noon'"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (emit = 'some')", "22023", "no emit 'some'"),
        ("CREATE SINK k FROM q INTO 'postgresql://h' WITH (latest = true)", "22023", "needs a key"),
        ("CREATE SINK k FROM q INTO 'postgresql://h' WITH (key = 'z')", "42703", "column z of the"),
        ("CREATE SINK k FROM q INTO 'csv:/x' WITH (time_column = 's')", "42701", "has a column s"),
        ("DROP SINK k", "42704", "sink k does not exist"),
        ("PAUSE SINK k", "42704", "sink k does not exist"),
    ],
)
def test_refused(
    db: headwater.Database, tmp_path: Path, statement: str, sqlstate: str, message: str
) -> None:
    """Nothing is left of a sink that was refused."""
    (tmp_path / "file").touch()
    make_query(db)
    db.sql("CREATE STREAM h (x INT)")
    with pytest.raises(Error, match=message) as caught:
        db.sql(statement.format(file=tmp_path / "file"))
    assert caught.value.sqlstate == sqlstate
    assert db.sql("SHOW SINKS").rows() == []
    db.sql("DROP SINK IF EXISTS k")


def test_names_and_dependence(db: headwater.Database, tmp_path: Path) -> None:
    """A name is given once; a query that a sink reads stays."""
    make_query(db)
    db.sql(f"CREATE SINK k FROM q INTO 'csv:{tmp_path}/a'")
    with pytest.raises(Error, match="sink k exists already"):
        db.sql(f"CREATE SINK K FROM q INTO 'csv:{tmp_path}/a'")
    db.sql(f"CREATE SINK IF NOT EXISTS k FROM q INTO 'csv:{tmp_path}/a'")
    for statement in ("DROP QUERY q", "KILL QUERY q"):
        with pytest.raises(Error, match="q is read by sink k") as caught:
            db.sql(statement)
        assert (caught.value.sqlstate, caught.value.hint) == ("2BP01", "DROP SINK k first")
    db.sql("DROP SINK k; DROP QUERY q")


def test_sinks_are_rows_like_others(db: headwater.Database, tmp_path: Path) -> None:
    """A materialized view is read as a query is; two sinks may read one."""
    make_query(db)
    db.sql(
        "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM m [INTERVAL 2 SECONDS BEFORE]"
        " SAMPLE INTERVAL 2 SECONDS"
    )
    db.sql(f"CREATE SINK a FROM n INTO 'json:{tmp_path}/a' WITH ({QUICK})")
    db.sql(f"CREATE SINK b FROM q INTO 'parquet:{tmp_path}/b' WITH ({QUICK})")
    feed(db, 0, 2)
    wait_for_rows(db, "a", 2)
    wait_for_rows(db, "b", 4)
    shown = "SELECT name, query, state, row_count, waiting_results, last_time FROM headwater.sinks"
    assert db.sql(shown).rows() == [
        ("a", "n", "running", 2, 0, "4"),
        ("b", "q", "running", 4, 0, "4"),
    ]
    with pytest.raises(Error, match="n is read by sink a"):
        db.sql("DROP MATERIALIZED VIEW n")
    db.sql(f"DROP SINK a; CREATE SINK a FROM _n INTO 'json:{tmp_path}/c'")
    with pytest.raises(Error, match="n is read by sink a"):
        db.sql("DROP MATERIALIZED VIEW n")


def test_passwords_are_not_shown(
    connect: Connect, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in headwater.sinks nor in errors; what the environment holds is not stored either."""
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.001)
    db = connect(folder)
    make_query(db)
    db.sql("CREATE SINK a FROM q INTO 'postgresql://u:hunter2@127.0.0.1:1/d?sslpassword=hunter2'")
    address = "postgresql://u:${{env:{}}}@127.0.0.1:1/d"
    with pytest.raises(Error, match="variable HEADWATER_TEST is not set"):
        db.sql(f"CREATE SINK b FROM q INTO '{address.format('HEADWATER_TEST')}'")
    monkeypatch.setenv("HEADWATER_TEST", "swordfish")
    db.sql(f"CREATE SINK b FROM q INTO '{address.format('HEADWATER_TEST')}'")
    for name in ("a", "b"):
        wait_for(db, name, lambda s: s.attempts > 0)
    shown = [str(db.sql(text).rows()) for text in ("SHOW SINKS", "SELECT * FROM headwater.sinks")]
    assert "hunter2" not in "".join(shown)
    assert "swordfish" not in "".join(shown)
    assert "u:${env:HEADWATER_TEST}@127" in shown[0]
    stored = b"".join(path.read_bytes() for path in folder.glob("catalog/*"))
    assert b"hunter2" in stored
    assert b"swordfish" not in stored


def test_the_environment_is_read_for_each_attempt(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is missing when the sink starts is its error, not the database's."""
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("HEADWATER_TEST", "127.0.0.1:1")
    make_query(db)
    db.sql("CREATE SINK b FROM q INTO 'postgresql://${env:HEADWATER_TEST}/d'")
    db.sql("PAUSE SINK b")
    monkeypatch.delenv("HEADWATER_TEST")
    db.sql("RESUME SINK b")
    found = wait_for(db, "b", lambda s: s.attempts > 0)
    assert "the environment variable HEADWATER_TEST is not set" in (found.last_error or "")


def test_an_update_query_is_written_too(db: headwater.Database, tmp_path: Path) -> None:
    """Its results have several keys; those that nobody sees are passed over."""
    db.sql("CREATE STREAM s (k INT, v INT) UPDATE KEY (k)")
    db.sql("CREATE CONTINUOUS QUERY u AS SELECT k, v FROM s WITH APPEND")
    db.sql(f"CREATE SINK a FROM u INTO 'json:{tmp_path}/a' WITH ({QUICK})")
    db.insert("s", [(1, 10), (2, 20)])
    db.flush()
    wait_for_rows(db, "a", 2)
    lines = [
        line for path in (tmp_path / "a").glob("*.json") for line in path.read_text().splitlines()
    ]
    found = sorted((row["k"], row["v"]) for row in map(json.loads, lines))
    assert found == [(1, 10), (2, 20)]


def test_results_that_nobody_sees_move_the_place_too(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    """An update query that gives nothing for long: after a restart its sink still knows its place."""

    def insert(db: headwater.Database, v: int) -> None:
        db.insert("s", [(1, v)])
        db.flush()

    with connect(folder) as db:
        db.sql("SET results_kept = 3")
        db.sql("CREATE STREAM s (k INT, v INT) UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY u AS SELECT k, v FROM s WHERE v > 100 WITH APPEND")
        db.sql(f"CREATE SINK a FROM u INTO 'json:{tmp_path}/a' WITH ({QUICK})")
        insert(db, 101)
        wait_for_rows(db, "a", 1)
        for v in range(10):
            insert(db, v)
            wait_for(db, "a", lambda s: s.waiting_results == 0)
    with connect(folder) as db:
        insert(db, 102)
        assert wait_for(db, "a", lambda s: s.row_count == 2 or s.state == "failed").row_count == 2
