"""Functions of time: what stands for them. Functions that a kept query cannot have, of chance above all."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import BindError, NotSupportedError
from headwater.plan.continuous.calls import (
    CHANCE,
    TIME_FUNCTIONS,
    calls_in,
    moments,
    varying_calls,
)
from headwater.plan.continuous.folds import INSTANT
from headwater.plan.continuous.rendering import Replacement
from headwater.plan.continuous.scope import innermost
from headwater.plan.continuous.shape import Block
from headwater.sql.statements.query import Query

ORDERED_DISTINCT = "listagg(DISTINCT …) WITHIN GROUP beside another DISTINCT aggregate"
APART = "compute them in subqueries of their own, and join these"


def refuse_chance(query: Query, text: str, statement: str) -> None:
    """Functions of chance have no meaning in a query that may be evaluated again.

    Nor have those of time that give a TIME, a type that no column has, or that are texts.
    """
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


def time_edits(text: str, integers: bool = False) -> list[Replacement]:
    """What stands for functions of time; `integers`: instants are seconds since 1970."""
    now = f"timestamp_seconds({INSTANT})" if integers else INSTANT
    texts = {
        "CURRENT_DATE": f"CAST({now} AS DATE)",
        "CURDATE": f"CAST({now} AS DATE)",
        "LOCALTIMESTAMP": f"CAST({now} AS TIMESTAMP_NTZ)",
        "UNIX_TIMESTAMP": f"unix_timestamp({now})",
    }
    calls = [call for call in varying_calls(text) if call.name in TIME_FUNCTIONS]
    return [(call.span, texts.get(call.name, now)) for call in calls]


def refuse_ordered_distinct(
    query: Query, text: str, statement: str, blocks: Sequence[Block]
) -> None:
    """What Spark fails at when it runs: listagg(DISTINCT …) WITHIN GROUP beside another DISTINCT."""
    for block in blocks:
        calls = [call for call in calls_in(text, block.span) if call.distinct and call.arguments]
        distinct = [call for call in calls if innermost(blocks, call.span) is block]
        ordered = [c for c in distinct if c.within and c.name in ("LISTAGG", "STRING_AGG")]
        if ordered and len({call.arguments[0].of(text) for call in distinct}) > 1:
            raise NotSupportedError(
                ORDERED_DISTINCT,
                hint=APART,
                place=ordered[0].span.shifted(query.offset).place(statement),
            )
