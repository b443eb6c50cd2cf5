"""Conflation before a slow reader: the newest row per key, never an older one later (US9)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headwater
from headwater.engine.conflation import Conflation
from headwater.errors import BindError
from tests.harness.patience import PATIENCE_S

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])


def _rows(*rows: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], SCHEMA)


def test_of_several_results_the_newest_rows_are_left() -> None:
    """The key that has waited longest comes first; nothing is left after a take; counts add up."""
    found = Conflation(SCHEMA, ["K"])
    found.add(_rows(("a", 1), ("b", 2)))
    found.add(_rows(("b", 3), ("a", 4), ("c", 5)))
    assert found.take().to_pylist() == [
        {"k": "a", "v": 4},
        {"k": "b", "v": 3},
        {"k": "c", "v": 5},
    ]
    assert found.take().num_rows == 0
    found.queue.validate()
    assert found.queue.ledger.superseded == 2


def test_a_column_that_is_not_there_is_refused() -> None:
    """With the nearest name."""
    with pytest.raises(BindError, match="column kk is not in the result"):
        Conflation(SCHEMA, ["kk"])


def test_a_slow_reader_gets_what_is_new_and_goes_on_with_its_token() -> None:
    """A reader that asks seldom gets one result with the newest rows; its token is the last one's."""
    with headwater.connect(settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH APPEND")
        with db.subscribe("q", conflate_by=["k"], timeout=PATIENCE_S) as reader:
            for number in range(50):
                db.insert("s", [(number, "ab"[number % 2], number)])
            db.flush()
            first = next(reader)
            assert sorted(first.rows()) == [("a", 48, 48), ("b", 49, 49)]
        db.insert("s", [(60, "a", 60)])
        db.flush()
        later = db.subscribe("q", conflate_by=["k"], after=first.token, timeout=0.1)
        assert [out.rows() for out in later] == [[("a", 60, 60)]]


def test_what_comes_while_a_result_is_made_is_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query that is quicker than its reader cannot keep the reader waiting without end."""
    with headwater.connect(settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES")
        add, number = Conflation.add, iter(range(1, 100))

        def while_more_comes(self: Conflation, rows: pa.Table) -> None:
            add(self, rows)
            for one in [n for n in [next(number)] if n < 20]:
                db.insert("s", [(one, "a", one)])
                db.flush()

        monkeypatch.setattr(Conflation, "add", while_more_comes)
        with db.subscribe("q", conflate_by=["k"], timeout=PATIENCE_S) as reader:
            db.insert("s", [(0, "a", 0)])
            first = next(reader).rows()
            assert first[0][2] < 5
