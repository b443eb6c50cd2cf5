"""Readers of the same rows share them; nobody gets rows of another version."""

from __future__ import annotations

import gc
import threading

import pyarrow as pa
import pytest

import headwater
from headwater.execute.answers import LARGE_TABLE, SharedRows

ROWS = pa.table({"a": list(range(LARGE_TABLE))})


def test_rows_are_made_once_while_somebody_holds_them() -> None:
    """Readers that come together wait for one; when all have left, the rows are gone."""
    shared, made = SharedRows(), []

    def make() -> pa.Table:
        made.append(1)
        return pa.table({"a": [1, 2, 3]})

    found: list[pa.Table] = []
    threads = [
        threading.Thread(target=lambda: found.append(shared.of("k", make))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all(rows is found[0] for rows in found)
    assert shared.of("other", make) is not found[0]
    found.clear()
    gc.collect()
    shared.of("k", make)
    assert len(made) == 3


def test_a_failure_is_not_kept() -> None:
    """The next reader tries again."""
    shared = SharedRows()
    with pytest.raises(ZeroDivisionError):
        shared.of("k", lambda: pa.table({"a": [1 // 0]}))
    first = shared.of("k", lambda: ROWS)
    assert first is ROWS


@pytest.mark.parametrize("kind", ["TABLE", "STREAMING TABLE"])
def test_a_small_table_is_not_shared(kind: str) -> None:
    with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
        db.sql(f"CREATE {kind} t (a BIGINT)")
        db.insert("t", ROWS.slice(1))
        held = db.sql("SELECT a FROM t").arrow()
        assert db.sql("SELECT a FROM t").arrow() is not held


@pytest.mark.parametrize("kind", ["TABLE", "STREAMING TABLE"])
def test_every_change_is_seen(kind: str) -> None:
    """The same rows for the same version; others after an insert, and of a new table of the name."""
    with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
        db.sql(f"CREATE {kind} t (a BIGINT)")
        db.insert("t", ROWS)
        held = db.sql("SELECT a FROM t").arrow()
        assert db.sql("SELECT a FROM t").arrow() is held
        assert db.sql("SELECT a FROM t WHERE a < 3").arrow().num_rows == 3
        db.sql("INSERT INTO t VALUES (-1)")
        assert db.sql("SELECT a FROM t").arrow().num_rows == LARGE_TABLE + 1
        again = db.sql("SELECT a FROM t").arrow()
        db.sql("DROP TABLE t")
        db.sql(f"CREATE {kind} t (a BIGINT)")
        assert db.sql("SELECT a FROM t").arrow().num_rows == 0
        db.insert("t", ROWS)
        db.sql("INSERT INTO t VALUES (-2)")
        assert db.sql("SELECT a FROM t").arrow() != again
