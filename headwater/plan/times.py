"""Functions of time: what stands for them. Functions that a kept query cannot have, of chance above all."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import BindError, NotSupportedError
from headwater.plan.calls import CHANCE, TIME_FUNCTIONS, SqlCall, moments, varying_calls
from headwater.plan.pieces import Piece, Stand, cast, instant
from headwater.plan.scope import innermost
from headwater.plan.shape import SelectBlock
from headwater.plan.text import spark_text
from headwater.sql.statements.query import Query

ORDERED_DISTINCT = "listagg(DISTINCT …) WITHIN GROUP beside another DISTINCT aggregate"
APART = "compute them in subqueries of their own, and join these"


def refuse_chance(query: Query, statement: str) -> None:
    """Functions of chance have no meaning in a query that may be evaluated again.

    Nor have those of time that give a TIME, a type that no column has, or that are texts.
    """
    text = query.text
    same = "a result must be the same when it is computed again"
    now = "current_timestamp() is the time of the result"
    found = [
        (call.span, f"{call.name.lower()}()", same if call.name in CHANCE else now)
        for call in varying_calls(text)
        if call.name in CHANCE or call.name in ("CURRENT_TIME", "LOCALTIME") or call.arguments
    ]
    found += [(span, f"the time {span.of(text)}", now) for span in moments(text)]
    for span, what, hint in found[:1]:
        raise BindError(
            f"{what} cannot be used in a continuous query",
            sqlstate="42P17",
            hint=hint,
            place=span.shifted(query.offset).place(statement),
        )


def time_edits(text: str, integers: bool = False, by_spark: bool = False) -> list[Stand]:
    """What stands for functions of time; `integers`: instants are seconds since 1970.

    `by_spark`: they are timestamps, where what is computed by operators takes them for whole numbers.
    """
    calls = [call for call in varying_calls(text) if call.name in TIME_FUNCTIONS]
    return [Stand.of(call.span, _moment(call.name, integers, by_spark)) for call in calls]


def _moment(name: str, integers: bool, by_spark: bool) -> Piece:
    now = Piece(instant().text, None) if by_spark else instant()
    if integers:
        now = Piece(spark_text("timestamp_seconds(", now.text, ")"), None)
    if name in ("CURRENT_DATE", "CURDATE"):
        return cast(now, "DATE")
    if name == "LOCALTIMESTAMP":
        return cast(now, "TIMESTAMP_NTZ")
    if name == "UNIX_TIMESTAMP":
        return Piece(spark_text("unix_timestamp(", now.text, ")"), None)
    return now


def refuse_ordered_distinct(
    query: Query, calls: Sequence[SqlCall], statement: str, blocks: Sequence[SelectBlock]
) -> None:
    """What Spark fails at when it runs: listagg(DISTINCT …) WITHIN GROUP beside another DISTINCT."""
    for block in blocks:
        own = [call for call in calls if call.span.within(block.span) and call.arguments]
        distinct = [c for c in own if c.distinct and innermost(blocks, c.span) is block]
        ordered = [c for c in distinct if c.within and c.name in ("LISTAGG", "STRING_AGG")]
        if ordered and len({call.arguments[0].of(query.text) for call in distinct}) > 1:
            raise NotSupportedError(
                ORDERED_DISTINCT,
                hint=APART,
                place=ordered[0].span.shifted(query.offset).place(statement),
            )
