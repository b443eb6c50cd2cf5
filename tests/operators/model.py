"""What tests of operators share: batches of changes over a plain list of rows, and the bag that came out."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes
from headwater.operators.operator import Operator
from tests.fold.brute import random_value
from tests.operators.runs import Spilling, taken_up

Row = tuple[Any, ...]


def table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Rows as Arrow has them."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def changes_of(coming: Sequence[Row], going: Sequence[Row], schema: pa.Schema) -> Changes:
    """Rows that come and rows that go, as one batch in two chunks."""
    signs = np.array([1] * len(coming) + [-1] * len(going), np.int8)
    return Changes(pa.concat_tables([table(coming, schema), table(going, schema)]), signs)


def tuples(rows: pa.Table) -> list[Row]:
    """Rows as Python has them; times without a zone."""
    columns = [column.to_pylist() for column in rows.columns]
    return [tuple(map(_plain, row)) for row in zip(*columns, strict=True)] if columns else []


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


class Bag:
    """All that came out of an operator: a − must repeat a + that is there, bit for bit."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._rows: dict[str, Row] = {}

    def take(self, changes: Changes) -> None:
        """Takes in what came out."""
        changes.rows.validate(full=True)
        for row, sign in zip(tuples(changes.rows), changes.signs.tolist(), strict=True):
            if sign > 0:
                self._rows[repr(row)] = row
            self._times[repr(row)] += sign
        assert min(self._times.values(), default=0) >= 0, "a row was taken back that is not there"

    def rows(self) -> list[Row]:
        """The rows that are there."""
        return [row for key, row in self._rows.items() for _ in range(self._times[key])]


def same(mine: Any, theirs: Any) -> bool:
    """Equal values, floats up to rounding."""
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, float):
        if math.isnan(mine) or math.isnan(theirs):
            return math.isnan(mine) and math.isnan(theirs)
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return type(mine) is type(theirs) and mine == theirs


def check(found: list[Row], wanted: list[Row]) -> None:
    """Two bags of rows are the same."""
    left, right = sorted(found, key=_key), sorted(wanted, key=_key)
    if len(left) == len(right) and all(map(same, left, right)):
        return
    rest = list(right)
    for row in left:
        match = next((place for place, other in enumerate(rest) if same(row, other)), None)
        assert match is not None, f"{row} came out; missing are {rest}"
        del rest[match]
    assert rest == [], "rows are missing"


def _key(row: Row) -> str:
    return repr([_rounded(value) for value in row])


def _rounded(value: Any) -> Any:
    return f"{value + 0.0:.6g}" if isinstance(value, float) else value


def sort_key(value: Any) -> Any:
    """Spark's order: NaN is the largest, −0.0 is 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return value.encode() if isinstance(value, str) else value


def ordering(descending: bool, nulls_first: bool) -> Callable[[Any], Any]:
    """The key of one column of an order, for sorts that take keys that can be compared."""

    class Key:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __lt__(self, other: Key) -> bool:
            if self.value is None or other.value is None:
                if self.value is None and other.value is None:
                    return False
                return (self.value is None) == nulls_first
            mine, theirs = sort_key(self.value), sort_key(other.value)
            return theirs < mine if descending else mine < theirs

        def __eq__(self, other: object) -> bool:
            assert isinstance(other, Key)
            return not self < other and not other < self

    return Key


def random_row(rng: random.Random, schema: pa.Schema, nulls: float = 0.15) -> Row:
    """A row out of few values."""
    return tuple(
        None if rng.random() < nulls else random_value(rng, field.type) for field in schema
    )


def run(
    rng: random.Random,
    make: Callable[[], Operator],
    schema: pa.Schema,
    expected: Callable[[list[Row]], list[Row]],
    takes_back: bool,
    draw: Callable[[], Row],
    duplicates: bool,
    batches: int = 12,
) -> None:
    """Random batches, compared after each; now and then the operator is put away and taken up.

    Which of equal rows goes is not said: with duplicates, answers must not depend on the order of rows.
    """
    operator, bag, rows = make(), Bag(), []
    spilling = Spilling(random.Random(rng.random()))
    spilling.begin(operator)
    assert operator.apply(changes_of([], [], schema)).rows.schema == operator.schema
    bag.take(operator.begin())
    for _ in range(batches):
        coming = [draw() for _ in range(rng.choice([0, 1, 3, 12]))]
        if coming and duplicates:
            coming += rng.choices(coming, k=2)
        rows += coming
        going = []
        if takes_back and rng.random() < 0.7:
            count = rng.choice([1, 2, len(rows) // 2, len(rows)])
            for row in rng.sample(rows, min(count, len(rows))):
                equal = next(n for n, other in enumerate(rows) if repr(other) == repr(row))
                going.append(rows.pop(equal))
        bag.take(operator.apply(changes_of(coming, going, schema)))
        check(bag.rows(), expected(rows))
        assert operator.nbytes >= 0
        spilling.after(operator)
        if rng.random() < 0.25:
            again = make()
            load(again, dump(operator))
            taken_up(again.spilled, operator.spilled)
            operator = again
