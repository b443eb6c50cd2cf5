"""`demo:linearroad` at work: one insert and one punctuation for each second of simulated traffic.

What has been delivered is known by its number of rows, which is durable with the rows themselves. A run
that goes on simulates from the beginning and leaves out so many: the same scenario gives the same
rows, so each is stored exactly once.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pyarrow as pa

from headwater.errors import BindError, DataError
from headwater.sources.demo import DemoSource
from headwater.sources.runner import SourceFeed, SourceRunner, SourceSurroundings

from .options import parse_ride
from .traffic.stream import SCHEMA, Traffic, batch_of

MICROSECONDS = 1_000_000


class LinearRoadRunner(SourceRunner):
    """One run of the demo's source."""

    def __init__(self, feed: SourceFeed, around: SourceSurroundings) -> None:
        super().__init__(feed, around)
        self._ride = parse_ride(feed.options.demo)

    def run(self) -> None:
        """Inserts until the traffic ends; from where the table has it after a full disk."""
        self.patiently(self._ride_on)

    def _ride_on(self) -> None:
        """Inserts the reports of one second after the other, each when it is due."""
        check_columns(self.feed.table.definition.schema)
        traffic = self._traffic()
        if traffic.second > self._ride.scenario.start_s:
            self._punctuate(traffic.second - 1)  # the run before may have ended between the two
        first, begun = traffic.second, time.monotonic()
        self.started_at = datetime.now(UTC)  # the first second is due now
        while not traffic.ended and not self.stopping.is_set():
            rows, last = batch_of(traffic, self._ride.batch_s), traffic.second - 1
            if self._ride.speed is not None:
                due = begun + (last - first) / self._ride.speed
                if self.stopping.wait(max(due - time.monotonic(), 0.0)):
                    return
            self._insert(rows, last)

    def interrupt(self) -> None:
        """Nothing: `stopping` ends every wait."""

    def _traffic(self) -> Traffic:
        """The traffic from where the table has it."""
        progress = self.feed.table.state.progress.get(self.feed.key)
        stored = 0 if progress is None else progress.row_count
        traffic = Traffic(self._ride.scenario)
        while stored > 0 and not self.stopping.is_set() and not traffic.ended:
            stored -= traffic.next_numbers().shape[1]
        if stored < 0:
            raise DataError("the table does not have whole seconds of this source's traffic")
        return traffic

    def _insert(self, rows: pa.RecordBatch, last: int) -> None:
        table = self.feed.table
        self.busy = True
        try:
            if rows.num_rows:
                table.insert(fitted(rows, table.definition.schema), source=self.feed.key)
            self._punctuate(last)
            self.delivered(rows.num_rows)
        finally:
            self.busy = False

    def _punctuate(self, last: int) -> None:
        """A second is over."""
        if not self.feed.table.definition.by_arrival:
            self.feed.table.advance(self._time(last), source=self.feed.key)

    def _time(self, second: int) -> object:
        """A second as the table writes its T."""
        definition = self.feed.table.definition
        whole = pa.types.is_integer(definition.time_type)
        return second if whole else definition.value(second * MICROSECONDS)


def check_columns(schema: pa.Schema) -> None:
    """BindError if the table has none of the stream's columns, or needs others."""
    known = {name.casefold() for name in SCHEMA.names}
    missing = [f.name for f in schema if not f.nullable and f.name.casefold() not in known]
    if missing or not known & {name.casefold() for name in schema.names}:
        raise BindError(
            f"demo:linearroad has no column {missing[0] if missing else schema.names[0]}",
            sqlstate="42703",
            hint="columns: " + ", ".join(SCHEMA.names),
        )


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that the table has; seconds as its time where that is a timestamp."""
    wanted = {field.name.casefold(): field for field in schema}
    columns = {}
    for name in SCHEMA.names:
        field, column = wanted.get(name), rows.column(name)
        if field is None:
            continue
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64()).cast(pa.timestamp("s")).cast(field.type)
        columns[field.name] = column
    return pa.RecordBatch.from_pydict(columns)


SOURCE = DemoSource(parse_ride, check_columns, LinearRoadRunner)
