"""From rows or merged relations to a result: the finish of a block by operators, or Spark for the rest.

Owns: the result's schema (`_t` last), the upper part over the folds' results, and re-evaluation over
the rows of whole windows. Must never: keep anything between instants but the result over empty windows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.compile.block import SEQUENCE, TICK, instant_type
from headwater.compile.fold import FoldSpec, has_edges
from headwater.compile.upper import UpperBlock
from headwater.compile.upper_circuit import UpperCircuit
from headwater.engine.fold_run import StaticProbes
from headwater.engine.result_changes import repeated
from headwater.engine.sampling import Instant
from headwater.engine.windows import WindowRows, shown_columns
from headwater.engine.world import World, run_over
from headwater.errors import DataError, NotSupportedError
from headwater.fold.columns import Column
from headwater.fold.state import GroupState
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.folds import ContinuousPlan, window_view
from headwater.plan.text import RowsSlot, Slot
from headwater.sql.types import TIMESTAMP

TIME = "_t"
MOST_IN_ONE_RUN = 16  # results that one Spark job makes


@dataclass(frozen=True)
class OutputSchema:
    """The columns of a query's result."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    places: tuple[int, ...]  # which columns of the select list they are
    time_type: pa.DataType
    select_types: tuple[pa.DataType, ...] = ()  # of the whole select list

    @property
    def schema(self) -> pa.Schema:
        """The result's schema, `_t` last."""
        fields = [pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)]
        return pa.schema([*fields, pa.field(TIME, instant_type(self.time_type))])

    def instant(self, tick: int) -> pa.Scalar:
        """An instant as `_t` holds it."""
        scalar = pa.scalar(tick, pa.int64())
        return (
            scalar
            if pa.types.is_integer(self.time_type)
            else scalar.cast(instant_type(self.time_type))
        )

    def result(self, table: pa.Table, tick: int) -> pa.Table:
        """The result of an instant from the columns of the select list."""
        columns = [table.column(place) for place in self.places]
        columns = [
            column if column.type == type_ else column.cast(type_)
            for column, type_ in zip(columns, self.types, strict=True)
        ]
        times = repeated(self.instant(tick), table.num_rows)
        return pa.Table.from_arrays([*columns, times], schema=self.schema)


class ViewOutput(OutputSchema):
    """The columns of a view: no instant among them."""

    @property
    def schema(self) -> pa.Schema:
        """The result's schema."""
        return pa.schema([pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)])

    def result(self, table: pa.Table, tick: int) -> pa.Table:  # noqa: ARG002
        """The result from the columns of the select list."""
        columns = [
            table.column(place).cast(type_)
            for place, type_ in zip(self.places, self.types, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


def view_output(columns: Sequence[tuple[str, pa.DataType]]) -> ViewOutput:
    """The schema of a view; functions of time in it give timestamps."""
    names, types = (tuple(part) for part in zip(*columns, strict=True))
    return ViewOutput(names, types, tuple(range(len(columns))), TIMESTAMP, types)


def output_schema(
    columns: Sequence[tuple[str, pa.DataType]], time_type: pa.DataType
) -> OutputSchema:
    """The result's schema; a column that the user calls `_t` gives way to the instant."""
    kept = [(place, name, type_) for place, (name, type_) in enumerate(columns) if name != TIME]
    return OutputSchema(
        tuple(name for _, name, _ in kept),
        tuple(type_ for _, _, type_ in kept),
        tuple(place for place, _, _ in kept),
        time_type,
        tuple(type_ for _, type_ in columns),
    )


def instant_text(time_type: pa.DataType, tick: int) -> str:
    """An instant as SQL."""
    return f"{tick}L" if pa.types.is_integer(time_type) else f"timestamp_micros({tick}L)"


@dataclass
class Evaluation:
    """How results of one query are made."""

    plan: ContinuousPlan
    specs: Sequence[FoldSpec]
    whole: FoldSpec | None  # the one block over rows, operators
    output: OutputSchema
    world: World
    probes: StaticProbes
    text: str  # the statement, for the places of errors
    block: UpperBlock | UpperCircuit | None = (
        None  # the upper part by operators: by blocks, or as a circuit
    )
    upper_runs: int = 0
    rows_evaluated: int = 0  # rows of windows that were read again

    @property
    def time_type(self) -> pa.DataType:
        """The type of T."""
        return self.plan.leaves[0].columns.time_type

    @property
    def upper_tier(self) -> str:
        """Where the upper part runs, or all of a query that is re-evaluated."""
        whole = not self.specs and self.evaluates_by_operators
        if whole or self._finishes_by_operators or isinstance(self.block, UpperBlock):
            return "operators"
        return "Spark" if self.block is None else "operators over changes"

    @property
    def evaluates_by_operators(self) -> bool:
        """Whether re-evaluation of a small window needs no Spark."""
        return self._rows_by_operators and self.world.settings.operators

    @property
    def _finishes_by_operators(self) -> bool:
        if not self.plan.single or not self.specs:
            return False
        if self.specs[0].plan.kind == "ring":
            return self._rows_by_operators
        return self.specs[0].finish is not None

    @property
    def _rows_by_operators(self) -> bool:
        whole = self.whole
        return whole is not None and whole.pipeline is not None and whole.finish is not None

    def _allowed(self, rows: int) -> bool:
        return rows <= self.world.settings.rows_at_once

    # Over folds

    def upper(
        self, merged: Sequence[tuple[Instant, Sequence[pa.Table | Relation]]], held: HeldTables
    ) -> list[pa.Table]:
        """The results of instants from their folds' relations; over files, on Spark."""
        rows = [
            (instant, [table for table in relations if isinstance(table, pa.Table)])
            for instant, relations in merged
        ]
        if any(len(mine) < len(all_) for (_, mine), (_, all_) in zip(rows, merged, strict=True)):
            return [one for pair in merged for one in self._upper_on_spark([pair], held)]
        return self._upper_over_rows(rows, held)

    def _upper_over_rows(
        self, merged: Sequence[tuple[Instant, Sequence[pa.Table]]], held: HeldTables
    ) -> list[pa.Table]:
        if self._finishes_by_operators and self.specs[0].plan.kind != "ring":
            with contextlib.suppress(DataError):  # Spark may spare the row that raised it
                return [self._finished(i, tables[0]) for i, tables in merged]
        elif self._finishes_by_operators and all(self._allowed(t[0].num_rows) for _, t in merged):
            with contextlib.suppress(DataError):
                return [self._over_ring(tables[0], i.tick, held) for i, tables in merged]
        elif self.block is not None and self.world.settings.operators:
            with contextlib.suppress(DataError, NotSupportedError):
                return [self._over_folds(self.block, i, tables, held) for i, tables in merged]
        if self.plan.single and self.specs[0].plan.kind == "ring":
            merged = [(i, [self._newest_first(tables[0])]) for i, tables in merged]
        found: list[pa.Table] = []
        step = 1 if self.plan.orders else MOST_IN_ONE_RUN
        for start in range(0, len(merged), step):
            found += self._upper_on_spark(merged[start : start + step], held)
        return found

    def _finished(self, instant: Instant, merged: pa.Table) -> pa.Table:
        finish = self.specs[0].finish
        assert finish is not None
        rows = finish.result(merged, self.output.instant(instant.tick))
        return self.output.result(rows, instant.tick)

    def _over_folds(
        self,
        block: UpperBlock | UpperCircuit,
        instant: Instant,
        merged: Sequence[pa.Table],
        held: HeldTables,
    ) -> pa.Table:
        rows = block.result(merged, self.output.instant(instant.tick), held, self.probes)
        return self.output.result(rows, instant.tick)

    def _upper_on_spark(
        self, merged: Sequence[tuple[Instant, Sequence[pa.Table | Relation]]], held: HeldTables
    ) -> list[pa.Table]:
        """One Spark run for several instants: each is a branch of a UNION ALL."""
        assert self.plan.upper is not None
        tables: dict[str, pa.Table | Relation] = {}
        texts = []
        for place, (instant, relations) in enumerate(merged):
            now = instant_text(self.output.time_type, instant.tick)
            folds = [RowsSlot("fold", spec.plan.number) for spec in self.specs]
            names: dict[Slot, str] = {fold: f"{fold.name}_{place}" for fold in folds}
            shown = map(self._shown, self.specs, relations)
            tables |= zip(names.values(), shown, strict=True)
            texts.append(self.plan.upper.fill(now, names))
        self.upper_runs += 1
        if len(texts) == 1:
            return [self.output.result(self._run(texts[0], tables, held), merged[0][0].tick)]
        whole = " UNION ALL ".join(
            f"SELECT {place} AS headwater_slide, * FROM ({text}\n)"  # it may end in a comment
            for place, text in enumerate(texts)
        )
        found = self._run(whole, tables, held)
        slides = found.column(0).to_numpy()
        rest = found.select(list(range(1, found.num_columns)))
        return [
            self.output.result(rest.filter(pa.array(slides == place)), instant.tick)
            for place, (instant, _) in enumerate(merged)
        ]

    @staticmethod
    def _shown(spec: FoldSpec, merged: pa.Table | Relation) -> pa.Table | Relation:
        """What a fold's text sees of its result: of the rows of a ring only the columns that it may name."""
        if spec.plan.kind != "ring" or isinstance(merged, Relation):
            return merged
        return merged.select(shown_columns(spec.plan.leaves[0], merged.column_names))

    # Over rows

    def over_rows(self, windows: WindowRows, tick: int, held: HeldTables) -> pa.Table:
        """The result over the rows of all windows, the newest first where they are in memory."""
        self.rows_evaluated += windows.count
        pieces = windows.pieces.get(0)
        small = self._allowed(windows.count) and not windows.files
        if self._rows_by_operators and (small or pieces is not None):
            with contextlib.suppress(DataError):  # Spark may spare the row that raised it
                given = [windows.tables[0]] if pieces is None else pieces()
                return self.rows_by_operators(given, tick, held)
        loaded = windows.loaded()
        tables = {
            window_view(leaf.number): rows.select(shown_columns(leaf, rows.column_names))
            for leaf in self.plan.leaves
            if (rows := loaded.get(leaf.number)) is not None
        }
        files = {window_view(number): files for number, files in windows.files.items()}
        text = self.plan.whole.fill(instant_text(self.output.time_type, tick))
        static = {**held.relations, **files}
        return self.output.result(run_over(self.world, [text], tables, static)[0], tick)

    def _over_ring(self, rows: pa.Table, tick: int, held: HeldTables) -> pa.Table:
        assert self.whole is not None
        if self.whole.plan.in_order:
            rows = self._newest_first(rows)
        return self.rows_by_operators([rows], tick, held)

    def rows_by_operators(
        self, pieces: Iterable[pa.Table], tick: int, held: HeldTables
    ) -> pa.Table:
        """The one block of the query over the rows of its window, the newest first; one piece at a time."""
        whole = self.whole
        assert whole is not None
        assert whole.pipeline is not None
        assert whole.finish is not None
        instant, probes = self.output.instant(tick), self.probes.of(whole.pipeline, held)
        groups = None if whole.aggregation is None else GroupState(whole.aggregation)
        edges = whole.aggregation is not None and has_edges(whole)
        kept: list[pa.Table] = []
        for piece in pieces:
            rows = self._with_order(piece) if edges else piece
            chunk = whole.pipeline.prepare(rows, probes, instant)
            if groups is None:
                arrays = [one.evaluate(chunk) for one in whole.kept]
                kept.append(pa.Table.from_arrays(arrays, schema=whole.schema))
            elif chunk.num_rows:
                self._fold_into(groups, whole, chunk, edges)
        merged = pa.concat_tables(kept) if groups is None else groups.result()
        return self.output.result(whole.finish.result(merged, instant), tick)

    @staticmethod
    def _fold_into(groups: GroupState, whole: FoldSpec, chunk: pa.Table, edges: bool) -> None:
        order = None
        if edges:
            order = (chunk.column(TICK).to_numpy(), chunk.column(SEQUENCE).to_numpy())
        keys = [Column(one.evaluate(chunk)) for one in whole.keys]
        arguments = [Column(one.evaluate(chunk)) for one in whole.arguments]
        groups.fold(keys, arguments, order, chunk.num_rows)

    def _newest_first(self, rows: pa.Table) -> pa.Table:
        ticks, sequence = self._order_of(rows)
        return rows.take(pa.array(np.lexsort((sequence, ticks))[::-1]))

    def _with_order(self, rows: pa.Table) -> pa.Table:
        """Beside the block's own columns, what first and last go by."""
        ticks, sequence = self._order_of(rows)
        for name, values in ((TICK, ticks), (SEQUENCE, sequence)):
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.array(values))
        return rows

    def _order_of(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        from headwater.storage.streaming.definition import ticks

        times = ticks(self.time_type, rows.column(self.plan.leaves[0].columns.time))
        return times, rows.column("_seq").to_numpy()

    def _run(
        self, text: str, relations: Mapping[str, pa.Table | Relation], held: HeldTables
    ) -> pa.Table:
        tables = {name: rows for name, rows in relations.items() if isinstance(rows, pa.Table)}
        files = {name: rows for name, rows in relations.items() if isinstance(rows, Relation)}
        static = {**held.relations, **files}
        return run_over(self.world, [text], tables, static)[0]
