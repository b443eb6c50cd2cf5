"""What the builders of one query share: names, tables, and how a query inside it is built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from headwater.expression.nodes import Bound, BoundColumn
from headwater.expression.terms import Terms
from headwater.plan.blocks import Tables
from headwater.plan.relational.names import KnownColumn, KnownRelation
from headwater.plan.relational.nodes import Node, SortColumn

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

    tables: Tables
    terms: Terms
    aggregate_type: AggregateType
    query: Callable[[exp.Expr, Known], Built]
    relation: Callable[[exp.Expr, Known], tuple[Node, KnownRelation]]
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, hint: str) -> str:
        """A name that no other column has."""
        return f"{next(self._numbers)}.{hint}"

    def fresh_for(self, bound: Bound, hint: str) -> str:
        """The same for what an expression gives: it is called as the column that it is, or by the hint."""
        own = bound.name.partition(".")[2] or bound.name if isinstance(bound, BoundColumn) else ""
        return self.fresh(own or hint)
