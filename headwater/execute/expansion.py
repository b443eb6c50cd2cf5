"""Texts in the place of names and calls, before anything else: views, functions that read, NEAR.

A plain view is replaced by its query. In a view on views a continuous one is too, if its query over all
stored rows is what it keeps: the whole is kept as one then, at one place in the log. So is a call of a table
function that reads a stream, if its arguments are constants: then the time that it asks for is known, and a
continuous query keeps it like a query of its own. `NEAR(x, y, d)` becomes `x BETWEEN y - d AND y + d`. Must
never: put a column of the caller into another scope.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

from sqlglot import exp

from headwater.errors import BindError, Error, Place
from headwater.execute.context import Context
from headwater.execute.familiar import put_familiar
from headwater.execute.function_bodies import Body, bodies_called
from headwater.execute.zones import stored_zone
from headwater.plan.calls import VARYING, called
from headwater.sql.extensions import Near
from headwater.sql.literals import literal
from headwater.sql.parameters import substitute
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import EditedText, Span
from headwater.sql.types import name_of, quoted
from headwater.storage.catalog import CatalogObject

DEEPEST = 32
ROWS = "headwater_rows"  # of a function, inside; its own name with columns would look like a call
Functions = OneOf["none", "tables", "all"]
Views = OneOf["none", "plain", "kept"]


@dataclass(frozen=True)
class Expansion:
    """A query with texts in place, and how it came about."""

    query: Query
    steps: tuple[EditedText, ...] = ()

    def original_position(self, position: int) -> int:
        """The position in the first text of a position in the last one."""
        for step in reversed(self.steps):
            position = step.original_position(position)
        return position

    def original(self, place: Place) -> Span | None:
        """The span of the first text that a place in the last one comes from."""
        if place.text != self.query.text:
            return None
        span = Span(place.start, place.end)
        for step in reversed(self.steps):
            span = step.original_span(span)
        return span


@dataclass(frozen=True)
class Replaced:
    """A view that is about to get another query."""

    key: str
    text: str | None  # what stands for it; None: nothing may, it is the view's own query


@contextlib.contextmanager
def expanding(
    context: Context,
    query: Query,
    text: str,
    *,
    views: Views = "plain",
    functions: Functions = "tables",
    replaced: Replaced | None = None,
) -> Iterator[tuple[Query, str]]:
    """A query expanded, and its statement's text; errors while inside are placed in the user's."""
    found = Expansion(query)
    try:
        found = expanded(context, query, views=views, functions=functions, replaced=replaced)
        yield found.query, text if found.query is query else found.query.text
    except Error as error:
        span = None if error.place is None else found.original(error.place)
        if span is not None or found.query is not query:
            error.place = None if span is None else span.shifted(query.offset).place(text)
        raise


def expanding_continuous(
    context: Context, query: Query, text: str
) -> contextlib.AbstractContextManager[tuple[Query, str]]:
    """The query of a continuous query expanded; it reads continuous views as they are."""
    return expanding(context, query, text, functions="all")


def expanded(
    context: Context,
    query: Query,
    *,
    views: Views = "plain",
    functions: Functions = "tables",
    replaced: Replaced | None = None,
) -> Expansion:
    """The query with all texts in place; the same one if there are none.

    `views`: which of them. `functions`: which of those that read, with constants as arguments.
    `replaced`: the view that is about to get another query.
    """
    found = Expansion(query)
    for _ in range(DEEPEST):
        step = EditedText(found.query.text)
        if views != "none":
            _put_views(context, found.query, step, views == "kept", replaced)
        if functions != "none":
            _put_functions(context, found.query, step, functions == "all")
        _put_near(context, found.query, step)
        with _placed(query, found):
            put_familiar(found.query, context.functions, step)
        if not step.edits:
            return found
        made = make_query(step.text)
        found = Expansion(made, (*found.steps, step))
    raise BindError("views and functions stand in each other too deep", sqlstate="54001")


@contextlib.contextmanager
def _placed(query: Query, found: Expansion) -> Iterator[None]:
    """Errors in a text that came in between are placed in the first one."""
    try:
        yield
    except Error as error:
        span = None if error.place is None else found.original(error.place)
        error.place = None if span is None else span.place(query.text)
        raise


# Views


def is_plain(item: CatalogObject | None) -> bool:
    """Whether a catalog object is a view that is only a text."""
    return item is not None and item.kind == "view" and not item.definition["continuous"]


def stores_all(context: Context, item: CatalogObject) -> bool:
    """Whether all rows that a continuous view has counted are stored, and no others."""
    tables = [context.streams.find(number) for number in item.definition["reads"]]
    stored = all(table is not None and table.definition.keeps_all for table in tables)
    return stored and all(start[0] == 0 for start in item.definition["starts"])


def repeats(context: Context, item: CatalogObject) -> bool:
    """Whether the query of a continuous view over all stored rows gives what the view keeps."""
    saved = item.definition
    as_now = not saved["static"] and not saved["volatile"]
    return as_now and stored_zone(saved) == context.time_zone and stores_all(context, item)


def _put_views(
    context: Context, query: Query, step: EditedText, kept: bool, replaced: Replaced | None
) -> None:
    for reference in query.table_references:
        item = context.find(reference.name)
        if item is None or item.kind != "view":
            continue
        plain = is_plain(item)
        if replaced is not None and item.key == replaced.key:
            if replaced.text is None:
                raise BindError(f"view {item.name} would be made of itself", sqlstate="42P19")
            text = replaced.text
        elif plain or (kept and repeats(context, item)):
            text = text_of(item)
        else:
            continue
        hidden = _ctes(query) & set(item.definition["tables"])
        bare = reference.version is None and not reference.window and not reference.cut
        if not plain and (hidden or not bare):
            continue  # it is read as it is
        if not bare:
            raise BindError(
                f"{item.name} is a plain view: it takes no window, no CUT and no version",
                sqlstate="42P20",
            )
        if hidden:
            raise BindError(
                f"WITH {min(hidden)} hides what view {item.name} reads under that name",
                sqlstate="42P20",
                hint="give the query in WITH another name",
            )
        alias = "" if reference.alias else f" AS {quoted(item.name)}"
        span = reference.name.span
        step.replace(span.start, span.end, f"({text}){alias}")


def _ctes(query: Query) -> set[str]:
    """The names that WITH gives, in lower case."""
    return set() if query.tree is None else {c.alias.lower() for c in query.tree.find_all(exp.CTE)}


def text_of(item: CatalogObject) -> str:
    """A view's query as it was written, its columns under their names."""
    saved = item.definition
    return named_text(item.name, saved.get("written", saved["text"]), saved["columns"])


def named_text(view: str, text: str, names: Sequence[str] | None) -> str:
    """A view's query, its columns under their names."""
    if names is None:
        return text
    columns = ", ".join(quoted(name) for name in names)
    return f"SELECT * FROM ({text}) AS {quoted(view)}({columns})"


# Functions


def _put_functions(context: Context, query: Query, step: EditedText, scalars: bool) -> None:
    bodies = {body.function.name: body for body in bodies_called(context, query.text)}
    if not bodies or query.tree is None:
        return
    for call in query.tree.find_all(exp.Anonymous):
        body = bodies.get(call.name.lower())
        in_from = isinstance(call.parent, exp.Table)
        if body is None or in_from != body.is_table or not (body.is_table or scalars):
            continue
        values = _constants(context, query, call, body)
        if values is None or not _is_clear(context, body):
            continue
        text = body.without_select(substitute(body.query.text, values).text)
        span = span_of(call)
        if step.is_free(span):  # what stands inside others comes with the next step
            step.replace(span.start, span.end, _in_place(call, body, text))


def _in_place(call: exp.Anonymous, body: Body, text: str) -> str:
    """What stands for a call, in the types that the function returns."""
    if body.columns is None:
        return f"CAST(({text}\n) AS {body.function.returns})"
    name = quoted(body.function.name)
    names = ", ".join(quoted(column.name) for column in body.columns)
    casts = (
        f"CAST({quoted(c.name)} AS {name_of(c.type)}) AS {quoted(c.name)}" for c in body.columns
    )
    assert call.parent is not None
    alias = "" if call.parent.args.get("alias") else f" AS {name}"
    return f"(SELECT {', '.join(casts)} FROM ({text}\n) AS {ROWS}({names})){alias}"


def _constants(
    context: Context, query: Query, call: exp.Anonymous, body: Body
) -> dict[str, str] | None:
    """The arguments as texts, by parameter; None if not all are constants."""
    arguments = call.expressions
    if len(arguments) != len(body.parameters) or not all(map(has_span, (call, *arguments))):
        return None
    found = {}
    for parameter, argument in zip(body.parameters, arguments, strict=True):
        text = span_of(argument).of(query.text)
        functions = {name.lower() for name in called(text)}
        varies = functions & ({name.lower() for name in VARYING} | context.functions.keys())
        kinds = (exp.Column, exp.Query, exp.Kwarg, exp.Placeholder, exp.Parameter)
        if varies or argument.find(*kinds) is not None:
            return None
        found[parameter.name.key] = _argument(text, name_of(parameter.type))
    return found


def _argument(text: str, type_: str) -> str:
    """An argument in the type of its parameter; a literal of that type stays what it is."""
    found = literal(text)
    if found is not None and found.type_name == type_:
        return f"({text}\n)"
    if found is not None and (found.type_name, type_) == ("INT", "BIGINT"):
        return f"({text}L)"
    return f"CAST(({text}\n) AS {type_})"


def _is_clear(context: Context, body: Body) -> bool:
    """Whether the names of parameters mean nothing else in the body: to Spark a column comes first."""
    query = expanded(
        context, body.query, functions="none"
    ).query  # of plain views all that they name
    tree, names = query.tree, {parameter.name.key for parameter in body.parameters}
    if tree is None:
        return False
    taken = {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    for table in tree.find_all(exp.TableAlias):
        taken |= {table.name.lower(), *(column.name.lower() for column in table.columns)}
    if any(c.table.lower() == body.function.name for c in tree.find_all(exp.Column)):
        return False  # a parameter by its function's name
    for reference in query.table_references:
        columns = context.columns_of(reference.name)
        if columns is None:
            return False
        taken |= {reference.name.key, *(column.lower() for column in columns)}
    return not names & taken


def refuse_reading(context: Context, query: Query, text: str) -> None:
    """BindError if a continuous query or view calls a function whose answer it cannot keep."""
    for body in bodies_called(context, query.text):
        name, tree = body.function.name, query.tree
        calls = [] if tree is None else tree.find_all(exp.Anonymous)
        mine = [call for call in calls if call.name.lower() == name and has_span(call)]
        fixed = any(_constants(context, query, call, body) is not None for call in mine)
        raise BindError(
            f"function {name} reads what changes, so a continuous query cannot keep its answers",
            sqlstate="42P20",
            hint="join what it reads; or give its parameters names that no column has which it reads"
            if fixed
            else "call it with constants, or join what it reads",
            place=span_of(mine[0]).shifted(query.offset).place(text) if mine else None,
        )


# NEAR


def _put_near(context: Context, query: Query, step: EditedText) -> None:
    if not query.near or "near" in context.functions:  # a user's own
        return
    for call in query.near:
        if step.is_free(call.span):
            step.replace(call.span.start, call.span.end, _between(query.text, call))


def _between(text: str, call: Near) -> str:
    value, other, distance = (span.of(text) for span in (call.value, call.other, call.distance))
    low, high = _known_bounds(other, distance) or (
        f"({other}\n) {sign} ({distance}\n)" for sign in "-+"
    )
    return f"(({value}\n) BETWEEN {low} AND {high})"


def _known_bounds(other: str, distance: str) -> tuple[str, str] | None:
    """The bounds of two numbers as literals, which the storage compares with; None for other texts."""
    found, apart = literal(other), literal(distance)
    types = [one.type_name for one in (found, apart) if one is not None]
    if found is None or apart is None or not all(map(_is_exact, types)):
        return None
    middle, away = Decimal(str(found.value)), Decimal(str(apart.value))
    bounds = (middle - away, middle + away)
    if any(type_.startswith("DECIMAL") for type_ in types):
        return f"({bounds[0]:f}BD)", f"({bounds[1]:f}BD)"
    wide = "BIGINT" in types
    if any(abs(bound) >= 1 << (63 if wide else 31) for bound in bounds):
        return None  # Spark tells that it overflows
    mark = "L" * wide
    return f"({bounds[0]}{mark})", f"({bounds[1]}{mark})"


def _is_exact(type_: str) -> bool:
    return type_ in ("INT", "BIGINT") or type_.startswith("DECIMAL")
