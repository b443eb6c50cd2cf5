"""OVER → nodes of window functions, one for each partition and order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from headwater.expression.nodes import Bound
from headwater.plan.relational.aggregates import aggregate_of
from headwater.plan.relational.expressions import refuse, stand_in
from headwater.plan.relational.joining import with_columns
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.nodes import Node, OverCall, OverNode, SortColumn
from headwater.plan.relational.trees import check_arguments, ordinal
from headwater.sql.literals import interval

NUMBERS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Ntile: "ntile",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
}
SHARES = ("percent_rank", "cume_dist")
PICKS: dict[type[exp.Expr], str] = {
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
    exp.NthValue: "nth_value",
}
SHIFTS: dict[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}
OVER_FUNCTIONS = ("sum", "avg", "min", "max", "count", "bool_and", "bool_or")
Frame = OneOf["partition", "running", "rows", "range"]


class OverClauses:
    """The window functions of one SELECT."""

    def __init__(self, layer: Layer, parts: Iterable[exp.Expr]) -> None:
        self._layer, self.node = layer, layer.node
        self._found: list[tuple[exp.Window, OverCall]] = []
        for window in (w for part in parts for w in _windows_in(part)):
            if not any(known == window for known, _ in self._found):
                self._found.append((window, self._call(window)))

    @property
    def are_there(self) -> bool:
        """Whether there is one."""
        return bool(self._found)

    def replace(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for a window function above it."""
        for known, call in self._found if isinstance(node, exp.Window) else ():
            if known == node:
                return stand_in(call.name, call.type)
        return None

    def _call(self, window: exp.Window) -> OverCall:
        check_arguments(window, "this partition_by order over spec")
        partition = self._columns(window.args.get("partition_by") or [])
        order = self._order(window.args.get("order"))
        call = self._function(window, order)
        node = self.node
        if isinstance(node, OverNode) and (node.partition, node.order) == (partition, order):
            self.node = replace(node, calls=(*node.calls, call))
        else:
            self.node = OverNode(node, partition, order, (call,))
        return call

    def _columns(self, nodes: Sequence[exp.Expr]) -> tuple[str, ...]:
        """Expressions as columns below."""
        bound = [self._layer.bound(node) for node in nodes]
        added, names = self._added(bound)
        self.node = added
        return tuple(names)

    def _added(self, bound: Sequence[Bound]) -> tuple[Node, list[str]]:
        if any(pa.types.is_nested(one.type) for one in bound):
            raise refuse("a window function over a nested column", exp.Null())
        return with_columns(self._layer.building, self.node, bound)

    def _order(self, order: exp.Order | None) -> tuple[SortColumn, ...]:
        items = [] if order is None else list(order.expressions)
        for item in items:
            check_arguments(item, "this desc nulls_first")
        names = self._columns([item.this for item in items])
        return tuple(
            SortColumn(name, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
            for name, item in zip(names, items, strict=True)
        )

    def _function(self, window: exp.Window, order: Sequence[SortColumn]) -> OverCall:
        function, spec, ordered = window.this, window.args.get("spec"), bool(order)
        name = self._layer.building.fresh("over")
        if type(function) in NUMBERS:
            return self._number(window, name, ordered)
        ignore_nulls = isinstance(function, exp.IgnoreNulls)
        function = function.this if ignore_nulls else function
        if type(function) in SHIFTS:
            return self._shift(window, function, name, ordered, ignore_nulls)
        types = [type_ for one in order for n, type_ in self.node.columns if n == one.name]
        frame, rows = _frame(spec, types, window)
        if type(function) in PICKS:
            check_arguments(function, "this offset")
            number = _count_of(function.args.get("offset"), window, least=1)
            arguments = self._columns([function.this])
            type_ = dict(self.node.columns)[arguments[0]]
            known = (PICKS[type(function)], arguments, name, type_)
            return OverCall(*known, number, frame, rows, ignore_nulls)
        tree = aggregate_of(function)
        if tree.function not in OVER_FUNCTIONS or tree.distinct:
            raise refuse(f"{tree.function} as a window function", window)
        arguments = self._columns(tree.arguments)
        types = [type_ for n in arguments for known, type_ in self.node.columns if known == n]
        type_ = self._layer.building.aggregate_type(tree.function, types)
        if type_ is None:
            raise refuse(f"{tree.function} of these types as a window function", window)
        return OverCall(tree.function, arguments, name, type_, 1, frame, rows)

    def _number(self, window: exp.Window, name: str, ordered: bool) -> OverCall:
        """What looks at the order alone."""
        function = window.this
        check_arguments(function, "this" if isinstance(function, exp.Ntile) else "")
        if not ordered:
            raise refuse("a row's number without ORDER BY", window)
        if window.args.get("spec") is not None:
            raise refuse("a row's number within a frame", window)
        known = NUMBERS[type(function)]
        type_ = pa.float64() if known in SHARES else pa.int32()
        number = _count_of(function.args.get("this"), window, least=1)
        return OverCall(known, (), name, type_, number)

    def _shift(
        self,
        window: exp.Window,
        function: exp.Expr,
        name: str,
        ordered: bool,
        ignore_nulls: bool,
    ) -> OverCall:
        check_arguments(function, "this offset default")
        if not ordered or window.args.get("spec") is not None:
            raise refuse("lag or lead without ORDER BY", window)
        number = _count_of(function.args.get("offset"), window)
        given = function.args.get("default")
        arguments = self._columns([function.this, *([] if given is None else [given])])
        types = dict(self.node.columns)
        type_ = types[arguments[0]]
        if any(types[argument] != type_ for argument in arguments):
            raise refuse("a default of another type", window)
        known = (SHIFTS[type(function)], arguments, name, type_)
        return OverCall(*known, number, ignore_nulls=ignore_nulls)


def _count_of(node: exp.Expr | None, window: exp.Window, least: int = 0) -> int:
    """A whole number that a function is given; 1 if it is given none."""
    place = 0 if node is None else ordinal(node)
    if place is None:
        raise refuse("a window function by an expression", window)
    if place + 1 < least:
        raise refuse("a window function by 0 or less", window)
    return place + 1


def _frame(
    spec: exp.WindowSpec | None, order: Sequence[pa.DataType], window: exp.Window
) -> tuple[Frame, tuple[int | None, int | None]]:
    if spec is None:
        return ("running" if order else "partition"), (None, 0)
    check_arguments(spec, "kind start start_side end end_side")
    kind = spec.args.get("kind")
    type_ = order[0] if kind == "RANGE" and len(order) == 1 else None
    start = _bound_of(spec.args.get("start"), spec.args.get("start_side"), type_, window)
    end = _bound_of(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), type_, window)
    no_start = start is None and spec.args.get("start_side") != "PRECEDING"
    no_end = end is None and spec.args.get("end_side") != "FOLLOWING"
    if no_start or no_end or (start is not None and end is not None and start > end):
        raise refuse("a frame that ends before it begins", window)
    if start is None and end is None:
        return "partition", (None, None)
    if kind == "RANGE" and start is None and end == 0 and order:
        return "running", (None, 0)
    by_values = kind == "RANGE" and type_ is not None and _has_offsets(type_)
    if order and (kind == "ROWS" or by_values):
        return ("range" if by_values else "rows"), (None if start is None else -start, end)
    raise refuse("this frame", window)


def _has_offsets(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_timestamp(type_))


def _bound_of(
    value: exp.Expr | str | None, side: str | None, type_: pa.DataType | None, window: exp.Window
) -> int | None:
    """How far a frame reaches, from the row on; None: without an end. `type_`: of an order by values."""
    if value == "UNBOUNDED":
        return None
    if value == "CURRENT ROW":
        return 0
    steps = None
    if isinstance(value, exp.Interval) and type_ is not None and pa.types.is_timestamp(type_):
        steps = _microseconds(value)
    elif isinstance(value, exp.Literal) and (type_ is None or pa.types.is_integer(type_)):
        place = ordinal(value)
        steps = None if place is None else place + 1
    if steps is None:
        raise refuse("this frame", window)
    return -steps if side == "PRECEDING" else steps


def _microseconds(node: exp.Interval) -> int | None:
    value, unit = node.this, node.args.get("unit")
    if not isinstance(value, exp.Literal) or not isinstance(unit, exp.Var):
        return None
    found = interval(value.name, unit.name)
    return None if found is None else found // timedelta(microseconds=1)


def _windows_in(part: exp.Expr) -> Iterable[exp.Window]:
    for node in part.walk(prune=lambda n: isinstance(n, exp.Query | exp.Window)):
        if isinstance(node, exp.Window):
            yield node
