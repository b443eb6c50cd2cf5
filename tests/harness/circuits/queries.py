"""Random queries over three small tables, in Spark's words, such that DuckDB means the same by them.

Every ORDER BY that decides which rows are there names all columns, so that only equal rows tie; numbers are
small halves, so that sums are exact in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

INT, TEXT, DOUBLE = "INT", "STRING", "DOUBLE"
TABLES = {
    "s": (("id", INT), ("k", INT), ("v", INT), ("x", DOUBLE), ("c", TEXT)),
    "r": (("id", INT), ("k", INT), ("w", INT), ("d", TEXT)),
    "t": (("k", INT), ("label", TEXT), ("y", DOUBLE)),
}
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
# Windows of time without a function for them: what stands before the rows, and what behind them.
_COUNTED = "SELECT k AS {group}, s AS {start}, e AS {end}, count(*) AS {count} FROM ("
WINDOWS = {
    "tumbling": (
        _COUNTED + "SELECT {key} AS k, t AS s, t + 3 AS e FROM ("
        "SELECT *, {time} - (({time} % 3) + 3) % 3 AS t FROM (",
        ") {alias}) a WHERE t IS NOT NULL) b GROUP BY k, s, e",
    ),
    "sliding": (
        _COUNTED + "SELECT {key} AS k, t - i AS s, t - i + 5 AS e FROM ("
        "SELECT *, {time} - (({time} % 2) + 2) % 2 AS t FROM (",
        ") {alias}) a CROSS JOIN (SELECT 0 AS i UNION ALL SELECT 2 UNION ALL SELECT 4) w "
        "WHERE {time} < t - i + 5) b GROUP BY k, s, e",
    ),
    "session": (
        "SELECT k AS {group}, min(t) AS {start}, max(t) + 1 AS {end}, count(*) AS {count} FROM ("
        "SELECT k, t, sum(f) OVER (PARTITION BY k ORDER BY t) AS n FROM ("
        "SELECT k, t, CASE WHEN t - lag(t) OVER (PARTITION BY k ORDER BY t) <= 1 THEN 0 ELSE 1 END AS f "
        "FROM (SELECT {key} AS k, {time} AS t FROM (",
        ") {alias} WHERE {time} IS NOT NULL) a) b) c GROUP BY k, n",
    ),
}


@dataclass(frozen=True)
class Part:
    """A query and its columns, whose names are unique in it."""

    text: str
    columns: tuple[tuple[str, str], ...]

    def of(self, type_: str) -> list[str]:
        """The columns of a type."""
        return [name for name, known in self.columns if known == type_]


class QueryMaker:
    """Makes random queries; notes which shapes it used."""

    depth = 5  # at most

    def __init__(self, random: Random) -> None:
        self.random = random
        self.shapes: Counter[str] = Counter()
        self._words: dict[str, tuple[str, str]] = {}  # what Spark says, and what DuckDB understands
        self._next = 0

    def query(self, depth: int) -> Part:
        """A query of at most so many steps over each other."""
        if depth <= 0:
            return self._table()
        return self.random.choice(self._shapes())(depth - 1)

    def _shapes(self) -> list[Callable[[int], Part]]:
        """What a query may be at its top, as often as it is to be drawn."""
        return [
            *(self._filtered, self._projected, self._joined, self._joined, self._grouped),
            *(self._grouped, self._distinct, self._set, self._first, self._over, self._asked),
            *(self._value, self._rolled_up, self._windowed, self._marked, self._pivoted),
            *(self._as_of, self._as_of),
        ]

    def text(self, part: Part) -> str:
        """The query in Spark's words."""
        return self._written(part.text, 0)

    def judge(self, part: Part) -> str:
        """The query in words that DuckDB has too."""
        return self._written(part.text, 1)

    def _written(self, text: str, place: int) -> str:
        for mark, words in reversed(self._words.items()):  # words may have earlier marks in them
            text = text.replace(mark, words[place])
        return text

    def _mark(self, spark: str, judge: str) -> str:
        mark = f"«{len(self._words)}»"
        self._words[mark] = (spark, judge)
        return mark

    def _name(self) -> str:
        self._next += 1
        return f"c{self._next}"

    def _used(self, shape: str) -> None:
        self.shapes[shape] += 1

    def _table(self) -> Part:
        name = self.random.choice(("s", "s", "r", "r", "t"))
        columns = TABLES[name]
        names = [self._name() for _ in columns]
        items = ", ".join(f"{c} AS {n}" for (c, _), n in zip(columns, names, strict=True))
        types = [type_ for _, type_ in columns]
        return Part(f"SELECT {items} FROM {name}", tuple(zip(names, types, strict=True)))

    def _alias(self) -> str:
        self._next += 1
        return f"q{self._next}"

    # Expressions

    def _condition(self, part: Part, alias: str = "") -> str:
        random, dot = self.random, f"{alias}." if alias else ""
        name, type_ = random.choice(part.columns)
        column = dot + name
        if random.random() < 0.15:
            return f"{column} IS {random.choice(('', 'NOT '))}NULL"
        if type_ == TEXT:
            return f"{column} {random.choice(('=', '<>', '<', '>='))} '{random.choice('abc')}'"
        if type_ == DOUBLE:
            return f"{column} {random.choice(('<', '>='))} {random.choice(('0.5', '1.5', '2.0'))}"
        return f"{column} {random.choice(('<', '>', '=', '<>'))} {random.randint(0, 4)}"

    def _expression(self, part: Part) -> tuple[str, str]:
        name, type_ = self.random.choice(part.columns)
        if type_ == TEXT:
            return f"upper({name})", TEXT
        if type_ == DOUBLE:
            return f"{name} + 0.5D", DOUBLE
        made = (f"{name} + 1", f"CASE WHEN {name} > 2 THEN {name} ELSE 0 END", f"{name} % 3")
        return self.random.choice(made), INT

    def _total_order(self, part: Part) -> str:
        names = [name for name, _ in part.columns]
        self.random.shuffle(names)
        ways = ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")
        return ", ".join(f"{name} {self.random.choice(ways)}" for name in names)

    # Shapes

    def _filtered(self, depth: int) -> Part:
        self._used("filter")
        part = self.query(depth)
        joined = self.random.choice((" AND ", " OR "))
        conditions = [self._condition(part) for _ in range(self.random.randint(1, 2))]
        alias = self._alias()
        text = f"SELECT * FROM ({part.text}) {alias} WHERE {joined.join(conditions)}"
        return Part(text, part.columns)

    def _projected(self, depth: int) -> Part:
        self._used("project")
        part, alias = self.query(depth), self._alias()
        kept = self.random.sample(part.columns, min(3, len(part.columns)))
        items, columns = [], []
        for name, type_ in kept:
            new = self._name()
            items.append(f"{name} AS {new}")
            columns.append((new, type_))
        text, type_ = self._expression(part)
        new = self._name()
        return Part(
            f"SELECT {', '.join([*items, f'{text} AS {new}'])} FROM ({part.text}) {alias}",
            (*columns, (new, type_)),
        )

    def _joined(self, depth: int) -> Part:
        left, right = self.query(depth), self.query(depth)
        a, b = self._alias(), self._alias()
        on = self._keys(left, a, right, b)
        kind = self.random.choice(JOINS)
        if self.random.random() < 0.3 and left.of(INT) and right.of(INT):
            one, other = self.random.choice(left.of(INT)), self.random.choice(right.of(INT))
            on.append(f"{a}.{one} < {b}.{other}")
            self._used(f"{kind} with a residual")
        self._used(kind)
        names = [self._name() for _ in (*left.columns, *right.columns)]
        shown = [f"{a}.{name}" for name, _ in left.columns]
        shown += [f"{b}.{name}" for name, _ in right.columns]
        items = ", ".join(f"{c} AS {n}" for c, n in zip(shown, names, strict=True))
        types = [type_ for _, type_ in (*left.columns, *right.columns)]
        text = (
            f"SELECT {items} FROM ({left.text}) {a} {kind} ({right.text}) {b} ON {' AND '.join(on)}"
        )
        return Part(text, tuple(zip(names, types, strict=True)))

    def _as_of(self, depth: int) -> Part:
        """One right row of each key and time: which of several it is, DuckDB leaves open."""
        left, right = self.query(depth), self.query(depth)
        if not left.of(INT) or not right.of(INT):
            return left
        kind = self.random.choice(("ASOF JOIN", "ASOF LEFT JOIN"))
        comparison = self.random.choice((">=", ">", "<=", "<"))
        self._used(f"{kind} {comparison}")
        a, b, inner = self._alias(), self._alias(), self._alias()
        time, key = self.random.choice(right.of(INT)), self.random.choice(right.columns)
        on = [f"{a}.{self.random.choice(left.of(INT))} {comparison} {b}.t"]
        items = {"t": time}
        if left.of(key[1]) and self.random.random() < 0.8:
            items["k"] = key[0]
            on.append(f"{a}.{self.random.choice(left.of(key[1]))} = {b}.k")
        most, partners = (time, INT), ", ".join(f"{c} AS {name}" for name, c in items.items())
        if self.random.random() < 0.5:
            partners = f"DISTINCT {partners}, {time} AS m FROM ({right.text}) {inner}"
        else:
            most = self.random.choice(right.columns)
            group = ", ".join(items.values())
            partners += f", max({most[0]}) AS m FROM ({right.text}) {inner} GROUP BY {group}"
        names = [(self._name(), type_) for _, type_ in left.columns]
        shown = [f"{a}.{c} AS {n}" for (c, _), (n, _) in zip(left.columns, names, strict=True)]
        names += [(self._name(), INT), (self._name(), most[1])]
        shown += [f"{b}.t AS {names[-2][0]}", f"{b}.m AS {names[-1][0]}"]
        text = (
            f"SELECT {', '.join(shown)} FROM ({left.text}) {a} {kind} (SELECT {partners}) {b} "
            f"ON {' AND '.join(on)}"
        )
        return Part(text, tuple(names))

    def _keys(self, left: Part, a: str, right: Part, b: str) -> list[str]:
        types = [type_ for type_ in (INT, TEXT, DOUBLE) if left.of(type_) and right.of(type_)]
        if not types:
            return ["TRUE"] if self.random.random() < 0 else [f"{a}.{left.columns[0][0]} IS NULL"]
        type_ = types[0] if self.random.random() < 0.7 else self.random.choice(types)
        one, other = self.random.choice(left.of(type_)), self.random.choice(right.of(type_))
        same = self.random.choice(("=", "=", "<=>"))
        return [f"{a}.{one} {same} {b}.{other}"]

    def _aggregates(self, part: Part) -> list[tuple[str, str]]:
        found = [("count(*)", INT)]
        for name in part.of(INT)[:2]:
            found += [(f"sum({name})", INT), (f"min({name})", INT), (f"max({name})", INT)]
            found += [(f"avg({name})", DOUBLE), (f"count(DISTINCT {name})", INT)]
            found += [(f"sum(DISTINCT {name})", INT), (f"median({name})", DOUBLE)]
            found += [(f"count({name}) FILTER (WHERE {name} > 1)", INT)]
            bits = self.random.choice(("bit_and", "bit_or", "bit_xor"))
            found += [(self._estimate(name), INT), (f"{bits}({name})", INT)]
        for name in part.of(DOUBLE)[:1]:
            found += [(f"sum({name})", DOUBLE), (f"max({name})", DOUBLE), (f"avg({name})", DOUBLE)]
        for name in part.of(TEXT)[:1]:
            found += [(f"min({name})", TEXT), (f"max({name})", TEXT)]
        return self.random.sample(found, min(len(found), self.random.randint(1, 3)))

    def _estimate(self, name: str) -> str:
        """approx_count_distinct over few values, which no register of a sketch has twice."""
        few = f"{name} % 5"
        return self._mark(f"approx_count_distinct({few})", f"count(DISTINCT {few})")

    def _grouped(self, depth: int) -> Part:
        part, alias = self.query(depth), self._alias()
        count = self.random.choice((0, 1, 1, 2))
        keys = self.random.sample(part.columns, min(count, len(part.columns)))
        self._used("group by" if keys else "group by nothing")
        columns = [(self._name(), type_) for _, type_ in keys]
        items = [f"{k} AS {n}" for (k, _), (n, _) in zip(keys, columns, strict=True)]
        for text, type_ in self._aggregates(part):
            columns.append((self._name(), type_))
            items.append(f"{text} AS {columns[-1][0]}")
        group = f" GROUP BY {', '.join(name for name, _ in keys)}" if keys else ""
        having = " HAVING count(*) > 1" if keys and self.random.random() < 0.2 else ""
        text = f"SELECT {', '.join(items)} FROM ({part.text}) {alias}{group}{having}"
        return Part(text, tuple(columns))

    def _rolled_up(self, depth: int) -> Part:
        del depth  # an empty input means something else to DuckDB
        kind = self.random.choice(("ROLLUP", "CUBE"))
        self._used(kind)
        names = [self._name() for _ in range(3)]
        text = (
            f"SELECT k AS {names[0]}, c AS {names[1]}, sum(v) AS {names[2]} FROM s "
            f"GROUP BY {kind}(k, c)"
        )
        return Part(text, ((names[0], INT), (names[1], TEXT), (names[2], INT)))

    def _distinct(self, depth: int) -> Part:
        self._used("distinct")
        part, alias = self.query(depth), self._alias()
        kept = self.random.sample(part.columns, self.random.randint(1, min(2, len(part.columns))))
        names = ", ".join(name for name, _ in kept)
        return Part(f"SELECT DISTINCT {names} FROM ({part.text}) {alias}", tuple(kept))

    def _set(self, depth: int) -> Part:
        left, right = self.query(depth), self.query(depth)
        types = [type_ for type_ in (INT, TEXT) if left.of(type_) and right.of(type_)]
        if not types:
            return left
        kind = self.random.choice(SETS)
        self._used(kind)
        one = [self.random.choice(left.of(type_)) for type_ in types]
        other = [self.random.choice(right.of(type_)) for type_ in types]
        names = [self._name() for _ in types]
        mine = ", ".join(f"{c} AS {n}" for c, n in zip(one, names, strict=True))
        sides = (
            f"SELECT {mine} FROM ({left.text}) {self._alias()}",
            f"SELECT {', '.join(other)} FROM ({right.text}) {self._alias()}",
        )
        text = f"SELECT * FROM ({sides[0]} {kind} {sides[1]}) {self._alias()}"
        return Part(text, tuple(zip(names, types, strict=True)))

    def _first(self, depth: int) -> Part:
        part, alias, outer = self.query(depth), self._alias(), self._alias()
        order = self._total_order(part)
        if self.random.random() < 0.4:
            self._used("ORDER BY LIMIT")
            limit = f"LIMIT {self.random.randint(1, 4)}"
            limit += f" OFFSET {self.random.randint(1, 2)}" if self.random.random() < 0.3 else ""
            inner = f"SELECT * FROM ({part.text}) {alias} ORDER BY {order} {limit}"
            return Part(f"SELECT * FROM ({inner}) {outer}", part.columns)
        function = self.random.choice(("row_number", "rank", "dense_rank"))
        self._used(f"{function} up to a bound")
        by, number = self.random.choice(part.columns)[0], self._name()
        inner = (
            f"SELECT *, {function}() OVER (PARTITION BY {by} ORDER BY {order}) AS {number} "
            f"FROM ({part.text}) {alias}"
        )
        bound = self.random.choice((f"{number} <= 2", f"{number} = 1", f"{number} < 3"))
        columns = (*part.columns, (number, INT))
        return Part(f"SELECT * FROM ({inner}) {outer} WHERE {bound}", columns)

    def _over(self, depth: int) -> Part:
        self._used("window function")
        part, alias = self.query(depth), self._alias()
        by, order, number = (
            self.random.choice(part.columns)[0],
            self._total_order(part),
            self._name(),
        )
        over = f"(PARTITION BY {by} ORDER BY {order})"
        calls = [(f"row_number() OVER {over}", INT), (f"rank() OVER {over}", INT)]
        calls += [(f"count(*) OVER (PARTITION BY {by})", INT)]
        for name in part.of(INT)[:1]:
            rows = f"(PARTITION BY {by} ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
            calls += [(f"sum({name}) OVER {over}", INT), (f"lag({name}) OVER {over}", INT)]
            near = self.random.choice(
                ("1 PRECEDING AND 2 FOLLOWING", "UNBOUNDED PRECEDING AND 1 PRECEDING")
            )
            way = self.random.choice(("ASC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS LAST"))
            values = f"(PARTITION BY {by} ORDER BY {name} {way} RANGE BETWEEN {near})"
            calls += [(f"sum({name}) OVER {values}", INT), (f"count(*) OVER {values}", INT)]
            calls += [(f"max({name}) OVER {rows}", INT), (f"lead({name}, 2, 7) OVER {over}", INT)]
        text, type_ = self.random.choice(calls)
        columns = (*part.columns, (number, type_))
        return Part(f"SELECT *, {text} AS {number} FROM ({part.text}) {alias}", columns)

    def _asked(self, depth: int) -> Part:
        """IN, NOT IN, EXISTS and NOT EXISTS."""
        part, alias, inner = self.query(depth), self._alias(), self._alias()
        table = self.random.choice(("r", "t", "s"))
        names = part.of(INT)
        if not names:
            return part
        outer = f"{alias}.{self.random.choice(names)}"
        test = self.random.choice(("IN", "NOT IN", "NOT IN", "EXISTS", "NOT EXISTS"))
        self._used(test)
        if test == "IN":
            condition = f"{outer} IN (SELECT k FROM {table} WHERE k < 4)"
        elif test == "NOT IN":
            which = self.random.choice(("k < 4", "k > 4", "k > 4 OR k IS NULL", "k > 99", "TRUE"))
            condition = f"{outer} NOT IN (SELECT k FROM {table} WHERE {which})"
        else:
            more = f" AND {inner}.k > 1" if self.random.random() < 0.5 else ""
            condition = f"{test} (SELECT 1 FROM {table} {inner} WHERE {inner}.k = {outer}{more})"
        return Part(f"SELECT * FROM ({part.text}) {alias} WHERE {condition}", part.columns)

    def _marked(self, depth: int) -> Part:
        """IN and EXISTS under OR and in a CASE, and IN whose values depend on the row outside."""
        part, alias, inner = self.query(depth), self._alias(), self._alias()
        names = part.of(INT)
        if not names:
            return part
        table = self.random.choice(("r", "t", "s"))
        one, other = (f"{alias}.{self.random.choice(names)}" for _ in range(2))
        where = self.random.choice(("", f" WHERE {inner}.k > 2", f" WHERE {inner}.id > {other}"))
        where = where if table == "s" or "id" not in where else f" WHERE {inner}.k <> {other}"
        no = self.random.choice(("", "NOT "))
        test = self.random.choice(("IN", "EXISTS"))
        asked = f"{one} {no}IN (SELECT {inner}.k FROM {table} {inner}{where})"
        if test == "EXISTS":
            asked = f"{no}EXISTS (SELECT 1 FROM {table} {inner} WHERE {inner}.k = {one})"
        tied = other in where and test == "IN"
        self._used(f"{no}{test}{' by key' if tied else ''}, marked")
        if tied and self.random.random() < 0.4:
            return Part(f"SELECT * FROM ({part.text}) {alias} WHERE {asked}", part.columns)
        if self.random.random() < 0.5:
            condition = f"{asked} OR {self._condition(part, alias)}"
        else:
            condition = f"CASE WHEN {asked} THEN {one} ELSE {other} + 1 END > 2"
        return Part(f"SELECT * FROM ({part.text}) {alias} WHERE {condition}", part.columns)

    def _pivoted(self, depth: int) -> Part:
        """PIVOT; what DuckDB makes of a cell without rows is another thing, so it is told what to do."""
        part, alias = self.query(depth), self._alias()
        if not part.of(TEXT) or not part.of(INT):
            return part
        self._used("pivot")
        by, value = self.random.choice(part.of(TEXT)), self.random.choice(part.of(INT))
        call = self.random.choice((f"sum({value})", "count(*)", f"max({value})"))
        key, names = self.random.choice(part.columns), [self._name() for _ in range(3)]
        kept = {by: None, value: None, key[0]: None}
        inner = f"(SELECT {', '.join(kept)} FROM ({part.text}) {alias})"
        keys = [name for name in kept if name != by and name not in call]
        shown = "".join(f"{name}, " for name in keys)
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        cells = ", ".join(
            f"CASE WHEN count(*) FILTER (WHERE {by} = '{v}') > 0 THEN {call} "
            f"FILTER (WHERE {by} = '{v}') END AS {n}"
            for v, n in zip("ab", names[:2], strict=True)
        )
        spark = f" PIVOT ({call} FOR {by} IN ('a' AS {names[0]}, 'b' AS {names[1]}))"
        opening = self._mark(
            f"SELECT {shown}{names[0]}, {names[1]} FROM ", f"SELECT {shown}{cells} FROM "
        )
        closing = self._mark(spark, group)
        columns = [(name, type_) for name, type_ in part.columns if name in keys]
        columns = [*sorted(columns, key=lambda c: keys.index(c[0])), *((n, INT) for n in names[:2])]
        return Part(f"{opening}{inner}{closing}", tuple(columns))

    def _value(self, depth: int) -> Part:
        """A subquery that is a value."""
        part, alias, inner, number = self.query(depth), self._alias(), self._alias(), self._name()
        names = part.of(INT)
        if not names:
            return part
        call = self.random.choice(("max(v)", "count(*)", "sum(v) + 1", "min(v)"))
        tied = self.random.random() < 0.6
        self._used("a value by key" if tied else "a value")
        outer = f"{alias}.{self.random.choice(names)}"
        where = f" WHERE {inner}.k = {outer}" if tied else ""
        text = f"SELECT *, (SELECT {call} FROM s {inner}{where}) AS {number} FROM ({part.text}) {alias}"
        return Part(text, (*part.columns, (number, INT)))

    def _windowed(self, depth: int) -> Part:
        """Windows of time and sessions, of numbers that are seconds."""
        part, alias = self.query(depth), self._alias()
        names = part.of(INT)
        if not names:
            return part
        time, key = self.random.choice(names), self.random.choice(part.columns)
        columns = [(self._name(), type_) for type_ in (key[1], INT, INT, INT)]
        group, start, end, count = (name for name, _ in columns)
        kind = self.random.choice(("tumbling", "sliding", "session"))
        self._used(f"{kind} windows")
        window = "session_window" if kind == "session" else "window"
        lengths = {"tumbling": "'3 seconds'", "sliding": "'5 seconds', '2 seconds'"}
        length = lengths.get(kind, "'1 second'")
        call = f"{window}(timestamp_seconds({time}), {length})"
        spark = (
            f"SELECT {key[0]} AS {group}, unix_seconds({window}.start) AS {start}, "
            f"unix_seconds({window}.end) AS {end}, count(*) AS {count} FROM ("
        )
        head, tail = WINDOWS[kind]
        given = {"group": group, "start": start, "end": end, "count": count, "alias": alias}
        given |= {"key": key[0], "time": time}
        opening = self._mark(spark, head.format(**given))
        closing = self._mark(f") {alias} GROUP BY {key[0]}, {call}", tail.format(**given))
        return Part(f"{opening}{part.text}{closing}", tuple(columns))
