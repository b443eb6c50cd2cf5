"""Answers that are known: given while they are true, let go when they are not, never more than a bound."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headwater
from headwater.engine.view_versions import Version
from headwater.execute import answers
from headwater.execute.answers import Answer, Answers
from headwater.sql import scripts

ROWS = pa.table({"a": [1, 2, 3]})
TEXT = "SELECT k, n FROM v"


def version(number: int) -> Version:
    return Version(number, ROWS, number, 0.0, 0)


@pytest.fixture
def db() -> Iterator[headwater.Database]:
    """A view over a stream of two rows, without Spark."""
    with headwater.connect(":memory:", settings={"eager_spark": False}) as database:
        database.sql("CREATE STREAMING TABLE s (k INT)")
        database.sql("INSERT INTO s VALUES (7), (8)")
        database.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
        yield database


def test_an_answer_is_of_one_version_and_one_set_of_settings() -> None:
    one, two = version(1), version(2)
    present = [(one, 0)]
    answer = Answer(lambda: present[0])
    assert answer.rows() is None
    answer.keep(ROWS, one, 0)
    assert answer.rows() is ROWS
    assert answer.of(two, 0) is None
    for changed in ((two, 0), (one, 1)):
        present[0] = changed
        assert answer.rows() is None
        assert answer.form("x", lambda _: "made") is None


def test_forms_are_made_once_for_an_answer() -> None:
    """And again for the next one; what could not be made is not kept."""
    one, made = version(1), []
    answer = Answer(lambda: (one, 0))
    answer.keep(ROWS, one, 0)

    def make(rows: pa.Table) -> object | None:
        made.append(rows)
        return None if len(made) == 1 else object()

    assert answer.form("x", make) is None
    found = answer.form("x", make)
    assert found is not None
    assert answer.form("x", make) is found
    answer.keep(ROWS.slice(1), one, 0)
    assert answer.form("x", make) is not found
    assert len(made) == 3


def test_rows_of_a_version_that_is_gone_are_let_go() -> None:
    """At the next answer that is kept; the version itself is never held."""
    known, old = Answers(), version(1)
    gone = weakref.ref(old)
    answer = Answer(lambda: None)
    answer.keep(ROWS, old, 0)
    known.keep("a", answer)
    assert answer.kept_bytes() == ROWS.nbytes
    del old
    gc.collect()
    assert gone() is None
    known.keep("b", Answer(lambda: None))
    assert answer._known is None


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many texts, so many bytes, no long text; the oldest go."""
    monkeypatch.setattr(answers, "MOST_ANSWERS", 3)
    known, one = Answers(), version(1)
    for name in "abcd":
        known.keep(name, Answer(lambda: None))
    assert [name for name in "abcd" if known.find(name)] == ["b", "c", "d"]
    monkeypatch.setattr(answers, "MOST_BYTES", ROWS.nbytes)
    for name in "ef":
        answer = Answer(lambda: None)
        answer.keep(ROWS, one, 0)
        known.keep(name, answer)
    assert [name for name in "abcdef" if known.find(name)] == ["f"]
    known.keep("x" * (answers.LONGEST_TEXT + 1), Answer(lambda: None))
    assert known.find("x" * (answers.LONGEST_TEXT + 1)) is None


def test_an_answer_is_given_again_until_something_changes(db: headwater.Database) -> None:
    first = db.sql(TEXT).arrow()
    assert db.sql(TEXT).arrow() is first
    db.sql("SET time_zone = 'Europe/Amsterdam'")
    assert db.sql(TEXT).arrow() is not first
    second = db.sql(TEXT).arrow()
    db.sql("INSERT INTO s VALUES (7)")
    assert db.sql(TEXT).arrow() != second


def test_others_find_an_answer_only_when_it_is_shared(db: headwater.Database) -> None:
    """Whoever may not ask for it finds nothing; a text of another spelling finds the same answer."""
    (asked,) = scripts.read(TEXT)
    db.statement(asked)
    assert db.known_answer(TEXT) is None
    db.share_answer(asked, TEXT + " ;")
    found = db.known_answer(TEXT + " ;")
    assert found is not None
    assert found is db.known_answer(TEXT)
    assert found.rows() is db.sql(TEXT).arrow()
    (table,) = scripts.read("SELECT k FROM s")
    db.statement(table)
    db.share_answer(table, "SELECT k FROM s")
    assert db.known_answer("SELECT k FROM s") is None
