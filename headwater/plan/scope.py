"""Which source of a block a column belongs to, and where every column of the query stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.plan.folds import Leaf, SourceColumn
from headwater.plan.pieces import Piece
from headwater.plan.shape import BlockSource, SelectBlock
from headwater.sql.text import Span


@dataclass(frozen=True)
class ColumnUse:
    """A column reference: where it stands and what is written."""

    span: Span
    table: str | None
    name: str
    plain: bool  # a or t.a; not a.b.c
    parts: tuple[tuple[str, Span], ...] = ()  # the names of the whole reference, where each stands

    @property
    def whole(self) -> Span:
        """The whole reference, with the fields that are read of the column."""
        return Span(self.parts[0][1].start, self.parts[-1][1].end) if self.parts else self.span

    @property
    def shown(self) -> str:
        """What Spark calls a column of a result that is the whole reference."""
        return self.parts[-1][0] if self.parts else self.name


@dataclass(frozen=True)
class SourceInfo:
    """A source of a block as far as it is known."""

    source: BlockSource
    alias: str
    schema: pa.Schema | None  # None: only Spark knows
    visible: tuple[str, ...]
    leaf: Leaf | None = None
    streaming: bool = False  # a window stands inside it
    rows: str | None = None  # the name of the rows that it stands for, where they are at hand
    on: tuple[Piece, ...] = ()  # of such rows: a condition that stands nowhere in FROM


class Scope:
    """The sources of one block."""

    def __init__(self, block: SelectBlock, sources: Sequence[SourceInfo]) -> None:
        self.block = block
        self.sources = tuple(sources)

    def resolve(self, use: ColumnUse) -> SourceColumn | None:
        """The column that a reference means; None if it is not one of this block's, or not surely."""
        if not use.plain:
            return None
        found: list[SourceColumn] = []
        for number, info in enumerate(self.sources):
            if found and use.table is None and info.source.join in ("semi", "anti"):
                continue  # its columns are seen in its ON alone
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

    def has_column(self, alias: str | None, name: str, with_fields: bool = False) -> bool:
        """Whether a source, the one of that alias or any, has a column; with fields, if asked for."""
        for info in self.sources:
            if alias is not None and info.alias.casefold() != alias.casefold():
                continue
            if info.schema is None and alias is not None:
                return True
            for field in info.schema or ():
                nested = not with_fields or pa.types.is_nested(field.type)
                if nested and field.name.casefold() == name.casefold():
                    return True
        return False

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
        names = [(part.name, Span(part.meta["start"], part.meta["end"] + 1)) for part in parts]
        fields = _fields(column)
        span = Span(names[0][1].start, names[-1][1].end)
        plain = len(parts) <= 2 and not fields
        use = ColumnUse(span, column.table or None, column.name, plain, (*names, *fields))
        found.append(use)
    return found


def _fields(column: exp.Column) -> list[tuple[str, Span]]:
    """What stands after a reference of four names: more fields."""
    found = []
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.parent.this is node:
        node = node.parent
        field = node.expression
        if not isinstance(field, exp.Identifier) or "start" not in field.meta:
            break
        found.append((field.name, Span(field.meta["start"], field.meta["end"] + 1)))
    return found


def narrowed(
    uses: Sequence[ColumnUse], blocks: Sequence[SelectBlock], scopes: Sequence[Scope]
) -> list[ColumnUse]:
    """The references, those to fields of a column (`p.x`, `t.p.x`) without the fields.

    As in Spark, a name before a point is first that of a table, then that of a column.
    """
    return [_narrowed(use, blocks, scopes) if len(use.parts) > 1 else use for use in uses]


def _narrowed(use: ColumnUse, blocks: Sequence[SelectBlock], scopes: Sequence[Scope]) -> ColumnUse:
    (first, place), (second, after) = use.parts[:2]
    around = [n for n, block in enumerate(blocks) if use.span.within(block.span)]
    for number in sorted(around, key=lambda n: len(blocks[n].span)):
        scope = scopes[number]
        if scope.has_column(first, second):
            span = Span(place.start, after.end)
            return ColumnUse(span, first, second, True, use.parts)
        if scope.has_column(None, first, with_fields=True):
            return ColumnUse(place, None, first, True, use.parts)
    return use


def inside(uses: Sequence[ColumnUse], span: Span) -> list[ColumnUse]:
    """The references that stand in a span."""
    return [use for use in uses if use.span.within(span)]


def innermost(blocks: Sequence[SelectBlock], span: Span) -> SelectBlock | None:
    """The block that a span stands in."""
    holding = [block for block in blocks if span.within(block.span)]
    return min(holding, key=lambda block: len(block.span), default=None)
