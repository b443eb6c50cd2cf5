"""Functions of time mean the moment of the result, and text the time zone of the creation of its query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import headwater

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
SAME = "TIMESTAMP '2026-03-28 23:30:00Z'"  # 0:30 of the next day in Berlin, 19:30 in New York

Rows = list[tuple[Any, ...]]


@pytest.fixture(params=["operators", "Spark"])
def tier(request: pytest.FixtureRequest, db: headwater.Database) -> headwater.Database:
    """A database whose queries run in one tier."""
    if request.param == "Spark":
        db.sql("SET spark_sql_only = true")
    return db


def bag(db: headwater.Database, text: str) -> Rows:
    """The rows in some order."""
    return sorted(db.sql(text).rows(), key=repr)


def results(db: headwater.Database, name: str) -> list[Rows]:
    """All results of a query, `_t` left out."""
    db.flush()
    found = []
    for out in db.subscribe(name, after="earliest", timeout=0.05):
        columns = [column.to_pylist() for column in out.arrow().columns[:-1]]
        found.append(sorted(zip(*columns, strict=True), key=repr))
    return found


# Functions of time


NOW = {
    "current_date()": lambda now: now.date(),
    "current_date": lambda now: now.date(),
    "curdate()": lambda now: now.date(),
    "date_trunc('DAY', current_timestamp())": lambda now: datetime.combine(
        now.date(), datetime.min.time(), UTC
    ),
    "date_trunc('DAY', `now`())": lambda now: datetime.combine(
        now.date(), datetime.min.time(), UTC
    ),
    "CAST(localtimestamp() AS DATE)": lambda now: now.date(),
    "unix_timestamp() DIV 86400": lambda now: (now.date() - date(1970, 1, 1)).days,
    "year(system.builtin.current_date())": lambda now: now.year,
}


def some(names: Iterable[str], *normal: str) -> list[Any]:
    """Parameters; all but some in the long run alone."""
    marks = {name: () if name in normal else pytest.mark.large for name in names}
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]


@pytest.mark.parametrize("text", some(NOW, "current_date()", "unix_timestamp() DIV 86400"))
def test_a_view_sees_the_time_of_its_read_above_its_grouping(
    tier: headwater.Database, text: str
) -> None:
    """In WHERE, in the list, in HAVING, in a subquery, in a join, by operators and on Spark."""
    tier.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT, v INT) TIMESTAMP BY t")
    tier.sql("CREATE TABLE one (x INT)")
    tier.sql("INSERT INTO one VALUES (1)")
    groups = "SELECT k, sum(v) AS n FROM s GROUP BY k"
    views = {
        "listed": f"SELECT k, {text} AS x FROM ({groups})",
        "asked": f"SELECT k, 1 AS x FROM ({groups}) WHERE {text} = {{now}}",
        "never": f"SELECT k, 1 AS x FROM ({groups}) WHERE {text} < {{now}}",
        "held": f"SELECT k, 1 AS x FROM s GROUP BY k HAVING sum(v) > 0 AND {text} >= {{now}}",
        "joined": f"SELECT k, one.x FROM ({groups}) AS g JOIN one ON one.x = g.k AND {text} = {{now}}",
        "raw": f"SELECT k, {text} AS x FROM s WHERE v > 1",
    }
    tier.sql("INSERT INTO s VALUES (1, 1, 2), (2, 1, 3)")
    today = datetime.now(UTC)
    wanted = NOW[text](today)
    literal = {int: str, date: "DATE '{}'".format, datetime: "TIMESTAMP '{}'".format}[type(wanted)]
    for name, select in views.items():
        tier.sql(f"CREATE VIEW {name} AS {select.format(now=literal(wanted))}")
    found = {name: bag(tier, f"SELECT * FROM {name}") for name in views}
    if datetime.now(UTC).date() != today.date():
        pytest.skip("midnight came between")
    assert found == {
        "listed": [(1, wanted)],
        "asked": [(1, 1)],
        "never": [],
        "held": [(1, 1)],
        "joined": [(1, 1)],
        "raw": [(1, wanted), (1, wanted)],
    }
    for name in views:
        assert not tier.sql(f"VERIFY VIEW {name}").rows(), name


def test_a_query_that_is_re_evaluated_sees_the_date_of_its_instant(
    tier: headwater.Database,
) -> None:
    """And one that folds, above its fold."""
    tier.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, v INT) TIMESTAMP BY at")
    select = (
        "SELECT v, current_date() AS d FROM s [INTERVAL 2 DAYS] WHERE at >= current_date()"
        " SAMPLE INTERVAL 12 HOURS"
    )
    for mode in ("fold", "reevaluate"):
        tier.sql(f"CREATE CONTINUOUS QUERY q_{mode} WITH (mode = '{mode}') AS {select}")
    for number in range(5):
        at = datetime(1969, 12, 30, 18, tzinfo=UTC) + number * timedelta(hours=12)
        tier.insert("s", [(at, number)])
    tier.advance("s", datetime(1970, 1, 2, tzinfo=UTC))
    new_year = [date(1969, 12, 31), date(1970, 1, 1)]
    wanted = [
        [],
        [(1, new_year[0])],
        [],
        [(3, new_year[1])],
        [],
    ]
    for mode in ("fold", "reevaluate"):
        found = results(tier, f"q_{mode}")
        assert found[-5:] == wanted, mode


def test_chance_is_refused_however_it_is_written(db: headwater.Database) -> None:
    """Functions of chance, of how Spark reads files, and times that are texts."""
    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, at TIMESTAMP) TIMESTAMP BY t")
    for text in (
        "rand()", "`rand`()", "system.builtin.uuid()", "shuffle(array(1, 2))", "randn(3)", "uniform(1, 2)",
        "monotonically_increasing_id()", "spark_partition_id()", "input_file_name()", "current_time()",
        "at > TIMESTAMP 'now'", "CAST('today' AS DATE)", "'yesterday'::DATE", "DATE 'tomorrow'",
    ):  # fmt: skip
        for create in (
            f"CREATE VIEW v AS SELECT count(*) AS n FROM s WHERE ({text}) IS NOT NULL",
            f"CREATE CONTINUOUS QUERY q AS SELECT {text} AS x FROM s [INTERVAL 2 SECONDS]"
            " SAMPLE INTERVAL 1 SECOND",
        ):
            with pytest.raises(headwater.Error) as refused:
                db.sql(create)
            assert refused.value.sqlstate == "42P17", text
    db.sql(
        "CREATE VIEW v AS SELECT unix_timestamp(at) AS x, 'now' AS y, count(*) AS n FROM s GROUP BY 1"
    )
    assert db.sql("SELECT * FROM v").rows() == []


# Time zones


ZONED = {
    "hour": "hour(at)",
    "day": "date_trunc('day', at)",
    "text": "CAST(at AS STRING)",
    "after midnight": "at >= TIMESTAMP '2026-03-29 00:00:00'",
    "of text": "TIMESTAMP '2026-03-29 00:00:00'",
    "date": "CAST(at AS DATE)",
    "zone": "current_timezone()",
    "sql function": "hour_of(at)",
}


@pytest.mark.parametrize("key", some(ZONED, "text", "sql function"))
def test_a_view_keeps_the_zone_of_its_creation(
    folder: Path, connect: Callable[..., headwater.Database], key: str
) -> None:
    """Folded, deferred, above a grouping and raw; across SET, RESET, inserts and a restart."""
    expression = ZONED[key]
    views = {
        "folded": f"SELECT {expression} AS x, count(*) AS n FROM s GROUP BY {expression}",
        "above": f"SELECT {expression} AS x, n FROM (SELECT at, count(*) AS n FROM s GROUP BY at)",
        "raw": f"SELECT {expression} AS x, v FROM s WHERE {expression} IS NOT NULL",
    }
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, v INT) TIMESTAMP BY at")
    db.sql("CREATE FUNCTION hour_of(x TIMESTAMP) RETURNS INT RETURN hour(x)")
    for zone in ("UTC", BERLIN, NEW_YORK):
        db.sql(f"SET time_zone = '{zone}'")
        for name, select in views.items():
            db.sql(f"CREATE VIEW {name}_{zone[:3]} AS {select}")
        db.sql(f"CREATE VIEW later_{zone[:3]} WITH (maintenance = 'deferred') AS {views['folded']}")
        db.sql(f"INSERT INTO s VALUES ({SAME}, 1)")
        for other in ("UTC", BERLIN, NEW_YORK):
            db.sql(f"SELECT * FROM folded_{zone[:3]}")
            db.sql(f"SET time_zone = '{other}'")
        db.sql(f"INSERT INTO s VALUES ({SAME}, 1)")
    wanted: dict[str, dict[str, Rows]] = {}
    for zone in ("UTC", BERLIN, NEW_YORK):  # what no restart changes: the rows are all there
        db.sql(f"SET time_zone = '{zone}'")
        wanted[zone] = {name: bag(db, select) for name, select in views.items()}
    for turn in range(2):
        for zone in ("UTC", BERLIN, NEW_YORK):
            db.sql("RESET time_zone" if turn else f"SET time_zone = '{NEW_YORK}'")
            for name in (*views, "later"):
                view = f"{name}_{zone[:3]}"
                rows = wanted[zone].get(name, wanted[zone]["folded"])
                if key != "day":  # shown in the zone that is set: compared as text below
                    assert bag(db, f"SELECT * FROM {view}") == rows, view
                assert not db.sql(f"VERIFY VIEW {view}").rows(), view
        if not turn:
            db.close()
            db = connect(folder)
    zones = dict(db.sql("SELECT name, time_zone FROM headwater.views").rows())
    assert zones["folded_Eur"] == BERLIN
    assert zones["folded_UTC"] == "UTC"
    plan = [line for (line,) in db.sql("EXPLAIN VIEW folded_Eur").rows()]
    assert f"time zone: {BERLIN}" in plan
    assert not any("time zone" in line for (line,) in db.sql("EXPLAIN VIEW folded_UTC").rows())


def test_a_query_keeps_the_zone_of_its_creation(
    folder: Path, connect: Callable[..., headwater.Database]
) -> None:
    """Folded and re-evaluated, a materialized view, and an update query; across SET and a restart."""
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, k INT) TIMESTAMP BY at UPDATE KEY (k)")
    db.sql(f"SET time_zone = '{BERLIN}'")
    select = (
        "SELECT hour(at) AS h, CAST(max(at) AS STRING) AS x, count(*) AS n"
        " FROM s [INTERVAL 10 SECONDS] GROUP BY hour(at) SAMPLE INTERVAL 1 SECOND"
    )
    for mode in ("fold", "reevaluate"):
        db.sql(f"CREATE CONTINUOUS QUERY q_{mode} WITH (mode = '{mode}') AS {select}")
    db.sql(f"CREATE MATERIALIZED VIEW m AS {select}")
    db.sql("CREATE CONTINUOUS QUERY u AS SELECT k, CAST(at AS STRING) AS x FROM s WITH UPDATES")
    db.sql(f"INSERT INTO s VALUES ({SAME}, 1)")
    db.sql("RESET time_zone")
    db.sql(f"INSERT INTO s VALUES ({SAME} + INTERVAL 1 SECOND, 1)")
    db.flush()
    db.close()
    db = connect(folder)
    db.sql(f"SET time_zone = '{NEW_YORK}'")
    db.sql(f"INSERT INTO s VALUES ({SAME} + INTERVAL 2 SECOND, 1)")
    db.advance("s", datetime(2026, 3, 28, 23, 30, 3, tzinfo=UTC))
    for mode in ("fold", "reevaluate"):
        assert results(db, f"q_{mode}")[-1] == [(0, "2026-03-29 00:30:02", 3)], mode
    assert bag(db, "SELECT DISTINCT h FROM m") == [(0,)]
    assert bag(db, "SELECT k, x FROM u") == [(1, "2026-03-29 00:30:02")]
    zones = dict(db.sql("SELECT name, time_zone FROM headwater.queries").rows())
    assert set(zones.values()) == {BERLIN}
    for name in ("q_fold", "u"):
        plan = [line for (line,) in db.sql(f"EXPLAIN QUERY {name}").rows()]
        assert f"time zone: {BERLIN}" in plan, name


def test_queries_of_different_zones_share_no_fold(db: headwater.Database) -> None:
    """The same text at the same time is another question in another zone."""
    db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, v INT) TIMESTAMP BY at")
    select = (
        "SELECT hour(at) AS h, count(*) AS n FROM s [INTERVAL 10 SECONDS] GROUP BY hour(at)"
        " SAMPLE INTERVAL 1 SECOND"
    )
    for number, zone in enumerate(("UTC", BERLIN, NEW_YORK)):
        db.sql(f"SET time_zone = '{zone}'")
        db.sql(f"CREATE CONTINUOUS QUERY q{number} AS {select}")
    db.sql(f"INSERT INTO s VALUES ({SAME}, 1)")
    db.advance("s", datetime(2026, 3, 28, 23, 30, 1, tzinfo=UTC))
    assert [results(db, f"q{n}")[-1] for n in range(3)] == [[(23, 1)], [(0, 1)], [(19, 1)]]


def test_a_definition_without_a_zone_is_of_utc(
    folder: Path, connect: Callable[..., headwater.Database]
) -> None:
    """As release 0.1 stored them."""
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, v INT) TIMESTAMP BY at")
    db.sql("CREATE VIEW v AS SELECT hour(at) AS h, count(*) AS n FROM s GROUP BY hour(at)")
    catalog = db._context.catalog
    item = next(iter(catalog.all("view")))
    catalog.change(item, {k: v for k, v in item.definition.items() if k != "time_zone"})
    db.close()
    db = connect(folder)
    db.sql(f"SET time_zone = '{BERLIN}'")
    db.sql(f"INSERT INTO s VALUES ({SAME}, 1)")
    assert db.sql("SELECT * FROM v").rows() == [(23, 1)]
    assert db.sql("SELECT time_zone FROM headwater.views").rows() == [("UTC",)]


@pytest.mark.parametrize("zone", ["UTC", BERLIN, NEW_YORK, "Asia/Kolkata"])
def test_a_time_in_a_condition_is_of_the_zone_when_blocks_are_left_out(
    db: headwater.Database, zone: str
) -> None:
    """The interval index leaves out blocks by the same moment that Spark compares with."""
    db.sql("CREATE STREAMING TABLE s (at TIMESTAMP NOT NULL, v INT) TIMESTAMP BY at")
    start = datetime(2026, 3, 27, tzinfo=UTC)
    times = [start + timedelta(hours=hour) for hour in range(72)]
    for at in times:
        db.insert("s", [(at, 1)])
        if at.hour % 6 == 5:
            db.seal()
    db.sql(f"SET time_zone = '{zone}'")
    midnight = datetime(2026, 3, 28, tzinfo=ZoneInfo(zone))
    for condition in (
        "at >= TIMESTAMP '2026-03-28 00:00:00'",
        "TIMESTAMP '2026-03-28 00:00:00' <= at",
        "at >= DATE '2026-03-28'",
    ):
        (count,) = db.sql(
            f"SELECT count(*) AS n FROM s WHERE {condition} AND v IN (SELECT 1)"
        ).rows()
        assert count == (sum(at >= midnight for at in times),), condition
