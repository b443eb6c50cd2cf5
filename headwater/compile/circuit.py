"""Relational nodes → a circuit of operators.

Owns: which operator computes a node, and the closures that it is given. A node that stands in a tree twice is
one operator. Must never: change what a node means; what has no operator or no closure refuses the whole tree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from headwater.errors import NotSupportedError
from headwater.expression.compile import compiled, compiled_filter, compiled_struct
from headwater.expression.nodes import Bound, BoundColumn
from headwater.expression.terms import Terms
from headwater.fold.share import Share
from headwater.operators.as_of_join import AsOfJoinRows
from headwater.operators.circuit import Circuit, CircuitNode, CircuitSource
from headwater.operators.distinct import DistinctRows
from headwater.operators.explode import ExplodeRows
from headwater.operators.filter import FilterRows
from headwater.operators.group import GroupRows
from headwater.operators.group_aggregates import GroupAggregate
from headwater.operators.grouped_rows import OrderColumn
from headwater.operators.join import join_rows
from headwater.operators.kept_rows import KeptRows
from headwater.operators.opaque import OpaqueColumns, OpaqueQuery
from headwater.operators.operator import Operator
from headwater.operators.over import WHOLE, OverRows, WindowFrame, WindowFunction
from headwater.operators.project import ProjectRows
from headwater.operators.session import SessionRows
from headwater.operators.set_operation import SetOperationRows
from headwater.operators.share import ShareRows
from headwater.operators.time_windows import TimeWindowRows
from headwater.operators.top import TopRows
from headwater.operators.union import UnionRows
from headwater.plan.relational.build import QueryBuilder
from headwater.plan.relational.building import Built, Schemas
from headwater.plan.relational.describe import described
from headwater.plan.relational.keys import key_of
from headwater.plan.relational.names import KnownColumn, NotKept
from headwater.plan.relational.nodes import (
    ROW,
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
    input_column,
    inputs_of,
    opaque_in,
    over_scans,
    over_tables,
    scans_of,
)
from headwater.plan.relational.opaque import Opaque
from headwater.plan.relational.prune import Pruner
from headwater.plan.relational.top import with_tops

OF_NESTED = ("collect_list", "first by order", "last by order", "max_by", "min_by")
# What is NULL where it does not fit is the other aggregate where it always does.
MAY_OVERFLOW: dict[str, Callable[[pa.DataType], bool]] = {
    "try_avg": pa.types.is_decimal,
    "try_sum": lambda type_: pa.types.is_decimal(type_) or type_ == pa.int64(),
}
Closure = Callable[[pa.Table], pa.Array | pa.ChunkedArray]


@dataclass(frozen=True)
class CircuitSpec:
    """A query as circuits are made of it."""

    root: Node
    shown: tuple[KnownColumn, ...]
    order: tuple[SortColumn, ...]

    @cached_property
    def scans(self) -> tuple[ScanNode, ...]:
        """The tables that it reads, each once: the circuit's sources."""
        found: dict[int, ScanNode] = {id(scan): scan for scan in scans_of(self.root)}
        return tuple(found.values())

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns shown."""
        return [column.type for column in self.shown]

    @cached_property
    def lines(self) -> list[str]:
        """The tree, for EXPLAIN."""
        return described(self.root)

    @cached_property
    def opaque(self) -> list[str]:
        """Why Spark evaluates parts of it."""
        return list(dict.fromkeys(node.reason for node in opaque_in(self.root)))

    @cached_property
    def form(self) -> str:
        """Equal forms have equal states."""
        words = [*self.lines, *(f"{name} {type_}" for name, type_ in self.root.columns)]
        words += [repr(one) for one in (self.shown, self.order)]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]

    @cached_property
    def limit(self) -> int | None:
        """How many rows the result has at most, where the query ends in ORDER BY … LIMIT."""
        node = self.root
        while isinstance(node, ProjectNode):
            node = node.below
        if not isinstance(node, TopNode) or node.partition or not self.order:
            return None
        return node.limit

    @cached_property
    def taking_back(self) -> CircuitSpec:
        """The same over tables of which rows are deleted and replaced; it holds more for that."""
        return replace(self, root=over_tables(self.root, True))

    @cached_property
    def at_once(self) -> CircuitSpec:
        """The same over tables whose rows come once, all of them: it holds the least."""
        return replace(self, root=over_tables(self.root, False))

    def circuit(self) -> Circuit:
        """A circuit that holds nothing."""
        return _Maker(self.scans).made(self.root)

    def kept(self) -> KeptRows:
        """A result that holds nothing."""
        order = [(one.name, one.descending, one.nulls_first) for one in self.order]
        return KeptRows(pa.schema(self.root.columns), self.root.changes, self.key or (), order)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """The columns by which a row of the result is found, where rows of it go."""
        found = key_of(self.root)
        if found is None or not self.root.changes:
            return None
        types = dict(self.root.columns)
        return None if any(pa.types.is_nested(types[name]) for name in found) else found


def make_circuit(
    tree: exp.Expr | None, tables: Schemas, terms: Terms, opaque: Opaque | None = None
) -> CircuitSpec | NotKept:
    """The circuit of a query, or why there is none; `opaque`: with nodes that are Spark's if need be."""
    if tree is None:
        return NotKept("the query is not understood")
    found = _made(tree, tables, terms)
    if opaque is None or not isinstance(found, NotKept):
        return found
    other = _made(tree, tables, terms, opaque)
    return found if isinstance(other, NotKept) or not _is_worth_it(other.root) else other


def _is_worth_it(root: Node) -> bool:
    """Whether a circuit with opaque nodes does less than Spark at each read would.

    It does if Spark evaluates changes alone, if operators give it less to read, or if they keep what stands
    above it.
    """
    opaque = opaque_in(root)
    if any(isinstance(node, OpaqueColumnsNode) or not over_scans(node) for node in opaque):
        return True
    node = root
    while isinstance(node, ProjectNode | FilterNode):
        node = node.below
    return node not in opaque


def _made(
    tree: exp.Expr, tables: Schemas, terms: Terms, opaque: Opaque | None = None
) -> CircuitSpec | NotKept:
    try:
        built: Built = QueryBuilder(tables, terms, group_type, opaque).whole(tree)
        needed = {column.name for column in built.shown} | {one.name for one in built.order}
        root = Pruner(with_tops(built.node), frozenset(needed)).root
        spec = CircuitSpec(root, built.shown, built.order)
        _check_order(root, built.order)
        spec.circuit()  # what has no operator is found now
        spec.kept()
    except NotKept as refused:
        return refused
    except NotSupportedError as refused:
        return NotKept(refused.message)
    except RecursionError:
        return NotKept("it is nested too deeply")
    return spec


def _check_order(node: Node, order: Sequence[SortColumn]) -> None:
    """NotKept if rows would be ordered by nested values."""
    types = dict(node.columns)
    if any(pa.types.is_nested(types[one.name]) for one in order):
        raise NotKept("an order of nested values")


class _Maker:
    """Makes the operators of one circuit."""

    def __init__(self, scans: Sequence[ScanNode]) -> None:
        self._made: dict[int, CircuitNode | CircuitSource] = {
            id(scan): CircuitSource(number, pa.schema(scan.columns), scan.changes)
            for number, scan in enumerate(scans)
        }

    def made(self, root: Node) -> Circuit:
        """The whole circuit."""
        return Circuit(self._of(root))

    def _of(self, node: Node) -> CircuitNode | CircuitSource:
        known = self._made.get(id(node))
        if known is None:
            inputs = tuple(self._of(below) for below in inputs_of(node))
            known = self._made[id(node)] = CircuitNode(_operator(node), inputs)
        return known


def _operator(node: Node) -> Operator:
    schema = pa.schema(node.columns)
    if isinstance(node, FilterNode):
        return FilterRows(schema, _condition(node.condition), node.changes)
    if isinstance(node, ProjectNode):
        columns = [_closure(bound) for _, bound in node.outputs]
        return ProjectRows(schema, columns, node.changes)
    if isinstance(node, JoinNode):
        return _join(node)
    if isinstance(node, AsOfNode):
        sides = pa.schema(node.left.columns), pa.schema(node.right.columns)
        keys, safe = (node.left_keys, node.right_keys), node.null_safe
        return AsOfJoinRows(node.outer, *sides, *keys, safe, node.times, node.comparison, node.ties)
    if isinstance(node, GroupNode):
        calls = [_aggregate(call) for call in node.calls]
        return GroupRows(pa.schema(node.below.columns), node.keys, calls, node.below.changes)
    if isinstance(node, DistinctNode):
        return DistinctRows(schema, node.changes)
    if isinstance(node, ShareNode):
        return ShareRows(schema, node.hashed, Share(node.place, node.parts), node.changes)
    if isinstance(node, UnionNode):
        return UnionRows(schema, [part.changes for part in node.parts])
    if isinstance(node, SetNode):
        return SetOperationRows(
            node.kind, node.all, schema, (node.left.changes, node.right.changes)
        )
    if isinstance(node, ExplodeNode):
        names = [name for name, _ in node.outputs]
        below = pa.schema(node.below.columns)
        return ExplodeRows(below, node.column, names, node.position, node.outer, node.changes)
    if isinstance(node, OpaqueColumnsNode):
        names = [ROW, *(input_column(number) for number in range(len(node.reads)))]
        below, added = pa.schema(node.below.columns), pa.schema(node.added)
        return OpaqueColumns(below, node.reads, names, added, node.text, node.changes)
    if isinstance(node, OpaqueQueryNode):
        inputs = [(pa.schema(part.columns), part.changes) for part in node.parts]
        return OpaqueQuery(inputs, node.names, schema, node.text)
    if isinstance(node, TimeWindowsNode):
        below, bounds = pa.schema(node.below.columns), (node.start, node.end)
        return TimeWindowRows(below, node.time, node.lengths, *bounds, node.changes)
    if isinstance(node, SessionNode):
        below, bounds = pa.schema(node.below.columns), (node.start, node.end)
        takes_back = node.below.changes
        return SessionRows(below, node.partition, node.time, node.gap, *bounds, takes_back)
    assert isinstance(node, TopNode | OverNode)
    _check_order(node.below, node.order)
    below = pa.schema(node.below.columns)
    order = [(one.name, one.descending, one.nulls_first) for one in node.order]
    takes_back = node.below.changes
    if isinstance(node, TopNode):
        limits = (node.limit, node.offset, node.ties, node.number)
        return TopRows(below, node.partition, order, *limits, takes_back)
    functions = [_window_function(call) for call in node.calls]
    return OverRows(below, node.partition, order, functions, takes_back)


def _aggregate(call: GroupCall) -> GroupAggregate:
    return GroupAggregate(
        call.function,
        call.arguments,
        call.name,
        call.type,
        distinct=call.distinct,
        order=tuple(OrderColumn(*astuple(one)) for one in call.order),
        delimiter=call.delimiter,
        percentages=call.percentages,
        descending=call.descending,
        accuracy=call.accuracy,
        error=call.error,
    )


def _window_function(call: OverCall) -> WindowFunction:
    frame = None if call.frame == "running" else WHOLE
    if call.frame in ("rows", "range"):
        before, after = call.rows
        frame = WindowFrame(call.frame, None if before is None else -before, after)
    known = (call.function, call.arguments, call.name, call.type)
    return WindowFunction(*known, frame, call.number, call.ignore_nulls)


def group_type(function: str, types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type of an aggregate as Spark has it; None if no operator computes it."""
    nested = [pa.types.is_nested(type_) for type_ in types]
    if any(nested[1:]) or (any(nested) and function not in OF_NESTED):
        return None
    if function in MAY_OVERFLOW and any(map(MAY_OVERFLOW[function], types)):
        return None
    schema = pa.schema([pa.field(str(number), type_) for number, type_ in enumerate(types)])
    wanted = GroupAggregate(function, tuple(schema.names), "value")
    try:
        return GroupRows(schema, (), [wanted], True).schema.field("value").type
    except NotSupportedError:
        return None


def _join(node: JoinNode) -> Operator:
    left, right = pa.schema(node.left.columns), pa.schema(node.right.columns)
    residual = None if node.residual is None else _condition(node.residual)
    takes_back = (node.left.changes, node.right.changes)
    keys = (node.left_keys, node.right_keys)
    return join_rows(node.kind, left, right, *keys, residual, node.null_safe, takes_back)


def _closure(bound: Bound) -> Closure:
    if isinstance(bound, BoundColumn):
        name = bound.name
        return lambda rows: rows.column(name)
    found = compiled_struct(bound) if pa.types.is_struct(bound.type) else compiled(bound)
    if found is None:
        raise NotKept(f"a value of type {bound.type}")
    return found.evaluate


def _condition(bound: Bound) -> Closure:
    found = compiled_filter(bound)
    if found is None:
        raise NotKept("a condition whose parts depend on each other")
    return found.evaluate
