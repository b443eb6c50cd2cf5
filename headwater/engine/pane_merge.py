"""Aggregates over sliding windows: each pane is folded once, whatever number of windows it is in (DC4, DC9).

Owns: the partials of panes, and one sliding merge for each window over them. A row goes into one pane; a
pane is folded when the first window needs it, and every other window merges the same partial. Must never:
know whose windows they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.merges import FoldMerge, PaneChunk, SparkPartials, absorbed
from headwater.fold.aggregation import Aggregation, Partial
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.fold.merges import renumbering
from headwater.fold.pane import Panes, Window
from headwater.fold.sliding import SlidingWindow, worth_cleaning


class Part:
    """A pane, or what one chunk brought of it: rows, or Spark's partials, until they are folded."""

    __slots__ = ("_rows", "pane", "partial")

    def __init__(self, pane: int, rows: PaneChunk | tuple[pa.Table, list[pa.Table]]) -> None:
        self.pane = pane
        self._rows: PaneChunk | tuple[pa.Table, list[pa.Table]] | None = rows
        self.partial: Partial | None = None

    def fold(self, sliding: SlidingWindow) -> Partial:
        """Its partial, made once by the keys and aggregates of any of the windows."""
        rows = self._rows
        if isinstance(rows, PaneChunk):
            arguments = [Column(argument) for argument in rows.arguments]
            self.partial = sliding.fold(rows.keys, arguments, rows.order, len(rows.places))
        elif rows is not None:
            self.partial = absorbed(sliding.aggregation, sliding, *rows)
        self._rows = None
        assert self.partial is not None
        return self.partial

    def remap(self, new: Slots) -> None:
        """Slots were renumbered."""
        if self.partial is not None:
            pairs = tuple(type(p)(new[p.slots], p.values) for p in self.partial.pairs)
            self.partial = Partial(new[self.partial.slots], self.partial.vectors, pairs)


class PaneWindow:
    """One window over the panes: its sliding merge, and the parts that wait for its instants."""

    def __init__(self, panes: Panes, window: Window, sliding: SlidingWindow) -> None:
        self._panes, self.window, self.sliding = panes, window, sliding
        self.waiting: deque[Part] = deque()
        self.place: int | None = None  # of the last instant that it was moved to

    @property
    def size(self) -> int:
        """Partials held."""
        return self.sliding.pane_count + len(self.waiting)

    def add(self, part: Part) -> None:
        """A part of a pane, if the window ever holds it."""
        if len(self._panes.instants(part.pane, self.window)):
            self.waiting.append(part)

    def advance(self, place: int) -> None:
        """Push the panes that an instant sees; evict those that it does not.

        The instant may still be incomplete: the rest of its panes is pushed when it is asked for again.
        """
        self.place, panes = place, self._panes.of_window(self.window, place)
        self.sliding.evict(panes.start)
        while self.waiting and self.waiting[0].pane < panes.stop:
            part = self.waiting.popleft()
            if part.pane >= panes.start:
                self._push(part)

    def push_early(self) -> None:
        """Push all that waits: it is of the next instant."""
        while self.waiting:
            self._push(self.waiting.popleft())

    def _push(self, part: Part) -> None:
        self.sliding.push(part.pane, part.fold(self.sliding))


class PaneMerge(FoldMerge):
    """Aggregates over one sliding window, or over several that have their panes in common."""

    def __init__(self, aggregation: Aggregation, panes: Panes, windows: Sequence[Window]) -> None:
        self._aggregation, self._panes = aggregation, panes
        self._lookup = Lookup(aggregation.key_types) if len(windows) > 1 else None
        make = partial(SlidingWindow, aggregation, lookup=self._lookup, steady=True)
        self.windows = [PaneWindow(panes, window, make(panes.count(window))) for window in windows]

    @property
    def structure(self) -> str:  # type: ignore[override]
        """The name of the first window's sliding merge."""
        return self.windows[0].sliding.structure

    @property
    def size(self) -> int:
        """Partials held; those of several windows count once, where most are."""
        return max(window.size for window in self.windows)

    # Rows

    def add(self, chunk: PaneChunk) -> None:
        """Rows to be folded when their pane's instant comes."""
        for pane, rows in self._panes.split(chunk.places):
            assert isinstance(rows, slice)
            self._add(Part(pane, chunk.part(rows.start, rows.stop)))

    def add_partials(self, partials: SparkPartials) -> None:
        """Partials that Spark made, in the order of their panes."""
        for pane in np.unique(partials.panes).tolist():
            table = partials.table.filter(pa.array(partials.panes == pane))
            values = [t.filter(pa.array(places == pane)) for places, t in partials.distinct]
            self._add(Part(pane, (table, values)))

    def _add(self, part: Part) -> None:
        for window in self.windows:
            window.add(part)

    def push_early(self) -> None:
        """Fold what waits although its instant has not come: nothing before it is still to be asked."""
        for window in self.windows:
            window.push_early()

    # Instants

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Move the first window to an instant."""
        self.windows[0].advance(place)

    def result(self) -> pa.Table:
        """The groups of the first window."""
        return self.result_of(self.windows[0])

    def result_of(self, window: PaneWindow) -> pa.Table:
        """The groups of a window."""
        found = window.sliding.result()
        if self._lookup is not None and worth_cleaning(self._lookup, found.num_rows):
            self._clean(self._lookup)
        return found

    def _clean(self, lookup: Lookup) -> None:
        """Forget the keys that no window and no partial that waits has, if they are most."""
        parts = list({id(part): part for w in self.windows for part in w.waiting}.values())
        held = [w.sliding.present for w in self.windows]
        held += [part.partial.slots for part in parts if part.partial is not None]
        live, before = np.unique(np.concatenate(held)), len(lookup)
        if not worth_cleaning(lookup, len(live)):
            return
        lookup.keep(live)
        for window in self.windows:
            window.sliding.remap(live, before)
        new = renumbering(live, before)
        for part in parts:
            part.remap(new)

    # Snapshots

    def state(self) -> dict[str, Any]:
        """The sliding merge's, of one window."""
        (window,) = self.windows
        window.push_early()
        return {"sliding": window.sliding.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.windows[0].sliding.restore(state["sliding"])
