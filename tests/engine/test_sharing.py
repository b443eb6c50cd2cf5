"""Equal stream pipelines are shared: the results are those of queries that share nothing (DC9)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater
from headwater.engine import sharing as sharing_module
from headwater.engine.fold_run import Counters
from headwater.engine.query import ContinuousQuery
from headwater.engine.sampling import Sampling
from headwater.engine.sharing import Member, Sharing
from headwater.storage.streaming.fresh import fresh_rows
from tests.harness.patience import until

TABLE = (
    "CREATE STREAMING TABLE t (k INT, x BIGINT, y DOUBLE, at BIGINT NOT NULL) "
    "TIMESTAMP BY at WATERMARK INTERVAL {watermark} SECONDS"
)
PATIENCE_S = 0.001  # everything has been answered when results are read
Rows = list[tuple[Any, list[tuple[Any, ...]]]]

SELECTS = (
    "k, sum(x) AS a FROM t {window} WHERE x > 2 GROUP BY k",
    "k, count(*) AS a, max(y) AS b FROM t {window} WHERE x > 2 GROUP BY k",
    "k, avg(x) AS a, sum(x) AS b FROM t {window} WHERE x > 2 GROUP BY k HAVING count(*) > 1",
    "k, count(DISTINCT x) AS a FROM t {window} WHERE x > 2 GROUP BY k",
    "sum(x) AS a, min(y) AS b FROM t {window}",
    "count(*) AS a FROM t {window}",
)
WINDOWS = ("[INTERVAL 7 SECONDS]", "[INTERVAL 4 SECONDS BEFORE]", "[INTERVAL 20 SECONDS]")
SAMPLES = (
    "SAMPLE INTERVAL 2 SECONDS",
    "SAMPLE INTERVAL 4 SECONDS",
    "SAMPLE INTERVAL 5 SECONDS",
    "SAMPLE REALTIME",
)


def query_of(db: headwater.Database, name: str) -> ContinuousQuery:
    """The engine's query."""
    query = db._context.engine.find(name)
    assert query is not None
    return query


def results(db: headwater.Database, name: str) -> Rows:
    """All results of a query, each as a sorted bag."""
    found = []
    for out in db.subscribe(name, after="earliest", timeout=PATIENCE_S):
        columns = [column.to_pylist() for column in out.arrow().columns]
        found.append((out.time, sorted(zip(*columns, strict=True), key=repr)))
    return found


def plan_lines(db: headwater.Database, name: str) -> str:
    """EXPLAIN of a query, as one text."""
    return "\n".join(db.sql(f"EXPLAIN QUERY {name}").arrow().column("plan").to_pylist())


def create(db: headwater.Database, name: str, select: str, mode: str = "fold") -> None:
    """A continuous query."""
    db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (mode = '{mode}') AS SELECT {select}")


def insert(db: headwater.Database, *rows: tuple[int, int, int]) -> None:
    """Rows (k, x, at); y follows from x."""
    db.insert("t", [(k, x, x / 4, at) for k, x, at in rows])


def fill(db: headwater.Database, start: int, stop: int) -> None:
    """One row a second, each answered before the next comes."""
    for at in range(start, stop):
        insert(db, (at % 3, at % 7, at))
        db.flush()


SUM = "k, sum(x) AS a FROM t [INTERVAL 7 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
MAX = (
    "k, max(y) AS a, count(*) AS n FROM t [INTERVAL 7 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)
OTHER = (
    "k, sum(x) AS a FROM t [INTERVAL 7 SECONDS] WHERE x > 1 GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)


LONG = "k, max(y) AS a FROM t [INTERVAL 24 SECONDS] GROUP BY k SAMPLE INTERVAL 4 SECONDS"
BEFORE = "k, count(*) AS a FROM t [INTERVAL 5 SECONDS BEFORE] GROUP BY k SAMPLE INTERVAL 2 SECONDS"


@pytest.fixture
def table(db: headwater.Database) -> headwater.Database:
    """A database with a table t."""
    db.sql(TABLE.format(watermark=0))
    return db


# What is shared, and when


def runs(db: headwater.Database) -> int:
    """How often rows went through a stream pipeline, of all queries."""
    return sum(query.counters.operator_runs for query in db._context.engine.all())


def folded(db: headwater.Database) -> int:
    """How many rows went through a stream pipeline, of all queries."""
    return sum(query.counters.rows_by_operators for query in db._context.engine.all())


@pytest.mark.here
def test_rows_go_through_equal_pipelines_once(table: headwater.Database) -> None:
    """Three queries with equal filters and keys fold a slide's rows once, whatever they aggregate."""
    for name, select in (("a", SUM), ("b", MAX), ("c", SUM + " EMIT CHANGES")):
        create(table, name, select)
    create(table, "judge", MAX, mode="reevaluate")
    fill(table, 0, 8)
    before = runs(table)
    fill(table, 8, 14)
    assert runs(table) - before == 3
    assert results(table, "b") == results(table, "judge")


@pytest.mark.here
def test_windows_of_other_lengths_stand_on_the_same_panes(table: headwater.Database) -> None:
    """Closed or not, long or short, with slides that are multiples: a slide's rows are folded once."""
    windows = {"a": SUM, "b": LONG, "c": BEFORE}
    for name, select in windows.items():
        create(table, name, select)
        create(table, f"{name}_judge", select, mode="reevaluate")
    fill(table, 0, 40)
    before = folded(table)
    fill(table, 40, 48)
    assert folded(table) - before == 8
    for name in windows:
        assert results(table, name) == results(table, f"{name}_judge")


@pytest.mark.here
def test_two_windows_of_one_query_stand_on_the_same_panes(table: headwater.Database) -> None:
    """A short mean beside a long one: the rows are folded once for both."""
    mean = "(SELECT k, avg(x) AS m FROM t [INTERVAL {} SECONDS] GROUP BY k)"
    select = f"a.k, a.m - b.m AS d FROM {mean.format(4)} a JOIN {mean.format(20)} b USING (k)"
    select += " SAMPLE INTERVAL 2 SECONDS"
    create(table, "both", select)
    create(table, "judge", select, mode="reevaluate")
    fill(table, 0, 12)
    before = folded(table)
    fill(table, 12, 18)
    assert folded(table) - before == 6
    assert "  panes: of 2 windows, " in plan_lines(table, "both")
    assert results(table, "both") == results(table, "judge")


def test_panes_are_told_once(table: headwater.Database) -> None:
    """EXPLAIN says how many windows there are; of the queries the one with the longest tells the size."""
    for name, select in (("a", SUM), ("b", LONG), ("c", BEFORE)):
        create(table, name, select)
    fill(table, 0, 50)
    assert "  panes: of 3 windows, " in plan_lines(table, "a")
    assert "  shared with: b, c" in plan_lines(table, "a")
    rows = table.sql("SELECT name, state_size, shared_with FROM headwater.queries").rows()
    told = {name: (size, others) for name, size, others in rows}
    assert {name: others for name, (_, others) in told.items()} == {
        "a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}  # fmt: skip
    sizes = {name: size for name, (size, _) in told.items()}
    assert sizes["a"] == sizes["c"] == 0
    assert sizes["b"] >= 24 // 2


def test_panes_are_shared_again_after_a_restart(
    connect: Callable[..., headwater.Database], folder: Path
) -> None:
    """And in whichever host: the queries are placed together, their panes made of stored rows."""
    windows = {"a": SUM, "b": LONG}
    db = connect(folder)
    db.sql(TABLE.format(watermark=0))
    for name, select in windows.items():
        create(db, name, select)
        create(db, f"{name}_judge", select, mode="reevaluate")
    fill(db, 0, 30)
    db.close()
    db = connect(folder)
    fill(db, 30, 60)
    assert "  shared with: b" in plan_lines(db, "a")
    for name in windows:
        assert results(db, name) == results(db, f"{name}_judge")


@pytest.mark.here
def test_slides_that_are_no_multiples_have_panes_of_their_own(table: headwater.Database) -> None:
    """Panes of one second would be many for slides of two and of five; slides of ten fit both."""
    slides = {"a": 2, "b": 5, "c": 10, "d": 4}
    for name, slide in slides.items():
        sample = f"SAMPLE INTERVAL {slide} SECONDS"
        create(table, name, SUM.replace("SAMPLE INTERVAL 2 SECONDS", sample))
    fill(table, 0, 40)
    shared = {name: query_of(table, name).folds.with_whom(0) for name in slides}
    assert shared == {"a": ["c", "d"], "b": [], "c": ["a", "d"], "d": ["a", "c"]}


@pytest.mark.here
def test_a_long_window_that_comes_and_goes(table: headwater.Database) -> None:
    """The panes are made again for it from stored rows, and go on without it."""
    create(table, "a", SUM)
    create(table, "b", MAX)
    fill(table, 0, 40)
    create(table, "long", LONG)
    create(table, "judge", LONG, mode="reevaluate")
    fill(table, 40, 60)
    assert query_of(table, "long").folds.with_whom(0) == ["a", "b"]
    assert results(table, "long") == results(table, "judge")
    table.sql("DROP QUERY long")
    before = folded(table)
    fill(table, 60, 64)
    assert folded(table) - before == 4
    assert query_of(table, "a").folds.with_whom(0) == ["b"]


@pytest.mark.here
def test_shared_epochs_are_folded_before_they_end(table: headwater.Database) -> None:
    """Rows of epochs that several queries have in common go into panes as they come (EQ7)."""
    for name, keep in (("a", 1), ("b", 3)):
        create(table, name, f"k, sum(x) AS s FROM t CUT ON at BY INTERVAL 100 SECONDS"
               f" KEEP {keep} CHUNKS GROUP BY k")  # fmt: skip
        create(table, f"{name}_judge", f"k, sum(x) AS s FROM t CUT ON at BY INTERVAL 100 SECONDS"
               f" KEEP {keep} CHUNKS GROUP BY k", "reevaluate")  # fmt: skip
    for at in range(10, 395, 10):
        table.insert("t", [(n % 3, n % 7, 0.0, at + n % 10) for n in range(200)])
        table.flush()
    assert query_of(table, "a").folds.with_whom(0) == ["b"]
    running = query_of(table, "a").folds._members[0].shared.running
    until(lambda: running.reader.untaken <= 1800 / 8)
    for name in "ab":
        assert len(results(table, name)) == 3
        assert results(table, name) == results(table, f"{name}_judge")


def test_explain_names_the_others(table: headwater.Database) -> None:
    """EXPLAIN says with whom a fold is shared; another filter, or nobody else, is not shared."""
    for name, select in (("a", SUM), ("b", MAX), ("c", OTHER)):
        create(table, name, select)
    fill(table, 0, 8)
    assert "  shared with: b" in plan_lines(table, "a")
    assert "  shared with: a" in plan_lines(table, "b")
    assert "shared" not in plan_lines(table, "c")
    table.sql("DROP QUERY a")
    fill(table, 8, 12)
    assert "shared" not in plan_lines(table, "b")


@pytest.mark.here
def test_a_query_that_pauses_leaves(table: headwater.Database) -> None:
    """A paused query shares nothing; when it has caught up it shares again, and nothing is lost."""
    for name, select in (("a", SUM), ("b", MAX)):
        create(table, name, select)
    create(table, "judge", SUM, mode="reevaluate")
    fill(table, 0, 8)
    table.sql("PAUSE QUERY a")
    fill(table, 8, 30)
    assert query_of(table, "b").folds.with_whom(0) == []
    table.sql("RESUME QUERY a")
    fill(table, 30, 36)
    assert query_of(table, "a").folds.with_whom(0) == ["b"]
    assert results(table, "a") == results(table, "judge")


@pytest.mark.here
def test_a_query_from_the_beginning_goes_alone_until_it_is_level(table: headwater.Database) -> None:
    """A query far behind is not served by the shared fold, and is right all the way."""
    for name, select in (("a", SUM), ("b", MAX)):
        create(table, name, select)
    fill(table, 0, 20)
    for name, mode in (("late", "fold"), ("judge", "reevaluate")):
        begin = f"CREATE CONTINUOUS QUERY {name} FROM BEGINNING WITH (mode = '{mode}')"
        table.sql(f"{begin} AS SELECT {SUM}")
    table.flush()
    fill(table, 20, 28)
    assert query_of(table, "late").folds.with_whom(0) == ["a", "b"]
    assert results(table, "late") == results(table, "judge")


@pytest.mark.here
def test_an_error_stays_with_its_query(table: headwater.Database) -> None:
    """A sum that overflows fails its own query; the one that shares its pipeline goes on."""
    for name, select in (("a", SUM), ("b", MAX)):
        create(table, name, select)
    create(table, "judge", MAX, mode="reevaluate")
    fill(table, 0, 8)
    assert query_of(table, "b").folds.with_whom(0) == ["a"]
    insert(table, (1, 2**62, 8), (1, 2**62, 8), (1, 2**62, 8))
    for at in range(9, 14):
        insert(table, (at % 3, at % 7, at))
        table._context.engine.flush()
    assert query_of(table, "a").state == "failed"
    assert query_of(table, "b").state == "running"
    assert results(table, "b") == results(table, "judge")


@pytest.mark.here
def test_pipelines_that_only_spark_can_run_are_shared(
    connect: Callable[..., headwater.Database], folder: Path
) -> None:
    """The united fold takes the types that Spark found for its members."""
    db = connect(folder, settings={"spark_sql_only": True})
    db.sql(TABLE.format(watermark=0))
    keys = "GROUP BY hex(k) SAMPLE INTERVAL 4 SECONDS"
    selects = {
        "a": f"hex(k) AS h, sum(x * 2) AS a FROM t [INTERVAL 7 SECONDS] {keys}",
        "b": f"hex(k) AS h, max(repeat('z', CAST(x AS INT))) AS a FROM t [INTERVAL 7 SECONDS] {keys}",
    }
    for name, select in selects.items():
        create(db, name, select)
        create(db, f"{name}_judge", select, mode="reevaluate")
    for start in (0, 4, 8):
        insert(db, *((at % 3, at % 7, at) for at in range(start, start + 5)))
        db.flush()
    assert query_of(db, "a").folds.with_whom(0) == ["b"]
    for name in selects:
        assert results(db, name) == results(db, f"{name}_judge")


# The shared fold itself


@dataclass
class Two:
    """Two members of a shared fold that no engine fires, over rows 0 to 19."""

    db: headwater.Database
    sharing: Sharing
    sum: Member
    max: Member

    def ask(self, member: Member, *instants: int) -> dict[int, dict[str, list[Any]]]:
        """A member's relations."""
        with self.db._context.held(()) as held:
            found = member.results(instants, instants[-1], held, Counters())
        return {instant: table.to_pydict() for instant, table in found.items()}


@pytest.fixture
def two(table: headwater.Database) -> Two:
    """The members, both before instant 2."""
    for name, select in (("a", SUM), ("b", MAX)):
        create(table, name, select)
    fill(table, 0, 20)
    sharing = Sharing()
    found = []
    for name in "ab":
        query = query_of(table, name)
        sampling = Sampling("interval", 2, after=0)
        found.append(sharing.add(name, query.specs, query.tables, sampling, query.world)[0])
    return Two(table, sharing, *found)


def model(instant: int) -> dict[str, list[int]]:
    """The sums of the window at an instant."""
    sums: dict[int, int] = {}
    for at in range(max(instant - 7, 0), instant + 1):
        sums[at % 3] = sums.get(at % 3, 0) + at % 7
    return {str(k): [sums[k]] for k in sorted(sums)}


def by_key(found: dict[str, list[Any]]) -> dict[str, list[int]]:
    """A relation as the model has it."""
    rows = zip(found["_k0"], found["_a0"], strict=True)
    return {str(k): [v] for k, v in sorted(rows)}


def test_who_comes_later_finds_what_was_folded(two: Two) -> None:
    """An instant is folded once; its relation is kept until every member has taken it."""
    two.ask(two.max, 2, 4, 6)
    assert list(two.sum.window.kept) == [2, 4, 6]
    run = two.sum.shared.running
    found = two.ask(two.sum, 2, 4)
    assert {i: by_key(t) for i, t in found.items()} == {i: model(i) for i in (2, 4)}
    assert list(two.sum.window.kept) == [6]
    assert two.sum.shared.running is run


def test_what_is_kept_is_bounded(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member further behind than the bound gets its own relations, and goes on alone."""
    monkeypatch.setattr(sharing_module, "MOST_KEPT", 2)
    two.ask(two.max, 2, 4, 6, 8)
    assert list(two.sum.window.kept) == [6, 8]
    found = two.ask(two.sum, 2, 4, 6)
    assert {i: by_key(t) for i, t in found.items()} == {i: model(i) for i in (2, 4, 6)}
    assert two.sum.mark is None
    assert not two.sum.enter(8, 8)  # it comes up to the others in this firing
    two.ask(two.max, 10)
    assert two.sum.enter(10, 10)
    assert by_key(two.ask(two.sum, 10)[10]) == model(10)


def test_panes_that_wait_are_bounded(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window whose member never asks is let go; it is right when it comes back."""
    monkeypatch.setattr(sharing_module, "MOST_WAITING", 4)
    create(two.db, "c", LONG)
    query = query_of(two.db, "c")
    sampling = Sampling("interval", 4, after=0)
    (long,) = two.sharing.add("c", query.specs, query.tables, sampling, query.world).values()
    two.ask(two.sum, 2, 4)
    assert long.mark == 0
    assert len(two.sum.shared.running.windows) == 2
    two.ask(two.sum, 6, 8, 10, 12)
    assert long.mark is None
    assert len(two.sum.shared.running.windows) == 1
    assert not long.enter(4, 12)
    assert long.enter(16, 16)
    found = two.ask(long, 16)[16]
    assert dict(zip(found["_k0"], found["_a0"], strict=True)) == {0: 1.5, 1: 1.5, 2: 1.25}


def test_kept_rows_are_bounded(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large relations are dropped before there are many of them."""
    monkeypatch.setattr(sharing_module, "MOST_KEPT_ROWS", 7)
    two.ask(two.max, 4, 6, 8)
    assert list(two.sum.window.kept) == [6, 8]


def test_instants_that_nobody_asked_for_are_folded_for_who_does(two: Two) -> None:
    """A member that skipped instants (it re-evaluated them) does not take them from the others."""
    two.max.passed(8)
    two.ask(two.max, 10)
    assert by_key(two.ask(two.sum, 6)[6]) == model(6)


def test_an_aggregate_that_fails_is_its_members_own_affair(two: Two) -> None:
    """Who asks first is served although another's sum overflows; that one gets the error."""
    insert(two.db, *[(1, 2**62, 20)] * 3, (1, 1, 23))
    assert max(two.ask(two.max, 22)[22]["_a0"]) == 2**60
    with pytest.raises(headwater.Error):
        two.ask(two.sum, 22)


def test_kept_relations_go_when_stored_rows_change(two: Two) -> None:
    """What was folded before a change of stored rows is never given out after it."""
    two.ask(two.max, 2, 4)
    two.db.sql("TRUNCATE TABLE t")
    assert two.ask(two.sum, 4)[4] == {"_k0": [], "_a0": []}


def test_a_new_member_brings_its_aggregates(two: Two) -> None:
    """The fold is built again with the union, and shrinks when most of it is not needed."""
    two.ask(two.max, 2)
    two.ask(two.sum, 2)
    assert len(two.sum.shared.running.fold.spec.plan.aggregates) == 3
    two.sharing.remove({0: two.max})
    two.ask(two.sum, 4)
    assert len(two.sum.shared.running.fold.spec.plan.aggregates) == 1


def test_a_fold_that_is_never_shared(table: headwater.Database) -> None:
    """Windows of rows, landmarks, and SAMPLE n ROWS are not shared."""
    selects = (
        "k, sum(x) AS a FROM t [LANDMARK] GROUP BY k SAMPLE INTERVAL 2 SECONDS",
        "sum(x) AS a FROM t [ROWS 3] SAMPLE INTERVAL 2 SECONDS",
        "k, sum(x) AS a FROM t [INTERVAL 7 SECONDS] GROUP BY k SAMPLE 2 ROWS",
    )
    for number, select in enumerate(selects):
        create(table, f"one{number}", select)
        create(table, f"two{number}", select)
    fill(table, 0, 8)
    assert [q.name for q in table._context.engine.all() if q.folds.with_whom(0)] == []


def test_new_rows_are_made_once(table: headwater.Database) -> None:
    """Readers that ask for the same new rows get one table; a commit makes another."""
    stream = table._context.stream("t")
    assert stream is not None

    def fresh(sequence: int) -> pa.Table:
        found = fresh_rows(stream, sequence)
        assert found is not None, "rows of the tail are not looked for in blocks"
        return found.rows

    insert(table, (1, 2, 3))
    first = fresh(0)
    assert fresh(0) is first
    insert(table, (1, 5, 4))
    assert fresh(0).column("x").to_pylist() == [2, 5]
    assert fresh(1).column("x").to_pylist() == [5]


# The property


@dataclass
class World:
    """A database with queries that may share, each with a twin that never does."""

    folder: Path
    watermark: int
    clock: int = 0
    names: list[str] = field(default_factory=list)
    made: int = 0
    shared: int = 0

    def __post_init__(self) -> None:
        self.db = headwater.connect(self.folder)
        self.db.sql(TABLE.format(watermark=self.watermark))

    def insert(self, steps: list[tuple[int, int, int]]) -> None:
        """Rows at or before or after the clock."""
        rows = []
        for k, x, step in steps:
            at = max(self.clock + step, 0)
            self.clock = max(self.clock, at)
            rows.append((k, x, at))
        insert(self.db, *rows)

    def create(self, select: str, window: str, sample: str, begin: bool) -> None:
        """A query and its twin, from the same place."""
        if len(self.names) == 6:
            return
        self.db.flush()
        name = f"q{self.made}"
        self.made += 1
        text = f"SELECT {select.format(window=window)} {sample}"
        start = "FROM BEGINNING " if begin else ""
        for twin, mode in ((name, "fold"), (f"{name}_twin", "reevaluate")):
            self.db.sql(f"CREATE CONTINUOUS QUERY {twin} {start}WITH (mode = '{mode}') AS {text}")
        self.names.append(name)

    def drop(self, place: int) -> None:
        """A query goes; until then it was right."""
        if self.names:
            self.db.flush()
            name = self.names.pop(place % len(self.names))
            self.check(name)
            self.db.sql(f"DROP QUERY {name}")
            self.db.sql(f"DROP QUERY {name}_twin")

    def pause(self, place: int) -> None:
        """A query stands still while rows come."""
        if self.names:
            name = self.names[place % len(self.names)]
            self.db.sql(f"PAUSE QUERY {name}")
            self.insert([(1, 5, 1), (2, 3, 4)])
            self.db.flush()
            self.db.sql(f"RESUME QUERY {name}")

    def truncate(self) -> None:
        """All stored rows go."""
        self.db.flush()
        self.db.sql("TRUNCATE TABLE t")

    def restart(self) -> None:
        """The database is closed and opened again."""
        self.db.close()
        self.db = headwater.connect(self.folder)

    def check(self, name: str) -> None:
        """A query's results are those of its twin."""
        query = query_of(self.db, name)
        assert query.error is None
        self.shared += bool(query.folds.with_whom(0))
        assert results(self.db, name) == results(self.db, f"{name}_twin"), query.statement

    def finish(self) -> None:
        """Everything is answered and right."""
        self.db.flush()
        for name in self.names:
            self.check(name)
        self.db.close()


ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(-2, 4)), min_size=1, max_size=6
)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), ROWS),
        st.tuples(st.just("insert"), ROWS),
        st.tuples(st.just("insert"), ROWS),
        st.tuples(
            st.just("create"),
            st.sampled_from(SELECTS),
            st.sampled_from(WINDOWS),
            st.sampled_from(SAMPLES),
            st.booleans(),
        ),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("pause"), st.integers(0, 5)),
        st.tuples(st.just("truncate")),
        st.tuples(st.just("restart")),
    ),
    min_size=4,
    max_size=14,
)


@given(
    actions=ACTIONS,
    window=st.sampled_from(WINDOWS),
    sample=st.sampled_from(SAMPLES),
    watermark=st.sampled_from((0, 3)),
)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_shared_results_are_those_of_queries_alone(
    actions: list[Any], window: str, sample: str, watermark: int
) -> None:
    """Queries that come, go, pause and restart while sharing give what re-evaluation gives."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "data", watermark)
        try:
            for select, own in zip(SELECTS[:2], (window, WINDOWS[-1]), strict=True):
                world.create(select, own, sample, False)
            for action, *arguments in actions:
                getattr(world, action)(*arguments)
            world.insert([(0, 5, 1), (1, 5, 5)])
            world.finish()
        finally:
            world.db.close()
