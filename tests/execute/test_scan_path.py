"""A plain SELECT whose text is known goes a short way: statement cache, scan made ready, storage, result."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.execute.query import ready_scan
from headwater.sql import scripts
from headwater.sql.statements.query import Query

PACKAGE = str(Path(headwater.__file__).parent)
MOST_FILES = 15
MOST_FILES_OF_A_NEW_TEXT = 32  # read by sqlglot, bound, recognised as a scan: once for each text
MOST_FILES_OF_A_KNOWN_FORM = 23  # other texts differed from it in values only
ROWS = 2000
TEXTS = (
    "SELECT a, b FROM t WHERE a = 5 AND ts BETWEEN 10 AND 1500 ORDER BY ts LIMIT 10",
    "SELECT a, b FROM t WHERE a = 7",
    "SELECT b AS x FROM t WHERE ts >= 100 AND ts < 110",
    "SELECT * FROM t ORDER BY ts DESC LIMIT 3",
    "SELECT * FROM t",
    "SELECT sum(ts) AS n FROM t WHERE a = 5",
    "SELECT * FROM s",
    "SELECT a FROM s WHERE a = 5 ORDER BY a",
)


@pytest.fixture
def db() -> Iterator[headwater.Database]:
    with headwater.connect(":memory:", settings={"eager_spark": False}) as made:
        made.sql("CREATE STREAMING TABLE t (ts INT, a INT, b STRING) TIMESTAMP BY ts")
        made.sql("CREATE TABLE s (a INT, b STRING)")
        rows = [(n, n % 100, f"b{n}") for n in range(ROWS)]
        made.insert("t", rows)
        made.insert("s", [(a, b) for _, a, b in rows])
        yield made


def files_called(act: Callable[[], object]) -> set[str]:
    """The files of the package with a function that was called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            found.add(name[len(PACKAGE) + 1 :])

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("sealed", [False, True], ids=["tail", "blocks"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_known_text_crosses_few_files(db: headwater.Database, text: str, sealed: bool) -> None:
    if sealed:
        db.seal()
    first = db.sql(text).rows()
    assert first
    again: list[Any] = []
    files = files_called(lambda: again.extend(db.sql(text).rows()))
    assert again == first
    assert len(files) <= MOST_FILES, sorted(files)


@pytest.mark.parametrize("text", TEXTS)
def test_a_new_text_crosses_not_many_more(db: headwater.Database, text: str) -> None:
    first = db.sql(text).rows()
    again: list[Any] = []
    files = files_called(lambda: again.extend(db.sql(text.replace(" ", "  ")).rows()))
    assert again == first
    assert "sql/dialect.py" in files  # it was read again
    assert len(files) <= MOST_FILES_OF_A_NEW_TEXT, sorted(files)


FORMS = (
    "SELECT a, b FROM t WHERE a = {} AND ts BETWEEN 10 AND 1500 ORDER BY ts LIMIT 10",
    "SELECT x.b FROM t AS x WHERE x.a IN (3, {}) OR x.b = 'b1'",
    "SELECT * FROM t WHERE NOT (b <> 'b{}')",
    "SELECT sum(ts) AS n FROM t WHERE a = {}",
    "SELECT a FROM s WHERE a = {} ORDER BY a",
)


@pytest.mark.parametrize("form", FORMS)
def test_a_text_of_a_known_form_is_not_read(
    db: headwater.Database, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It differs from others in values only; what it gives is what it would give read alone."""
    for number in range(10, 13):
        assert db.sql(form.format(number)).rows()
    given: dict[int, Any] = {}

    def act() -> None:
        given.update({number: db.sql(form.format(number)).rows() for number in range(13, 40)})

    with monkeypatch.context() as patch:
        patch.setattr("headwater.sql.dialect.read_query", None)
        files = files_called(act)
    assert len(files) <= MOST_FILES_OF_A_KNOWN_FORM, sorted(files)
    for number, rows in given.items():
        monkeypatch.setattr("headwater.sql.statements.query._forms", OrderedDict())
        assert rows == db.sql(form.format(number).replace("WHERE", "WHERE ")).rows()
        assert rows


def test_values_of_other_types_are_read_by_their_types(db: headwater.Database) -> None:
    """What a value of one type may do says nothing of another, nor of one that its column cannot hold."""
    db.sql("CREATE TABLE narrow (a SMALLINT)")
    db.insert("narrow", [(n,) for n in range(10)])
    for value in range(5):
        assert db.sql(f"SELECT a FROM t WHERE a = {value} LIMIT 1").rows() == [(value,)]
        assert db.sql(f"SELECT a FROM narrow WHERE a = {value}").rows() == [(value,)]
    for text in (
        "SELECT a FROM t WHERE a = 5000000000 LIMIT 1",
        "SELECT a FROM t WHERE a = '5' LIMIT 1",
        "SELECT a FROM narrow WHERE a = 70000",
    ):
        [asked] = scripts.read(text)
        query = db.parsed(asked)
        assert isinstance(query, Query)
        assert ready_scan(db._context, query) is None, text  # Spark's to convert


def test_a_known_form_means_what_the_catalog_says_now(db: headwater.Database) -> None:
    form = "SELECT  a FROM t AS x WHERE x.a = {}  LIMIT 1"
    for number in range(4):
        assert db.sql(form.format(number)).rows() == [(number,)]
    db.sql("DROP TABLE t")
    with pytest.raises(headwater.Error, match="t does not exist") as raised:
        db.sql(form.format(44))
    assert raised.value.place is not None
    text, start = raised.value.place.text, raised.value.place.start
    assert text[start : start + 6] == "t AS x"
    db.sql("CREATE TABLE t (a STRING)")
    db.insert("t", [("45",)])
    assert db.sql(form.format("'45'")).rows() == [("45",)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a FROM t WHERE a = $1 LIMIT $1", lambda n: [(n,)] * n),
        ("SELECT a FROM t WHERE a = $1 AND wide = $1 LIMIT 1", lambda n: [(n,)]),
        ("SELECT a FROM t WHERE wide = $1 AND narrow = $1 LIMIT 1", lambda n: [(n,)]),
        (
            "SELECT coalesce(sum(a), $1) AS s FROM t WHERE narrow < 0 AND wide = $1",
            lambda n: [(n,)],
        ),
        ("SELECT a FROM t WHERE narrow = 4 AND $1 BETWEEN wide AND narrow LIMIT 1", None),
    ],
)
def test_a_value_at_several_places_is_the_same_at_each(
    text: str, rows: Callable[[int], list[Any]] | None
) -> None:
    """At one it may be taken as it came, and as another type at the next."""
    with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE t (a INT, wide BIGINT, narrow SMALLINT) TIMESTAMP BY a")
        db.insert("t", [(a, a, a) for a in range(1, 9) for _ in range(9)])
        for value in (4, 5, 2):
            found = db.sql(text, [value]).rows()
            expected = [(4,)] * (value == 4) if rows is None else rows(value)
            assert found == expected, value


def test_a_value_between_columns_of_other_types(db: headwater.Database) -> None:
    db.sql("CREATE TABLE r (low INT, high SMALLINT)")
    db.insert("r", [(n, n + 1) for n in range(10)])
    for value in (3, 8, 5, 1):
        for text in (
            f"SELECT low FROM r WHERE low >= 0 AND {value} BETWEEN low AND high ORDER BY low",
            f"SELECT low FROM r WHERE low >= 0 AND {value} IN (low, high) ORDER BY low",
        ):
            assert db.sql(text).rows() == [(value - 1,), (value,)], text


def test_a_limit_is_an_int(db: headwater.Database) -> None:
    assert len(db.sql(f"SELECT a FROM t LIMIT {(1 << 31) - 1}")) == ROWS
    for limit in (1 << 31, 1 << 63):
        with pytest.raises(headwater.Error, match="limit"):
            db.sql(f"SELECT a FROM t LIMIT {limit}")


def test_values_that_find_nothing_are_looked_for_once(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT b FROM t WHERE a = ?"
    assert len(db.sql(text, [5])) == ROWS // 100
    monkeypatch.setattr(headwater.Database, "script", None)
    assert len(db.sql(text, [1000])) == 0


def ready(db: headwater.Database, text: str) -> object:
    """The scan that is kept with a statement."""
    [asked] = scripts.read(text)
    return db.parsed(asked).facts[ready_scan][1]


def test_the_scan_of_a_text_is_made_once(db: headwater.Database) -> None:
    """And again when the catalog, the functions or the settings have changed."""
    text = TEXTS[1]
    db.sql(text)
    known = ready(db, text)
    assert known is not None
    db.insert("t", [(ROWS, 7, "new")])
    assert db.sql(text).rows()[-1] == (7, "new")
    assert ready(db, text) is known
    for change in (
        lambda: db.sql("CREATE TABLE other (a INT)"),
        lambda: db.create_function("f", lambda x: x, returns="INT"),
        lambda: db.sql("DROP FUNCTION f"),
        lambda: db.sql("SET time_zone = 'Europe/Berlin'"),
    ):
        change()
        db.sql(text)
        assert ready(db, text) is not known
        known = ready(db, text)


def test_a_text_means_what_the_catalog_says_now(db: headwater.Database) -> None:
    text = "SELECT * FROM t WHERE a = 5 LIMIT 1"
    assert db.sql(text).rows() == [(5, 5, "b5")]
    db.sql("ALTER TABLE t SET RANGE INTERVAL 1000 SECONDS")
    assert db.sql(text).rows() == [(1005, 5, "b1005")]
    db.sql("DROP TABLE t")
    with pytest.raises(headwater.Error, match="t does not exist"):
        db.sql(text)
    db.sql("ALTER TABLE s RENAME TO t")
    assert db.sql(text).rows() == [(5, "b5")]
    db.sql("ALTER TABLE t ADD COLUMN c INT")
    assert db.sql(text).rows() == [(5, "b5", None)]
    db.sql("DROP TABLE t")
    db.sql("CREATE STREAMING TABLE t (a INT) TIMESTAMP BY a")
    assert db.sql(text).rows() == []


def test_two_databases_with_one_text(db: headwater.Database) -> None:
    text = "SELECT b FROM s WHERE a = 5 LIMIT 1"
    with headwater.connect(":memory:", settings={"eager_spark": False}) as other:
        other.sql("CREATE TABLE s (a INT, b STRING)")
        other.insert("s", [(5, "other")])
        for _ in range(2):
            assert db.sql(text).rows() == [("b5",)]
            assert other.sql(text).rows() == [("other",)]


def test_a_literal_is_of_the_zone_that_is_set(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE z (at TIMESTAMP, n INT) TIMESTAMP BY at")
    db.sql("INSERT INTO z VALUES (TIMESTAMP '2024-01-01 00:00:00', 1)")
    text = "SELECT n FROM z WHERE at = TIMESTAMP '2024-01-01 00:00:00'"
    assert db.sql(text).rows() == [(1,)]
    db.sql("SET time_zone = 'Asia/Tokyo'")
    assert db.sql(text).rows() == []
    db.sql("SET time_zone = 'UTC'")
    assert db.sql(text).rows() == [(1,)]


def test_roles_and_limits_hold_for_known_texts(db: headwater.Database) -> None:
    text = "SELECT a FROM s WHERE a = 5 LIMIT 1"
    assert db.statement(text, role="reader").rows() == [(5,)]
    change = "DELETE FROM s WHERE a = 5"
    for _ in range(2):
        with pytest.raises(headwater.Error, match="role reader may not run DELETE"):
            db.statement(change, role="reader")
    db.close()
    with pytest.raises(headwater.Error, match="the database is closed"):
        db.statement(text, role="reader")


def test_a_statement_keeps_no_table(db: headwater.Database) -> None:
    """What is kept with a text must not keep the rows of a table that is gone."""
    text = "SELECT b FROM s WHERE a = 5"
    db.sql(text)
    table = weakref.ref(db._context.standard_table("s"))
    assert ready(db, text) is not None
    db.sql("DROP TABLE s")
    gc.collect()
    assert table() is None


def test_columns_are_told_without_a_scan(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.execute.query.StreamScan.run", None)
    assert db.columns("SELECT b AS x, ts FROM t") == pa.schema(
        [("x", pa.string()), ("ts", pa.int32())]
    )
