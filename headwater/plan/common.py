"""Equal blocks of one query are one fold: what a fold keeps, without what its block makes of it.

Two blocks share a fold where they read the same windows and tables in the same way, keep the same rows, and
group them by the same keys into the same aggregates. Their select lists, HAVING, ORDER BY and LIMIT may
differ: each block finishes the fold for itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sqlglot import exp

from headwater.plan.blocks import Bound
from headwater.plan.folds import FoldPlan, Leaf, StaticSource
from headwater.plan.forms import form
from headwater.plan.pieces import Piece
from headwater.plan.shape import BlockSource


def fold_form(bound: Bound, fold: FoldPlan) -> Hashable:
    """What makes two folds the same."""
    leaves = tuple(_leaf(leaf) for leaf in fold.leaves)
    if fold.kind == "ring":  # its rows as they are; the block stays above
        exposed = tuple(tuple(leaf.exposed) for leaf in fold.leaves)
        return (fold.kind, leaves, exposed, fold.fresh)
    names = _Names(fold)
    sources = tuple(_source(bound, source, names) for source in fold.block.sources)
    statics = tuple((place, _static(static, names)) for place, static in fold.statics)
    aggregates = tuple(
        (call.function, None if call.argument is None else names.form(call.argument))
        for call in fold.aggregates
    )
    kept = tuple((one.source, one.name) for one in fold.columns)
    below = (names.forms(fold.where), names.forms(fold.join_on), names.forms(fold.keys))
    read = (fold.kind, leaves, fold.leaf_sources, sources, statics, fold.in_order)
    return (*read, *below, aggregates, kept)


def _leaf(leaf: Leaf) -> Hashable:
    window, cut = leaf.window, leaf.cut
    keys = tuple(key.casefold() for key in window.keys)
    column = None if cut is None or cut.column is None else cut.column.casefold()
    chunks = None if cut is None else (cut.kind, column, cut.duration, cut.rows, cut.step, cut.keep)
    seen = (window.kind, window.duration, window.before, window.rows, keys)
    calls = tuple(call.column for call in leaf.calls)  # a call is that of its own place
    return (leaf.name.key, seen, chunks, leaf.newest, leaf.previous, calls)


def _source(bound: Bound, source: BlockSource, names: _Names) -> Hashable:
    """A relation of FROM and how it is joined."""
    if source.relation is not None:
        relation: Hashable = source.relation.name.key
    else:
        assert source.subquery is not None
        relation = form(bound.rendering.node(source.subquery), lambda _: None)
    on = tuple(names.form(bound.rendering.piece(span)) for span in source.on)
    return (source.join, relation, on, tuple(name.casefold() for name in source.using))


def _static(static: StaticSource, names: _Names) -> Hashable:
    """A table that is joined; where it stands in FROM, that tells which."""
    asked = None if static.asked is None else str(static.text).strip("`").casefold()
    return (static.join, asked, names.forms(static.condition))


class _Names:
    """The columns that names mean in the pieces of one fold."""

    def __init__(self, fold: FoldPlan) -> None:
        self._sources: list[tuple[int, str, frozenset[str] | None, bool]] = []
        for place, leaf in zip(fold.leaf_sources, fold.leaves, strict=True):
            added = [field.name for field in leaf.added]
            self._add(place, leaf.alias, [*leaf.columns.schema.names, *added], False)
        for place, static in fold.statics:
            names = None if static.schema is None else static.schema.names
            self._add(place, static.alias, names, static.join in ("semi", "anti"))

    def _add(self, place: int, alias: str, columns: Iterable[str] | None, behind: bool) -> None:
        known = None if columns is None else frozenset(name.casefold() for name in columns)
        self._sources.append((place, alias.casefold(), known, behind))

    def forms(self, pieces: Iterable[Piece]) -> Hashable:
        """The forms of pieces, in their order."""
        return tuple(self.form(piece) for piece in pieces)

    def form(self, piece: Piece) -> Hashable:
        """The form of a piece; its text, if only Spark can compute it."""
        return piece.text if piece.node is None else form(piece.node, self._column)

    def _column(self, column: exp.Column) -> Hashable | None:
        table, name = column.table.casefold(), column.name.casefold()
        if column.args.get("db"):
            return None
        if table:
            found = [place for place, alias, _, _ in self._sources if alias == table]
        else:
            seen = [source for source in self._sources if not source[3]]
            if any(columns is None for _, _, columns, _ in seen):
                return None
            found = [place for place, _, columns, _ in seen if columns and name in columns]
        return (found[0], name) if len(found) == 1 else None
