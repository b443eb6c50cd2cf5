"""A fold that names the current date: compiled in line for each day, in the zone that Spark uses."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import headwater
from headwater.engine.view_pipeline import ViewPipeline

pytestmark = pytest.mark.here  # the tests set a fold's clock

MICROSECONDS = 1_000_000
VIEW = (
    "CREATE VIEW v WITH (volatile = 'at insert') AS "
    "SELECT weekofyear(current_date()) AS now, count(*) AS n FROM s "
    "WHERE week = weekofyear(current_date()) GROUP BY weekofyear(current_date())"
)


def at(*moment: int) -> int:
    """A moment of UTC in µs."""
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * MICROSECONDS  # type: ignore[misc, arg-type]


def pipeline_of(db: headwater.Database) -> ViewPipeline:
    """The one stream pipeline of the view."""
    view = db._context.engine.find_view("v")
    assert view is not None
    return view.pipelines[0]


def insert_at(db: headwater.Database, now_us: int, weeks: list[int]) -> None:
    """Inserts rows that the view folds as of a moment."""
    pipeline_of(db).fold.now = lambda: now_us
    db.insert("s", [{"week": week} for week in weeks])
    db.flush()


@pytest.mark.parametrize("only_spark", [False, True])
def test_the_current_date_is_that_of_the_insert(db: headwater.Database, only_spark: bool) -> None:
    """Rows count in the week in which they came, by operators as on Spark, over the end of a year."""
    db.sql(f"SET spark_sql_only = {only_spark}")
    db.sql("SELECT soundex('spark')")  # a fold that Spark's start made wait has another clock
    db.sql("CREATE STREAM s (week INT)")
    db.sql(VIEW)
    insert_at(db, at(2026, 12, 31), [53, 53, 1])
    insert_at(db, at(2027, 1, 4), [53, 1])
    insert_at(db, at(2027, 1, 10, 23, 59), [1, 2])
    assert (pipeline_of(db).counters.rows_by_operators > 0) == (not only_spark)
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(1, 2), (53, 2)]


def test_another_zone_has_another_date(db: headwater.Database) -> None:
    """Where the zone of a view's creation is not UTC, Spark says what day it is."""
    db.sql("CREATE STREAM s (week INT)")
    db.sql("SET time_zone = 'Pacific/Auckland'")
    db.sql(VIEW)
    db.sql("SET time_zone = 'UTC'")
    insert_at(db, at(2027, 1, 3, 20), [53, 1])  # Monday already
    assert pipeline_of(db).counters.rows_by_operators == 0
    assert db.sql("SELECT * FROM v").rows() == [(1, 1)]
