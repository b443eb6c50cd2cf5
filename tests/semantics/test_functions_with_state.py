"""Functions with state in queries: life spans, restarts, kills, errors (EQ8).

The oracle is one long chain in plain Python. `chain` depends on every row before and on their order, so a
row that is called twice, left out or called out of turn changes all values after it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.harness.actions import (
    Action,
    Advance,
    CreateFunction,
    Flush,
    Insert,
    Kill,
    Restart,
    Sql,
    World,
    run,
)
from tests.harness.patience import PATIENCE_S

INLINE = {"eager_spark": False}
STARTS = 7


class Chain:
    """Everything so far, in one number."""

    def __init__(self) -> None:
        self.held = STARTS

    def __call__(self, v: int) -> int:
        self.held = (self.held * 31 + v) % 1_000_003
        return self.held


def chain(state: dict[str, int], v: int) -> int:
    """The same as a function over a dict."""
    state["held"] = (state.get("held", STARTS) * 31 + v) % 1_000_003
    return state["held"]


def chained(values: list[int]) -> list[int]:
    """The chain of values."""
    one = Chain()
    return [one(value) for value in values]


@dataclass(frozen=True)
class NoSnapshots(Action):
    """From here on queries keep no snapshot but that of their beginning."""

    def act(self, world: World) -> None:
        for query in world.db._context.engine.all():
            query.keeper.looked_at = math.inf


REGISTER: list[Action] = [
    CreateFunction("for_query", Chain, "INT", "query"),
    CreateFunction("for_chunk", chain, "INT", "chunk"),
    CreateFunction("for_scan", chain, "INT", "scan"),
]
COLUMNS = "ts, _seq AS n, v, for_query(v) AS q, for_chunk(v) AS c, for_scan(v) AS s"
Row = tuple[int, str, int]


def _register(db: headwater.Database) -> None:
    for action in REGISTER:
        assert isinstance(action, CreateFunction)
        db.create_function(action.name, action.function, returns=action.returns, state=action.state)


def _results(db: headwater.Database, name: str) -> list[tuple[Any, list[Any]]]:
    db.flush()
    found = db.subscribe(name, after="earliest", timeout=0.01)
    return [(out.time, sorted(out.rows())) for out in found]


def _rows(seed: int, first: int, last: int) -> list[Row]:
    choose = random.Random(seed)
    return [
        (second, choose.choice("abc"), choose.randint(0, 9))
        for second in range(first, last)
        for _ in range(choose.randint(0, 3))
    ]


# Life spans, by windows and cuts, whatever stops the process

BY_TIME = [
    ("FROM s CUT ON ts BY INTERVAL '5' SECOND", lambda ts: ts // 5),
    ("FROM s CUT ON ts BY INTERVAL '5' SECOND KEEP 3 CHUNKS", lambda ts: ts // 5),
    ("FROM s [INTERVAL 7 SECONDS] SAMPLE INTERVAL 3 SECONDS", lambda ts: -(-ts // 3)),
    ("FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 6 SECONDS", lambda ts: -(-ts // 6)),
    ("FROM s [INTERVAL 7 SECONDS BEFORE] SAMPLE INTERVAL 3 SECONDS", lambda ts: ts // 3),
    ("FROM s [k ROWS 2] SAMPLE INTERVAL 4 SECONDS", lambda ts: -(-ts // 4)),
    ("FROM s [ROWS 4] SAMPLE REALTIME", lambda ts: ts),
]
BY_ROWS = [
    ("FROM s CUT BY 4 ROWS", 4),
    ("FROM s CUT BY 3 ROWS KEEP 2 CHUNKS", 3),
    ("FROM s [ROWS 7] SAMPLE 3 ROWS", 3),
    ("FROM s [k ROWS 2] SAMPLE 5 ROWS", 5),
    ("FROM s [INTERVAL 4 SECONDS BEFORE] SAMPLE 3 ROWS", 3),
]
BY_KEY = ["FROM s CUT ON k", "FROM s CUT ON k KEEP 3 CHUNKS"]
TEXTS = [*(text for text, _ in [*BY_TIME, *BY_ROWS]), *BY_KEY]


def _check(
    results: list[tuple[Any, list[Any]]], rows: list[Row], chunk_of: Callable[[int, int], int]
) -> None:
    """Every value of every result against the chain; `chunk_of` takes T and a position."""
    stored = [(ts, n, v) for n, (ts, _, v) in enumerate(rows)]
    assert any(shown for _, shown in results)
    first = next(shown[0][:2] for _, shown in results if shown)
    lived = [row for row in stored if row[:2] >= first]
    for_query = dict(zip((n for _, n, _ in lived), chained([v for *_, v in lived]), strict=True))
    chunks: dict[int, list[tuple[int, int, int]]] = {}
    for position, row in enumerate(stored):
        chunks.setdefault(chunk_of(row[0], position), []).append(row)
    for_chunk = {
        row[1]: value
        for part in chunks.values()
        for row, value in zip(part, chained([v for *_, v in part]), strict=True)
    }
    for time, shown in results:
        scan = chained([row[2] for row in shown])
        for place, (_, n, _, q, c, s, _) in enumerate(shown):
            assert (q, c, s) == (for_query[n], for_chunk[n], scan[place]), (time, n)


def _script(
    kind: str, end: type[Action], parts: list[list[Row]], more: list[Action]
) -> list[Action]:
    """Rows in parts; after each the database is closed or dies, and functions are registered again."""
    script: list[Action] = [
        *REGISTER,
        Sql(f"CREATE {kind} s (ts INT, k STRING, v INT) TIMESTAMP BY ts"),
    ]
    for number, text in enumerate(TEXTS):
        script.append(Sql(f"CREATE CONTINUOUS QUERY q{number} AS SELECT {COLUMNS} {text}"))
    script += more
    for part in parts:
        half = len(part) // 2
        script += [Insert("s", part[:half]), Flush(), Insert("s", part[half:][:2]), end()]
        script += [Insert("s", part[half:][2:]), *REGISTER, *more]
    return [*script, Advance("s", 60)]


@pytest.mark.parametrize(
    ("kind", "end", "more"),
    [
        pytest.param("STREAM", Kill, [], marks=pytest.mark.large),
        ("STREAM", Kill, [NoSnapshots()]),
        pytest.param("STREAMING TABLE", Kill, [NoSnapshots()], marks=pytest.mark.large),
        pytest.param("STREAM", Restart, [NoSnapshots()], marks=pytest.mark.large),
        ("STREAMING TABLE", Restart, []),
    ],
)
def test_state_lives_as_long_as_it_says(
    kind: str, end: type[Action], more: list[Action], tmp_path: Path
) -> None:
    """Every row is called once, in order, over all kinds of windows; rows that come while the functions
    are not there wait; with snapshots now and then, and with calls made again from the beginning."""
    parts = [_rows(n, 12 * n, 12 * n + 12) for n in range(3)]
    settings = {**INLINE, "snapshot_s": 0.1}
    run(_script(kind, end, parts, more), tmp_path, settings)
    rows = [row for part in parts for row in part]
    with headwater.connect(tmp_path, settings=settings) as db:
        _register(db)
        for number, (_, chunk) in enumerate(BY_TIME):
            _check(_results(db, f"q{number}"), rows, lambda ts, _, chunk=chunk: chunk(ts))
        for number, (_, step) in enumerate(BY_ROWS, len(BY_TIME)):
            _check(_results(db, f"q{number}"), rows, lambda _, n, step=step: n // step)
        changed = [n > 0 and row[1] != rows[n - 1][1] for n, row in enumerate(rows)]
        runs = list(itertools.accumulate(changed))
        for number in range(len(TEXTS) - len(BY_KEY), len(TEXTS)):
            _check(_results(db, f"q{number}"), rows, lambda _, n: runs[n])


def test_rows_from_before_the_query_are_called_first() -> None:
    """A window that reaches back: calls begin with its oldest row, chunks where they always begin."""
    rows = _rows(9, 0, 40)
    early = [row for row in rows if row[0] < 17]
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.insert("s", early)
        text = f"SELECT {COLUMNS} FROM s CUT ON ts BY INTERVAL '5' SECOND KEEP 3 CHUNKS"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        db.sql(f"CREATE CONTINUOUS QUERY all_rows FROM BEGINNING AS {text}")
        db.insert("s", rows[len(early) :])
        db.advance("s", 45)
        results = _results(db, "q")
        assert min(row[0] for row in results[0][1]) == 5
        _check(results, rows, lambda ts, _: ts // 5)
        _check(_results(db, "all_rows"), rows, lambda ts, _: ts // 5)


def test_rows_out_of_order_are_called_in_order() -> None:
    """With WATERMARK rows are put right before they are called; a late one is not called."""
    rows = [
        (3, "a", 1),
        (1, "a", 2),
        (2, "b", 3),
        (9, "a", 4),
        (7, "a", 5),
        (1, "c", 6),
        (20, "a", 7),
    ]
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql(
            "CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts"
            " WATERMARK INTERVAL 2 SECONDS LATE KEEP"
        )
        db.sql(
            f"CREATE CONTINUOUS QUERY q AS SELECT {COLUMNS} FROM s CUT ON ts BY INTERVAL '5' SECOND"
        )
        for row in rows:
            db.insert("s", [row])
        db.advance("s", 25)
        values = {row[1]: row[3] for _, shown in _results(db, "q") for row in shown}
        order = [1, 2, 0, 4, 3, 6]
        assert values == dict(zip(order, chained([rows[n][2] for n in order]), strict=True))


def test_both_sides_of_a_self_join_have_state_of_their_own() -> None:
    """Each side calls its own rows once: one row has one value on both sides, joined or not."""
    rows = _rows(4, 0, 20)
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql(
            "CREATE CONTINUOUS QUERY q AS SELECT a._seq AS n, for_query(a.v) AS x, b._seq AS m,"
            " for_query(b.v) AS y FROM s CUT ON ts BY INTERVAL '5' SECOND KEEP 3 CHUNKS a,"
            " s CUT ON ts BY INTERVAL '5' SECOND b WHERE a.k = b.k"
        )
        db.insert("s", rows)
        db.advance("s", 20)
        wanted = chained([v for *_, v in rows])
        pairs = [row for _, shown in _results(db, "q") for row in shown]
        assert len(pairs) > 20
        assert all(x == wanted[n] and y == wanted[m] for n, x, m, y, _ in pairs)


# What a query makes of the values


def test_values_stand_anywhere_in_a_select() -> None:
    """WHERE, GROUP BY, aggregates and ORDER BY see the value; equal calls are one call, made before WHERE."""
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        cut = "FROM s CUT ON ts BY INTERVAL '10' SECOND"
        for name, text in {
            "even": f"SELECT v, for_query(v) AS q {cut} WHERE for_query(s.v) % 2 = 0 ORDER BY ts, _seq",
            "sums": f"SELECT sum(for_query(v)) AS t, max(FOR_QUERY( v )) AS m {cut}",
            "groups": f"SELECT for_query(v) % 3 AS g, count(*) AS n {cut} GROUP BY for_query(v) % 3",
            "since": "SELECT sum(for_query(v)) AS t FROM s [LANDMARK] SAMPLE INTERVAL 10 SECONDS",
        }.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {text}")
        rows = _rows(2, 0, 20)
        db.insert("s", rows)
        db.advance("s", 20)
        wanted = list(zip([ts for ts, *_ in rows], chained([v for *_, v in rows]), strict=True))
        second = [q for ts, q in wanted if ts >= 10]
        even = next(out.rows() for out in db.subscribe("even", after="earliest") if out.time == 20)
        assert [q for _, q, _ in even] == [q for q in second if q % 2 == 0]
        assert _results(db, "sums")[1][1] == [(sum(second), max(second), 20)]
        groups = {g: sum(q % 3 == g for q in second) for g in range(3)}
        assert {g: n for g, n, _ in _results(db, "groups")[1][1]} == {
            g: n for g, n in groups.items() if n
        }
        total = sum(q for _, q in wanted)
        assert _results(db, "since")[1][1] == [(total, 20)]


def test_one_query_with_several_blocks_and_a_table() -> None:
    """A star beside a call, a join with a table, a union: each windowed table calls its own rows."""
    with headwater.connect() as db:
        _register(db)
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE names (k STRING, name STRING)")
        db.sql("INSERT INTO names VALUES ('a', 'A'), ('b', 'B')")
        window = "s CUT ON ts BY INTERVAL '10' SECOND"
        db.sql(f"CREATE CONTINUOUS QUERY starred AS SELECT *, for_query(v) FROM {window}")
        db.sql(
            f"CREATE CONTINUOUS QUERY joined AS SELECT name, for_query(x.v) AS q FROM {window} x"
            f" JOIN names USING (k) UNION ALL SELECT 'none', for_scan(v) FROM {window}"
        )
        db.insert("s", [(1, "a", 1), (2, "c", 2), (3, "b", 3)])
        db.advance("s", 10)
        one, two, three = chained([1, 2, 3])
        assert _results(db, "starred") == [
            (10, [(1, "a", 1, one, 10), (2, "c", 2, two, 10), (3, "b", 3, three, 10)])
        ]
        names = db.sql("SELECT * FROM starred").arrow().column_names
        assert names[:4] == ["ts", "k", "v", "for_query(v)"]
        found = _results(db, "joined")[0][1]
        wanted = [("A", one, 10), ("B", three, 10), *(("none", q, 10) for q in (one, two, three))]
        assert found == sorted(wanted)


def test_values_reach_views_subqueries_and_readers_without_a_query() -> None:
    """A call in a CTE, a materialized view with EMIT CHANGES, and a select that is subscribed to."""
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        cut = "FROM s CUT ON ts BY INTERVAL '10' SECOND"
        db.sql(
            "CREATE MATERIALIZED VIEW m AS WITH c AS (SELECT for_query(v) AS q, ts AS at"
            f" {cut}) SELECT q, at FROM c EMIT CHANGES"
        )
        db.insert("s", [(1, "a", 1)])
        with db.subscribe(f"SELECT for_query(v) AS q {cut}", timeout=PATIENCE_S) as found:
            db.insert("s", [(11, "a", 2), (12, "b", 3), (21, "c", 4), (30, "c", 5)])
            results = [next(found).rows() for _ in range(3)]
        db.flush()
        one, two, three, four = chained([1, 2, 3, 4])
        assert results == [[(one, 10)], [(three, 20), (two, 20)], [(four, 30)]]
        added = [row[:2] for row in db.sql("SELECT * FROM m WHERE _op = '+'").rows()]
        assert sorted(added, key=lambda row: row[1]) == [
            (one, 1),
            (two, 11),
            (three, 12),
            (four, 21),
        ]


def test_explain_says_why_the_query_is_evaluated_again() -> None:
    """A query with state has no fold; the reason names the function and its life span."""
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        lines = db.sql("EXPLAIN SELECT for_chunk(v) AS c FROM s CUT BY 5 ROWS").rows()
        assert "function for_chunk keeps state for the chunk" in lines[1][0]


def test_a_one_time_query_scans_its_window_once() -> None:
    """Over a window state of any life span is fresh for the query; without one there is no order."""
    with headwater.connect() as db:
        _register(db)
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        rows = _rows(6, 0, 10)
        db.insert("s", rows)
        last = chained([v for *_, v in rows[-5:]])
        for name in ("for_query", "for_chunk", "for_scan"):
            found = db.sql(f"SELECT {name}(v), ts FROM s [ROWS 5] ORDER BY _seq")
            assert [row[0] for row in found.rows()] == last
            assert found.arrow().column_names[0] == f"{name}(v)"
        starred = db.sql("SELECT * FROM s [ROWS 5] WHERE for_scan(v) > 0")
        assert starred.arrow().column_names == ["ts", "k", "v"]
        for text in ("SELECT for_scan(v) FROM s", "SELECT for_scan(1)"):
            with pytest.raises(headwater.Error, match="for_scan keeps state") as caught:
                db.sql(text)
            assert "order of the rows" in str(caught.value.hint)
        with pytest.raises(headwater.Error, match="for_scan keeps state"):
            db.sql("UPDATE s SET v = for_scan(v)")


# Refusals


def test_a_view_has_no_state() -> None:
    """CREATE VIEW says what to use instead."""
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        with pytest.raises(headwater.Error, match="for_query keeps state") as caught:
            db.sql("CREATE VIEW w AS SELECT k, sum(for_query(v)) AS t FROM s GROUP BY k")
        assert "MATERIALIZED" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SELECT for_query(a.v + b.v) FROM s CUT BY 2 ROWS a, s CUT BY 2 ROWS b",
            "one windowed or",
        ),
        ("SELECT for_query(1) FROM s CUT BY 2 ROWS a, s CUT BY 2 ROWS b", "one windowed or cut"),
        ("SELECT for_query(t.x) FROM s CUT BY 2 ROWS, t", "one windowed or cut"),
        ("SELECT v + 1 AS w, for_query(w) FROM s CUT BY 2 ROWS", "one windowed or cut"),
        ("SELECT for_query(PREV(v)) FROM s CUT BY 2 ROWS", "mixed with PREV"),
        ("SELECT PREV(for_query(v)) FROM s CUT BY 2 ROWS", "mixed with PREV"),
        ("SELECT for_query(for_scan(v)) FROM s CUT BY 2 ROWS", "another function with state"),
        ("SELECT for_query(v) OVER (ORDER BY v) FROM s CUT BY 2 ROWS", "plain arguments"),
        ("SELECT for_query(DISTINCT v) FROM s CUT BY 2 ROWS", "plain arguments"),
        ("SELECT for_query(hash(v)) FROM s CUT BY 2 ROWS", "argument hash"),
        ("SELECT for_query(v, v) FROM s CUT BY 2 ROWS", "does not take 2 arguments"),
        ("SELECT for_query() FROM s CUT BY 2 ROWS", "does not take 0 arguments"),
    ],
)
def test_calls_that_cannot_be_made_are_refused(text: str, words: str) -> None:
    """At creation, with what is wrong."""
    with headwater.connect(settings=INLINE) as db:
        _register(db)
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE t (x INT)")
        with pytest.raises(headwater.Error) as caught:
            db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        assert words in caught.value.message
        assert not db.sql("SELECT * FROM headwater.queries").rows()


@pytest.mark.parametrize(
    ("kind", "state", "words"),
    [
        ("scalar", "row", "cannot live for 'row'"),
        ("aggregate", "query", "only scalar functions"),
        ("table", "scan", "only scalar functions"),
    ],
)
def test_registrations_that_make_no_sense_are_refused(kind: str, state: str, words: str) -> None:
    """Life spans are three, and only scalar functions have them."""

    class Aggregate(Chain):
        init = add = merge = finish = None

    with headwater.connect(settings=INLINE) as db:
        returns = "v INT" if kind == "table" else "INT"
        with pytest.raises(headwater.Error, match=words):
            db.create_function("f", Aggregate, returns=returns, kind=kind, state=state)
