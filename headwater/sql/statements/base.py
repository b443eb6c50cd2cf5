"""What all statements share: the base class, columns, options, flags of CREATE and DROP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import pyarrow as pa

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.duration import Duration, is_interval, parse_duration
from headwater.sql.lexer import Kind
from headwater.sql.literals import take_literal
from headwater.sql.names import words
from headwater.sql.text import Name, Span
from headwater.sql.type_parser import check_distinct, parse_type

OptionValue = str | int | float | bool | Duration
Options = Mapping[str, OptionValue]
T = TypeVar("T")


class Remembering:
    """Keeps what follows from it alone, as long as it is kept itself (`sql.scripts`)."""

    facts: dict[object, Any]
    """What is known of it; whoever keeps what depends on more (`execute.query`) keeps that with it."""

    def fact(self, make: Callable[[Self], T]) -> T:
        """What `make` says of it, made once; it must depend on nothing else."""
        if make not in self.facts:
            self.facts[make] = make(self)
        found: T = self.facts[make]
        return found


@dataclass(frozen=True)
class Statement(Remembering):
    """One statement; `text` is all of it, and every span is a place in this text."""

    text: str
    facts: dict[object, Any] = field(init=False, repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a table definition."""

    name: Name
    type: pa.DataType
    nullable: bool = True
    comment: str | None = None

    @property
    def field(self) -> pa.Field[pa.DataType]:
        """The column as an Arrow field."""
        return pa.field(str(self.name), self.type, self.nullable)


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of a function or procedure."""

    name: Name
    type: pa.DataType


_CONSTRAINTS = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CONSTRAINT", "CHECK"})
_COLUMN_EXTRAS = words("PRIMARY UNIQUE REFERENCES CHECK CONSTRAINT GENERATED DEFAULT COLLATE")


def if_not_exists(cursor: Cursor) -> bool:
    """`IF NOT EXISTS`."""
    return cursor.accept("IF", "NOT", "EXISTS")


def if_exists(cursor: Cursor) -> bool:
    """`IF EXISTS`."""
    return cursor.accept("IF", "EXISTS")


def parse_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """`(col TYPE [NOT NULL] [COMMENT '…'], …)`, at least one, all names different."""
    columns = cursor.parenthesised(lambda: parse_column(cursor))
    check_distinct(cursor, [column.name for column in columns])
    return columns


def parse_column(cursor: Cursor) -> ColumnDefinition:
    """`col TYPE [NOT NULL] [COMMENT '…']`."""
    if cursor.at_any(_CONSTRAINTS) and cursor.peek(1).upper in ("KEY", "("):
        _refuse_constraint(cursor)
    if cursor.at("CONSTRAINT") and cursor.peek(2).upper in _CONSTRAINTS:
        _refuse_constraint(cursor)
    name = cursor.new_name("a column")
    type_ = parse_type(cursor)
    nullable, comment = True, None
    while True:
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("NULL"):
            continue
        elif cursor.accept("COMMENT"):
            comment = cursor.string()
        elif cursor.at_any(_COLUMN_EXTRAS):
            _refuse_constraint(cursor)
        else:
            return ColumnDefinition(name, type_, nullable, comment)


def _refuse_constraint(cursor: Cursor) -> None:
    word = cursor.peek().upper
    what = {"PRIMARY": "PRIMARY KEY", "FOREIGN": "FOREIGN KEY"}.get(word, word)
    cursor.refuse(
        f"{what} is not supported in table definitions",
        hint="columns take NOT NULL and COMMENT; for the newest row per key use UPDATE KEY (…)"
        if word in ("PRIMARY", "UNIQUE")
        else "columns take NOT NULL and COMMENT",
    )


def parse_parameters(cursor: Cursor) -> tuple[FunctionParameter, ...]:
    """`(x T, …)`, possibly empty."""
    if not cursor.at("("):
        cursor.fail("(", hint="parameters in parentheses, () if there are none")
    if cursor.accept("(", ")"):
        return ()

    def parameter() -> FunctionParameter:
        return FunctionParameter(cursor.new_name("a parameter"), parse_type(cursor))

    parameters = cursor.parenthesised(parameter)
    check_distinct(cursor, [parameter.name for parameter in parameters])
    return parameters


def parse_with_options(cursor: Cursor) -> dict[str, OptionValue]:
    """`WITH (name = value, …)`, or nothing."""
    if not cursor.accept("WITH"):
        return {}
    return parse_options(cursor)


def parse_options(cursor: Cursor) -> dict[str, OptionValue]:
    """`(name = value, …)`."""
    options: dict[str, OptionValue] = {}

    def option() -> None:
        start = cursor.start
        name = option_name(cursor)
        if name in options:
            place = cursor.span_from(start).place(cursor.text)
            raise SqlSyntaxError(f"option {name} occurs twice", place=place)
        cursor.accept("=")
        options[name] = option_value(cursor)

    cursor.parenthesised(option)
    return options


def option_name(cursor: Cursor) -> str:
    """The name of an option or setting in lower case; quoted and dotted names keep their case."""
    if cursor.peek().kind is Kind.STRING:
        return cursor.string()
    path = cursor.path("the name of an option")
    return str(path) if "." in path else path.lower()


def option_value(cursor: Cursor) -> OptionValue:
    """A string, number, TRUE or FALSE, interval or bare word."""
    if is_interval(cursor):
        return parse_duration(cursor, zero=True)
    found = take_literal(cursor)
    if found is not None and isinstance(found.value, bool | int | float | str):
        return found.value
    if found is not None and found.value is not None:
        return float(str(found.value)) if pa.types.is_decimal(found.type) else str(found.value)
    if cursor.peek().is_name:
        return cursor.take().name
    raise cursor.error("a value")


def refuse_replace(cursor: Cursor, replace: bool, what: str) -> None:
    """Raise if OR REPLACE was written before something that cannot be replaced."""
    if replace:
        raise SqlSyntaxError(
            f"OR REPLACE is not allowed for a {what}",
            hint=f"DROP the {what} first",
            place=Span(0, cursor.previous_end).place(cursor.text),
        )


def optional_alias(cursor: Cursor, *stops: str) -> Name | None:
    """`[AS] alias`, unless one of the words follows."""
    if cursor.accept("AS"):
        return cursor.name("an alias")
    if cursor.peek().is_name and not cursor.at_any(stops):
        return cursor.name("an alias")
    return None
