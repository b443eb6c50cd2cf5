"""Random queries: what a query may be, over queries that are made in the same way."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.circuits.aggregates import aggregate_calls
from tests.harness.circuits.base import INT, TEXT, Part
from tests.harness.circuits.more_shapes import MoreShapes
from tests.harness.circuits.over_calls import over_calls

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


class QueryMaker(MoreShapes):
    """Makes random queries; notes which shapes it used."""

    def _shapes(self) -> list[Callable[[int], Part]]:
        return [
            *(self._filtered, self._projected, self._joined, self._joined, self._grouped),
            *(self._grouped, self._grouped, self._distinct, self._set, self._set, self._first),
            *(self._over, self._over, self._asked, self._value, self._rolled_up, self._windowed),
            *(self._marked, self._pivoted, self._as_of, self._as_of, *self._more_shapes()),
        ]

    def _filtered(self, depth: int) -> Part:
        self._used("filter")
        part = self.query(depth)
        joined = self.random.choice((" AND ", " OR "))
        conditions = [self.condition(part) for _ in range(self.random.randint(1, 2))]
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

    def _grouped(self, depth: int) -> Part:
        part, alias = self.query(depth), self._alias()
        count = self.random.choice((0, 1, 1, 2))
        keys = self.random.sample(part.columns, min(count, len(part.columns)))
        self._used("group by" if keys else "group by nothing")
        columns = [(self._name(), type_) for _, type_ in keys]
        items = [f"{k} AS {n}" for (k, _), (n, _) in zip(keys, columns, strict=True)]
        for text, type_ in aggregate_calls(self, part):
            columns.append((self._name(), type_))
            items.append(f"{text} AS {columns[-1][0]}")
        group = f" GROUP BY {', '.join(name for name, _ in keys)}" if keys else ""
        having = " HAVING count(*) > 1" if keys and self.random.random() < 0.2 else ""
        text = f"SELECT {', '.join(items)} FROM ({part.text}) {alias}{group}{having}"
        return Part(text, tuple(columns))

    def _rolled_up(self, depth: int) -> Part:
        """Grouping sets; of no rows DuckDB makes a total, and Spark nothing."""
        part, alias = self.query(depth), self._alias()
        keys = self.random.sample(part.columns, min(2, len(part.columns)))
        one, other = (name for name, _ in (*keys, *keys)[:2])
        sets = self.random.choice(
            (
                *(f"ROLLUP({one}, {other})", f"CUBE({one}, {other})"),
                f"GROUPING SETS (({one}, {other}), ({other}))",
                *(f"GROUPING SETS (({one}), ({other}), ())", f"{one}, ROLLUP({other})"),
            )
        )
        if len(keys) < 2:
            sets = f"ROLLUP({one})"
        self._used(sets.partition("(")[0].partition(", ")[2] or sets.partition("(")[0])
        columns = [(self._name(), type_) for _, type_ in keys]
        items = [f"{k} AS {n}" for (k, _), (n, _) in zip(keys, columns, strict=True)]
        calls = aggregate_calls(self, part)[:2]
        for text, type_ in calls:
            columns.append((self._name(), type_))
            items.append(f"{text} AS {columns[-1][0]}")
        rows = self.mark("", " HAVING count(*) > 0")
        text = f"SELECT {', '.join(items)} FROM ({part.text}) {alias} GROUP BY {sets}{rows}"
        return Part(text, tuple(columns))

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
        order = self.total_order(part)
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
            self.total_order(part),
            self._name(),
        )
        text, type_ = self.random.choice(over_calls(self, part, by, order))
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
            condition = f"{asked} OR {self.condition(part, alias)}"
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
        opening = self.mark(
            f"SELECT {shown}{names[0]}, {names[1]} FROM ", f"SELECT {shown}{cells} FROM "
        )
        closing = self.mark(spark, group)
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
        opening = self.mark(spark, head.format(**given))
        closing = self.mark(f") {alias} GROUP BY {key[0]}, {call}", tail.format(**given))
        return Part(f"{opening}{part.text}{closing}", tuple(columns))
