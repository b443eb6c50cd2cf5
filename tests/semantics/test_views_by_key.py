"""A row of a view is found by its key without the others; what is found is what the whole view has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headwater
from headwater.engine import view
from headwater.engine.view import ContinuousView
from headwater.kernel import run_parts

Connect = Callable[..., headwater.Database]

# The view: its query, what a row of it is asked for by, and the same in Python.
VIEWS: dict[str, tuple[str, str, Callable[[tuple[Any, ...], int], bool]]] = {
    "one": (
        "SELECT k, count(*) AS n, sum(x) AS x FROM s GROUP BY k",
        "k = {k}",
        lambda row, k: row[0] == k,
    ),
    "more": (
        "SELECT max(x) AS x, k FROM s GROUP BY k HAVING max(x) > 2",
        "x >= 4 AND k = {k}",
        lambda row, k: row[0] >= 4 and row[1] == k,
    ),
    "named": (
        "SELECT name AS who, k, avg(x) AS a FROM s GROUP BY k, name",
        "who = 'n{k}' AND {k} = k",
        lambda row, k: row[0] == f"n{k}" and row[1] == k,
    ),
    "whole": ("SELECT DISTINCT name FROM s", "name = 'n{k}'", lambda row, k: row[0] == f"n{k}"),
    "upper": (
        "SELECT k + 1 AS k1, k, min(x) AS x FROM s GROUP BY k",
        "(k = {k}) AND k1 > 0",
        lambda row, k: row[1] == k,
    ),
    "part": (
        "SELECT k, name, count(*) AS n FROM s GROUP BY k, name",
        "k = {k}",
        lambda row, k: row[0] == k,
    ),
    "either": (
        "SELECT k, count(*) AS n FROM s GROUP BY k",
        "k = {k} OR k = 1",
        lambda row, k: row[0] in (k, 1),
    ),
    "floats": (
        "SELECT d, count(*) AS n FROM s GROUP BY d",
        "d = 0.0D",
        lambda row, _: row[0] == 0.0,
    ),
    "newest": (
        "SELECT x, k AS who FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC, x) = 1",
        "who = {k}",
        lambda row, k: row[1] == k,
    ),
    "paired": (
        "SELECT n.k, m, n FROM (SELECT k, count(*) AS n FROM s GROUP BY k) n "
        "LEFT JOIN (SELECT k, median(x) AS m FROM s GROUP BY k) m ON n.k = m.k",
        "n > 0 AND k = {k}",
        lambda row, k: row[0] == k,
    ),
    "unkeyed": (
        "SELECT a.k, a.x FROM s a JOIN s b ON a.k = b.k AND a.x < b.x",
        "k = {k}",
        lambda row, k: row[0] == k,
    ),
    "lazy": (
        "SELECT k, count(*) AS n FROM s WHERE x > 1 GROUP BY k",
        "k = {k}",
        lambda row, k: row[0] == k,
    ),
}
FOUND = {"one", "more", "named", "upper", "lazy", "whole", "newest", "paired"}


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query, in one order."""
    return sorted(db.sql(text).rows(), key=repr)


@pytest.mark.here
@pytest.mark.parametrize("state_mb", [64, 0], ids=["in memory", "on disk"])
def test_what_is_found_is_what_the_view_has(
    folder: Path, connect: Connect, state_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "FEW_ROWS", 0)
    monkeypatch.setattr(run_parts, "ROWS_TOGETHER", 2)
    random = Random(3)
    db = connect(folder, settings={"view_state_mb": state_mb})
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, name STRING, x INT, d DOUBLE) TIMESTAMP BY ts")
    for name, (query, _, _) in VIEWS.items():
        options = "WITH (maintenance = 'incremental')" if name == "lazy" else ""
        db.sql(f"CREATE VIEW {name} {options} AS {query}")
    for step in range(6):
        values = [(random.choice([None, *range(5)]), random.randrange(9)) for _ in range(4)]
        made = [(step, k, f"n{k}", x, 0.0 if x % 2 else -0.0) for k, x in values]
        db.insert("s", made)
        if step == 3:
            db.sql("DELETE FROM s WHERE k = 2")
        for name, (_, where, holds) in VIEWS.items():
            key = random.randrange(7)
            found = rows(db, f"SELECT * FROM {name} WHERE {where.format(k=key)}")
            whole = [row for row in rows(db, f"SELECT * FROM {name}") if holds(row, key)]
            assert found == whole, (name, key, step)


@pytest.mark.here
@pytest.mark.parametrize("state_mb", [64, 0], ids=["in memory", "on disk"])
def test_other_rows_are_not_made(
    db: headwater.Database, state_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "FEW_ROWS", 0)
    db.sql(f"SET view_state_mb = {state_mb}")
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, name STRING, x INT, d DOUBLE) TIMESTAMP BY ts")
    for name, (query, _, _) in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {query}")
    db.insert("s", [(n, n % 100, f"n{n % 7}", n, 0.0) for n in range(500)])
    read: list[str] = []
    whole = ContinuousView.read

    def noted(asked: ContinuousView) -> Any:
        read.append(asked.name)
        return whole(asked)

    monkeypatch.setattr(ContinuousView, "read", noted)
    for name, (_, where, _) in VIEWS.items():
        db.sql(f"SELECT * FROM {name} WHERE {where.format(k=3)}")
    assert set(VIEWS) - set(read) == FOUND


def test_one_of_many_groups_wherever_they_are(db: headwater.Database) -> None:
    """No version is made of a large view for one row of it; of a small one it is, for the next reader."""
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW large AS SELECT k, sum(x) AS x FROM s GROUP BY k")
    db.sql("CREATE VIEW small AS SELECT x, count(*) AS n FROM s GROUP BY x")
    db.insert("s", [(n, n, n % 7) for n in range(view.FEW_ROWS + 5)])
    for step in range(3):
        assert rows(db, "SELECT * FROM large WHERE k = 6") == [(6, 6 + step)]
        assert rows(db, "SELECT n FROM small WHERE x = 1") == [(1430 + step,)]
        db.insert("s", [(20_000 + step, 6, 1)])
    assert rows(db, "SELECT * FROM large WHERE k = 60000") == []
    made = dict(db.sql("SELECT name, version FROM headwater.views").rows())
    assert made == {"large": None, "small": 3}
