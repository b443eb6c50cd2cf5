"""Every statement form of DESIGN §4: what it becomes, and what is refused."""

# ruff: noqa: E501  # SQL as data reads better on one line
from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from headwater.errors import Error, SqlSyntaxError
from headwater.sql.duration import Duration
from headwater.sql.literals import Literal
from headwater.sql.masking import masked
from headwater.sql.parser import parse
from headwater.sql.statements.advance import Advance
from headwater.sql.statements.alter import (
    AlterQueryResetLandmark,
    AlterSetParts,
    AlterTableAddColumns,
    AlterTableDropColumns,
    AlterTableRename,
    AlterTableRenameColumn,
    AlterTableSetClock,
    AlterTableSetMaxClockAhead,
    AlterTableSetRange,
    AlterViewRefreshStatic,
)
from headwater.sql.statements.base import Statement
from headwater.sql.statements.call import Call
from headwater.sql.statements.control import ControlQuery, ControlSink, ControlSource
from headwater.sql.statements.copy import Copy
from headwater.sql.statements.create_continuous_query import CreateContinuousQuery
from headwater.sql.statements.create_function import CreateFunction
from headwater.sql.statements.create_index import CreateIndex
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.create_procedure import CreateProcedure
from headwater.sql.statements.create_sink import CreateSink
from headwater.sql.statements.create_source import CreateSource
from headwater.sql.statements.create_streaming_table import CreateStreamingTable
from headwater.sql.statements.create_table import CreateTable
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.delete import Delete
from headwater.sql.statements.describe import Describe
from headwater.sql.statements.drop import KINDS as DROPS
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.explain import Explain, ExplainObject
from headwater.sql.statements.flush import Flush
from headwater.sql.statements.insert import Insert, InsertFromStream
from headwater.sql.statements.merge import Merge
from headwater.sql.statements.query import Query
from headwater.sql.statements.setting import ResetSetting, SetSetting
from headwater.sql.statements.show import KINDS as SHOWS
from headwater.sql.statements.show import Show, ShowSetting
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.statements.transaction import Begin, Commit, Rollback
from headwater.sql.statements.truncate import Truncate
from headwater.sql.statements.update import Update
from headwater.sql.statements.user import AlterUser, CreateUser
from headwater.sql.statements.verify import VerifyView

S = TypeVar("S", bound=Statement)
SECOND = Duration(1_000_000)


def read(kind: type[S], text: str) -> S:
    found = parse(text)
    assert type(found) is kind
    return found


def test_create_streaming_table() -> None:
    found = read(
        CreateStreamingTable,
        "CREATE STREAMING TABLE IF NOT EXISTS t (id INT NOT NULL, `when` TIMESTAMP COMMENT 'c', x DOUBLE)"
        " TIMESTAMP BY when RANGE INTERVAL '1' DAY WATERMARK INTERVAL '5' SECOND LATE REJECT"
        " UPDATE KEY (id, x) WITH (compartments = 8, name = 'a', fast = true, wait = INTERVAL '1' SECOND);",
    )
    assert (found.name, found.kind, found.if_not_exists) == ("t", "streaming table", True)
    assert [(c.name, c.type, c.nullable, c.comment) for c in found.columns] == [
        ("id", pa.int32(), False, None),
        ("when", pa.timestamp("us", "UTC"), True, "c"),
        ("x", pa.float64(), True, None),
    ]
    assert found.columns[0].field == pa.field("id", pa.int32(), nullable=False)
    assert found.timestamp_by == "when"
    assert found.range == Duration(86_400_000_000)
    assert found.watermark == Duration(5_000_000)
    assert (found.late, found.update_key) == ("reject", ("id", "x"))
    assert found.options == {"compartments": 8, "name": "a", "fast": True, "wait": SECOND}


def test_create_streaming_table_defaults() -> None:
    found = read(CreateStreamingTable, "create streaming table T (a bigint) range forever")
    assert found.name == "T"
    assert (found.timestamp_by, found.range, found.watermark) == (None, None, Duration(0))
    assert (found.late, found.update_key, found.options) == ("keep", None, {})
    assert read(CreateStreamingTable, "CREATE STREAM s (a INT) UPDATE KEY ()").update_key == ()


@pytest.mark.parametrize(
    "text", ["CREATE STREAM s (a INT)", "CREATE FOREIGN TABLE s (a INT) SERVER stream"]
)
def test_create_stream(text: str) -> None:
    assert read(CreateStreamingTable, text).kind == "stream"


def test_create_table() -> None:
    found = read(
        CreateTable, "CREATE TABLE IF NOT EXISTS t (a INT, b ARRAY<STRING> NOT NULL) COMMENT 'x'"
    )
    assert [c.name for c in found.columns] == ["a", "b"]
    assert (found.query, found.if_not_exists, found.or_replace, found.comment) == (
        None,
        True,
        False,
        "x",
    )
    selected = read(
        CreateTable, "CREATE OR REPLACE TABLE t AS WITH c AS (SELECT 1 a) SELECT a FROM c"
    )
    assert selected.or_replace
    assert selected.query is not None
    assert selected.query.span.of(selected.text) == selected.query.text
    assert selected.query.text == "WITH c AS (SELECT 1 a) SELECT a FROM c"


def test_create_index() -> None:
    found = read(CreateIndex, "CREATE INDEX i ON t (a)")
    assert (found.name, found.table, found.columns, found.method) == ("i", "t", ("a",), "btree")
    assert read(CreateIndex, "CREATE INDEX IF NOT EXISTS i ON t USING HASH (a, b)").method == "hash"


def test_insert_literals() -> None:
    found = read(Insert, "INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL);")
    assert (found.table, found.columns) == ("t", ("a", "b"))
    assert found.rows is not None
    assert [[value.value for value in row] for row in found.rows] == [[1, "x"], [-2, None]]
    assert found.rows[0][0] == Literal(1, pa.int32())
    assert found.query.text == "VALUES (1, 'x'), (-2, NULL)"
    single = read(Insert, "INSERT INTO t VALUES 1, 2").rows
    assert single is not None
    assert [row[0].value for row in single] == [1, 2]


@pytest.mark.parametrize(
    "rest",
    ["VALUES (1, now())", "VALUES (1), (1 + 1)", "SELECT * FROM u", "WITH c AS (SELECT 1) SELECT * FROM c",
     "(SELECT 1)", "FROM u SELECT a", "TABLE u", "VALUES (1) ORDER BY 1", "VALUES (DEFAULT)"],
)  # fmt: skip
def test_insert_that_spark_evaluates(rest: str) -> None:
    found = read(Insert, f"INSERT INTO TABLE t {rest}")
    assert found.rows is None
    assert found.query.text == rest
    assert found.query_span.of(found.text) == rest


def test_insert_by_name_and_from_stream() -> None:
    assert read(Insert, "INSERT INTO t BY NAME SELECT 1 a").by_name
    found = read(InsertFromStream, "INSERT INTO t FROM STREAM 'csv:/x' WITH (header = true)")
    assert (found.table, found.url, found.options) == ("t", "csv:/x", {"header": True})


def test_copy() -> None:
    found = read(Copy, "COPY t FROM 'file.csv' CSV HEADER")
    assert (found.direction, found.table, found.path) == ("from", "t", "file.csv")
    assert (found.format, found.header, found.delimiter, found.null) == ("csv", True, ",", "")
    text = read(Copy, "COPY t (a, b) FROM STDIN")
    assert (text.path, text.columns) == (None, ("a", "b"))
    assert (text.format, text.header, text.delimiter, text.null) == ("text", False, "\t", "\\N")
    listed = read(Copy, r"COPY t TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';', NULL '\N')")
    assert (listed.direction, listed.format, listed.delimiter, listed.null) == (
        "to",
        "csv",
        ";",
        "\\N",
    )
    assert not read(Copy, "COPY t TO STDOUT (FORMAT csv, HEADER false)").header
    query = read(Copy, "COPY (SELECT a FROM t) TO 'x.csv' DELIMITER '|'")
    assert isinstance(query.query, Query)
    assert (query.query.text, query.delimiter, query.format) == ("SELECT a FROM t", "|", "csv")


def test_delete() -> None:
    found = read(Delete, "DELETE FROM t AS x WHERE x.a IN (SELECT b FROM u WHERE c) ;")
    assert found.where is not None
    assert (found.table, found.alias) == ("t", "x")
    assert found.where.of(found.text) == "x.a IN (SELECT b FROM u WHERE c)"
    assert read(Delete, "DELETE FROM t").where is None


def test_update() -> None:
    found = read(
        Update,
        "UPDATE t SET a = CASE WHEN x = 1 THEN 2 END, t.b = (SELECT max(c) FROM u WHERE d), `where` = f(1, 2)"
        " WHERE a > 1 AND b = CASE WHEN c THEN 1 END",
    )
    pieces = [(a.column, a.value.of(found.text)) for a in found.assignments]
    assert pieces == [
        ("a", "CASE WHEN x = 1 THEN 2 END"),
        ("b", "(SELECT max(c) FROM u WHERE d)"),
        ("where", "f(1, 2)"),
    ]
    assert found.where is not None
    assert found.where.of(found.text) == "a > 1 AND b = CASE WHEN c THEN 1 END"
    assert read(Update, "UPDATE t x SET x.a = 1").alias == "x"


def test_merge() -> None:
    found = read(
        Merge,
        "MERGE INTO t AS a USING (SELECT * FROM s WHERE z) b ON a.k = b.k AND CASE WHEN x THEN y END"
        " WHEN MATCHED AND b.op = CASE WHEN 1 = 1 THEN 'd' END THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET a.v = b.v + 1, w = CASE WHEN b.w THEN 1 END"
        " WHEN NOT MATCHED BY TARGET AND b.op <> 'd' THEN INSERT (k, a.v) VALUES (b.k, f(b.v, 1))"
        " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
    )
    assert isinstance(found.source, Query)
    assert found.source.text == "SELECT * FROM s WHERE z"
    assert found.source_span.of(found.text) == "(SELECT * FROM s WHERE z)"
    assert (found.alias, found.source_alias) == ("a", "b")
    assert found.condition.of(found.text) == "a.k = b.k AND CASE WHEN x THEN y END"
    delete, update, insert, by_source = found.clauses
    assert delete.condition is not None
    assert (delete.when, delete.action) == ("matched", "delete")
    assert delete.condition.of(found.text) == "b.op = CASE WHEN 1 = 1 THEN 'd' END"
    assert [(a.column, a.value.of(found.text)) for a in update.assignments] == [
        ("v", "b.v + 1"),
        ("w", "CASE WHEN b.w THEN 1 END"),
    ]
    assert (insert.when, insert.columns) == ("not matched", ("k", "v"))
    assert [span.of(found.text) for span in insert.values] == ["b.k", "f(b.v, 1)"]
    assert (by_source.when, by_source.action) == ("not matched by source", "update")


def test_merge_stars_and_named_source() -> None:
    found = read(
        Merge,
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;",
    )
    assert found.source == "s"
    assert [clause.action for clause in found.clauses] == ["update all", "insert all"]


def test_truncate() -> None:
    assert read(Truncate, "TRUNCATE TABLE t").table == "t"


def test_sources_and_sinks() -> None:
    source = read(CreateSource, "CREATE SOURCE src INTO t FROM 'kafka://h/topic' WITH (idle_timeout = INTERVAL '1' SECOND, 'group.id' = 'x')")  # fmt: skip
    assert (source.name, source.table, source.url) == ("src", "t", "kafka://h/topic")
    assert source.options == {"idle_timeout": SECOND, "group.id": "x"}
    sink = read(CreateSink, "CREATE SINK k FROM q INTO 'parquet:/out'")
    assert (sink.name, sink.query, sink.url, sink.options) == ("k", "q", "parquet:/out", {})


SELECT = "SELECT a FROM t [ROWS 3] SAMPLE 3 ROWS"


def test_create_continuous_query() -> None:
    found = read(CreateContinuousQuery, f"CREATE CONTINUOUS QUERY q FROM BEGINNING WITH (mode = 'fold', priority = 2, max_wait = INTERVAL '1' SECOND) AS {SELECT}")  # fmt: skip
    assert found.from_beginning
    assert found.options == {"mode": "fold", "priority": 2, "max_wait": SECOND}
    assert found.query.sample is not None
    assert found.query.span.of(found.text) == SELECT
    assert not read(CreateContinuousQuery, f"CREATE CONTINUOUS QUERY q AS {SELECT}").from_beginning


def test_create_views() -> None:
    kept = read(
        CreateMaterializedView, f"CREATE MATERIALIZED VIEW m RANGE INTERVAL '5' MINUTE AS {SELECT}"
    )
    assert kept.range == Duration(300_000_000)
    plain = read(CreateMaterializedView, f"CREATE MATERIALIZED VIEW m AS {SELECT}")
    assert plain.range is plain.update_key is None
    for clause, key in (("UPDATE KEY (a, b)", ("a", "b")), ("UPDATE KEY ()", ())):
        text = f"CREATE MATERIALIZED VIEW m RANGE FOREVER {clause} WITH (priority = 1) AS {SELECT}"
        assert read(CreateMaterializedView, text).update_key == key
    text = f"CREATE MATERIALIZED VIEW m UPDATE KEY (a) FROM BEGINNING RANGE FOREVER AS {SELECT}"
    assert read(CreateMaterializedView, text).from_beginning
    with pytest.raises(SqlSyntaxError, match="RANGE occurs twice"):
        parse(f"CREATE MATERIALIZED VIEW m RANGE FOREVER RANGE FOREVER AS {SELECT}")
    view = read(CreateView, "CREATE OR REPLACE VIEW v FROM NOW WITH (maintenance = 'split', volatile = 'at insert') AS SELECT 1")  # fmt: skip
    assert (view.or_replace, view.from_now) == (True, True)
    assert view.options == {"maintenance": "split", "volatile": "at insert"}
    assert read(CreateView, "CREATE VIEW v (a, b) AS SELECT 1, 2").columns == ("a", "b")


def test_subscribe() -> None:
    named = read(Subscribe, "SUBSCRIBE q AFTER 'token' CONFLATE BY k")
    assert (named.target, named.after, named.earliest, named.conflate_by) == (
        "q",
        "token",
        False,
        ("k",),
    )
    bare = read(Subscribe, f"SUBSCRIBE TO {SELECT}")
    assert isinstance(bare.target, Query)
    assert bare.target.text == SELECT
    full = read(Subscribe, f"SUBSCRIBE ({SELECT}) EARLIEST")
    assert isinstance(full.target, Query)
    assert full.target.text == SELECT
    assert full.earliest
    assert read(Subscribe, "SUBSCRIBE q EMIT CHANGES").emit == "changes"
    assert read(Subscribe, "SUBSCRIBE q").after is None


def test_control() -> None:
    for action in ("pause", "resume", "kill"):
        found = read(ControlQuery, f"{action.upper()} QUERY q")
        assert (found.action, found.name) == (action, "q")
    assert read(ControlSource, "PAUSE SOURCE src").action == "pause"
    assert read(ControlSource, "RESUME SOURCE src").name == "src"
    assert read(ControlSink, "PAUSE SINK k").action == "pause"
    assert read(ControlSink, "RESUME SINK k").name == "k"


def test_alter() -> None:
    assert read(AlterQueryResetLandmark, "ALTER QUERY q RESET LANDMARK").at is None
    assert read(AlterQueryResetLandmark, "ALTER QUERY q RESET LANDMARK AT 17").at == 17
    assert read(AlterViewRefreshStatic, "ALTER VIEW v REFRESH STATIC").name == "v"
    for kind in ("view", "query"):
        altered = read(AlterSetParts, f"ALTER {kind} x SET (parts = 3)")
        assert (altered.kind, altered.name, altered.options) == (kind, "x", {"parts": 3})
    assert read(AlterTableSetRange, "ALTER TABLE t SET RANGE FOREVER").range is None
    assert read(AlterTableSetRange, "ALTER TABLE t SET RANGE INTERVAL '1' SECOND").range == SECOND
    assert read(AlterTableSetClock, "ALTER TABLE t SET CLOCK TO 17").time == 17
    ahead = "ALTER TABLE t SET MAX_CLOCK_AHEAD"
    assert read(AlterTableSetMaxClockAhead, f"{ahead} DEFAULT").ahead is None
    assert read(AlterTableSetMaxClockAhead, f"{ahead} INTERVAL '1' SECOND").ahead == SECOND
    for text in ("ADD COLUMN a INT", "ADD COLUMNS (a INT)", "ADD a INT", "ADD COLUMN (a INT)"):
        (column,) = read(AlterTableAddColumns, f"ALTER TABLE t {text}").columns
        assert (column.name, column.type) == ("a", pa.int32())
    assert read(AlterTableRename, "ALTER TABLE t RENAME TO u").new_name == "u"
    renamed = read(AlterTableRenameColumn, "ALTER TABLE t RENAME COLUMN a TO b")
    assert (renamed.column, renamed.new_name) == ("a", "b")
    assert read(AlterTableDropColumns, "ALTER TABLE t DROP COLUMN a").columns == ("a",)
    assert read(AlterTableDropColumns, "ALTER TABLE t DROP COLUMNS (a, b)").columns == ("a", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-3", -3),
        ("TIMESTAMP '2020-01-01 00:00:00'", datetime(2020, 1, 1, tzinfo=UTC)),
        ("'2020-01-01T00:00:00Z'", datetime(2020, 1, 1, tzinfo=UTC)),
        ("DATE '2020-01-01'", date(2020, 1, 1)),
    ],
)
def test_advance(text: str, expected: object) -> None:
    found = read(Advance, f"ADVANCE t TO {text}")
    assert (found.table, found.time) == ("t", expected)


def test_advance_in_the_session_time_zone() -> None:
    found = parse("ADVANCE t TO '2020-01-01 00:00:00'", time_zone="Europe/Berlin")
    assert isinstance(found, Advance)
    assert found.time == datetime(2019, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET rows_at_once = 0", "rows_at_once", 0),
        ("SET ROWS_AT_ONCE TO 5", "rows_at_once", 5),
        ("SET x = 1.5", "x", 1.5),
        ("SET spark_ui = on", "spark_ui", "on"),
        ("SET a = true", "a", True),
        ("SET time_zone = 'Europe/Berlin'", "time_zone", "Europe/Berlin"),
        ("SET TIME ZONE 'UTC'", "time_zone", "UTC"),
        ("SET spark.sql.shuffle.partitions = 4", "spark.sql.shuffle.partitions", "4"),
        ("SET spark.x.Y = a-b/c, d", "spark.x.Y", "a-b/c, d"),
        ("SET SESSION a = 'b'", "a", "b"),
        ("SET master = local[2]", "master", "local[2]"),
    ],
)
def test_set(text: str, name: str, value: object) -> None:
    found = read(SetSetting, text)
    assert (found.name, found.value) == (name, value)


def test_reset_and_transactions() -> None:
    assert read(ResetSetting, "RESET rows_at_once").name == "rows_at_once"
    assert read(ResetSetting, "RESET ALL").name is None
    assert read(ResetSetting, "SET a = DEFAULT").name == "a"
    for text in (
        "BEGIN",
        "BEGIN TRANSACTION",
        "START TRANSACTION",
        "BEGIN ISOLATION LEVEL READ COMMITTED",
    ):
        read(Begin, text)
    for text in ("COMMIT", "COMMIT WORK", "END"):
        read(Commit, text)
    read(Rollback, "ROLLBACK")


def test_users_hide_their_passwords() -> None:
    found = read(CreateUser, "CREATE USER u PASSWORD 'se''cret' ROLE WRITER")
    assert (found.name, found.password, found.role) == ("u", "se'cret", "writer")
    assert "cret" not in repr(found)
    altered = read(AlterUser, "ALTER USER u PASSWORD 'secret' ROLE ADMIN")
    assert (altered.password, altered.role) == ("secret", "admin")
    assert "secret" not in repr(altered)


def test_functions() -> None:
    found = read(
        CreateFunction, "CREATE FUNCTION f(x INT, y STRING) RETURNS INT RETURN x + length(y)"
    )
    assert found.body is not None
    assert [(p.name, p.type) for p in found.parameters] == [("x", pa.int32()), ("y", pa.string())]
    assert (found.returns, found.body.of(found.text)) == (pa.int32(), "x + length(y)")
    table = read(
        CreateFunction, "CREATE OR REPLACE FUNCTION f() RETURNS TABLE(a INT) RETURN SELECT 1"
    )
    assert table.query is not None
    assert (table.or_replace, table.parameters, table.query.text) == (True, (), "SELECT 1")


def test_procedures() -> None:
    found = read(
        CreateProcedure,
        "CREATE PROCEDURE p(x INT) AS BEGIN INSERT INTO t VALUES (x);"
        " UPDATE t SET a = CASE WHEN x > 1 THEN 2 ELSE 3 END; FLUSH END;",
    )
    assert [span.of(found.text) for span in found.body] == [
        "INSERT INTO t VALUES (x)",
        "UPDATE t SET a = CASE WHEN x > 1 THEN 2 ELSE 3 END",
        "FLUSH",
    ]
    call = read(Call, "CALL p(1, 'a', f(2, 3))")
    assert [span.of(call.text) for span in call.arguments] == ["1", "'a'", "f(2, 3)"]
    assert call.values is None
    assert read(Call, "CALL p()").values == ()
    plain = read(Call, "CALL p(1)").values
    assert plain is not None
    assert plain[0].value == 1


def test_explain() -> None:
    found = read(Explain, "EXPLAIN ANALYZE SELECT 1;")
    assert found.analyze
    assert isinstance(found.statement, Query)
    assert found.statement_span.of(found.text) == "SELECT 1"
    assert isinstance(read(Explain, f"EXPLAIN CREATE CONTINUOUS QUERY q AS {SELECT}").statement, CreateContinuousQuery)  # fmt: skip
    named = read(ExplainObject, "EXPLAIN QUERY q")
    assert (named.kind, named.name) == ("query", "q")


@pytest.mark.parametrize("kind", SHOWS)
def test_show(kind: str) -> None:
    assert read(Show, f"SHOW {kind}").kind == kind.lower()


def test_show_setting_and_describe() -> None:
    assert read(ShowSetting, "SHOW rows_at_once").name == "rows_at_once"
    assert read(ShowSetting, "SHOW spark.sql.ansi.enabled").name == "spark.sql.ansi.enabled"
    for text, kind in (
        ("DESCRIBE t", None),
        ("DESC TABLE t", "table"),
        ("DESCRIBE QUERY t", "query"),
    ):
        found = read(Describe, text)
        assert (found.target, found.kind) == ("t", kind)
    assert read(Describe, "DESCRIBE headwater.tables").target == "headwater.tables"
    assert isinstance(read(Describe, "DESCRIBE SELECT 1").target, Query)


@pytest.mark.parametrize(("words", "kind"), DROPS.items())
def test_drop(words: tuple[str, ...], kind: str) -> None:
    found = read(Drop, f"DROP {' '.join(words)} x")
    assert (found.kind, found.name, found.if_exists) == (kind, "x", False)
    assert read(Drop, f"DROP {' '.join(words)} IF EXISTS x").if_exists


def test_short_statements() -> None:
    read(Flush, "FLUSH")
    assert read(VerifyView, "VERIFY VIEW v").name == "v"


@pytest.mark.parametrize(
    ("text", "sqlstate", "near"),
    [
        ("CREATE TABLE t (a INT PRIMARY KEY)", "0A000", "PRIMARY"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "0A000", "PRIMARY"),
        ("CREATE TABLE t (a INT DEFAULT 1)", "0A000", "DEFAULT"),
        ("CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 1))", "0A000", "CONSTRAINT"),
        ("CREATE TABLE t (a VARCHAR(3))", "0A000", "VARCHAR"),
        ("CREATE TABLE t (a INT) USING parquet", "0A000", "USING"),
        ("CREATE TABLE x.t (a INT)", "0A000", "x"),
        ("CREATE TABLE t (a INT, A INT)", "42701", "A"),
        ("CREATE TABLE _t (a INT)", "42602", "_t"),
        ("CREATE TABLE t (_a INT)", "42602", "_a"),
        ("CREATE TABLE `` (a INT)", "42602", "``"),
        ("CREATE TABLE " + "a" * 129 + " (a INT)", "42602", "a" * 129),
        ('CREATE TABLE "t" (a INT)', "42601", '"t"'),
        ("CREATE TABLE t ()", "42601", ")"),
        ("CREATE TABLE t (a)", "42601", ")"),
        ("CREATE TABLE t (a INTT)", "42704", "INTT"),
        ("CREATE TABLE t", "42601", ""),
        ("CREATE TABLE t (a INT) RANGE FOREVER", "42601", "RANGE"),
        ("CREATE TABEL t (a INT)", "42601", "TABEL"),
        ("CREATE STREAMING TABLE t (a INT) TIMESTAMP BY b", "42703", "b"),
        ("CREATE STREAMING TABLE t (a STRING) TIMESTAMP BY a", "42804", "a"),
        ("CREATE STREAMING TABLE t (a INT) UPDATE KEY (b)", "42703", "b"),
        ("CREATE STREAMING TABLE t (a INT) LATE MAYBE", "42601", "MAYBE"),
        ("CREATE STREAMING TABLE t (a INT) RANGE INTERVAL '1' MONTH", "22008", "MONTH"),
        ("CREATE STREAMING TABLE t (a INT) LATE KEEP LATE DROP", "42601", "LATE"),
        ("CREATE STREAMING TABLE t (a INT) WITH (a = 1, a = 2)", "42601", "a"),
        ("CREATE OR REPLACE STREAMING TABLE t (a INT)", "42601", "CREATE OR REPLACE STREAMING TABLE"),
        ("CREATE FOREIGN TABLE t (a INT) SERVER other", "42704", "other"),
        ("CREATE INDEX i ON t USING TREE (a)", "42601", "TREE"),
        ("INSERT t VALUES (1)", "42601", "t"),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "42701", "a"),
        ("INSERT INTO t (a, b) VALUES (1)", "42601", "INSERT"),
        ("INSERT INTO t VALUES (1), (1, 2)", "42601", "INSERT"),
        ("INSERT OVERWRITE t SELECT 1", "0A000", "OVERWRITE"),
        ("INSERT INTO t", "42601", ""),
        ("COPY t FROM", "42601", ""),
        ("COPY t FROM STDOUT", "42601", "STDOUT"),
        ("COPY t FROM 'x' (FORMATT csv)", "42601", "FORMATT"),
        ("COPY t FROM 'x' DELIMITER ',,'", "22023", "',,'"),
        ("COPY (SELECT 1) FROM 'x'", "42601", "(SELECT 1)"),
        ("DELETE t", "42601", "t"),
        ("DELETE FROM t WHERE", "42601", ""),
        ("DELETE FROM t USING u WHERE a", "0A000", "USING"),
        ("UPDATE t SET", "42601", ""),
        ("UPDATE t SET a 1", "42601", "1"),
        ("UPDATE t SET a = 1, a = 2", "42701", "a"),
        ("UPDATE t SET a = 1 FROM u", "0A000", "FROM"),
        ("UPDATE t SET s.f = 1", "0A000", "s"),
        ("MERGE INTO t USING s ON a = b", "42601", ""),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN INSERT *", "42601", "INSERT"),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "42601", "(a) VALUES (1, 2)"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "42601", "WHEN MATCHED THEN DELETE"),
        ("CREATE SOURCE s INTO t FROM 'nowhere'", "22023", "'nowhere'"),
        ("CREATE CONTINUOUS QUERY q AS SELCT 1", "42601", "SELCT"),
        ("CREATE VIEW v AS", "42601", ""),
        ("SUBSCRIBE (q)", "42601", "q"),
        ("SUBSCRIBE q AFTER 'a' EARLIEST", "42601", "EARLIEST"),
        ("KILL SOURCE s", "42601", "SOURCE"),
        ("ALTER TABLE t SET COLOUR red", "42601", "COLOUR"),
        ("ADVANCE t TO yesterday", "42601", "yesterday"),
        ("ADVANCE t TO DATE '2020-13-01'", "22007", "DATE '2020-13-01'"),
        ("ADVANCE t TO 1.5", "22007", "1.5"),
        ("CREATE USER u ROLE READER", "42601", ""),
        ("CREATE USER u PASSWORD 'x' ROLE KING", "42601", "KING"),
        ("CREATE FUNCTION f RETURNS INT RETURN 1", "42601", "RETURNS"),
        ("CREATE PROCEDURE p() AS BEGIN FLUSH;", "42601", ""),
        ("DROP TABEL t", "42601", "TABEL"),
        ("DROP TABLE t u", "42601", "u"),
        ("SHOW", "42601", ""),
        ("EXPLAIN", "42601", ""),
        ("EXPLAIN SELCT 1", "42601", "SELCT"),
        ("SET a", "42601", ""),
        ("VERIFY TABLE t", "42601", "TABLE"),
        ("USE x", "0A000", "USE"),
        ("SELCT 1", "42601", "SELCT"),
        ("", "42601", ""),
        (";", "42601", ";"),
        ("1", "42601", "1"),
    ],
)  # fmt: skip
def test_refused(text: str, sqlstate: str, near: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    error = caught.value
    assert error.sqlstate == sqlstate
    assert error.place is not None
    assert error.place.text == masked(text)
    assert text[error.place.start : error.place.end] == near
    assert error.message[0].islower() or error.message.split()[0].isupper()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELCT 1", "did you mean SELECT?"),
        ("CREATE TABEL t (a INT)", "did you mean TABLE?"),
        ("DELETE FORM t", "did you mean FROM?"),
        ("CREATE STREAMING TABLE t (a INT) WATERMRK INTERVAL '1' DAY", "did you mean WATERMARK?"),
        ("CREATE STREAMING TABLE t (ab INT) TIMESTAMP BY abc", "did you mean ab?"),
        ("INSERT INTO t VALEUS (1)", "did you mean VALUES?"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    assert caught.value.hint == hint


def test_names_as_written_and_in_backticks() -> None:
    found = read(
        CreateTable, "CREATE TABLE `My Table` (`a``b` INT, Range STRING, end INT, sample DATE)"
    )
    assert found.name == "My Table"
    assert found.name.key == "my table"
    assert [c.name for c in found.columns] == ["a`b", "Range", "end", "sample"]
    assert found.name.span.of(found.text) == "`My Table`"


def test_statements_are_frozen() -> None:
    found: Any = parse("FLUSH")
    with pytest.raises(AttributeError):
        found.text = "x"


def test_copy_of_a_subscription() -> None:
    found = read(Copy, "COPY (SUBSCRIBE q EARLIEST) TO STDOUT")
    assert isinstance(found.query, Subscribe)
    assert (found.query.target, found.query.earliest) == ("q", True)


def test_statements_of_a_procedure_are_checked_where_they_need_no_arguments() -> None:
    read(CreateProcedure, "CREATE PROCEDURE p(x INT) AS BEGIN ADVANCE t TO x; FLUSH; END")
    text = "CREATE PROCEDURE p(x INT) AS BEGIN FLUSH; ADVANCE t TO y; END"
    with pytest.raises(Error) as caught:
        parse(text)
    assert caught.value.place is not None
    assert text[caught.value.place.start : caught.value.place.end] == "y"
