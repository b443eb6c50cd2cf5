"""One table whose files are damaged keeps nothing else from working, and loses nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headwater
from headwater.cli import check_folder
from headwater.errors import Error
from tests.harness.patience import PATIENCE_S

SETTINGS = {"eager_spark": False, "factories": 0, "block_age_s": 1e6, "wal_segment_mb": 1}
MADE = (
    "CREATE STREAMING TABLE bad (t INT NOT NULL, v INT) TIMESTAMP BY t",
    "CREATE STREAMING TABLE good (t INT NOT NULL, v INT) TIMESTAMP BY t",
    "CREATE STREAM w (t INT NOT NULL, k INT) TIMESTAMP BY t",
    "CREATE TABLE d (a INT)",
    "CREATE INDEX i ON bad (v)",
    "CREATE VIEW of_bad AS SELECT v, count(*) AS n FROM bad GROUP BY v",
    "CREATE VIEW of_good AS SELECT v, count(*) AS n FROM good GROUP BY v",
    "CREATE VIEW plain AS SELECT a FROM d",
    "CREATE VIEW of_w AS SELECT k, count(*) AS n FROM w GROUP BY k",
    "CREATE VIEW of_both AS SELECT x.k AS k, x.n AS n, y.n AS m FROM"
    " (SELECT k, count(*) AS n FROM w GROUP BY k) AS x JOIN"
    " (SELECT v, count(*) AS n FROM bad GROUP BY v) AS y ON x.k = y.v",
    "CREATE CONTINUOUS QUERY q FROM BEGINNING AS SELECT count(*) AS n FROM bad [INTERVAL 10 SECONDS]"
    " SAMPLE INTERVAL 10 SECONDS",
    "CREATE CONTINUOUS QUERY r FROM BEGINNING AS SELECT count(*) AS n FROM good [INTERVAL 10 SECONDS]"
    " SAMPLE INTERVAL 10 SECONDS",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM good [INTERVAL 10 SECONDS]"
    " SAMPLE INTERVAL 10 SECONDS",
)


def filled(folder: Path) -> None:
    """A folder with tables of every kind; the last rows are in the log alone."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        for text in MADE:
            db.sql(text)
        for batch in range(3):
            rows = [(batch * 10 + n, n % 3) for n in range(10)]
            for name in ("bad", "good", "w"):
                db.insert(name, rows, batch_id=f"{name}{batch}")
            db.insert("d", [(batch,)])
            db.flush()
            if batch < 2:
                db.seal()


def log_of(folder: Path, table: str) -> Path:
    """The newest commit of a table."""
    found = max(folder.glob(f"tables/{table}-*/_delta_log/*.json"))
    assert found.stem.isdigit()
    return found


def damage(path: Path) -> bytes:
    """Changes a file, and gives what it was."""
    was = path.read_bytes()
    path.write_bytes(was.replace(b'"', b"'", 3))
    return was


def refused(db: headwater.Database, text: str, path: Path) -> Error:
    """The error of a statement, which names a file and a cure."""
    with pytest.raises(Error) as caught:
        db.sql(text)
    error = caught.value
    assert str(path) in f"{error.message} {error.detail}", (text, error)
    assert error.hint, text
    return error


def rows_of(db: headwater.Database, text: str) -> list[tuple[object, ...]]:
    return sorted(db.sql(text).rows())


def check_all(db: headwater.Database, batches: int = 3) -> None:
    """Everything is there, once."""
    db.flush()
    counts = [(v, sum(n % 3 == v for _ in range(batches) for n in range(10))) for v in range(3)]
    for name in ("bad", "good"):
        assert len(db.sql(f"SELECT * FROM {name}").rows()) == 30, name
    assert rows_of(db, "SELECT v, n FROM of_bad") == [(0, 12), (1, 9), (2, 9)]
    assert rows_of(db, "SELECT k, n FROM of_w") == counts
    assert rows_of(db, "SELECT k, n, m FROM of_both") == [
        (k, n, m) for (k, n), m in zip(counts, (12, 9, 9), strict=True)
    ]
    for name in ("bad", "good"):
        assert db.insert(name, [(0, 0)], batch_id=f"{name}2") == 0
    assert db.sql("SELECT v FROM bad WHERE v = 2").rows() == [(2,)] * 9


def test_a_damaged_streaming_table_keeps_nothing_else_from_working(folder: Path) -> None:
    filled(folder)
    path = log_of(folder, "bad")
    was = damage(path)
    before = {p for p in folder.rglob("*") if p.is_file()}
    with headwater.connect(folder, settings=SETTINGS) as db:
        for text in (
            "SELECT * FROM bad",
            "SELECT count(*) FROM bad",
            "INSERT INTO bad VALUES (50, 1)",
            "DELETE FROM bad WHERE v = 1",
            "DESCRIBE bad",
            "ALTER TABLE bad SET RANGE INTERVAL 1 DAY",
            "ADVANCE bad TO 100",
            "CREATE INDEX j ON bad (v)",
            "CREATE VIEW another AS SELECT v, count(*) AS n FROM bad GROUP BY v",
            "SELECT * FROM of_bad",
            "SELECT * FROM of_both",
            "SELECT * FROM q",
            "SUBSCRIBE bad",
            "VERIFY VIEW of_bad",
        ):
            assert refused(db, text, path).sqlstate == "XX001", text
        with pytest.raises(Error, match="view of_bad has failed"):
            db.sql("FLUSH")
        assert len(db.sql("SELECT * FROM good").rows()) == 30
        assert rows_of(db, "SELECT v, n FROM of_good") == [(0, 12), (1, 9), (2, 9)]
        assert rows_of(db, "SELECT k, n FROM of_w") == [(0, 12), (1, 9), (2, 9)]
        assert rows_of(db, "SELECT a FROM plain") == [(0,), (1,), (2,)]
        assert len(db.sql("SELECT * FROM m").rows()) == 3
        db.sql("SELECT * FROM r")
        [error] = db.sql("SELECT error FROM headwater.tables WHERE name = 'bad'").rows()[0]
        assert str(path) in error
        states = dict(db.sql("SELECT name, state FROM headwater.views").rows())
        assert states["of_bad"] == states["of_both"] == "failed"
        assert states["of_good"] == states["of_w"] == "running"
        # Much goes through the log meanwhile: what the damaged table has there stays.
        for batch in range(3, 6):
            db.insert("w", [(batch * 10 + n, n % 3) for n in range(10)])
            db.insert("d", [(batch,)])
            db.seal()
        assert rows_of(db, "SELECT k, n FROM of_w") == [(0, 24), (1, 18), (2, 18)]
    assert not {p for p in before if not p.exists() and p.parent.name not in ("wal", "snapshots")}
    finding = check_folder.files(folder)
    assert finding.status == "problem"
    assert str(path) in finding.text
    path.write_bytes(was)
    assert check_folder.files(folder).status == "ok"
    with headwater.connect(folder, settings=SETTINGS) as db:
        check_all(db, 6)


def test_a_damaged_standard_table(folder: Path) -> None:
    filled(folder)
    path = log_of(folder, "d")
    was = damage(path)
    with headwater.connect(folder, settings=SETTINGS) as db:
        for text in ("SELECT * FROM d", "SELECT * FROM plain", "INSERT INTO d VALUES (1)"):
            assert refused(db, text, path).sqlstate == "XX001"
        for text in ("DROP TABLE d", "SELECT count(*) FROM good, d"):
            with pytest.raises(Error):
                db.sql(text)
        check_all(db)
        assert [row[0] for row in db.sql("SHOW TABLES").rows()].count("d") == 1
    path.write_bytes(was)
    with headwater.connect(folder, settings=SETTINGS) as db:
        assert rows_of(db, "SELECT a FROM plain") == [(0,), (1,), (2,)]


def test_a_damaged_table_can_be_dropped(folder: Path) -> None:
    """Who has no copy gives it up; it is gone, and stays so."""
    filled(folder)
    for name in ("bad", "d"):
        damage(log_of(folder, name))
    with headwater.connect(folder, settings=SETTINGS) as db:
        with pytest.raises(Error, match="read by view"):
            db.sql("DROP TABLE bad")
        for text in (
            "VIEW of_bad",
            "VIEW of_both",
            "QUERY q",
            "TABLE bad",
            "VIEW plain",
            "TABLE d",
        ):
            db.sql(f"DROP {text}")
        db.sql("FLUSH")
        db.sql("CREATE TABLE d (a INT)")
    with headwater.connect(folder, settings=SETTINGS) as db:
        assert not list((folder / "tables").glob("bad-*"))
        assert not list((folder / "aside").rglob("_delta_log"))
        assert db.sql("SELECT * FROM d").rows() == []
        db.sql("FLUSH")


@pytest.mark.parametrize("name", ["results_of_q", "m", "results_of__m"])
def test_damaged_results_of_a_query(folder: Path, name: str) -> None:
    """The log of a query's results, or of a materialized view's rows: that query alone stands still."""
    filled(folder)
    path = log_of(folder, name)
    was = damage(path)
    with headwater.connect(folder, settings=SETTINGS) as db:
        failed = "query q" if name == "results_of_q" else "materialized view m"
        with pytest.raises(Error, match=f"{failed} has failed"):
            db.sql("FLUSH")
        if name != "results_of__m":  # the rows that the view has are there
            refused(db, f"SELECT * FROM {name.removeprefix('results_of_')}", path)
        db.insert("bad", [(50, 0)])
        db.insert("good", [(50, 0)])
    path.write_bytes(was)
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.flush()
        assert _fed(db, "good") == 31
        results = [out.rows() for out in db.subscribe("q", after="earliest", timeout=0.5)]
        assert results == [[(1, 0)], [(11, 10)], [(11, 20)], [(10, 30)], [(0, 40)]]
        assert [t for (t,) in db.sql("SELECT _t FROM m ORDER BY _t").rows()] == [0, 10, 20, 30, 40]


class Feed:
    """A generator whose rows come when the test says so."""

    def __init__(self) -> None:
        self.allowed = threading.Semaphore(0)

    def __call__(self, start: int = 0) -> Iterator[tuple[int, int] | None]:
        while True:
            if self.allowed.acquire(timeout=0.01):
                yield (start, start)
                start += 1
            else:
                yield None


def test_sources_and_sinks_of_a_damaged_table_wait(folder: Path, tmp_path: Path) -> None:
    feed = Feed()
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.create_function("feed", feed, returns="TABLE(t INT, v INT)", kind="table")
        for text in MADE[:2]:
            db.sql(text)
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT t FROM bad [ROWS 1] SAMPLE 1 ROWS")
        db.sql(f"CREATE SINK k FROM q INTO 'csv:{tmp_path}/k'")
        db.sql("CREATE SOURCE s INTO bad FROM 'python:feed'")
        db.sql("CREATE SOURCE o INTO good FROM 'python:feed'")
        feed.allowed.release(6)
        wait_for(db, lambda: _fed(db, "bad") + _fed(db, "good") == 6)
    path = log_of(folder, "bad")
    was = damage(path)
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.create_function("feed", feed, returns="TABLE(t INT, v INT)", kind="table")
        [(state, error)] = db.sql(
            "SELECT state, last_error FROM headwater.sources WHERE name = 's'"
        ).rows()
        assert state == "failed"
        assert str(path) in error
        refused(db, "RESUME SOURCE s", path)
        assert db.sql("SELECT state FROM headwater.sources WHERE name = 's'").rows() == [
            ("failed",)
        ]
        before = _fed(db, "good")
        feed.allowed.release(2)
        wait_for(db, lambda: _fed(db, "good") == before + 2)
    path.write_bytes(was)
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.create_function("feed", feed, returns="TABLE(t INT, v INT)", kind="table")
        feed.allowed.release(2)
        wait_for(db, lambda: _fed(db, "bad") + _fed(db, "good") == 10)
        for name in ("bad", "good"):
            found = rows_of(db, f"SELECT t FROM {name}")
            assert found == [(n,) for n in range(len(found))]


def _fed(db: headwater.Database, name: str) -> int:
    return len(db.sql(f"SELECT * FROM {name}").rows())


def wait_for(db: headwater.Database, done: Callable[[], bool]) -> None:
    assert db._context.sources.wait_until(done, PATIENCE_S)
