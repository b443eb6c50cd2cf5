"""Answers questions about the catalog: a small SQLite in memory, filled from the database's own catalog.

Owns that SQLite and when it is filled again. Must never be asked for rows of users' tables.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from typing import Any

import pyarrow as pa

from headwater.database import Database
from headwater.errors import BindError, Error, OverloadError
from headwater.execute.relations import RelationColumns
from headwater.kernel.cancellation import Cancellation
from headwater.server.wire.catalog import tables
from headwater.server.wire.catalog.functions import Asking, elements, register
from headwater.server.wire.catalog.rewrite import CatalogQuestion, question_of
from headwater.server.wire.commands import DEFAULTS, Commands
from headwater.sql.scripts import Asked

LONGEST_S = 30.0  # of one question: all clients wait for it
MOST_ROWS = 1_000_000
STEPS = 10_000  # of SQLite's machine between two looks at the clock


# Of columns in SQLite: a number compares with a text that holds one, as in PostgreSQL.
_AFFINITIES = dict.fromkeys(("bool", "oid", "int2", "int4", "int8"), "INTEGER") | {"float4": "REAL"}


class CatalogEngine:
    """The catalogs of one server; threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._asking = Asking()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )
        self._connection.execute("PRAGMA case_sensitive_like = ON")
        register(self._connection, self._asking)
        for name, columns in tables.COLUMNS.items():
            listed = ", ".join(f'"{c}" {_AFFINITIES.get(t, "TEXT")}' for c, t in columns.items())
            self._connection.execute(f'CREATE TABLE "{name}" ({listed})')
        self._filled: object = None
        self._settings: dict[str, str] | None = None
        self._plain_views: dict[tuple[int, str | None], pa.Schema] = {}

    def close(self) -> None:
        """Lets go of the memory."""
        with self._lock:
            self._connection.close()

    def wants(self, asked: Asked) -> bool:
        """Whether a statement is a question about the catalog, and not about a user's table."""
        found = asked.fact(question_of)
        return found is not None and not any(map(self._database.relation, found.unknown))

    def columns(self, name: str) -> pa.Schema | None:
        """The columns of a table, view or query; None if there is none of that name."""
        found = self._database.relation(name)
        return None if found is None else found.schema

    def described(self, asked: Asked) -> pa.Schema:
        """The columns of the answer to a question."""
        return _table(_question(asked).columns, []).schema

    def run(self, asked: Asked, commands: Commands, cancellation: Cancellation) -> pa.Table:
        """The rows that answer a question; others wait meanwhile, so it may not take long."""
        question = _question(asked)
        with self._lock:
            self._fill(commands)
            rows = self._rows(question.sql, cancellation, time.monotonic() + LONGEST_S)
        return _table(question.columns, rows)

    def _rows(self, sql: str, cancellation: Cancellation, end: float) -> list[tuple[Any, ...]]:
        connection = self._connection

        def is_over() -> bool:
            return cancellation.requested or time.monotonic() > end

        connection.set_progress_handler(is_over, STEPS)
        try:
            with contextlib.closing(connection.execute(sql)) as cursor:
                rows = cursor.fetchmany(MOST_ROWS + 1)
        except sqlite3.Error as error:
            cancellation.check()
            if is_over():
                raise _too_much(f"it took more than {LONGEST_S:g} s") from error
            raise _not_answered(str(error)) from error
        finally:
            connection.set_progress_handler(None, 0)
        if len(rows) > MOST_ROWS:
            raise _too_much(f"it has more than {MOST_ROWS} rows")
        return rows

    def _fill(self, commands: Commands) -> None:
        relations = [self._with_columns(r) for r in self._database.relations()]
        asking = self._asking
        asking.user, asking.database = commands.user, commands.database
        asking.parameters, asking.process = commands.values, commands.process
        self._fill_settings(dict(commands.values))
        key = (
            [(r.id, r.name, r.kind, r.schema) for r in relations],
            commands.user,
            commands.database,
        )
        if key == self._filled:
            return
        oid = tables.FIRST_OID
        asking.oids = {r.name.lower(): oid + r.id for r in relations}
        asking.names = {oid + r.id: r.name for r in relations}
        asking.texts = {oid + r.id: r.text for r in relations}
        asking.comments = {oid + r.id: r.kind for r in relations}
        found = tables.rows_of(relations, commands.database, commands.user)
        for name in tables.COLUMNS:
            if name != "pg_settings":
                self._replace(name, found.get(name, []))
        self._filled = key

    def _fill_settings(self, values: dict[str, str]) -> None:
        """The parameters of whoever asks: every session has its own."""
        if values != self._settings:
            self._replace("pg_settings", tables.setting_rows(values, DEFAULTS))
            self._settings = values

    def _replace(self, table: str, rows: list[tables.Row]) -> None:
        self._connection.execute(f'DELETE FROM "{table}"')
        places = ", ".join("?" * len(tables.COLUMNS[table]))
        self._connection.executemany(f'INSERT INTO "{table}" VALUES ({places})', rows)

    def _with_columns(self, relation: RelationColumns) -> RelationColumns:
        """A plain view with the columns that Spark says it has, once Spark is there."""
        if relation.kind != "view" or len(relation.schema):
            return relation
        key = relation.id, relation.text
        if key not in self._plain_views and self._database.spark_ready:
            try:
                self._plain_views[key] = self._database.columns(f"SELECT * FROM `{relation.name}`")
            except Error:  # a table that it reads is gone: the view has no columns now
                return relation
        schema = self._plain_views.get(key, relation.schema)
        return RelationColumns(relation.id, relation.name, relation.kind, schema, relation.text)


def _question(asked: Asked) -> CatalogQuestion:
    found = asked.fact(question_of)
    assert found is not None
    return found


def _too_much(detail: str) -> OverloadError:
    return OverloadError(
        "a question about the catalog asks too much",
        sqlstate="54000",
        detail=detail,
        hint="SHOW TABLES and DESCRIBE t say what there is",
    )


def _not_answered(reason: str) -> BindError:
    missing = "no such" in reason
    return BindError(
        f"the catalog cannot answer this: {reason}",
        sqlstate="42P01" if "no such table" in reason else "42703" if missing else "0A000",
        hint="SHOW TABLES and DESCRIBE t say what there is",
    )


_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int32(),
    "float4": pa.float32(),
    "float8": pa.float64(),
}


def _table(columns: tuple[tuple[str, str], ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    arrays, fields = [], []
    for index, (name, type_) in enumerate(columns):
        cells = [row[index] for row in rows]
        array = _array(cells, type_)
        arrays.append(array)
        metadata = {"pg": type_} if type_ in ("oid", "name", "char") else None
        fields.append(pa.field(name, array.type, metadata=metadata))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _array(cells: list[Any], type_: str) -> pa.Array:
    if type_.startswith("_"):
        return pa.array([None if c is None else elements(c) for c in cells], pa.list_(pa.string()))
    wanted = _ARROW.get(type_)
    if wanted is None:
        return pa.array([None if c is None else str(c) for c in cells], pa.string())
    try:
        if type_ == "bool":
            return pa.array([None if c is None else bool(c) for c in cells], wanted)
        return pa.array([None if c is None else wanted.to_pandas_dtype()(c) for c in cells], wanted)
    except (TypeError, ValueError, pa.ArrowException):
        return pa.array([None if c is None else str(c) for c in cells], pa.string())
