"""PostgreSQL out: rows and the sink's place in one transaction of the server.

Owns: the table `headwater_sinks` there, with a row for each sink. A transaction goes on from the token
that the one before left, or not at all: two processes cannot write for one sink. With a key, rows are
written over those of the same key and time, or (`latest`) of the same key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater import values
from headwater.connectors.servers import connected, cut
from headwater.errors import StorageError
from headwater.sinks.options import SinkOptions, check_columns
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress, write_error

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composable, Composed

PLACES = "headwater_sinks"
LOCK = 0x6865_6164  # of those who make tables; any number that others do not take
NULLS_ARE_ALIKE = 150_000  # the version of the server that can say so of a key
OPERATION = "_op"
TYPES: Sequence[tuple[Callable[[Any], bool], str]] = (
    (pa.types.is_boolean, "boolean"),
    (lambda t: pa.types.is_int8(t) or pa.types.is_int16(t), "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_date, "date"),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamp with time zone"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_nested, "jsonb"),
)


class PostgresqlTarget:
    """A table of a PostgreSQL server."""

    def __init__(self, url: str, sink: SinkName, table: str, options: SinkOptions) -> None:
        self._url, self._sink, self._options = url, sink, options
        self._table = table.split(".")
        self._connection: psycopg.Connection[Any] | None = None
        self._token: str | None = None

    def open(self, schema: pa.Schema) -> SinkProgress | None:
        """Connects, makes the tables that are missing, and reads the place."""
        check_columns(schema, self._options)
        with self._told("connect"):
            self._connection = connected(self._url)
            with self._connection.transaction():
                self._make_tables(schema)
                found = self._connection.execute(
                    f"SELECT token, row_count FROM {PLACES} WHERE key = %s", [self._sink.key]
                ).fetchone()
        self._token = None if found is None else found[0]
        return None if found is None or found[0] is None else SinkProgress(found[0], found[1])

    def _make_tables(self, schema: pa.Schema) -> None:
        connection = self._held
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        if not self._is_there(PLACES):
            connection.execute(
                f"CREATE TABLE {PLACES} (key text PRIMARY KEY, name text NOT NULL,"
                " token text, row_count bigint NOT NULL, written_at timestamptz NOT NULL)"
            )
        connection.execute(
            f"INSERT INTO {PLACES} VALUES (%s, %s, NULL, 0, now()) ON CONFLICT DO NOTHING",
            [self._sink.key, self._sink.name],
        )
        if self._options.create and not self._is_there(*self._table):
            connection.execute(self._create(schema))

    def _is_there(self, *names: str) -> bool:
        """Asked first, because IF NOT EXISTS takes the right to make tables also where there is one."""
        text = _name(*names).as_string(self._held)
        (found,) = self._held.execute("SELECT to_regclass(%s)", [text]).fetchone() or (None,)
        return found is not None

    def _create(self, schema: pa.Schema) -> Composed:
        from psycopg.sql import SQL

        parts: list[Composable] = [
            SQL("{} {}").format(_name(field.name), SQL(_type(field.type)))
            for field in schema
            if field.name in self._stored(schema)
        ]
        key = self._key(schema)
        if key:
            alike = self._held.info.server_version >= NULLS_ARE_ALIKE
            kind = SQL("UNIQUE NULLS NOT DISTINCT") if alike else SQL("PRIMARY KEY")
            parts.append(SQL("{} ({})").format(kind, _list(key)))
        return SQL("CREATE TABLE {} ({})").format(_name(*self._table), SQL(", ").join(parts))

    # Writing

    def write(self, batch: SinkBatch) -> None:
        """One transaction: the place, and the rows."""
        progress = batch.progress
        with self._told("write"), self._held.transaction():
            moved = self._held.execute(
                f"UPDATE {PLACES} SET token = %s, row_count = %s, written_at = now()"
                " WHERE key = %s AND token IS NOT DISTINCT FROM %s",
                [progress.token, progress.row_count, self._sink.key, self._token],
            )
            if moved.rowcount != 1:
                raise StorageError(
                    f"another process writes for sink {self._sink.name}",
                    sqlstate="55006",
                    hint="close the other copy of the database, or DROP SINK in one of them",
                )
            self._store(batch.rows)
        self._token = progress.token

    def _store(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        schema = rows.schema
        columns = [_values(rows.column(n), schema.field(n).type) for n in range(len(schema))]
        found = list(zip(*columns, strict=True))
        if not self._options.key:
            self._copy(schema, found)
        elif self._options.latest and OPERATION in schema.names:
            self._follow(schema, found)
        else:
            self._upsert(schema, found)

    def _copy(self, schema: pa.Schema, found: Sequence[tuple[Any, ...]]) -> None:
        from psycopg.sql import SQL

        statement = SQL("COPY {} ({}) FROM STDIN").format(_name(*self._table), _list(schema.names))
        with self._held.cursor() as cursor, cursor.copy(statement) as copy:
            for row in found:
                copy.write_row(row)

    def _follow(self, schema: pa.Schema, found: Sequence[tuple[Any, ...]]) -> None:
        """Rows that came and went, in their order: the table is what the result is now."""
        place = schema.names.index(OPERATION)
        for operation, rows in groupby(found, key=lambda row: row[place]):
            if operation == "-":
                self._delete(schema, list(rows))
            else:
                self._upsert(schema, list(rows))

    def _upsert(self, schema: pa.Schema, found: Sequence[tuple[Any, ...]]) -> None:
        from psycopg.sql import SQL

        names, key = self._stored(schema), self._key(schema)
        places = [schema.names.index(name) for name in names]
        rest = [name for name in names if name not in key]
        change = SQL(", ").join(SQL("{0} = EXCLUDED.{0}").format(_name(name)) for name in rest)
        statement = SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {}").format(
            _name(*self._table),
            _list(names),
            SQL(", ").join(SQL("%s") for _ in names),
            _list(key),
            SQL("UPDATE SET {}").format(change) if rest else SQL("NOTHING"),
        )
        with self._held.cursor() as cursor:
            cursor.executemany(statement, [[row[place] for place in places] for row in found])

    def _delete(self, schema: pa.Schema, found: Sequence[tuple[Any, ...]]) -> None:
        from psycopg.sql import SQL

        places = [schema.names.index(name) for name in self._key(schema)]
        by_names: dict[tuple[int, ...], list[list[Any]]] = {}  # places that are not NULL → values
        for row in found:
            known = tuple(place for place in places if row[place] is not None)
            by_names.setdefault(known, []).append([row[place] for place in known])
        with self._held.cursor() as cursor:
            for known, values_ in by_names.items():
                tests = [
                    SQL("{} = %s" if place in known else "{} IS NULL").format(
                        _name(schema.names[place])
                    )
                    for place in places
                ]
                statement = SQL("DELETE FROM {} WHERE {}").format(
                    _name(*self._table), SQL(" AND ").join(tests)
                )
                cursor.executemany(statement, values_)

    def _key(self, schema: pa.Schema) -> list[str]:
        """The columns that tell rows apart: of the key, and the time unless only the latest stays."""
        options = self._options
        if not options.key or options.latest:
            return list(options.key)
        time = next(name for name in reversed(schema.names) if name != OPERATION)
        more = [OPERATION] if OPERATION in schema.names else []
        return [*options.key, *(name for name in (time, *more) if name not in options.key)]

    def _stored(self, schema: pa.Schema) -> list[str]:
        """The columns of the table: what came and went is not told where only the latest stays."""
        return [n for n in schema.names if not (self._options.latest and n == OPERATION)]

    # The connection

    @property
    def _held(self) -> psycopg.Connection[Any]:
        assert self._connection is not None
        return self._connection

    @contextlib.contextmanager
    def _told(self, action: str) -> Any:
        """PostgreSQL's errors as ours, with its words as the detail."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise write_error(f"PostgreSQL: could not {action}", error) from error

    def interrupt(self) -> None:
        """Cancels what the server does, and cuts the connection to one that does not answer."""
        if self._connection is not None:
            cut(self._connection)

    def close(self) -> None:
        """Ends the connection; what was not committed is undone."""
        if self._connection is not None:
            self._connection.close()


def _type(type_: pa.DataType) -> str:
    return next((name for fits, name in TYPES if fits(type_)), "text")


def _values(column: pa.ChunkedArray, type_: pa.DataType) -> list[Any]:
    found = values.python_values(column)
    if not values.is_nested(type_):
        return found
    text = values.text_of(type_)
    return [None if value is None else text(value) for value in found]


def _name(*parts: str) -> Composable:
    from psycopg.sql import Identifier

    return Identifier(*parts)


def _list(names: Sequence[str]) -> Composed:
    from psycopg.sql import SQL

    return SQL(", ").join(_name(name) for name in names)
