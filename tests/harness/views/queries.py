"""Random queries for views, written for Spark and for DuckDB from the same random numbers.

In DuckDB's text a table below a fold is `dim_below`, which holds the rows as of the view's creation; one
above it is `dim`, as of the read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.continuous.differences import DuckText, SparkText
from tests.harness.continuous.expressions import Place
from tests.harness.continuous.queries import WindowOf, Writer
from tests.harness.continuous.streams import DECIMALS
from tests.harness.views.tables import Source

PLAIN = "few"  # a plain view over the standard table
PLAIN_QUERY = "SELECT k, label, w, x FROM dim WHERE w > 2"
JOINS = ["inner", "left", "semi", "anti"]


@dataclass(frozen=True)
class Case:
    """The query of one view."""

    text: str
    duck: str
    tables: frozenset[str]  # streams and streaming tables in it
    folds: bool | None  # whether it must be folded; None: either way
    width: int
    constructs: frozenset[str]


class ViewText(SparkText):
    """The texts that Headwater gets: tables without windows."""

    def window(self, table: str, number: int, text: str) -> str:
        """The table itself."""
        return table

    def below(self, name: str = "dim") -> str:
        """A standard table, or the plain view over it, below a fold."""
        return name


class ViewDuckText(DuckText):
    """The texts of the same queries for DuckDB."""

    def window(self, table: str, number: int, text: str) -> str:
        """The table itself."""
        return table

    def today(self) -> str:
        """The wall's date: a view has no instants."""
        return "current_date"

    def below(self, name: str = "dim") -> str:
        """The rows as of creation."""
        return f"{name}_below"


def make_case(seed: int, number: int, sources: tuple[Source, ...]) -> Case:
    """The query of a seed; the number turns through shapes and aggregates."""
    spark, duck = (ViewWriter(seed, number, sources, text) for text in (ViewText(), ViewDuckText()))
    text, duck_text = spark.view(), duck.view()
    return Case(
        text=text,
        duck=duck_text,
        tables=frozenset(window.table for window in spark.windows),
        folds=spark.folds,
        width=spark.width,
        constructs=frozenset(spark.constructs),
    )


class ViewWriter(Writer):
    """Writes the query of one view in one dialect."""

    text: ViewText | ViewDuckText  # type: ignore[assignment]
    streams: tuple[Source, ...]  # type: ignore[assignment]

    def __init__(
        self, seed: int, number: int, sources: tuple[Source, ...], text: ViewText | ViewDuckText
    ) -> None:
        super().__init__(seed, number, sources, text, False)
        self.expressions.listed = False  # DuckDB judges every view
        self.folds: bool | None = True
        self.width = 0
        self.sample = "none"

    def view(self) -> str:
        """The whole query."""
        shapes = [
            self.groups, self.probe, self.derived, self.shared, self.scalar, self.both, self.above,
            self.breaks_r3, self.figure_2, self.shared, self.in_table, self.distinct, self.marked, self.union,
            self.breaks_r5, self.rows, self.cte, self.figure_2, self.rolled_up, self.breaks_r2, self.ranked,
            self.correlated, self.static_cte, self.breaks_r4, self.clock, self.today, self.in_table,
            self.exists_above,
        ]  # fmt: skip
        found = shapes[self.number % len(shapes)]()
        if "median(" in found or "sum(DISTINCT" in found:
            self.folds = False
        return found

    # Pieces

    def window(self, stream: Source, alias: str, timed: bool = False) -> str:  # type: ignore[override]
        """A table under an alias."""
        self.windows.append(WindowOf(stream.name, "all"))
        self.note(stream.kind)
        name = self.text.window(stream.name, 0, "")
        return f"{name} {self.random.choice(['', 'AS '])}{alias}"

    def places(self, stream: Source, alias: str) -> list[Place]:  # type: ignore[override]
        """The columns of a table, T too."""
        return [Place(f"{alias}.{name}", type_) for name, type_ in stream.columns]

    def spread_value(self, places: list[Place]) -> str:
        """What a variance is taken of; DuckDB refuses NaN."""
        column = self.expressions.pick(places, *DECIMALS)
        return column if column and self.random.random() < 0.4 else self.expressions.number(places)

    def filtered(self, call: str, places: list[Place], never: bool = False) -> str:
        """The call with FILTER at times; first and last have no fold then."""
        found = super().filtered(call, places, never)
        if found != call and call.startswith(("first", "last", "arg_min", "arg_max")):
            self.folds = False
        return found

    def named(self, items: list[str]) -> str:
        """A select list with aliases."""
        self.width = len(items)
        return super().named(items)

    def table(self) -> tuple[str, str, list[Place]]:
        """One table in FROM: the text, its alias, its columns."""
        source = self.random.choice(self.streams)
        alias = self.alias()
        return self.window(source, alias), alias, self.places(source, alias)

    def small(self) -> str:
        """A grouped block with columns k, n, total."""
        return self.simple_groups()

    def top(self, text: str, width: int) -> str:
        """The block that is the view, perhaps sorted and cut."""
        self.width = width
        return text + (self.order(width) if self.random.random() < 0.2 else "")

    # Shapes that are folded

    def groups(self) -> str:
        """Aggregates over one table."""
        source, alias, places = self.table()
        self.note("aggregates")
        return self.grouped(source, places, alias, self.where(places))

    def shared(self) -> str:
        """A grouping that many views have, with aggregates of its own."""
        random = self.random
        source = random.choice(self.streams[:2] if random.random() < 0.5 else self.streams)
        name = self.window(source, "x").split()[0]
        self.note("shared grouping")
        where = random.choice(["", "", " WHERE x.i > 0"])
        calls = [self.aggregate(self.places(source, "x"), "x") for _ in range(random.randint(1, 3))]
        items = self.named(["x.k", *calls])
        return f"SELECT {items} FROM {name} x{where} GROUP BY x.k"

    def static_cte(self) -> str:
        """A CTE without streams, joined below the fold."""
        source, alias, places = self.table()
        self.note("static CTE below the fold")
        self.folds = None
        cte = f"WITH small AS (SELECT k, max(w) AS w FROM {self.text.below()} GROUP BY k)"
        source += f" JOIN small ON {alias}.k = small.k"
        return f"{cte} {self.grouped(source, places, None, self.where(places, 0.4))}"

    def correlated(self) -> str:
        """A scalar aggregate over a stream that depends on a row of a table or of another fold."""
        self.note("correlated aggregate")
        self.folds = None
        source, alias, _ = self.table()
        kind = self.random.choice(["count", "sum", "max"])
        call = f"{kind}({alias}.i)"
        where = self.random.choice(["", f" AND {alias}.i > 0"])
        inner = f"(SELECT {call} FROM {source} WHERE {alias}.k = o.k{where})"
        outer = "dim o" if self.random.random() < 0.5 else f"({self.small()}) o"
        if self.random.random() < 0.5:
            return f"SELECT {self.named(['o.k', inner])} FROM {outer}"
        return f"SELECT {self.named(['o.k'])} FROM {outer} WHERE {inner} >= 1"

    def probe(self) -> str:
        """A stream joined with the standard table, or with a plain view of it, below the fold."""
        source, alias, places = self.table()
        kind = self.turn(JOINS)
        table = "dim" if self.random.random() < 0.7 else PLAIN
        self.note(f"{kind} join below the fold")
        if table == PLAIN:
            self.note("plain view below the fold")
        source += f" {self.text.join(kind)} {self.text.below(table)} dd ON {alias}.k = dd.k"
        if self.random.random() < 0.2:
            source += " AND dd.w > 2"
        if kind in ("inner", "left"):
            places += self.dim_places("dd")
        return self.grouped(source, places, None, self.where(places, 0.4))

    def in_table(self) -> str:
        """A condition with a subquery over the standard table, below the fold."""
        source, alias, places = self.table()
        self.note("subquery over a table below the fold")
        dim, kinds = self.text.below(), ["EXISTS", "NOT EXISTS", "IN", "NOT IN"]
        kind = kinds[(self.number // 16) % 4]  # the shape stands at two places of the list
        where = f" WHERE {self.member(kind, alias, dim)}"
        if self.random.random() < 0.2:
            where += f" AND {alias}.i > (SELECT min(w) FROM {dim})"
        return self.grouped(source, places, alias, where)

    def derived(self) -> str:
        """A query over a grouped derived table."""
        inner, kind = self.small(), self.random.randint(0, 3)
        self.note("derived table")
        if kind == 0:
            return self.top(f"SELECT d.k AS c0, d.n + 1 AS c1 FROM ({inner}) d WHERE d.n > 1", 2)
        if kind == 1:
            self.width = 3
            return f"SELECT max(n) AS c0, min(total) AS c1, count(*) AS c2 FROM ({inner}) d"
        if kind == 2 and self.number % 2:
            self.note("set operation above the fold")
            words = ["UNION", "INTERSECT ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"]
            word = self.random.choice(words)
            one = f"SELECT d.k AS c0, d.n AS c1 FROM ({inner}) d"
            return self.top(f"{one} {word} SELECT e.k, e.n FROM ({self.small()}) e", 2)
        if kind == 2:
            return self.top(f"SELECT DISTINCT n AS c0, total AS c1 FROM ({inner}) d", 2)
        return self.top(f"SELECT n AS c0, count(*) AS c1 FROM ({inner}) AS d GROUP BY n", 2)

    def cte(self) -> str:
        """WITH, read once or twice."""
        self.note("CTE")
        if self.random.random() < 0.5:
            self.width = 2
            text = f"WITH g AS ({self.small()}) SELECT k AS c0, n AS c1 FROM g"
            return f"{text} WHERE n >= (SELECT max(n) FROM g)"
        parts = f"WITH g AS ({self.small()}), h AS ({self.small()})"
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        return self.top(
            f"{parts} SELECT g.k AS c0, g.n AS c1, h.total AS c2 FROM g {kind} h ON g.k = h.k", 3
        )

    def above(self) -> str:
        """The standard table joined above the fold."""
        kind = self.turn(JOINS)
        self.note(f"{kind} join above the fold")
        shown = "d.k AS c0, d.n AS c1" + (", dd.label AS c2" if kind in ("inner", "left") else "")
        join = f"{self.text.join(kind)} dim dd ON d.k = dd.k"
        return self.top(f"SELECT {shown} FROM ({self.small()}) d {join}", shown.count(" AS "))

    def exists_above(self) -> str:
        """The standard table asked for rows above the fold."""
        self.note("EXISTS above the fold")
        word = self.random.choice(["EXISTS", "NOT EXISTS"])
        test = f"{word} (SELECT 1 FROM dim dd WHERE dd.k = d.k AND dd.w >= d.n)"
        return self.top(f"SELECT d.k AS c0, d.n AS c1 FROM ({self.small()}) d WHERE {test}", 2)

    def both(self) -> str:
        """The standard table below the fold and above it: as of creation, and as of the read."""
        source, alias, _ = self.table()
        self.note("one table below and above the fold")
        inner = (
            f"SELECT {alias}.k AS k, count(*) AS n, max(dd.w) AS m FROM {source}"
            f" LEFT JOIN {self.text.below()} dd ON {alias}.k = dd.k GROUP BY {alias}.k"
        )
        return self.top(
            f"SELECT d.k AS c0, d.n AS c1, d.m AS c2, e.w AS c3 FROM ({inner}) d"
            " LEFT JOIN dim e ON d.k = e.k",
            4,
        )

    def figure_2(self) -> str:
        """Two grouped streams joined, and perhaps a table above (the paper's Figure 2)."""
        self.note("two grouped streams")
        join = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN"])
        on = "" if join == "CROSS JOIN" else " ON a.k = b.k"
        repeated = self.number % 4 == 1
        one, other = self.twice() if repeated else (self.small(), self.small())
        text = f"({one}) a {join} ({other}) b{on}"
        shown = "a.k AS c0, a.n AS c1, b.total AS c2"
        if self.random.random() < 0.4 and join != "FULL JOIN":
            self.note("table above a join of streams")
            return self.top(
                f"SELECT {shown}, dd.label AS c3 FROM {text} JOIN dim dd ON dd.k = a.k", 4
            )
        return self.top(f"SELECT {shown} FROM {text}", 3)

    def scalar(self) -> str:
        """A scalar subquery over another fold."""
        self.note("scalar subquery over a fold")
        other, inner, _ = self.table()
        if self.random.random() < 0.5:
            self.width = 2
            text = f"SELECT d.k AS c0, d.n AS c1 FROM ({self.small()}) d"
            return f"{text} WHERE d.n * 2 >= (SELECT count({inner}.i) FROM {other})"
        source, alias, _ = self.table()
        self.width = 2
        return (
            f"SELECT {alias}.k AS c0, count(*) AS c1 FROM {source} GROUP BY {alias}.k"
            f" HAVING count(*) * 4 >= (SELECT count(*) FROM {other})"
        )

    def distinct(self) -> str:
        """SELECT DISTINCT, which is a grouping."""
        source, _, places = self.table()
        self.note("DISTINCT")
        items = [self.expressions.key(places) for _ in range(self.random.randint(1, 2))]
        return f"SELECT DISTINCT {self.named(items)} FROM {source}{self.where(places)}"

    def clock(self) -> str:
        """Fields and texts of a TIMESTAMP, which depend on the time zone."""
        timed = [s for s in self.streams if dict(s.columns).get("t") == "TIMESTAMP"]
        if not timed:
            return self.groups()
        source, alias = self.random.choice(timed), self.alias()
        self.note("fields of a TIMESTAMP")
        key = self.random.choice([f"hour({alias}.t)", f"CAST({alias}.t AS DATE)"])
        moment = self.text.moment("1970-01-01 00:00:09")
        after = self.random.choice(
            [f" WHERE {alias}.t >= {moment}", f" WHERE hour({moment}) < 2", ""]
        )
        items = [key, "count(*)", f"max({alias}.i)"]
        return f"SELECT {self.named(items)} FROM {self.window(source, alias)}{after} GROUP BY {key}"

    def today(self) -> str:
        """A function of time above the fold: every read is after 2020, and no wall is at 1970."""
        self.note("current_date() above the fold")
        self.width = 2
        today = self.text.today()
        text = f"SELECT d.k AS c0, d.n AS c1 FROM ({self.small()}) d"
        if self.random.random() < 0.5:
            return f"{text} WHERE year({today}) > 2020 AND d.n > 0"
        return f"{text} WHERE {today} < DATE '2020-01-01' OR d.n > 1"

    def union(self) -> str:
        """UNION ALL of groupings."""
        self.note("UNION ALL")
        self.width = 3
        inner = f"{self.small()} UNION ALL {self.small()}"
        return f"SELECT k AS c0, n AS c1, total AS c2 FROM ({inner}) x"

    # Shapes that are evaluated again

    def kept_whole(self) -> tuple[str, str, list[Place]]:
        """One table in FROM, most often the one that keeps everything."""
        source = self.streams[0] if self.random.random() < 0.8 else self.random.choice(self.streams)
        alias = self.alias()
        self.folds = False
        return self.window(source, alias), alias, self.places(source, alias)

    def rows(self) -> str:
        """Filter and projection: all rows are needed."""
        source, _, places = self.kept_whole()
        self.note("rows of a table")
        return f"SELECT {self.named(self.items(places))} FROM {source}{self.where(places)}"

    def rolled_up(self) -> str:
        """Grouping sets; of no rows Spark makes no total."""
        source, alias, places = self.kept_whole()
        self.note("grouping sets")
        return self.sets_of_groups(source, alias, self.where(places, 0.4))

    def marked(self) -> str:
        """A condition with a subquery, beside another that may hold without it."""
        source, alias, places = self.kept_whole()
        self.note("subquery under OR")
        kind = self.random.choice(["IN", "EXISTS", "NOT IN", "NOT EXISTS"])
        asked = self.member(kind, alias, self.text.below())
        where = f" WHERE ({asked}) OR {self.expressions.condition(places, 1)}"
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"

    def breaks_r2(self) -> str:
        """A subquery depends on the rows of the stream."""
        source, alias, _ = self.kept_whole()
        self.note("breaks R2")
        self.folds = None
        where = f"{alias}.i > (SELECT min(w) FROM {self.text.below()} dd WHERE dd.k = {alias}.k)"
        items = [f"{alias}.k", "count(*)"]
        return f"SELECT {self.named(items)} FROM {source} WHERE {where} GROUP BY {alias}.k"

    def breaks_r3(self) -> str:
        """A join of two tables below a grouping."""
        source, alias, _ = self.kept_whole()
        other, beside, _ = self.kept_whole()
        self.note("breaks R3")
        items = [f"{alias}.k", "count(*)", f"sum({beside}.i)"]
        join = f"{source} JOIN {other} ON {alias}.k = {beside}.k"
        return f"SELECT {self.named(items)} FROM {join} GROUP BY {alias}.k"

    def breaks_r4(self) -> str:
        """ORDER BY with LIMIT below a grouping."""
        source, alias, _ = self.kept_whole()
        self.note("breaks R4")
        inner = f"SELECT {alias}.k AS k, {alias}.i AS i FROM {source}"
        nulls = self.text.nulls(False, True)
        cut = f"{inner} ORDER BY 1{nulls}, 2{nulls} LIMIT 3"
        return f"SELECT {self.named(['d.k', 'sum(d.i)'])} FROM ({cut}) d GROUP BY d.k"

    def breaks_r5(self) -> str:
        """An outer join keeps the rows of the table."""
        source, alias, _ = self.kept_whole()
        self.note("breaks R5")
        items = ["dd.label", "count(*)", f"max({alias}.i)"]
        join = f"dim dd LEFT JOIN {source} ON dd.k = {alias}.k"
        return f"SELECT {self.named(items)} FROM {join} GROUP BY dd.label"
