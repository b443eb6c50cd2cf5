"""Random queries with parts that have no operator, and the Spark that answers these parts.

What stands here has no closure and no operator, and DuckDB has it too, or another word that means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pyarrow as pa

import headwater
from headwater.engine.world import run_over
from headwater.execute.continuous_plan import Analyser
from headwater.execute.zones import WorldInZone
from headwater.operators.circuit import CircuitNode
from headwater.operators.opaque import OpaqueOperator
from headwater.plan.relational.nodes import input_rows
from tests.harness.circuits.aggregates import aggregate_calls
from tests.harness.circuits.base import INT, TEXT, Part
from tests.harness.circuits.queries import QueryMaker

MOST_PARTS = 2  # in one query: each is a Spark job a step


class SparkAnswers:
    """Spark evaluates the texts of opaque nodes, as it does for a view."""

    def __init__(self, db: headwater.Database) -> None:
        self._world = WorldInZone(db._context, "UTC")
        self._analyser = Analyser(self._world, "0")
        self.of_opaque = self._analyser.of_opaque

    def of(self, node: CircuitNode) -> pa.Table:
        """What Spark makes of the rows that a node hands out."""
        operator = node.operator
        assert isinstance(operator, OpaqueOperator)
        named = {input_rows(n): table for n, table in enumerate(operator.question())}
        return run_over(self._world, [operator.text], named, {})[0]


class OpaqueMaker(QueryMaker):
    """Makes random queries with a few parts that Spark must evaluate."""

    depth = 3

    def __init__(self, random: Random, views: Mapping[str, tuple[Part, str]] | None = None) -> None:
        super().__init__(random, views)
        self._parts = 0

    def _shapes(self) -> list[Callable[[int], Part]]:
        never = (self._as_of, self._edges)  # Spark has none of the one, and no order for the other
        shapes = [shape for shape in super()._shapes() if shape not in never]
        if self._parts >= MOST_PARTS:
            return shapes
        return [
            *shapes,
            *(self._computed, self._computed, self._asked_of_rows, self._keyed, self._folded),
            *(self._best, self._block, self._block, self._branch, self._recursive),
        ]

    def _opaque(self, part: Part) -> tuple[str, str]:
        """An expression of one row that has no closure."""
        texts, numbers = part.of(TEXT), part.of(INT)
        if texts and (not numbers or self.random.random() < 0.7):
            column = self.random.choice(texts)
            made = ((f"levenshtein({column}, 'ab')", INT), (f"md5({column})", TEXT))
            return self.random.choice(made)
        column = self.random.choice(numbers) if numbers else f"'{self._name()}'"
        return f"levenshtein(CAST({column} AS STRING), '11')", INT

    def _computed(self, depth: int) -> Part:
        """An item, alone or within an expression that operators have."""
        self._parts += 1
        part, alias, name = self.query(depth), self._alias(), self._name()
        if not part.of(TEXT) and not part.of(INT):
            return part
        self._used("an opaque item")
        text, type_ = self._opaque(part)
        if self.random.random() < 0.4:
            text = f"CASE WHEN {self.condition(part)} THEN {text} END"
        return Part(
            f"SELECT *, {text} AS {name} FROM ({part.text}) {alias}",
            (*part.columns, (name, type_)),
        )

    def _asked_of_rows(self, depth: int) -> Part:
        self._parts += 1
        part, alias = self.query(depth), self._alias()
        if not part.of(TEXT) and not part.of(INT):
            return part
        self._used("an opaque condition")
        text, type_ = self._opaque(part)
        asked = f"{text} < 2" if type_ == INT else f"{text} > '8'"
        more = f" {self.random.choice(('AND', 'OR'))} {self.condition(part)}"
        return Part(
            f"SELECT * FROM ({part.text}) {alias} WHERE {asked}{more}",
            part.columns,
        )

    def _keyed(self, depth: int) -> Part:
        """A key of a grouping."""
        self._parts += 1
        part, alias, inner, key = self.query(depth), self._alias(), self._alias(), self._name()
        if not part.of(TEXT) and not part.of(INT):
            return part
        self._used("an opaque key")
        text, type_ = self._opaque(part)
        calls = [(call, type_, self._name()) for call, type_ in aggregate_calls(self, part)]
        shown = "".join(f", {call} AS {name}" for call, _, name in calls)
        columns = ((key, type_), *((name, type_) for _, type_, name in calls))
        spark = self.mark(f"GROUP BY {text}", f"GROUP BY {key}")
        item = self.mark(f"{text} AS {key}", key)
        rows = self.mark(
            f"({part.text}) {alias}", f"(SELECT *, {text} AS {key} FROM ({part.text}) {inner}) x"
        )
        return Part(f"SELECT {item}{shown} FROM {rows} {spark}", columns)

    def _folded(self, depth: int) -> Part:
        """An argument of an aggregate."""
        self._parts += 1
        part, alias = self.query(depth), self._alias()
        if not part.of(TEXT) and not part.of(INT):
            return part
        self._used("an opaque argument")
        text, type_ = self._opaque(part)
        key, name, most = self.random.choice(part.columns), self._name(), self._name()
        shown = f"{key[0]} AS {name}, max({text}) AS {most}"
        grouped = f"SELECT {shown} FROM ({part.text}) {alias} GROUP BY {key[0]}"
        return Part(grouped, ((name, key[1]), (most, type_)))

    def _best(self, depth: int) -> Part:
        """The first rows of what Spark says are partitions."""
        self._parts += 1
        part, alias, outer, number = self.query(depth), self._alias(), self._alias(), self._name()
        if not part.of(TEXT) and not part.of(INT):
            return part
        self._used("an opaque partition")
        text, _ = self._opaque(part)
        over = f"PARTITION BY {text} ORDER BY {self.total_order(part)}"
        inner = f"SELECT *, row_number() OVER ({over}) AS {number} FROM ({part.text}) {alias}"
        columns = (*part.columns, (number, INT))
        return Part(f"SELECT * FROM ({inner}) {outer} WHERE {number} < 3", columns)

    def _sketched(self, part: Part) -> Part | None:
        """A grouping with an aggregate that no operator has; of few values it is exact."""
        values = [*part.of(INT), *part.of(TEXT)]
        if not values:
            return None
        (key, type_), value = self.random.choice(part.columns), self.random.choice(values)
        few = f"{value} % 5" if value in part.of(INT) else f"{value} || '.'"  # no sketch counts ''
        call = self.mark(
            f"CAST(hll_sketch_estimate(hll_sketch_agg({few})) AS INT)", f"count(DISTINCT {few})"
        )
        names = self._name(), self._name()
        text = (
            f"SELECT {key} AS {names[0]}, {call} AS {names[1]} FROM ({part.text}) {self._alias()} "
        )
        return Part(f"{text}GROUP BY {key}", ((names[0], type_), (names[1], INT)))

    def _block(self, depth: int) -> Part:
        """A query in FROM, beside another one."""
        self._parts += 1
        part, other = self.query(depth), self.query(depth)
        block = self._sketched(part)
        if block is None:
            return part
        self._used("an opaque block")
        a, b = self._alias(), self._alias()
        on = " AND ".join(self._keys(other, a, block, b))
        shown = [f"{a}.{name}" for name, _ in other.columns]
        names = [(self._name(), type_) for _, type_ in (*other.columns, *block.columns)]
        shown += [f"{b}.{name}" for name, _ in block.columns]
        items = ", ".join(f"{c} AS {n}" for c, (n, _) in zip(shown, names, strict=True))
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        text = f"SELECT {items} FROM ({other.text}) {a} {kind} ({block.text}) {b} ON {on}"
        return Part(text, tuple(names))

    def _branch(self, depth: int) -> Part:
        """A side of a set operation."""
        self._parts += 1
        part, other = self.query(depth), self.query(depth)
        block = self._sketched(part)
        if block is None or not other.of(INT):
            return part
        self._used("an opaque branch")
        name, value = self._name(), self.random.choice(other.of(INT))
        kind = self.random.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
        sides = (
            f"SELECT {value} AS {name} FROM ({other.text}) {self._alias()}",
            f"SELECT {block.columns[1][0]} FROM ({block.text}) {self._alias()}",
        )
        text = f"SELECT * FROM ({sides[0]} {kind} {sides[1]}) {self._alias()}"
        return Part(text, ((name, INT),))

    def _recursive(self, depth: int) -> Part:
        """A recursive query, which reads what operators or tables give."""
        self._parts += 1
        part, other = self.query(depth), self.query(depth)
        if not part.of(INT) or not other.of(INT):
            return part
        self._used("a recursive block")
        steps, step, inner, a, b = self._alias(), self._name(), *(self._alias() for _ in range(3))
        value, key, name = part.of(INT)[0], self.random.choice(other.of(INT)), self._name()
        block = (
            f"WITH RECURSIVE {steps}({step}) AS (SELECT 1 AS {step} UNION ALL SELECT {step} + 1 "
            f"FROM {steps} WHERE {step} < 4) SELECT {step}, {value} AS {name} FROM {steps} "
            f"JOIN ({part.text}) {inner} ON {value} <= {step}"
        )
        columns = [(self._name(), type_) for _, type_ in other.columns]
        items = [f"{b}.{c} AS {n}" for (c, _), (n, _) in zip(other.columns, columns, strict=True)]
        numbers = [self._name(), self._name()]
        items += [f"{a}.{step} AS {numbers[0]}", f"{a}.{name} AS {numbers[1]}"]
        text = f"SELECT {', '.join(items)} FROM ({block}) {a} JOIN ({other.text}) {b}"
        text += f" ON {a}.{step} = {b}.{key}"
        return Part(text, (*columns, (numbers[0], INT), (numbers[1], INT)))
