"""A small load with every kind of query: what is inserted, what is asked, and what must come of it.

Rows are a function of the second, so every process inserts the same ones; a batch id makes a repeated second
harmless. What a disturbed database answered is compared with a database that nobody disturbed and that has no
factories, which got the same batches.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import headwater
from tests.harness.patience import PATIENCE_S, until

DISORDER = 2
KEYS_AT_ONCE = 16  # in one insert
PACE_S = 0.06  # rows come all the time, and whatever was killed has processor time to come back
TABLES = {
    "a": "CREATE STREAMING TABLE IF NOT EXISTS a (ts INT, k STRING, v INT) TIMESTAMP BY ts",
    "b": "CREATE STREAM IF NOT EXISTS b (ts INT, k STRING, w INT) TIMESTAMP BY ts"
    f" WATERMARK INTERVAL '{DISORDER}' SECOND",
    "p": "CREATE STREAM IF NOT EXISTS p (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)",
}
QUERIES = {
    "sums_of_window": "SELECT k, count(*) n, sum(v) s, max(v) m FROM a [INTERVAL 5 SECONDS]"
    " GROUP BY k SAMPLE INTERVAL 2 SECONDS",
    "by_rows": "SELECT k, count(*) n, max(v) m FROM a [ROWS 7] GROUP BY k SAMPLE 3 ROWS",
    "epochs": "SELECT x.k, count(*) n, sum(x.v) v, max(y.w) w FROM a CUT ON ts BY INTERVAL '3' SECOND x,"
    " STREAM(b, 'CUT ON ts BY 3 SECS', 'BLOCK', 2) y WHERE x.k = y.k GROUP BY x.k",
    "most": "SELECT k, v, count(*) n FROM a [INTERVAL 6 SECONDS] GROUP BY k, v HAVING count(*) < 9"
    " ORDER BY n DESC, k, v LIMIT 3 SAMPLE INTERVAL 1 SECONDS",
    "of_stream": "SELECT k, w, count(*) n, max(ts) last FROM b [INTERVAL 5 SECONDS BEFORE] GROUP BY k, w"
    " SAMPLE INTERVAL 2 SECONDS",
    "over_stored": "SELECT k, sum(n) n, max(s) s FROM stored [INTERVAL 6 SECONDS BEFORE] GROUP BY k"
    " SAMPLE INTERVAL 3 SECONDS",
}
STORED = (
    "CREATE MATERIALIZED VIEW IF NOT EXISTS stored UPDATE KEY (k) AS SELECT k, count(*) n, sum(v) s"
    " FROM a [INTERVAL 4 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)
PASSED = (  # an update query behind which others stand
    "CREATE MATERIALIZED VIEW IF NOT EXISTS passed AS SELECT k, ts, v FROM p WITH UPDATES"
    " WHEN BEHIND INTERVAL '0.01' SECOND REFRESH EVERY INTERVAL '0.1' SECOND FOR k IN ('x')"
)
VIEWS = {
    "sums": "SELECT k, count(*) n, sum(v) s FROM a GROUP BY k",
    "counts": "SELECT k, count(*) n FROM a GROUP BY k",  # the same groups as those of `sums`
    "edges": "SELECT k, min(w) low, max(w) high, count(*) n FROM b GROUP BY k",
    "halves": "SELECT k, v, count(*) n, max(ts) last FROM a GROUP BY k, v",
    "thirds": "SELECT w, count(*) n, min(k) low FROM b GROUP BY w HAVING count(*) > 1",
    "medians": "SELECT k, v, count(*) n, median(ts) m FROM a GROUP BY k, v",  # kept by circuits
    "newest_two": "SELECT k, ts, v FROM a QUALIFY rank() OVER (PARTITION BY k ORDER BY ts DESC) <= 2",
}
OPTIONS = {
    "most": "WITH (parts = 2)",
    "of_stream": "WITH (parts = 3)",
    "halves": "WITH (parts = 2)",
    "thirds": "WITH (parts = 3)",
    "medians": "WITH (parts = 2)",
    "newest_two": "WITH (parts = 3)",
}
UPDATES = {
    "newest": "SELECT k, ts, v FROM p WHERE v > 0 WITH UPDATES",
    "every": "SELECT k, ts, v FROM p WITH APPEND",
    "eager": "SELECT k, count(*) n, sum(v) s FROM p [INTERVAL 4 SECONDS BEFORE] GROUP BY k"
    " SAMPLE INTERVAL 4 SECONDS WITH UPDATES WINDOWS EAGER",
    "of_stored": "SELECT k, n, s FROM stored WITH UPDATES",
    "of_passed": "SELECT k, ts, v FROM passed WITH UPDATES SCHEDULE FIFO",
    "some_passed": "SELECT k, ts, v FROM passed WITH SHEDDING 0.5",
    "matched": "SELECT x.k, x.v, y.s FROM passed [INTERVAL 5 SECONDS] x"
    " JOIN stored [INTERVAL 4 SECONDS BEFORE] y ON x.k = y.k WITH UPDATES",
}
NAMES = [*QUERIES, "stored", *VIEWS, *UPDATES]
SETTINGS: dict[str, Any] = {
    "snapshot_s": 0.1,
    "block_age_s": 0.2,
    "compact_files": 4,
    "start_timeout_s": 600,  # a busy machine is no failure
    "spark_restarts": 1000,  # nor is a Spark that is killed fifty times
    "spark_restart_pause_s": 1,
}
Results = list[tuple[Any, ...]]


def rows_of(table: str, second: int) -> list[tuple[int, str, int]]:
    """What is inserted into a table in one second."""
    if table == "b":
        times = [max(second - (second * 5 + n) % (DISORDER + 1), 0) for n in range(second % 3)]
        return [(t, "xyz"[(t + n) % 3], (second * 13 + n) % 11) for n, t in enumerate(times)]
    count = second % 4 if table == "a" else 1 + second % 2
    return [(second, "xyz"[(second * 7 + n) % 3], (second * 31 + n) % 17) for n in range(count)]


def create(db: headwater.Database, but: Sequence[str] = ()) -> None:
    """Makes the tables and queries that are not there yet."""
    for text in TABLES.values():
        db.sql(text)
    db.sql(STORED)
    db.sql(PASSED)
    for name, text in (QUERIES | UPDATES).items():
        if name not in but:
            options = OPTIONS.get(name, "")
            db.sql(f"CREATE CONTINUOUS QUERY IF NOT EXISTS {name} {options} AS {text}")
    for name, text in VIEWS.items():
        if name not in but:
            db.sql(f"CREATE VIEW IF NOT EXISTS {name} {OPTIONS.get(name, '')} AS {text}")


def insert_second(db: headwater.Database, second: int) -> None:
    """The rows of one second, once."""
    for table in TABLES:
        rows = rows_of(table, second)
        if rows:
            db.insert(table, rows, batch_id=f"second {second}")


def finish(db: headwater.Database, end: int) -> None:
    """No more rows: everything up to the end is answered."""
    for table in TABLES:
        db.advance(table, end)
    db.flush()


class Feeder:
    """Inserts second after second in a thread, until it is told to stop; at most up to a bound, if set.

    Whoever disturbs it moves the bound on, so that a slow machine does not get more to compare in the end.
    """

    def __init__(
        self,
        db: headwater.Database,
        first: int = 0,
        written: Path | None = None,
        pace_s: float = PACE_S,
    ) -> None:
        """`written`: where the second is noted before it is inserted."""
        self._db, self._written, self._pace_s = db, written, pace_s
        self.second = first
        self.until: int | None = None
        self.error: BaseException | None = None
        self.turn = threading.Lock()  # held by who wants no rows to come
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder")

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pace_s):  # not a wait for progress: the load's pace
                if self.until is not None and self.second >= self.until:
                    continue
                if self._written is not None:
                    self._written.with_suffix(".new").write_text(str(self.second))
                    self._written.with_suffix(".new").rename(self._written)
                with self.turn:
                    insert_second(self._db, self.second)
                    self.second += 1
        except BaseException as error:
            self.error = error

    def wait_seconds(self, count: int) -> None:
        """Until so many more seconds were inserted."""
        wanted = self.second + count
        until(lambda: self.second >= wanted or self.error is not None, "no rows are taken")

    def stop(self) -> int:
        """The first second that was not inserted."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        if self.error is not None:
            raise self.error
        return self.second


class Witness:
    """Inserts row after row and reads views over them: each read sees every row inserted before it (ST3).

    Others follow a view and a select: what they are told adds up to it.
    """

    VIEWS = ("seen_rows", "seen_keys", "seen_together")
    FOLLOWED = ("SELECT * FROM seen_keys", "SELECT ts, k FROM seen WHERE k > 0")

    def __init__(self, db: headwater.Database) -> None:
        self._db = db
        self.rows = self.reads = 0
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness")
        self._told = [Counter[tuple[Any, ...]]() for _ in self.FOLLOWED]
        self._readers: list[Any] = []

    def __enter__(self) -> Witness:
        self._db.sql("CREATE STREAMING TABLE seen (ts INT, k INT) TIMESTAMP BY ts")
        self._db.sql("CREATE VIEW seen_rows AS SELECT count(*) n, max(ts) last FROM seen")
        self._db.sql("CREATE VIEW seen_keys AS SELECT k, count(*) n FROM seen GROUP BY k")
        self._db.sql("CREATE STREAM together (ts INT, k INT) TIMESTAMP BY ts")
        self._db.sql(
            "CREATE VIEW seen_together WITH (parts = 2) AS SELECT k, count(*) n FROM together GROUP BY k"
        )
        for target, told in zip(("seen_keys", self.FOLLOWED[1]), self._told, strict=True):
            self._readers.append(self._db.subscribe(target, callback=partial(self._take, told)))
        self._thread.start()
        return self

    def _take(self, told: Counter[tuple[Any, ...]], out: Any) -> None:
        for row in out.rows():
            told[row[:-2]] += 1 if row[-1] == "+" else -1
            assert told[row[:-2]] >= 0, row

    def _run(self) -> None:
        try:
            while not self._stop.wait(PACE_S):  # not a wait for progress: the pace of the load
                self._db.insert("seen", [(self.rows, self.rows % 3)])
                self.rows += 1
                ((count, last),) = self._db.sql("SELECT n, last FROM seen_rows").rows()
                keys = sum(row[0] for row in self._db.sql("SELECT n FROM seen_keys").rows())
                assert (count, last, keys) == (self.rows, self.rows - 1, self.rows)
                self._db.insert("together", [(self.rows, key) for key in range(KEYS_AT_ONCE)])
                each = [row[0] for row in self._db.sql("SELECT n FROM seen_together").rows()]
                assert each == [self.rows] * KEYS_AT_ONCE, each  # all parts, as of one instant
                self.reads += 3
        except BaseException as error:
            self.error = error

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        if self.error is not None:
            raise self.error
        assert not self._thread.is_alive(), "a read hangs"
        for query, told, reader in zip(self.FOLLOWED, self._told, self._readers, strict=True):
            wanted = Counter(self._db.sql(query).rows())
            until(lambda told=told, wanted=wanted: +told == wanted, f"not what was told: {query}")
            assert reader.error is None, reader.error
            reader.close()


def results_of(db: headwater.Database, name: str) -> Results:
    """Every result of a query, in order; no token comes twice."""
    outs = list(db.subscribe(name, after="earliest", timeout=0.01))
    assert len({out.token for out in outs}) == len(outs), name
    return [(out.time, out.epoch, sorted(map(str, out.rows()))) for out in outs]


def view_rows(db: headwater.Database, name: str) -> list[str]:
    """The rows of a view."""
    return sorted(map(str, db.sql(f"SELECT * FROM {name}").rows()))


def expected(end: int, names: Sequence[str]) -> dict[str, Any]:
    """What a database without factories, which nobody disturbs, makes of the same seconds."""
    with headwater.connect(":memory:", settings={"factories": 0, "eager_spark": False}) as db:
        create(db)
        for second in range(end):
            insert_second(db, second)
        finish(db, end)
        return answers(db, names)


def answers(db: headwater.Database, names: Sequence[str]) -> dict[str, Any]:
    """The results of queries, and the rows of views."""
    queries = {name: results_of(db, name) for name in names if name in {*QUERIES, "stored"}}
    return queries | {name: view_rows(db, name) for name in names if name in VIEWS}


def compare(db: headwater.Database, end: int, names: Sequence[str] = NAMES) -> dict[str, int]:
    """Checks that every result is there once; how many there are of each query."""
    wanted, found = expected(end, names), answers(db, names)
    for name, rows in wanted.items():
        assert rows, f"{name} has no results"
        assert found[name] == rows, _difference(name, found[name], rows)
    _check_window(found["sums_of_window"], end)
    for name in set(names) & {"sums", "counts", "halves", "medians", "newest_two"}:
        assert db.sql(f"VERIFY VIEW {name}").rows() == []
    if "every" in names:
        _check_updates(db, end)
    return {name: len(rows) for name, rows in found.items()}


def _difference(name: str, found: list[Any], wanted: list[Any]) -> str:
    for place, (got, want) in enumerate(zip(found, wanted, strict=False)):
        if got != want:
            return f"{name}: result {place} of {len(wanted)} is {got} and not {want}"
    return f"{name}: {len(found)} results and not {len(wanted)}"


def _check_window(found: Results, end: int) -> None:
    """By brute force: what both databases have in common is not wrong in both."""
    assert [time for time, _, _ in found] == list(range(2, end + 1, 2))
    for time, _, shown in found:
        groups: dict[str, list[int]] = {}
        seconds = range(max(time - 5, 0), min(time + 1, end))
        for _, key, value in (row for second in seconds for row in rows_of("a", second)):
            groups.setdefault(key, []).append(value)
        made = [(k, len(v), sum(v), max(v), time) for k, v in groups.items()]
        assert shown == sorted(map(str, made)), time


def _check_updates(db: headwater.Database, end: int) -> None:
    """A row gives a result at most once, no key goes back, each ends with its newest row."""
    rows = [row for second in range(end) for row in rows_of("p", second)]
    there = set(rows)
    every = [
        row for out in db.subscribe("every", after="earliest", timeout=0.01) for row in out.rows()
    ]
    assert [row[:3] for row in every] == [(k, ts, v) for ts, k, v in rows]
    last: dict[str, int] = {}
    for out in db.subscribe("newest", after="earliest", timeout=0.01):
        for key, ts, value, time in out.rows():
            assert (ts, key, value) in there
            assert time == ts > last.get(key, -1)
            last[key] = ts
    newest = {k: (k, ts, v, ts) for ts, k, v in rows}
    shown = {row[0]: row for row in db.sql("SELECT * FROM newest").rows()}
    assert shown == {key: row for key, row in newest.items() if row[2] > 0}
    windows: set[tuple[str, int]] = set()
    for out in db.subscribe("eager", after="earliest", timeout=0.01):
        for key, count, total, time in out.rows():
            own = [v for ts, k, v in rows if k == key and time - 4 <= ts < time]
            assert (count, total) == (len(own), sum(own)), (key, time)
            assert (key, time) not in windows, "a window comes twice"
            windows.add((key, time))
    assert windows
    kept = db.sql("SELECT k, n, s, _t FROM stored ORDER BY _t").rows()
    of_stored = {row[0]: row for row in db.sql("SELECT * FROM of_stored").rows()}
    assert of_stored == {row[0]: row for row in kept}

    _check_chain(db, newest, kept)


def _check_chain(
    db: headwater.Database, newest: dict[str, tuple[Any, ...]], stored: Sequence[tuple[Any, ...]]
) -> None:
    """Behind an update query: each result is a row once, none is late, and others have the newest of them."""
    passed = db.sql("SELECT k, ts, v, _t FROM passed ORDER BY _seq").rows()
    assert db.sql("SELECT count(*) FROM passed WHERE _late").rows() == [(0,)]
    assert {row[0]: row for row in passed} == newest
    for key in newest:
        times = [time for k, *_, time in passed if k == key]
        assert times == sorted(set(times)), key
    assert {row[0]: row for row in db.sql("SELECT * FROM of_passed").rows()} == newest
    some = [
        row
        for out in db.subscribe("some_passed", after="earliest", timeout=0.01)
        for row in out.rows()
    ]
    assert set(some) <= set(passed)
    shown = {row[0]: row for row in db.sql("SELECT * FROM matched").rows()}
    for key in newest:
        own, its = ([row for row in rows if row[0] == key] for rows in (passed, stored))
        now = max(row[-1] for row in [*own, *its])
        pairs: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for x in own:
            for y in its:
                if now - 5 <= x[-1] <= now and now - 4 <= y[-1] < now:
                    times = (max(x[-1], y[-1]), min(x[-1], y[-1]))
                    pairs.setdefault(times, []).append((key, x[2], y[2], now))
        latest = pairs[max(pairs)] if pairs else [None]
        assert shown.get(key) in latest, key


def hosts(db: headwater.Database) -> dict[str, str]:
    """Where each query lives."""
    return dict(db.sql("SELECT name, host FROM headwater.queries").rows())


def connected(folder: Path | str, **settings: Any) -> headwater.Database:
    """A database with two factories."""
    return headwater.connect(folder, settings={**SETTINGS, "factories": 2, **settings})
