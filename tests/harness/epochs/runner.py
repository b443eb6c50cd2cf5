"""A history with its queries through the product, against the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import headwater
from tests.harness.epochs.histories import (
    DIM,
    Action,
    Advance,
    Change,
    Create,
    Histories,
    History,
    Insert,
    Pause,
    Restart,
    Resume,
    Row,
)
from tests.harness.epochs.model import MOST_EMPTY, Epoch, Oracle, bag
from tests.harness.epochs.queries import Case, Cases
from tests.harness.epochs.terms import ZONE

ROWS_AT_ONCE = (None, None, 0, 0, 2, 5)  # None: the default; 0: Spark SQL only
PATIENCE_S = 0.001  # everything has been answered when results are read
DOWNSTREAM_CHUNK = 4  # units of time
DOWNSTREAM = {
    "by_time": f"CUT ON _t BY INTERVAL '{DOWNSTREAM_CHUNK}' SECOND",
    "by_rows": "CUT BY 3 ROWS",
}


@dataclass(frozen=True)
class Scenario:
    """A history and queries over it."""

    seed: int
    history: History
    cases: list[Case]
    rows_at_once: int | None  # as ROWS_AT_ONCE

    def __str__(self) -> str:
        """To read."""
        lines = [f"seed {self.seed}, rows at once {self.rows_at_once}"]
        lines += [table.ddl for table in self.history.tables]
        lines += [f"dim: {self.history.dim}", *map(_shown, self.history.actions)]
        return "\n".join(lines)


def _shown(action: Action) -> str:
    if isinstance(action, Insert):
        return f"Insert {action.table}: {[(tick, *list(row.values())[1:]) for tick, row in action.rows]}"
    return str(action)


def make_scenario(seed: int, queries: int) -> Scenario:
    """The scenario of a seed."""
    random = Random(seed)
    history = Histories(random).history()
    makes = Cases(random, history.tables, bool(history.dim))
    cases = [makes.case()]
    while len(cases) < queries:  # some are alike, so that they may share their folds
        cases.append(makes.varied(cases[-1]) if random.random() < 0.3 else makes.case())
    return Scenario(seed, history, cases, random.choice(ROWS_AT_ONCE))


class Run:
    """One scenario in the product."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario, self._folder = scenario, folder
        self._settings: dict[str, Any] = {"snapshot_s": 0.1}
        if scenario.rows_at_once == 0:
            self._settings["spark_sql_only"] = True
        elif scenario.rows_at_once is not None:
            self._settings["rows_at_once"] = scenario.rows_at_once
        self._db = headwater.connect(folder, settings=self._settings)
        self._created = False
        self.refused: dict[int, headwater.Error] = {}
        for table in scenario.history.tables:
            self._db.sql(table.ddl)
        columns = ", ".join(f"{name} {type_}" for name, type_ in DIM)
        self._db.sql(f"CREATE TABLE dim ({columns})")
        self._add(scenario.history.dim)

    def _add(self, rows: tuple[Row, ...]) -> None:
        if rows:
            shown = ", ".join(f"({', '.join(map(_literal, row.values()))})" for row in rows)
            self._db.sql(f"INSERT INTO dim VALUES {shown}")

    def act(self, action: Action) -> None:
        """One action; where the moment of an answer matters, what came before is answered first."""
        if isinstance(action, Insert):
            self._db.insert(action.table, [tuple(row.values()) for _, row in action.rows])
        elif isinstance(action, Advance):
            self._advance(action)
        elif isinstance(action, Change):
            self._db.flush()
            self._change(action)
        elif isinstance(action, Create):
            self._create()
        elif isinstance(action, Restart):
            self._db.close()
            self._db = headwater.connect(self._folder, settings=self._settings)
        elif isinstance(action, (Pause, Resume)):
            self._control("PAUSE" if isinstance(action, Pause) else "RESUME")

    def _advance(self, action: Advance) -> None:
        table = next(t for t in self._scenario.history.tables if t.name == action.table)
        if action.settled:
            self._db.flush()
        self._db.advance(action.table, table.moment(action.tick))
        if action.settled:
            self._db.flush()

    def _change(self, action: Change) -> None:
        if action.removed is not None:
            self._db.sql(f"DELETE FROM dim WHERE k = {action.removed}")
        self._add(action.added)

    def _create(self) -> None:
        self._db.sql(f"SET time_zone = '{ZONE}'")
        self._create_all()
        self._db.sql("RESET time_zone")

    def _create_all(self) -> None:
        self._created = True
        for number, case in enumerate(self._scenario.cases):
            what = "MATERIALIZED VIEW" if case.target == "view" else "CONTINUOUS QUERY"
            begin = " FROM BEGINNING" if case.from_beginning else ""
            text = f"CREATE {what} q{number}{begin} WITH (mode = '{case.mode}') AS {case.text}"
            try:
                self._db.sql(text)
            except headwater.Error as error:
                self.refused[number] = error
                continue
            if case.target == "view" and not case.from_beginning:
                for name, cut in DOWNSTREAM.items():
                    query = f"SELECT count(*) AS n FROM q{number} {cut}"
                    self._db.sql(f"CREATE CONTINUOUS QUERY q{number}_{name} AS {query}")

    def _control(self, word: str) -> None:
        if self._created:
            self._db.flush()
            for number in range(len(self._scenario.cases)):
                if number not in self.refused:
                    self._db.sql(f"{word} QUERY q{number}")
            self._db.flush()

    def finish(self) -> None:
        """Waits for the last results."""
        self._db.flush()

    def problems(self, number: int, wanted: list[Epoch]) -> str | None:
        """What is wrong with a query's results; None if all is well."""
        if number in self.refused:
            return f"refused: {self.refused[number]!r} {self.refused[number].detail}"
        case, table = self._scenario.cases[number], self._scenario.history.tables[0]
        try:
            outs = list(self._db.subscribe(f"q{number}", after="earliest", timeout=PATIENCE_S))
        except headwater.Error as error:
            return f"failed: {error!r} {error.detail}"
        times = [table.moment(epoch.tick) for epoch in wanted]
        if [out.time for out in outs] != times:
            return f"epochs at {[out.time for out in outs]}, not {times}"
        if [out.epoch for out in outs] != list(range(len(outs))):
            return f"epochs are numbered {[out.epoch for out in outs]}"
        if len({out.token for out in outs}) != len(outs):
            return f"tokens come twice: {[out.token for out in outs]}"
        for out, time, epoch in zip(outs, times, wanted, strict=True):
            expected = [(*row, time) for row in epoch.rows]
            if bag(out.rows()) != bag(expected):
                return f"at {time}:\n  {bag(out.rows())}\nnot\n  {bag(expected)}"
        shown = wanted if case.target == "view" else wanted[-1:]
        rows = [(*row, table.moment(epoch.tick)) for epoch in shown for row in epoch.rows]
        found = self._db.sql(f"SELECT * FROM q{number}").rows()
        if bag(found) != bag(rows):
            return f"the table holds {bag(found)}\nnot {bag(rows)}"
        if case.target == "view" and not case.from_beginning:
            return self._downstream(number, wanted)
        return None

    def _downstream(self, number: int, wanted: list[Epoch]) -> str | None:
        """Queries over the view see every row of it once, at its time."""
        unit = self._scenario.history.tables[0].unit
        moment = self._scenario.history.tables[0].moment
        ticks = [epoch.tick for epoch in wanted for _ in epoch.rows]
        length = DOWNSTREAM_CHUNK * unit
        expected: dict[str, list[tuple[Any, ...]]] = {"by_time": [], "by_rows": []}
        first = ticks[0] // length * length if ticks else 0
        last = wanted[-1].tick if ticks else 0
        for end in range(first + length, last + 1, length):
            inside = sum(end - length <= tick < end for tick in ticks)
            expected["by_time"].append((inside, moment(end)))
        for place in range(2, len(ticks), 3):
            expected["by_rows"].append((3, moment(ticks[place])))
        for name, rows in expected.items():
            outs = self._db.subscribe(f"q{number}_{name}", after="earliest", timeout=PATIENCE_S)
            found = [row for out in outs for row in out.rows()]
            if found != rows and not _is_shortened(rows):
                return f"a query over the view ({name}) says {found}\nnot {rows}"
        return None

    def close(self) -> None:
        """Ends the database."""
        self._db.close()


def _is_shortened(rows: list[tuple[Any, ...]]) -> bool:
    """Whether so many empty chunks came in a row that not all are delivered."""
    return len(rows) > MOST_EMPTY


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def run_seed(seed: int, queries: int, folder: Path, tried: Counter[str]) -> list[str]:
    """All disagreements of one scenario, to read."""
    scenario = make_scenario(seed, queries)
    oracle, found = Oracle(scenario.history, scenario.cases), list[str]()
    run = Run(scenario, folder)
    try:
        for action in scenario.history.actions:
            oracle.act(action)
            run.act(action)
        run.finish()
        for number, case in enumerate(scenario.cases):
            wanted = oracle.running[number].epochs
            said = run.problems(number, wanted)
            if said is not None:
                begin = " from beginning" if case.from_beginning else ""
                found.append(
                    f"query {number} ({case.mode}, {case.target}{begin})\n{case.text}\n{said}"
                )
            with_rows = sum(bool(epoch.rows) for epoch in wanted)
            tried.update(case.constructs | _happened(scenario.history) if with_rows else ())
            tried["epochs"] += len(wanted)
            tried["epochs with rows"] += with_rows
    finally:
        oracle.close()
        run.close()
    return [f"{said}\n\n{scenario}" for said in found]


def _happened(history: History) -> set[str]:
    found = {type(action).__name__.lower() for action in history.actions}
    found |= {"watermark"} if any(table.watermark for table in history.tables) else set()
    return found | ({"stored rows"} if not isinstance(history.actions[0], Create) else set())
