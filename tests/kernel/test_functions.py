"""Python functions of every kind in SQL, and what happens when they fail."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater


def plus(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.add(a, b)


def shout(text: str) -> str | None:
    return None if text is None else text.upper() + "!"


class Total:
    """An aggregate with a merge."""

    def init(self) -> None:
        self.total, self.count = 0, 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.total += pc.sum(batch.column(0)).as_py() or 0
        self.count += batch.num_rows

    def merge(self, other: Total) -> None:
        self.total += other.total
        self.count += other.count

    def finish(self) -> int:
        return self.total * 1000 + self.count


def letters(word: str, times: int) -> list[tuple[int, str]]:
    return [(i, letter) for i, letter in enumerate(word * times)]


def as_arrow(n: int) -> pa.Table:
    return pa.table({"i": list(range(n))})


def as_dicts(n: int) -> Any:
    yield from ({"i": i} for i in range(n))


@pytest.fixture(scope="module")
def db() -> Any:
    """One database with all functions: registering them is what takes the time."""
    with headwater.connect(":memory:") as db:
        db.sql("CREATE TABLE t (g STRING, v INT, w STRING)")
        db.sql("INSERT INTO t VALUES ('a', 1, 'xy'), ('a', 2, NULL), ('b', 10, 'z')")
        db.create_function("plus", plus, returns="BIGINT")
        db.create_function("shout", shout, returns="STRING")
        db.create_function("total", Total, returns="BIGINT", kind="aggregate")
        db.create_function("letters", letters, returns="i INT, letter STRING", kind="table")
        db.create_function("as_arrow", as_arrow, returns="TABLE (i BIGINT)", kind="table")
        db.create_function("as_dicts", as_dicts, returns="i INT", kind="table")
        yield db


def test_scalar_over_arrow(db: headwater.Database) -> None:
    assert db.sql("SELECT plus(v, v) FROM t ORDER BY v").rows() == [(2,), (4,), (20,)]
    assert db.sql("SELECT g FROM t WHERE PLUS(v, 1) > 10").rows() == [("b",)]


def test_scalar_row_by_row(db: headwater.Database) -> None:
    assert db.sql("SELECT shout(w) FROM t ORDER BY v").rows() == [("XY!",), (None,), ("Z!",)]


def test_aggregate(db: headwater.Database) -> None:
    assert db.sql("SELECT g, total(v) FROM t GROUP BY g ORDER BY g").rows() == [
        ("a", 3002),
        ("b", 10001),
    ]


def test_table_functions(db: headwater.Database) -> None:
    assert db.sql("SELECT * FROM letters('ab', 2)").rows() == [
        (0, "a"),
        (1, "b"),
        (2, "a"),
        (3, "b"),
    ]
    assert db.sql("SELECT sum(i) FROM as_arrow(4)").rows() == [(6,)]
    assert db.sql("SELECT sum(i) FROM as_dicts(4)").rows() == [(6,)]


def test_a_table_function_beside_each_row(db: headwater.Database) -> None:
    found = db.sql(
        "SELECT t.v, l.letter FROM t, LATERAL letters(coalesce(t.w, ''), 1) l ORDER BY 1, 2"
    )
    assert found.rows() == [(1, "x"), (1, "y"), (10, "z")]


def test_inserting_what_functions_give(db: headwater.Database) -> None:
    db.sql("CREATE TABLE made AS SELECT shout(w) AS s, plus(v, 0) AS n FROM t WHERE w IS NOT NULL")
    assert sorted(db.sql("SELECT * FROM made").rows()) == [("XY!", 1), ("Z!", 10)]
    db.sql("DROP TABLE made")


def test_listing(db: headwater.Database) -> None:
    found = db.sql("SELECT name, kind, language FROM headwater.functions WHERE name = 'total'")
    assert found.rows() == [("total", "aggregate", "python")]


def fails(text: str) -> str:
    raise ValueError(f"cannot do {text}")


def wrong(a: pa.Array) -> Any:
    return 5


def bad_rows(n: int) -> Any:
    return 5


@pytest.mark.parametrize(
    ("function", "returns", "kind", "sql", "words"),
    [
        (fails, "STRING", "scalar", "SELECT f('x')", "ValueError: cannot do x"),
        (wrong, "INT", "scalar", "SELECT f(1)", "a scalar function returns a pyarrow Array"),
        (bad_rows, "i INT", "table", "SELECT * FROM f(1)", "a table function returns rows"),
    ],
)
def test_errors_inside_functions_are_readable(
    db: headwater.Database, function: Any, returns: str, kind: str, sql: str, words: str
) -> None:
    db.create_function("f", function, returns=returns, kind=kind)
    with pytest.raises(headwater.Error) as caught:
        db.sql(sql)
    assert caught.value.sqlstate == "38000"
    assert words in caught.value.message
    assert "Traceback" not in str(caught.value)
    db.sql("DROP FUNCTION f")
    assert db.sql("SELECT plus(1, 1)").rows() == [(2,)]


@pytest.mark.parametrize(
    ("name", "function", "returns", "kind", "sqlstate"),
    [
        ("1f", plus, "INT", "scalar", "42602"),
        ("a b", plus, "INT", "scalar", "42602"),
        ("f", plus, "INTT", "scalar", "42704"),
        ("f", plus, "INT", "vector", "42000"),
        ("f", 5, "INT", "scalar", "42000"),
        ("f", plus, "INT", "aggregate", "42000"),
        ("f", letters, "i NOTATYPE", "table", "42704"),
    ],
)
def test_bad_registrations(
    db: headwater.Database, name: str, function: Any, returns: str, kind: str, sqlstate: str
) -> None:
    with pytest.raises(headwater.Error) as caught:
        db.create_function(name, function, returns=returns, kind=kind)
    assert caught.value.sqlstate == sqlstate
    assert db.sql("SELECT plus(1, 1)").rows() == [(2,)]


def test_a_function_can_be_replaced(db: headwater.Database) -> None:
    db.create_function("again", lambda a: pc.add(a, 1), returns="INT")
    assert db.sql("SELECT again(1)").rows() == [(2,)]
    db.create_function("again", lambda a: pc.add(a, 2), returns="INT")
    assert db.sql("SELECT again(1)").rows() == [(3,)]
    db.sql("DROP FUNCTION again")
