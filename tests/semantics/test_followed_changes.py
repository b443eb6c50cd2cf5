"""Who follows a view or table is handed what changed: a commit costs what it changes, not what there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import following, results, stored_results, table_changes
from headwater.engine.view import ContinuousView
from headwater.fold.state import GroupState
from headwater.operators import bags
from headwater.operators.kept_rows import KeptRows
from tests.harness.patience import PATIENCE_S

Connect = Callable[..., headwater.Database]
State = Counter[tuple[Any, ...]]

FOLLOWED = {
    "large": "SELECT k, x FROM s WHERE x >= 0",
    "sums": "SELECT k, count(*) AS n, sum(x) AS x FROM s GROUP BY k",
    "most": "SELECT k, max(x) AS x, avg(x) AS a FROM s GROUP BY k HAVING count(*) < 4",
    "named": "SELECT s.k, s.x, t.c FROM s LEFT JOIN t ON s.k = t.k",
    "newest": "SELECT k, x FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC, x) = 1",
    "by_sum": "SELECT n, count(*) AS c FROM (SELECT k, sum(x) AS n FROM s GROUP BY k) GROUP BY n",
    "first": "SELECT k, x FROM s ORDER BY x DESC, k, ts LIMIT 5",
    "halves": "SELECT k, sum(x / 7.0D) AS f FROM s GROUP BY k",
}


def make(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE TABLE t (k INT, c STRING)")
    for name, query in FOLLOWED.items():
        db.sql(f"CREATE VIEW {name} AS {query}")


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(v, 6) if isinstance(v, float) else v for v in row)


def take(state: State, out: Any) -> None:
    for row in out.rows():
        state[rounded(row[:-2])] += 1 if row[-1] == "+" else -1


# How much is looked at


class Touched:
    """Counts the rows that pass through whatever may look at all of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.row_count = self.in_images = 0
        for owner, name in (
            (following, "find_changes"),
            (following, "emitted"),
            (bags, "bag_difference"),
            (stored_results, "encode_changes"),
            (KeptRows, "table"),
            (GroupState, "_rows_of"),
            (ContinuousView, "read"),
        ):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))
        patch.setattr(table_changes, "each_since", self._each_since)
        for owner, name in ((results, "applied"), (stored_results, "encode_rows")):
            patch.setattr(owner, name, self._counted(getattr(owner, name), image=True))

    def _counted(self, function: Callable[..., Any], image: bool = False) -> Callable[..., Any]:
        def counted(*arguments: Any, **keywords: Any) -> Any:
            given = function(*arguments, **keywords)
            for part in (*arguments, given):
                count = part.num_rows if isinstance(part, pa.Table) else 0
                self.in_images += count if image else 0
                self.row_count += 0 if image else count
            return given

        return counted

    def _each_since(self, table: Any, sequence: int, generation: int | None, give: Any) -> Any:
        def taken(rows: pa.Table) -> None:
            self.row_count += rows.num_rows
            give(rows)

        return EACH_SINCE(table, sequence, generation, taken)


EACH_SINCE = table_changes.each_since
COMMITS = 64


@pytest.mark.here
@pytest.mark.parametrize("name", ["large", "sums", "named", "newest", "s"])
def test_a_commit_costs_what_it_changes(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Two rows change in a view of a thousand and of a hundred thousand: the same rows are looked at.

    Beside that a stored result is whole once changes take its size, at a thousand rows one in some eight.
    """
    counts, in_images = {}, {}
    for size in (1_000, 100_000):
        db = connect(tmp_path / str(size), settings={"eager_spark": False})
        make(db)
        keys = pa.array(range(size), pa.int32())
        db.insert("s", pa.table({"ts": keys, "k": keys, "x": keys}))
        with db.subscribe(name, timeout=PATIENCE_S) as reader, monkeypatch.context() as patch:
            assert len(next(reader).rows()) == size
            db.insert("s", [(size, 0, 1)])
            next(reader)
            touched = Touched(patch)
            for commit in range(COMMITS):
                db.insert("s", [(size + commit, 2 * commit + n, commit) for n in range(2)])
                assert 2 <= len(next(reader).rows()) <= 4
            counts[size] = touched.row_count / COMMITS
            in_images[size] = touched.in_images / COMMITS
        db.close()
    assert max(counts.values()) < 24, counts
    assert in_images[1_000] < 500, in_images
    assert in_images[100_000] == 0, in_images


# What is told


@pytest.fixture(params=[pytest.param(0, marks=pytest.mark.here), 2], ids=["here", "in a factory"])
def db(connect: Connect, folder: Path) -> headwater.Database:
    made = connect(folder)
    make(made)
    return made


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.large)])
def test_changes_add_up_while_they_are_followed(db: headwater.Database, seed: int) -> None:
    """Random inserts, deletes and updates; after each the reader has what a query gives."""
    random = Random(seed)
    names = [*FOLLOWED, "s"]
    states: dict[str, State] = {name: Counter() for name in names}
    readers = {name: db.subscribe(name, timeout=PATIENCE_S) for name in names}
    try:
        for step in range(25):
            change(db, random, step)
            db.sql(
                f"INSERT INTO s VALUES ({1000 + step}, {100 + step}, {100 + step})"
            )  # all change
            for name in names:
                wanted = Counter(map(rounded, db.sql(f"SELECT * FROM {name}").rows()))
                while +states[name] != wanted:
                    out = next(readers[name], None)
                    assert out is not None, (name, step, states[name], wanted)
                    assert out.rows() or not step
                    take(states[name], out)
                    assert min(states[name].values(), default=0) >= 0, (name, step)
    finally:
        for reader in readers.values():
            reader.close()


def change(db: headwater.Database, random: Random, step: int) -> None:
    match random.randrange(6):
        case 0:
            db.sql(f"DELETE FROM s WHERE k = {random.randrange(6)} AND x % 2 = 0")
        case 1:
            db.sql(f"UPDATE s SET x = x - {random.randrange(3)} WHERE k = {random.randrange(6)}")
        case 2:
            db.sql(f"INSERT INTO t VALUES ({random.randrange(6)}, 'v{step}')")
        case _:
            rows = [
                (random.randrange(900), random.randrange(6), random.randrange(9))
                for _ in range(random.randrange(1, 5))
            ]
            db.insert("s", rows * random.randrange(1, 3))  # many are late


def test_late_rows_and_those_that_a_watermark_holds_back(db: headwater.Database) -> None:
    db.sql(
        "CREATE STREAMING TABLE w (ts INT, k INT) TIMESTAMP BY ts WATERMARK INTERVAL 5 SECONDS LATE DROP"
    )
    state: State = Counter()
    with db.subscribe("w", timeout=PATIENCE_S) as reader:
        take(state, next(reader))
        for time in (10, 12, 3, 20, 16, 1, 14):
            before = Counter(db.sql("SELECT * FROM w").rows())
            db.insert("w", [(time, time)])
            wanted = Counter(db.sql("SELECT * FROM w").rows())
            if before != wanted:
                take(state, next(reader))
            assert +state == wanted, time


def test_a_float_that_moves_by_less_than_it_is_told_apart_by(db: headwater.Database) -> None:
    """Nothing is told of it, and later changes are those of what was told."""
    db.sql("CREATE STREAMING TABLE f (ts INT, k INT, x DOUBLE) TIMESTAMP BY ts")
    db.sql("CREATE VIEW totals AS SELECT k, sum(x) AS x FROM f GROUP BY k")
    db.insert("f", [(1, 1, 1.0), (1, 2, 1.0)])
    with db.subscribe("totals", timeout=PATIENCE_S) as reader:
        first = next(reader)
        for step in range(3):
            db.insert("f", [(2 + step, 1, 1e-13)])
            db.flush()
        db.insert("f", [(9, 2, 1.0)])
        assert sorted((row[-1], *row[:2]) for row in next(reader).rows()) == [
            ("+", 2, 2.0),
            ("-", 2, 1.0),
        ]
        db.insert("f", [(10, 1, 1.0)])
        second = sorted((row[-1], *rounded(row[:2])) for row in next(reader).rows())
        assert second == [("+", 1, 2.0), ("-", 1, 1.0)]
    with db.subscribe("totals", after=first.token, emit="all", timeout=0.1) as reader:
        assert [sorted(map(rounded, (row[:2] for row in out.rows()))) for out in reader] == [
            [(1, 1.0), (2, 2.0)],
            [(1, 2.0), (2, 2.0)],
        ]


def test_the_whole_view_at_each_commit(db: headwater.Database) -> None:
    """EMIT ALL, and CONFLATE BY, of results that are stored as changes."""
    with (
        db.subscribe("sums", emit="all", timeout=PATIENCE_S) as reader,
        db.subscribe("large", timeout=PATIENCE_S) as changes,
    ):
        assert next(reader).rows() == next(changes).rows() == []
        for step in range(20):
            db.insert("s", [(step, step % 7, step)])
            rows = [row[:-1] for row in next(reader).rows()]
            assert Counter(rows) == Counter(db.sql("SELECT * FROM sums").rows())
            assert len(next(changes).rows()) == 1
    with db.subscribe("large", emit="all", after="earliest", timeout=0.1) as reader:
        assert [len(out.rows()) for out in reader] == list(range(21))
