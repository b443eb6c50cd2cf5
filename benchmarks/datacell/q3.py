"""Q3 on one system at a time: `max(x1), sum(x2)` since the landmark, `x1 > v`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.datacell import data, duck, ours
from benchmarks.datacell.ours import FILL_ROWS, Feed
from benchmarks.datacell.series import Series, values

GROUPS = 1000
BOUND = 799


@dataclass(frozen=True)
class Q3:
    """One setting of the experiment."""

    step: int
    windows: int

    def feeds(self) -> Iterator[tuple[int, Feed]]:
        """Slides, each in several inserts, with their instants."""
        for number in range(self.windows):
            first = number * self.step
            sizes = range(0, self.step, FILL_ROWS)
            yield (
                first + self.step,
                [
                    ("s", data.grouped(first + o, min(FILL_ROWS, self.step - o), GROUPS))
                    for o in sizes
                ],
            )

    def continuous(self) -> str:
        """The query as we take it."""
        return (
            f"SELECT max(x1) AS most, sum(x2) AS total FROM s [LANDMARK] WHERE x1 > {BOUND} "
            f"SAMPLE {self.step} ROWS"
        )


def headwater(work: Q3, mode: str = "auto") -> Series:
    """Ours, from the first row on."""
    with ours.database() as db:
        ours.make_tables(db, "s")
        ours.make_query(db, work.continuous(), mode)
        return ours.follow(db, (feed for _, feed in work.feeds()), values, 0)


def duck_reevaluation(work: Q3) -> Series:
    """DuckDB reads everything again at each instant."""
    with duck.database() as peer:
        peer.make_tables("s")
        text = f"SELECT max(x1), sum(x2)::BIGINT FROM s WHERE x1 > {BOUND}"
        return duck.follow(peer, work.feeds(), duck.Plan(lambda _: peer.ask(text)), values, 0)
