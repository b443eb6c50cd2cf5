"""Random batches of changes, and bags of rows to compare with."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes
from headwater.operators.operator import Operator
from tests.operators.runs import Spilling, taken_up

Row = tuple[Any, ...]
Batch = tuple[list[Row], list[Row]]  # rows that come, rows that are taken back
INTEGERS = [None, 0, 1, 2]
TEXTS = [None, "", "a", "b"]
FLOATS = [None, 0.0, -0.0, 1.5, math.nan]


def table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_of(rows: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else []


def bag(rows: Iterable[Row]) -> Counter[str]:
    """Rows by what they print as: NaN is NaN, and −0.0 is not 0.0."""
    return Counter(map(repr, rows))


def changes(schema: pa.Schema, batch: Batch, shuffled: random.Random) -> Changes:
    """A batch in any order, in one piece or in two."""
    signed = [(row, 1) for row in batch[0]] + [(row, -1) for row in batch[1]]
    shuffled.shuffle(signed)
    cut = shuffled.randrange(len(signed) + 1)
    parts = [table(schema, [row for row, _ in some]) for some in (signed[:cut], signed[cut:])]
    return Changes(pa.concat_tables(parts), np.array([sign for _, sign in signed], np.int8))


class Input:
    """The rows of one input as they are now."""

    def __init__(
        self, schema: pa.Schema, pools: Sequence[Sequence[Any]], seed: int, takes_back: bool = True
    ) -> None:
        self.schema, self.rows, self.takes_back = schema, list[Row](), takes_back
        self._pools, self.random = pools, random.Random(seed)

    def step(self) -> Changes:
        """Some rows come, some are taken back, perhaps of those that just came; sometimes none."""
        chance = self.random
        most = chance.choice([0, 1, 3, 12])
        coming = [tuple(map(chance.choice, self._pools)) for _ in range(chance.randint(0, most))]
        self.rows += coming
        going: list[Row] = []
        if self.takes_back:
            for _ in range(min(chance.randint(0, most), len(self.rows))):
                going.append(self.rows.pop(chance.randrange(len(self.rows))))
        return changes(self.schema, (coming, going), chance)


class Output:
    """The rows that came out and were not taken back."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()

    def take(self, out: Changes, schema: pa.Schema, takes_back: bool) -> None:
        assert out.rows.schema.equals(schema), out.rows.schema
        out.rows.validate(full=True)
        assert takes_back or out.only_come
        for row, sign in zip(rows_of(out.rows), out.signs.tolist(), strict=True):
            self.rows[repr(row)] += sign
        assert all(count >= 0 for count in self.rows.values())
        self.rows += Counter()  # those that are gone go


def run(
    operator: Callable[[], Operator],
    inputs: Sequence[Input],
    expected: Callable[..., Iterable[Row]],
    batches: int = 8,
    same: Callable[[Counter[str]], Any] = lambda rows: rows,
) -> Operator:
    """Batch after batch equals the query over the rows that are there; so does a restored state."""
    here, out = operator(), Output()
    spilling = Spilling(random.Random(inputs[0].random.random()))
    spilling.begin(here)
    out.take(here.begin(), here.schema, here.takes_back)
    every: list[list[Changes]] = []
    for number in range(batches):
        every.append([given.step() for given in inputs])
        out.take(here.apply(*every[-1]), here.schema, here.takes_back)
        wanted = bag(expected(*[given.rows for given in inputs]))
        assert same(out.rows) == same(wanted)
        assert here.nbytes >= 0
        spilling.after(here)
        if number == batches // 2:
            again = operator()
            load(again, dump(here))
            taken_up(again.spilled, here.spilled)
            here = again
    at_once = Output()
    whole = operator()
    at_once.take(whole.begin(), whole.schema, whole.takes_back)
    at_once.take(whole.apply(*_together(every, inputs)), whole.schema, whole.takes_back)
    assert same(at_once.rows) == same(out.rows)
    return here


def _together(every: Sequence[Sequence[Changes]], inputs: Sequence[Input]) -> Iterator[Changes]:
    for number in range(len(inputs)):
        parts = [batch[number] for batch in every]
        signs = np.concatenate([part.signs for part in parts])
        yield Changes(pa.concat_tables([part.rows for part in parts]), signs)
