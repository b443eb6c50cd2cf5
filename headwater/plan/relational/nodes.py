"""Relational nodes: what a circuit computes, each with its columns, and whether its rows only come.

Columns have names that are unique in the whole tree, so that no join has to rename. Expressions are bound
(`expression.nodes`). Two facts that operators need are on every node: `columns`, names and types in order,
and `changes`, whether rows that it gave may be taken back. Must never: know an operator, or hold text but of
what is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

import pyarrow as pa

from headwater.expression.nodes import Bound

Columns = tuple[tuple[str, pa.DataType], ...]
JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti"]
Frame = OneOf["partition", "running", "rows", "range"]  # the last by the order's values
Ties = OneOf["row_number", "rank", "dense_rank"]


@dataclass(frozen=True)
class SortColumn:
    """One column of an order."""

    name: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class ScanNode:
    """All rows of a table; a standard table's may change, those of a streaming table come."""

    table: str  # as the catalog compares names
    stored: tuple[str, ...]  # the table's own names of the columns
    columns: Columns
    changes: bool


class OfEachRow:
    """A node that makes something of each row below by itself, so it takes back what is taken back there."""

    below: Node

    @property
    def changes(self) -> bool:
        """As below."""
        return self.below.changes


class OfSameRows(OfEachRow):
    """One that gives some of the rows below, as they are."""

    @property
    def columns(self) -> Columns:
        """Those below."""
        return self.below.columns


@dataclass(frozen=True)
class FilterNode(OfSameRows):
    """The rows for which a condition is true."""

    below: Node
    condition: Bound


@dataclass(frozen=True)
class ProjectNode(OfEachRow):
    """Each row's expressions."""

    below: Node
    outputs: tuple[tuple[str, Bound], ...]

    @property
    def columns(self) -> Columns:
        """One for each expression."""
        return tuple((name, bound.type) for name, bound in self.outputs)


@dataclass(frozen=True)
class JoinNode:
    """Pairs of rows with equal keys for which the residual condition holds."""

    kind: JoinKind
    left: Node
    right: Node
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: Bound | None = None

    @property
    def columns(self) -> Columns:
        """The left ones, then the right ones; of a semi or anti join the left ones."""
        if self.kind in ("semi", "anti"):
            return self.left.columns
        return (*self.left.columns, *self.right.columns)

    @property
    def changes(self) -> bool:
        """A row without a partner may get one, and is taken back."""
        return self.kind not in ("inner", "semi") or self.left.changes or self.right.changes


@dataclass(frozen=True)
class AsOfNode:
    """Each left row with the right row of equal keys that is nearest by time, on one side of its own."""

    outer: bool  # a row without such a partner stands with NULLs
    left: Node
    right: Node
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    times: tuple[str, str]
    comparison: OneOf[">=", ">", "<=", "<"]  # of the left time with the right one
    ties: tuple[str, ...]  # right columns: the last in their order is taken of rows with one time

    @property
    def columns(self) -> Columns:
        """The left ones, then the right ones."""
        return (*self.left.columns, *self.right.columns)

    changes = True


@dataclass(frozen=True)
class GroupCall:
    """One aggregate of a grouping, over columns."""

    function: str
    arguments: tuple[str, ...]
    name: str
    type: pa.DataType
    distinct: bool = False
    order: tuple[SortColumn, ...] = ()  # of aggregates that go by an order
    delimiter: str = ""  # of listagg
    percentages: float | tuple[float, ...] = 0.5  # of percentiles; several give an array
    descending: bool = False  # of percentiles and mode
    accuracy: int = 10_000  # of approximate percentiles
    error: float = 0.05  # of approx_count_distinct


@dataclass(frozen=True)
class GroupNode:
    """One row per group; without keys one row, whatever comes."""

    below: Node
    keys: tuple[str, ...]
    calls: tuple[GroupCall, ...]

    @property
    def columns(self) -> Columns:
        """The keys, then the aggregates."""
        known = dict(self.below.columns)
        keys = ((name, known[name]) for name in self.keys)
        return (*keys, *((call.name, call.type) for call in self.calls))

    changes = True


@dataclass(frozen=True)
class DistinctNode(OfSameRows):
    """Each different row once."""

    below: Node


@dataclass(frozen=True)
class ShareNode(OfSameRows):
    """Of the rows those that fall to one part of a circuit, by a hash of some columns."""

    below: Node
    hashed: tuple[str, ...]
    place: int = 0  # which of the parts, from 0 on
    parts: int = 1


@dataclass(frozen=True)
class UnionNode:
    """The rows of several inputs, whose columns have the same names and types."""

    parts: tuple[Node, ...]

    @property
    def columns(self) -> Columns:
        """Those of each part."""
        return self.parts[0].columns

    @property
    def changes(self) -> bool:
        """If a part does."""
        return any(part.changes for part in self.parts)


@dataclass(frozen=True)
class SetNode:
    """INTERSECT and EXCEPT of two inputs, whose columns have the same names and types."""

    kind: OneOf["intersect", "except"]
    all: bool
    left: Node
    right: Node

    @property
    def columns(self) -> Columns:
        """Those of either side."""
        return self.left.columns

    @property
    def changes(self) -> bool:
        """What EXCEPT gave is taken back when the right side has it too."""
        return self.kind == "except" or self.left.changes or self.right.changes


@dataclass(frozen=True)
class TopNode:
    """The first rows of each partition in an order."""

    below: Node
    partition: tuple[str, ...]
    order: tuple[SortColumn, ...]
    limit: int | None
    offset: int = 0
    ties: Ties = "row_number"
    number: str | None = None  # a column for the number of the row

    @property
    def columns(self) -> Columns:
        """Those below, and the number."""
        numbered = () if self.number is None else ((self.number, pa.int32()),)
        return (*self.below.columns, *numbered)

    changes = True


@dataclass(frozen=True)
class OverCall:
    """One window function, over columns; `rows`: how far a frame reaches back and on, None without an end."""

    function: str
    arguments: tuple[str, ...]
    name: str
    type: pa.DataType
    number: int = 1  # of lag, lead, nth_value and ntile
    frame: Frame = "running"
    rows: tuple[int | None, int | None] = (None, 0)
    ignore_nulls: bool = False


@dataclass(frozen=True)
class OverNode:
    """Window functions beside the rows that they are computed of."""

    below: Node
    partition: tuple[str, ...]
    order: tuple[SortColumn, ...]
    calls: tuple[OverCall, ...]

    @property
    def columns(self) -> Columns:
        """Those below, then the functions."""
        return (*self.below.columns, *((call.name, call.type) for call in self.calls))

    changes = True


@dataclass(frozen=True)
class ExplodeNode(OfEachRow):
    """One row for each element of a list or map column, with the element in columns of its own."""

    below: Node
    column: str
    outputs: Columns  # the position if asked for; the element, or the key and the value
    position: bool
    outer: bool  # a row without elements stays

    @property
    def columns(self) -> Columns:
        """Those below, then those of the element."""
        return (*self.below.columns, *self.outputs)


@dataclass(frozen=True)
class TimeWindowsNode(OfEachRow):
    """Each row once for each window of time that it lies in, with the window's start and end."""

    below: Node
    time: str
    lengths: tuple[int, int, int]  # of a window, of the slide, and the offset: microseconds
    start: str
    end: str

    @property
    def columns(self) -> Columns:
        """Those below, then start and end."""
        return (*self.below.columns, *_bounds(self))


@dataclass(frozen=True)
class SessionNode:
    """Each row with the start and the end of its session: rows of a partition at most a gap apart."""

    below: Node
    partition: tuple[str, ...]
    time: str
    gap: int  # microseconds
    start: str
    end: str

    @property
    def columns(self) -> Columns:
        """Those below, then start and end."""
        return (*self.below.columns, *_bounds(self))

    changes = True


def _bounds(node: TimeWindowsNode | SessionNode) -> Columns:
    type_ = dict(node.below.columns)[node.time]
    return (node.start, type_), (node.end, type_)


@dataclass(frozen=True)
class OpaqueColumnsNode(OfEachRow):
    """Each row with expressions beside it that Spark evaluates, over rows that come or go alone."""

    below: Node
    reads: tuple[str, ...]  # columns below; a text calls the n-th of them `input_column(n)`
    texts: tuple[str, ...]
    written: tuple[str, ...]  # the same by the user's names
    added: Columns
    reason: str

    @property
    def columns(self) -> Columns:
        """Those below, then what the texts give."""
        return (*self.below.columns, *self.added)

    @property
    def text(self) -> str:
        """All of it as a query over rows that have numbers."""
        return opaque_columns(self.texts)


@dataclass(frozen=True)
class OpaqueQueryNode:
    """What Spark makes of all rows of some inputs; it is compared with what it made before."""

    parts: tuple[Node, ...]  # a text calls the n-th of them `input_rows(n)`
    names: tuple[tuple[str, ...], ...]  # and its columns like this
    text: str
    columns: Columns
    reason: str

    changes = True


ROW = "headwater_row"  # which row of the input a row of the output belongs to


def opaque_columns(texts: Sequence[str]) -> str:
    """Expressions over one input as a query."""
    items = [f"({text}\n) AS {input_column(number)}" for number, text in enumerate(texts)]
    return f"SELECT {', '.join([ROW, *items])} FROM {input_rows(0)}"


OpaqueNode = OpaqueColumnsNode | OpaqueQueryNode


def input_rows(number: int) -> str:
    """How the text of an opaque node calls an input."""
    return f"headwater_input_{number}"


def input_column(number: int) -> str:
    """How expressions of an opaque node call a column."""
    return f"headwater_column_{number}"


Node = (
    ScanNode
    | FilterNode
    | ProjectNode
    | JoinNode
    | AsOfNode
    | GroupNode
    | DistinctNode
    | ShareNode
    | UnionNode
    | SetNode
    | TopNode
    | OverNode
    | ExplodeNode
    | TimeWindowsNode
    | SessionNode
    | OpaqueColumnsNode
    | OpaqueQueryNode
)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node stands on."""
    if isinstance(node, ScanNode):
        return ()
    if isinstance(node, UnionNode | OpaqueQueryNode):
        return node.parts
    if isinstance(node, JoinNode | AsOfNode | SetNode):
        return node.left, node.right
    return (node.below,)


def scans_of(node: Node) -> list[ScanNode]:
    """The tables that a tree reads, once for each time."""
    if isinstance(node, ScanNode):
        return [node]
    return [scan for below in inputs_of(node) for scan in scans_of(below)]


def opaque_in(root: Node) -> list[OpaqueNode]:
    """The opaque nodes of a tree, each once."""
    found: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += inputs_of(node)
    return [n for n in found.values() if isinstance(n, OpaqueColumnsNode | OpaqueQueryNode)]


def over_scans(node: OpaqueQueryNode) -> bool:
    """Whether tables are all that it reads."""
    return all(is_linear(part) for part in node.parts)


def over_tables(root: Node, changes: bool) -> Node:
    """The same tree over tables whose rows may all be taken back, or never; one node stays one."""

    def change(node: Node) -> Node:
        return replace(node, changes=changes) if isinstance(node, ScanNode) else node

    return changed_tree(root, change)


def of_part(root: Node, place: int, parts: int) -> Node:
    """The same tree as one of several parts has it."""

    def change(node: Node) -> Node:
        return replace(node, place=place, parts=parts) if isinstance(node, ShareNode) else node

    return changed_tree(root, change)


def changed_tree(root: Node, change: Callable[[Node], Node]) -> Node:
    """A tree whose nodes are changed, from the tables on; one node stays one."""
    made: dict[int, Node] = {}

    def of(node: Node) -> Node:
        if id(node) not in made:
            made[id(node)] = change(over_inputs(node, of))
        return made[id(node)]

    return of(root)


def over_inputs(node: Node, of: Callable[[Node], Node]) -> Node:
    """The same node over other inputs."""
    if isinstance(node, ScanNode):
        return node
    if isinstance(node, UnionNode | OpaqueQueryNode):
        return replace(node, parts=tuple(map(of, node.parts)))
    if isinstance(node, JoinNode | AsOfNode | SetNode):
        return replace(node, left=of(node.left), right=of(node.right))
    return replace(node, below=of(node.below))


def is_linear(node: Node) -> bool:
    """Whether each row comes from one row of one table, by filters and projections alone."""
    while isinstance(node, FilterNode | ProjectNode | OpaqueColumnsNode):
        node = node.below
    return isinstance(node, ScanNode)
