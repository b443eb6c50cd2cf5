"""`postgresql://…`: the rows of a table as they are in one snapshot, then the source is finished.

Rows come in the order of the table's T, so that its clock can follow; one that was interrupted goes on after
the rows that are stored, in a new snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from headwater.errors import BindError, StorageError
from headwater.sources.pulled import PulledRunner

CONNECT_S = 10


class PostgresqlRunner(PulledRunner):
    """One run of a source that reads a table of a server."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows that follow those that are stored."""
        import psycopg
        from psycopg.rows import dict_row

        options, address = self.feed.options, self.feed.address
        names = (options.table or self.feed.table.definition.name).split(".")
        try:
            with psycopg.connect(
                f"{address.kind}:{address.rest}",
                connect_timeout=CONNECT_S,
                application_name="headwater",
                row_factory=dict_row,
            ) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                statement = self._statement(connection, names)
                with connection.cursor(name="headwater_source") as cursor:
                    cursor.itersize = options.batch_rows
                    yield from cursor.execute(statement)
        except psycopg.Error as error:
            raise StorageError(
                f"PostgreSQL: could not read {'.'.join(names)}",
                detail=str(error).strip(),
                hint="RESUME SOURCE tries again",
            ) from error

    def _statement(self, connection: Any, names: list[str]) -> Any:
        """A select of the columns that both tables have."""
        from psycopg.sql import SQL, Identifier

        table, definition = Identifier(*names), self.feed.table.definition
        with contextlib.closing(
            connection.execute(SQL("SELECT * FROM {} LIMIT 0").format(table))
        ) as found:
            given = {column.name.casefold(): column.name for column in found.description}
        shared = [f.name for f in definition.schema if f.name.casefold() in given]
        if not shared or (definition.time_column and definition.time_column not in shared):
            raise BindError(
                f"{'.'.join(names)} has no column {definition.time_column or shared}",
                sqlstate="42703",
                detail="its columns: " + ", ".join(given.values()),
            )
        columns = SQL(", ").join(
            SQL("{} AS {}").format(Identifier(given[name.casefold()]), Identifier(name))
            for name in shared
        )
        order = (
            [Identifier(given[definition.time_column.casefold()])] if definition.time_column else []
        )
        return SQL("SELECT {} FROM {} ORDER BY {} OFFSET {}").format(
            columns, table, SQL(", ").join([*order, SQL("ctid")]), self.delivered_rows
        )
