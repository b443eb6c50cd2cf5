"""Random histories of views: what happens, in which order, to tables and the views over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.harness.continuous.streams import Row
from tests.harness.views.queries import Case, make_case
from tests.harness.views.tables import Source, Sources, rows_of

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
STRATEGIES = ("split", "split", "split", "eager", "incremental", "deferred")


MEMBERS = "subquery over a table below the fold"


@dataclass(frozen=True)
class Insert:
    """Rows come: as Python rows, by VALUES, or by INSERT … SELECT."""

    table: str
    rows: tuple[tuple[int, Row], ...]
    way: str


@dataclass(frozen=True)
class Advance:
    """ADVANCE."""

    table: str
    tick: int


@dataclass(frozen=True)
class ChangeTable:
    """A change of the standard table: rows come, those of a key go, or their w becomes another."""

    added: tuple[Row, ...] = ()
    removed: int | None = None
    updated: int | None = None


@dataclass(frozen=True)
class ChangeRows:
    """DELETE or UPDATE of the rows of a key of a streaming table."""

    table: str
    key: int
    delete: bool


@dataclass(frozen=True)
class Create:
    """CREATE [OR REPLACE] VIEW."""

    view: int
    case: Case
    maintenance: str = "split"
    from_now: bool = False
    named: bool = False  # with a column list
    replace: bool = False

    @property
    def sql(self) -> str:
        """The statement."""
        text = f"CREATE {'OR REPLACE ' if self.replace else ''}VIEW v{self.view}"
        if self.named:
            text += f" ({', '.join(f'c{n}' for n in range(self.case.width))})"
        text += " FROM NOW" if self.from_now else ""
        if self.maintenance != "split":
            text += f" WITH (maintenance = '{self.maintenance}')"
        return f"{text} AS {self.case.text}"


@dataclass(frozen=True)
class CreateAbove:
    """A view on a view."""

    view: int
    below: int

    @property
    def sql(self) -> str:
        """The statement; the lower view's first column is c0."""
        text = f"SELECT c0, count(*) AS c1 FROM v{self.below} GROUP BY c0"
        return f"CREATE VIEW v{self.view} AS {text}"


@dataclass(frozen=True)
class Refresh:
    """ALTER VIEW … REFRESH STATIC."""

    view: int


@dataclass(frozen=True)
class Read:
    """A view is read: as it is, twice in one query, beside a table, or by VERIFY VIEW."""

    view: int
    way: str = "plain"


@dataclass(frozen=True)
class SetZone:
    """SET time_zone: views that come have another zone, those that are there keep theirs."""

    zone: str


@dataclass(frozen=True)
class Restart:
    """Close and connect again."""


Action = (
    Insert
    | Advance
    | ChangeTable
    | ChangeRows
    | Create
    | CreateAbove
    | Refresh
    | Read
    | Restart
    | SetZone
)


@dataclass
class History:
    """Tables and what happens to them."""

    seed: int
    sources: tuple[Source, ...]
    dim: tuple[Row, ...]
    actions: list[Action] = field(default_factory=list)
    constructs: frozenset[str] = frozenset()


class Histories:
    """Makes one history from random numbers."""

    def __init__(self, seed: int, views: int) -> None:
        self.seed, self.views, self.random = seed, views, Random(seed)
        self.makes = Sources(self.random)
        self.sources = self.makes.sources()
        self.actions: list[Action] = []
        self.now = {source.name: self.random.choice([0, 3, 17, -20]) for source in self.sources}
        self.made: list[int] = []
        self.created = 0
        self.above: dict[int, int] = {}
        self.cases = seed * views

    def history(self) -> History:
        """The history."""
        random = self.random
        dim = tuple(self.makes.dim_row() for _ in range(random.randint(0, 6)))
        if random.random() < 0.6:
            self.insert()
        turns = self.views * 2
        restarts = set(random.sample(range(3, turns), 2))
        for turn in range(turns):
            if turn in restarts:
                self.actions.append(Restart())
            missing = self.views - self.created
            if missing and (random.random() < 0.5 or turn < 2 or missing >= turns - turn):
                self.create(len(self.made), replace=False)
            self.something()
        for view in self.made:
            self.actions.append(Read(view))
        for view in random.sample(self.made, min(2, len(self.made))):
            self.actions.append(Read(view, "verify"))
        constructs = frozenset(self.makes.constructs)
        return History(self.seed, self.sources, dim, self.actions, constructs)

    def something(self) -> None:
        """Whatever may happen next."""
        random = self.random
        kinds = {
            self.insert: 10,
            self.read: 5,
            self.change_table: 2,
            self.change_rows: 1,
            self.refresh: 1,
            self.replace: 1,
            self.stack: 0.6,
            self.advance: 0.7,
            self.set_zone: 1,
        }
        (kind,) = random.choices(list(kinds), list(kinds.values()))
        kind()

    def insert(self) -> None:
        """Rows of one table."""
        source = self.random.choice(self.sources)
        rows = rows_of(self.makes, source, self.now[source.name], self.random)
        self.now[source.name] = max(tick for tick, _ in rows) // source.unit
        way = self.random.choice(["rows", "rows", "rows", "values", "values", "select"])
        self.actions.append(Insert(source.name, tuple(rows), way))

    def advance(self) -> None:
        """Time goes on without rows."""
        source = self.random.choice(self.sources)
        if not source.by_arrival:
            self.now[source.name] += self.random.randint(0, 4)
            tick = self.now[source.name] * source.unit
            self.actions.append(Advance(source.name, tick))

    def set_zone(self) -> None:
        """Another time zone."""
        self.actions.append(SetZone(self.random.choice(ZONES)))

    def change_table(self) -> None:
        """The standard table changes."""
        kind, key = self.random.randint(0, 2), self.random.randint(0, 4)
        if kind == 0:
            self.actions.append(ChangeTable(removed=key))
        elif kind == 1:
            self.actions.append(ChangeTable(updated=key))
        else:
            rows = tuple(self.makes.dim_row() for _ in range(self.random.randint(1, 2)))
            self.actions.append(ChangeTable(rows))

    def change_rows(self) -> None:
        """Stored rows of a streaming table change."""
        source = self.random.choice(self.sources)
        key, delete = self.random.randint(0, 3), self.random.random() < 0.5
        self.actions.append(ChangeRows(source.name, key, delete))

    def create(self, view: int, replace: bool) -> None:
        """A view; one that replaces another has another query."""
        random = self.random
        case = make_case(random.getrandbits(40), self.cases, self.sources)
        self.cases += 1
        strategy, *options = (
            random.choice(STRATEGIES), random.random() < 0.15, random.random() < 0.2
        )  # fmt: skip
        if MEMBERS in case.constructs and strategy == "deferred":
            strategy = "split"  # the short run has few of them, and they are to be kept
        self.actions.append(Create(view, case, strategy, *options, replace=replace))
        if not replace:
            self.made.append(view)
            self.created += 1

    def read(self) -> None:
        """One view is read."""
        if self.made:
            way = self.random.choice(["plain", "plain", "plain", "twice", "crossed", "verify"])
            self.actions.append(Read(self.random.choice(self.made), way))

    def refresh(self) -> None:
        """The tables below a view are read again."""
        views = [view for view in self.made if view not in self.above]
        if views:
            self.actions.append(Refresh(self.random.choice(views)))

    def replace(self) -> None:
        """A view that no other reads gets another query."""
        free = [v for v in self.made if v not in self.above and v not in self.above.values()]
        if free:
            self.create(self.random.choice(free), replace=True)

    def stack(self) -> None:
        """A view on a view."""
        if len(self.made) < 2 * self.views and self.made:
            below = self.random.choice(self.made)
            self.above[len(self.made)] = below
            self.actions.append(CreateAbove(len(self.made), below))
            self.made.append(len(self.made))


def make_history(seed: int, views: int) -> History:
    """The history of a seed."""
    return Histories(seed, views).history()
