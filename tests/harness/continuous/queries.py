"""Random continuous queries that cover every construct, written for Spark and for DuckDB.

A query is made twice from one seed: once with `SparkText`, once with `DuckText`. Both walks draw the same
random numbers, so the two texts mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.harness.continuous.differences import DuckText, SparkText
from tests.harness.continuous.expressions import Expressions, Place
from tests.harness.continuous.streams import DECIMALS, DIM, Stream


@dataclass(frozen=True)
class WindowOf:
    """A window on a table, in seconds or rows."""

    table: str
    kind: str  # "interval" | "before" | "rows" | "landmark"
    size: int = 0
    keys: tuple[str, ...] = ()
    previous: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Case:
    """One query."""

    text: str
    duck: str | None
    windows: tuple[WindowOf, ...]
    sample: str  # "interval" | "rows" | "realtime"
    step: int
    ordered: bool  # rows have one order that the contract fixes
    emit: str
    constructs: frozenset[str]
    from_beginning: bool = False


NUMBERS = ("sum", "avg", "min", "max", "mean", "count")
SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "variance", "stddev", "std")
BOOLEANS = ("bool_and", "bool_or", "every", "some", "any")
EDGES = ("first", "last", "first_value", "last_value")
CALLS = (
    "count(*)", "sum", "first", "avg", "min", "stddev", "bool_and", "count(DISTINCT)", "max", "last",
    "var_pop", "count", "count_if", "every", "mean", "first_value", "var_samp", "some", "stddev_samp",
    "last_value", "bool_or", "variance", "any", "stddev_pop", "std",
)  # fmt: skip


def make_case(seed: int, number: int, streams: tuple[Stream, ...], short: bool) -> Case:
    """The query of a seed; `short`: few distinct times, so REALTIME is affordable.

    The number turns through shapes, windows and aggregates, so that few queries cover all of them.
    """
    spark = Writer(seed, number, streams, SparkText(), short)
    text = spark.query()
    duck = Writer(seed, number, streams, DuckText(), short)
    duck_text = duck.query()
    return Case(
        text=text,
        duck=duck_text if spark.duckable and not spark.expressions.listed else None,
        windows=tuple(duck.windows),
        sample=spark.sample,
        step=spark.step,
        ordered=spark.ordered,
        emit=spark.emit,
        constructs=frozenset(spark.constructs),
        from_beginning=spark.from_beginning,
    )


class Writer:
    """Writes one query in one dialect."""

    def __init__(
        self, seed: int, number: int, streams: tuple[Stream, ...], text: SparkText, short: bool
    ) -> None:
        self.random, self.number = Random(seed), number
        self.drawn: Counter[tuple[str, ...]] = Counter()
        self.streams, self.text, self.short = streams, text, short
        self.constructs: set[str] = set()
        self.windows: list[WindowOf] = []
        self.expressions = Expressions(
            self.random,
            text,
            self.constructs,
            Random(seed + 1),
            number % 4 == 3,
            number % 3 == 1,
        )
        self.duckable = True
        self.ordered = False
        self.aliases = 0

    def note(self, construct: str) -> None:
        """A construct was used."""
        self.constructs.add(construct)

    def query(self) -> str:
        """The whole query with its clauses."""
        random = self.random
        kinds = ["interval", "interval", "interval", "rows"] + (["realtime"] if self.short else [])
        self.sample = random.choice(kinds)
        self.step = random.randint(4, 11) if self.sample == "interval" else random.randint(3, 9)
        self.from_beginning = random.random() < 0.15
        if self.from_beginning:
            self.note("FROM BEGINNING")
        shapes = [
            self.groups, self.rows, self.groups, self.probe, self.groups, self.rows, self.probe,
            self.stream_join, self.stream_join, self.self_join, self.derived, self.cte, self.union,
            self.scalar, self.prev, self.above, self.in_table,
        ]  # fmt: skip
        seldom = [self.rolled_up, self.ranked, self.sets, self.marked]
        turn, often = divmod(self.number, 10)
        body = seldom[turn % len(seldom)]() if often == 1 else shapes[self.number % len(shapes)]()
        self.emit = random.choice(["all", "all", "all", "changes", "inserts", "deletes"])
        words = {
            "interval": f"SAMPLE INTERVAL {self.step} SECONDS",
            "rows": f"SAMPLE {self.step} ROWS",
            "realtime": "SAMPLE REALTIME",
        }
        clauses = words[self.sample]
        self.note(f"SAMPLE {self.sample}")
        if self.emit != "all":
            clauses += f" EMIT {self.emit.upper()}"
        self.note(f"EMIT {self.emit}")
        return body + self.text.clauses(clauses)

    def turn(self, choices: Sequence[str]) -> str:
        """One after the other, over the queries of a run."""
        drawn = self.drawn[tuple(choices)]
        self.drawn[tuple(choices)] += 1
        stride = 4 if len(choices) % 2 else 1  # so that queries of one shape begin at all places
        return choices[(self.number * stride + drawn) % len(choices)]

    # Sources

    def alias(self) -> str:
        """A fresh alias."""
        self.aliases += 1
        return f"a{self.aliases}"

    def window(self, stream: Stream, alias: str, timed: bool = False) -> str:
        """A windowed table under an alias."""
        random = self.random
        kinds = ["interval"] * 4 + ["before"] * 2
        kinds += [] if timed else ["rows", "keyed", "keyed2", "landmark"]
        kind = self.turn(kinds)
        size = random.randint(1, 14)
        keys: tuple[str, ...] = ()
        if kind == "interval":
            text = f"INTERVAL {size} SECONDS"
        elif kind == "before":
            text = f"INTERVAL '{size}' SECOND BEFORE"
        elif kind == "rows":
            size = random.randint(1, 9)
            text = f"ROWS {size}"
        elif kind == "landmark":
            if stream.range is not None:
                kind, text = "interval", f"INTERVAL {size} SECONDS"
            else:
                text = "LANDMARK"
        else:
            size = random.randint(1, 3)
            keys = ("k",) if kind == "keyed" else ("k", "s")
            text = f"{', '.join(keys)} ROWS {size}"
        self.note("window " + {"keyed": "A ROWS", "keyed2": "A, B ROWS"}.get(kind, kind))
        if kind in ("interval", "before") and self.sample == "interval":
            if size < self.step:
                self.note("window smaller than slide")
            elif size % self.step:
                self.note("slide does not divide window")
        kind = "rows" if kind.startswith("keyed") else kind
        written = self.text.window(stream.name, len(self.windows), text)
        self.windows.append(WindowOf(stream.name, kind, size, keys))
        return f"{written} {random.choice(['', 'AS '])}{alias}"

    def places(self, stream: Stream, alias: str) -> list[Place]:
        """The columns of a stream under an alias."""
        return [Place(f"{alias}.{n}", t) for n, t in stream.columns if n != stream.time]

    def dim_places(self, alias: str) -> list[Place]:
        """The columns of the standard table."""
        return [Place(f"{alias}.{n}", t) for n, t in DIM]

    # Pieces

    def where(self, places: list[Place], chance: float = 0.6) -> str:
        """WHERE, or nothing."""
        if self.random.random() > chance:
            return ""
        self.note("WHERE")
        return f" WHERE {self.expressions.condition(places)}"

    def items(self, places: list[Place], most: int = 4) -> list[str]:
        """Expressions of a select list."""
        count = self.random.randint(1, most)
        found = [self.expressions.any(places) for _ in range(count)]
        return found + self.expressions.of_whitelist(places, 4)

    def named(self, items: list[str]) -> str:
        """A select list with aliases."""
        return ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))

    def order(self, count: int, limit: bool = True) -> str:
        """ORDER BY all columns, perhaps with LIMIT."""
        random = self.random
        parts = []
        for place in range(1, count + 1):
            descending, first = random.random() < 0.4, random.random() < 0.5
            word = " DESC" if descending else ""
            parts.append(f"{place}{word}{self.text.nulls(descending, first)}")
        self.note("ORDER BY")
        self.ordered = True
        return " ORDER BY " + ", ".join(parts) + (self.limit() if limit else "")

    def limit(self) -> str:
        """LIMIT, perhaps with OFFSET."""
        kind = self.random.randint(0, 3)
        if kind == 0:
            self.note("LIMIT")
            return f" LIMIT {self.random.randint(1, 5)}"
        if kind == 1:
            self.note("OFFSET")
            return f" LIMIT {self.random.randint(1, 5)} OFFSET {self.random.randint(0, 2)}"
        return ""

    def aggregate(self, places: list[Place], alias: str | None) -> str:
        """An aggregate; `alias` names the one stream whose order first and last follow."""
        random, write = self.random, self.expressions
        name = self.turn(CALLS)
        if name in EDGES and alias is None:
            name = "count"
        self.note(name)
        if name == "count(*)":
            found = "count(*)"
        elif name == "count(DISTINCT)":
            found = f"count(DISTINCT {write.any(places)})"
        elif name in SPREADS:
            found = f"{self.text.aggregate(name)}({self.spread_value(places)})"
        elif name in BOOLEANS:
            value = write.pick(places, "BOOLEAN") or write.condition(places, 2)
            found = f"{self.text.aggregate(name)}({value})"
        elif name in EDGES:
            there = random.random() < 0.4
            if there:
                self.note(f"{name} IGNORE NULLS")
            found = self.text.edge(name, write.any(places), str(alias), "t", there)
            return self.filtered(found, places, never=there)
        elif name == "count_if":
            found = self.text.counted(write.condition(places, 1))
        else:
            value = write.any(places) if name in ("min", "max", "count") else self.summed(places)
            found = f"{self.text.aggregate(name)}({value})"
        return self.filtered(found, places)

    def spread_value(self, places: list[Place]) -> str:
        """What a variance is taken of; DuckDB refuses NaN."""
        write, kind = self.expressions, self.random.randint(0, 9)
        if kind < 2 and write.pick(places, "DOUBLE"):
            self.duckable = False
            return write.double(places)
        column = write.pick(places, *DECIMALS)
        return column if kind < 5 and column else write.number(places)

    def summed(self, places: list[Place]) -> str:
        """A number to be summed."""
        write, kind = self.expressions, self.random.randint(0, 3)
        if kind == 0:
            return write.double(places)
        if kind == 1:
            return write.decimal(places) or write.number(places)
        if kind == 2:
            return write.pick(places, "FLOAT") or write.number(places)
        return write.number(places)

    def filtered(self, call: str, places: list[Place], never: bool = False) -> str:
        """The call with FILTER at times."""
        if self.random.random() < 0.2:
            condition = self.expressions.condition(places, 1)
            if not never:
                self.note("FILTER")
                return f"{call} FILTER (WHERE {condition})"
        return call

    def grouped(
        self, source: str, places: list[Place], alias: str | None, where: str, final: bool = True
    ) -> str:
        """SELECT keys, aggregates FROM … GROUP BY …"""
        random = self.random
        keys = [self.expressions.key(places) for _ in range(random.choice([0, 1, 1, 1, 2]))]
        keys = list(dict.fromkeys(keys))
        calls = [self.aggregate(places, alias) for _ in range(random.randint(2, 6))]
        if self.number % 9 == 5:
            name = self.turn(["median", "sum(DISTINCT)"])
            self.note(name)
            value = self.expressions.number(places)
            calls.append(f"median({value})" if name == "median" else f"sum(DISTINCT {value})")
        for value in self.expressions.of_whitelist(places, 4):
            calls.append(f"{self.turn(['max', 'min', 'count'])}({value})")
        if random.random() < 0.15:
            calls.append(f"{calls[0]} IS NULL")
            self.note("expression over aggregates")
        items = [*keys, *calls]
        text = f"SELECT {self.named(items)} FROM {source}{where}"
        if keys:
            how = self.turn(["text", "text", "ordinal", "alias", "all"])
            self.note(f"GROUP BY {how}")
            by = {
                "text": ", ".join(keys),
                "ordinal": ", ".join(str(n + 1) for n in range(len(keys))),
                "alias": ", ".join(f"c{n}" for n in range(len(keys))),
                "all": "ALL",
            }
            text += f" GROUP BY {by[how]}"
        else:
            self.note("no GROUP BY")
        if random.random() < 0.3:
            self.note("HAVING")
            text += f" HAVING count(*) > {random.randint(0, 3)}"
        if final and random.random() < 0.35:
            text += self.order(len(items))
        return text

    # Shapes

    def rows(self) -> str:
        """Filter and projection over one window."""
        random = self.random
        stream = random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        places = self.places(stream, alias)
        where = self.where(places)
        kind = random.randint(0, 5)
        self.note("filter and projection")
        if kind == 0:
            self.note("*")
            self.ordered = True
            columns = ", ".join(f"{alias}.{n}" for n, _ in stream.columns)
            star = random.choice(["*", f"{alias}.*"])
            star = columns if self.text.duck else star
            more = random.choice(["", "", f", {self.expressions.number(places)} AS z"])
            if random.random() < 0.2:
                self.note("hidden column by name")
                hidden = f"{alias}._rank IS NULL" if self.text.duck else f"{alias}._seq IS NULL"
                more += f", {hidden} AS h"
            return f"SELECT {star}{more} FROM {source}{where}{self.newest(alias)}"
        items = self.items(places)
        if random.random() < 0.4:
            self.note("CURRENT_INSTANT")
            items.append(self.text.instant())
        if random.random() < 0.2:
            self.note("current_date()")
            items.append(self.text.today())
        if kind == 1:
            self.note("DISTINCT")
            ending = self.order(len(items)) if random.random() < 0.5 else ""
            return f"SELECT DISTINCT {self.named(items)} FROM {source}{where}{ending}"
        if kind == 2:
            return f"SELECT {self.named(items)} FROM {source}{where}{self.order(len(items))}"
        self.ordered = True
        return f"SELECT {self.named(items)} FROM {source}{where}{self.newest(alias)}"

    def newest(self, alias: str) -> str:
        """The contract's order of a plain select, perhaps with LIMIT; DuckDB must be told."""
        order = f" ORDER BY {alias}._rank DESC" if self.text.duck else ""
        return order + (self.limit() if self.random.random() < 0.4 else "")

    def groups(self) -> str:
        """Aggregates over one window."""
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        places = self.places(stream, alias)
        self.note("aggregate over one window")
        return self.grouped(source, places, alias, self.where(places))

    def probe(self) -> str:
        """A stream joined with the standard table."""
        random = self.random
        stream = random.choice(self.streams)
        alias, table = self.alias(), "dd"
        source = self.window(stream, alias)
        kind = self.turn(["inner", "left", "semi", "anti"])
        self.note(f"{kind} join with a table below the fold")
        source += f" {self.text.join(kind)} dim {table} ON {alias}.k = {table}.k"
        if random.random() < 0.2:
            source += f" AND {table}.w > 2"
        places = self.places(stream, alias)
        if kind in ("inner", "left"):
            places += self.dim_places(table)
        where = self.where(places, 0.4)
        if random.random() < 0.6:
            return self.grouped(source, places, None, where)
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"

    def in_table(self) -> str:
        """A condition with a subquery over the standard table."""
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        places = self.places(stream, alias)
        kind = self.turn(["EXISTS", "NOT EXISTS", "IN", "NOT IN"])
        where = f" WHERE {self.member(kind, alias, 'dim')}"
        if self.random.random() < 0.5:
            return self.grouped(source, places, alias, where)
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"

    def member(self, kind: str, alias: str, table: str) -> str:
        """A condition that asks whether the standard table has such a row."""
        self.note(f"{kind} (SELECT … FROM a table)")
        more = self.random.choice(["", " AND x.w > 1", f" AND x.w > {alias}.i"])
        if kind.endswith("EXISTS"):
            return f"{kind} (SELECT 1 FROM {table} x WHERE x.k = {alias}.k{more})"
        there = f"{alias}.k IS NOT NULL AND " if kind == "NOT IN" else ""
        return f"{there}{alias}.k {kind} (SELECT x.k FROM {table} x WHERE x.k IS NOT NULL{more})"

    def stream_join(self) -> str:
        """Two streams."""
        random = self.random
        one, two = self.streams
        a, b = self.alias(), self.alias()
        timed = random.random() < 0.7
        left, right = self.window(one, a, timed), self.window(two, b, timed)
        how = random.choice(["on", "where", "left"])
        where = ""
        if how == "where":
            source, where = f"{left}, {right}", f" WHERE {a}.k = {b}.k"
        else:
            words = "LEFT JOIN" if how == "left" else "JOIN"
            source = f"{left} {words} {right} ON {a}.k = {b}.k"
            if random.random() < 0.2:
                source += f" AND {a}.i >= {b}.i"
        places = [*self.places(one, a), *self.places(two, b)]
        if not where:
            where = self.where(places, 0.4)
        grouped = random.random() < 0.6
        self.note("stream join under aggregates" if grouped else "stream join")
        if how == "left":
            self.note("left join of streams")
        if grouped:
            return self.grouped(source, places, None, where)
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"

    def self_join(self) -> str:
        """One table under two windows."""
        random = self.random
        stream = random.choice(self.streams)
        a, b = self.alias(), self.alias()
        timed = random.random() < 0.6
        source = (
            f"{self.window(stream, a, timed)} JOIN {self.window(stream, b, timed)} ON {a}.k = {b}.k"
        )
        places = [*self.places(stream, a), *self.places(stream, b)]
        self.note("self-join under two windows")
        where = self.where(places, 0.3)
        if random.random() < 0.6:
            return self.grouped(source, places, None, where)
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"

    def simple_groups(self, by: str = "k") -> str:
        """A grouped block with known columns: k, n, total."""
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        where = self.where(self.places(stream, alias), 0.4)
        return (
            f"SELECT {alias}.{by} AS k, count(*) AS n, sum({alias}.i) AS total"
            f" FROM {source}{where} GROUP BY {alias}.{by}"
        )

    def twice(self) -> tuple[str, str]:
        """The same grouped block two times, under two aliases."""
        state, drawn = self.random.getstate(), self.drawn.copy()
        one = self.simple_groups()
        self.random.setstate(state)
        self.drawn = drawn
        self.note("a subquery twice")
        return one, self.simple_groups()

    def derived(self) -> str:
        """A query over a grouped derived table, or over two equal ones."""
        kind = self.random.randint(0, 3)
        self.note("derived table")
        if kind == 3:
            one, other = self.twice()
            shown = f"SELECT d.k, d.n, e.total FROM ({one}) d JOIN ({other}) e ON d.k = e.k"
            return f"{shown} WHERE e.n > 1"
        inner = self.simple_groups()
        if kind == 0:
            return f"SELECT d.k, d.n + 1 AS m FROM ({inner}) d WHERE d.n > 1"
        if kind == 1:
            return f"SELECT max(d.n) AS a, min(d.total) AS b, count(*) AS c FROM ({inner}) d"
        return f"SELECT n, count(*) AS c FROM ({inner}) AS d GROUP BY n" + (
            self.order(2) if self.random.random() < 0.5 else ""
        )

    def cte(self) -> str:
        """WITH, read once or twice."""
        inner = self.simple_groups()
        self.note("CTE")
        if self.random.random() < 0.5:
            return f"WITH g AS ({inner}) SELECT k, n FROM g WHERE n >= (SELECT max(n) FROM g)"
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        return (
            f"WITH g AS ({inner}) SELECT g.k, g.n, h.c FROM g JOIN"
            f" (SELECT {alias}.k AS k, count(*) AS c FROM {source} GROUP BY {alias}.k) h ON g.k = h.k"
        )

    def union(self) -> str:
        """UNION ALL of blocks."""
        self.note("UNION ALL")
        kind = self.random.randint(0, 3)
        if kind == 0:
            return " UNION ALL ".join(self.twice())
        if kind == 1:
            return f"{self.simple_groups()} UNION ALL {self.simple_groups()}"
        parts = []
        for _ in range(2):
            stream = self.random.choice(self.streams)
            alias = self.alias()
            source = self.window(stream, alias)
            places = self.places(stream, alias)
            parts.append(
                f"SELECT {self.expressions.number(places)} AS c, {alias}.s AS s FROM {source}"
                f"{self.where(places)}"
            )
        return " UNION ALL ".join(parts)

    def scalar(self) -> str:
        """A scalar subquery over another window, or over the standard table."""
        random = self.random
        stream = random.choice(self.streams)
        alias = self.alias()
        self.note("scalar subquery")
        kind = random.randint(0, 2)
        if kind == 2:
            source = self.window(stream, alias)
            return (
                f"SELECT {alias}.k AS k, count(*) AS n FROM {source}"
                f" WHERE {alias}.i > (SELECT min(w) FROM dim) GROUP BY {alias}.k"
            )
        if kind == 0:
            source = self.window(stream, alias)
            inner = self.alias()
            other = self.window(stream, inner)
            return (
                f"SELECT {alias}.k AS k, {alias}.i AS i FROM {source}"
                f" WHERE {alias}.i >= (SELECT avg({inner}.i) FROM {other})"
            )
        source = self.window(stream, alias)
        inner = self.alias()
        other = self.window(random.choice(self.streams), inner)
        return (
            f"SELECT {alias}.k AS k, count(*) AS n FROM {source} GROUP BY {alias}.k"
            f" HAVING count(*) >= (SELECT count(*) FROM {other}) / 4"
        )

    def prev(self) -> str:
        """PREV over one window."""
        random = self.random
        stream = random.choice(self.streams)
        alias = self.alias()
        number = len(self.windows)
        source = self.window(stream, alias)
        column = random.choice(["i", "d", "s"])
        steps = random.choice([1, 1, 2])
        self.note("PREV")
        window = self.windows[number]
        self.windows[number] = WindowOf(
            window.table, window.kind, window.size, window.keys, (("i", 1), (column, steps))
        )
        one, two = self.text.previous(alias, "i", 1), self.text.previous(alias, column, steps)
        kind = random.randint(0, 2)
        if kind == 0:
            return (
                f"SELECT {alias}.k AS k, sum({alias}.i - {one}) AS s, count({two}) AS n"
                f" FROM {source} GROUP BY {alias}.k"
            )
        self.ordered = True
        where = f" WHERE {alias}.i > {one}" if kind == 1 else self.where(self.places(stream, alias))
        items = f"{alias}.i AS i, {one} AS p, {two} AS q"
        return f"SELECT {items} FROM {source}{where}{self.newest(alias)}"

    def above(self) -> str:
        """The standard table joined above the fold."""
        kind = self.turn(["inner", "left", "semi", "anti", "exists"])
        inner = self.simple_groups()
        if kind == "exists":
            self.note("EXISTS above the fold")
            word = self.random.choice(["EXISTS", "NOT EXISTS"])
            test = f"{word} (SELECT 1 FROM dim dd WHERE dd.k = d.k AND dd.w >= d.n)"
            return f"SELECT d.k, d.n FROM ({inner}) d WHERE {test}"
        self.note(f"{kind} join with a table above the fold")
        shown = "d.k, d.n" + (", dd.label" if kind in ("inner", "left") else "")
        return f"SELECT {shown} FROM ({inner}) d {self.text.join(kind)} dim dd ON d.k = dd.k"

    def rolled_up(self) -> str:
        """Grouping sets; of no rows Spark makes no total."""
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        where = self.where(self.places(stream, alias), 0.4)
        self.note("grouping sets")
        return self.sets_of_groups(source, alias, where)

    def sets_of_groups(self, source: str, alias: str, where: str) -> str:
        """The rows of a table by several keys at once."""
        keys = f"{alias}.k, {alias}.s"
        sets = [f"ROLLUP ({keys})", f"CUBE ({keys})", f"GROUPING SETS (({keys}), ())"]
        items = [f"{alias}.k", f"{alias}.s", "count(*)", f"sum({alias}.i)"]
        text = (
            f"SELECT {self.named(items)} FROM {source}{where} GROUP BY {self.random.choice(sets)}"
        )
        return f"{text} HAVING count(*) > 0"

    def ranked(self) -> str:
        """A window function over groups."""
        self.note("window function above the fold")
        calls = ["rank() OVER (ORDER BY d.n DESC)", "dense_rank() OVER (ORDER BY d.n)"]
        calls += ["max(d.n) OVER (PARTITION BY d.n % 2)", "count(*) OVER ()"]
        items = self.named(["d.k", "d.n", self.random.choice(calls)])
        return f"SELECT {items} FROM ({self.simple_groups()}) d"

    def sets(self) -> str:
        """A set operation of groups."""
        self.note("set operation above the fold")
        kinds = ["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        kind = self.random.choice(kinds)
        one, other = self.simple_groups(), self.simple_groups()
        text = f"SELECT {self.named(['d.k', 'd.n'])} FROM ({one}) d"
        return f"{text} {kind} SELECT e.k, e.n FROM ({other}) e"

    def marked(self) -> str:
        """A condition with a subquery, beside another that may hold without it."""
        stream = self.random.choice(self.streams)
        alias = self.alias()
        source = self.window(stream, alias)
        places = self.places(stream, alias)
        self.note("subquery under OR")
        kind = self.random.choice(["IN", "EXISTS", "NOT IN", "NOT EXISTS"])
        asked = self.member(kind, alias, "dim")
        where = f" WHERE ({asked}) OR {self.expressions.condition(places, 1)}"
        return f"SELECT {self.named(self.items(places))} FROM {source}{where}"
