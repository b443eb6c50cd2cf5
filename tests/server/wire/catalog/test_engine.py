"""Questions about the catalog, as clients ask them, over a database that is only a list of tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pytest

from headwater.database import Database
from headwater.errors import BindError, CancelledError, OverloadError
from headwater.execute.relations import RelationColumns
from headwater.kernel.cancellation import Cancellation
from headwater.server.wire import encode
from headwater.server.wire.catalog.engine import CatalogEngine
from headwater.server.wire.commands import Commands
from headwater.server.wire.spelling import spelled
from headwater.sql import scripts
from headwater.sql.scripts import Asked

ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("Tags", pa.list_(pa.string())),
    ]
)


class FakeDatabase:
    """What the engine asks of a database."""

    spark_ready = False

    def __init__(self) -> None:
        self.found = [
            RelationColumns(1, "orders", "streaming table", ORDERS),
            RelationColumns(2, "totals", "view", pa.schema([("n", pa.int64())]), "SELECT 1"),
            RelationColumns(3, "Clicks", "stream", pa.schema([("x", pa.int32())])),
        ]

    def relations(self) -> list[RelationColumns]:
        return self.found

    def relation(self, name: str) -> RelationColumns | None:
        return next((r for r in self.found if r.name.lower() == name.lower()), None)


@pytest.fixture
def database() -> FakeDatabase:
    return FakeDatabase()


@pytest.fixture
def engine(database: FakeDatabase) -> Iterator[CatalogEngine]:
    found = CatalogEngine(cast(Database, database))
    yield found
    found.close()


COMMANDS = Commands({"application_name": "test"}, "me", "headwater")


def read(text: str) -> Asked:
    """The one statement of a text that a client of PostgreSQL's wrote."""
    (found,) = scripts.read(text, spelled)
    return found


def asked(engine: CatalogEngine, text: str) -> list[tuple[Any, ...]]:
    assert engine.wants(read(text)), "not taken for a question about the catalog"
    rows = engine.run(read(text), COMMANDS, Cancellation())
    assert rows.schema.types == engine.described(read(text)).types
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM orders",
        "SELECT id, current_user FROM orders",
        "SELECT 1 + 1",
        "SELECT upper('a')",
        "INSERT INTO pg_notes VALUES (1)",
        "SELECT x FROM t WHERE y LIKE 'pg_%'",
        "SELECT 'pg_class' FROM orders",
        "not SQL at all pg_",
        r"SELECT 'a\\b'",
        r"SELECT 'pg_a\nb' AS x",
        "SELECT 99999999999",
    ],
)
def test_what_is_no_question_about_the_catalog(engine: CatalogEngine, text: str) -> None:
    """Statements about users' tables, and expressions, are the database's to answer."""
    assert not engine.wants(read(text))


def test_a_table_of_a_user_that_looks_like_one_of_the_catalog(
    engine: CatalogEngine, database: FakeDatabase
) -> None:
    """It is the user's if there is one of that name; the catalog's own names stay the catalog's."""
    assert engine.wants(read("SELECT a FROM pg_notes"))
    for name in ("pg_notes", "pg_class", "tables"):
        database.found.append(RelationColumns(9, name, "table", pa.schema([("a", pa.int32())])))
    assert not engine.wants(read("SELECT a FROM pg_notes"))
    assert engine.wants(read("SELECT relname FROM pg_class"))
    assert engine.wants(read("SELECT table_name FROM information_schema.tables"))


LARGE = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f"


def test_a_question_can_be_cancelled(engine: CatalogEngine) -> None:
    """One that would take years ends when its client cancels, and the next one is answered."""
    cancellation = Cancellation()
    timer = threading.Timer(0.2, cancellation.cancel)
    timer.start()
    with pytest.raises(CancelledError):
        engine.run(read(LARGE), COMMANDS, cancellation)
    timer.join()
    assert asked(engine, "SELECT current_user") == [("me",)]


def test_a_question_is_bounded(engine: CatalogEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In time, because all clients wait for it, and in rows."""
    monkeypatch.setattr("headwater.server.wire.catalog.engine.MOST_ROWS", 3)
    with pytest.raises(OverloadError, match="too much"):
        engine.run(read("SELECT typname FROM pg_type"), COMMANDS, Cancellation())
    monkeypatch.setattr("headwater.server.wire.catalog.engine.LONGEST_S", 0.0)
    with pytest.raises(OverloadError, match="too much"):
        engine.run(read(LARGE), COMMANDS, Cancellation())


def test_columns_as_psql_asks_for_them(engine: CatalogEngine) -> None:
    """The query of \\d: names, types with precision, NOT NULL."""
    rows = asked(
        engine,
        """SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
             (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)
              FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND a.atthasdef)
           FROM pg_catalog.pg_attribute a
           WHERE a.attrelid = '16385' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;""",
    )
    assert rows == [
        ("id", "bigint", True, None),
        ("price", "numeric(10,2)", False, None),
        ("at", "timestamp with time zone", False, None),
        ("Tags", "text[]", False, None),
    ]


def test_relations_as_psql_asks_for_them(engine: CatalogEngine) -> None:
    """The query of \\d without a name, with its regular expressions and operators."""
    rows = asked(
        engine,
        r"""SELECT n.nspname as "Schema", c.relname as "Name",
              CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE 'other' END as "Type"
            FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r','v','f','') AND n.nspname <> 'pg_catalog'
              AND n.nspname !~ '^pg_toast' AND pg_catalog.pg_table_is_visible(c.oid)
              AND c.relname OPERATOR(pg_catalog.~) '^(.*)$' COLLATE pg_catalog.default
            ORDER BY 1,2;""",
    )
    assert sorted(rows) == [
        ("public", "Clicks", "other"),
        ("public", "orders", "table"),
        ("public", "totals", "view"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", [(1,)]),
        ("select 'x' as a;", [("x",)]),
        ("SELECT current_database(), current_schema(), current_user", [("headwater", "public", "me")]),
        ("SELECT pg_catalog.current_setting('application_name')", [("test",)]),
        ("SELECT 'orders'::regclass::oid, 'orders'::regclass", [(16385, "orders")]),
        ("SELECT oid::regclass::text FROM pg_class WHERE oid = 'totals'::regclass", [("totals",)]),
        ("SELECT relname FROM pg_class WHERE relkind = ANY (ARRAY['v', 'm'])", [("totals",)]),
        ("SELECT relname FROM pg_class WHERE relkind = ANY ('{v,m}'::char[])", [("totals",)]),
        ("SELECT typname FROM pg_type WHERE oid = any(array(23, 25)::oid[])", [("int4",), ("text",)]),
        ("SELECT ARRAY(SELECT typname FROM pg_type WHERE oid IN (16, 23))", [(["bool", "int4"],)]),
        ("SELECT count(*) FROM pg_catalog.pg_index", [(0,)]),
        ("SELECT exists (SELECT 1 FROM pg_class WHERE relname ILIKE 'ORD%')", [(True,)]),
        ("SELECT table_name, table_type FROM information_schema.tables WHERE table_name = 'orders'",
         [("orders", "BASE TABLE")]),
        ("SELECT column_name, data_type, is_nullable, numeric_precision FROM information_schema.columns"
         " WHERE table_name = 'orders' AND ordinal_position < 3",
         [("id", "bigint", "NO", 64), ("price", "numeric", "YES", 10)]),
        ("WITH x AS (SELECT oid, nspname AS ns FROM pg_namespace) SELECT * FROM x WHERE oid = 2200",
         [(2200, "public")]),
        ("SELECT pg_get_viewdef('totals'::regclass)", [("SELECT 1",)]),
        ('SELECT oid AS Upper, relname AS "Kept" FROM pg_class WHERE 1 = 0', []),
        ("SELECT (information_schema._pg_expandarray(i.indkey)).n FROM pg_catalog.pg_index i", []),
        ("SELECT has_table_privilege('orders', 'select')", [(True,)]),
        ("SELECT typelem, typarray FROM pg_type WHERE typname = '_int4'", [(23, 0)]),
    ],
)  # fmt: skip
def test_questions(engine: CatalogEngine, text: str, expected: list[tuple[Any, ...]]) -> None:
    """What drivers and tools ask, with the types that they expect."""
    assert asked(engine, text) == expected


def test_oids_and_names_have_their_own_types(engine: CatalogEngine) -> None:
    """Columns of pg_catalog are oid and name, not integer and text."""
    schema = engine.described(
        read("SELECT oid, relname, relkind, relnatts, relhasindex FROM pg_class")
    )
    assert [f.oid for f in encode.fields_of(schema)] == [26, 19, 18, 21, 16]


def test_the_catalog_follows_the_database(engine: CatalogEngine, database: FakeDatabase) -> None:
    """A table that comes or goes is there or gone with the next question."""
    names = "SELECT relname FROM pg_class ORDER BY oid"
    database.found = database.found[:1]
    assert asked(engine, names) == [("orders",)]
    database.found = [*database.found, RelationColumns(9, "new", "table", ORDERS)]
    assert asked(engine, names) == [("orders",), ("new",)]
    assert engine.columns("NEW") == ORDERS
    assert engine.columns("gone") is None


def test_what_the_catalog_does_not_have(engine: CatalogEngine) -> None:
    """A catalog of PostgreSQL's that we lack is an undefined table, not a crash."""
    with pytest.raises(BindError) as caught:
        engine.run(read("SELECT * FROM pg_catalog.pg_largeobject"), COMMANDS, Cancellation())
    assert caught.value.sqlstate == "42P01"
