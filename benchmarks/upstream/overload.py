"""A whole database under overload: one table, one slow Python function, two queries over it (US2, US6).

The table is fed at five times what the function can process. `fresh` runs WITH UPDATES, `every` WITH APPEND;
staleness is what `headwater.staleness` says. Both run at once, so that one machine state counts for both.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import headwater

FACTOR = 5
KEYS = 10
COST_S = 0.01
PIECE_S = 0.02
SAMPLE_S = 0.25
QUERIES = {"fresh": "WITH UPDATES", "every": "WITH APPEND"}
STALENESS = (
    "SELECT query_name, application_staleness_s, rows_in, processed, superseded, shed, waiting,"
    " in_process FROM headwater.staleness WHERE key IS NULL"
)


@dataclass
class Overload:
    """What was measured: by query, the staleness at each time."""

    times: list[float] = field(default_factory=list)
    staleness: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in QUERIES})
    inserted: int = 0
    stored: int = 0
    counts_add_up: bool = True

    def mean(self, query: str, begin: float, end: float) -> float:
        """The mean staleness of a query between two times, in seconds; the last sample if there is none."""
        pairs = list(zip(self.times, self.staleness[query], strict=True))
        found = [s for t, s in pairs if begin <= t < end] or [s for t, s in pairs if t < end][-1:]
        return sum(found) / max(len(found), 1)

    def ratio(self, end: float) -> float:
        """How many times staler the append query is in the last tenth of the time."""
        begin = 0.9 * end
        return self.mean("every", begin, end) / max(self.mean("fresh", begin, end), 1e-6)

    def trend(self, end: float) -> float:
        """Staleness WITH UPDATES in the last quarter of the time over that in the quarter before."""
        middle = 0.75 * end
        before, after = self.mean("fresh", end / 2, middle), self.mean("fresh", middle, end)
        return after / max(before, 1e-6)


def slow(price: float) -> float:
    """A function that takes its time."""
    import time

    time.sleep(0.01)  # not a wait for progress: it is the cost of a row
    return 2 * price


def overloaded(db: headwater.Database, seconds: float, expression: str = "slow(price)") -> Overload:
    """Feeds a table for so many seconds and watches both queries; the expression takes COST_S a row."""
    if "slow" in expression:
        db.create_function("slow", slow, returns="DOUBLE")
    db.sql("CREATE STREAMING TABLE ticks (symbol STRING, price DOUBLE) UPDATE KEY (symbol)")
    for name, clause in QUERIES.items():
        select = f"SELECT symbol, {expression} AS s FROM ticks {clause}"
        db.sql(f"CREATE CONTINUOUS QUERY {name} AS {select}")
    found = Overload()
    db.insert("ticks", [("s0", 0.0)])
    db.flush()  # workers have started
    begun, fed = time.monotonic(), 0
    while (now := time.monotonic() - begun) < seconds:
        wanted = int(now * FACTOR / COST_S)
        rows = [(f"s{n % KEYS}", float(n)) for n in range(fed, wanted)]
        db.insert("ticks", rows)
        fed = wanted
        if now >= len(found.times) * SAMPLE_S:
            _sample(db, found, now)
        time.sleep(PIECE_S)  # not a wait for progress: rows come at a rate
    found.inserted = fed + 1
    stored = db.sql("SELECT row_count FROM headwater.tables WHERE name = 'ticks'")
    found.stored = int(stored.rows()[0][0])
    for name in QUERIES:
        db.sql(f"DROP QUERY {name}")
    return found


def _sample(db: headwater.Database, found: Overload, now: float) -> None:
    found.times.append(now)
    for name, staleness, rows_in, *places in db.sql(STALENESS).rows():
        found.staleness[name].append(staleness)
        found.counts_add_up &= rows_in == sum(places)


def measured(seconds: float) -> dict[str, object]:
    """One run in a database of its own, for the report."""
    with headwater.connect(":memory:") as db:
        found = overloaded(db, seconds)
    return {
        "seconds": seconds,
        "times": found.times,
        "staleness": found.staleness,
        "ratio": found.ratio(seconds),
        "trend": found.trend(seconds),
        "rows missing": found.inserted - found.stored,
    }
