"""Q1 on one system at a time: `SELECT x1, sum(x2) FROM s [W] WHERE x1 > v GROUP BY x1`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from benchmarks.datacell import data, duck, ours
from benchmarks.datacell.ours import FILL_ROWS, Feed
from benchmarks.datacell.series import Series, checksum

Kind = Literal["rows", "interval"]
WARM_UP = 2
LARGEST_INSERT = 640_000
CHECK_EVERY = 16  # instants between two checks of windows by time


@dataclass(frozen=True)
class Q1:
    """One setting of the experiment."""

    panes: int  # basic windows of a window
    step: int
    groups: int
    selectivity: float = 0.2

    @property
    def window(self) -> int:
        """|W|."""
        return self.panes * self.step

    @property
    def bound(self) -> int:
        """v."""
        return round(self.groups * (1 - self.selectivity)) - 1

    def feed(self, number: int) -> Feed:
        """The rows of one slide, in inserts of a bounded size; T of its last row is its instant."""
        start = number * self.step
        sizes = [min(LARGEST_INSERT, self.step - o) for o in range(0, self.step, LARGEST_INSERT)]
        return [
            ("s", data.grouped(start + place * LARGEST_INSERT, size, self.groups))
            for place, size in enumerate(sizes)
        ]

    def feeds(self, first: int, count: int) -> Iterator[Feed]:
        """Slides from one on."""
        return (self.feed(number) for number in range(first, first + count))

    def timed_feeds(self, first: int, count: int) -> Iterator[tuple[int, Feed]]:
        """Slides with their instants."""
        return ((n * self.step + self.step, self.feed(n)) for n in range(first, first + count))

    def fillings(self, rows: int) -> Iterator[pa.Table]:
        """A whole window in batches of about so many rows, the same that slides bring."""
        together = max(rows // self.step, 1)
        for first in range(0, self.panes, together):
            numbers = range(first, min(first + together, self.panes))
            yield pa.concat_tables([rows for n in numbers for _, rows in self.feed(n)])

    def continuous(self, kind: Kind) -> str:
        """The query as we take it: by count as in the paper, or by time."""
        window, sample = f"[ROWS {self.window}]", f"{self.step} ROWS"
        if kind == "interval":
            window = f"[INTERVAL {self.window} SECONDS BEFORE]"
            sample = f"INTERVAL {self.step} SECONDS"
        return (
            f"SELECT x1, sum(x2) AS total FROM s {window} WHERE x1 > {self.bound} "
            f"GROUP BY x1 SAMPLE {sample}"
        )

    def one_time(self, instant: int, kind: Kind = "rows") -> str:
        """The window of an instant by a range of T."""
        low, high = instant - self.window, instant
        if kind == "interval":
            low, high = low - 1, high - 1
        return (
            f"SELECT x1, sum(x2)::BIGINT AS total FROM s WHERE t > {low} AND t <= {high} "
            f"AND x1 > {self.bound} GROUP BY x1"
        )


def incremental(work: Q1, kind: Kind, slides: int, **settings: object) -> Series:
    """Ours from the first row on: the window fills slide by slide, then `slides` are counted."""
    with ours.database(**settings) as db:
        ours.make_tables(db, "s")
        ours.make_query(db, work.continuous(kind))
        return ours.follow(db, work.feeds(0, work.panes + slides), checksum, work.panes)


def prefilled(work: Q1, kind: Kind, slides: int, mode: str = "auto", **settings: object) -> Series:
    """Ours on a table that holds a whole window when the query is made: for the slow modes."""
    with ours.database(**settings) as db:
        ours.make_tables(db, "s")
        for rows in work.fillings(FILL_ROWS):
            db.insert("s", rows)
        ours.make_query(db, work.continuous(kind), mode)
        return ours.follow(db, work.feeds(work.panes, WARM_UP + slides), checksum, WARM_UP)


def duck_reevaluation(work: Q1, slides: int) -> tuple[Series, Series]:
    """DuckDB over the whole window; and, not timed, what a window by time holds now and then."""
    by_time = Series()
    with duck.database() as peer:
        peer.make_tables("s")
        for rows in work.fillings(10 * FILL_ROWS):
            peer.insert("s", rows)

        def look(instant: int) -> None:
            if instant // work.step % CHECK_EVERY == 0:
                by_time.answers[instant] = checksum(peer.ask(work.one_time(instant, "interval")))

        def clean(instant: int) -> None:
            peer.run(f"DELETE FROM s WHERE t <= {instant - work.window}")

        plan = duck.Plan(lambda i: peer.ask(work.one_time(i)), look=look, clean=clean)
        feeds = work.timed_feeds(work.panes, slides + WARM_UP)
        return duck.follow(peer, feeds, plan, checksum, WARM_UP), by_time


def duck_incremental(work: Q1, slides: int) -> Series:
    """DuckDB with a table of partials, one per pane and group, in memory as ours are."""
    with duck.database() as peer:
        peer.make_tables("s")
        for rows in work.fillings(10 * FILL_ROWS):
            peer.insert("s", rows)
        peer.run(
            f"CREATE TEMP TABLE partials AS SELECT (t - 1) // {work.step} AS pane, x1, "
            f"sum(x2)::BIGINT AS total FROM s WHERE x1 > {work.bound} GROUP BY ALL"
        )
        plan = _partials_plan(peer, work)
        feeds = work.timed_feeds(work.panes, slides + WARM_UP)
        return duck.follow(peer, feeds, plan, checksum, WARM_UP)


def _partials_plan(peer: duck.Duck, work: Q1) -> duck.Plan:
    def oldest(instant: int) -> int:
        return instant // work.step - work.panes

    def fold(instant: int, feed: Feed) -> None:
        peer.connection.register("rows_in", feed[0][1])
        peer.run(
            f"INSERT INTO partials SELECT {instant // work.step - 1}, x1, sum(x2) "
            f"FROM rows_in WHERE x1 > {work.bound} GROUP BY x1"
        )

    def ask(instant: int) -> pa.Table:
        return peer.ask(
            "SELECT x1, sum(total)::BIGINT AS total FROM partials "
            f"WHERE pane >= {oldest(instant)} GROUP BY x1"
        )

    def clean(instant: int) -> None:
        peer.run(f"DELETE FROM partials WHERE pane <= {oldest(instant)}")
        peer.run(f"DELETE FROM s WHERE t <= {instant - work.window}")

    return duck.Plan(ask, fold, clean=clean)
