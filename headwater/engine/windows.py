"""The windows of a query at an instant, for its evaluation over all their rows.

Owns: whether a window is given as rows in memory, as pieces that are read one after the other, or as files
for Spark: rows where they are few; pieces where their order counts and operators evaluate them; else the
blocks that overlap the window and the staged tail, with a condition. So a window larger than memory is not
loaded. Must never: outlive the snapshots that it holds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

import pyarrow as pa

from headwater.engine.feed import FeedCursor, Stretch
from headwater.engine.query_functions import QueryFunctions
from headwater.engine.reader import LeafReader, ordered_down
from headwater.engine.sampling import Instant
from headwater.engine.world import World
from headwater.expression.predicate import Range
from headwater.kernel.relation import Relation
from headwater.kernel.stored_files import StoredFiles, after_place, from_tick, until_place
from headwater.plan.folds import NEWEST, Leaf
from headwater.storage.streaming.definition import LATE
from headwater.storage.streaming.read import StreamSnapshot


@dataclass(frozen=True)
class WindowRows:
    """The rows of all windows at an instant, by leaf."""

    tables: Mapping[int, pa.Table]  # the newest first
    files: Mapping[int, Relation]
    count: int  # of rows; those in files and pieces are counted about
    pieces: Mapping[int, Callable[[], Iterator[pa.Table]]] = field(default_factory=dict)

    def loaded(self) -> Mapping[int, pa.Table]:
        """The tables, and what was to come in pieces whole."""
        whole = {number: pa.concat_tables(made()) for number, made in self.pieces.items()}
        return {**self.tables, **whole}


class Windows:
    """Holds the tables of a query, each at one moment, while inside."""

    def __init__(
        self,
        world: World,
        readers: Sequence[LeafReader],
        ordered: bool,
        functions: QueryFunctions,
        in_pieces: bool = False,
    ) -> None:
        """`ordered`: the order of rows counts; `functions`: those with state add columns.

        `in_pieces`: operators evaluate the rows, and need not have all of them at once.
        """
        self._world, self._readers, self._ordered = world, readers, ordered
        self._in_pieces = in_pieces
        self._functions = functions
        self._held = contextlib.ExitStack()
        self._files: list[StoredFiles] = []

    def __enter__(self) -> Windows:
        with contextlib.ExitStack() as stack:
            for reader in self._readers:
                snapshot = stack.enter_context(reader.table.reading())
                self._files.append(StoredFiles(snapshot, self._stage))
            self._held.push(stack.pop_all())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def _stage(self, rows: pa.Table) -> Relation:
        staging = self._world.kernel.staging
        relation = staging.stage(rows)
        self._held.callback(staging.release, relation)
        return relation

    def at(
        self, instant: Instant, landmarks: Sequence[FeedCursor | None], turn: int | None = None
    ) -> WindowRows:
        """The windows at an instant; `turn`: which evaluation of the last take, where rows decide."""
        tick = instant.tick
        tables: dict[int, pa.Table] = {}
        files: dict[int, Relation] = {}
        pieces: dict[int, Callable[[], Iterator[pa.Table]]] = {}
        stretches = [r.stretch(tick, landmarks[r.leaf.number], turn) for r in self._readers]
        own = list(zip(self._readers, self._files, stretches, strict=True))
        counts = [_about(reader, one.snapshot, stretch) for reader, one, stretch in own]
        few = sum(counts) <= self._world.settings.rows_at_once
        few = few or bool(self._functions)
        count = 0
        for (reader, one, stretch), about in zip(own, counts, strict=True):
            leaf = reader.leaf
            plain = not (leaf.previous or leaf.in_ring or leaf.newest)
            if self._ordered and self._in_pieces and plain and not few:
                pieces[leaf.number] = partial(reader.newest_first, one.snapshot, stretch)
                count += about
            elif few or self._ordered or leaf.previous or leaf.window.keys:
                rows = reader.window_rows(one.snapshot, stretch, tick, turn)
                rows = self._functions.with_values(reader, one.snapshot, rows, instant, turn)
                definition = one.snapshot.definition
                tables[leaf.number] = ordered_down(
                    rows, definition.ticks(rows.column(definition.time))
                )
                count += rows.num_rows
            else:
                files[leaf.number] = _as_files(reader, one, stretch, tick, turn)
                count += about
        return WindowRows(tables, files, count, pieces)


def _about(reader: LeafReader, snapshot: StreamSnapshot, stretch: Stretch) -> int:
    """How many rows lie in a stretch, if those of a block are spread evenly; none is read."""
    low, high = stretch.low, stretch.until.tick
    pieces = [
        (block.low, block.high, block.row_count) for block in snapshot.blocks.overlapping(low, high)
    ]
    pieces += [(piece.low, piece.high, piece.rows.num_rows) for piece in snapshot.tail]
    count = 0
    for first, last, rows in pieces:
        inside = min(last, high) - (first if low is None else max(first, low)) + 1
        if inside > 0 and rows:
            count += -(-rows * inside // (last - first + 1))
    window = reader.leaf.window
    return count if window.rows is None or not reader.leaf.in_ring else min(count, window.rows)


def _as_files(
    reader: LeafReader, files: StoredFiles, stretch: Stretch, tick: int, turn: int | None
) -> Relation:
    """A window as files; the places where it begins and ends are a condition."""
    snapshot, leaf = files.snapshot, reader.leaf
    definition = snapshot.definition
    if leaf.in_ring:
        assert leaf.window.rows is not None
        after = reader.before_last(snapshot, stretch, leaf.window.rows)
        stretch = Stretch(after, stretch.until, stretch.oldest)
    until = stretch.until
    parts = [f"NOT {LATE}", until_place(definition, until.tick, until.sequence)]
    if stretch.after is not None:
        parts.append(after_place(definition, stretch.after.tick, stretch.after.sequence))
    oldest = [bound for bound in (stretch.oldest, snapshot.horizon) if bound is not None]
    if oldest:
        parts.append(from_tick(definition, max(oldest)))
    computed = []
    if leaf.newest:
        computed.append((NEWEST, _newest(reader, snapshot, stretch, tick, turn)))
    named = {*reader.columns, definition.time}
    stored = [name for name in definition.stored_schema.names if name in named]
    columns = shown_columns(leaf, stored)
    return files.relation(columns, (Range(stretch.low, until.tick),), " AND ".join(parts), computed)


def _newest(
    reader: LeafReader, snapshot: StreamSnapshot, stretch: Stretch, tick: int, turn: int | None
) -> str:
    """The condition that a row is of the newest chunk."""
    cut, definition = reader.leaf.cut, snapshot.definition
    assert cut is not None
    place: FeedCursor | None
    if cut.rows is not None:
        place = reader.before_last(snapshot, stretch, cut.rows)
    elif reader.chunks is not None:
        assert turn is not None
        place = reader.chunks.newest_start(turn)
    else:
        assert reader.window_ticks is not None
        return from_tick(definition, tick - reader.window_ticks // cut.keep)
    return "TRUE" if place is None else after_place(definition, place.tick, place.sequence)


def shown_columns(leaf: Leaf, names: Sequence[str]) -> list[str]:
    """The columns of a window that the query may see: `*` must not show hidden ones."""
    exposed = set(leaf.exposed)
    return [name for name in names if name in exposed]
