"""Random queries over three small tables, in Spark's words, such that DuckDB means the same by them.

Every ORDER BY that decides which rows are there names all columns, so that only equal rows tie; numbers are
small halves, so that sums are exact in any order. Where Spark and DuckDB say the same in other words, a text
has a mark, which stands for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

INT, TEXT, DOUBLE, ARRAY = "INT", "STRING", "DOUBLE", "ARRAY<INT>"
TABLES = {
    "s": (("id", INT), ("k", INT), ("v", INT), ("x", DOUBLE), ("c", TEXT)),
    "r": (("id", INT), ("k", INT), ("w", INT), ("d", TEXT), ("a", ARRAY)),
    "t": (("k", INT), ("label", TEXT), ("y", DOUBLE)),
}
OF_VIEWS = 0.3  # of what is read, where there are views


@dataclass(frozen=True)
class Part:
    """A query and its columns, whose names are unique in it."""

    text: str
    columns: tuple[tuple[str, str], ...]

    def of(self, type_: str) -> list[str]:
        """The columns of a type."""
        return [name for name, known in self.columns if known == type_]


class BaseMaker:
    """Makes tables, names and expressions; notes which shapes were used."""

    depth = 5  # at most

    def __init__(self, random: Random, views: Mapping[str, tuple[Part, str]] | None = None) -> None:
        """`views`: what may be read beside tables: columns by name, and what they are to DuckDB."""
        self.random, self._views = random, views or {}
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
        raise NotImplementedError

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

    def mark(self, spark: str, judge: str) -> str:
        mark = f"«{len(self._words)}»"
        self._words[mark] = (spark, judge)
        return mark

    def _name(self) -> str:
        self._next += 1
        return f"c{self._next}"

    def _used(self, shape: str) -> None:
        self.shapes[shape] += 1

    def _table(self) -> Part:
        if self._views and self.random.random() < OF_VIEWS:
            return self._view(self.random.choice(list(self._views)))
        name = self.random.choice(("s", "s", "r", "r", "t"))
        columns = [column for column in TABLES[name] if column[1] != ARRAY]
        names = [self._name() for _ in columns]
        items = ", ".join(f"{c} AS {n}" for (c, _), n in zip(columns, names, strict=True))
        types = [type_ for _, type_ in columns]
        return Part(f"SELECT {items} FROM {name}", tuple(zip(names, types, strict=True)))

    def _view(self, view: str) -> Part:
        self._used("a view")
        part, judge = self._views[view]
        columns = [(self._name(), type_) for _, type_ in part.columns]
        items = [f"{c} AS {n}" for (c, _), (n, _) in zip(part.columns, columns, strict=True)]
        rows = self.mark(view, f"({judge}) {self._alias()}")
        return Part(f"SELECT {', '.join(items)} FROM {rows}", tuple(columns))

    def _alias(self) -> str:
        self._next += 1
        return f"q{self._next}"

    # Expressions

    def condition(self, part: Part, alias: str = "") -> str:
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

    def total_order(self, part: Part) -> str:
        names = [name for name, _ in part.columns]
        self.random.shuffle(names)
        ways = ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")
        return ", ".join(f"{name} {self.random.choice(ways)}" for name in names)

    def _keys(self, left: Part, a: str, right: Part, b: str) -> list[str]:
        types = [type_ for type_ in (INT, TEXT, DOUBLE) if left.of(type_) and right.of(type_)]
        if not types:
            return ["TRUE"] if self.random.random() < 0 else [f"{a}.{left.columns[0][0]} IS NULL"]
        type_ = types[0] if self.random.random() < 0.7 else self.random.choice(types)
        one, other = self.random.choice(left.of(type_)), self.random.choice(right.of(type_))
        same = self.random.choice(("=", "=", "<=>"))
        return [f"{a}.{one} {same} {b}.{other}"]
