"""What a session does with a statement depends on what it is, never on how it is written."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest

from headwater.database import Database
from headwater.errors import Error
from headwater.execute.relations import RelationColumns
from headwater.result import Result
from headwater.server.wire.catalog.engine import CatalogEngine
from headwater.server.wire.commands import Commands
from headwater.server.wire.copying import IncomingRows
from headwater.server.wire.session import Session
from headwater.sql import scripts
from headwater.sql.scripts import Asked, read_one
from headwater.sql.statements.base import Statement
from headwater.sql.statements.insert import Insert
from tests.harness.spelling import written_otherwise
from tests.server.frontend import replies_of
from tests.sql.test_scripts import CASES, OF_SESSIONS, texts

SCHEMA = pa.schema([("a", pa.int64())])
QUESTIONS = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r'",
    "SELECT current_database(), current_schema()",
    "SELECT table_name FROM information_schema.tables",
    "SELECT 1",
    "SELECT 'x' AS a",
    "SELECT 't'::regclass::oid",
    "SELECT \"relname\" FROM pg_class",
    "SHOW TABLES",
    "COPY t FROM STDIN CSV HEADER",
    "COPY (SELECT 1) TO STDOUT",
    "COPY t FROM '/f' CSV",
    "SUBSCRIBE q",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t FROM STREAM 'csv:/x'",
    "UPDATE t SET a = 1",
    "ADVANCE t TO 5",
    "CREATE TABLE u (a INT)",
    "CALL p()",
)  # fmt: skip


class Recorder:
    """A database that carries out nothing, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def _note(self, what: str, statement: Statement) -> None:
        self.asked.append((what, type(statement).__name__))

    def parsed(self, asked: str | Asked) -> Statement:
        return (read_one(asked) if isinstance(asked, str) else asked).statement()

    def authorise(self, statement: Statement, _role: str) -> None:
        self._note("authorise", statement)

    def statement(self, asked: str | Asked, *_: Any, **__: Any) -> Result:
        self._note("statement", self.parsed(asked))
        return Result("DONE", SCHEMA.empty_table())

    def follow(self, statement: Statement, *_: Any) -> tuple[pa.Schema, Iterator[pa.Table]]:
        self._note("follow", statement)
        return SCHEMA, iter(())

    def held_insert(self, statement: Insert, *_: Any) -> tuple[str, pa.Table]:
        self._note("held", statement)
        return "t", SCHEMA.empty_table()

    def share_answer(self, asked: Asked, _text: str) -> None:
        self._note("share", asked.statement())

    def check_together(self, _tables: object) -> None: ...
    def insert_together(self, _rows: object) -> None: ...
    def checked_rows(self, _table: str, rows: pa.Table) -> pa.Table:
        return rows

    def insert(self, _table: str, _rows: pa.Table) -> None:
        self.asked.append(("insert", ""))

    def setting(self, _name: str) -> int:
        return 1

    def relations(self) -> list[RelationColumns]:
        return [RelationColumns(1, "t", "table", SCHEMA)]

    def relation(self, name: str) -> RelationColumns | None:
        return self.relations()[0] if name.lower() == "t" else None


def done(text: str, before: tuple[str, ...]) -> object:
    """What a new session asks and answers for a text, after some others."""
    recorder = Recorder()
    database = cast(Database, recorder)
    catalog = CatalogEngine(database)
    session = Session(database, catalog, Commands({}, "me", "headwater"))
    found: list[object] = []
    for each in (*before, text):
        recorder.asked.clear()
        try:
            parts = list(session.script(each))
            sent = b"".join(part for part in parts if not isinstance(part, IncomingRows))
            found.append([(kind, body.lower()) for kind, body in replies_of(sent) if kind != "D"])
        except Error as error:
            found.append((error.sqlstate, error.message.casefold()))
    catalog.close()
    values = {name: value.casefold() for name, value in session.commands.values.items()}
    portals = {name.casefold() for name in session.portals}
    return found, list(recorder.asked), session.status, values, portals


BEFORE = ((), ("BEGIN", "SAVEPOINT a", "DECLARE c CURSOR FOR SELECT 1"), ("BEGIN", "SELEKT"))


@pytest.mark.parametrize("before", BEFORE, ids=["plain", "in a transaction", "in a failed one"])
def test_a_session_goes_by_what_a_statement_is(before: tuple[str, ...]) -> None:
    """Outside of transactions and inside, the same is asked of the database and told to the client."""
    chance = Random(1)
    for text in (*OF_SESSIONS, *QUESTIONS):
        due = done(text, before)
        for _ in range(3):
            other = written_otherwise(text, chance)
            assert done(other, before) == due, other


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_statements_of_the_cases(file: Any) -> None:
    """The same of every statement of the cases."""
    chance = Random(file.stem)
    for text in texts(file)[::3]:
        other = written_otherwise(text, chance)
        assert done(other, ()) == done(text, ()), other


@pytest.mark.parametrize(
    "text", ["INSERT INTO t VALUES (1)", "SELECT a FROM t", "COPY t FROM STDIN"]
)
@pytest.mark.parametrize("before", BEFORE[:2], ids=["plain", "in a transaction"])
def test_a_statement_is_parsed_once(
    text: str, before: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever asks what it is, in a transaction and outside of one."""
    parsed: list[str] = []
    real = scripts.parse

    def parse(text: str, *, time_zone: str) -> Statement:
        parsed.append(text)
        return real(text, time_zone=time_zone)

    monkeypatch.setattr(scripts, "parse", parse)
    other = text + " -- " + "".join(before)  # no other test has asked for it
    done(other, before)
    assert parsed.count(text) == 1
