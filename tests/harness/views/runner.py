"""A history through the product, in both tiers, each read against the oracle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import headwater
from tests.harness.continuous.compare import same_bag
from tests.harness.continuous.streams import DIM, Row, literal
from tests.harness.views.histories import (
    Advance,
    ChangeRows,
    ChangeTable,
    Create,
    CreateAbove,
    History,
    Insert,
    Read,
    Refresh,
    Restart,
    SetZone,
)
from tests.harness.views.model import MARK, Oracle
from tests.harness.views.queries import PLAIN, PLAIN_QUERY

OPERATORS, SPARK = "operators", "Spark"
REEVALUATED = "re-evaluated"
KEPT = "kept by operators"
CANNOT_BE_KEPT, NOT_STORED, NEVER_CHANGED = "42P17", "55000", "0A000"


class Disagreement(Exception):
    """A read is not what the oracle says, or something was refused or taken wrongly."""


class Counts(Counter[tuple[str, str]]):
    """How often each construct was read, by how the view is kept."""

    def table(self) -> str:
        """The table to print."""
        ways = (OPERATORS, SPARK, KEPT, REEVALUATED)
        lines = [f"{'construct':44}" + "".join(f"{way:>16}" for way in ways)]
        for construct in sorted({construct for construct, _ in self}):
            lines.append(f"{construct:44}" + "".join(f"{self[construct, w]:>16}" for w in ways))
        return "\n".join(lines)


class Tier:
    """One history in one database."""

    def __init__(self, history: History, folder: Path, tier: str, counts: Counts) -> None:
        self.history, self.folder, self.tier, self.counts = history, folder, tier, counts
        self.oracle = Oracle(history.sources, history.dim)
        self.database = self._connect()
        self.refused: set[int] = set()
        for source in history.sources:
            columns = ", ".join(f"{name} {type_}" for name, type_ in source.columns)
            self.database.sql(source.ddl)
            self.database.sql(f"CREATE TABLE feed_{source.name} ({columns})")
        self.database.sql(f"CREATE TABLE dim ({', '.join(f'{n} {t}' for n, t in DIM)})")
        self._add_to_table(history.dim)
        self.database.sql(f"CREATE VIEW {PLAIN} AS {PLAIN_QUERY}")

    def _connect(self) -> headwater.Database:
        settings = {"removed_files_kept_s": 0}  # what RANGE hides goes at once
        settings |= {"spark_sql_only": True} if self.tier == SPARK else {}
        return headwater.connect(self.folder, settings=settings)

    def close(self) -> None:
        """Ends the database and the oracle."""
        self.database.close()
        self.oracle.close()

    def run(self) -> None:
        """Everything, in order."""
        for place, action in enumerate(self.history.actions):
            try:
                self.act(action)
            except (Disagreement, headwater.Error) as error:
                detail = getattr(error, "detail", None) or ""
                where = f"seed {self.history.seed}, {self.tier}, action {place}: {action}"
                raise Disagreement(f"{where}\n{error!r} {detail}") from error

    def act(self, action: Any) -> None:
        """One action."""
        view = getattr(action, "view", None)
        if isinstance(action, CreateAbove) and action.below in self.refused:
            self.refused.add(action.view)
        if view in self.refused and not isinstance(action, Create):
            return
        if isinstance(action, Read):
            self._read(action)
        elif isinstance(action, Restart):
            self.database.close()
            self.database = self._connect()
            self._set_zone(self.oracle.zone)
        elif isinstance(action, Create):
            self._create(action)
        elif self._do(action):
            self.oracle.act(action)

    # Changes

    def _do(self, action: Any) -> bool:
        """Runs an action; whether it was taken."""
        if isinstance(action, Insert):
            self._insert(action)
        elif isinstance(action, Advance):
            source = self.oracle.sources[action.table]
            self.database.advance(action.table, source.moment(action.tick))
        elif isinstance(action, ChangeTable):
            self._change_table(action)
        elif isinstance(action, SetZone):
            self._set_zone(action.zone)
        elif isinstance(action, CreateAbove):
            self.database.sql(action.sql)
        elif isinstance(action, ChangeRows):
            kind = self.oracle.sources[action.table].kind
            if kind == "STREAM":
                return self._try(_change_text(action), NEVER_CHANGED)
            lost = self.oracle.lost(action.table)  # or hidden, and not folded by anybody yet
            return self._try(_change_text(action), NOT_STORED if lost else None, sure=not lost)
        elif isinstance(action, Refresh):
            nothing = not self.view(action.view).plan.stream_tables  # below a fold: only a notice
            expected = None if nothing or self.oracle.keeps_all(action.view) else NOT_STORED
            return self._try(f"ALTER VIEW v{action.view} REFRESH STATIC", expected)
        return True

    def _set_zone(self, zone: str) -> None:
        self.database.sql(f"SET time_zone = '{zone}'")

    def _try(self, sql: str, expected: str | None, sure: bool = True) -> bool:
        """Runs a statement that has to be refused (or may be: not `sure`), or not; whether it was taken."""
        try:
            self.database.sql(sql)
        except headwater.Error as error:
            if error.sqlstate != expected:
                raise
            return False
        if expected is not None and sure:
            raise Disagreement(f"taken, not refused with {expected}: {sql}")
        return True

    def _insert(self, action: Insert) -> None:
        rows = [row for _, row in action.rows]
        source = self.oracle.sources[action.table]
        if action.way == "rows":
            self.database.insert(action.table, rows)
        elif action.way == "values":
            values = ", ".join(map(source.literals, rows))
            self.database.sql(f"INSERT INTO {action.table} VALUES {values}")
        else:
            self.database.insert(f"feed_{action.table}", rows)
            self.database.sql(f"INSERT INTO {action.table} SELECT * FROM feed_{action.table}")
            self.database.sql(f"DELETE FROM feed_{action.table}")

    def _add_to_table(self, rows: tuple[Row, ...]) -> None:
        if rows:
            values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
            self.database.sql(f"INSERT INTO dim VALUES {values}")

    def _change_table(self, action: ChangeTable) -> None:
        if action.removed is not None:
            self.database.sql(f"DELETE FROM dim WHERE k = {action.removed}")
        elif action.updated is not None:
            self.database.sql(f"UPDATE dim SET w = w + {MARK} WHERE k = {action.updated}")
        else:
            self._add_to_table(action.added)

    def _create(self, action: Create) -> None:
        """A view that cannot be kept is refused; one that takes the place of another leaves it."""
        whole = all(self.oracle.sources[t].keeps_all for t in action.case.tables)
        kept = whole or (action.case.folds is not False and action.maintenance != "deferred")
        sure = whole or action.case.folds is not None or action.maintenance == "deferred"
        expected = None if kept else CANNOT_BE_KEPT
        if action.replace and action.view in self.refused:
            action = Create(**{**vars(action), "replace": False})
        try:
            taken = self._try(action.sql, expected)
        except headwater.Error as error:
            if sure or error.sqlstate != CANNOT_BE_KEPT:
                raise
            taken = False
        if taken:
            self.refused.discard(action.view)
            self.oracle.act(action)
            self._check_plan(action)
        elif not action.replace:
            self.refused.add(action.view)

    def _check_plan(self, action: Create) -> None:
        view = self.view(action.view)
        if action.case.folds is not None and bool(view.specs) != action.case.folds:
            raise Disagreement(f"folded: {bool(view.specs)}, because {view.plan.reason}")

    # Reads

    def view(self, number: int) -> Any:
        """The engine's view."""
        found = self.database._context.engine.find_view(f"v{number}")
        assert found is not None
        return found

    def _read(self, action: Read) -> None:
        base = self.oracle.base(action.view)
        view = self.view(base)
        pinned = bool(view.plan.folds)
        if action.way == "verify":
            if base == action.view:
                self._verify(action.view)
            return
        self._count(base, view)
        wanted = self.oracle.answer(action.view, pinned)
        text = f"SELECT * FROM v{action.view}"
        if action.way == "twice":
            wanted, text = wanted * 2, f"{text} UNION ALL {text}"
        elif action.way == "crossed":
            wanted = [(len(wanted) * len(self.oracle.dim),)]
            text = f"SELECT count(*) FROM v{action.view} CROSS JOIN dim"
        found = self.database.sql(text).rows()
        if not same_bag(found, wanted):
            raise Disagreement(self._said(base, found, wanted))
        self._check_unchanged(base, action, found)

    def _said(self, view: int, found: list[Row], wanted: list[Row]) -> str:
        kept = self.view(view)
        how = f"{kept.maintenance}, {'folded' if kept.specs else 'evaluated again'}"
        case = self.oracle.views[view].case
        assert case is not None
        return f"{how}: {case.text}\nfound:  {found}\nwanted: {wanted}\nDuckDB: {case.duck}"

    def _check_unchanged(self, base: int, action: Read, found: list[Row]) -> None:
        """Read again, nothing is made again, unless time itself is read.

        A view on a view is kept as one: reading it need not read the one below.
        """
        engine = self.database._context.engine
        view = engine.find_view(f"v{action.view}") or self.view(base)
        if view.plan.reads_instant:
            return
        version = view.versions.last.number
        view.read()
        if view.versions.last.number != version:
            raise Disagreement(f"{view.name} made version {version} again without a change")
        if action.way == "plain" and view.name == f"v{action.view}":
            again = self.database.sql(f"SELECT * FROM {view.name} VERSION AS OF {version}").rows()
            if not same_bag(again, found):
                raise Disagreement(f"version {version} of {view.name} is {again}, not {found}")

    def _verify(self, number: int) -> None:
        """VERIFY VIEW says equal, or that it cannot tell."""
        case = self.oracle.views[number].case
        assert case is not None
        whole = all(self.oracle.sources[table].keeps_all for table in case.tables)
        try:
            found = self.database.sql(f"VERIFY VIEW v{number}")
        except headwater.Error as error:
            if whole or error.sqlstate != NOT_STORED:
                raise
            return
        if found.rows():
            raise Disagreement(f"VERIFY VIEW v{number}: {found.rows()}")

    def _count(self, number: int, view: Any) -> None:
        case = self.oracle.views[number].case
        assert case is not None
        way = self.tier if view.specs and view.maintenance != "deferred" else REEVALUATED
        way = way if view.kept is None else KEPT
        for construct in case.constructs | self.history.constructs | {view.maintenance}:
            self.counts[construct, way] += 1


def _change_text(action: ChangeRows) -> str:
    if action.delete:
        return f"DELETE FROM {action.table} WHERE k = {action.key}"
    return f"UPDATE {action.table} SET s = 'changed', i = i + 1 WHERE k = {action.key}"


def run_history(history: History, folder: Path, counts: Counts, tier: str) -> None:
    """A history in one tier; Disagreement if a read is wrong."""
    one = Tier(history, folder, tier, counts)
    try:
        one.run()
    finally:
        one.close()
