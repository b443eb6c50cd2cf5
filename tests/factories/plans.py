"""A process with random views in factories, which are killed while rows come, go and are read.

    python -m tests.factories.plans FIRST COUNT KILLS [VERIFIED]

The views are the plans of `tests/harness/circuits` of COUNT seeds from FIRST on, a few at a time over tables
of their own: some with parts that Spark must evaluate, some in parts by key, some over views before them. A
thread kills a factory's process KILLS times in all, at any moment; in the middle of each life the database is
closed and opened again. One thread alone changes the tables, so each read has one right answer: DuckDB's over
the rows that were acknowledged. In the end VERIFIED views of each life are compared with Spark. The last line
of the output is JSON: views, reads, kills.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import headwater
from headwater.errors import BindError, KernelError, NotSupportedError
from headwater.factories import jobs
from tests.factories.campaign import blow, nothing_left, settled
from tests.factories.load import connected
from tests.harness.circuits.base import TABLES
from tests.harness.circuits.more_shapes import EDGES
from tests.harness.circuits.opaque import OpaqueMaker
from tests.harness.circuits.queries import QueryMaker
from tests.harness.circuits.runner import MOST_TEXT, STANDARD, History, bag
from tests.harness.oracle import duckdb_rows

AT_ONCE = 10  # views over the same tables
STEPS = 5  # before a restart, and half as many after it
OPAQUE = 0.15  # of the plans
IN_PARTS = 0.6  # of the plans are to be in parts, where they can be


class Plan:
    """A view and what it is to be; it may read views that were made before it."""

    def __init__(self, seed: int, below: Sequence[Plan] = ()) -> None:
        random = Random(seed)
        views = {plan.name: (plan.part, plan.judge) for plan in below if plan.is_small}
        maker = (OpaqueMaker if random.random() < OPAQUE else QueryMaker)(random, views)
        self.part = maker.query(random.randint(1, maker.depth))
        self.name = f"plan_{seed}"
        self.text, self.judge = maker.text(self.part), maker.judge(self.part)
        self.parts = 2 if random.random() < IN_PARTS else 1
        self.shapes = maker.shapes
        self.reads = set(re.findall(r"plan_\d+", self.text))
        every = [maker.shapes, *(plan.all_shapes for plan in below if plan.name in self.reads)]
        self.all_shapes = sum(every, Counter[str]())  # of the views that it reads, too

    @property
    def is_small(self) -> bool:
        """Whether it may be read by others, which are not too long then."""
        return len(self.judge) < MOST_TEXT / 4

    @property
    def has_as_of(self) -> bool:
        """Whether it has an as-of join, or reads one."""
        return any("ASOF" in shape for shape in self.all_shapes)

    @property
    def is_sparks(self) -> bool:
        """Whether Spark has all its words, and means the same by them."""
        return not self.has_as_of and EDGES not in self.all_shapes

    @property
    def is_short(self) -> bool:
        """Whether its texts are; a longer one says no more."""
        return len(self.text) < MOST_TEXT and len(self.judge) < 2 * MOST_TEXT

    def create(self, db: headwater.Database) -> bool:
        """Creates the view, in parts where it can have them; false if Spark cannot say what it is.

        Spark has no as-of join, and no order in which rows are first and last.
        """
        options = f" WITH (parts = {self.parts})" if self.parts > 1 else ""
        try:
            db.sql(f"CREATE VIEW {self.name}{options} AS {self.text}")
        except BindError:
            if self.parts == 1:
                raise
            self.parts = 1
            return self.create(db)
        except NotSupportedError:
            if not self.has_as_of:
                raise
            return False
        if EDGES not in self.all_shapes or "Spark" not in (self.tier(db) or "Spark"):
            return True
        db.sql(f"DROP VIEW {self.name}")
        return False

    def tier(self, db: headwater.Database) -> str | None:
        """What keeps it; a view of standard tables alone is only a text."""
        found = db.sql(f"SELECT tier FROM headwater.views WHERE name = '{self.name}'").rows()
        return found[0][0] if found else None

    def check(self, db: headwater.Database, history: History) -> None:
        """Reads the view; AssertionError if it is not what DuckDB says."""
        mine = bag(db.sql(f"SELECT * FROM {self.name}").rows())
        right = bag(duckdb_rows(self.judge, {name: history.table(name) for name in TABLES}))
        assert mine == right, (
            f"{self.name}: {self.text}\nonly in the view {dict(mine - right)}, "
            f"only in DuckDB {dict(right - mine)}\n{history.rows}"
        )

    def check_spark(self, db: headwater.Database) -> bool:
        """AssertionError if the view is not what Spark makes of the rows; false if Spark fails."""
        try:
            found = db.sql(f"VERIFY VIEW {self.name}").rows()
        except (
            KernelError
        ):  # an error within Spark's own optimizer, of a subquery over WITH and UNION ALL
            return False
        assert found == [], f"{self.name}: {self.text}\n{found}"
        return True


def plans_of(first: int, count: int) -> list[list[Plan]]:
    """The plans of seeds, so many at a time; too long ones are left out."""
    lives: list[list[Plan]] = [[]]
    for seed in range(first, first + count):
        if len(lives[-1]) == AT_ONCE:
            lives.append([])
        plan = Plan(seed, lives[-1])
        if plan.is_short:
            lives[-1].append(plan)
    return [plans for plans in lives if plans]


class Killer:
    """Kills factories at any moment while it is allowed to; it sleeps for no time of its own."""

    def __init__(self, db: headwater.Database, random: Random) -> None:
        self._db, self._random = db, Random(random.random())
        self.done, self.error = 0, list[BaseException]()

    @contextmanager
    def at_work(self, kills: int) -> Iterator[None]:
        """Meanwhile it kills so often."""
        thread = threading.Thread(target=self._kill, args=(kills,), name="killer")
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
    elif name == STANDARD and random.random() < 0.5:
        db.sql(
            f"MERGE INTO {name} USING (SELECT {value} AS k UNION ALL SELECT 9) AS n ON {name}.k = n.k "
            f"WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, label) VALUES (n.k, 'm')"
        )
        there = {row[key] for row in rows}
        rows[:] = [row for row in rows if row[key] not in (value, 9)]
        rows += [(new, "m", None) for new in (value, 9) if new not in there]
    elif random.random() < 0.5:
        left = [row for row in rows if row[key] != value]
        db.sql(f"DELETE FROM {name} WHERE k = {value}")
        rows[:] = left
    else:
        number = {"s": "v", "r": "w", STANDARD: "k"}[name]
        db.sql(f"UPDATE {name} SET {number} = 3 WHERE k = {value}")
        place = names.index(number)
        rows[:] = [
            (*row[:place], 3, *row[place + 1 :]) if row[key] == value else row for row in rows
        ]


def create(db: headwater.Database, random: Random) -> None:
    """The tables; `id` is the time, and some of its rows are late."""
    for name, columns in TABLES.items():
        text = ", ".join(f"{column} {type_}" for column, type_ in columns)
        if name == STANDARD:
            db.sql(f"CREATE TABLE {name} ({text})")
        else:
            waits = random.choice(("", " WATERMARK INTERVAL '2' SECOND"))
            db.sql(f"CREATE STREAMING TABLE {name} ({text}) TIMESTAMP BY id{waits}")


class Lives:
    """A database that is closed and opened again, and what was done to it."""

    def __init__(self, folder: Path, kills: int, random: Random, verified: int) -> None:
        """`verified`: about how many views of each life Spark is asked."""
        self._folder, self._kills, self.random, self._verified = folder, kills, random, verified
        self.found, self.db = Counter[str](), connected(folder)

    def close(self) -> None:
        """Closes the database."""
        self.db.close()

    def live(self, plans: list[Plan], kills: int) -> None:
        """The life of some views, from CREATE to DROP, with so many kills and a restart."""
        found, history = self.found, History(self.random)
        create(self.db, self.random)
        history.rows["s"] = [history.row("s")]
        self.db.insert("s", history.rows["s"])
        plans = self._created(plans)
        found["views"] += len(plans)
        found["views on views"] += sum("a view" in plan.shapes for plan in plans)
        self.found += Counter(f"kept by {plan.tier(self.db)}" for plan in plans)
        found["views in parts"] += sum(plan.parts > 1 for plan in plans)
        self._changed(plans, history, STEPS, kills - kills // 2)
        self.db.close()
        self.db = connected(self._folder)
        found["restarts"] += 1
        self._changed(plans, history, STEPS // 2, kills // 2)
        for plan in self.random.sample(plans, min(self._verified, len(plans))):
            if plan.is_sparks and plan.tier(self.db) is not None:
                verified = plan.check_spark(self.db)
                found["verified by Spark" if verified else "Spark fails"] += 1
        for plan in reversed(plans):
            self.db.sql(f"DROP VIEW {plan.name}")
        for name in TABLES:
            self.db.sql(f"DROP TABLE {name}")

    def _created(self, plans: list[Plan]) -> list[Plan]:
        """Those that can be, and read none that cannot."""
        refused: set[str] = set()
        for plan in plans:
            if plan.reads & refused or not plan.create(self.db):
                refused.add(plan.name)
        self.found["refused"] += len(refused)
        return [plan for plan in plans if plan.name not in refused]

    def _changed(self, plans: list[Plan], history: History, steps: int, kills: int) -> None:
        """Some steps, with a look at all views after each, and once more in the end."""
        settled(self.db)
        wanted = min(kills, self._kills)
        self._kills -= wanted
        killer = Killer(self.db, self.random)
        with killer.at_work(wanted):
            for _ in range(steps):
                change(self.db, history, self.random)
                self._look(plans, history)
        self.found["kills"] += killer.done
        settled(self.db)
        self._look(plans, history)

    def _look(self, plans: list[Plan], history: History) -> None:
        """Every view, in another order each time."""
        for plan in self.random.sample(plans, len(plans)):
            plan.check(self.db, history)
            self.found["reads"] += 1


def main(first: str, count: str, kills: str, verified: str = "99") -> None:
    """Some plans after the others, and a look at what is left."""
    jobs.PAUSES_S = (0.0, 0.1)  # between the lives of a factory: here they are short
    groups = plans_of(int(first), int(count))
    each = math.ceil(int(kills) / len(groups))
    with (
        nothing_left(),
        tempfile.TemporaryDirectory() as folder,
        closing(Lives(Path(folder) / "db", int(kills), Random(int(first)), int(verified))) as lives,
    ):
        for plans in groups:
            lives.live(plans, each)
            print(json.dumps({"last": plans[-1].name, **lives.found}), flush=True)
    print(json.dumps(lives.found))


if __name__ == "__main__":
    main(*sys.argv[1:])
