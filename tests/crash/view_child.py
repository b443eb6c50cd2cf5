"""A process that feeds tables and checks the views of them when it starts; somebody kills it.

    python -m tests.crash.view_child FOLDER LOG

The log says what was acknowledged: `r 7` for batch 7 of table r, `clearing 7` and `cleared 7` around a DELETE
of all rows of r. One more operation than it says may have come about. The next process goes on after it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwater

LAST = 180  # batches
CLEARED_EVERY = 60
FOLLOWED = ("r_sums", "r_large", "r")  # by readers that keep their tokens
BORN = 40  # the batch of q before which view `born` is made
SETTINGS = {
    "snapshot_s": 0.1,
    "block_age_s": 0.05,
    "compact_files": 4,
    "removed_files_kept_s": 0.0,
    "eager_spark": False,
}
Row = tuple[int, str, int]
TABLES = {
    "r": "CREATE STREAMING TABLE r (ts INT, k STRING, v INT) TIMESTAMP BY ts",
    "q": "CREATE STREAM q (ts INT, k STRING, v INT) TIMESTAMP BY ts",
    "g": "CREATE STREAMING TABLE g (ts INT, k STRING, v INT) TIMESTAMP BY ts RANGE INTERVAL 9 SECONDS",
}
EDGES = "SELECT k, count(DISTINCT v) AS n, last(v) AS s FROM {} GROUP BY k"
JOINED = (
    "SELECT d.name AS k, count(*) AS n, sum(v) AS s FROM {} x JOIN d ON x.k = d.k GROUP BY d.name"
)
SUMS = "SELECT k, count(*) AS n, sum(v) AS s FROM {} GROUP BY k"
LARGE = "SELECT k, v AS n, ts AS s FROM {} WHERE v > 3"
COUNTS = "SELECT k, count(*) AS n, min(v) AS s FROM {} GROUP BY k"
VIEWS = {
    "r_sums": ("r", "split", SUMS),
    "r_edges": ("r", "eager", EDGES),
    "r_later": ("r", "incremental", SUMS),
    "r_joined": ("r", "split", JOINED),
    "r_swapped": ("r", "split", SUMS),
    "r_large": ("r", "split", LARGE),
    "q_sums": ("q", "split", SUMS),
    "q_counts": ("q", "split", COUNTS),
    "q_later": ("q", "incremental", SUMS),
    "g_sums": ("g", "split", SUMS),
    "g_later": ("g", "incremental", COUNTS),
}


def rows_of(batch: int) -> list[Row]:
    """The rows of a batch, the same in every process; some are late."""
    return [
        (batch - 12 * (n == 3), "abcd"[(batch * 7 + n) % 4], (batch * 31 + n * 5) % 17)
        for n in range(1 + batch % 5)
    ]


@dataclass
class Known:
    """What the log says: by table the batches that are in it, and what may have come about besides."""

    batches: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in TABLES})
    next: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    clearing: int | None = None
    cleared: int | None = None

    def take(self, line: str) -> None:
        """One line of the log."""
        word, number = line.split()
        if word in TABLES:
            self.batches[word].append(int(number))
            self.next[word] = int(number) + 1
        elif word == "clearing":
            self.clearing = int(number)
        else:
            self.clearing, self.cleared = None, int(number)
            self.batches["r"] = []

    def possible(self, table: str) -> list[list[int]]:
        """The batches that a table may hold."""
        known = self.batches[table]
        if table == "r" and self.clearing is not None:
            return [known, []]
        return [known, [*known, self.next[table]]]


def read_log(path: Path) -> Known:
    """The whole lines of the log."""
    known = Known()
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            known.take(line)
    return known


def answer(query: str, batches: list[int]) -> Counter[Any]:
    """The rows of a query over some batches, by brute force."""
    groups: dict[str, list[tuple[tuple[int, int, int], int]]] = {}
    for batch in batches:
        for place, (time, key, value) in enumerate(rows_of(batch)):
            groups.setdefault(key, []).append(((time, batch, place), value))
    found: Counter[Any] = Counter()
    for key, members in groups.items():
        values = [value for _, value in members]
        if query == LARGE:
            found.update((key, value, time) for (time, _, _), value in members if value > 3)
        elif query == EDGES:
            found[key, len(set(values)), max(members)[1]] += 1
        elif query == COUNTS:
            found[key, len(values), min(values)] += 1
        elif query == SUMS:
            found[key, len(values), sum(values)] += 1
        elif key in "ab":
            found[key.upper(), len(values), sum(values)] += 1
    return found


def answers(view: str, batches: list[int]) -> list[Counter[Any]]:
    """What a view may show: one of them is replaced again and again."""
    queries = [SUMS, COUNTS] if view == "r_swapped" else [VIEWS[view][2]]
    return [answer(query, batches) for query in queries]


class Child:
    """The database and its log."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.known = read_log(log)
        lines = log.read_text() if log.exists() else ""
        log.write_text(lines[: lines.rfind("\n") + 1])
        self.file, self.reader = log.open("a"), log.with_name("reader")
        bound = 1024 * (len(lines) % 3 == 0)  # most processes spill every group, some none
        self.db = headwater.connect(folder, settings={**SETTINGS, "view_state_mb": bound})
        self.make()

    def make(self) -> None:
        """Tables and views, unless they are there; those of the first process begin with nothing."""
        for ddl in TABLES.values():
            name = ddl.split()[3] if "STREAMING" in ddl else ddl.split()[2]
            self.db.sql(ddl.replace(f" {name} (", f" IF NOT EXISTS {name} ("))
        self.db.sql("CREATE TABLE IF NOT EXISTS d (k STRING, name STRING)")
        if not self.db.sql("SELECT * FROM d").rows():
            self.db.sql("INSERT INTO d VALUES ('a', 'A'), ('b', 'B')")
        for name, (table, maintenance, query) in VIEWS.items():
            options = f"WITH (maintenance = '{maintenance}')"
            self.db.sql(f"CREATE VIEW IF NOT EXISTS {name} {options} AS {query.format(table)}")

    def say(self, line: str) -> None:
        """Into the log, for good."""
        self.known.take(line)
        self.file.write(line + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    # Checks

    def follow(self, name: str) -> None:
        """A reader of changes goes on by its token; what it has taken in adds up to what is there."""
        file = self.reader.with_suffix(f".{name}")
        saved = json.loads(file.read_text()) if file.exists() else [None, []]
        token, state = saved[0], Counter({tuple(row): count for row, count in saved[1]})
        with self.db.subscribe(name, after=token, timeout=0.0) as changes:
            for out in changes:
                for *row, _, operation in out.rows():
                    state[tuple(row)] += 1 if operation == "+" else -1
                token = out.token
        now = Counter(self.db.sql(f"SELECT * FROM {name}").rows())
        told = Counter({row: count for row, count in state.items() if count})
        assert told == now, f"of {name}: {told} told, {now} there"
        fresh = file.with_name(f"{file.name}.new")
        fresh.write_text(json.dumps([token, [[list(row), count] for row, count in told.items()]]))
        fresh.replace(file)

    def check(self, exact: bool) -> None:
        """Every view holds what was acknowledged, and at most one operation more; all the same one."""
        names = [name for (name,) in self.db.sql("SELECT name FROM headwater.views").rows()]
        names = [name for name in names if not name.startswith("temporary")]
        found = {name: Counter(self.db.sql(f"SELECT * FROM {name}").rows()) for name in names}
        for table in TABLES:
            mine = [name for name in names if name.startswith(table)]
            states = self.known.possible(table)[: 1 if exact else 2]
            if not any(all(found[n] in answers(n, state) for n in mine) for state in states):
                lines = [f"{n}: {found[n]}, not {[answers(n, s) for s in states]}" for n in mine]
                raise AssertionError("\n".join(lines))
        if "born" in found:
            states = [[b for b in s if b >= BORN] for s in self.known.possible("q")]
            wanted = [answer(SUMS, s) for s in states]
            assert found["born"] in wanted, f"born: {found['born']}, not {wanted}"

    # Work

    def feed(self) -> None:
        """Goes on where the log ends; a batch id makes a repeated batch harmless."""
        for batch in range(min(self.known.next.values()), LAST):
            due = batch % CLEARED_EVERY == CLEARED_EVERY - 1 and self.known.next["r"] == batch
            if due and self.known.cleared != batch:
                self.say(f"clearing {batch}")
                self.db.sql("DELETE FROM r")
                self.say(f"cleared {batch}")
            if batch == BORN and self.known.next["q"] == batch:
                self.db.sql(f"CREATE VIEW IF NOT EXISTS born AS {SUMS.format('q')}")
            for table in TABLES:
                if self.known.next[table] == batch:
                    self.db.insert(table, rows_of(batch), batch_id=f"{table} {batch}")
                    self.say(f"{table} {batch}")
            if batch % 16 == 5:
                self.check(exact=True)
            if batch % 8 == 0:
                self.follow(FOLLOWED[batch // 8 % len(FOLLOWED)])

    def meddle(self, stop: threading.Event) -> None:
        """Views are replaced, made, dropped and given their static tables again meanwhile."""
        turn = 0
        while not stop.is_set():
            turn += 1
            text = (SUMS, COUNTS)[turn % 2].format("r")
            self.db.sql(f"CREATE OR REPLACE VIEW r_swapped AS {text}")
            self.db.sql("ALTER VIEW r_joined REFRESH STATIC")
            self.db.sql(f"CREATE VIEW temporary{turn % 3} AS {SUMS.format('qr'[turn % 2])}")
            self.db.sql(f"DROP VIEW temporary{turn % 3}")
            stop.wait(0.01)


def main(folder: str, log: str) -> None:
    """Checks what is there, then feeds until all batches are in, and checks again."""
    child = Child(Path(folder), Path(log))
    for turn in range(3):
        child.db.sql(f"DROP VIEW IF EXISTS temporary{turn}")
    child.check(exact=False)
    for name in FOLLOWED:
        child.follow(name)
    stop, failure = threading.Event(), []

    def meddle() -> None:
        try:
            child.meddle(stop)
        except BaseException as error:
            failure.append(error)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        child.feed()
    finally:
        stop.set()
        meddler.join()
    if failure:
        raise failure[0]
    child.check(exact=True)
    child.db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
