"""Queries: windows, cuts, versions, trailing clauses, functions, tables."""

from __future__ import annotations

from itertools import pairwise

import pytest
import sqlglot
from sqlglot import exp

from headwater.errors import DataError, Error, NotSupportedError, SqlSyntaxError
from headwater.sql.dialect import relation_of
from headwater.sql.duration import Duration
from headwater.sql.parser import parse
from headwater.sql.statements.query import Query

SECOND = 1_000_000


def query(text: str) -> Query:
    found = parse(text)
    assert isinstance(found, Query)
    return found


def removed(text: str) -> str:
    return " ".join(query(text).edited().text.split())


CONTINUOUS = [
    "SELECT * FROM t [INTERVAL '3' SECOND] SAMPLE INTERVAL '2' SECOND",
    "SELECT * FROM t[INTERVAL 3 SECONDS BEFORE] AS a SAMPLE INTERVAL 2 SECONDS EMIT ALL",
    "SELECT * FROM t [INTERVAL '3' SECOND] a, u [ROWS 3] b, v [vid ROWS 1], w [LANDMARK] x"
    " WHERE a.i = b.i SAMPLE 1600 ROWS EMIT INSERTS",
    "SELECT a.x, count(*) FROM t [a, b ROWS 7] AS a GROUP BY a.x SAMPLE REALTIME EMIT DELETES",
    "SELECT * FROM t [ROWS 3] JOIN u [ROWS 5] AS b ON t.a = b.a LEFT JOIN s ON s.x = b.x"
    " SAMPLE REALTIME EMIT CHANGES WITH APPEND",
    "SELECT k, x FROM t WITH UPDATES",
    "SELECT k, x FROM t WITH UPDATES SCHEDULE LINECUTTING WINDOWS EAGER"
    " WHEN BEHIND INTERVAL '3' SECOND REFRESH EVERY INTERVAL '1' SECOND FOR k IN (1, f(2), 'a')",
    "SELECT k, x FROM t [ROWS 3] SAMPLE REALTIME WITH SHEDDING 0.25",
    "SELECT * FROM STREAM(s, 'CUT ON ts BY 60 SECS') x",
    "SELECT * FROM STREAM(s, 'CUT ON ts BY 60 SECS', 'BLOCK') AS x WHERE x.a > 1",
    "SELECT * FROM STREAM(s, 'CUT BY 1000 ROWS', 'BLOCK', 12) x, STREAM(u, 'CUT BY 1000 ROWS') y",
    "SELECT * FROM s CUT ON ts BY INTERVAL '60' SECOND x",
    "SELECT * FROM s CUT ON ts BY INTERVAL '60' SECOND KEEP 12 CHUNKS x PAIR NEWEST",
    "SELECT * FROM s CUT BY 100 ROWS x JOIN u CUT BY 100 ROWS KEEP 2 CHUNKS AS y ON x.a = y.a",
    "SELECT * FROM s CUT ON key WHERE a = 1",
    "SELECT * FROM v VERSION AS OF 12",
    "SELECT * FROM v VERSION AS OF 'latest' AS w",
    "WITH c AS (SELECT * FROM t [ROWS 3]) SELECT * FROM c, (SELECT max(a) FROM u [LANDMARK]) d"
    " SAMPLE 3 ROWS",
    "SELECT * FROM t [ROWS 3] WHERE a IN (SELECT b FROM u [INTERVAL '1' MINUTE]) SAMPLE 3 ROWS",
    "FROM t [ROWS 3] SELECT a SAMPLE 3 ROWS",
    "SELECT window.start, count(*) FROM t GROUP BY window(ts, '10 minutes')",
    "(SELECT a FROM t [ROWS 3] SAMPLE 3 ROWS)",
    "SELECT a FROM t [ROWS 3] UNION ALL SELECT b FROM u [ROWS 3] SAMPLE 3 ROWS EMIT CHANGES",
    "SELECT PREV(x), prev(y + 1, 3) FROM t [a ROWS 5] SAMPLE REALTIME",
    "SELECT CURRENT_INSTANT(), VALID(a) FROM t [ROWS 5] a SAMPLE REALTIME",
]


@pytest.mark.parametrize("text", CONTINUOUS)
def test_what_is_left_is_in_sparks_grammar(text: str) -> None:
    found = query(text)
    left = found.edited().text
    for word in ("[", "SAMPLE", "EMIT", "CUT", "VERSION", "LANDMARK", "WITH UPDATES", "NEWEST"):
        assert word not in left
    if "window(" not in text:  # sqlglot's Spark dialect cannot read it, ours can
        sqlglot.parse_one(left, read="spark")
    assert found.tree is not None
    assert found.tree_error is None


@pytest.mark.parametrize("text", CONTINUOUS)
def test_spans_are_ordered_and_do_not_overlap(text: str) -> None:
    spans = query(text).spans
    for before, after in pairwise(spans):
        assert before.end <= after.start
    assert all(0 <= span.start < span.end <= len(text) for span in spans)


def test_windows() -> None:
    found = query(
        "SELECT * FROM t [INTERVAL '0.5' SECOND BEFORE] a, u[ROWS 3] b, v [vid, k ROWS 1],"
        " w [LANDMARK] SAMPLE REALTIME"
    )
    interval, rows, keyed, landmark = found.windows
    assert (interval.kind, interval.duration, interval.before) == (
        "interval",
        Duration(500_000),
        True,
    )
    assert interval.span.of(found.text) == "[INTERVAL '0.5' SECOND BEFORE]"
    assert (rows.kind, rows.rows, rows.keys) == ("rows", 3, ())
    assert (keyed.rows, keyed.keys) == (1, ("vid", "k"))
    assert keyed.keys[0].span.of(found.text) == "vid"
    assert landmark.kind == "landmark"
    assert [(r.name, r.alias) for r in found.table_references] == [
        ("t", "a"), ("u", "b"), ("v", None), ("w", None),
    ]  # fmt: skip


def test_windows_hang_on_the_tables_of_the_tree() -> None:
    found = query("SELECT * FROM t [ROWS 3] a JOIN u ON a.x = u.x SAMPLE REALTIME")
    assert found.tree is not None
    tables = {table.name: relation_of(table) for table in found.tree.find_all(exp.Table)}
    assert tables["t"] is not None
    assert tables["t"].window == found.windows[0]
    assert tables["u"] is not None
    assert tables["u"].window is None


def test_trailing_clauses() -> None:
    found = query(CONTINUOUS[6])
    mode = found.update_mode
    assert mode is not None
    assert (mode.kind, mode.schedule, mode.windows) == ("updates", "linecutting", "eager")
    assert mode.when_behind == Duration(3 * SECOND)
    assert mode.refresh is not None
    assert mode.refresh.every == Duration(SECOND)
    assert mode.refresh.key == "k"
    assert [span.of(found.text) for span in mode.refresh.values] == ["1", "f(2)", "'a'"]
    shed = query(CONTINUOUS[7]).update_mode
    assert shed is not None
    assert shed.fraction == 0.25
    realtime = query(CONTINUOUS[4])
    assert realtime.sample is not None
    assert realtime.sample.kind == "realtime"
    assert realtime.emit is not None
    assert realtime.emit.what == "changes"
    rows = query(CONTINUOUS[2]).sample
    assert rows is not None
    assert (rows.kind, rows.rows) == ("rows", 1600)
    assert query(CONTINUOUS[12]).pair_newest is not None


@pytest.mark.parametrize(
    ("text", "kind", "column", "duration", "rows", "keep"),
    [
        ("STREAM(s, 'CUT ON ts BY 60 SECS')", "interval", "ts", 60, None, 1),
        ("STREAM(s, 'cut on ts by 2 minutes', 'block')", "interval", "ts", 120, None, 1),
        ("STREAM(s, 'CUT ON ts BY 1 HOUR', 'BLOCK', 12)", "interval", "ts", 3600, None, 12),
        ("STREAM(s, 'CUT ON ts BY INTERVAL ''5'' SECOND')", "interval", "ts", 5, None, 1),
        ("STREAM(s, 'CUT BY 1000 ROWS')", "rows", None, None, 1000, 1),
        ("STREAM(s, 'CUT ON key', 'BLOCK', 3)", "key", "key", None, None, 3),
        ("s CUT ON ts BY INTERVAL '60' SECOND", "interval", "ts", 60, None, 1),
        ("s CUT ON ts BY 60 SECS KEEP 12 CHUNKS", "interval", "ts", 60, None, 12),
        ("s CUT BY 1000 ROWS KEEP 1 CHUNK", "rows", None, None, 1000, 1),
        ("s CUT ON `my key`", "key", "my key", None, None, 1),
    ],
)
def test_cuts(
    text: str, kind: str, column: str | None, duration: int | None, rows: int | None, keep: int
) -> None:
    found = query(f"SELECT * FROM {text} x")
    (cut,) = found.cuts
    assert (cut.kind, cut.column, cut.rows, cut.keep) == (kind, column, rows, keep)
    assert cut.duration == (None if duration is None else Duration(duration * SECOND))
    assert cut.span.of(found.text) == text.removeprefix("s ")
    (table,) = found.table_references
    assert (table.name, table.alias, table.span.of(found.text)) == ("s", "x", "s")
    assert " ".join(found.edited().text.split()) == "SELECT * FROM s x"


@pytest.mark.parametrize("after", ["", " |> WHERE TRUE"])  # the second is Spark's alone
def test_generators(after: str) -> None:
    """A call in the place of the stream (EQ9), read by sqlglot or among the tokens."""
    text = "STREAM(get(s, -1, f('a,b', 2)), 'CUT BY 3 ROWS', 'BLOCK', 2)"
    found = query(f"SELECT * FROM {text} x{after}")
    (table,) = found.table_references
    assert (table.name, table.alias) == ("get", "x")
    assert table.generator is not None
    assert table.generator.span.of(found.text) == "get(s, -1, f('a,b', 2))"
    arguments = [span.of(found.text) for span in table.generator.arguments]
    assert arguments == ["s", "-1", "f('a,b', 2)"]
    (cut,) = found.cuts
    assert (cut.rows, cut.keep, cut.span.of(found.text)) == (3, 2, text)
    (none,) = query("SELECT * FROM STREAM(get(), 'CUT BY 3 ROWS')").table_references
    assert none.generator is not None
    assert none.generator.arguments == ()


@pytest.mark.parametrize("after", ["", " |> WHERE TRUE"])
def test_near(after: str) -> None:
    found = query(
        f"SELECT near FROM t WHERE NEAR(a, f(b, 1), -2) AND x.near(1, 2, 3) AND near(1){after}"
    )
    (near,) = found.near
    assert near.span.of(found.text) == "NEAR(a, f(b, 1), -2)"
    parts = (near.value, near.other, near.distance)
    assert [span.of(found.text) for span in parts] == ["a", "f(b, 1)", "-2"]


def test_a_step_without_a_unit() -> None:
    (cut,) = query("SELECT * FROM s CUT ON n BY 60").cuts
    assert (cut.kind, cut.step, cut.duration) == ("interval", 60, None)


def test_versions() -> None:
    found = query(
        "SELECT * FROM v VERSION AS OF 3 a, w VERSION AS OF 'latest', x VERSION AS OF '7'"
    )
    assert [version.number for version in found.versions] == [3, None, 7]
    assert removed(found.text) == "SELECT * FROM v a, w , x"


def test_functions() -> None:
    found = query(
        "SELECT PREV(f(x, 1), 2), t.prev, VALID(a) FROM t [ROWS 3] a"
        " WHERE VALID(a) OVERLAPS PERIOD(x + 1, f(y, 2)) AND CURRENT_INSTANT() > z SAMPLE REALTIME"
    )
    (previous,) = found.previous
    assert (previous.argument.of(found.text), previous.steps) == ("f(x, 1)", 2)
    plain, overlaps = found.valid
    assert plain.period is None
    assert overlaps.alias == "a"
    assert overlaps.period is not None
    assert [span.of(found.text) for span in overlaps.period] == ["x + 1", "f(y, 2)"]
    assert overlaps.span.of(found.text) == "VALID(a) OVERLAPS PERIOD(x + 1, f(y, 2))"
    assert [call.span.of(found.text) for call in found.instants] == ["CURRENT_INSTANT()"]


PLAIN = [
    "SELECT sample, emit, window, range, rows, cut, keep, pair FROM t",
    "SELECT late, stream, source, version, landmark, before, realtime, newest FROM t",
    "SELECT a sample FROM t emit",
    "SELECT * FROM sample realtime",
    "SELECT * FROM a, sample realtime WHERE realtime.x = 1",
    "SELECT * FROM emit changes JOIN pair newest ON changes.a = newest.a",
    "SELECT * FROM t cut JOIN s keep ON cut.a = keep.a",
    "SELECT * FROM a JOIN t cut ON cut.a = a.a",
    "SELECT * FROM a JOIN t cut ON flag WHERE x",
    "SELECT * FROM t version JOIN u late ON version.a = late.a",
    "SELECT a[0], m[landmark], m[interval '1' day], x[rows] FROM t",
    "SELECT sample + emit, sample * rows FROM t ORDER BY sample, emit LIMIT 3",
    "SELECT * FROM t TABLESAMPLE (3 ROWS)",
    "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b)",
    "WITH updates AS (SELECT 1 a), append AS (SELECT 2) SELECT * FROM updates",
    "SELECT a, b FROM t GROUP BY a, b WITH ROLLUP",
    "SELECT extract(YEAR FROM ts), trim(BOTH 'x' FROM y) FROM t WHERE a IS DISTINCT FROM b",
    "SELECT explode(array(1, 2)) AS prev FROM t LATERAL VIEW explode(x) y AS valid, z",
    "SELECT CASE WHEN sample THEN emit ELSE cut END FROM t",
    "SELECT transform(a, x -> x[0]) FROM t",
    "SELECT stream.a FROM stream",
    "SELECT t.current_instant FROM t",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT date '2020-01-01', 'it''s; -- no' /* SAMPLE REALTIME */ FROM t -- EMIT ALL",
]


@pytest.mark.parametrize("text", PLAIN)
def test_our_words_stay_names(text: str) -> None:
    found = query(text)
    assert found.is_plain, found.spans
    assert found.edited().text == found.text


@pytest.mark.parametrize("text", PLAIN)
def test_tables_found_by_tokens_are_those_of_the_tree(text: str) -> None:
    """Two ways to find tables: the scan over tokens misses none that sqlglot sees."""
    found = query(text)
    assert found.tree is not None, found.tree_error
    tables = {table.name.lower() for table in found.tree.find_all(exp.Table) if table.name}
    assert tables <= {relation.name.key for relation in found.relations} | {"x", "y"}


@pytest.mark.parametrize(
    "text",
    ["SELECT v:a.b::int FROM t", "SELECT * FROM t |> NOSUCH x", "SELECT FROM WHERE", "TABLE t"],
)
def test_a_query_that_sqlglot_cannot_read_is_left_to_spark(text: str) -> None:
    found = query(text)
    assert found.tree is None
    assert found.tree_error is not None


def test_a_continuous_query_that_sqlglot_cannot_read_keeps_its_windows() -> None:
    found = query("WITH c AS (SELECT 1) SELECT v:a.b::int FROM t [ROWS 3], c SAMPLE REALTIME")
    assert found.tree is None
    assert [table.name for table in found.table_references] == ["t"]
    assert found.table_references[0].window == found.windows[0]


def test_mistyped_keyword_is_guessed() -> None:
    error = query("SELECT * FRM t").tree_error
    assert error is not None
    assert error.message == 'syntax error at or near "FRM"'
    assert error.hint == "did you mean FROM?"
    assert error.place is not None
    assert error.place.text[error.place.start : error.place.end] == "FRM"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c, C, d", ["t", "d"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a, b) SELECT * FROM b", ["b"]),
        ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x, c", ["c"]),
        ("SELECT * FROM headwater.tables JOIN `my t` y ON y.a IN (SELECT z FROM u)",
         ["headwater.tables", "my t", "u"]),
        ("SELECT * FROM range(3), t", ["t"]),
        ("SELECT a FROM t UNION SELECT b FROM u", ["t", "u"]),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
    ],
)  # fmt: skip
def test_table_references_know_scopes(text: str, expected: list[str]) -> None:
    found = query(text)
    assert [str(table.name) for table in found.table_references] == expected
    for table in found.table_references:
        assert table.span.of(text).replace("`", "") == table.name


def test_identifiers() -> None:
    found = query("SELECT a.B FROM headwater.tables t JOIN Positions ON 1 = 1")
    assert {"headwater.tables", "positions", "a.b"} <= found.identifiers


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("SELECT * FROM t [ROWS x]", "x"),
        ("SELECT * FROM t [ROWS 0]", "0"),
        ("SELECT * FROM t [ROWS 3", "["),
        ("SELECT * FROM t [3]", "3"),
        ("SELECT * FROM t []", "]"),
        ("SELECT * FROM t [INTERVAL]", "]"),
        ("SELECT * FROM t [INTERVAL '3' SECOND AFTER]", "AFTER"),
        ("SELECT * FROM t [vid ROW 3]", "ROW"),
        ("SELECT * FROM t a [ROWS 3]", "["),
        ("SELECT * FROM t [ROWS 3] [ROWS 4]", "["),
        ("SELECT * FROM t SAMPLE 3", ""),
        ("SELECT * FROM t SAMPLE 3 ROWS LIMIT 4", "LIMIT"),
        ("SELECT * FROM t SAMPLE 3 ROWS SAMPLE 4 ROWS", "SAMPLE"),
        ("SELECT * FROM t SAMPLE INTERVAL '3' SECOUNDS", "SECOUNDS"),
        ("SELECT * FROM (SELECT * FROM t SAMPLE 3 ROWS) x", "SAMPLE"),
        ("SELECT * FROM t WITH UPDATES SCHEDULE RANDOM", "RANDOM"),
        ("SELECT * FROM t WITH UPDATES WINDOWS LAZY WINDOWS LAZY", "WINDOWS"),
        ("SELECT * FROM t WITH UPDATES WHEN BEHIND 3", "3"),
        ("SELECT * FROM t WITH SHEDDING 2", "2"),
        ("SELECT * FROM t VERSION AS OF 'x'", "'x'"),
        ("SELECT * FROM STREAM(s, 'CUT') x", "'CUT'"),
        ("SELECT * FROM STREAM(s, 'CUT BY 3 ROWS', 'BLOK') x", "'BLOK'"),
        ("SELECT * FROM s CUT BY x", "x"),
        ("SELECT * FROM s CUT ON ts BY x", "x"),
        ("SELECT PREV() FROM t", ")"),
        ("SELECT PREV(x, 0) FROM t", "0"),
        ("SELECT VALID(a) OVERLAPS x FROM t a", "x"),
        ("SELECT (1 FROM t", "("),
        ("SELECT 1) FROM t", ")"),
    ],
)
def test_errors_have_a_place(text: str, near: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        query(text)
    place = caught.value.place
    assert place is not None
    assert place.text == text
    assert text[place.start : place.end] == near


def test_error_in_a_nested_query_is_placed_in_the_whole_statement() -> None:
    text = "CREATE VIEW v AS SELECT * FROM t [INTERVAL '3' MONTH]"
    with pytest.raises(DataError) as caught:
        parse(text)
    assert caught.value.place is not None
    assert caught.value.place.text == text
    assert text[caught.value.place.start : caught.value.place.end] == "MONTH"


def test_tree_positions_are_text_positions() -> None:
    text = "SELECT a.x FROM t [INTERVAL '3' SECOND] a WHERE a.yy = 1 SAMPLE REALTIME"
    found = query(text)
    assert found.tree is not None
    for node in found.tree.find_all(exp.Identifier):
        assert text[node.meta["start"] : node.meta["end"] + 1] == node.name


def test_deep_nesting_is_left_to_spark() -> None:
    assert query("SELECT " + "(" * 500 + "1" + ")" * 500).tree is None


def test_error_type() -> None:
    with pytest.raises(Error):
        query("SELECT * FROM t [INTERVAL '0' SECOND]")


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("FROM t INSERT INTO u SELECT a", "INSERT"),
        ("FROM t insert /* */ overwrite DIRECTORY '/x' USING csv SELECT a", "insert"),
        ("WITH a (x) AS (SELECT 1), b AS (SELECT 2) INSERT INTO t SELECT * FROM a", "INSERT"),
        ("WITH a AS (SELECT 1) DELETE FROM t", "DELETE"),
        ("WITH a AS (SELECT 1) UPDATE t SET x = 1", "UPDATE"),
        ("WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE", "MERGE"),
    ],
)
def test_a_query_changes_nothing(text: str, verb: str) -> None:
    """Spark would run these as statements of its own, past our tables and past what a reader may do."""
    with pytest.raises(NotSupportedError) as caught:
        parse(text)
    assert caught.value.place is not None
    assert text[caught.value.place.start : caught.value.place.end] == verb


def test_words_of_changes_may_be_names() -> None:
    """Columns and aliases may be called so."""
    for text in (
        "SELECT insert, update, (1) delete FROM merge",
        "WITH a AS (SELECT 1 AS insert) SELECT insert FROM a",
        "WITH a AS (SELECT 1) SELECT (2) update FROM a",
    ):
        assert query(text).text == text
