"""What is Spark's within a circuit: the user's own text, and which text cannot stand by itself.

A text is cut out of the query by its span; what its circuit computes stands under names of its own in it. It
must give the same for the same rows, whenever Spark evaluates it: one that names a function of chance or of
the time, or a user's function, is not cut out. Must never: write SQL anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.expression.terms import Terms
from headwater.plan.calls import VARYING
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import input_rows
from headwater.sql.identifiers import identifiers
from headwater.sql.names import words
from headwater.sql.spans import has_span, span_of
from headwater.sql.text import Span

# They give something else at each evaluation, or depend on what is not in the rows.
FRESH = frozenset(name.lower() for name in VARYING) | words(
    "aes_encrypt current_catalog current_database current_instant current_schema current_timezone "
    "current_user prev session_user tablesample user version"
)
# Of a whole query, these also go by the order of rows, which Spark's files do not have.
BY_ORDER = words(
    "any_value array_agg collect_list first first_value last last_value listagg string_agg"
)
# They make several rows, or several columns, of one.
GENERATORS = words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode "
    "variant_explode_outer session_window window window_time"
)


class SparkTypes(Protocol):
    """Whoever knows what Spark makes of a text."""

    def of_opaque(
        self, text: str, inputs: Mapping[str, pa.Schema]
    ) -> list[tuple[str, pa.DataType]] | None:
        """The names and types of a query's columns over some relations; None if it is not Spark's SQL."""


@dataclass(frozen=True)
class Opaque:
    """Cuts texts out of one query."""

    text: str  # of the query, as spans count
    types: SparkTypes
    terms: Terms

    def cut(
        self, node: exp.Expr, stands: Iterable[tuple[exp.Expr, str]], refused: frozenset[str]
    ) -> str:
        """The text of a node, with other text in the place of parts of it; NotKept if it is not to be had."""
        if not has_span(node):
            raise NotKept("it stands nowhere in the text")
        whole, pieces, done = span_of(node), list[str](), span_of(node).start
        for span, new in sorted(_placed(whole, stands), key=lambda one: one[0].start):
            if span.start < done:
                raise NotKept("parts of it lie over each other")
            pieces += [self.text[done : span.start], new]
            done = span.end
        text = "".join([*pieces, self.text[done : whole.end]])
        found = identifiers(text) & (refused | self.terms.functions)
        if found:
            raise NotKept(f"{min(found)} gives not always the same")
        return text

    def columns(
        self, text: str, inputs: Sequence[Sequence[tuple[str, pa.DataType]]]
    ) -> list[tuple[str, pa.DataType]]:
        """The columns of a text over inputs; NotKept if Spark does not take it, or no operator its types."""
        schemas = {input_rows(number): pa.schema(columns) for number, columns in enumerate(inputs)}
        found = self.types.of_opaque(text, schemas)
        if found is None:
            raise NotKept("Spark does not take it by itself")
        if any(pa.types.is_null(type_) for _, type_ in found):
            raise NotKept("a column without a type")
        return found


def _placed(whole: Span, stands: Iterable[tuple[exp.Expr, str]]) -> Iterable[tuple[Span, str]]:
    for part, new in stands:
        if not has_span(part):
            raise NotKept("a part stands nowhere in the text")
        span = span_of(part)
        if span.start < whole.start or span.end > whole.end:
            raise NotKept("a part stands elsewhere in the text")  # the alias of another item, say
        yield span, new
