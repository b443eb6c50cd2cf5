"""One-time queries over few rows are answered by operators, and as Spark answers them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import headwater
from headwater.execute.by_operators import OperatorsQuery
from headwater.kernel.kernel import Kernel
from tests.harness.rows import check_same

NAN = float("nan")
READINGS = [
    (datetime(2026, 3, 1, 10, 0, second, tzinfo=UTC), place, value, name)
    for second, (place, value, name) in enumerate(
        [
            (1, 2.5, "a"),
            (2, -0.0, "B"),
            (1, NAN, "c"),
            (None, 0.0, None),
            (3, None, ""),
            (2, float("inf"), "a"),
            (3, 7.25, "Ä"),
            (1, -1e300, "b"),
            (4, 1.0, "a"),
        ]
    )
]
PLACES = [
    (1, "north", date(2024, 1, 31), Decimal("1.10"), [1, 2]),
    (2, None, None, Decimal("-3.05"), []),
    (2, "south", date(2024, 2, 29), None, None),
    (5, "south", date(1999, 12, 31), Decimal("99999.99"), [3]),
]
SELECTS = (
    "SELECT count(*) FROM r",
    "SELECT count(*), sum(v), min(v), max(v), avg(v) FROM r WHERE v < 100",
    "SELECT place, count(*) AS n, sum(v) AS total FROM r GROUP BY place ORDER BY place",
    "SELECT place, max(name) FROM r GROUP BY place HAVING count(*) > 1 ORDER BY place NULLS LAST",
    "SELECT upper(name), length(name) FROM r WHERE place IN (1, 2) ORDER BY ts",
    "SELECT name || '!' AS n, coalesce(v, 0) FROM r ORDER BY ts DESC LIMIT 3",
    "SELECT DISTINCT name FROM r",
    "SELECT r.name, p.title FROM r JOIN p ON r.place = p.place WHERE p.title IS NOT NULL",
    "SELECT r.ts, p.* FROM r LEFT JOIN p ON r.place = p.place ORDER BY r.ts, p.title NULLS FIRST",
    "SELECT count(*) FROM r FULL JOIN p ON r.place = p.place",
    "SELECT place FROM r UNION SELECT place FROM p",
    "SELECT place FROM r EXCEPT ALL SELECT place FROM p",
    "SELECT place FROM r INTERSECT SELECT place FROM p",
    "SELECT place, ts, row_number() OVER (PARTITION BY place ORDER BY ts) AS n FROM r ORDER BY ts",
    "SELECT ts, sum(place) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM r"
    " ORDER BY 1",
    "SELECT place, name FROM r QUALIFY rank() OVER (PARTITION BY place ORDER BY ts DESC) = 1"
    " ORDER BY place",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM p WHERE p.place = r.place) ORDER BY ts",
    "SELECT * FROM p WHERE place NOT IN (SELECT place FROM r WHERE place IS NOT NULL)",
    "SELECT name, (SELECT max(title) FROM p WHERE p.place = r.place) AS t FROM r ORDER BY ts",
    "SELECT v, (SELECT count(DISTINCT title, day) FROM p WHERE p.place = r.place) AS n FROM r",
    "WITH few AS (SELECT place, avg(v) AS mean FROM r WHERE v < 100 GROUP BY 1)"
    " SELECT f.mean, p.title FROM few f JOIN p USING (place)",
    "SELECT title, sum(amount), avg(amount), max(day) FROM p GROUP BY title",
    "SELECT title, amount * 2, amount / 3, -amount FROM p ORDER BY amount",
    "SELECT place, title, count(*) AS n FROM p GROUP BY ROLLUP (place, title)",
    "SELECT median(v), percentile(v, 0.25), stddev(v) FROM r WHERE v BETWEEN -10 AND 10",
    "SELECT max_by(name, ts), min_by(name, ts), count(DISTINCT name) FROM r",
    "SELECT place, explode(parts) AS part FROM p",
    "SELECT title, size(parts), parts[0] AS first FROM p WHERE size(parts) > 0",
    "SELECT window.start AS w, count(*) AS n FROM r GROUP BY window(ts, '4 seconds') ORDER BY w",
    "SELECT CASE WHEN place > 1 THEN 'big' ELSE 'small' END AS size, count(*) FROM r GROUP BY 1",
    "SELECT date_trunc('MINUTE', ts) AS minute, year(ts), sum(place) FROM r GROUP BY 1, 2",
    "SELECT a.place FROM r a, p b WHERE a.place = b.place AND a.v > 1",
    "SELECT x.n FROM (SELECT place, count(*) AS n FROM r GROUP BY place) x WHERE x.n > 1",
    "SELECT count(*) FROM r [INTERVAL '3' SECOND]",
    "SELECT name, place + 1 AS next FROM r [ROWS 3]",
    "SELECT place + 1 AS next FROM r LIMIT 4",
    "SELECT place * 2 AS twice FROM r OFFSET 3",
    "SELECT CAST(v AS STRING) AS text, try_cast(name AS INT) FROM r WHERE v < 100",
    "SELECT n, total FROM by_place WHERE total IS NOT NULL ORDER BY n, total LIMIT 2",
    "SELECT b.n, p.title FROM by_place b JOIN p ON p.place = b.place",
    "SELECT kind, count(*) FROM headwater.tables GROUP BY kind",
    "SELECT count(*) AS n, count(*) AS n, place AS N FROM r GROUP BY place ORDER BY place",
    "SELECT current_date AS d, now() = current_timestamp() AS same, count(*) AS n FROM p",
    "SELECT 1 / place AS x FROM r WHERE place <> 0 ORDER BY ts",
    "SELECT b.place, ts + INTERVAL '1' DAY AS t, CAST(ts AS STRING) AS s FROM r"
    " JOIN by_place b USING (place) ORDER BY ts",
    "SELECT n, count(*) AS c FROM names GROUP BY n",
    "SELECT a.name, b.name FROM r a JOIN r b ON a.place = b.place AND a.ts < b.ts",
)
TO_SPARK = (
    "SELECT place, sum(v) AS s FROM r GROUP BY place WITH ROLLUP",
    "SELECT approx_count_distinct(place) AS n, max(v) AS m FROM r",  # an estimate: ours is another
    "SELECT count(*) FROM r FULL JOIN p USING (place)",
    "SELECT max(v), row_number() OVER (ORDER BY max(v)) FROM r",  # its name is Spark's own
    "SELECT place, parts[0] FROM p WHERE size(parts) > 0",
    "SELECT twice(place) AS t FROM p",  # a function of a user
    "SELECT max(current_date) AS d FROM odd",  # a column there, not the day
    "SELECT count(*) AS n, max(localtimestamp()) AS t FROM p",
    "SELECT count(*) FROM r WHERE rand() >= 0",  # chance
    "SELECT sum(v) OVER w, percent_rank() OVER w FROM r WINDOW w AS (ORDER BY ts)",  # no operator
    "SELECT a.v FROM r a CROSS JOIN r b CROSS JOIN r c CROSS JOIN r d",  # too many rows on the way
)
ORDERED = ("ORDER BY", "LIMIT", "OFFSET", "ROWS 3]")


@pytest.fixture(scope="module")
def opened() -> Iterator[headwater.Database]:
    with headwater.connect(settings={"factories": 0}) as db:
        db.sql(
            "CREATE STREAMING TABLE r (ts TIMESTAMP, place INT, v DOUBLE, name STRING) TIMESTAMP BY ts"
        )
        db.sql(
            "CREATE TABLE p (place INT, title STRING, day DATE, amount DECIMAL(10, 2), parts ARRAY<INT>)"
        )
        db.insert("r", READINGS)
        db.insert("p", PLACES[:2])
        db.insert("p", PLACES[2:])
        db.sql(
            "CREATE VIEW by_place AS SELECT place, count(*) AS n, sum(v) AS total FROM r GROUP BY place"
        )
        db.sql("CREATE VIEW names AS SELECT upper(title) AS n FROM p")
        db.sql("CREATE FUNCTION twice(x INT) RETURNS INT RETURN 2 * x")
        db.sql("CREATE TABLE odd (`current_date` INT)")
        db.sql("INSERT INTO odd VALUES (7)")
        yield db


@pytest.fixture
def fed(opened: headwater.Database) -> Iterator[headwater.Database]:
    yield opened
    opened.sql("SET select_rows = 500000")
    opened.sql("SET time_zone = 'UTC'")


def _spark_refuses(*_: object) -> None:
    raise AssertionError("this asked for Spark")


@pytest.mark.parametrize("select", SELECTS)
def test_operators_answer_as_spark_does(
    fed: headwater.Database, monkeypatch: pytest.MonkeyPatch, select: str
) -> None:
    fed.sql("SET select_rows = 0")
    wanted = fed.sql(select).arrow()
    fed.sql("SET select_rows = 500000")
    monkeypatch.setattr(Kernel, "run", _spark_refuses)
    found = fed.sql(select).arrow()
    assert found.schema.names == wanted.schema.names
    assert found.schema.types == wanted.schema.types
    if any(word in select for word in ORDERED):
        for pair in zip(_rows(found), _rows(wanted), strict=True):
            check_same([pair[0]], [pair[1]])
    else:
        check_same(_rows(found), _rows(wanted))


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("select", TO_SPARK)
def test_what_operators_do_not_answer_is_left_to_spark(
    fed: headwater.Database, monkeypatch: pytest.MonkeyPatch, select: str
) -> None:
    asked: list[object] = []
    run = Kernel.run

    def watched(self: Kernel, *arguments: Any) -> Any:
        asked.append(arguments)
        return run(self, *arguments)

    monkeypatch.setattr(Kernel, "run", watched)
    fed.sql("SET select_rows = 100")
    rows = fed.sql(select).rows()
    assert rows
    assert asked


def test_a_row_that_raises_is_for_spark_to_judge(fed: headwater.Database) -> None:
    """ANSI: the cast raises; which row is the first is Spark's to say, and its words are told."""
    with pytest.raises(headwater.Error) as caught:
        fed.sql("SELECT sum(CAST(name AS INT)) FROM r WHERE place = 1")
    assert caught.value.sqlstate == "22018"


def test_more_rows_than_the_setting_are_for_spark(fed: headwater.Database) -> None:
    select = "EXPLAIN SELECT place, count(*) FROM r GROUP BY place"
    assert fed.sql(select).rows()[0] == ("run by operators",)
    fed.sql("SET select_rows = 5")
    assert fed.sql(select).rows()[0] == ("run by Spark",)
    fed._context.streams.seal_all()  # of blocks those can be left out that have no such time
    narrow = "EXPLAIN SELECT count(*) FROM r WHERE ts < TIMESTAMP '1999-01-01 00:00:00'"
    assert fed.sql(narrow).rows()[0] == ("run by operators",)


def test_spark_need_not_be_there(
    connect: Callable[..., headwater.Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "_started", _spark_refuses)
    db = connect(settings={"eager_spark": False})
    db.sql("CREATE TABLE t (k INT, v INT)")
    db.sql("INSERT INTO t VALUES (1, 10), (1, 20), (2, 5)")
    assert db.sql("SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k").rows() == [(1, 30), (2, 5)]
    now = db.sql("SELECT count(*) AS n, max(now()) AS at FROM t WHERE now() > DATE '2020-01-01'")
    count, at = now.rows()[0]
    assert count == 3
    assert abs((datetime.now(UTC) - at).total_seconds()) < 3600


def test_each_asking_has_its_own_now(fed: headwater.Database) -> None:
    select = "SELECT max(now()) AS at FROM p"
    first = fed.sql(select).rows()[0][0]
    assert fed.sql(select).rows()[0][0] > first


def test_a_known_text_sees_new_rows(fed: headwater.Database) -> None:
    fed.sql("CREATE TABLE grows (k INT)")
    for count in (1, 2, 3):
        fed.sql("INSERT INTO grows VALUES (1)")
        assert fed.sql("SELECT sum(k) AS s FROM grows").rows() == [(count,)]
    fed.sql("DROP TABLE grows")
    fed.sql("CREATE TABLE grows (k STRING)")
    fed.sql("INSERT INTO grows VALUES ('x')")
    assert fed.sql("SELECT max(k) AS s FROM grows").rows() == [("x",)]
    fed.sql("DROP TABLE grows")


def test_it_can_be_cancelled(fed: headwater.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` of the statement is called while operators work, and its error is the answer."""

    class Stopped(headwater.Error):
        sqlstate = "57014"

    def stop() -> None:
        raise Stopped("cancelled")

    few = OperatorsQuery.few_rows
    monkeypatch.setattr(OperatorsQuery, "few_rows", lambda self, _: few(self, stop))
    with pytest.raises(Stopped):
        fed.sql("SELECT place, count(*) FROM r GROUP BY place")


def test_many_may_ask_at_once(fed: headwater.Database) -> None:
    found: list[Any] = []

    def ask(number: int) -> None:
        select = f"SELECT place, count(*) + {number % 2} AS n FROM r WHERE place = 1 GROUP BY place"
        found.extend([(number % 2, fed.sql(select).rows())] * 1)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(repr, found)) == sorted(repr((n % 2, [(1, 3 + n % 2)])) for n in range(16))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_the_time_zone_is_that_of_the_database(fed: headwater.Database, zone: str) -> None:
    select = "SELECT ts::DATE AS d, hour(ts) AS h, CAST(ts AS STRING) AS s, count(*) AS n FROM r GROUP BY ALL"
    fed.sql(f"SET time_zone = '{zone}'")
    found = fed.sql(select).rows()
    fed.sql("SET select_rows = 0")
    check_same(found, fed.sql(select).rows())


def test_zeros_are_one_in_what_is_distinct(fed: headwater.Database) -> None:
    """Spark shows 0.0 for −0.0 once it has grouped."""
    for select in (
        "SELECT DISTINCT v FROM r WHERE v = 0",
        "SELECT v FROM r WHERE v = 0 UNION SELECT v FROM r WHERE v = 0",
        "SELECT v FROM r WHERE v = 0 GROUP BY v",
    ):
        assert repr(fed.sql(select).rows()) == "[(0.0,)]"


@pytest.mark.parametrize(
    ("select", "sqlstate"),
    [
        ("SELECT nope + 1 AS n FROM r", "42703"),
        ("SELECT upper(nope.name) AS n FROM r", "42703"),
        ("SELECT place + 1 AS n FROM r JOIN p ON r.place = p.place", "42704"),
        ("SELECT place, count(*) FROM r", "42803"),
        ("SELECT count() FROM r", "42605"),
        ("SELECT 1 / (place - 1) AS x FROM r", "22012"),
        ("SELECT place * 2147483647 AS x FROM r", "22003"),
        ("SELECT sum(9223372036854775807L) AS x FROM r", "22003"),
        ("SELECT sum(place) AS n FROM absent", "42P01"),
        ("SELECT place FROM r UNION SELECT place, title FROM p", "42826"),
        ("SELECT place, FROM r GROUP BY place", "42601"),
        ("SELECT max(CAST(place AS text)) AS m FROM r", "0A000"),
        ("SELECT percentile(v, 1.5) AS m FROM r", "42K09"),
    ],
)
def test_errors_are_those_of_spark(fed: headwater.Database, select: str, sqlstate: str) -> None:
    with pytest.raises(headwater.Error) as caught:
        fed.sql(select)
    assert caught.value.sqlstate == sqlstate


def test_a_view_over_a_rollup_has_the_total(fed: headwater.Database) -> None:
    fed.sql("CREATE VIEW rolled AS SELECT place, count(*) AS n FROM r GROUP BY place WITH ROLLUP")
    assert sorted(n for _, n in fed.sql("SELECT * FROM rolled").rows())[-1] == len(READINGS)
    fed.sql("DROP VIEW rolled")
