"""What a session holds back until COMMIT: rows that INSERT and COPY would add, as they stand.

The rules. Rows are evaluated when their statement runs and added at COMMIT: several streaming tables
by one append to the log, so that they are durable, stamped and visible together; or one standard
table by one commit. Nothing else waits: the session decides what it refuses. CV11: a read
inside a transaction sees the tables as of its own statement, without the rows held back.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.execute.context import Context, Running
from headwater.execute.insert import add_rows, rows_of_insert
from headwater.sql.statements.insert import Insert
from headwater.storage.rows import as_table
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.together import insert_together


def held_insert(running: Running, statement: Insert) -> tuple[str, pa.Table]:
    """The table that an INSERT means, and the rows that it would add."""
    name = running.context.find(statement.table)
    rows = rows_of_insert(running, statement)
    return (str(statement.table) if name is None else name.name), rows


def checked_rows(context: Context, table: str, rows: pa.Table) -> pa.Table:
    """The rows in the table's own types; an error says what does not fit before anything waits."""
    return as_table(rows, context.writable(table).schema)


def check_together(context: Context, names: list[str]) -> None:
    """Refuses tables whose rows cannot be added together."""
    kinds = [context.writable(name) for name in names]
    standard = [kind for kind in kinds if isinstance(kind, StandardTable)]
    if standard and len(kinds) > 1:
        raise NotSupportedError(
            "a transaction adds rows to streaming tables, or to one standard table",
            detail=f"it has rows for {', '.join(names)}",
            hint="COMMIT before the other table",
        )


def add_together(context: Context, held: Mapping[str, pa.Table]) -> int:
    """COMMIT: adds what was held back; the number of rows."""
    check_together(context, list(held))
    tables = [(context.writable(name), rows) for name, rows in held.items()]
    streams = [(table, rows) for table, rows in tables if isinstance(table, StreamingTable)]
    if len(streams) == len(tables):
        return insert_together(streams)
    return sum(add_rows(table, rows) for table, rows in tables)
