"""A tree in lines, as EXPLAIN shows it and tests compare it: one line a node, what it stands on below it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expression.nodes import Bound, BoundColumn, BoundConstant
from headwater.plan.relational.nodes import (
    AsOfNode,
    DistinctNode,
    ExplodeNode,
    FilterNode,
    GroupCall,
    GroupNode,
    JoinNode,
    Node,
    OpaqueColumnsNode,
    OpaqueQueryNode,
    OverCall,
    OverNode,
    ProjectNode,
    ScanNode,
    SessionNode,
    SetNode,
    ShareNode,
    SortColumn,
    TimeWindowsNode,
    TopNode,
    UnionNode,
    inputs_of,
)
from headwater.sql.duration import MICROSECONDS

USUAL_ERROR = 0.05  # of approx_count_distinct
INFIX = frozenset(
    ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "div", "||")
)


def described(node: Node) -> list[str]:
    """The lines of a tree; a node that stands in it twice is shown once and named after that."""
    lines: list[str] = []
    _describe(node, 0, {}, lines)
    return lines


def _describe(node: Node, depth: int, known: dict[int, int], lines: list[str]) -> None:
    while isinstance(node, ProjectNode) and _only_renames(node):
        node = node.below
    if id(node) in known:
        lines.append(f"{'  ' * depth}as in line {known[id(node)]}")
        return
    lines.append(f"{'  ' * depth}{line_of(node)}")
    if not isinstance(node, ScanNode):
        known[id(node)] = len(lines)
    for below in inputs_of(node):
        _describe(below, depth + 1, known, lines)


def _only_renames(node: ProjectNode) -> bool:
    return all(isinstance(bound, BoundColumn) for _, bound in node.outputs)


def line_of(node: Node) -> str:
    """One node in words."""
    if isinstance(node, ScanNode):
        return f"{node.table}: {', '.join(node.stored)}"
    if isinstance(node, FilterNode):
        return f"filter {text_of(node.condition)}"
    if isinstance(node, ProjectNode):
        shown = [text_of(b) for _, b in node.outputs if not isinstance(b, BoundColumn)]
        return f"compute {', '.join(shown)}"
    if isinstance(node, JoinNode):
        return _join(node)
    if isinstance(node, AsOfNode):
        return _as_of(node)
    if isinstance(node, GroupNode):
        calls = [_call(call) for call in node.calls]
        return f"group by {names_of(node.keys) or 'nothing'}: {', '.join(calls) or 'no aggregate'}"
    if isinstance(node, UnionNode):
        return "union all"
    if isinstance(node, SetNode):
        return f"{node.kind}{' all' if node.all else ''}"
    if isinstance(node, DistinctNode):
        return "distinct"
    if isinstance(node, ShareNode):
        return f"part {node.place + 1} of {node.parts} by hash of {names_of(node.hashed)}"
    if isinstance(node, TopNode):
        return _top(node)
    if isinstance(node, ExplodeNode):
        word = "posexplode" if node.position else "explode"
        return f"{word}{' outer' if node.outer else ''} {_short(node.column)}"
    if isinstance(node, TimeWindowsNode):
        return _time_windows(node)
    if isinstance(node, SessionNode):
        of = names_of(node.partition) or "all rows"
        return f"sessions of {of} by {_short(node.time)}, {_length(node.gap)} apart"
    if isinstance(node, OpaqueColumnsNode):
        texts = ", ".join(map(_one_line, node.written))
        return f"opaque, by Spark for each change: {texts} ({node.reason})"
    if isinstance(node, OpaqueQueryNode):
        return f"opaque, by Spark over all rows: {_one_line(node.text)} ({node.reason})"
    return f"{', '.join(_over(call, node) for call in node.calls)} over {_partition(node)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _over(call: OverCall, node: OverNode) -> str:
    """A window function, with its frame where that is not the usual one."""
    text = f"{call.function}({names_of(call.arguments)})"
    if call.frame == "partition" and node.order:
        return f"{text} of all"
    if call.frame not in ("rows", "range"):
        return text
    times = call.frame == "range" and pa.types.is_timestamp(dict(node.columns)[node.order[0].name])
    before, after = ("all" if n is None else _length(n) if times and n else n for n in call.rows)
    return f"{text} of {call.frame} {before} before to {after} after"


def _call(call: GroupCall) -> str:
    error = f", {call.error}" if call.error != USUAL_ERROR else ""
    order = f" ordered by {', '.join(map(_sort, call.order))}" if call.order else ""
    distinct = "distinct " if call.distinct else ""
    return f"{call.function}({distinct}{names_of(call.arguments)}{order}{error})"


def _as_of(node: AsOfNode) -> str:
    own, other = map(_short, node.times)
    on = [*_equal_keys(node), f"{own} {node.comparison} {other}"]
    ties = f", the last by {names_of(node.ties)}" if node.ties else ""
    return f"{'left ' if node.outer else ''}as-of join on {' and '.join(on)}{ties}"


def _equal_keys(node: JoinNode | AsOfNode) -> list[str]:
    pairs = zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    return [f"{_short(a)} {'<=>' if safe else '='} {_short(b)}" for a, b, safe in pairs]


def _join(node: JoinNode) -> str:
    on = _equal_keys(node)
    on += [] if node.residual is None else [text_of(node.residual)]
    return f"{node.kind} join on {' and '.join(on) or 'nothing'}"


def _top(node: TopNode) -> str:
    ties = "" if node.ties == "row_number" else f" by {node.ties}"
    offset = f" after {node.offset}" if node.offset else ""
    return (
        f"first {'all' if node.limit is None else node.limit}{offset}{ties} of {_partition(node)}"
    )


def _time_windows(node: TimeWindowsNode) -> str:
    length, slide, offset = node.lengths
    every = f", each {_length(slide)}" if slide != length else ""
    after = f", from {_length(offset)} on" if offset else ""
    return f"windows of {_length(length)}{every}{after} by {_short(node.time)}"


def _length(microseconds: int) -> str:
    sizes = [(size, unit) for unit, size in MICROSECONDS.items() if microseconds % size == 0]
    size, unit = max(sizes)
    count = microseconds // size
    return f"{count} {unit.lower()}{'' if count == 1 else 's'}"


def _partition(node: TopNode | OverNode) -> str:
    order = f" ordered by {', '.join(map(_sort, node.order))}" if node.order else ""
    return f"{names_of(node.partition) or 'all rows'}{order}"


def _sort(sort: SortColumn) -> str:
    nulls = "" if sort.nulls_first != sort.descending else " nulls other side"
    return f"{_short(sort.name)}{' desc' if sort.descending else ''}{nulls}"


def text_of(bound: Bound) -> str:
    """An expression in words."""
    if isinstance(bound, BoundColumn):
        return _short(bound.name)
    if isinstance(bound, BoundConstant):
        return "NULL" if bound.value is None else repr(bound.value)
    if bound.function == "widen":
        return text_of(bound.arguments[0])
    parts = [text_of(argument) for argument in bound.arguments]
    if bound.function in INFIX and len(parts) == 2:
        return f"({parts[0]} {bound.function} {parts[1]})"
    parts += [repr(parameter) for parameter in bound.parameters]
    return f"{bound.function}({', '.join(parts)})"


def names_of(names: Sequence[str]) -> str:
    """Columns in words, without the numbers that make them unique."""
    return ", ".join(map(_short, names))


def _short(name: str) -> str:
    """A column's name without the number that makes it unique."""
    return name.partition(".")[2] or name
