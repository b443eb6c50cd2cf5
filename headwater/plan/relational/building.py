"""What the builders of one query share: names, tables, and how a query inside it is built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.expression.nodes import Bound, BoundColumn
from headwater.expression.terms import Terms
from headwater.plan.folds import StreamColumns
from headwater.plan.relational.names import KnownColumn, KnownRelation
from headwater.plan.relational.nodes import Node, SortColumn
from headwater.plan.relational.opaque import Opaque


class Schemas(Protocol):
    """The tables that a query may read: what the planner knows of the catalog, in part."""

    def stream(self, name: str) -> StreamColumns | None:
        """A streaming table, or what is read like one."""

    def standard(self, name: str) -> pa.Schema | None:
        """The columns of a standard table, or of a view that is read like one."""


AggregateType = Callable[[str, Sequence[pa.DataType]], pa.DataType | None]


@dataclass(frozen=True)
class Built:
    """A query as a node: which of its columns are shown, and the order in which they are read."""

    node: Node
    shown: tuple[KnownColumn, ...]
    order: tuple[SortColumn, ...] = ()
    natural: bool = False  # nobody asked for the order: it is that in which rows came

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns shown."""
        return [column.type for column in self.shown]


Known = Mapping[str, Built]  # the queries of WITH, by name


@dataclass
class Building:
    """One query that is being built."""

    tables: Schemas
    terms: Terms
    aggregate_type: AggregateType
    query: Callable[[exp.Expr, Known], Built]
    relation: Callable[[exp.Expr, Known], tuple[Node, KnownRelation]]
    opaque: Opaque | None = None  # where parts may be left to Spark
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, hint: str) -> str:
        """A name that no other column has."""
        return f"{next(self._numbers)}.{hint}"

    def fresh_for(self, bound: Bound, hint: str) -> str:
        """The same for what an expression gives: it is called as the column that it is, or by the hint."""
        own = bound.name.partition(".")[2] or bound.name if isinstance(bound, BoundColumn) else ""
        return self.fresh(own or hint)
