"""A process with random views in factories, which are killed while rows come, go and are read.

    python -m tests.factories.plans FIRST COUNT KILLS

The views are the plans of `tests/harness/circuits` of COUNT seeds from FIRST on, some of them with parts that
Spark must evaluate, a few at a time over tables of their own. A thread kills a factory's process KILLS times
in all, at any moment. One thread alone changes the tables, so each read has one right answer: DuckDB's over
the rows that were acknowledged. The last line of the output is JSON: views, reads, kills.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import headwater
from headwater.factories import jobs
from tests.factories.campaign import blow, nothing_left, settled
from tests.factories.load import connected
from tests.harness.circuits.opaque import OpaqueMaker
from tests.harness.circuits.queries import TABLES, QueryMaker
from tests.harness.circuits.runner import MOST_TEXT, STANDARD, History, bag
from tests.harness.oracle import duckdb_rows

AT_ONCE = 10  # views over the same tables
STEPS = 5
OPAQUE = 0.15  # of the plans


class Plan:
    """A view and what it is to be."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        maker = (OpaqueMaker if random.random() < OPAQUE else QueryMaker)(random)
        part = maker.query(random.randint(1, maker.depth))
        self.name, self.text, self.judge = f"plan_{seed}", maker.text(part), maker.judge(part)

    def check(self, db: headwater.Database, history: History) -> None:
        """Reads the view; AssertionError if it is not what DuckDB says."""
        mine = bag(db.sql(f"SELECT * FROM {self.name}").rows())
        right = bag(duckdb_rows(self.judge, {name: history.table(name) for name in TABLES}))
        assert mine == right, (
            f"{self.name}: {self.text}\nonly in the view {dict(mine - right)}, "
            f"only in DuckDB {dict(right - mine)}\n{history.rows}"
        )


def plans_of(first: int, count: int) -> list[list[Plan]]:
    """The plans of seeds, so many at a time; too long ones are left out."""
    every = [Plan(seed) for seed in range(first, first + count)]
    short = [plan for plan in every if len(plan.text) < MOST_TEXT]
    return [short[place : place + AT_ONCE] for place in range(0, len(short), AT_ONCE)]


class Killer:
    """Kills factories at any moment while it is allowed to; it sleeps for no time of its own."""

    def __init__(self, db: headwater.Database, kills: int, random: Random) -> None:
        self._db, self.left, self._random = db, kills, random
        self.done, self.error = 0, list[BaseException]()

    @contextmanager
    def at_work(self, kills: int) -> Iterator[None]:
        """Meanwhile it kills so often, if so many are left."""
        wanted = min(kills, self.left)
        self.left -= wanted
        thread = threading.Thread(target=self._kill, args=(wanted,), name="killer")
        thread.start()
        try:
            yield
        finally:
            thread.join()
        if self.error:
            raise self.error[0]

    def _kill(self, count: int) -> None:
        try:
            while count:
                threading.Event().wait(self._random.random() * 2)  # any moment
                struck = blow(self._db, "kill", self._random)
                count, self.done = count - struck, self.done + struck
        except BaseException as error:
            self.error.append(error)


def change(db: headwater.Database, history: History, random: Random) -> None:
    """Something happens to a table, and to what is known of it."""
    name = random.choice(list(TABLES))
    rows, names = history.rows[name], [column for column, _ in TABLES[name]]
    key, value = names.index("k"), random.randint(0, 5)
    if random.random() < 0.7 or len(rows) < 4:
        new = [history.row(name) for _ in range(random.choice((1, 2, 6)))]
        db.insert(name, new)
        rows += new
    elif random.random() < 0.5:
        left = [row for row in rows if row[key] != value]
        if left:  # ROLLUP over nothing means something else to DuckDB
            db.sql(f"DELETE FROM {name} WHERE k = {value}")
            rows[:] = left
    else:
        number = {"s": "v", "r": "w", STANDARD: "k"}[name]
        db.sql(f"UPDATE {name} SET {number} = 3 WHERE k = {value}")
        place = names.index(number)
        rows[:] = [
            (*row[:place], 3, *row[place + 1 :]) if row[key] == value else row for row in rows
        ]


def create(db: headwater.Database) -> None:
    """The tables; `id` is the time."""
    for name, columns in TABLES.items():
        text = ", ".join(f"{column} {type_}" for column, type_ in columns)
        if name == STANDARD:
            db.sql(f"CREATE TABLE {name} ({text})")
        else:
            db.sql(f"CREATE STREAMING TABLE {name} ({text}) TIMESTAMP BY id")


def live(
    db: headwater.Database, plans: list[Plan], killer: Killer, kills: int, random: Random
) -> int:
    """The life of some views, from CREATE to DROP, with so many kills; how often they were read."""
    create(db)
    history, reads = History(random), 0
    history.rows["s"] = [history.row("s")]
    db.insert("s", history.rows["s"])
    for plan in plans:
        db.sql(f"CREATE VIEW {plan.name} AS {plan.text}")
    settled(db)
    with killer.at_work(kills):
        for _ in range(STEPS):
            change(db, history, random)
            for plan in random.sample(plans, min(3, len(plans))):
                plan.check(db, history)
                reads += 1
    settled(db)
    for plan in plans:
        plan.check(db, history)
    for plan in plans:
        db.sql(f"DROP VIEW {plan.name}")
    for name in TABLES:
        db.sql(f"DROP TABLE {name}")
    return reads + len(plans)


def main(first: str, count: str, kills: str) -> None:
    """Some plans after the others, and a look at what is left."""
    jobs.PAUSES_S = (0.0, 0.1)  # between the lives of a factory: here they are short
    random, found = Random(int(first)), Counter[str]()
    lives = plans_of(int(first), int(count))
    each = math.ceil(int(kills) / len(lives))
    with (
        nothing_left(),
        tempfile.TemporaryDirectory() as folder,
        connected(Path(folder) / "db") as db,
    ):
        killer = Killer(db, int(kills), random)
        for plans in lives:
            found["reads"] += live(db, plans, killer, each, random)
            found["views"] += len(plans)
            print(json.dumps({"last": plans[-1].name, "kills": killer.done}), flush=True)
    print(json.dumps({**found, "kills": killer.done}))


if __name__ == "__main__":
    main(*sys.argv[1:])
