"""More of what a query may be: generators, LATERAL, UNPIVOT, shared subqueries, rows in their own order."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.circuits.base import INT, BaseMaker, Part

EDGES = "first and last rows"
JOINED_BY_NAME = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN")


class MoreShapes(BaseMaker):
    """Shapes beside those of QueryMaker."""

    def _more_shapes(self) -> list[Callable[[int], Part]]:
        return [
            *(self._exploded, self._collected, self._unpivoted, self._shared, self._shared),
            *(self._beside, self._crossed, self._edges, self._qualified),
        ]

    def _exploded(self, depth: int) -> Part:
        """Elements of the arrays of a table, as a LATERAL VIEW or as an item."""
        del depth
        names, types = [self._name() for _ in range(4)], (INT, INT, INT, INT)
        keys = f"id AS {names[0]}, k AS {names[1]}"
        counted, outer, item = (self.random.random() < 0.5 for _ in range(3))
        words = f"{'pos' if counted else ''}explode{'_outer' if outer else ''}"
        self._used(words)
        shown = f"{names[2]}, {names[3]}" if counted else names[3]
        if item and not counted:
            spark = f"SELECT {keys}, {words}(a) AS {shown} FROM r"
        else:
            spark = (
                f"SELECT {keys}, {shown} FROM r LATERAL VIEW {words}(a) {self._alias()} AS {shown}"
            )
        place = f"generate_subscripts(a, 1) - 1 AS {names[2]}, " if counted else ""
        judged = f"SELECT {keys}, {place}unnest(a) AS {names[3]} FROM r"
        if outer:
            nothing = "NULL, NULL" if counted else "NULL"
            judged += f" UNION ALL SELECT id, k, {nothing} FROM r WHERE coalesce(len(a), 0) = 0"
        columns = [*zip(names, types, strict=True)]
        return Part(
            self.mark(spark, judged), tuple(columns if counted else columns[:2] + columns[3:])
        )

    def _either(self, spark: str, part: Part, name: str, judged: str) -> str:
        """What Spark says of a part, and what is said of it under a name where DuckDB judges."""
        judge = f"SELECT * FROM (WITH {name} AS ({part.text}) {judged}) {self._alias()}"
        return self.mark(spark, judge)

    def _collected(self, depth: int) -> Part:
        """What was collected is written out again; OUTER also where that is nothing."""
        part, alias, inner = self.query(depth), self._alias(), self._alias()
        if not part.of(INT):
            return part
        call = self.random.choice(("collect_list", "collect_set"))
        outer = self.random.choice(("", "OUTER "))
        self._used(f"{outer}explode({call})")
        value, (key, type_) = self.random.choice(part.of(INT)), self.random.choice(part.columns)
        names = self._name(), self._name()
        some = f"CASE WHEN {value} > 1 THEN {value} END"
        judged = (
            f"SELECT {'DISTINCT ' if call == 'collect_set' else ''}{key} AS {names[0]}, "
            f"{value} AS {names[1]} FROM {alias} WHERE {value} > 1"
        )
        if outer:
            judged += f" UNION ALL SELECT {key}, NULL FROM {alias} GROUP BY {key} HAVING count({some}) = 0"
        spark = (
            f"SELECT {names[0]}, {names[1]} FROM (SELECT {key} AS {names[0]}, {call}({some}) AS l "
            f"FROM ({part.text}) {alias} GROUP BY {key}) {inner} "
            f"LATERAL VIEW {outer}explode(l) {self._alias()} AS {names[1]}"
        )
        text = self._either(spark, part, alias, judged)
        return Part(text, ((names[0], type_), (names[1], INT)))

    def _unpivoted(self, depth: int) -> Part:
        """UNPIVOT of two columns of one type."""
        part, alias, word, value = self.query(depth), self._alias(), self._name(), self._name()
        types = [type_ for _, type_ in part.columns if len(part.of(type_)) > 1]
        if not types:
            return part
        self._used("unpivot")
        type_ = self.random.choice(types)
        taken = self.random.sample(part.of(type_), 2)
        kept = [column for column in part.columns if column[0] not in taken]
        nulls = self.random.choice(("", " INCLUDE NULLS"))
        shown = "".join(f"{name}, " for name, _ in kept)
        judged = " UNION ALL ".join(
            f"SELECT {shown}'{name}' AS {word}, {name} AS {value} FROM {alias}"
            + ("" if nulls else f" WHERE {name} IS NOT NULL")
            for name in taken
        )
        turned = f"UNPIVOT{nulls} ({value} FOR {word} IN ({', '.join(taken)}))"
        spark = f"SELECT * FROM ({part.text}) {alias} {turned}"
        text = self._either(spark, part, alias, judged)
        return Part(text, (*kept, (word, "STRING"), (value, type_)))

    def _shared(self, depth: int) -> Part:
        """A query under a name, which is read twice."""
        part, name, a, b = self.query(depth), self._alias(), self._alias(), self._alias()
        if not part.of(INT):
            return part
        one, other = self.random.choice(part.of(INT)), self.random.choice(part.of(INT))
        columns = [(self._name(), type_) for _, type_ in part.columns]
        items = [f"{a}.{c} AS {n}" for (c, _), (n, _) in zip(part.columns, columns, strict=True)]
        kind = self.random.choice(("JOIN", "LEFT JOIN", "UNION ALL", "EXCEPT", "EXISTS", "value"))
        self._used(f"shared by {kind}")
        shown = ", ".join(items)
        if kind in ("JOIN", "LEFT JOIN"):
            columns.append((self._name(), INT))
            on = f"{a}.{one} = {b}.{other} AND {self.condition(part, b)}"
            body = f"SELECT {shown}, {b}.{one} AS {columns[-1][0]} FROM {name} {a} {kind} {name} {b} ON {on}"
        elif kind in ("UNION ALL", "EXCEPT"):
            where = self.condition(part)
            body = f"SELECT {shown} FROM {name} {a} {kind} SELECT * FROM {name} {b} WHERE {where}"
        elif kind == "EXISTS":
            body = (
                f"SELECT {shown} FROM {name} {a} WHERE EXISTS (SELECT 1 FROM {name} {b} "
                f"WHERE {b}.{one} = {a}.{other} AND {self.condition(part, b)})"
            )
        else:
            body = f"SELECT {shown} FROM {name} {a} WHERE {a}.{one} > (SELECT avg({other}) FROM {name} {b})"
        text = f"WITH {name} AS ({part.text}) {body}"
        return Part(f"SELECT * FROM ({text}) {self._alias()}", tuple(columns))

    def _beside(self, depth: int) -> Part:
        """Rows beside others in less usual words."""
        return (self._lateral if self.random.random() < 0.2 else self._merged)(depth)

    def _lateral(self, depth: int) -> Part:
        """A query that sees the row beside it: its aggregate, or its first rows."""
        part, alias, inner, beside = (
            self.query(depth),
            *(self._alias() for _ in range(3)),
        )
        names = part.of(INT)
        if not names:
            return part
        value, outer = self._name(), f"{alias}.{self.random.choice(names)}"
        columns = (*part.columns, (value, INT))
        table, number = self.random.choice((("s", "v"), ("r", "w")))
        if self.random.random() < 0.5:
            call = self.random.choice((f"max({number})", "count(*)", f"sum({number})"))
            self._used("LATERAL aggregate")
            query = f"SELECT {call} AS {value} FROM {table} {inner} WHERE {inner}.k = {outer}"
        else:
            self._used("LATERAL LIMIT")
            query = (
                f"SELECT {number} AS {value} FROM {table} {inner} WHERE {inner}.k = {outer} "
                f"ORDER BY {number} DESC NULLS LAST, id LIMIT 2"
            )
        text = f"SELECT {alias}.*, {beside}.{value} FROM ({part.text}) {alias}, LATERAL ({query}) {beside}"
        return Part(text, columns)

    def _crossed(self, depth: int) -> Part:
        """A join without keys, or by a range; of one table, so that it is not too large."""
        left, right, a, b = self.query(depth), self._table(), self._alias(), self._alias()
        if not left.of(INT):
            return left
        one, other = self.random.choice(left.of(INT)), right.of(INT)[0]
        kind = self.random.choice(("CROSS JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
        near = f"{b}.{other} BETWEEN {a}.{one} - 1 AND {a}.{one} + 1"
        columns = (*left.columns, (self._name(), INT))
        on = "" if kind == "CROSS JOIN" else f" ON {near}"
        where = f" WHERE {near}" if kind == "CROSS JOIN" else ""
        if kind == "FULL JOIN":
            on += f" AND {a}.{one} = {b}.{other}"
        self._used(f"{kind} by a range")
        text = (
            f"SELECT {a}.*, {b}.{other} AS {columns[-1][0]} FROM ({left.text}) {a} "
            f"{kind} ({right.text}) {b}{on}{where}"
        )
        return Part(text, columns)

    def _merged(self, depth: int) -> Part:
        """A join by USING, whose column is of both sides."""
        left, right, a, b = self.query(depth), self.query(depth), self._alias(), self._alias()
        if not left.of(INT) or not right.of(INT):
            return left
        one, other = self.random.choice(left.of(INT)), self.random.choice(right.of(INT))
        key, kind = (
            self._name(),
            self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")),
        )
        self._used(f"{kind} USING")
        mine = self.random.choice(left.columns)
        yours = self.random.choice(right.columns)
        names = self._name(), self._name()
        text = (
            f"SELECT {key}, {names[0]}, {names[1]} FROM (SELECT {one} AS {key}, {mine[0]} AS {names[0]} "
            f"FROM ({left.text}) {a}) {self._alias()} {kind} "
            f"(SELECT {other} AS {key}, {yours[0]} AS {names[1]} FROM ({right.text}) {b}) {self._alias()} "
            f"USING ({key})"
        )
        return Part(text, ((key, INT), (names[0], mine[1]), (names[1], yours[1])))

    def _edges(self, depth: int) -> Part:
        """The first and last rows of a stream, in the order of their time, whenever they came."""
        del depth
        self._used(EDGES)
        table, key, value = self.random.choice((("s", "k", "v"), ("s", "c", "k"), ("r", "k", "w")))
        names = self._name(), self._name(), self._name()
        calls = [
            (f"first({value})", f"first({value} ORDER BY id)"),
            (f"last({value})", f"last({value} ORDER BY id)"),
            (f"first({value}) IGNORE NULLS", f"any_value({value} ORDER BY id)"),
            (f"last({value}) IGNORE NULLS", f"any_value({value} ORDER BY id DESC)"),
            (f"any_value({value})", f"first({value} ORDER BY id)"),
            (f"first_value({value})", f"first({value} ORDER BY id)"),
        ]
        chosen = self.random.sample(calls, 2)
        items = [self.mark(*words) for words in chosen]
        where = self.random.choice(("", f" WHERE {value} > 0", " WHERE id % 3 > 0"))
        text = (
            f"SELECT {key} AS {names[0]}, {items[0]} AS {names[1]}, {items[1]} AS {names[2]} "
            f"FROM {table}{where} GROUP BY {key}"
        )
        types = ("STRING" if key == "c" else INT, INT, INT)
        return Part(text, tuple(zip(names, types, strict=True)))

    def _qualified(self, depth: int) -> Part:
        """QUALIFY by one window function, or by two."""
        part, alias = self.query(depth), self._alias()
        self._used("QUALIFY")
        by, order = self.random.choice(part.columns)[0], self.total_order(part)
        over = f"OVER (PARTITION BY {by} ORDER BY {order})"
        asked = self.random.choice((f"row_number() {over} <= 2", f"rank() {over} = 1"))
        if self.random.random() < 0.3:
            asked = f"row_number() {over} > 1 AND count(*) OVER (PARTITION BY {by}) < 5"
        return Part(f"SELECT * FROM ({part.text}) {alias} QUALIFY {asked}", part.columns)
