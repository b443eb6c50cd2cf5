"""A process that changes its queries, views and tables while rows come: what moves between hosts stays exact.

    python -m tests.factories.moves SEED COUNT CYCLES

First so many random statements, then, in another database, so many times queries and views come and go, and
nothing grows; 0 leaves one of them out. The last line of its output is JSON. A process of its own has a Spark
of its own.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path

import psutil

import headwater
from tests.factories import load
from tests.factories.campaign import held, nothing_left, pids, settled
from tests.harness.patience import until

QUERIES = [*load.QUERIES, "stored", *load.UPDATES]  # those whose results are compared
EXTRA = "SELECT k, max(v) m FROM a [INTERVAL 3 SECONDS] GROUP BY k SAMPLE INTERVAL 1 SECONDS"
RANGED = (
    "CREATE STREAMING TABLE r (ts INT, k STRING, v INT) TIMESTAMP BY ts RANGE INTERVAL 50 SECONDS"
)
RANGED_VIEW = "SELECT k, count(*) n, sum(v) s FROM r GROUP BY k"
PACE_S = 0.03  # so that rows are old enough to be deleted before the last statement
KEPT_SECONDS = 60  # rows that no window reaches any more are deleted
CYCLES_BEFORE = 10  # until caches are filled
SECONDS_BEFORE = 60
MORE_THREADS, MORE_FILES, MORE_BYTES = 4, 8, 48 << 20


class Mover:
    """Random statements over a database that is being fed."""

    def __init__(self, db: headwater.Database, feeder: load.Feeder, choose: random.Random) -> None:
        self._db, self._feeder, self._choose = db, feeder, choose
        self._paused: set[str] = set()
        self.done: dict[str, int] = {}

    def move(self) -> None:
        """One of them."""
        name = self._choose.choice([n for n in dir(self) if n.startswith("do_")])
        self.done[name[3:]] = self.done.get(name[3:], 0) + 1
        getattr(self, name)()

    def do_pause(self) -> None:
        """A query waits, or goes on."""
        name = self._choose.choice([*(n for n in QUERIES if n != "stored"), "passed"])
        self._db.sql(f"{'RESUME' if name in self._paused else 'PAUSE'} QUERY {name}")
        self._paused ^= {name}

    def do_extra(self) -> None:
        """A query comes and goes."""
        self._db.sql(f"CREATE CONTINUOUS QUERY extra AS {EXTRA}")
        self._feeder.wait_seconds(self._choose.randint(0, 3))
        self._db.sql("DROP QUERY extra")

    def do_delete(self) -> None:
        """Old rows that every query has behind itself are deleted: views are made again without them."""
        self.resume_all()
        with self._feeder.turn:
            self._db.flush()
            oldest = self._feeder.second - KEPT_SECONDS
        self._db.sql(f"DELETE FROM a WHERE ts < {oldest}")

    def do_range(self) -> None:
        """Other rows of the table are seen."""
        self._db.sql(f"ALTER TABLE r SET RANGE INTERVAL {self._choose.randint(20, 70)} SECONDS")

    def do_replace(self) -> None:
        """A view is made again under its name, whole or in parts."""
        parts = self._choose.randint(1, 3)
        text = load.VIEWS["counts"]
        self._db.sql(f"CREATE OR REPLACE VIEW counts WITH (parts = {parts}) AS {text}")

    def do_drop(self) -> None:
        """One of two views with the same groups goes, and comes again."""
        self._db.sql("DROP VIEW sums")
        self._feeder.wait_seconds(self._choose.randint(0, 2))
        self._db.sql(f"CREATE VIEW sums AS {load.VIEWS['sums']}")

    def do_parts(self) -> None:
        """A view or a query goes on in other parts, or whole."""
        views = [("VIEW", name) for name in ("halves", "edges", "medians", "newest_two")]
        kind, name = self._choose.choice([("QUERY", "most"), *views])
        if name not in self._paused:
            self._db.sql(f"ALTER {kind} {name} SET (parts = {self._choose.randint(1, 3)})")

    def do_read(self) -> None:
        """Views are read wherever they are."""
        for name in ("ranged", *load.VIEWS):
            self._db.sql(f"SELECT * FROM {name}")

    def resume_all(self) -> None:
        """What waits goes on."""
        while self._paused:
            self._db.sql(f"RESUME QUERY {self._paused.pop()}")


def ranged_rows(number: int) -> list[tuple[int, str, int]]:
    """Rows of the table whose RANGE changes: one batch."""
    return load.rows_of("a", 3 * number) or [(3 * number, "x", 1)]


def check_views(db: headwater.Database, batches: int) -> None:
    """Views are what a query over their tables gives now; of rows that RANGE has dropped too."""
    for name in ("sums", "counts", "halves", "medians", "newest_two"):
        wanted = sorted(map(str, db.sql(load.VIEWS[name]).rows()))
        assert load.view_rows(db, name) == wanted, name
        assert db.sql(f"VERIFY VIEW {name}").rows() == [], name
    groups: dict[str, list[int]] = {}
    for _, key, value in (row for number in range(batches) for row in ranged_rows(number)):
        groups.setdefault(key, []).append(value)
    made = [(key, len(values), sum(values)) for key, values in groups.items()]
    assert load.view_rows(db, "ranged") == sorted(map(str, made))


def moved(folder: Path, count: int, choose: random.Random) -> dict[str, object]:
    """So many statements, and the comparison."""
    with load.connected(folder) as db:
        load.create(db)
        db.sql(RANGED)
        db.sql(f"CREATE VIEW ranged AS {RANGED_VIEW}")
        settled(db)
        with load.Feeder(db, pace_s=PACE_S) as feeder:
            mover = Mover(db, feeder, choose)
            for number in range(count):
                mover.move()
                db.insert("r", ranged_rows(number))
                if choose.random() < 0.3:
                    db._factories.settle(30)
            mover.resume_all()
            feeder.wait_seconds(1)
            end = feeder.stop()
        settled(db)
        load.finish(db, end)
        found = load.compare(db, end, QUERIES)
        check_views(db, count)
        return {"moves": mover.done, "results": found}


def cycles(folder: Path, count: int) -> dict[str, object]:
    """Queries and views come, move to a factory, and go; nothing is left of them in any process."""
    with load.connected(folder) as db:
        load.create(db)
        settled(db)
        first: tuple[int, ...] | None = None
        for second in range(SECONDS_BEFORE):
            load.insert_second(db, second)  # no more later: what rows take is not counted
        for number in range(count):
            db.sql(f"CREATE CONTINUOUS QUERY extra AS {EXTRA}")
            db.sql("CREATE VIEW extra_view AS SELECT k, min(v) low FROM a GROUP BY k")
            settled(db)
            assert db.sql("SELECT * FROM extra_view").rows()
            db.sql("DROP VIEW extra_view")
            db.sql("DROP QUERY extra")
            if number == CYCLES_BEFORE:
                first = sizes(db)
        assert first is not None
        until(lambda: _fits(first, sizes(db)), f"from {first} to {sizes(db)}")
        load.finish(db, SECONDS_BEFORE)
        found, last = load.compare(db, SECONDS_BEFORE), sizes(db)
    return {"cycles": count, "first": first, "last": last, "cycle_results": found}


def _fits(first: tuple[int, ...], last: tuple[int, ...]) -> bool:
    more = (MORE_THREADS, MORE_FILES, MORE_BYTES) * (len(first) // 3)
    return all(b <= a + m for a, b, m in zip(first, last, more, strict=True))


def sizes(db: headwater.Database) -> tuple[int, ...]:
    """Threads, open files and memory of this process and of each factory."""
    found = [*held(), psutil.Process(os.getpid()).memory_info().rss]
    for pid in pids(db):
        process = psutil.Process(pid)
        found += [process.num_threads(), process.num_fds(), process.memory_info().rss]
    return tuple(found)


def main(seed: str, count: str, cycle_count: str) -> None:
    """What is asked for, and a look at what is left of each."""
    found: dict[str, object] = {}
    if int(count):
        with nothing_left(), tempfile.TemporaryDirectory() as folder:
            found |= moved(Path(folder), int(count), random.Random(int(seed)))
    if int(cycle_count):
        with nothing_left(), tempfile.TemporaryDirectory() as folder:
            found |= cycles(Path(folder), int(cycle_count))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
