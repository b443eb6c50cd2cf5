"""`postgresql://…`: the rows of a table as they are in one snapshot, then the source is finished.

Rows come in the order of the table's T, so that its clock can follow; one that was interrupted goes on after
the rows that are stored, in a new snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.connectors.servers import connected, cut
from headwater.errors import BindError, StorageError
from headwater.sources.pulled import PulledRunner

if TYPE_CHECKING:
    import psycopg


class PostgresqlRunner(PulledRunner):
    """One run of a source that reads a table of a server."""

    _connection: psycopg.Connection[Any] | None = None

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows that follow those that are stored."""
        import psycopg
        from psycopg.rows import dict_row

        options, address = self.feed.options, self.feed.address
        names = (options.table or self.feed.table.definition.name).split(".")
        try:
            with connected(f"{address.kind}:{address.rest}") as connection:
                self._connection = connection
                if self.stopping.is_set():  # it came before there was a connection to cut
                    return
                connection.row_factory = dict_row  # rows by name
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                statement = self._statement(connection, names)
                with connection.cursor(name="headwater_source") as cursor:
                    cursor.itersize = options.batch_rows
                    yield from cursor.execute(statement)
        except psycopg.Error as error:
            if self.stopping.is_set():
                return
            raise StorageError(
                f"PostgreSQL: could not read {'.'.join(names)}",
                detail=str(error).strip(),
                hint="RESUME SOURCE tries again",
            ) from error

    def interrupt(self) -> None:
        """Ends a wait for the server, which may be long: it sorts the table first."""
        if self._connection is not None:
            cut(self._connection)
        super().interrupt()

    def _statement(self, connection: Any, names: list[str]) -> Any:
        """A select of the columns that both tables have; whatever is to be a STRING comes as text."""
        from psycopg.sql import SQL, Identifier

        table, definition = Identifier(*names), self.feed.table.definition
        with contextlib.closing(
            connection.execute(SQL("SELECT * FROM {} LIMIT 0").format(table))
        ) as found:
            given = {column.name.casefold(): column.name for column in found.description}
        shared = {f.name: f.type for f in definition.schema if f.name.casefold() in given}
        time = definition.time_column
        if not shared or (time is not None and time not in shared):
            missing = f"no column {time}" if time else f"none of {definition.name}'s columns"
            raise BindError(
                f"{'.'.join(names)} has {missing}",
                sqlstate="42703",
                detail="its columns: " + ", ".join(given.values()),
            )
        columns = SQL(", ").join(
            SQL("{}::text AS {}" if pa.types.is_string(type_) else "{} AS {}").format(
                Identifier(given[name.casefold()]), Identifier(name)
            )
            for name, type_ in shared.items()
        )
        order = [] if time is None else [Identifier(given[time.casefold()])]
        return SQL("SELECT {} FROM {} ORDER BY {} OFFSET {}").format(
            columns, table, SQL(", ").join([*order, SQL("ctid")]), self.delivered_rows
        )
