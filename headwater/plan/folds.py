"""What the planner finds: leaves, folds and the upper part of one continuous query.

Only frozen records of pieces and texts with slots (`pieces`, `text`): the user's own characters for Spark,
and the trees that operators are compiled from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from headwater.plan.pieces import Piece, column
from headwater.plan.shape import Limit, OrderItem, SelectBlock
from headwater.plan.text import NO_TEXT, RowsSlot, SparkText
from headwater.sql.extensions import Cut, WindowClause
from headwater.sql.text import Name

PANE = "headwater_pane"
EXPIRY = "headwater_expiry"
BEGIN = "headwater_begin"
NEWEST = "headwater_newest"

FoldKind = OneOf["aggregate", "rows", "ring", "join"]
Life = OneOf["query", "chunk", "scan"]


def stream_view(number: int) -> str:
    """The name under which Spark reads the new rows of a leaf."""
    return RowsSlot("stream", number).name


def window_view(number: int) -> str:
    """The name under which Spark reads all rows of a leaf's window."""
    return RowsSlot("window", number).name


def static_view(name: str) -> str:
    """The name under which Spark reads a table below a view's folds, as of its creation."""
    return RowsSlot("static", name).name


def previous_column(column: str, steps: int) -> str:
    """The column that holds PREV(column, steps)."""
    return f"_prev{steps}_{column}"


def call_column(number: int) -> str:
    """The column that holds the values of a call with state."""
    return f"headwater_call_{number}"


@dataclass(frozen=True)
class StreamColumns:
    """What the planner must know of a streaming table, a stream or a materialized view."""

    name: str
    schema: pa.Schema  # all stored columns
    visible: tuple[str, ...]
    time: str
    time_type: pa.DataType
    kind: str = "streaming table"  # or "stream", "materialized view"
    range_ticks: int | None = None  # RANGE hides older rows, whatever the window
    update_key: tuple[str, ...] | None = None
    keeps_all: bool = True  # every row that came is there to be read again

    @property
    def ranged(self) -> bool:
        """Whether RANGE hides old rows."""
        return self.range_ticks is not None


@dataclass(frozen=True)
class StateCall:
    """A call of a function with state over the rows of one leaf; its values are a column of them."""

    name: str  # in lower case
    life: Life
    arguments: tuple[Piece, ...]  # over the leaf's columns
    column: str
    type: pa.DataType


@dataclass(frozen=True)
class Leaf:
    """One windowed table of a query."""

    number: int
    name: Name
    alias: str
    window: WindowClause
    columns: StreamColumns
    needed: tuple[str, ...] = ()  # the columns that the query names
    hidden: tuple[str, ...] = ()  # those of them that are not declared, and that a text of it reads
    previous: tuple[tuple[str, int], ...] = ()  # (x, n) of PREV(x, n): column _prevn_x
    cut: Cut | None = None  # the window is the kept chunks of a cut
    newest: bool = False  # PAIR NEWEST: rows carry whether they are of the newest chunk
    calls: tuple[StateCall, ...] = ()

    @property
    def added(self) -> list[pa.Field[pa.DataType]]:
        """The columns that PREV and functions with state add to the rows."""
        stored = self.columns.schema
        earlier = [pa.field(previous_column(c, n), stored.field(c).type) for c, n in self.previous]
        return [*earlier, *(pa.field(call.column, call.type) for call in self.calls)]

    @property
    def beside(self) -> list[str]:
        """The columns that texts over all rows see beside the declared ones."""
        newest = [NEWEST] if self.newest else []
        return [*self.hidden, *(field.name for field in self.added), *newest]

    @property
    def exposed(self) -> list[str]:
        """All columns that texts over all rows see; nothing else may reach Spark under the table's name."""
        declared = set(self.columns.visible)
        return [*(name for name in self.needed if name in declared), *self.beside]

    @property
    def key_names(self) -> frozenset[str]:
        """The keys of a window per key, for comparison."""
        return frozenset(key.casefold() for key in self.window.keys)

    @property
    def grows(self) -> bool:
        """Whether rows only come to it, and nothing bounds them; from any other window they also leave."""
        return self.window.kind == "landmark"

    @property
    def windowed(self) -> bool:
        """Whether the window was written; a view reads all rows of its streams."""
        return len(self.window.span) > 0

    @property
    def in_ring(self) -> bool:
        """Whether the window is the last rows, of all or per key."""
        return self.window.kind == "rows"


@dataclass(frozen=True)
class StaticSource:
    """A relation without a stream that a block joins: a table, or a query over tables."""

    alias: str
    text: SparkText  # `t`, or a query in parentheses
    join: str
    condition: tuple[Piece, ...]  # the conjuncts of ON
    using: tuple[str, ...]
    schema: pa.Schema | None  # None: only Spark knows
    asked: Piece | None = (
        None  # the condition that the join is: Spark is asked it, operators join rows
    )


@dataclass(frozen=True)
class Output:
    """One column of a block's result: a piece over the fold's columns, and its name if it has one."""

    piece: Piece
    name: str | None


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a fold; the argument is a piece over the sources, None for count(*)."""

    function: str
    argument: Piece | None


@dataclass(frozen=True)
class SourceColumn:
    """A column of one of a block's sources."""

    source: int
    name: str


@dataclass(frozen=True)
class Finish:
    """What is left of a block above its fold, over the columns k0, k1, …, a0, a1, … or c0, c1, …"""

    outputs: tuple[Output, ...]
    condition: Piece | None  # HAVING, or conjuncts that could not go below
    order: tuple[tuple[Piece, OrderItem], ...]
    limit: Limit | None
    distinct: bool


@dataclass(frozen=True)
class FoldPlan:
    """One block, split: the stream pipeline below, the merge, and what finishes it above."""

    number: int
    kind: FoldKind
    block: SelectBlock
    leaves: tuple[Leaf, ...]
    leaf_sources: tuple[int, ...]  # which of the block's sources they are
    statics: tuple[tuple[int, StaticSource], ...]
    transformation: str  # DC4's word for it
    from_text: SparkText = NO_TEXT
    where: tuple[Piece, ...] = ()  # conjuncts of the stream pipeline
    join_on: tuple[Piece, ...] = ()  # conjuncts of the ON of its streams
    keys: tuple[Piece, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    columns: tuple[SourceColumn, ...] = ()  # kept ones, where rows are kept
    finish: Finish | None = None  # None: the upper text holds the whole block
    in_order: bool = False  # rows come by (T, _seq), the newest first
    outside: tuple[Piece, ...] = ()  # of a correlated subquery: what its keys are compared with
    fresh: bool = False  # of a ring: only rows whose T is the instant are asked for

    @property
    def key_places(self) -> tuple[int, ...] | None:
        """Where the keys stand in its result, if every one is shown and a group is a row of its own."""
        finish = self.finish
        if self.kind != "aggregate" or finish is None or finish.limit is not None or not self.keys:
            return None
        return self._shown_keys(finish)

    def _shown_keys(self, finish: Finish) -> tuple[int, ...] | None:
        shown = {output.piece: place for place, output in enumerate(finish.outputs)}
        places = [shown.get(column(f"_k{number}")) for number in range(len(self.keys))]
        return None if None in places else tuple(place for place in places if place is not None)

    @property
    def unique(self) -> frozenset[frozenset[int]]:
        """Columns of the result, by place, that no two rows share; an empty set: there is one row at most."""
        finish = self.finish
        if finish is None:
            return frozenset()
        found: set[frozenset[int]] = set()
        limit = None if finish.limit is None else finish.limit.count
        if (limit is not None and limit <= 1) or (self.aggregates and not self.keys):
            found.add(frozenset())
        if finish.distinct:
            found.add(frozenset(range(len(finish.outputs))))
        keys = self._shown_keys(finish)
        if keys:
            found.add(frozenset(keys))
        return frozenset(found)

    @property
    def has_one_row(self) -> bool:
        """Whether its result is a value: one row at most, of one column."""
        return (
            frozenset() in self.unique and self.finish is not None and len(self.finish.outputs) == 1
        )


@dataclass(frozen=True)
class ContinuousPlan:
    """A continuous query as the engine runs it."""

    leaves: tuple[Leaf, ...]
    whole: SparkText  # the query over its windows' rows, for Spark
    pinned: SparkText  # as `whole`, for a view: the tables below its folds under their static names
    reads_instant: bool
    identifiers: frozenset[str]  # names that may mean standard tables; those of views are marked
    folds: tuple[FoldPlan, ...] = ()  # none: the query is re-evaluated over its windows
    split: tuple[FoldPlan, ...] = ()  # the fold of each block; equal ones have one number
    reason: str | None = None  # why there is no fold
    rule: str | None = None  # which rule for views that breaks
    upper: SparkText | None = None  # the query over its folds' results, for Spark
    upper_tree: exp.Expr | None = field(default=None, compare=False)  # the same, for operators
    whole_fold: FoldPlan | None = None  # the one block of the query, over rows at hand
    single: bool = False  # the whole query is one fold: its finish gives the result
    stream_tables: tuple[str, ...] = ()  # standard tables below the folds
    below: tuple[Name, ...] = ()  # where the query names those tables
    orders: bool = False  # ORDER BY or SORT BY stands somewhere
    in_order: bool = True  # `whole` needs the rows of its window by (T, _seq), the newest first
