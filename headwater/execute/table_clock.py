"""ALTER TABLE … SET CLOCK TO …, and how far ahead of the wall clock a table's rows may be.

A clock is set back only where nobody has gone beyond the new place: results that were delivered cannot be
taken back, so a query that has answered later instants must be dropped first. Views know rows, not
instants, and see nothing of it.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headwater.engine.hosted import LoggedQuery
from headwater.errors import BindError, DataError, SettingError
from headwater.execute.context import Context, Running
from headwater.result import Result
from headwater.sql.statements.alter import AlterTableSetClock, AlterTableSetMaxClockAhead
from headwater.storage.streaming import set_clock as clocks
from headwater.storage.streaming.table import StreamingTable


def set_clock(running: Running, statement: AlterTableSetClock) -> Result:
    """ALTER TABLE t SET CLOCK TO ts: rows beyond it wait again, what RANGE hid since is seen again."""
    context = running.context
    with context.ddl:
        table = context.streaming_table(statement.name, statement.text)
        _check_kind(table)
        tick = table.definition.tick(statement.time)
        if not table._in_range(tick):
            raise DataError("the time is out of range", sqlstate="22008")
        readers = [q for q in context.engine.named() if any(t is table for t in q.tables)]
        engine = context.engine
        with engine.staying(engine.reading(table)), engine.standing_still(readers):
            _check_places(context, table, readers, tick)
            clocks.set_clock(table, tick)
        context.engine.let_go_of(table)
    return Result("ALTER TABLE")


def _check_kind(table: StreamingTable) -> None:
    definition = table.definition
    if definition.by_arrival or definition.kind not in ("streaming table", "stream"):
        why = "from arrival" if definition.by_arrival else "from its query"
        raise BindError(
            f"{definition.kind} {definition.name} takes its time {why}, and its clock cannot be set",
            sqlstate="55000",
        )


def _check_places(
    context: Context, table: StreamingTable, readers: list[LoggedQuery], tick: int
) -> None:
    """Refuses a clock behind what was answered, or what nobody can tell."""
    number = table.definition.id
    beyond = [q.name for q in readers if (reached := q.reached) is not None and reached > tick]
    beyond += [
        item.name
        for item in context.catalog.all("continuous query")
        if item.key in context.dormant and number in item.definition["reads"]
    ]
    if beyond:
        names = ", ".join(sorted(name.removeprefix("_") for name in beyond))
        raise BindError(
            f"the clock of {table.definition.name} cannot be set back behind results of {names}",
            sqlstate="55000",
            detail="they have answered later instants, and results are never taken back",
            hint="DROP them, set the clock, and create them again: FROM BEGINNING answers history",
        )


def set_max_ahead(running: Running, statement: AlterTableSetMaxClockAhead) -> Result:
    """ALTER TABLE t SET MAX_CLOCK_AHEAD …: from the next insert on."""
    context = running.context
    with context.ddl:
        table = context.streaming_table(statement.name, statement.text)
        _check_kind(table)
        if pa.types.is_integer(table.definition.time_type):
            raise SettingError("max_clock_ahead is for times that the wall clock tells")
        ticks = None if statement.ahead is None else statement.ahead.microseconds
        with table.upkeep:
            changed = replace(table.definition, max_ahead_ticks=ticks)
            item = context.find(statement.name)
            assert item is not None
            context.catalog.change(item, changed.as_json())
            table.definition = changed
            table.barrier()
    return Result("ALTER TABLE")
