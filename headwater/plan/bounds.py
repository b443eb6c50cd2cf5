"""Bounds on a table's time column that a query's WHERE states, for pruning before Spark runs.

Only conjuncts of the WHERE that stands in the same SELECT as the table count. Such a conjunct
rejects NULL, so pruning by it is right under any kind of join. What is not understood prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

Tick = Callable[[object], int]
OPERATORS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True)
class Bounds:
    """Closed bounds in ticks; None is open."""

    low: int | None = None
    high: int | None = None


def time_bounds(table: exp.Table, time_column: str, tick: Tick) -> Bounds:
    """What the query says of the time of the rows of one table reference."""
    select = table.find_ancestor(exp.Select)
    where = select.args.get("where") if select is not None else None
    if select is None or where is None or not _direct(table, select):
        return Bounds()
    only = sum(1 for _ in _sources(select)) == 1
    found: list[tuple[str, int]] = []
    for part in _conjuncts(where.this):
        found += _comparisons(part, table.alias_or_name, time_column, only, tick)
    lows = [value for op, value in found if op in ("=", ">", ">=")]
    highs = [value for op, value in found if op in ("=", "<", "<=")]
    return Bounds(max(lows, default=None), min(highs, default=None))


def _direct(table: exp.Table, select: exp.Select) -> bool:
    parent = table.parent
    return isinstance(parent, (exp.From, exp.Join)) and parent.parent is select


def _sources(select: exp.Select) -> Iterator[exp.Expression]:
    source = select.args.get("from_") or select.args.get("from")
    if source is not None:
        yield source.this
    for join in select.args.get("joins") or ():
        yield join.this
    yield from select.args.get("laterals") or ()


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _comparisons(
    node: exp.Expression, alias: str, column: str, only: bool, tick: Tick
) -> list[tuple[str, int]]:
    def is_time(part: exp.Expression) -> bool:
        if not isinstance(part, exp.Column) or part.name.casefold() != column.casefold():
            return False
        return part.table.casefold() == alias.casefold() if part.table else only

    if isinstance(node, exp.Between) and is_time(node.this) and not node.args.get("symmetric"):
        low, high = _tick(node.args["low"], tick), _tick(node.args["high"], tick)
        pairs = [(">=", low), ("<=", high)]
        return [(op, value) for op, value in pairs if value is not None]
    op = OPERATORS.get(type(node))
    if op is None:
        return []
    left, right = node.this, node.expression
    if is_time(right):
        left, right, op = right, left, MIRRORED[op]
    value = _tick(right, tick) if is_time(left) else None
    return [] if value is None else [(op, value)]


def _tick(node: exp.Expression, tick: Tick) -> int | None:
    """A constant as a tick; None if it is not plainly one."""
    negative = isinstance(node, exp.Neg)
    if negative:
        node = node.this
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not negative:
        if node.this.is_string and node.to.is_type(
            "timestamp", "timestampltz", "timestamptz", "date"
        ):
            return _safe(tick, node.this.name)
        return None
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return _safe(tick, -int(node.name) if negative else int(node.name))
    return None


def _safe(tick: Tick, value: object) -> int | None:
    from headwater.errors import Error

    try:
        return tick(value)
    except Error:
        return None
