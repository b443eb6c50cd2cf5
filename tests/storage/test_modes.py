"""A data folder is its owner's alone: after all kinds of work, and one that an earlier version made."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.storage.modes import FILE, FOLDER, make_folder
from tests.sources.feeding import wait_for_rows

ALL_OPEN = 0o000


def loose(folder: Path) -> list[str]:
    """What others may read or write in a folder, and the folder itself."""
    found = []
    for path in [folder, *folder.rglob("*")]:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue  # removed meanwhile
        if mode & 0o077:
            found.append(f"{oct(mode)} {path.relative_to(folder)}")
    return found


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The loosest umask there is, put back after the test."""
    before = os.umask(ALL_OPEN)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_may_read_what_any_kind_of_work_leaves(folder: Path) -> None:
    """Tables of both kinds, changes by Spark, indexes, views, queries, sources, checkpoints, logs."""
    arriving = folder.parent / "arriving"
    arriving.mkdir()
    (arriving / "a.csv").write_text("1,10\n2,20\n")
    settings = {"snapshot_s": 0.1, "compact_files": 2, "staging_mb": 1}
    with headwater.connect(folder, settings=settings) as db:
        db.sql("CREATE USER ada PASSWORD 'x' ROLE ADMIN")
        db.sql("CREATE TABLE rates (k INT, rate DOUBLE)")
        for number in range(12):  # a checkpoint of the Delta log is among them
            db.sql(f"INSERT INTO rates VALUES ({number}, {number})")
        db.sql("UPDATE rates SET rate = rate + length(upper('a')) WHERE k > 3")
        db.sql("CREATE TABLE copied AS SELECT k, upper('x') AS x FROM rates")
        db.sql("CREATE STREAMING TABLE e (k INT, t BIGINT) TIMESTAMP BY t")
        db.sql("CREATE INDEX i ON e (k)")
        db.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM e GROUP BY k")
        db.sql("CREATE VIEW j AS SELECT sum(e.k * r.rate) AS s FROM e JOIN rates r ON e.k = r.k")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM e [ROWS 3] SAMPLE 1 ROWS")
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT sum(k) AS s FROM e [ROWS 3] SAMPLE 1 ROWS")
        for number in range(3):
            db.insert("e", [(n, 10 * number + n) for n in range(5)], batch_id=f"b{number}")
            db.seal()
        db.sql(f"CREATE SOURCE s INTO e FROM 'csv:{arriving}'")
        wait_for_rows(db, "s", 2)
        db.sql("SELECT k, sum(t) FROM e GROUP BY k")
        db.flush()
        assert loose(folder) == []
    assert loose(folder) == []
    assert sum(1 for _ in folder.rglob("*")) > 40
    with headwater.connect(folder) as db:
        assert db.sql("SELECT count(*) AS n FROM e").rows() == [(17,)]
    assert loose(folder) == []


def test_a_folder_of_an_earlier_version_is_tightened_when_it_is_opened(folder: Path) -> None:
    """Everything in it at once; what lies beside it stays as it is."""
    beside = folder.parent / "beside"
    beside.mkdir(mode=0o755)
    with headwater.connect(folder, settings={"eager_spark": False}) as db:
        db.sql("CREATE TABLE t (a INT)")
        db.sql("INSERT INTO t VALUES (1)")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with headwater.connect(folder, settings={"eager_spark": False}) as db:
        assert loose(folder) == []
        assert db.sql("SELECT a FROM t").rows() == [(1,)]
    assert stat.S_IMODE(beside.stat().st_mode) == 0o755


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Whoever gives a wrong path finds his folder as it was."""
    (tmp_path / "mine").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(headwater.Error, match="not a Headwater folder"):
        headwater.connect(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_folders_above_are_made_for_the_owner_too(tmp_path: Path) -> None:
    """And a file in the way is an error."""
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")} == {FOLDER}
    (tmp_path / "file").touch(mode=FILE)
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
