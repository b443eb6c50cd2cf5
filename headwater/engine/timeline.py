"""Which instants of a stretch of time are answered one by one: gaps in time are no loops (DC6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.engine.reader import LeafReader
from headwater.engine.sampling import Instant, Sampling
from headwater.storage.streaming.table import StreamingTable


def all_empty(readers: Sequence[LeafReader], instant: Instant) -> bool:
    """Whether no window holds a row at an instant."""
    return all(reader.is_empty(instant.tick) for reader in readers)


def next_on_wall(
    sampling: Sampling, tables: Sequence[StreamingTable], readers: Sequence[LeafReader]
) -> int | None:
    """When the wall clock brings the next instant of tables with arrival time, in µs."""
    arrival = [table for table in tables if table.definition.by_arrival]
    if arrival and sampling.kind == "interval":
        first = sampling.first(readers)
        closed = [table.state.time.closed for table in arrival]
        if first is not None and any(mark is None or mark < first for mark in closed):
            return first + 1
    return None


def timeline(
    sampling: Sampling,
    readers: Sequence[LeafReader],
    first: Instant,
    last: Instant,
    taken_until: int,
    most: int,
) -> Iterator[tuple[Instant, bool]]:
    """The instants to answer, with whether all windows are empty.

    Of more than `most` empty ones in a row only the first and the last; such a run may reach
    beyond the rows that were taken.
    """
    instant = first
    while instant.tick <= min(last.tick, taken_until):
        if not all_empty(readers, instant):
            yield instant, False
            instant = sampling.next_of(instant)
            continue
        stop = _end_of_gap(sampling, readers, instant, last)
        count = (stop.tick - instant.tick) // sampling.step + 1
        if count > most:
            yield from ((instant, True), (stop, True))
        else:
            while instant.tick <= stop.tick:
                yield instant, True
                instant = sampling.next_of(instant)
        instant = sampling.next_of(stop)


def _end_of_gap(
    sampling: Sampling, readers: Sequence[LeafReader], instant: Instant, last: Instant
) -> Instant:
    """The last instant of a run over empty windows."""
    step = sampling.step
    seen = [reader.next_seen(instant.tick) for reader in readers]
    firsts = [-(-tick // step) * step for tick in seen if tick is not None]
    end = max(min([last.tick, *(tick - step for tick in firsts)]), instant.tick)
    return Instant(end, end)
