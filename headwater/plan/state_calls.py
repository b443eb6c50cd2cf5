"""Calls of functions with state (EQ8): which leaf's rows each is made for, and what stands for it.

A call belongs to the one windowed or cut table whose columns its arguments read, and becomes a column of
that table's rows. Equal calls over one leaf are one call. Must never: look at rows, or at the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.errors import BindError
from headwater.plan.blocks import AddedUse, StateFunction, Tables
from headwater.plan.calls import SqlCall
from headwater.plan.folds import Leaf, StateCall, call_column
from headwater.plan.pieces import Piece, Rendering, Stand, column
from headwater.plan.scope import ColumnUse, Scope, innermost, inside
from headwater.plan.shape import SelectBlock
from headwater.plan.text import spark_text
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted


@dataclass(frozen=True)
class StateCalls:
    """All calls with state of one query."""

    uses: tuple[AddedUse, ...] = ()
    leaves: Mapping[int, Sequence[StateCall]] = field(default_factory=dict)

    @property
    def edits(self) -> list[Stand]:
        """The column of each call in its place."""
        return [Stand.of(use.span, use.piece) for use in self.uses]

    def named_edits(self, query: Query, blocks: Iterable[SelectBlock]) -> list[Stand]:
        """The same where items of a select list keep the name that they would have."""
        named = {s.span: s for block in blocks for s in call_names(query, block, self.uses)}
        return [named.get(stand.span, stand) for stand in self.edits]

    def bound(self, leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
        """The leaves with their calls."""
        return tuple(
            replace(leaf, calls=tuple(self.leaves.get(leaf.number, ()))) for leaf in leaves
        )


def find_state_calls(
    query: Query,
    calls: Sequence[SqlCall],
    statement: str,
    tables: Tables,
    blocks: Sequence[SelectBlock],
    scopes: Sequence[Scope],
    uses: Sequence[ColumnUse] | None,
    in_view: bool = False,
) -> StateCalls:
    """The calls with state in a query; BindError if one cannot be made for the rows of one table."""
    binder = _Binder(query, statement, blocks, scopes, uses)
    found = []
    for call in calls:
        function = tables.state_function(call.name.lower())
        if function is not None and in_view:
            raise binder.error(
                call,
                f"{call.name.lower()} keeps state and cannot be used in a view",
                "CREATE MATERIALIZED VIEW m AS SELECT … FROM s CUT … keeps what it gives",
            )
        if function is not None:
            found.append((call, function))
    spans = [call.span for call, _ in found]
    made = [binder.use(call, function, spans) for call, function in found]
    return StateCalls(tuple(made), binder.calls)


def call_names(query: Query, block: SelectBlock, uses: Iterable[AddedUse]) -> list[Stand]:
    """A call that is a whole item without a name: its column is called as it is written."""
    items = {item.expression for item in block.items if item.name is None}
    return [
        Stand(use.span, spark_text(use.piece.text, f" AS {quoted(use.span.of(query.text))}"))
        for use in uses
        if use.named and use.span in items
    ]


class _Binder:
    """Finds the leaf of each call, and gives equal calls one column."""

    def __init__(
        self,
        query: Query,
        statement: str,
        blocks: Sequence[SelectBlock],
        scopes: Sequence[Scope],
        uses: Sequence[ColumnUse] | None,
    ) -> None:
        self._query, self._statement, self._uses = query, statement, uses
        self._blocks, self._scopes = blocks, scopes
        self.calls: dict[int, list[StateCall]] = {}

    def use(self, call: SqlCall, function: StateFunction, others: Sequence[Span]) -> AddedUse:
        """What stands for one call."""
        self._check(call, others)
        leaf, columns = self._leaf(call)
        rendering = Rendering(self._query.text, self._query.tree, columns)
        arguments = tuple(rendering.piece(span) for span in call.arguments)
        made = self._made(leaf, call.name.lower(), arguments, function)
        return AddedUse(
            call.span, lambda named: named(made.column), leaf, (made.column,), named=True
        )

    def _check(self, call: SqlCall, others: Sequence[Span]) -> None:
        plain = not (call.distinct or call.star or call.filter or call.windowed or call.within)
        if not plain or call.ignore_nulls:
            raise self.error(call, f"{call.name.lower()} takes plain arguments", None)
        query = self._query
        inner = [*others, *(call.span for call in query.previous)]
        inner += [*(call.span for call in query.valid), *(call.span for call in query.instants)]
        if any(span.within(call.span) and span != call.span for span in inner) or any(
            call.span.within(previous.span) for previous in query.previous
        ):
            raise self.error(
                call,
                f"{call.name.lower()} keeps state and cannot be mixed with PREV, VALID,"
                " CURRENT_INSTANT or another function with state",
                "one function can do the work of both",
            )

    def _leaf(self, call: SqlCall) -> tuple[Leaf, list[Stand]]:
        """The table that a call is made for, and its columns in the arguments by their bare names."""
        block = innermost(self._blocks, call.span)
        scope = None if block is None else self._scopes[self._blocks.index(block)]
        if scope is not None and self._uses is not None:
            within_call = inside(self._uses, call.span)
            resolved = [(use, scope.resolve(use)) for use in within_call]
            owners = {one.source for _, one in resolved if one is not None}
            if not within_call:
                owners = {n for n, info in enumerate(scope.sources) if info.leaf is not None}
            leaf = scope.sources[owners.pop()].leaf if len(owners) == 1 else None
            if leaf is not None and all(one is not None for _, one in resolved):
                own = [(use.span, one.name) for use, one in resolved if one is not None]
                return leaf, [Stand.of(span, column(name)) for span, name in own]
        raise self.error(
            call,
            f"{call.name.lower()} keeps state: it reads columns of one windowed or cut streaming"
            " table of its SELECT",
            "state needs an order of the rows: FROM t [INTERVAL '1' MINUTE], t [ROWS 100] or t CUT …",
        )

    def _made(
        self, leaf: Leaf, name: str, arguments: tuple[Piece, ...], function: StateFunction
    ) -> StateCall:
        known = self.calls.setdefault(leaf.number, [])
        for call in known:
            if call.name == name and _same(call.arguments, arguments):
                return call
        place = call_column(sum(len(calls) for calls in self.calls.values()))
        known.append(StateCall(name, function.life, arguments, place, function.type))
        return known[-1]

    def error(self, call: SqlCall, message: str, hint: str | None) -> BindError:
        """The error about a call, at its place."""
        place = call.span.shifted(self._query.offset).place(self._statement)
        return BindError(f"function {message}", sqlstate="42P20", hint=hint, place=place)


def _same(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Whether arguments are equal, however they are spaced."""
    nodes = [(a.node, b.node) for a, b in zip(some, others, strict=False)]
    return len(some) == len(others) and all(a is not None and a == b for a, b in nodes)
