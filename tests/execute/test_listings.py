"""One broken object breaks no listing: it is shown with what is wrong, and the others as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater


@pytest.fixture
def several(db: headwater.Database) -> headwater.Database:
    """Two views and two queries of each kind."""
    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT) TIMESTAMP BY t UPDATE KEY (k)")
    for name in ("good", "bad"):
        db.sql(f"CREATE VIEW v_{name} AS SELECT k, count(*) AS n FROM s GROUP BY k")
        db.sql(
            f"CREATE CONTINUOUS QUERY q_{name} AS SELECT count(*) AS n FROM s [INTERVAL 2 SECONDS]"
            " SAMPLE INTERVAL 1 SECOND"
        )
        db.sql(f"CREATE CONTINUOUS QUERY u_{name} AS SELECT k, t FROM s WITH UPDATES")
    return db


@pytest.mark.here
def test_a_view_that_cannot_tell_its_state_hides_no_other(several: headwater.Database) -> None:
    """Whatever is raised, in SHOW VIEWS and in headwater.views."""
    view: Any = several._context.engine.find_view("v_bad")
    kept, view.evaluation = view.evaluation, None
    try:
        states = {row[0]: row[3] for row in several.sql("SHOW VIEWS").rows()}
        assert states == {"v_good": "running", "v_bad": "unknown"}
        (row,) = several.sql(
            "SELECT kind, error, statement FROM headwater.views WHERE name = 'v_bad'"
        ).rows()
        assert row[0] == "continuous"
        assert row[1].startswith("its state cannot be told: AttributeError")
        assert row[2].startswith("SELECT k, count(*)")
    finally:
        view.evaluation = kept


@pytest.mark.here
def test_a_query_that_cannot_tell_its_state_hides_no_other(several: headwater.Database) -> None:
    """Queries of both kinds, in SHOW QUERIES and in headwater.queries."""
    engine: Any = several._context.engine
    query, update = engine.find("q_bad"), engine.find_named("u_bad")
    kept = query.evaluation, update.newest
    query.evaluation = update.newest = None
    try:
        states = {row[0]: row[1] for row in several.sql("SHOW QUERIES").rows()}
        assert states == {
            "q_good": "running", "u_good": "running", "q_bad": "unknown", "u_bad": "unknown",
        }  # fmt: skip
        errors = several.sql("SELECT error FROM headwater.queries WHERE state = 'unknown'").rows()
        assert all("AttributeError" in error for (error,) in errors)
    finally:
        query.evaluation, update.newest = kept


def test_a_view_that_cannot_start_hides_no_other(
    folder: Path, connect: Callable[..., headwater.Database]
) -> None:
    """A file that a view needs is gone: the folder opens, the view says why, the others are there."""
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT) TIMESTAMP BY t")
    db.sql("CREATE TABLE dim (k INT, label STRING)")
    db.sql("CREATE VIEW good AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.sql(
        "CREATE VIEW bad AS SELECT label, count(*) AS n FROM s JOIN dim ON s.k = dim.k GROUP BY label"
    )
    db.sql("INSERT INTO s VALUES (1, 1)")
    db.close()
    (pinned,) = (folder / "views").glob("*.parquet")
    pinned.unlink()
    db = connect(folder)
    assert db.sql("SELECT * FROM good").rows() == [(1, 1)]
    found = dict(db.sql("SELECT name, state FROM headwater.views").rows())
    assert found == {"good": "running", "bad": "failed"}
    with pytest.raises(headwater.Error, match="is missing"):
        db.sql("SELECT * FROM bad")
    db.sql("DROP VIEW bad")


def test_a_view_that_was_split_otherwise_begins_anew(
    folder: Path, connect: Callable[..., headwater.Database]
) -> None:
    """A release may fold what the one before evaluated again."""
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT) TIMESTAMP BY t")
    db.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.sql("INSERT INTO s VALUES (1, 1)")
    catalog = db._context.catalog
    item = next(iter(catalog.all("view")))
    catalog.change(item, {**item.definition, "pipelines": []})
    db.close()
    for _ in range(2):
        db = connect(folder)
        db.sql("INSERT INTO s VALUES (2, 1)")
        (count,) = db.sql("SELECT n FROM v").rows()
        db.close()
    assert count == (3,)
