"""`window(time, '10 seconds')`, its sliding form, and `session_window`: rows with the windows they lie in.

Spark puts the one such call of a SELECT below its grouping: each row comes once for each window, and
`window.start` and `window.end` are columns. Here the call is taken out of the SELECT in the same way; what
stands for the whole window is a struct of the two. A session is one of rows that have equal keys, and needs a
grouping.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.errors import Error
from headwater.plan.relational.expressions import refuse, replaced, stand_in
from headwater.plan.relational.joining import with_columns
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.names import Names
from headwater.plan.relational.nodes import Node, SessionNode, TimeWindowsNode
from headwater.sql.duration import duration_of

WINDOW, SESSION = "window", "session_window"
CLAUSES = ("group", "having", "qualify", "order")


@dataclass(frozen=True)
class TimeWindow:
    """The one window of a SELECT: its call, and the columns of its start and end."""

    call: exp.Anonymous
    kind: str
    time: str
    lengths: tuple[int, ...]
    bounds: tuple[exp.Column, exp.Column]

    def replace(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for the window, its start or its end."""
        if isinstance(node, exp.Column):
            parts = [part.name.casefold() for part in node.parts]
            if parts == [self.kind]:
                return self._struct()
            return self._bound(parts[1]) if len(parts) == 2 and parts[0] == self.kind else None
        if isinstance(node, exp.Dot) and node.this == self.call:
            return self._bound(node.expression.name.casefold())
        return self._struct() if node == self.call else None

    def _bound(self, field: str) -> exp.Expr | None:
        return {"start": self.bounds[0], "end": self.bounds[1]}.get(field)

    def _struct(self) -> exp.Expr:
        named = zip(("start", "end"), self.bounds, strict=True)
        fields = [exp.PropertyEQ(this=exp.to_identifier(n), expression=b) for n, b in named]
        return exp.Struct(expressions=fields)

    def named(self, item: exp.Expr) -> exp.Expr:
        """An item of the select list with what stands for the window; it keeps its name."""
        made = replaced(item, self.replace)
        if made == item or isinstance(item, exp.Alias):
            return made
        name = self.kind if item == self.call else item.name or item.output_name
        return exp.Alias(this=made, alias=exp.to_identifier(name)) if name else made

    def without(self, select: exp.Select) -> exp.Select:
        """The SELECT's other clauses without the window's call."""
        made = select.copy()
        for clause in CLAUSES:
            part = select.args.get(clause)
            if part is not None:
                made.set(clause, replaced(part, self.replace))
        return made

    def rows(self, layer: Layer, partition: Sequence[exp.Expr] | None) -> Node:
        """The rows with their windows; `partition`: the keys of the grouping, None for grouping sets."""
        start, end = (bound.meta["stands for"][0] for bound in self.bounds)
        if self.kind == WINDOW:
            length, slide, offset = self.lengths
            return TimeWindowsNode(layer.node, self.time, (length, slide, offset), start, end)
        if partition is None or self.bounds[0] not in partition:
            raise refuse("a session that is no key of GROUP BY", self.call)
        own = [key for key in partition if not any(key == bound for bound in self.bounds)]
        node, keys = with_columns(layer.building, layer.node, [layer.bound(key) for key in own])
        return SessionNode(node, tuple(keys), self.time, self.lengths[0], start, end)


def time_window_of(
    layer: Layer, select: exp.Select, items: Sequence[exp.Expr]
) -> tuple[Layer, TimeWindow | None]:
    """The window of a SELECT, and a layer that has its time as a column."""
    parts = [*items, *(part for name in CLAUSES if (part := select.args.get(name)) is not None)]
    calls: list[exp.Anonymous] = []
    for call in (call for part in parts for call in _calls_in(part)):
        if call not in calls:
            calls.append(call)
    if not calls:
        return layer, None
    if len(calls) > 1:
        raise refuse("several windows of time", calls[1])
    call, kind = calls[0], calls[0].name.casefold()
    if kind in layer.building.terms.functions:
        raise refuse(f"{kind} is a user's function", call)
    _check_names(layer.expressions.names, kind, call)
    if kind == SESSION and select.args.get("group") is None:
        raise refuse("a session without GROUP BY", call)
    time = layer.bound(call.expressions[0])
    if not pa.types.is_timestamp(time.type):
        raise refuse(f"a window of {time.type}", call)
    node, (name,) = with_columns(layer.building, layer.node, [time])
    fresh = layer.building.fresh
    bounds = (stand_in(fresh("start"), time.type), stand_in(fresh("end"), time.type))
    return layer.over(node), TimeWindow(call, kind, name, _lengths(call, kind), bounds)


def _calls_in(part: exp.Expr) -> Iterator[exp.Anonymous]:
    for node in part.walk(prune=lambda n: isinstance(n, exp.Query)):
        if isinstance(node, exp.Anonymous) and str(node.this).casefold() in (WINDOW, SESSION):
            yield node


def _check_names(names: Names, kind: str, call: exp.Anonymous) -> None:
    """Refuses a window beside a relation or a column that is called so."""
    for relation in names.relations:
        known = {relation.alias or "", *(column.shown for column in relation.columns)}
        if kind in {name.casefold() for name in known}:
            raise refuse(f"{kind} may mean a column", call)


def _lengths(call: exp.Anonymous, kind: str) -> tuple[int, ...]:
    """Of a window: its length, its slide and its offset; of a session: the gap."""
    _, *given = call.expressions
    found = [_length(one, call, zero=place == 2) for place, one in enumerate(given)]
    if kind == SESSION:
        if len(found) != 1:
            raise refuse("this form of session_window", call)
        return tuple(found)
    if not 1 <= len(found) <= 3:
        raise refuse("this form of window", call)
    length, slide, offset = (*found, *(found[0], 0)[len(found) - 1 :])
    if slide > length or offset >= slide:
        raise refuse("this form of window", call)
    return length, slide, offset


def _length(node: exp.Expr, call: exp.Anonymous, zero: bool) -> int:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise refuse("a length that is no text", call)
    try:
        return duration_of(node.name, zero=zero).microseconds
    except Error as error:
        raise refuse(f"this length of a window: {error.message}", call) from error
