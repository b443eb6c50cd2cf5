"""A history with its queries through the product, in every tier and mode, against the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import headwater
from tests.harness.continuous.compare import difference, same_bag, same_list
from tests.harness.continuous.counts import Counts
from tests.harness.continuous.model import Oracle
from tests.harness.continuous.queries import Case, make_case
from tests.harness.continuous.streams import (
    DIM,
    Advance,
    Change,
    Create,
    History,
    Insert,
    Restart,
    Row,
    Streams,
    literal,
)

OPERATORS, SPARK = "operators", "Spark"
FOLD, REEVALUATE = "fold", "reevaluate"
ZONES = ("UTC", "UTC", "Europe/Berlin", "America/New_York")
PATIENCE_S = 0.001  # everything has been answered when results are read

Results = list[tuple[Any, list[Row]]]


@dataclass
class Scenario:
    """A history and queries over it."""

    seed: int
    history: History
    cases: list[Case]
    zone: str = "UTC"  # when the queries are created; it changes then


def make_scenario(seed: int, queries: int) -> Scenario:
    """The scenario of a seed."""
    random = Random(seed)
    history = Streams(random).history()
    inserts = [action for action in history.actions if isinstance(action, Insert)]
    times = {tick for insert in inserts for tick, _ in insert.rows}
    cases = [
        make_case(random.getrandbits(40), seed * queries + n, history.streams, len(times) <= 14)
        for n in range(queries)
    ]
    zone = Random(f"zone of {seed}").choice(ZONES)
    return Scenario(seed, history, cases, zone)


@dataclass
class Problem:
    """A disagreement."""

    scenario: Scenario
    case: Case
    what: str

    def __str__(self) -> str:
        """For the report."""
        return f"seed {self.scenario.seed}: {self.what}\n  {self.case.text}\n  DuckDB: {self.case.duck}"


class Tier:
    """One database, with every query in both modes."""

    def __init__(self, scenario: Scenario, folder: Path, tier: str) -> None:
        self.scenario, self.tier, self.folder = scenario, tier, folder
        self.database = self._connect()
        self.names: dict[tuple[int, str], str] = {}
        self.errors: dict[int, str] = {}
        self.ran: dict[str, Any] = {}
        for stream in scenario.history.streams:
            self.database.sql(stream.ddl)
        columns = ", ".join(f"{name} {type_}" for name, type_ in DIM)
        self.database.sql(f"CREATE TABLE dim ({columns})")
        if scenario.history.dim:
            rows = (f"({', '.join(map(literal, row))})" for row in scenario.history.dim)
            self.database.sql(f"INSERT INTO dim VALUES {', '.join(rows)}")

    def _connect(self) -> headwater.Database:
        settings = {"removed_files_kept_s": 0}  # what RANGE hides goes at once
        settings |= {"spark_sql_only": True} if self.tier == SPARK else {}
        return headwater.connect(self.folder, settings=settings)

    def act(self, action: Any) -> None:
        """One action; changes of the table wait for what came before them."""
        if isinstance(action, Insert):
            self.database.insert(action.stream, [row for _, row in action.rows])
        elif isinstance(action, Advance):
            stream = next(s for s in self.scenario.history.streams if s.name == action.stream)
            self.database.advance(action.stream, stream.moment(action.tick))
        elif isinstance(action, Change):
            self.database.flush()
            self.database.sql(action.sql)
        elif isinstance(action, Create):
            self._create()
        elif isinstance(action, Restart):
            self._remember()
            self.database.close()
            self.database = self._connect()

    def _create(self) -> None:
        self.database.sql(f"SET time_zone = '{self.scenario.zone}'")
        self._create_all()
        self.database.sql("RESET time_zone")

    def _create_all(self) -> None:
        for number, case in enumerate(self.scenario.cases):
            for mode in (FOLD, REEVALUATE):
                try:
                    kept = self._create_one(number, case, mode)
                except headwater.Error as error:
                    self.errors[number] = f"{error!r} {error.detail}"
                    break
                if kept:
                    self.names[number, mode] = f"q{number}_{mode}"
                    if not self.query(f"q{number}_{mode}").plan.folds:
                        break  # both modes would be the same

    def _create_one(self, number: int, case: Case, mode: str) -> bool:
        """What runs on Spark waits for a flush, so that one job answers many instants."""
        name, begin = f"q{number}_{mode}", "FROM BEGINNING " if case.from_beginning else ""
        start = f"CREATE CONTINUOUS QUERY {name} {begin}WITH (mode = '{mode}'"
        self.database.sql(f"{start}, max_wait = INTERVAL '1' HOUR) AS {case.text}")
        if self.tier == SPARK:
            return True
        evaluation = self.query(name).evaluation
        folded = bool(self.query(name).plan.folds) and mode == FOLD
        by_operators = (
            evaluation._finishes_by_operators if folded else evaluation._rows_by_operators
        )
        if not folded and not by_operators:
            self.database.sql(f"DROP QUERY {name}")  # it would be Spark again
            return False
        if by_operators:
            self.query(name).max_wait_s = None
        return True

    def query(self, name: str) -> Any:
        """The engine's query."""
        return self.database._context.engine.find(name)

    def _remember(self) -> None:
        """Counters of queries, before a restart forgets them."""
        for name in self.names.values():
            counters = self.query(name).counters
            ran = self.ran.setdefault(name, [0, 0])
            ran[0] += counters.rows_by_operators
            ran[1] += counters.rows_on_spark

    def results(self, name: str, emit: str | None = None) -> Results:
        """What a subscriber gets from the beginning."""
        found = []
        reader: Any = self.database.subscribe(
            name,
            emit=emit,  # type: ignore[arg-type]
            after="earliest",
            timeout=PATIENCE_S,
        )
        for out in reader:
            found.append((out.time, [tuple(row.values()) for row in _rows(out.arrow())]))
        return found

    def finish(self) -> None:
        """Waits for the last results."""
        self.database.flush()
        self._remember()

    def close(self) -> None:
        """Ends the database."""
        self.database.close()


def _rows(table: Any) -> Iterator[dict[int, Any]]:
    columns = [column.to_pylist() for column in table.columns]
    for place in range(table.num_rows):
        yield {number: column[place] for number, column in enumerate(columns)}


@dataclass
class Run:
    """One scenario, compared."""

    scenario: Scenario
    counts: Counts
    problems: list[Problem] = field(default_factory=list)

    def go(self, folder: Path, wanted: tuple[str, ...] = (OPERATORS, SPARK)) -> list[Problem]:
        """Runs all tiers and the oracle."""
        oracle = Oracle(self.scenario.history, self.scenario.cases, self.scenario.zone)
        tiers: list[Tier] = []
        try:
            for tier in wanted:
                tiers.append(Tier(self.scenario, folder / tier.replace(" ", ""), tier))
            for action in self.scenario.history.actions:
                oracle.act(action)
                for one in tiers:
                    one.act(action)
            for one in tiers:
                one.finish()
            for number, case in enumerate(self.scenario.cases):
                self._compare(number, case, oracle, tiers)
        finally:
            oracle.close()
            for one in tiers:
                one.close()
        return self.problems

    def _compare(self, number: int, case: Case, oracle: Oracle, tiers: list[Tier]) -> None:
        judge: Results | None = None
        wanted = self._wanted(number, case, oracle)
        for tier in reversed(tiers):  # Spark's re-evaluation first
            if number in tier.errors:
                self._problem(case, f"{tier.tier}: refused: {tier.errors[number]}")
                return
            for mode in (REEVALUATE, FOLD):
                name = tier.names.get((number, mode))
                if name is None:
                    continue
                query = tier.query(name)
                where = f"{mode} {tier.tier}"
                if query.error is not None:
                    self._problem(
                        case,
                        f"{where}: failed: {query.error!r} {getattr(query.error, 'detail', '')}",
                    )
                    continue
                self.counts.add(case, self.scenario.history, tier, name, mode)
                found = tier.results(name, "all")
                times = [time for time, _ in found]
                if times != [time for time, _ in wanted]:
                    self._problem(case, f"{where}: instants {times}, not {[t for t, _ in wanted]}")
                    continue
                if judge is None:
                    judge = found
                self._check(case, where, found, judge, wanted)
                self._check_emitted(case, where, tier.results(name), found)

    def _wanted(self, number: int, case: Case, oracle: Oracle) -> list[tuple[Any, Any]]:
        stream = oracle.tables[case.windows[0].table].stream
        running = oracle.running[number]
        found = []
        for tick, rows in running.results:
            time = stream.moment(tick)
            if stream.time_type == "TIMESTAMP_NTZ":
                time = time.replace(tzinfo=UTC)
            found.append((time, rows))
        return found

    def _check(
        self, case: Case, where: str, found: Results, judge: Results, wanted: list[tuple[Any, Any]]
    ) -> None:
        same = same_list if case.ordered else same_bag
        for (time, rows), (_, judged), (_, model) in zip(found, judge, wanted, strict=True):
            if any(row[-1] != time for row in rows):
                self._problem(case, f"{where}: _t is not {time}: {rows}")
                return
            plain = [row[:-1] for row in rows]
            if not same(plain, [row[:-1] for row in judged]):
                self._problem(
                    case, f"{where} at {time}: {plain}\n   judge: {judged}\n   DuckDB: {model}"
                )
                return
            if model is not None and not same(plain, model):
                self._problem(case, f"{where} at {time}: {plain}\n   DuckDB: {model}")
                return

    def _check_emitted(self, case: Case, where: str, emitted: Results, whole: Results) -> None:
        """EMIT is the difference to the result before."""
        if [time for time, _ in emitted] != [time for time, _ in whole]:
            self._problem(case, f"{where}: EMIT gave {emitted} of {whole}")
            return
        old: list[Row] = []
        for (time, rows), (_, given) in zip(whole, emitted, strict=True):
            come, gone = difference([row[:-1] for row in rows], old)
            old = [row[:-1] for row in rows]
            rows_of = {
                "all": rows,
                "inserts": [(*row, time) for row in come],
                "deletes": [(*row, time) for row in gone],
                "changes": [(*r, time, "+") for r in come] + [(*r, time, "-") for r in gone],
            }
            if not same_bag(given, rows_of[case.emit]):
                self._problem(case, f"{where}: EMIT at {time}: {given}, not {rows_of[case.emit]}")
                return

    def _problem(self, case: Case, what: str) -> None:
        self.problems.append(Problem(self.scenario, case, what))


def run_seed(
    seed: int,
    queries: int,
    folder: Path,
    counts: Counts,
    tiers: tuple[str, ...] = (OPERATORS, SPARK),
) -> list[Problem]:
    """All disagreements of one scenario."""
    return Run(make_scenario(seed, queries), counts).go(folder, tiers)


def actions_text(scenario: Scenario) -> str:
    """The scenario to read."""
    lines = [stream.ddl for stream in scenario.history.streams]
    lines.append(f"dim: {scenario.history.dim}")
    lines += [str(action) for action in scenario.history.actions]
    return "\n".join(lines)
