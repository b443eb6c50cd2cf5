"""Spark answers an opaque node slowly: nobody waits for it who does not need what it will say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import view_circuit
from headwater.engine.view_circuit import ViewCircuit
from headwater.errors import DataError
from tests.harness.patience import PATIENCE_S, until

pytestmark = pytest.mark.here

TABLES = (
    "CREATE STREAMING TABLE s (ts INT, k INT, name STRING) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, label STRING)",
)
QUERY = "SELECT a.k, soundex(a.name) AS s, b.label FROM s AS a JOIN t AS b ON a.k = b.k"


class Gate:
    """Holds Spark's answers back until it is opened."""

    def __init__(self, run: Callable[..., list[pa.Table]]) -> None:
        self._run, self._open, self.asked = run, threading.Event(), threading.Event()

    def __call__(self, *arguments: Any) -> list[pa.Table]:
        answer = self._run(*arguments)
        self.asked.set()
        assert self._open.wait(PATIENCE_S), "nobody opened"
        return answer

    def open(self) -> None:
        """The answer comes."""
        self._open.set()


class Reader(threading.Thread):
    """Reads a view beside the test."""

    def __init__(self, db: headwater.Database, text: str) -> None:
        super().__init__(name="reader")
        self._db, self._text = db, text
        self.rows: list[tuple[Any, ...]] = []
        self.start()

    def run(self) -> None:
        self.rows = self._db.sql(self._text).rows()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Spark is slow for circuits."""
    made = Gate(view_circuit.run_over)
    monkeypatch.setattr(view_circuit, "run_over", made)
    yield made
    made.open()


def made(db: headwater.Database) -> ViewCircuit:
    """The circuit of a view whose rows Spark is to be asked about, beside one that is by operators."""
    for statement in TABLES:
        db.sql(statement)
    db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    db.sql(f"CREATE VIEW slow AS {QUERY}")
    db.sql("CREATE VIEW quick AS SELECT DISTINCT k FROM s")
    db.insert("s", [(1, 1, "anna"), (2, 2, "bob"), (3, 1, "carl")])
    view = db._context.engine.find_view("slow")
    assert view is not None
    assert view.circuit is not None
    return view.circuit


BEFORE = [(1, "A500", "one"), (1, "C640", "one"), (2, "B100", "two")]


def test_others_go_on_while_spark_answers(db: headwater.Database, gate: Gate) -> None:
    circuit, view = made(db), db._context.engine.find_view("slow")
    assert view is not None
    db.sql("DELETE FROM s WHERE ts = 99")
    db.sql("DELETE FROM s WHERE k = 1 AND name = 'carl'")  # from now on it takes rows back
    db.insert("s", [(4, 1, "carl")])
    reader = Reader(db, "SELECT * FROM slow")
    assert gate.asked.wait(PATIENCE_S)
    with circuit.lock:
        assert circuit.is_asking
    db.insert("s", [(5, 2, "dora")])
    assert sorted(db.sql("SELECT * FROM quick").rows()) == [(1,), (2,)]
    db.sql("DELETE FROM s WHERE name = 'bob'")
    db.sql("UPDATE s SET name = 'emil' WHERE name = 'anna'")
    db.sql("UPDATE t SET label = 'eins' WHERE k = 1")
    view.fire()
    view.put_away()
    waiting = Reader(db, "SELECT * FROM slow")
    gate.open()
    reader.join(PATIENCE_S)
    assert sorted(reader.rows) == BEFORE  # as it was when he came
    waiting.join(PATIENCE_S)
    now = [(1, "C640", "eins"), (1, "E540", "eins"), (2, "D600", "two")]
    assert sorted(waiting.rows) == now
    assert db.sql("VERIFY VIEW slow").rows() == []
    until(lambda: not view.waiting, "nothing was taken in after the answer")


def test_rows_that_go_meanwhile_go_through_afterwards(db: headwater.Database, gate: Gate) -> None:
    circuit = made(db)
    circuit._takes_back = True  # as after a DELETE
    circuit._clear()
    reader = Reader(db, "SELECT * FROM slow")
    assert gate.asked.wait(PATIENCE_S)
    db.sql("DELETE FROM s WHERE name = 'bob'")
    db.sql("UPDATE s SET name = 'emil' WHERE name = 'anna'")
    assert circuit.changed
    gate.open()
    reader.join(PATIENCE_S)
    assert sorted(reader.rows) == BEFORE
    begun, asked = circuit.circuit, circuit.counters.rows_on_spark
    assert sorted(db.sql("SELECT * FROM slow").rows()) == [(1, "C640", "one"), (1, "E540", "one")]
    assert circuit.circuit is begun  # it did not begin anew
    assert circuit.counters.rows_on_spark == asked + 3  # bob and anna go, emil comes


def test_a_view_moves_while_spark_answers(db: headwater.Database, gate: Gate) -> None:
    circuit = made(db)
    reader = Reader(db, "SELECT * FROM slow")
    assert gate.asked.wait(PATIENCE_S)
    circuit.lend()
    assert circuit.snapshot.exists
    circuit.take_back()
    gate.open()
    reader.join(PATIENCE_S)
    assert sorted(reader.rows) == BEFORE
    assert db.sql("VERIFY VIEW slow").rows() == []


def test_a_folder_closes_while_spark_answers(folder: Path, gate: Gate) -> None:
    with headwater.connect(folder) as db:
        circuit = made(db)
        reader = Reader(db, "SELECT * FROM slow")
        assert gate.asked.wait(PATIENCE_S)
        db._context.engine.close()
        assert circuit.snapshot.exists
        gate.open()
        reader.join(PATIENCE_S)
    assert sorted(reader.rows) == BEFORE


def test_an_answer_that_does_not_come_leaves_all_as_it_was(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    circuit = made(db)
    right = view_circuit.run_over

    def fails(*_: object) -> list[pa.Table]:
        raise headwater.Error("no answer")

    monkeypatch.setattr(view_circuit, "run_over", fails)
    with pytest.raises(headwater.Error, match="no answer"):
        db.sql("SELECT * FROM slow")
    assert not circuit.is_asking
    monkeypatch.setattr(view_circuit, "run_over", right)
    assert sorted(db.sql("SELECT * FROM slow").rows()) == BEFORE


def test_what_raised_may_be_gone_when_spark_says_so(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The circuit does not stop for a row that was deleted meanwhile."""
    circuit = made(db)
    right = view_circuit.run_over
    refused: list[int] = []

    def raises(*arguments: Any) -> list[pa.Table]:
        if refused:
            return right(*arguments)
        refused.append(1)
        db.sql("DELETE FROM s WHERE name = 'bob'")
        raise DataError("bob has no sound")

    monkeypatch.setattr(view_circuit, "run_over", raises)
    assert sorted(db.sql("SELECT * FROM slow").rows()) == BEFORE[:2]
    assert circuit.stopped is None
