"""`STREAM(f(x, …), 'CUT …')`: a user's generator as the source of a continuous query (EQ9, ECQ §2.2).

The query gets a stream of its own, with the columns that the function returns, and a source that calls the
function with the arguments; both come into the catalog and leave it with the query. One call written twice is
one stream. Must never: start a source before its query reads the stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from headwater.connectors.options import from_json, to_json
from headwater.errors import BindError, Error, Place
from headwater.execute.context import Context
from headwater.execute.expansion import expanding_continuous
from headwater.execute.streaming_tables import DEFAULT_COMPARTMENTS, add_stream
from headwater.execute.tables import fresh_number
from headwater.kernel.functions import PythonFunction, table_columns
from headwater.kernel.kernel import Work
from headwater.sources.python import arguments_of
from headwater.sql.extensions import Cut, NamedRelation
from headwater.sql.literals import literal
from headwater.sql.statements.create_continuous_query import CreateContinuousQuery
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import EditedText, Name, Span
from headwater.sql.type_parser import parse_fields
from headwater.sql.types import quoted
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.definition import Definition

OWNER = "generator"  # in the definition of a stream: the query, the function and its arguments
ARGUMENT_TYPES = (bool, int, float, str)


@contextlib.contextmanager
def continuous_text(
    context: Context, statement: CreateContinuousQuery | CreateMaterializedView
) -> Iterator[tuple[Query, str]]:
    """The query of a statement, over streams of its own where it calls generators; and the text."""
    with (
        generating(context, statement.name, statement.query, statement.text) as (query, text),
        expanding_continuous(context, query, text) as expanded,
    ):
        yield expanded


@contextlib.contextmanager
def generating(
    context: Context, name: Name, query: Query, text: str
) -> Iterator[tuple[Query, str]]:
    """The query of a continuous query over streams of its own, whose sources are to be started."""
    calls = [r for r in query.table_references if r.generator is not None]
    if not calls:
        yield query, text
        return
    made: dict[tuple[str, str], CatalogObject] = {}
    edited = EditedText(query.text)
    for reference in calls:
        stream, span = _stream(context, name, query, text, reference, made)
        edited.replace(span.start, span.end, quoted(stream.name))
    whole = make_query(edited.text)
    try:
        yield whole, whole.text
    except Error as error:
        error.place = _original(error, edited, query, text)
        raise
    for item in made.values():
        _add_source(context, item)


def _original(error: Error, edited: EditedText, query: Query, text: str) -> Place | None:
    if error.place is None or error.place.text != edited.text:
        return None
    span = edited.original_span(Span(error.place.start, error.place.end))
    return span.shifted(query.offset).place(text)


def _stream(
    context: Context,
    name: Name,
    query: Query,
    text: str,
    reference: NamedRelation,
    made: dict[tuple[str, str], CatalogObject],
) -> tuple[CatalogObject, Span]:
    """The stream of a call, that of an equal call if there was one; and where the call stands."""
    generator, cut = reference.generator, reference.cut
    assert generator is not None
    assert cut is not None
    try:
        function = context.sources.table_function(reference.name)
        values = [_value(context, span.of(query.text)) for span in generator.arguments]
        arguments = arguments_of(reference.name, function.function, values)
    except Error as error:
        raise error.at(generator.span.shifted(query.offset).place(text)) from None
    key = (function.name, repr(sorted(arguments.items())))
    if key not in made:
        stream = f"_{name}_{function.name}" + (f"_{len(made) + 1}" if made else "")
        context.catalog.check_free("stream", stream)
        saved = {"query": str(name), "function": function.name, "options": to_json(arguments)}  # type: ignore[arg-type]
        definition = _definition(context, stream, function, cut)
        made[key] = add_stream(
            context, "stream", stream, definition, {**definition.as_json(), OWNER: saved}
        )
    return made[key], generator.span


def _value(context: Context, text: str) -> object:
    """The value of an argument, which is a constant."""
    known = literal(text)
    value = known.value if known is not None else _computed(context, text)
    if not isinstance(value, ARGUMENT_TYPES):
        raise BindError(
            f"an argument of a generator is a number, a text or a truth value, not {value!r}",
            sqlstate="42804",
            hint="give a date or a time as text",
        )
    return value


def _computed(context: Context, text: str) -> object:
    return context.kernel.run(Work(f"SELECT ({text}\n)")).column(0)[0].as_py()


def _definition(context: Context, name: str, function: PythonFunction, cut: Cut) -> Definition:
    """A stream of the function's columns; its time is the column that is cut by time."""
    schema = pa.schema(
        [pa.field(*field) for field in parse_fields(table_columns(function.returns))]
    )
    time = None
    if cut.kind == "interval" and cut.column is not None:
        key = cut.column.casefold()
        time = next((f for f in schema if f.name.casefold() == key and _is_time(f.type)), None)
    return Definition(
        id=0,
        name=name,
        kind="stream",
        schema=schema,
        time_column=None if time is None else time.name,
        range_ticks=None,
        watermark_ticks=0,
        late="keep",
        update_key=None,
        compartments=DEFAULT_COMPARTMENTS,
        max_step_ticks=None,
        folder=context.table_folder(name, fresh_number(context)).name,
    )


def _is_time(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
    return any(is_kind(type_) for is_kind in kinds)


def _add_source(context: Context, item: CatalogObject) -> None:
    """Makes the source that fills a stream; the stream has its name."""
    saved, table = item.definition[OWNER], context.streams.find(item.id)
    assert table is not None
    url = f"python:{saved['function']}"
    context.sources.add(item.name, table, url, from_json(saved["options"]))


def generated_for(context: Context, query: CatalogObject) -> list[CatalogObject]:
    """The streams that a query has for itself, and their sources."""
    owner = query.name.removeprefix("_")
    streams = [
        item
        for item in context.catalog.all("stream")
        if item.definition.get(OWNER, {}).get("query") == owner
    ]
    sources = [context.sources.find(stream.name) for stream in streams]
    return [*streams, *(source for source in sources if source is not None)]
