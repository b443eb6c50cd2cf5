"""A continuous select → its plan: leaves, folds, the upper part.

Every block with a windowed table in its own FROM must be split by a rule; if one is not, the whole
query is re-evaluated over its windows and `ContinuousPlan.reason` says why. Must never: ask Spark, or
look at rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from headwater.errors import BindError, NotSupportedError
from headwater.plan.blocks import (
    VIEW_MARK,
    AddedUse,
    Bound,
    BoundBlock,
    Tables,
    Unfit,
    leaf_edits,
)
from headwater.plan.blocks import Sampling as Sampled
from headwater.plan.calls import AGGREGATES, SqlCall, calls_of
from headwater.plan.common import fold_form
from headwater.plan.fold_tree import fold_tree
from headwater.plan.folds import (
    NEWEST,
    ContinuousPlan,
    FoldPlan,
    Leaf,
    previous_column,
)
from headwater.plan.leaves import find_leaves, view_leaves
from headwater.plan.pieces import (
    BLANK,
    Piece,
    Rendering,
    Stand,
    case_when,
    column,
    instant,
    is_not_null,
)
from headwater.plan.rules import AT_HAND, fold_block
from headwater.plan.rules.correlated import lookup_text
from headwater.plan.rules.first_last import (
    WAYS,
    edge_calls,
    edge_edits,
    ordered_leaf,
)
from headwater.plan.rules.grouping import is_grouped
from headwater.plan.rules.rows import block_text
from headwater.plan.scope import (
    ColumnUse,
    Scope,
    SourceInfo,
    column_uses,
    innermost,
    inside,
    narrowed,
)
from headwater.plan.shape import BlockSource, SelectBlock, blocks_of, cte_bodies
from headwater.plan.stars import (
    hidden_names,
    reads_all_columns,
    star_edits,
    star_in_expression,
)
from headwater.plan.state_calls import call_names, find_state_calls
from headwater.plan.text import RowsSlot, SparkText, joined, spark_text
from headwater.plan.times import refuse_chance, refuse_ordered_distinct, time_edits
from headwater.sql.extensions import NamedRelation, Previous, Valid
from headwater.sql.statements.query import Query
from headwater.sql.text import Span
from headwater.sql.types import quoted

# Functions of time in the stream pipelines of a view; or a block over rows that are all there.
ViewTimes = OneOf["refused", "at insert", "rows at hand"]


def plan_query(
    query: Query,
    tables: Tables,
    sampling: Sampled,
    foldable: frozenset[str],
    text: str,
    view: ViewTimes | None = None,
) -> ContinuousPlan:
    """The plan of a continuous select; `foldable` names the aggregates that have a fold.

    A view has no windows: it reads all rows of its streams, and time is the wall's.
    """
    bound = _bind(query, tables, sampling, foldable, text, view)
    whole_span = Span(0, len(query.text))
    stream_names = {leaf.name.key for leaf in bound.leaves}
    _check_opaque(bound)
    whole = _whole(bound, whole_span)
    found = ContinuousPlan(
        leaves=bound.leaves,
        whole=whole,
        pinned=whole,
        reads_instant=bool(bound.volatile),
        identifiers=_identifiers(query, tables, stream_names),
        orders=query.tree is None or query.tree.find(exp.Order, exp.Sort) is not None,
        in_order=_order_counts(bound),
    )
    if query.tree is None or column_uses(query.tree) is None:
        return replace(found, reason="the query is not understood well enough to be split")
    found = replace(found, whole_fold=_whole_fold(bound))
    try:
        split = _split(bound)
    except Unfit as unfit:
        return replace(found, reason=unfit.reason, rule=unfit.rule)
    upper = bound.rendering.of(whole_span, bound.replaced)
    folds = _distinct(split)
    single = len(folds) == 1 and _is_whole(bound, folds[0].block)
    below = _below(bound, split)
    return replace(
        found,
        folds=folds,
        split=split,
        upper=upper,
        upper_tree=bound.rendering.tree(bound.replaced),
        single=single,
        stream_tables=tuple(dict.fromkeys(reference.name.key for reference in below)),
        pinned=_whole(bound, whole_span, below),
        below=tuple(reference.name for reference in below),
    )


def _identifiers(query: Query, tables: Tables, streams: set[str]) -> frozenset[str]:
    """Names that may mean standard tables; views are marked: whoever means a column reads no view."""
    names = {str(reference.name) for reference in query.table_references}
    views = {VIEW_MARK + name.lower() for name in names if tables.kind(name) == "view"}
    return frozenset(views | {name for name in query.identifiers if name not in streams})


def _bind(
    query: Query,
    tables: Tables,
    sampling: Sampled,
    foldable: frozenset[str],
    text: str,
    view: ViewTimes | None,
) -> Bound:
    """The query with its blocks bound to tables, its functions replaced."""
    leaves = find_leaves(query, tables)
    if view is not None:
        leaves = view_leaves(query, tables, view == "rows at hand")
    blocks, calls = blocks_of(query), calls_of(query)
    uses = column_uses(query.tree) if query.tree is not None else None
    refuse_chance(query, text)
    refuse_ordered_distinct(query, calls, text, blocks)
    scopes = [_scope(query, block, tables, leaves) for block in blocks]
    uses = None if uses is None else narrowed(uses, blocks, scopes)
    edits, volatile, leaves, added = _function_edits(
        query, leaves, blocks, scopes, uses or [], view
    )
    in_view = view is not None
    state = find_state_calls(query, calls, text, tables, blocks, scopes, uses, in_view)
    edits, leaves, added = [*edits, *state.edits], state.bound(leaves), (*added, *state.uses)
    leaves = _with_needed(leaves, blocks, scopes, uses, calls, query.identifiers)
    scopes = [_scope(query, block, tables, leaves) for block in blocks]
    gone = (*query.clauses.spans, *_cut_spans(query))
    always = [*edits, *(Stand(span, BLANK) for span in gone)]
    rendering = Rendering(query.text, query.tree, always)
    return Bound(
        query,
        blocks,
        calls,
        scopes,
        leaves,
        uses or [],
        rendering,
        sampling,
        foldable,
        volatile,
        added,
        AGGREGATES | own_aggregates(calls, tables),
    )


def _check_opaque(bound: Bound) -> None:
    """A query that is not understood cannot be told what `*`, first and last mean here."""
    query = bound.query
    if query.tree is not None:
        return
    names = {name.upper() for name in query.identifiers}
    hidden = [name for leaf in bound.leaves for name in leaf.beside]
    reason = query.tree_error
    if names & WAYS.keys() or hidden:
        raise NotSupportedError(
            "the query is not understood well enough for "
            + (
                f"the column {hidden[0]}"
                if hidden
                else "first and last, which go by the rows' order"
            ),
            detail=None if reason is None else reason.message,
        )


def own_aggregates(calls: Sequence[SqlCall], tables: Tables) -> frozenset[str]:
    """The aggregates that users made, among the functions that a query calls."""
    return frozenset(call.name for call in calls if tables.is_aggregate(call.name.lower()))


def one_time_edits(
    query: Query, tables: Tables, statement: str
) -> tuple[list[Stand], tuple[Leaf, ...]]:
    """What stands for PREV, calls with state and CURRENT_INSTANT in a one-time query; its windowed tables."""
    leaves = find_leaves(query, tables)
    blocks = blocks_of(query)
    scopes = [_scope(query, block, tables, leaves) for block in blocks]
    known = column_uses(query.tree) if query.tree is not None else None
    known = None if known is None else narrowed(known, blocks, scopes)
    uses = known or []
    calls = find_state_calls(query, calls_of(query), statement, tables, blocks, scopes, known)
    edits = [Stand.of(call.span, instant()) for call in query.instants]
    edits += calls.named_edits(query, blocks)
    added, bound = _with_previous(query, calls.bound(leaves), blocks, scopes, uses)
    return [*edits, *(Stand.of(use.span, use.piece) for use in added)], bound


def one_time_stars(query: Query, tables: Tables, windowed: Sequence[Leaf]) -> list[Stand]:
    """`*` of a one-time query without what is read beside declared columns; `windowed` have their own."""
    known = {leaf.name.span: leaf for leaf in windowed}
    leaves = []
    for leaf in view_leaves(query, tables, at_hand=True):
        own = known.get(leaf.name.span, leaf)
        hidden = hidden_names(leaf, [name.casefold() for name in query.identifiers])
        leaves.append(replace(leaf, hidden=hidden, previous=own.previous, calls=own.calls))
    blocks = blocks_of(query)
    found = [star_edits(query.text, b, _scope(query, b, tables, leaves)) for b in blocks]
    return [edit for edits in found for edit in edits]


def _cut_spans(query: Query) -> list[Span]:
    return [span for cut in query.cuts for span in cut.removals]


# Binding


def _scope(query: Query, block: SelectBlock, tables: Tables, leaves: Sequence[Leaf]) -> Scope:
    return Scope(block, [_source_info(query, s, tables, leaves) for s in block.sources])


def _source_info(
    query: Query, source: BlockSource, tables: Tables, leaves: Sequence[Leaf]
) -> SourceInfo:
    relation: NamedRelation | None = source.relation
    name = "" if relation is None else str(relation.name)
    alias = str(source.alias or name.rpartition(".")[2])
    if relation is None:
        streaming = source.subquery is None or _has_leaf(leaves, source.subquery)
        return SourceInfo(source, alias, None, (), None, streaming)
    for leaf in leaves:
        if leaf.name.span == relation.span:
            schema = pa.schema([*leaf.columns.schema, *leaf.added])
            return SourceInfo(source, alias, schema, leaf.columns.visible, leaf, True)
    if any(reference.span == relation.span for reference in query.table_references):
        schema = tables.standard(name)
        visible = () if schema is None else tuple(schema.names)
        return SourceInfo(source, alias, schema, visible)
    body = cte_bodies(query).get(relation.name.key)
    return SourceInfo(source, alias, None, (), None, body is None or _has_leaf(leaves, body))


def _has_leaf(leaves: Sequence[Leaf], span: Span) -> bool:
    return any(leaf.name.span.within(span) for leaf in leaves)


def _function_edits(
    query: Query,
    leaves: tuple[Leaf, ...],
    blocks: Sequence[SelectBlock],
    scopes: Sequence[Scope],
    uses: Sequence[ColumnUse],
    view: ViewTimes | None,
) -> tuple[list[Stand], tuple[Span, ...], tuple[Leaf, ...], tuple[AddedUse, ...]]:
    """What stands for VALID, PREV, CURRENT_INSTANT and functions of time; where the instant is read."""
    edits: list[Stand] = []
    volatile: list[Span] = []
    for call in query.instants:
        edits.append(Stand.of(call.span, instant()))
        volatile.append(call.span)
    integers = bool(leaves) and pa.types.is_integer(leaves[0].columns.time_type)
    by_spark = integers and view in ("refused", "at insert")  # a view's times are timestamps
    for stand in time_edits(query.text, integers and view is None, by_spark):
        edits.append(stand)
        if view != "at insert":
            volatile.append(stand.span)
    for valid in query.valid:
        edits.append(Stand.of(valid.span, _valid_piece(query, leaves, valid)))
    added, bound = _with_previous(query, leaves, blocks, scopes, uses)
    edits += [Stand.of(use.span, use.piece) for use in added]
    volatile += [use.span for use in added]
    return edits, tuple(volatile), bound, added


def _with_previous(
    query: Query,
    leaves: tuple[Leaf, ...],
    blocks: Sequence[SelectBlock],
    scopes: Sequence[Scope],
    uses: Sequence[ColumnUse],
) -> tuple[tuple[AddedUse, ...], tuple[Leaf, ...]]:
    """The calls of PREV, and the leaves with the columns that they read."""
    previous: dict[int, list[tuple[str, int]]] = {leaf.number: [] for leaf in leaves}
    added = []
    for use in query.previous:
        made, columns = _previous(query, use, blocks, scopes, uses)
        previous[made.leaf.number] += columns
        added.append(made)
    bound = (replace(f, previous=tuple(dict.fromkeys(previous[f.number]))) for f in leaves)
    return tuple(added), tuple(bound)


def _valid_piece(query: Query, leaves: Sequence[Leaf], valid: Valid) -> Piece:
    for leaf in leaves:
        if leaf.alias.casefold() == valid.alias.casefold():
            return valid_piece(query, column(leaf.columns.time, leaf.alias), valid)
    raise BindError(
        f"VALID({valid.alias}): {valid.alias} is no windowed table of this query", sqlstate="42P01"
    )


def valid_piece(query: Query, time: Piece, valid: Valid) -> Piece:
    """T of an alias, or whether it lies in a period."""
    if valid.period is None:
        return time
    rendering = Rendering(query.text, query.tree, ())
    low, high = (rendering.piece(span) for span in valid.period)
    text = spark_text("(", time.text, " BETWEEN ", low.text, " AND ", high.text, ")")
    if time.node is None or low.node is None or high.node is None:
        return Piece(text, None)
    between = exp.Between(this=time.node, low=low.node.copy(), high=high.node.copy())
    return Piece(text, exp.Paren(this=between))


def _previous(
    query: Query,
    use: Previous,
    blocks: Sequence[SelectBlock],
    scopes: Sequence[Scope],
    uses: Sequence[ColumnUse],
) -> tuple[AddedUse, list[tuple[str, int]]]:
    """PREV(x, n) as an expression over columns of the n-th earlier row, NULL if there is none."""
    within_use = inside(uses, use.argument)
    block = innermost(blocks, use.span)
    scope = scopes[blocks.index(block)] if block is not None else None
    resolved = [] if scope is None else [(u, scope.resolve(u)) for u in within_use]
    found = [(u, one) for u, one in resolved if one is not None]
    owners = {one.source for _, one in found}
    leaf = scope.sources[owners.pop()].leaf if scope is not None and len(owners) == 1 else None
    if leaf is None or len(found) < len(resolved):
        raise BindError(
            "PREV takes an expression over columns of one windowed table",
            sqlstate="42P20",
            place=use.span.shifted(query.offset).place(query.text) if not query.offset else None,
        )
    plain = len(found) == 1 and found[0][0].span == use.argument
    columns = [(one.name, use.steps) for _, one in found]
    columns += [] if plain else [("_seq", use.steps)]
    marker = previous_column("_seq", use.steps)

    def over(named: Callable[[str], Piece]) -> Piece:
        edits = [Stand.of(u.span, named(previous_column(c.name, use.steps))) for u, c in found]
        inner = Rendering(query.text, query.tree, edits).piece(use.argument)
        return inner if plain else case_when(is_not_null(named(marker)), inner)

    names = tuple(previous_column(name, steps) for name, steps in columns)
    return AddedUse(use.span, over, leaf, names), columns


def _with_needed(
    leaves: tuple[Leaf, ...],
    blocks: Sequence[SelectBlock],
    scopes: Sequence[Scope],
    uses: list[ColumnUse] | None,
    calls: Sequence[SqlCall],
    identifiers: frozenset[str],
) -> tuple[Leaf, ...]:
    """The leaves with the columns that the query names; all visible ones where that is not clear."""
    named: dict[int, set[str]] = {leaf.number: set() for leaf in leaves}
    said = {name.casefold() for use in uses or [] for name, _ in use.parts}
    said |= set() if uses is not None else {name.casefold() for name in identifiers}
    ordered_by: dict[int, set[str]] = {}
    placed = {info.leaf.number for scope in scopes for info in scope.sources if info.leaf}
    for block, scope in zip(blocks, scopes, strict=True):
        own = [s.leaf for s in scope.sources if s.leaf is not None]
        ordered = ordered_leaf(scope)
        if ordered is not None and edge_calls(calls, block, []):
            ordered_by[ordered.number] = {"_seq", ordered.columns.time.casefold()}
        if uses is None or block.unknown or reads_all_columns(block):
            for leaf in own:
                named[leaf.number].update(leaf.columns.visible)
        joined = {name.casefold() for info in scope.sources for name in info.source.using}
        for leaf in own:
            columns = leaf.columns.schema.names
            named[leaf.number].update(c for c in columns if c.casefold() in joined)
    bound = []
    for leaf in leaves:
        read = said | ordered_by.get(leaf.number, set())
        named[leaf.number].update(c for c in leaf.columns.schema.names if c.casefold() in read)
        extra = {c for c, _ in leaf.previous} | {leaf.columns.time}
        extra |= {k for k in leaf.columns.schema.names if k.casefold() in _key_names(leaf)}
        wanted = named[leaf.number] | extra
        if uses is None or leaf.number not in placed:
            wanted |= set(leaf.columns.visible)
        if not wanted & set(leaf.columns.visible):
            wanted |= set(leaf.columns.visible[:1])  # a table is read through its declared columns
        needed = tuple(n for n in leaf.columns.schema.names if n in wanted)
        bound.append(replace(leaf, needed=needed, hidden=hidden_names(leaf, sorted(read))))
    return tuple(bound)


def _key_names(leaf: Leaf) -> set[str]:
    """Columns that decide which rows a window holds."""
    cut = () if leaf.cut is None or leaf.cut.column is None else (leaf.cut.column,)
    return {key.casefold() for key in (*leaf.window.keys, *cut)}


# Splitting


def _split(bound: Bound) -> tuple[FoldPlan, ...]:
    """The fold of each block; inner ones first, so that an outer one can hold their replacements."""
    folds: list[FoldPlan] = []
    known: dict[Hashable, int] = {}
    order = sorted(range(len(bound.blocks)), key=lambda n: len(bound.blocks[n].span))
    for place in order:
        block, scope = bound.blocks[place], bound.scopes[place]
        if not bound.direct(scope):
            continue
        if block.unknown is not None:
            raise Unfit(f"{block.unknown} is not split")
        if star_in_expression(block):
            raise Unfit("* stands in an expression")
        fold = fold_block(BoundBlock(bound, block, scope, len(known)))
        fold = replace(fold, number=known.setdefault(fold_form(bound, fold), len(known)))
        folds.append(fold)
        tree = fold_tree(fold)
        bound.replaced.append(Stand(block.span, _replacement(bound, fold), tree))
    return tuple(folds)


def _distinct(split: Sequence[FoldPlan]) -> tuple[FoldPlan, ...]:
    """Each fold once, as the first block in the text has it."""
    first: dict[int, FoldPlan] = {}
    for fold in sorted(split, key=lambda fold: fold.block.span.start):
        first.setdefault(fold.number, fold)
    return tuple(first[number] for number in sorted(first))


def _replacement(bound: Bound, fold: FoldPlan) -> SparkText:
    rows = RowsSlot("fold", fold.number)
    if fold.outside:
        return lookup_text(fold, rows)
    if fold.finish is not None:
        return block_text(fold, rows)
    scope = bound.scopes[bound.blocks.index(fold.block)]
    extra = [*bound.replaced, *leaf_edits(fold.leaves[0], bound.query, rows)]
    extra += _over_rows(bound, fold.block, scope)
    return bound.rendering.of(fold.block.span, extra)


def _whole_fold(bound: Bound) -> FoldPlan | None:
    """The one block of a query over one stream, as if its rows were all there, at hand."""
    if not bound.blocks or len(bound.leaves) != 1 or bound.leaves[0].newest:
        return None
    alone = bound.query.tree is bound.blocks[0].node
    return fold_at_hand(replace(bound, volatile=(), replaced=[], at_hand=True)) if alone else None


def fold_at_hand(bound: Bound) -> FoldPlan | None:
    """The first block over rows that are all there; the others must be joins of it."""
    block, scope = bound.blocks[0], bound.scopes[0]
    if block.unknown is not None or not bound.direct(scope) or star_in_expression(block):
        return None
    try:
        fold = fold_block(BoundBlock(bound, block, scope, 0), AT_HAND)
    except Unfit:
        return None
    joined = sum(static.asked is not None for _, static in fold.statics)
    if len(bound.blocks) > 1 + joined:
        return None
    return fold if fold.kind == "aggregate" else replace(fold, kind="rows")


def _order_counts(bound: Bound) -> bool:
    """Whether the order of a window's rows reaches the result: of one stream, if no block groups them."""
    if len(bound.leaves) != 1:
        return False
    place = bound.leaves[0].name.span
    around = [block for block in bound.blocks if place.within(block.span)]
    for block in sorted(around, key=lambda block: len(block.span)):
        if block.unknown is not None:
            return True
        if is_grouped(bound, block):
            return False
        if block.limit is not None:
            return True
    return True


def _whole(bound: Bound, span: Span, static: Sequence[NamedRelation] = ()) -> SparkText:
    """The query over all rows of its windows; some tables under their static names."""
    extra = [pinned(reference) for reference in static]
    for leaf in bound.leaves:
        extra += leaf_edits(leaf, bound.query, RowsSlot("window", leaf.number))
    for block, scope in zip(bound.blocks, bound.scopes, strict=True):
        extra += _over_rows(bound, block, scope)
    return bound.rendering.of(span, extra)


def pinned(reference: NamedRelation) -> Stand:
    """A table under its static name."""
    alias = "" if reference.alias else f" AS {quoted(reference.name)}"
    name = RowsSlot("static", reference.name.key).name
    return Stand(reference.name.span, spark_text(quoted(name) + alias))


def _over_rows(bound: Bound, block: SelectBlock, scope: Scope) -> list[Stand]:
    """What changes in a block that Spark evaluates over rows of windows or rings."""
    found = [*edge_edits(bound, block, scope), *call_names(bound.query, block, bound.added)]
    leaves = [info.leaf for info in scope.sources if info.leaf is not None]
    if any(leaf.newest for leaf in leaves):
        found = [*found, *_newest_only(block, scope)]
    return [*found, *star_edits(bound.text, block, scope)]


def _newest_only(block: SelectBlock, scope: Scope) -> list[Stand]:
    """PAIR NEWEST: only rows of which a part is from its source's newest chunk."""
    shown = [info for info in scope.sources if info.source.join not in ("semi", "anti")]
    flags = [column(NEWEST, i.alias).text for i in shown if i.leaf is not None]
    test = joined(" OR ", (spark_text("coalesce(", flag, ", FALSE)") for flag in flags))
    where = block.places.get("WHERE")
    if where is not None:
        start, end = Span(where.start, where.start), Span(where.end, where.end)
        return [Stand(start, spark_text("(")), Stand(end, spark_text(") AND (", test, ")"))]
    after = Span(block.places["FROM"].end, block.places["FROM"].end)
    return [Stand(after, spark_text(" WHERE ", test))]


def _is_whole(bound: Bound, block: SelectBlock) -> bool:
    """Whether a block is the query, and its subqueries are all in the stream pipeline."""
    pushed = [span for span in block.conjuncts if bound.is_pushable(span)]
    places = [*pushed, *(source.span for source in block.sources)]
    inner = bound.nested(block.span)
    alone = bound.query.tree is block.node and len(inner) + 1 == len(bound.blocks)
    return alone and all(any(one.span.within(place) for place in places) for one in inner)


def _below(bound: Bound, folds: Sequence[FoldPlan]) -> list[NamedRelation]:
    """Where stream pipelines read standard tables: a change of them reaches rows already folded."""
    streams = {leaf.name.span for leaf in bound.leaves}
    places = [
        place
        for fold in folds
        if fold.finish is not None  # a ring keeps rows as they are
        for place in (fold.block.places.get(word) for word in ("FROM", "WHERE"))
        if place is not None
    ]
    return [
        reference
        for reference in bound.query.table_references
        if reference.span not in streams and any(reference.span.within(p) for p in places)
    ]
