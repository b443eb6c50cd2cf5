"""A fold with its types: what the planner found, as it is computed by operators and on Spark.

Owns: the types of keys, arguments and kept columns (from the whitelist of expressions, or Spark's analysis of
empty relations), the aggregation behind them, and the texts that Spark runs for a chunk. Both tiers
make the same partials. Must never: hold rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from headwater.compile.block import BlockFinish, NoOperator, StreamPipeline, compiled
from headwater.compile.join import JoinPipeline
from headwater.errors import NotSupportedError
from headwater.expression.compile import Compiled
from headwater.expression.terms import Terms
from headwater.fold.absorb import partial_fields
from headwater.fold.aggregates import ALIASES, FUNCTIONS, Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import kind_of
from headwater.fold.families import Edge
from headwater.plan.folds import BEGIN, EXPIRY, PANE, FoldPlan
from headwater.plan.pieces import Piece, column
from headwater.plan.text import NO_TEXT, RowsSlot, Slot, SparkText, conjunction, joined, spark_text
from headwater.sql.types import quoted

ROW, TICK, SEQUENCE = "headwater_row", "headwater_tick", "_seq"
FOLDABLE = frozenset(FUNCTIONS) | frozenset(ALIASES)

Analyse = Callable[[SparkText], list[pa.DataType]]


def refuse_types(_text: SparkText) -> list[pa.DataType]:
    """For whoever has no Spark to ask."""
    raise NotSupportedError("only Spark knows the types")


@dataclass(frozen=True)
class _Spec:
    plan: FoldPlan
    pipeline: StreamPipeline | None  # None: only Spark can run the stream pipeline
    pairing: JoinPipeline | None  # the same of a join of two streams
    schema: pa.Schema  # of the merged result
    finish: BlockFinish | None  # None: only Spark can finish the block

    @property
    def tier(self) -> str:
        """Where chunks may be folded."""
        return "Spark" if self.pipeline is None and self.pairing is None else "operators"


@dataclass(frozen=True)
class GroupsSpec(_Spec):
    """A fold that keeps aggregates by keys, typed: columns _k0 … _a0 …"""

    aggregation: Aggregation
    argument_pieces: tuple[Piece, ...]
    keys: tuple[Compiled, ...]  # by operators
    arguments: tuple[Compiled, ...]
    kept: ClassVar[tuple[Compiled, ...]] = ()


@dataclass(frozen=True)
class RowsSpec(_Spec):
    """A fold that keeps rows, typed: columns _c0 …"""

    kept: tuple[Compiled, ...]  # by operators
    aggregation: ClassVar[None] = None
    argument_pieces: ClassVar[tuple[Piece, ...]] = ()
    keys: ClassVar[tuple[Compiled, ...]] = ()
    arguments: ClassVar[tuple[Compiled, ...]] = ()


FoldSpec = GroupsSpec | RowsSpec


def make_spec(plan: FoldPlan, functions: Terms, analyse: Analyse) -> FoldSpec:
    """The typed fold; `analyse` asks Spark for the types of a query over empty relations."""
    arguments = tuple(dict.fromkeys(a.argument for a in plan.aggregates if a.argument is not None))
    kept = tuple(_kept(plan, place) for place in range(len(plan.columns)))
    pieces = [*plan.keys, *arguments, *kept]
    pipeline, found = _in_line(plan, pieces, functions)
    types = _types(plan, pieces, analyse) if pipeline is None else [c.type for c in found]
    single = pipeline if isinstance(pipeline, StreamPipeline) else None
    pairing = pipeline if isinstance(pipeline, JoinPipeline) else None
    if not plan.keys and not plan.aggregates:
        schema = pa.schema([pa.field(f"_c{n}", t) for n, t in enumerate(types)])
        finish = make_finish(plan, schema, functions)
        return RowsSpec(plan, single, pairing, schema, finish, tuple(found))
    keys = len(plan.keys)
    typed = dict(zip(arguments, types[keys:], strict=True))
    aggregation = _aggregation(plan, types[:keys], typed)
    schema = aggregation.schema
    finish = make_finish(plan, schema, functions)
    columns = tuple(found[:keys]), tuple(found[keys:])
    return GroupsSpec(plan, single, pairing, schema, finish, aggregation, arguments, *columns)


def has_edges(spec: GroupsSpec) -> bool:
    """Whether the order of rows decides: first and last."""
    return any(isinstance(family, Edge) for family in spec.aggregation.families)


def _in_line(
    plan: FoldPlan, pieces: Sequence[Piece], functions: Terms
) -> tuple[StreamPipeline | JoinPipeline | None, list[Compiled]]:
    if plan.kind == "ring":
        return None, []
    try:
        pipeline: StreamPipeline | JoinPipeline
        if plan.kind == "join":
            pipeline = JoinPipeline(plan, functions)
        else:
            pipeline = StreamPipeline(plan, functions)
        found = [compiled(piece, pipeline.resolve, functions) for piece in pieces]
        for one in found[: len(plan.keys)]:
            kind_of(one.type)
        return pipeline, found
    except (NoOperator, NotSupportedError):
        return None, []


def _kept(plan: FoldPlan, place: int) -> Piece:
    kept = plan.columns[place]
    return column(kept.name, _alias(plan, kept.source))


def _alias(plan: FoldPlan, source: int) -> str:
    for place, leaf in zip(plan.leaf_sources, plan.leaves, strict=True):
        if place == source:
            return leaf.alias
    return next(static.alias for place, static in plan.statics if place == source)


def _types(plan: FoldPlan, pieces: Sequence[Piece], analyse: Analyse) -> list[pa.DataType]:
    if not pieces:
        return []
    columns = [spark_text(piece.text, f" AS _x{place}") for place, piece in enumerate(pieces)]
    return analyse(
        spark_text("SELECT ", joined(", ", columns), " FROM ", plan.from_text, _where(plan))
    )


def _where(plan: FoldPlan) -> SparkText:
    if not plan.where:
        return NO_TEXT
    return spark_text(" WHERE ", conjunction(piece.text for piece in plan.where))


def _aggregation(
    plan: FoldPlan, key_types: Sequence[pa.DataType], argument_types: dict[Piece, pa.DataType]
) -> Aggregation:
    """The fold's aggregation; NotSupportedError if a type has no vector."""
    places = {piece: place for place, piece in enumerate(argument_types)}
    aggregates = []
    for number, aggregate in enumerate(plan.aggregates):
        function = ALIASES.get(aggregate.function, aggregate.function)
        if aggregate.argument is None:
            aggregates.append(Aggregate("count", None, pa.int64(), f"_a{number}"))
        else:
            type_ = argument_types[aggregate.argument]
            kind_of(type_)
            aggregates.append(Aggregate(function, places[aggregate.argument], type_, f"_a{number}"))
    for type_ in key_types:
        kind_of(type_)
    keys = [pa.field(f"_k{place}", type_) for place, type_ in enumerate(key_types)]
    return Aggregation(keys, aggregates)


def make_finish(plan: FoldPlan, schema: pa.Schema, functions: Terms) -> BlockFinish | None:
    """What is left of a block above its fold, or None where only Spark can compute it."""
    if plan.finish is None:
        return None
    try:
        return BlockFinish(plan.finish, schema, plan.leaves[0].columns.time_type, functions)
    except NoOperator:
        return None


# What Spark runs


def _inner(spec: FoldSpec, extra: Sequence[str], from_text: SparkText | None = None) -> SparkText:
    plan = spec.plan
    columns: list[str | SparkText] = [*extra]
    named = [("_k", plan.keys), ("_x", spec.argument_pieces)]
    named.append(("_c", tuple(_kept(plan, place) for place in range(len(plan.columns)))))
    for letter, pieces in named:
        columns += [spark_text(p.text, f" AS {letter}{n}") for n, p in enumerate(pieces)]
    source = from_text or plan.from_text
    return spark_text("SELECT ", joined(", ", columns), " FROM ", source, _where(plan))


def partial_text(spec: GroupsSpec) -> SparkText:
    """One row per pane and group, with the partial columns that `fold/absorb` reads."""
    alias = quoted(spec.plan.leaves[0].alias)
    extra = [f"{alias}.{name}" for name in (PANE, TICK, SEQUENCE)]
    return _grouped(spec, _inner(spec, extra), [PANE])


def distinct_texts(spec: GroupsSpec) -> list[SparkText]:
    """For each distinct argument, its values by pane and group."""
    alias = quoted(spec.plan.leaves[0].alias)
    inner = _inner(spec, [f"{alias}.{PANE}"])
    keys = ", ".join([PANE, *(f"_k{place}" for place in range(len(spec.plan.keys)))])
    return [
        spark_text(
            f"SELECT DISTINCT {keys}, _x{place} FROM (", inner, f") WHERE _x{place} IS NOT NULL"
        )
        for place in spec.aggregation.distinct
    ]


def rows_text(spec: RowsSpec) -> SparkText:
    """The kept columns of the rows that pass, each with its row's number in the chunk."""
    return _inner(spec, [f"{quoted(spec.plan.leaves[0].alias)}.{ROW}"])


def side_rows(leaf: int, side: str) -> RowsSlot:
    """The rows of one side of a join: its new, its old, or all of them."""
    return RowsSlot("stream", f"{leaf}_{side}")


def join_text(spec: FoldSpec) -> SparkText:
    """New rows of each side with the other side's window: every new pair once."""
    one, two = (quoted(leaf.alias) for leaf in spec.plan.leaves)
    extra = [
        f"greatest({one}.{BEGIN}, {two}.{BEGIN}) AS {BEGIN}",
        f"least({one}.{EXPIRY}, {two}.{EXPIRY}) AS {EXPIRY}",
    ]
    halves = []
    for pair in (("new", "all"), ("old", "new")):
        sides: dict[Slot, Slot | SparkText] = {
            RowsSlot("stream", leaf.number): side_rows(leaf.number, side)
            for leaf, side in zip(spec.plan.leaves, pair, strict=True)
        }
        halves.append(_inner(spec, extra, spec.plan.from_text.replaced(sides)))
    inner = joined(" UNION ALL ", halves)
    return inner if isinstance(spec, RowsSpec) else _grouped(spec, inner, [BEGIN, EXPIRY])


def _grouped(spec: GroupsSpec, inner: SparkText, by: Sequence[str]) -> SparkText:
    keys = [*by, *(f"_k{place}" for place in range(len(spec.plan.keys)))]
    columns = [
        f"{_partial(spec, field.name)} AS {field.name}"
        for field in partial_fields(spec.aggregation)
    ]
    shown = ", ".join([*keys, *columns])
    return spark_text(f"SELECT {shown} FROM (", inner, f") GROUP BY {', '.join(keys)}")


def _partial(spec: GroupsSpec, name: str) -> str:
    """The expression behind one partial column."""
    if name == "rows":
        return "count(*)"
    kind, _, rest = name.partition("_")
    there = rest.startswith("there_")
    number, _, detail = rest.removeprefix("there_").partition("_")
    argument = f"_x{number}"
    if kind == "sum" and pa.types.is_int64(spec.aggregation.types[int(number)]):
        return f"sum(CAST({argument} AS DECIMAL(38, 0)))"  # a pane's sum must not overflow alone
    if kind in ("count", "sum", "min", "max"):
        return f"{kind}({argument})"
    if kind == "moments":
        texts = {
            "count": f"CAST(count({argument}) AS DOUBLE)",
            "mean": f"avg(CAST({argument} AS DOUBLE))",
            "squares": f"var_pop({argument}) * count({argument})",
        }
        return texts[detail]
    way = "min" if kind == "first" else "max"
    only = f" FILTER (WHERE {argument} IS NOT NULL)" if there else ""
    place = f"struct({TICK}, {SEQUENCE})"
    if detail == "value":
        return f"{way}_by({argument}, {place}){only}"
    return f"{way}({place}){only}.{TICK if detail == 'time' else SEQUENCE}"
