"""One fold at work: chunks go through the stream pipeline, by operators or on Spark, into its merge.

Owns: the choice of tier for a chunk, the staging of rows for Spark, and the probes of static tables.
Both tiers feed the same merge, so a query may change its tier from chunk to chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.compile.block import PLACE, StreamPipeline, probe_name
from headwater.compile.block import SEQUENCE as CARRIED_SEQUENCE
from headwater.compile.block import TICK as CARRIED_TICK
from headwater.compile.fold import (
    ROW,
    SEQUENCE,
    TICK,
    FoldSpec,
    distinct_texts,
    has_edges,
    join_text,
    partial_text,
    rows_text,
    side_rows,
)
from headwater.engine.feed import FeedCursor, last_until, stored_until
from headwater.engine.joins import PairsMerge, StreamJoinMerge, join_merge
from headwater.engine.merges import (
    FoldMerge,
    KeyWindowsMerge,
    LandmarkMerge,
    PaneChunk,
    RingMerge,
    RowsMerge,
    SparkPartials,
    Ticks,
)
from headwater.engine.pane_merge import PaneMerge
from headwater.engine.reader import LeafReader, PlacedRows
from headwater.engine.world import World, run_over
from headwater.errors import DataError
from headwater.fold.pane import Panes, Window
from headwater.fold.probe import Probe
from headwater.fold.share import Share
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.folds import BEGIN, EXPIRY, PANE, stream_view
from headwater.plan.text import SparkText
from headwater.sql.types import TIMESTAMP

GROUPS = (PaneMerge, LandmarkMerge, KeyWindowsMerge)  # merges of aggregates


@dataclass
class Counters:
    """What a query's pipelines did, for EXPLAIN ANALYZE and headwater.queries."""

    rows_by_operators: int = 0
    rows_on_spark: int = 0
    spark_runs: int = 0
    last_spark_rows: int = 0  # stream rows that the last Spark run of a pipeline read
    last_rows: int = 0  # rows of the last chunk
    operator_runs: int = 0


class StaticProbes:
    """Static tables indexed for probes, one version each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made: dict[str, tuple[Relation, Probe]] = {}
        self._rows: dict[tuple[str, tuple[str, ...]], tuple[Relation, pa.Table]] = {}

    def of(self, pipeline: StreamPipeline, held: HeldTables) -> Mapping[str, Probe]:
        """The probes that a pipeline needs, at the versions held."""
        return {
            probe_name(table, keys): self.one(table, keys, held) for table, keys in pipeline.probes
        }

    def one(self, table: str, keys: tuple[str, ...], held: HeldTables) -> Probe:
        """One table by its keys, at the version held."""
        name, relation = probe_name(table, keys), held.relations[table.strip("`").lower()]
        made = self._made.get(name)
        if made is None or made[0] != relation:
            made = (relation, Probe(self.table(relation), keys))
            self._made[name] = made
        return made[1]

    def rows(self, name: str, relation: Relation, columns: tuple[str, ...]) -> pa.Table:
        """Some columns of a table, at the version given; kept for the next time."""
        made = self._rows.get((name, columns))
        if made is None or made[0] != relation:
            wanted = set(columns)
            schema = pa.schema([field for field in relation.schema if field.name in wanted])
            made = (relation, self.table(replace(relation, schema=schema)))
            self._rows[name, columns] = made
        return made[1]

    def table(self, relation: Relation) -> pa.Table:
        """All rows of a table at a version."""
        return self._world.table_rows(relation)


@dataclass
class FoldRun:
    """One fold of one query."""

    spec: FoldSpec
    world: World
    readers: tuple[LeafReader, ...]
    panes: Panes | None
    windows: tuple[Window, ...]
    probes: StaticProbes
    counters: Counters = field(default_factory=Counters)
    merge: FoldMerge = field(init=False)
    now: Callable[[], int] | None = None  # of a view: what functions of time mean, in µs
    share: Share | None = None  # of a part of a view: the groups that it has
    _since: list[FeedCursor | None] = field(
        default_factory=list
    )  # of a join: where each side stands
    _last: tuple[list[PlacedRows], HeldTables] | None = (
        None  # of a join by operators: what it took last
    )
    _began_by_operators: bool = True

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin with nothing kept."""
        self._last = None
        spec, plan = self.spec, self.spec.plan
        if plan.kind == "join":
            assert self.panes is not None
            self._began_by_operators = self._may_be_by_operators
            self.merge = join_merge(spec, self.panes, self.windows, self._began_by_operators)
        elif plan.kind == "ring":
            self.merge = self._ring()
        elif plan.kind == "rows":
            self.merge = RowsMerge(spec.schema, self.windows[0])
        elif plan.leaves[0].window.kind == "landmark":
            assert spec.aggregation is not None
            self.merge = LandmarkMerge(spec.aggregation)
        else:
            assert self.panes is not None
            assert spec.aggregation is not None
            self.merge = PaneMerge(spec.aggregation, self.panes, self.windows)

    @property
    def _may_be_by_operators(self) -> bool:
        return self.world.settings.operators

    @property
    def is_elsewhere(self) -> bool:
        """Whether its state is not where `spark_sql_only` says now: it must be made again there."""
        return (
            self.spec.plan.kind == "join" and self._began_by_operators != self._may_be_by_operators
        )

    @property
    def tier(self) -> str:
        """Where the next chunk is folded."""
        if self.spec.plan.kind == "ring":
            return "operators"
        if self.spec.plan.kind == "join":
            return "operators" if isinstance(self.merge, StreamJoinMerge) else "Spark"
        operators = self.spec.pipeline is not None and self._may_be_by_operators
        return "operators" if operators else "Spark"

    def _ring(self) -> RingMerge:
        reader = self.readers[0]
        definition = reader.table.definition
        stored = definition.stored_schema
        names = dict.fromkeys([*reader.columns, SEQUENCE])
        fields = [stored.field(name) for name in names]
        schema = pa.schema([*fields, pa.field(CARRIED_TICK, pa.int64())])
        assert reader.leaf.window.rows is not None
        return RingMerge(
            schema,
            reader.keys,
            reader.leaf.window.rows,
            reader.leaf.previous,
            definition.range_ticks,
            self.spec.plan.fresh,
        )

    # Instants

    def advance(self, place: int, tick: int) -> None:
        """Move the merge to an instant."""
        try:
            self.merge.advance(place, tick)
        except DataError as error:
            self._join_on_spark(error)
            self.merge.advance(place, tick)

    def push_early(self) -> None:
        """Fold what waits although its instant has not come."""
        try:
            self.merge.push_early()
        except DataError as error:
            self._join_on_spark(error)

    def _join_on_spark(self, error: DataError) -> None:
        """A join that failed by operators goes on there: all rows of both windows are paired again.

        Spark may spare the row that raised the error.
        """
        if not isinstance(self.merge, StreamJoinMerge) or self._last is None:
            raise error
        assert self.panes is not None
        (chunks, held), self._last = self._last, None
        new, none = [], []
        for side, (rows, places, _) in enumerate(chunks):
            before = self._window_before(side, places)
            if self._lacks(side, before, places):
                raise error
            new.append(pa.concat_tables([before, self._with_lives(rows, places, side)]))
            none.append(before.slice(0, 0))
        self.merge = join_merge(self.spec, self.panes, self.windows, by_operators=False)
        self._pair(new, none, held)

    def _lacks(self, side: int, before: pa.Table, new: Ticks) -> bool:
        """Whether rows of a window of positions are gone from a stream, since a snapshot holds them."""
        by_position = self.readers[side].leaf.in_ring and len(new) > 0
        return by_position and before.num_rows < min(self.windows[side].size, int(new[0]) - 1)

    # Chunks

    def take(self, chunks: list[PlacedRows], held: HeldTables, first: int | None) -> None:
        """New rows of each leaf, with their places and ticks; `first` is the next instant's place."""
        plan = self.spec.plan
        self.counters.last_rows = sum(chunk.rows.num_rows for chunk in chunks)
        if plan.kind == "join":
            self._take_join(chunks, held)
            return
        rows, places, ticks = chunks[0]
        if not rows.num_rows:
            return
        if isinstance(self.merge, RingMerge):
            self.merge.add(places, rows.append_column(CARRIED_TICK, pa.array(ticks)))
            return
        pipeline, most = self.spec.pipeline, self.world.settings.rows_at_once
        if pipeline is None or not most:
            self._take_on_spark(rows, places, ticks, held, first)
            return
        for start in range(0, rows.num_rows, most):
            part, end = rows.slice(start, most), start + most
            its_places, its_ticks = places[start:end], ticks[start:end]
            try:
                self._take_by_operators(pipeline, part, its_places, its_ticks, held)
            except DataError:  # Spark may spare the row that raised it
                self._take_on_spark(part, its_places, its_ticks, held, first)

    def _take_by_operators(
        self,
        pipeline: StreamPipeline,
        rows: pa.Table,
        places: Ticks,
        ticks: Ticks,
        held: HeldTables,
    ) -> None:
        spec = self.spec
        self.counters.rows_by_operators += rows.num_rows
        self.counters.operator_runs += 1
        rows = rows.append_column(PLACE, pa.array(places))
        ordered = spec.aggregation is not None and has_edges(spec)
        if ordered:
            rows = rows.append_column(CARRIED_TICK, pa.array(ticks))
            rows = rows.append_column(CARRIED_SEQUENCE, rows.column(SEQUENCE))
        instant = None if self.now is None else pa.scalar(self.now(), pa.int64()).cast(TIMESTAMP)
        chunk = pipeline.prepare(rows, self.probes.of(pipeline, held), instant)
        if not chunk.num_rows:
            return
        if spec.aggregation is None:
            kept_places = chunk.column(PLACE).to_numpy()
            assert isinstance(self.merge, RowsMerge)
            arrays = [_array(one.evaluate(chunk)) for one in spec.kept]
            self.merge.add(kept_places, pa.Table.from_arrays(arrays, schema=spec.schema))
            return
        keys = [_array(one.evaluate(chunk)) for one in spec.keys]
        if self.share is not None:
            chunk, keys = self._mine(self.share, chunk, keys)
            if not chunk.num_rows:
                return
        order = None
        if ordered:
            order = (
                chunk.column(CARRIED_TICK).to_numpy(),
                chunk.column(CARRIED_SEQUENCE).to_numpy(),
            )
        kept_places = chunk.column(PLACE).to_numpy()
        arguments = [_array(one.evaluate(chunk)) for one in spec.arguments]
        assert isinstance(self.merge, GROUPS)
        self.merge.add(PaneChunk(kept_places, keys, arguments, order))

    def _mine(
        self, share: Share, chunk: pa.Table, keys: list[pa.Array]
    ) -> tuple[pa.Table, list[pa.Array]]:
        """The rows whose groups a part has, and their keys; what is a column is not taken twice."""
        rows = pa.array(share.rows(keys, chunk.num_rows))
        chunk, known = chunk.take(rows), zip(self.spec.plan.keys, self.spec.keys, keys, strict=True)
        return chunk, [
            _array(one.evaluate(chunk)) if piece.is_name else key.take(rows)
            for piece, one, key in known
        ]

    def _take_on_spark(
        self, rows: pa.Table, places: Ticks, ticks: Ticks, held: HeldTables, first: int | None
    ) -> None:
        spec, leaf = self.spec, self.spec.plan.leaves[0]
        panes = self._pane_numbers(places, first)
        if isinstance(self.merge, PaneMerge):
            assert self.panes is not None
            needed = np.array([self.panes.needed(p) for p in np.unique(panes).tolist()])
            if not needed.all():
                keep = needed[np.searchsorted(np.unique(panes), panes)]
                kept = pa.array(keep)
                rows, panes, ticks = rows.filter(kept), panes[keep], ticks[keep]
                if not rows.num_rows:
                    return
        names = [n for n in dict.fromkeys([*leaf.needed, SEQUENCE]) if n in rows.column_names]
        staged = rows.select(names)
        extra = {PANE: panes, TICK: ticks, ROW: np.arange(rows.num_rows)}
        for name, values in extra.items():
            staged = staged.append_column(name, pa.array(values))
        if spec.aggregation is None:
            found = self._run({stream_view(leaf.number): staged}, [rows_text(spec)], held)[0]
            self._keep_rows(found, places)
            return
        texts = [partial_text(spec), *distinct_texts(spec)]
        found, *distinct = self._run({stream_view(leaf.number): staged}, texts, held)
        made = [(t.column(PANE).to_numpy(), t.drop_columns([PANE])) for t in (found, *distinct)]
        if self.share is not None:
            made = [self._of_share(self.share, *one) for one in made]
        partials = SparkPartials(*made[0], made[1:])
        assert isinstance(self.merge, GROUPS)
        self.merge.add_partials(partials)

    def _of_share(self, share: Share, panes: Ticks, table: pa.Table) -> tuple[Ticks, pa.Table]:
        """The partials of groups that a part has."""
        keys = [_array(table.column(place)) for place in range(len(self.spec.plan.keys))]
        mine = share.rows(keys, table.num_rows)
        return panes[mine], table.take(pa.array(mine))

    def _keep_rows(self, found: pa.Table, places: Ticks) -> None:
        order = np.argsort(found.column(ROW).to_numpy(), kind="stable")
        found = found.take(pa.array(order))
        kept = places[found.column(ROW).to_numpy()]
        assert isinstance(self.merge, RowsMerge)
        self.merge.add(kept, found.select(self.spec.schema.names).cast(self.spec.schema))

    def _pane_numbers(self, places: Ticks, first: int | None) -> Ticks:
        """The pane of each row; for a landmark, the instant that sees it first."""
        if isinstance(self.merge, LandmarkMerge):
            if self.panes is None or self.panes.slide == 1:
                return places
            instants = -(-places // self.panes.slide) * self.panes.slide
            return instants if first is None else np.maximum(instants, first)
        if self.panes is None:
            return np.zeros(len(places), np.int64)
        return self.panes.panes_of(places)

    def _take_join(self, chunks: list[PlacedRows], held: HeldTables) -> None:
        if isinstance(self.merge, StreamJoinMerge):
            self._last = chunks, held
            for side, (rows, places, _) in enumerate(chunks):
                self.counters.rows_by_operators += rows.num_rows
                self.merge.add(side, places, rows)
            return
        if any(chunk.rows.num_rows for chunk in chunks):
            sides = list(enumerate(chunks))
            new = [self._with_lives(rows, places, side) for side, (rows, places, _) in sides]
            self._pair(new, [self._window_before(side, one.places) for side, one in sides], held)

    def _pair(self, new: list[pa.Table], old: list[pa.Table], held: HeldTables) -> None:
        """Spark finds the pairs of new rows, by side, with new ones and old ones."""
        relations: dict[str, pa.Table] = {}
        for leaf, fresh, before in zip(self.spec.plan.leaves, new, old, strict=True):
            both = pa.concat_tables([before, fresh])
            sides = {"new": fresh, "old": before, "all": both}
            relations |= {side_rows(leaf.number, s).name: rows for s, rows in sides.items()}
        found = self._run(relations, [join_text(self.spec)], held)[0]
        assert isinstance(self.merge, PairsMerge)
        self.merge.add_pairs(found)

    def _with_lives(self, rows: pa.Table, places: Ticks, side: int) -> pa.Table:
        """The rows with their first instant and their expiry; those that no window sees are out."""
        assert self.panes is not None
        leaf, panes, window = self.spec.plan.leaves[side], self.panes, self.windows[side]
        stored = self.readers[side].table.definition.stored_schema
        source = rows if rows.num_columns else stored.empty_table()
        names = [n for n in dict.fromkeys([*leaf.needed, SEQUENCE]) if n in source.column_names]
        slide = panes.slide
        begins = -(-(places + window.before) // slide) * slide
        lasts = (places + window.size) // slide * slide
        table = source.select(names).append_column(BEGIN, pa.array(begins))
        table = table.append_column(EXPIRY, pa.array(lasts + slide))
        return table.filter(pa.array(lasts >= begins))

    def _window_before(self, side: int, new: Ticks) -> pa.Table:
        """The rows of a side's window that earlier chunks brought, read from the table."""
        reader, window = self.readers[side], self.windows[side]
        since = self._since[side] if self._since else None
        if since is None:
            empty = reader.table.definition.stored_schema.empty_table()
            return self._with_lives(empty, np.empty(0, np.int64), side)
        with reader.table.reading() as snapshot:
            if reader.leaf.in_ring:  # places are positions
                rows = last_until(snapshot, window.size + 1, since, None, reader.columns)
                end = int(new[0]) if len(new) else rows.num_rows + 1
                return self._with_lives(rows, np.arange(end - rows.num_rows, end), side)
            if reader.chunks is not None:
                rows, ticks = reader.stored(snapshot, 0, None, since)
                places = reader.chunks.ordinals(ticks, rows.column(SEQUENCE).to_numpy())
                return self._with_lives(rows, places, side)
            rows = stored_until(snapshot, since.tick - window.size, since, reader.columns)
        ticks = reader.table.definition.ticks(rows.column(reader.table.definition.time))
        return self._with_lives(rows, ticks, side)

    def joined_until(self, cursors: list[FeedCursor | None]) -> None:
        """How far each side had been joined before the chunk that comes next."""
        self._since = cursors

    def _run(
        self, tables: dict[str, pa.Table], texts: list[SparkText], held: HeldTables
    ) -> list[pa.Table]:
        """Runs texts on Spark over staged rows and the static tables held."""
        instant = None if self.now is None else f"timestamp_micros({self.now()}L)"
        found = run_over(self.world, [t.fill(instant) for t in texts], tables, held.relations)
        count = sum(rows.num_rows for rows in tables.values())
        self.counters.rows_on_spark += count
        self.counters.last_spark_rows = count
        self.counters.spark_runs += len(texts)
        return found


class KeyWindowsRun(FoldRun):
    """A fold over windows that end one by one, each with rows of its own: places are their numbers."""

    def clear(self) -> None:
        """Begin with nothing kept."""
        assert self.spec.aggregation is not None
        self.merge = KeyWindowsMerge(self.spec.aggregation)

    def close(self, windows: Sequence[int]) -> pa.Table:
        """The merged relation of windows that have ended; they are let go."""
        assert isinstance(self.merge, KeyWindowsMerge)
        self.merge.close(windows)
        return self.merge.result()

    def _pane_numbers(self, places: Ticks, first: int | None) -> Ticks:  # noqa: ARG002
        return places


def _array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        found: Any = values.combine_chunks()
        return pa.array([], values.type) if isinstance(found, pa.ChunkedArray) else found
    return values
