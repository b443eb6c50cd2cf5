"""The streaming tables of a query: which window, or which kept chunks, each is read through."""

from __future__ import annotations

from dataclasses import replace

from headwater.plan.blocks import Sampling as Sampled
from headwater.plan.blocks import Tables
from headwater.plan.folds import Leaf
from headwater.sql.duration import Duration
from headwater.sql.extensions import Cut, WindowClause
from headwater.sql.statements.query import Query
from headwater.sql.text import Span


def find_leaves(query: Query, tables: Tables) -> tuple[Leaf, ...]:
    """The windowed tables of a query, in the order of the text."""
    found: list[Leaf] = []
    for reference in query.table_references:
        columns = tables.stream(str(reference.name))
        window = reference.window
        if columns is not None and reference.cut is not None:
            window = window_of(reference.cut, columns.time)
        if columns is not None and window is not None:
            alias = str(reference.alias or reference.name.rpartition(".")[2])
            newest = query.pair_newest is not None
            leaf = Leaf(len(found), reference.name, alias, window, columns, newest=newest)
            found.append(replace(leaf, cut=reference.cut))
    return tuple(found)


def view_leaves(query: Query, tables: Tables, at_hand: bool = False) -> tuple[Leaf, ...]:
    """The streaming tables of a view: all rows of each; `at_hand`: rows that need not be kept."""
    found: list[Leaf] = []
    for reference in query.table_references:
        columns = tables.stream(str(reference.name))
        if columns is not None:
            alias = str(reference.alias or reference.name.rpartition(".")[2])
            end = reference.name.span.end
            window = WindowClause("interval" if at_hand else "landmark", Span(end, end))
            found.append(Leaf(len(found), reference.name, alias, window, columns))
    return tuple(found)


def cut_by(cut: Cut, time: str) -> Sampled:
    """What ends the chunks of a cut: the clock, a number of rows, or a new value of a column."""
    if cut.kind == "rows":
        return "rows"
    on_time = cut.column is not None and cut.column.casefold() == time.casefold()
    return "interval" if cut.kind == "interval" and on_time else "chunks"


def window_of(cut: Cut, time: str) -> WindowClause:
    """The window that the kept chunks of a cut are, at the end of the newest one."""
    by = cut_by(cut, time)
    if by == "rows":
        assert cut.rows is not None
        return WindowClause("rows", cut.span, rows=cut.keep * cut.rows)
    if by == "chunks":
        return WindowClause("chunks", cut.span, rows=cut.keep)
    return WindowClause("interval", cut.span, Duration(cut.keep * cut_length(cut)), before=True)


def cut_length(cut: Cut) -> int:
    """The length of a chunk in microseconds; a step without a unit counts seconds."""
    if cut.duration is not None:
        return cut.duration.microseconds
    return (cut.step or 1) * 1_000_000
