"""Q2 on one system at a time: `max(s1.x1), avg(s2.x1)` of two windowed streams joined on x2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.datacell import data, duck, ours
from benchmarks.datacell.data import Keys
from benchmarks.datacell.ours import Feed
from benchmarks.datacell.q1 import Kind
from benchmarks.datacell.series import Series, values

STREAMS = ("s1", "s2")
WARM_UP = 2


@dataclass(frozen=True)
class Q2:
    """One setting of the experiment; both streams have the same window."""

    panes: int
    step: int
    keys: Keys

    @property
    def window(self) -> int:
        """|W|."""
        return self.panes * self.step

    def feed(self, number: int, slides: int = 1) -> Feed:
        """The rows of some slides of both streams."""
        first, count = number * self.step, self.step
        return [
            (
                name,
                pa.concat_tables(
                    [data.keyed(first + n * count, count, self.keys, s) for n in range(slides)]
                ),
            )
            for s, name in enumerate(STREAMS)
        ]

    def feeds(self, count: int) -> Iterator[tuple[int, Feed]]:
        """The slides after the first window, with their instants."""
        for number in range(self.panes, self.panes + count):
            yield number * self.step + self.step, self.feed(number)

    def continuous(self, kind: Kind) -> str:
        """The query as we take it."""
        window, sample = f"[ROWS {self.window}]", f"{self.step} ROWS"
        if kind == "interval":
            window = f"[INTERVAL {self.window} SECONDS BEFORE]"
            sample = f"INTERVAL {self.step} SECONDS"
        return (
            f"SELECT max(s1.x1) AS most, avg(s2.x1) AS mean FROM s1 {window}, s2 {window} "
            f"WHERE s1.x2 = s2.x2 SAMPLE {sample}"
        )

    def one_time(self, instant: int, kind: Kind) -> str:
        """Both windows of an instant by ranges of T."""
        low, high = instant - self.window, instant
        if kind == "interval":
            low, high = low - 1, high - 1
        ranges = " AND ".join(f"{s}.t > {low} AND {s}.t <= {high}" for s in STREAMS)
        return (
            "SELECT max(s1.x1) AS most, avg(s2.x1) AS mean FROM s1, s2 "
            f"WHERE s1.x2 = s2.x2 AND {ranges}"
        )


def headwater(work: Q2, kind: Kind, slides: int, mode: str = "auto", **settings: object) -> Series:
    """Ours; the tables hold a window when the query is made."""
    with ours.database(**settings) as db:
        ours.make_tables(db, *STREAMS)
        for table, rows in work.feed(0, work.panes):
            db.insert(table, rows)
        ours.make_query(db, work.continuous(kind), mode)
        feeds = (feed for _, feed in work.feeds(slides + WARM_UP))
        return ours.follow(db, feeds, values, WARM_UP)


def duck_reevaluation(work: Q2, kind: Kind, slides: int) -> Series:
    """DuckDB joins both windows at each instant."""
    with duck.database() as peer:
        peer.make_tables(*STREAMS)
        for table, rows in work.feed(0, work.panes):
            peer.insert(table, rows)

        def clean(instant: int) -> None:
            for name in STREAMS:
                peer.run(f"DELETE FROM {name} WHERE t <= {instant - work.window}")

        plan = duck.Plan(lambda i: peer.ask(work.one_time(i, kind)), clean=clean)
        return duck.follow(peer, work.feeds(slides + WARM_UP), plan, values, WARM_UP)
