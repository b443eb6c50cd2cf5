"""A block that is evaluated elsewhere: what it keeps goes to disk, and its answers are compared the same."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from headwater.fold.snapshot import dump, load
from headwater.operators.changes import come, go
from headwater.operators.opaque import OpaqueQuery
from tests.operators.runs import taken_up, with_runs

ROWS = pa.schema([("k", pa.int32())])
ANSWER = pa.schema([("k", pa.int32()), ("xs", pa.list_(pa.float64()))])


def block() -> OpaqueQuery:
    """One over one table."""
    made = OpaqueQuery([(ROWS, True)], [["k"]], ANSWER, "SELECT …")
    with_runs(made.spilled, Random(3))
    return made


def rows(*keys: int) -> pa.Table:
    """Rows of the table."""
    return pa.table({"k": keys}, schema=ROWS)


def answer(table: pa.Table) -> pa.Table:
    """A row of the answer for each of the table, with what is not equal to itself in it."""
    lists = [[k / 2, float("nan"), -0.0] for k in table.column("k").to_pylist()]
    return pa.table({"k": table.column("k"), "xs": lists}, schema=ANSWER)


def test_an_answer_on_disk_is_compared_with_the_next() -> None:
    made = block()
    for number in range(3):
        made.apply(come(rows(*range(1000 * number, 1000 * number + 1000))))
        (table,) = made.question()
        changes = made.answered(answer(table))
        assert (len(changes.coming), len(changes.going)) == (1000, 0)
        in_memory = made.nbytes
        made.spill()
        assert made.nbytes < in_memory / 4
        again = block()
        load(again, dump(made))
        taken_up(again.spilled, made.spilled)
        made = again
    made.apply(go(rows(7)))
    changes = made.answered(answer(made.question()[0]))
    assert changes.going.column("k").to_pylist() == [7]
    assert not len(changes.coming)
