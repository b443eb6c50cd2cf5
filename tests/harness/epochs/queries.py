"""Random queries over cut streams: what the product reads, what DuckDB reads, and what they mean.

A query is a chain of joins from left to right, a filter, and rows or groups; nothing here knows when an
epoch ends or which rows a chunk holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.harness.epochs.histories import Row, Table
from tests.harness.epochs.terms import (
    ROWS,
    Aggregate,
    Joined,
    Term,
    aggregate,
    both,
    column,
    compared,
    constant,
    count_all,
    equal,
    exists,
    filtering,
    is_in,
    on_condition,
)

# `CUT ON k` and `CUT ON o BY 3`, where a change of the value ends the chunk: True once they are there.
CUT_ON_ANY_COLUMN = True

NEWEST = "newest"
WORDS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL OUTER JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
Kept = dict[str, list[Row]]  # by alias: the rows of the kept chunks


@dataclass(frozen=True)
class Cut:
    """How all sources of a query are cut."""

    kind: str  # "time" | "rows" | "key" (a column changes) | "step" (its multiple changes)
    size: float = 1  # units of time, rows, or the step
    column: str = "ts"

    def condition(self, in_string: bool) -> str:
        """`CUT …` as it stands in the text."""
        if self.kind == "rows":
            return f"CUT BY {self.size} ROWS"
        if self.kind == "key":
            return f"CUT ON {self.column}"
        if self.kind == "step":
            return f"CUT ON {self.column} BY {self.size}"
        if in_string:
            return f"CUT ON ts BY {self.size} SECS"
        return f"CUT ON ts BY INTERVAL '{self.size}' SECOND"


@dataclass(frozen=True)
class Source:
    """A cut table in a query; `counts` makes it a grouped subquery."""

    table: str
    alias: str
    keep: int
    as_call: bool
    counts: bool = False

    def text(self, cut: Cut) -> str:
        """As the product reads it."""
        plain = self._plain(cut, "" if self.counts else f" {self.alias}")
        return self.wrapped(plain) if self.counts else plain

    def _plain(self, cut: Cut, alias: str) -> str:
        if self.as_call:
            block = "" if self.keep == 1 else f", 'BLOCK', {self.keep}"
            return f"STREAM({self.table}, '{cut.condition(True)}'{block}){alias}"
        keep = "" if self.keep == 1 else f" KEEP {self.keep} CHUNKS"
        return f"{self.table} {cut.condition(False)}{keep}{alias}"

    def wrapped(self, plain: str) -> str:
        """The grouped subquery over a table."""
        items = "k, count(*) AS v, max(g) AS g, sum(id) AS id, max(ts) AS ts"
        return f"(SELECT {items} FROM {plain} GROUP BY k) {self.alias}"

    def rows(self, kept: list[Row]) -> list[Row]:
        """What the query sees of the kept rows."""
        if not self.counts:
            return kept
        groups: dict[Any, list[Row]] = {}
        for row in kept:
            groups.setdefault(row["k"], []).append(row)
        return [_counted(key, rows) for key, rows in groups.items()]


def _counted(key: Any, rows: list[Row]) -> Row:
    texts = [row["g"] for row in rows if row["g"] is not None]
    return {
        "k": key,
        "v": len(rows),
        "g": max(texts, default=None),
        "id": sum(row["id"] for row in rows),
        "ts": max(row["ts"] for row in rows),
    }


@dataclass(frozen=True)
class Join:
    """A source joined to what stands left of it."""

    kind: str
    alias: str  # "d": the standard table
    on: Term
    using: bool = False

    @property
    def text(self) -> str:
        """As it stands in the text."""
        return f"{WORDS[self.kind]} <{self.alias}> {'USING (k)' if self.using else f'ON {self.on.text}'}"


@dataclass(frozen=True)
class Case:
    """One query."""

    cut: Cut
    sources: tuple[Source, ...]
    joins: tuple[Join, ...]
    where: Term | None
    items: tuple[Term, ...]  # what rows show, or the keys of groups
    aggregates: tuple[Aggregate, ...] = ()
    having: Term | None = None  # over the groups' count
    grouped: bool = False
    distinct: bool = False
    pair_newest: bool = False
    commas: bool = False  # inner joins as FROM a, b WHERE …
    mode: str = "auto"
    target: str = "query"  # "query" | "view"
    from_beginning: bool = False
    constructs: frozenset[str] = field(default_factory=frozenset)

    # Texts

    @property
    def text(self) -> str:
        """For the product."""
        places = {source.alias: source.text(self.cut) for source in self.sources}
        text = self._render({**places, "d": "dim d"}, ())
        return f"{text} PAIR NEWEST" if self.pair_newest else text

    @property
    def duck(self) -> str:
        """For DuckDB, over tables that are named as the sources and hold the kept rows."""
        places = {"d": "dim d"}
        for source in self.sources:
            name = f"kept_{source.alias}"
            places[source.alias] = (
                source.wrapped(name) if source.counts else f"{name} {source.alias}"
            )
        flags = tuple(f"coalesce({alias}.{NEWEST}, FALSE)" for alias in self._shown_streams)
        text = self._render(places, (f"({' OR '.join(flags)})",) if self.pair_newest else ())
        return text.replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")

    def _render(self, places: dict[str, str], more: tuple[str, ...]) -> str:
        first = self.sources[0].alias
        tests = [] if self.where is None else [self.where.text]
        if self.commas:
            from_ = ", ".join(f"<{alias}>" for alias in (first, *(j.alias for j in self.joins)))
            tests = [*(f"({join.on.text})" for join in self.joins), *tests]
        else:
            from_ = " ".join([f"<{first}>", *(join.text for join in self.joins)])
        shown = [f"{term.text} AS c{place}" for place, term in enumerate(self.items)]
        shown += [f"{one.text} AS a{place}" for place, one in enumerate(self.aggregates)]
        text = f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(shown)} FROM {from_}"
        tests += more
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        if self.grouped and self.items:
            text += f" GROUP BY {', '.join(term.text for term in self.items)}"
        text += f" HAVING {self.having.text}" if self.having is not None else ""
        for alias, place in places.items():
            text = text.replace(f"<{alias}>", place)
        return text

    # Meaning

    @property
    def _shown(self) -> list[str]:
        hidden = {join.alias for join in self.joins if join.kind in ("semi", "anti")}
        joined = [self.sources[0].alias, *(join.alias for join in self.joins)]
        return [alias for alias in joined if alias not in hidden]

    @property
    def _shown_streams(self) -> list[str]:
        return [alias for alias in self._shown if alias != "d"]

    def answer(self, kept: Kept, dim: Sequence[Row]) -> list[tuple[Any, ...]]:
        """The rows of the result, by brute force."""
        seen = {source.alias: source.rows(kept[source.alias]) for source in self.sources}
        seen["d"] = list(dim)
        rows = [{self.sources[0].alias: row, ROWS: seen} for row in seen[self.sources[0].alias]]
        for join in self.joins:
            rows = _joined(rows, join, seen)
        if self.where is not None:
            rows = [row for row in rows if self.where.value(row) is True]
        if self.pair_newest:
            rows = [row for row in rows if self._has_newest(row)]
        if self.grouped:
            return self._groups(rows)
        shown = [tuple(term.value(row) for term in self.items) for row in rows]
        return list(dict.fromkeys(shown)) if self.distinct else shown

    def _has_newest(self, row: Joined) -> bool:
        return any(row[a] is not None and row[a][NEWEST] for a in self._shown_streams)

    def _groups(self, rows: list[Joined]) -> list[tuple[Any, ...]]:
        groups: dict[tuple[Any, ...], list[Joined]] = {}
        for row in rows:
            groups.setdefault(tuple(term.value(row) for term in self.items), []).append(row)
        if not self.items and not groups:
            groups[()] = []
        found = []
        for key, members in groups.items():
            if self.having is None or self.having.value({ROWS: {"count": len(members)}}):
                found.append((*key, *(one.value(members) for one in self.aggregates)))
        return found


def _joined(left: list[Joined], join: Join, seen: dict[str, list[Row]]) -> list[Joined]:
    """One join, pair by pair."""
    right, alias = seen[join.alias], join.alias
    met: set[int] = set()
    found: list[Joined] = []
    for row in left:
        pairs = [(n, {**row, alias: other}) for n, other in enumerate(right)]
        matches = [(n, pair) for n, pair in pairs if join.on.value(pair) is True]
        met.update(n for n, _ in matches)
        if join.kind in ("semi", "anti"):
            found += [row] if bool(matches) is (join.kind == "semi") else []
            continue
        found += [pair for _, pair in matches]
        if not matches and join.kind in ("left", "full"):
            found.append({**row, alias: None})
    if join.kind in ("right", "full"):
        nobody: Joined = {**dict.fromkeys(seen), ROWS: seen}
        found += [{**nobody, alias: other} for n, other in enumerate(right) if n not in met]
    return found


class Cases:
    """Makes queries over tables."""

    def __init__(self, random: Random, tables: tuple[Table, ...], dim: bool) -> None:
        self._random, self._tables, self._has_dim = random, tables, dim
        self._integer = tables[0].unit == 1

    def case(self) -> Case:
        """A query."""
        random = self._random
        self._constructs: set[str] = set()
        cut = self._cut()
        pair_newest = random.random() < 0.2
        keeps = (2, 3) if pair_newest else random.choice([(1,), (1, 2), (1, 2, 3, 4)])
        count = random.choice([2, 2, 3] if pair_newest else [1, 2, 2, 2, 2, 3])
        chain = self._sources(count, "abc", keeps)
        if not pair_newest and random.random() < 0.15:
            place = random.randrange(len(chain))
            chain[place] = replace(chain[place], counts=True)
            self._constructs.add("grouped subquery")
        joins = self._joins(chain)
        commas = bool(joins) and all(j.kind == "inner" for j in joins) and random.random() < 0.5
        if commas:
            joins = [Join(j.kind, j.alias, j.on) for j in joins]
        where, inner = self._where(chain, joins, pair_newest, keeps)
        shown = [chain[0].alias, *(j.alias for j in joins if j.kind not in ("semi", "anti"))]
        from_beginning = self._tables[0].kind != "STREAM" and random.random() < 0.1
        whole = Case(
            cut, (*chain, *inner), tuple(joins), where, (), pair_newest=pair_newest, commas=commas
        )
        case = self._shown(whole, shown)
        case = replace(
            case,
            mode=random.choice(["auto", "fold", "fold", "reevaluate"]),
            target="view" if random.random() < 0.3 else "query",
            from_beginning=from_beginning,
        )
        constructs = frozenset(self._constructs | _named(case, self._tables))
        return replace(case, constructs=constructs)

    def varied(self, case: Case) -> Case:
        """The same query with other chunks, or into another place."""
        random = self._random
        sources = tuple(replace(s, keep=random.choice([1, s.keep, 2])) for s in case.sources)
        case = replace(case, mode=random.choice(["auto", "fold"]), sources=sources)
        if random.random() < 0.5:
            case = replace(case, cut=replace(case.cut, size=case.cut.size * 2))
        return replace(case, target=random.choice(["query", "view"]))

    def _cut(self) -> Cut:
        random = self._random
        kinds = ["time", "time", "rows"] + (["key", "step"] if CUT_ON_ANY_COLUMN else [])
        kind = random.choice(kinds)
        if kind == "time":
            return Cut(kind, random.choice([1, 2, 3, 5, 8] + ([] if self._integer else [0.5, 2.5])))
        if kind == "rows":
            return Cut(kind, random.choice([1, 2, 3, 5]))
        if kind == "key":
            return Cut(kind, column=random.choice(["k", "g", "o"]))
        return Cut(kind, random.choice([1, 2, 4]), random.choice(["o", "o", "k"]))

    def _sources(self, count: int, names: str, keeps: tuple[int, ...]) -> list[Source]:
        random, found = self._random, list[Source]()
        own = random.random() < 0.3  # a stream with itself
        for alias in names[:count]:
            free = [t for t in self._tables if own or t.name not in [f.table for f in found]]
            table = random.choice(free or self._tables)
            found.append(
                Source(table.name, alias, random.choice(keeps), as_call=random.random() < 0.5)
            )
        return found

    def _joins(self, chain: list[Source]) -> list[Join]:
        random, found = self._random, list[Join]()
        shown = [chain[0].alias]
        rest = [source.alias for source in chain[1:]]
        if self._has_dim and random.random() < 0.3:
            rest.insert(random.randint(0, len(rest)), "d")
        plain = random.random() < 0.4
        for alias in rest:
            kind = "inner" if plain else random.choice(list(WORDS))
            left = random.choice(shown)
            if alias == "d" or left == "d":
                on, using = compared(column(left, "k"), "=", column(alias, "k")), False
            else:
                on = on_condition(random, left, alias, self._integer)
                using = len(shown) == 1 and random.random() < 0.08
                on = compared(column(left, "k"), "=", column(alias, "k")) if using else on
            found.append(Join(kind, alias, on, using))
            if kind not in ("semi", "anti"):
                shown.append(alias)
        return found

    def _where(
        self, chain: list[Source], joins: list[Join], pair_newest: bool, keeps: tuple[int, ...]
    ) -> tuple[Term | None, list[Source]]:
        random = self._random
        tests, inner = list[Term](), list[Source]()
        shown = [chain[0].alias, *(j.alias for j in joins if j.kind not in ("semi", "anti", "d"))]
        streams = [alias for alias in shown if alias != "d"]
        if random.random() < 0.3:
            tests.append(filtering(random, random.choice(streams)))
        if not pair_newest and random.random() < 0.15:
            inner = self._sources(1, "e", keeps)
            alias, wanted = random.choice(streams), random.random() < 0.5
            if random.random() < 0.6:
                tests.append(exists("e", equal(random, alias, "e"), wanted))
                self._constructs.add("exists" if wanted else "not exists")
            else:
                tests.append(is_in(column(alias, "k"), "e", "k", wanted))
                self._constructs.add("in" if wanted else "not in")
        return (both(tests) if tests else None), inner

    def _shown(self, case: Case, shown: list[str]) -> Case:
        """Rows, different rows, groups, or one group."""
        random = self._random
        streams = [alias for alias in shown if alias != "d"]
        kind = random.choice(["rows", "rows", "distinct", "group", "group", "all"])
        if kind in ("rows", "distinct"):
            names = ["k", "v", "g"] if kind == "distinct" else ["id", "k", "v", "ts"]
            items = [column(alias, name) for alias in streams for name in names]
            items += [column("d", "w")] if "d" in shown else []
            return replace(case, items=tuple(items), distinct=kind == "distinct")
        keys = []
        if kind == "group":
            keys = [column(random.choice(streams), random.choice(["k", "k", "g"]))]
            if "d" in shown and random.random() < 0.5:
                keys.append(column("d", "name"))
        names = ["count", "sum", "min", "max", "avg", "count_distinct"]
        chosen = [count_all()]
        for name in random.sample(names, random.randint(1, 3)):
            chosen.append(aggregate(name, column(random.choice(streams), random.choice("vk"))))
        having = None
        if random.random() < 0.1:
            least = random.randint(1, 3)
            size = Term("count(*)", lambda row: row[ROWS]["count"])
            having = compared(size, ">=", constant(least))
        return replace(
            case, items=tuple(keys), aggregates=tuple(chosen), having=having, grouped=True
        )


def _named(case: Case, tables: tuple[Table, ...]) -> set[str]:
    """What is in a case, for the count of what was tried."""
    found = {f"cut by {case.cut.kind}", f"mode {case.mode}", f"into a {case.target}"}
    found |= {f"{join.kind} join" for join in case.joins if join.alias != "d"}
    found |= {"standard table" for join in case.joins if join.alias == "d"}
    used = [source.table for source in case.sources]
    found |= {"self-join"} if len(set(used)) < len(used) else set()
    found |= {"three sources"} if len(used) > 2 else set()
    found |= {f"{case.cut.kind} of two tables"} if len(set(used)) > 1 else set()
    found |= {"STREAM(…)" if source.as_call else "CUT" for source in case.sources}
    found |= {"kept chunks"} if any(source.keep > 1 for source in case.sources) else set()
    found |= {"PAIR NEWEST"} if case.pair_newest else set()
    found |= {"groups" if case.grouped else "distinct" if case.distinct else "rows"}
    found |= {tables[0].kind.lower(), f"{tables[0].time_type} time"}
    return found
