"""EAGER windows take rows as they come: when, how much is left at the close, and what comes of it (US4)."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater
from headwater.compile.block import StreamPipeline
from headwater.engine.update_query import UpdateQuery
from headwater.engine.update_queue import BatchSizer
from tests.harness.patience import until

INLINE = {"eager_spark": False}
TABLE = "CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)"
SUM = "SELECT k, sum(v) AS t FROM s [INTERVAL 10 SECONDS BEFORE] GROUP BY k"
MAP = "SELECT k, v * 2 AS w FROM s [INTERVAL 10 SECONDS BEFORE] WHERE v > 0"
EVERY_TEN = "SAMPLE INTERVAL 10 SECONDS"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows went through a stream pipeline, each time that some did."""
    counts: list[int] = []
    prepare = StreamPipeline.prepare

    def counted(self: StreamPipeline, rows: Any, *others: Any) -> Any:
        if rows.num_rows:
            counts.append(rows.num_rows)
        return prepare(self, rows, *others)

    monkeypatch.setattr(StreamPipeline, "prepare", counted)
    return counts


@pytest.mark.parametrize("select", [SUM, MAP])
@pytest.mark.parametrize(
    ("kind", "as_they_come", "at_the_close"),
    [("LAZY", [], [6]), ("EAGER", [1, 1, 1, 1, 1, 1], [])],
)
def test_the_close_of_an_eager_window_only_finishes(
    select: str, kind: str, as_they_come: list[int], at_the_close: list[int], computed: list[int]
) -> None:
    """C_t instead of C_t·ω: LAZY has all rows of a window to do when it closes, EAGER none."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {select} {EVERY_TEN} WITH UPDATES WINDOWS {kind}")
        for ts in range(1, 7):
            db.insert("s", [(ts, "a", ts)])
            db.flush()
        assert computed == as_they_come
        computed.clear()
        db.advance("s", 10)
        db.flush()
        assert computed == at_the_close
        assert db.sql("SELECT k FROM q").rows()


def test_a_query_that_cannot_be_folded_is_as_lazy_and_says_why() -> None:
    """Its window is whole before it is evaluated, and the newest closed one is taken."""
    text = "SELECT k, percentile(v, 0.5) AS p FROM s [INTERVAL 10 SECONDS BEFORE] GROUP BY k"
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text} {EVERY_TEN} WITH UPDATES WINDOWS EAGER")
        lines = [row[0] for row in db.sql("EXPLAIN QUERY q").rows()]
        (why,) = [line for line in lines if "as LAZY" in line]
        assert why.endswith(": aggregate percentile has no fold")
        db.sql(f"CREATE CONTINUOUS QUERY r AS {SUM} {EVERY_TEN} WITH UPDATES WINDOWS EAGER")
        assert "  folded as rows of a window come, operators" in [
            row[0] for row in db.sql("EXPLAIN QUERY r").rows()
        ]
        db.insert("s", [(1, "a", 1), (2, "a", 3), (11, "a", 7)])
        db.advance("s", 15)
        waiting = "SELECT waiting FROM headwater.staleness WHERE key IS NULL AND query_name = 'q'"
        db.flush()
        assert db.sql(waiting).rows() == [(1,)]  # of the window that is not whole
        assert db.sql("SELECT * FROM q").rows() == [("a", 2.0, 10)]


# Any rows, windows and keys

AGGREGATES = (
    "count(*) AS n, sum(v) AS t, avg(v) AS a, min(v) AS low, max(w) AS high,"
    " count(DISTINCT w) AS d, first(w) AS f, last(v) AS l"
)
SELECTS = (
    f"SELECT k, {AGGREGATES} FROM {{s}} GROUP BY k",
    "SELECT k, v % 2 AS odd, sum(w) AS t, count(DISTINCT w) AS d FROM {s} GROUP BY k, v % 2",
    "SELECT k, sum(w) AS t FROM {s} WHERE v <> 2 GROUP BY k HAVING count(*) > 1",
    "SELECT DISTINCT k, w FROM {s}",
    "SELECT k, v, w + 1 AS x FROM {s} WHERE v > 1",
    "SELECT s.k, sum(v * factor) AS t FROM {s} JOIN {rates} r ON s.w = r.w GROUP BY s.k",
    "SELECT s.k, v, factor FROM {s} JOIN {rates} r ON s.w = r.w",
)
EXAMPLES = 40
Moves = list[tuple[str, Any]]
moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("insert"),
            st.lists(
                st.tuples(
                    st.integers(0, 2),  # how much later
                    st.sampled_from(["a", "a", "b", None]),
                    st.one_of(st.none(), st.integers(0, 4)),
                    st.integers(0, 3),
                ),
                min_size=1,
                max_size=4,
            ),
        ),
        st.tuples(st.just("advance"), st.integers(0, 3)),
        st.tuples(st.just("rate"), st.integers(0, 3)),
    ),
    min_size=1,
    max_size=12,
)


def test_eager_results_are_those_of_lazy_and_of_the_query_run_once() -> None:
    """Each window that is delivered is what re-evaluation gives, also where a table beside it changes."""
    numbers, delivered = itertools.count(), 0
    with headwater.connect(settings=INLINE) as db:

        @settings(max_examples=EXAMPLES)
        @given(
            select=st.sampled_from(SELECTS),
            moves=moves,
            size=st.integers(1, 6),
            slide=st.integers(1, 6),
            before=st.sampled_from(["", " BEFORE"]),
            calm=st.booleans(),
        )
        def check(
            select: str, moves: Moves, size: int, slide: int, before: str, calm: bool
        ) -> None:
            nonlocal delivered
            number = next(numbers)
            columns = "(ts INT, k STRING, v INT, w INT)"
            db.sql(f"CREATE STREAMING TABLE s{number} {columns} TIMESTAMP BY ts UPDATE KEY (k)")
            db.sql(f"CREATE TABLE rates{number} (w INT, factor INT)")
            stream = f"s{number} [INTERVAL {size} SECONDS{before}] s"
            text = select.format(s=stream, rates=f"rates{number}")
            text += f" SAMPLE INTERVAL {slide} SECONDS"
            clauses = {"": "", "lazy": " WITH UPDATES", "eager": " WITH UPDATES WINDOWS EAGER"}
            for kind, clause in clauses.items():
                again = "" if clause else " WITH (mode = 'reevaluate')"
                db.sql(f"CREATE CONTINUOUS QUERY q{number}{kind}{again} AS {text}{clause}")
            _play(db, number, moves, calm or "{rates}" in select)
            expected, lazy, eager = (_by_window(db, f"q{number}{kind}") for kind in clauses)
            assert lazy.items() <= expected.items()
            assert eager.items() <= expected.items()
            delivered += len(eager)
            for kind in clauses:
                db.sql(f"DROP CONTINUOUS QUERY q{number}{kind}")

        check()
    assert delivered > EXAMPLES // 4


def _play(db: headwater.Database, number: int, moves: Moves, calm: bool) -> None:
    """Makes the moves; `calm`: each is answered before the next."""
    now = 0
    for what, how in moves:
        if what == "insert":
            rows = []
            for later, *values in how:
                now += later
                rows.append((now, *values))
            db.insert(f"s{number}", rows)
        elif what == "advance":
            now += how
            db.advance(f"s{number}", now)
        else:
            db.sql(f"INSERT INTO rates{number} VALUES ({how}, {how + 2})")
        if calm:
            db.flush()
    db.advance(f"s{number}", now + 20)
    db.flush()


def _by_window(db: headwater.Database, name: str) -> dict[tuple[Any, ...], list[str]]:
    """The rows that a query gave, by key and instant."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for out in db.subscribe(name, after="earliest", timeout=0.001):
        for row in out.rows():
            found.setdefault((row[0], row[-1]), []).append(repr(row))
    return {key: sorted(rows) for key, rows in found.items()}


@pytest.mark.parametrize("kind", ["STREAMING TABLE", "STREAM"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT s.k, sum(v * factor) AS t FROM {s} JOIN rates r ON s.v = r.w GROUP BY s.k",
        "SELECT s.k, v * factor AS t FROM {s} JOIN rates r ON s.v = r.w",
    ],
    ids=["folded", "mapped"],
)
def test_a_table_that_changes_is_seen_by_rows_that_have_come(
    select: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken of open windows is taken again from the stored rows, each of them once."""
    allowed, fired, fire = threading.Semaphore(0), [], UpdateQuery.fire

    def if_allowed(self: UpdateQuery) -> int:
        allowed.acquire()
        fired.append(fire(self))
        return fired[-1]

    monkeypatch.setattr(UpdateQuery, "fire", if_allowed)
    monkeypatch.setattr(BatchSizer, "count", 1)  # one key at a time
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.replace("STREAMING TABLE", kind))
        db.sql("CREATE TABLE rates (w INT, factor INT)")
        db.sql("INSERT INTO rates VALUES (1, 10)")
        text = select.format(s="s [INTERVAL 10 SECONDS BEFORE] s")
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text} {EVERY_TEN} WITH UPDATES WINDOWS EAGER")
        db.insert("s", [(2, "a", 1), (2, "b", 2)])
        allowed.release(2)
        until(lambda: len(fired) == 2)
        db.insert("s", [(3, "a", 2), (3, "b", 2), (4, "a", 1)])
        allowed.release()
        until(lambda: len(fired) == 3)  # a has come further than b, of which a row waits
        db.sql("INSERT INTO rates VALUES (2, 100)")
        allowed.release(100)
        db.flush()
        db.advance("s", 10)
        db.flush()
        found = {"a": 0, "b": 0}
        for key, total, _ in db.sql("SELECT * FROM q").rows():
            found[key] += total
        assert found == {"a": 10 + 200 + 10, "b": 200 + 200}


@pytest.mark.parametrize("select", [SUM, MAP])
def test_what_was_folded_is_made_again_where_rows_change_or_the_query_stood_still(
    select: str,
) -> None:
    """After PAUSE and RESUME, and after DELETE, the open window has the rows that are there, each once."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {select} {EVERY_TEN} WITH UPDATES WINDOWS EAGER")
        db.insert("s", [(1, "a", 1), (2, "a", 20), (3, "b", 300)])
        db.flush()
        db.sql("PAUSE QUERY q")
        db.insert("s", [(4, "a", 4000)])
        db.sql("RESUME QUERY q")
        db.flush()
        db.sql("DELETE FROM s WHERE v = 20")
        db.insert("s", [(5, "b", 50_000)])
        db.flush()
        db.advance("s", 10)
        db.flush()
        found = {"a": 0, "b": 0}
        for key, total, time in db.sql("SELECT * FROM q").rows():
            assert time == 10
            found[key] += total
        twice = 2 if select == MAP else 1
        assert found == {"a": 4001 * twice, "b": 50_300 * twice}
