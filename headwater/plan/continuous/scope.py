"""Which source of a block a column belongs to, and where every column of the query stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.plan.continuous.folds import Leaf, SourceColumn
from headwater.plan.continuous.shape import Block, Source
from headwater.sql.text import Span


@dataclass(frozen=True)
class ColumnUse:
    """A column reference: where it stands and what is written."""

    span: Span
    table: str | None
    name: str
    plain: bool  # a or t.a; not a.b.c


@dataclass(frozen=True)
class SourceInfo:
    """A source of a block as far as it is known."""

    source: Source
    alias: str
    schema: pa.Schema | None  # None: only Spark knows
    visible: tuple[str, ...]
    leaf: Leaf | None = None
    streaming: bool = False  # a window stands inside it


class Scope:
    """The sources of one block."""

    def __init__(self, block: Block, sources: Sequence[SourceInfo]) -> None:
        self.block = block
        self.sources = tuple(sources)

    def resolve(self, use: ColumnUse) -> SourceColumn | None:
        """The column that a reference means; None if it is not one of this block's, or not surely."""
        if not use.plain:
            return None
        found = []
        for number, info in enumerate(self.sources):
            if use.table is not None and info.alias.casefold() != use.table.casefold():
                continue
            if info.schema is None:
                if use.table is not None:
                    return SourceColumn(number, use.name)
                return None
            for column in info.schema.names:
                if column.casefold() == use.name.casefold():
                    found.append(SourceColumn(number, column))
        return found[0] if len(found) == 1 else None

    def is_foreign(self, use: ColumnUse, items: set[str]) -> bool:
        """Whether a reference is surely to no source of this block and to none of its items."""
        known = {
            n.casefold() for info in self.sources for n in (info.schema or pa.schema([])).names
        }
        known |= {info.alias.casefold() for info in self.sources}
        if use.table is not None:  # a table, or a column with fields
            return use.table.casefold() not in known
        is_clear = all(info.schema is not None for info in self.sources)
        return is_clear and use.name.casefold() not in known | items

    def star(self, of: str | None) -> list[SourceColumn] | None:
        """The columns of `*` or `a.*`; None if only Spark knows them."""
        found: list[SourceColumn] = []
        for number, info in enumerate(self.sources):
            if of is not None and info.alias.casefold() != of.casefold():
                continue
            if info.source.join in ("semi", "anti"):
                continue
            if info.schema is None or info.source.using:
                return None
            found += [SourceColumn(number, name) for name in info.visible]
        return found or None


def column_uses(tree: exp.Expr) -> list[ColumnUse] | None:
    """Every column reference of a query, with its place; None if one has no place."""
    found = []
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if not parts or any("start" not in part.meta for part in parts):
            return None
        span = Span(parts[0].meta["start"], parts[-1].meta["end"] + 1)
        plain = len(parts) <= 2 and not isinstance(column.parent, exp.Dot)
        found.append(ColumnUse(span, column.table or None, column.name, plain))
    return found


def inside(uses: Sequence[ColumnUse], span: Span) -> list[ColumnUse]:
    """The references that stand in a span."""
    return [use for use in uses if span.start <= use.span.start and use.span.end <= span.end]


def innermost(blocks: Sequence[Block], span: Span) -> Block | None:
    """The block that a span stands in."""
    holding = [block for block in blocks if within(span, block.span)]
    return min(holding, key=lambda block: len(block.span), default=None)


def within(inner: Span, outer: Span) -> bool:
    """Whether a span lies in another."""
    return outer.start <= inner.start and inner.end <= outer.end
