"""What an update query must keep to: the rules of UpStream §3.2, checked before anything is made (US1).

Filter and map keep the update key; GROUP BY contains it; the branches of a union have equal keys; a join is
over the key. An error names the rule that is broken and says what to write instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.errors import BindError
from headwater.plan.calls import AGGREGATES, SqlCall, calls_of
from headwater.plan.checks import Checker, check_times
from headwater.plan.folds import StreamColumns
from headwater.plan.shape import SelectBlock, blocks_of
from headwater.sql.extensions import NamedRelation, UpdateMode
from headwater.sql.spans import span_of
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import Span
from headwater.sql.types import name_of

STREAM_JOINS = ("", ",", "inner")
TABLE_JOINS = (*STREAM_JOINS, "left", "cross", "semi", "anti")


def is_update_query(query: Query) -> bool:
    """Whether rows wait in a queue of their own: WITH UPDATES, WITH SHEDDING, or WITH APPEND row by row."""
    mode = query.update_mode
    if mode is None:
        return False
    return mode.kind != "append" or not (query.windows or query.cuts or query.sample)


@dataclass(frozen=True)
class CheckedBranch:
    """One SELECT over one streaming table."""

    query: Query
    block: SelectBlock  # in the text of `query`
    reference: NamedRelation
    definition: StreamColumns
    key: tuple[str, ...]  # the names that the key's columns have in the result
    columns: tuple[str, ...]  # the update key, of a join in the order of its first table's
    joined: bool = False


class UpdateChecker(Checker):
    """Refuses what an update query cannot be."""

    needs_window = False

    def branches(self) -> list[CheckedBranch]:
        """The SELECTs of the query, each within the rules."""
        query, mode = self._query, self._query.update_mode
        assert mode is not None
        self._check_clauses(query, mode)
        found = [branch for part, start in self._selects() for branch in self._select(part, start)]
        check_times([branch.definition for branch in found])
        if found[0].joined:
            self._check_join(found)
        else:
            self._check_windows(found, mode)
        if len(found) > 1:
            self._check_union(found)
        return found

    # Clauses

    def _check_clauses(self, query: Query, mode: UpdateMode) -> None:
        if query.cuts:
            raise self._error(
                "an update query takes no CUT: chunks hold every row",
                query.cuts[0].span,
                hint="leave CUT out, or leave WITH … out",
            )
        if query.emit is not None and query.emit.what != "all":
            raise self._error(
                "an update query gives the newest result of each key, so there is nothing to compare",
                query.emit.span,
                hint="leave EMIT out",
            )
        if mode.refresh is not None and query.windows:
            raise self._error(
                "REFRESH EVERY goes with queries row by row", mode.refresh.span, hint="no window"
            )
        if query.windows and (mode.when_behind is not None or mode.kind == "shedding"):
            raise self._error(
                "windows are always kept whole: no SHEDDING and no WHEN BEHIND with a window",
                mode.span,
                hint="WITH UPDATES WINDOWS LAZY, or leave the window out",
            )
        if not query.windows and mode.windows is not None:
            raise self._error(
                "WINDOWS LAZY | EAGER needs a window",
                mode.span,
                hint="FROM t [INTERVAL '1' MINUTE] … SAMPLE INTERVAL '10' SECOND",
            )

    def _check_windows(self, branches: Sequence[CheckedBranch], mode: UpdateMode) -> None:
        query = self._query
        windowed = [branch for branch in branches if branch.reference.window is not None]
        if not windowed:
            if query.sample is not None:
                raise self._error(
                    "SAMPLE needs a window", query.sample.span, hint="without both, row by row"
                )
            return
        if len(branches) > 1:
            raise self._error(
                "branches of a UNION take no window in an update query",
                query.windows[0].span,
                hint="leave the windows out: rows are then processed one by one",
            )
        window = windowed[0].reference.window
        assert window is not None
        if window.kind != "interval":
            raise self._error(
                "windows of an update query are of time",
                window.span,
                hint="[INTERVAL '1' MINUTE] or [INTERVAL '1' MINUTE BEFORE]",
            )
        if query.sample is None or query.sample.kind != "interval":
            raise self._error(
                "an update query with a window needs SAMPLE INTERVAL",
                mode.span if query.sample is None else query.sample.span,
                hint="SAMPLE INTERVAL '10' SECOND before WITH UPDATES",
            )

    # SELECTs

    def _selects(self) -> list[tuple[Query, int]]:
        """The whole query, or the branches of its UNION ALL; with where they stand."""
        query = self._query
        tree = query.tree
        if tree is None or tree.args.get("with_") is not None or tree.args.get("with") is not None:
            raise self._refuse_shape("an update query is one SELECT, or a UNION ALL of several")
        if isinstance(tree, exp.Select):
            return [(query, 0)]
        nodes = list(tree.find_all(exp.SetOperation))
        plain = all(isinstance(n, exp.Union) and not n.args.get("distinct") for n in nodes)
        if not plain or not isinstance(tree, exp.Union):
            raise self._refuse_shape(
                "a union of update streams is UNION ALL: it keeps one row per key and time itself"
            )
        blocks = blocks_of(query)
        if len(blocks) != len(nodes) + 1:
            raise self._refuse_shape("branches of a UNION are plain SELECTs")
        parts = [block.span.of(query.text) for block in blocks]
        return [(make_query(p), b.span.start) for p, b in zip(parts, blocks, strict=True)]

    def _refuse_shape(self, message: str) -> BindError:
        return self._error(
            message,
            Span(0, len(self._query.text)),
            hint="SELECT key, … FROM t [WHERE …] WITH UPDATES",
        )

    def _select(self, query: Query, offset: int) -> list[CheckedBranch]:
        """The streams of one SELECT: one, or the two that it joins."""
        streams = [
            (reference, definition)
            for reference in query.table_references
            if (definition := self._stream_of(reference, offset)) is not None
        ]
        block = blocks_of(query)[0]
        own = [s.relation.span for s in block.sources if s.relation is not None]
        above = all(reference.span in own for reference, _ in streams)
        if not 1 <= len(streams) <= 2 or not above:
            raise self._at(
                "an update query reads one streaming table in its FROM, or joins two",
                Span(0, len(query.text)),
                offset,
                "read others WITH APPEND, through windows; UNION ALL brings equal streams together",
            )
        self._check_block(query, block, offset)
        reference, definition = streams[0]
        self._check_sources(block, [r for r, _ in streams], offset)
        key = self._kept_key(block, reference, definition, offset)
        self._check_grouping(query, block, reference, definition, offset, len(streams) > 1)
        columns, joined = tuple(definition.update_key or ()), len(streams) > 1
        found = [CheckedBranch(query, block, reference, definition, key, columns, joined)]
        if joined:
            other, its = streams[1]
            pairs = self._paired_keys(query, streams, offset)
            found.append(CheckedBranch(query, block, other, its, key, pairs, joined))
        return found

    def _paired_keys(
        self, query: Query, streams: Sequence[tuple[NamedRelation, StreamColumns]], offset: int
    ) -> tuple[str, ...]:
        """A join is over the key: for each column of the first table's key the second's."""
        (first, one), (second, two) = streams
        equal = _equalities(query, _alias(first), _alias(second))
        keys = {name.casefold(): name for name in two.update_key or ()}
        pairs = [
            next((keys[b] for a, b in equal if a == name.casefold() and b in keys), None)
            for name in one.update_key or ()
        ]
        found = tuple(name for name in pairs if name is not None)
        if len(found) < len(pairs) or len(found) < len(keys):
            own, its = one.update_key or (), two.update_key or ()
            raise self._at(
                "a join of update streams is over their update keys: "
                f"({', '.join(own)}) and ({', '.join(its)})",
                second.span,
                offset,
                f"ON {_alias(first)}.{(own or ('key',))[0]} = {_alias(second)}.{(its or ('key',))[0]}",
            )
        self._check_joined_types(one, two, found, second, offset)
        return found

    def _check_joined_types(
        self,
        one: StreamColumns,
        two: StreamColumns,
        pairs: Sequence[str],
        second: NamedRelation,
        offset: int,
    ) -> None:
        """Keys that are joined wait in one queue."""
        for own, its in zip(one.update_key or (), pairs, strict=True):
            first, other = one.schema.field(own).type, two.schema.field(its).type
            if first != other:
                raise self._at(
                    "a join of update streams is over keys of one type: "
                    f"{own} is {name_of(first)}, {its} is {name_of(other)}",
                    second.span,
                    offset,
                    "a streaming table whose key has the other's type",
                )

    def _check_join(self, branches: Sequence[CheckedBranch]) -> None:
        """Both sides have windows of time, and rows are processed as they come."""
        for branch in branches:
            window = branch.reference.window
            if window is None or window.kind != "interval":
                raise self._error(
                    "a join of update streams takes the latest match in a window of each",
                    branch.reference.span,
                    hint=f"{branch.reference.name} [INTERVAL '1' MINUTE]",
                )
        if self._query.sample is not None:
            raise self._error(
                "a join of update streams is made for each row that comes",
                self._query.sample.span,
                hint="leave SAMPLE out",
            )

    def _stream_of(self, reference: NamedRelation, offset: int) -> StreamColumns | None:
        try:
            definition = self._reference(reference)
        except BindError as error:
            if offset:  # the place is one in the branch
                place = reference.span.shifted(offset + self._query.offset)
                error.place = place.place(self._text)
            raise
        if definition is not None and definition.update_key is None:
            raise self._at(
                f"{definition.kind} {definition.name} has no update key",
                reference.span,
                offset,
                "CREATE … UPDATE KEY (column), or UPDATE KEY () if each row replaces the one before",
            )
        return definition

    def _check_block(self, query: Query, block: SelectBlock, offset: int) -> None:
        """No clause in which keys would depend on each other."""
        if block.unknown is not None:
            raise self._at(
                f"{block.unknown} cannot stand in an update query", block.span, offset, None
            )
        if block.order or block.limit is not None:
            span = block.order[0].span if block.limit is None else block.limit.span
            raise self._at(
                "an update query has no order and no LIMIT: keys come as they are processed",
                span,
                offset,
                "SELECT … FROM q ORDER BY … LIMIT … when you read it",
            )
        for call in _own_calls(query, [block.span]):
            if call.windowed:
                raise self._at(
                    f"{call.name.lower()}() OVER looks at rows that an update query may skip",
                    call.span,
                    offset,
                    "aggregate over a window: GROUP BY the update key",
                )

    def _check_sources(
        self, block: SelectBlock, streams: Sequence[NamedRelation], offset: int
    ) -> None:
        """Rows of a table that is joined come only with a row of the first stream."""
        spans = [reference.span for reference in streams]
        for number, source in enumerate(block.sources):
            streaming = source.relation is not None and source.relation.span in spans
            first = streaming and source.relation is not None and source.relation.span == spans[0]
            kept = STREAM_JOINS if streaming else TABLE_JOINS
            if source.join not in kept or first != (number == 0):
                raise self._at(
                    "the update key is kept by joins that begin with the stream",
                    source.span,
                    offset,
                    f"FROM {streams[0].name} JOIN table … or LEFT JOIN table …",
                )

    # The key

    def _kept_key(
        self,
        block: SelectBlock,
        reference: NamedRelation,
        definition: StreamColumns,
        offset: int,
    ) -> tuple[str, ...]:
        """Map keeps the key: its columns are in the result as they are."""
        found = []
        for column in definition.update_key or ():
            name = _name_of_column(block, reference, column)
            if name is None:
                raise self._at(
                    f"an update query keeps the update key: {column} is not in the result as it is",
                    block.places["SELECT"],
                    offset,
                    f"SELECT {column}, …",
                )
            found.append(name)
        return tuple(found)

    def _check_grouping(
        self,
        query: Query,
        block: SelectBlock,
        reference: NamedRelation,
        definition: StreamColumns,
        offset: int,
        joined: bool,
    ) -> None:
        """GROUP BY contains the key; aggregates are over windows."""
        aggregates = self._aggregates(query, block)
        if not aggregates and not block.group and not block.group_all:
            return
        span = aggregates[0] if aggregates else block.places["GROUP"]
        if joined:
            raise self._at(
                "a join of update streams gives the latest match of each key, so there are no groups",
                span,
                offset,
                "leave GROUP BY out, or leave WITH UPDATES out",
            )
        if reference.window is None:
            raise self._at(
                "an aggregate of an update query is over a window",
                span,
                offset,
                f"FROM {reference.name} [INTERVAL '1' MINUTE] … SAMPLE INTERVAL '10' SECOND",
            )
        if block.group_all:
            return
        own = {name.casefold() for name in definition.schema.names}
        group = block.node.args.get("group")
        nodes = {span_of(key): key for key in (group.expressions if group is not None else ())}
        grouped = [_expression(block, nodes[span], own) for span in block.group]
        for column in definition.update_key or ():
            if not any(_is_column(node, reference, column) for node in grouped):
                raise self._at(
                    f"GROUP BY contains the update key: {column} is not in it",
                    block.places.get("GROUP", span),
                    offset,
                    f"GROUP BY {column}, …",
                )

    def _aggregates(self, query: Query, block: SelectBlock) -> list[Span]:
        spans = [item.span for item in block.items]
        spans += [] if block.having is None else [block.having]
        calls = _own_calls(query, spans)
        own = self._tables.is_aggregate
        return [c.span for c in calls if c.name in AGGREGATES or own(c.name.lower())]

    def _check_union(self, branches: Sequence[CheckedBranch]) -> None:
        """Branches have equal keys, in the same columns of the result."""
        first = branches[0]
        types = _key_types(first)
        for branch in branches[1:]:
            same = [n.casefold() for n in branch.key] == [n.casefold() for n in first.key]
            if not same or _key_types(branch) != types:
                raise self._error(
                    "the branches of a union have the same update key: "
                    f"({', '.join(first.key)}) and ({', '.join(branch.key)}) differ",
                    Span(0, len(self._query.text)),
                    hint="name the key's columns alike, with equal types",
                )

    def _at(self, message: str, span: Span, offset: int, hint: str | None) -> BindError:
        return self._error(message, span.shifted(offset), hint)

    def check_refresh(self, key: Sequence[str], shown: Sequence[str], mode: UpdateMode) -> None:
        """REFRESH names the one column of the update key; `shown`: as it is called in the result."""
        refresh = mode.refresh
        names = [[name.casefold() for name in one] for one in (key, shown)]
        if refresh is not None and [refresh.key.casefold()] not in names:
            raise self._error(
                f"REFRESH is for keys: the update key is ({', '.join(key)})",
                refresh.key.span,
                hint="REFRESH EVERY INTERVAL '1' MINUTE FOR key IN (…), with a key of one column",
            )


def _own_calls(query: Query, spans: Sequence[Span]) -> list[SqlCall]:
    """The calls in parts of a SELECT; what its subqueries call is over tables."""
    inner = [block.span for block in blocks_of(query)[1:]]
    return [
        call
        for span in spans
        for call in calls_of(query)
        if call.span.within(span) and not any(call.span.within(other) for other in inner)
    ]


def _key_types(branch: CheckedBranch) -> list[pa.DataType]:
    schema = branch.definition.schema
    return [schema.field(name).type for name in branch.columns]


def _alias(reference: NamedRelation) -> str:
    return str(reference.alias or reference.name.rpartition(".")[2])


def _equalities(query: Query, first: str, second: str) -> list[tuple[str, str]]:
    """Columns of two tables that a query's conditions say are equal, in lower case."""
    tree = query.tree
    assert isinstance(tree, exp.Select)
    found: list[tuple[str, str]] = []
    conditions = [join.args.get("on") for join in tree.args.get("joins") or []]
    where = tree.args.get("where")
    conditions += [] if where is None else [where.this]
    for join in tree.args.get("joins") or []:
        found += [(n.name.casefold(), n.name.casefold()) for n in join.args.get("using") or []]
    for condition in conditions:
        for part in _conjuncts(condition):
            sides = (part.left, part.right) if isinstance(part, exp.EQ) else ()
            columns = [side for side in sides if isinstance(side, exp.Column)]
            by_table = {column.table.casefold(): column.name.casefold() for column in columns}
            if set(by_table) == {first.casefold(), second.casefold()}:
                found.append((by_table[first.casefold()], by_table[second.casefold()]))
    return found


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    if condition is None:
        return []
    plain = condition.unnest()
    return list(plain.flatten()) if isinstance(plain, exp.And) else [plain]


def _expression(block: SelectBlock, key: exp.Expr, columns: Collection[str]) -> exp.Expr:
    """What an item of GROUP BY stands for: a place or an alias is that item of the select list.

    `columns`: of the stream, in lower case; their names go before aliases.
    """
    items = block.node.expressions
    if isinstance(key, exp.Literal) and key.name.isdecimal() and 0 < int(key.name) <= len(items):
        return items[int(key.name) - 1].unalias()
    if isinstance(key, exp.Column) and not key.table and key.name.casefold() not in columns:
        for item in items:
            if isinstance(item, exp.Alias) and item.alias.casefold() == key.name.casefold():
                return item.this
    return key


def _is_column(node: exp.Expr, reference: NamedRelation, column: str) -> bool:
    """Whether an expression is the bare column, perhaps with its table before it."""
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return False
    own = not node.table or node.table.casefold() == _alias(reference).casefold()
    return own and node.name.casefold() == column.casefold()


def _name_of_column(block: SelectBlock, reference: NamedRelation, column: str) -> str | None:
    """The name that a column has in the result; None if it is not there as it is."""
    alias = _alias(reference)
    for item, node in zip(block.items, block.node.expressions, strict=True):
        if item.star and (item.star_of is None or item.star_of.casefold() == alias.casefold()):
            return column
        if not item.star and _is_column(node.unalias(), reference, column):
            return str(item.name or node.unalias().name)
    return None
