"""SQL functions whose bodies are read like queries: they name streams, views or results (ST12).

Spark keeps a function's text. What such a body reads is put under names that Spark holds, once for each
statement; the function that Spark calls has these names in it. Must never: evaluate a body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from headwater.execute.context import Context
from headwater.kernel.functions import SqlFunction
from headwater.sql.cursor import Cursor
from headwater.sql.statements import create_function
from headwater.sql.statements.base import ColumnDefinition, FunctionParameter
from headwater.sql.statements.query import Query, make_query

EXPRESSION = "SELECT "  # before a scalar function's expression, which makes a query of it
MOST_BODIES = 512


@dataclass(frozen=True, eq=False)
class Body:
    """A function's body as a query; that of a scalar function is read as `SELECT expression`."""

    function: SqlFunction
    parameters: tuple[FunctionParameter, ...]
    columns: tuple[ColumnDefinition, ...] | None  # of a table function
    query: Query
    head: str  # the definition before the body: parameters, RETURNS, RETURN

    @property
    def is_table(self) -> bool:
        """Whether it stands in FROM."""
        return self.columns is not None

    def called_as(self, text: str) -> SqlFunction:
        """The function with another body; `text` is its query's, edited."""
        return _with_definition(self.function, self.head + self.without_select(text))

    def without_select(self, text: str) -> str:
        """The body in the text of its query."""
        return text if self.is_table else text[len(EXPRESSION) :]


@lru_cache(maxsize=MOST_BODIES)
def body_of(function: SqlFunction) -> Body:
    """The body of a function, as it was written."""
    cursor = Cursor(f"`{function.name}`{function.definition}")
    made = create_function.parse(cursor, replace=False)
    if made.query is not None:
        query, start = made.query, made.query.offset
    else:
        assert made.body is not None
        query, start = make_query(EXPRESSION + made.body.of(made.text)), made.body.start
    head = made.text[made.name.span.end : start]
    return Body(function, made.parameters, made.columns, query, head)


@lru_cache(maxsize=MOST_BODIES)
def _with_definition(function: SqlFunction, definition: str) -> SqlFunction:
    """One object for one text: a Spark session registers it once."""
    return SqlFunction(
        function.name, definition, function.returns, function.identifiers, function.kind
    )


def bodies_called(context: Context, text: str) -> list[Body]:
    """The functions that a text may call, itself or by others, whose bodies Spark cannot read as they are."""
    return bodies_among(context, context.functions_called(text))


def bodies_among(context: Context, names: Iterable[str]) -> list[Body]:
    """Those functions of some, by their names in lower case, whose bodies Spark cannot read as they are."""
    functions = [context.functions.get(name) for name in sorted(names)]
    bodies = [body_of(function) for function in functions if isinstance(function, SqlFunction)]
    return [body for body in bodies if is_read(context, body.query)]


def is_read(context: Context, query: Query) -> bool:
    """Whether a body says more than expressions, functions and standard tables."""
    return not query.is_plain or any(
        "." in reference.name or not _is_standard(context, reference.name.key)
        for reference in query.table_references
    )


def _is_standard(context: Context, name: str) -> bool:
    item = context.find(name)
    return item is None or item.kind == "table"  # of a name that is none, Spark tells


def functions_reading(context: Context, name: str) -> list[str]:
    """The functions whose bodies name a table or view, by its name in lower case."""
    found = []
    for function in context.functions.values():
        if isinstance(function, SqlFunction) and name in function.identifiers:
            references = body_of(function).query.table_references
            if any(reference.name.key == name for reference in references):
                found.append(function.name)
    return sorted(found)
