"""`MERGE INTO t USING s ON condition WHEN …`, all of Spark's forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, optional_alias
from headwater.sql.statements.query import Query, take_parenthesised_query
from headwater.sql.statements.update import Assignment, parse_assignments, target_column
from headwater.sql.text import Name, Span
from headwater.sql.type_parser import check_distinct

When = OneOf["matched", "not matched", "not matched by source"]
Action = OneOf["update", "update all", "delete", "insert", "insert all"]


@dataclass(frozen=True)
class MergeClause:
    """`WHEN … [AND condition] THEN action`; "… all" are `UPDATE SET *` and `INSERT *`."""

    when: When
    condition: Span | None
    action: Action
    span: Span
    assignments: tuple[Assignment, ...] = ()  # of UPDATE SET
    columns: tuple[Name, ...] = ()  # of INSERT (…); empty: all columns in their order
    values: tuple[Span, ...] = ()  # of INSERT … VALUES (…)


@dataclass(frozen=True)
class Merge(Statement):
    """Change a table by comparing it with a source: a table's name or a query."""

    table: Name
    alias: Name | None
    source: Name | Query
    source_span: Span  # the name, or the query with its parentheses
    source_alias: Name | None
    condition: Span
    clauses: tuple[MergeClause, ...]


def parse(cursor: Cursor) -> Merge:
    """MERGE …"""
    cursor.expect("MERGE")
    if cursor.at("WITH", "SCHEMA"):
        cursor.refuse(
            "MERGE WITH SCHEMA EVOLUTION is not supported", hint="ALTER TABLE t ADD COLUMN …"
        )
    cursor.expect("INTO")
    table = cursor.path("a table")
    alias = optional_alias(cursor, "USING")
    cursor.expect("USING")
    source, source_span = _source(cursor)
    source_alias = optional_alias(cursor, "ON")
    cursor.expect("ON")
    condition = cursor.expression("a condition", "WHEN", ";")
    if not cursor.at("WHEN"):
        cursor.fail("WHEN MATCHED or WHEN NOT MATCHED", words=("WHEN",))
    clauses: list[MergeClause] = []
    while cursor.at("WHEN"):
        clauses.append(_clause(cursor, table, alias))
    cursor.finish()
    _check_order(cursor, clauses)
    return Merge(
        cursor.text, table, alias, source, source_span, source_alias, condition, tuple(clauses)
    )


def _source(cursor: Cursor) -> tuple[Name | Query, Span]:
    if cursor.at("("):
        start = cursor.start
        query = take_parenthesised_query(cursor)
        return query, cursor.span_from(start)
    name = cursor.path("a table or a query in parentheses")
    return name, name.span


def _clause(cursor: Cursor, table: Name, alias: Name | None) -> MergeClause:
    start = cursor.start
    cursor.expect("WHEN")
    when = _when(cursor)
    condition = cursor.expression("a condition", "THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    word = cursor.choice(*(("INSERT",) if when == "not matched" else ("UPDATE", "DELETE")))
    if word == "DELETE":
        return MergeClause(when, condition, "delete", cursor.span_from(start))
    if word == "UPDATE":
        cursor.expect("SET")
        if cursor.accept("*"):
            if when != "matched":
                cursor.fail("assignments", hint="there is no source row to copy from")
            return MergeClause(when, condition, "update all", cursor.span_from(start))
        assignments = parse_assignments(cursor, table, alias, "WHEN", ";")
        return MergeClause(when, condition, "update", cursor.span_from(start), assignments)
    if cursor.accept("*"):
        return MergeClause(when, condition, "insert all", cursor.span_from(start))
    columns, values = _insert(cursor, table, alias)
    span = cursor.span_from(start)
    return MergeClause(when, condition, "insert", span, (), columns, values)


def _when(cursor: Cursor) -> When:
    if cursor.accept("MATCHED"):
        return "matched"
    if not cursor.accept("NOT", "MATCHED"):
        cursor.fail("MATCHED or NOT MATCHED", words=("MATCHED", "NOT"))
    if cursor.accept("BY", "SOURCE"):
        return "not matched by source"
    if cursor.at("BY"):
        cursor.expect("BY", "TARGET")
    return "not matched"


def _insert(
    cursor: Cursor, table: Name, alias: Name | None
) -> tuple[tuple[Name, ...], tuple[Span, ...]]:
    columns: tuple[Name, ...] = ()
    start = cursor.start
    if cursor.at("("):
        columns = cursor.parenthesised(lambda: target_column(cursor, table, alias))
        check_distinct(cursor, columns)
    cursor.expect("VALUES")
    values = cursor.parenthesised(lambda: cursor.expression("an expression", ","))
    if columns and len(columns) != len(values):
        raise SqlSyntaxError(
            f"INSERT names {len(columns)} columns but has {len(values)} values",
            place=cursor.span_from(start).place(cursor.text),
        )
    return columns, values


def _check_order(cursor: Cursor, clauses: list[MergeClause]) -> None:
    """Only the last clause of each kind may have no condition, as in Spark."""
    open_ended: set[str] = set()
    for clause in clauses:
        if clause.when in open_ended:
            raise SqlSyntaxError(
                f"a WHEN {clause.when.upper()} clause can never be reached",
                hint="only the last one of its kind may have no AND condition",
                place=clause.span.place(cursor.text),
            )
        if clause.condition is None:
            open_ended.add(clause.when)
