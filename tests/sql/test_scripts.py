"""The cache of parsed statements; and that the way a statement is written changes nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from headwater.errors import Error
from headwater.sql import parser, scripts
from headwater.sql.kinds import command_of, gives_rows, in_transaction
from headwater.sql.permissions import needed
from headwater.sql.statements.query import Query
from headwater.sql.text import EditedText
from tests.harness.cases import read_cases
from tests.harness.spelling import meaning, written_otherwise

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.sql"))
OF_SESSIONS = (
    "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY", "START TRANSACTION", "COMMIT WORK", "END",
    "ABORT", "ROLLBACK TO SAVEPOINT a", "SAVEPOINT a", "RELEASE a",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET search_path TO a, 'b', `c`",
    "SET LOCAL extra_float_digits = 3", "SET TIME ZONE 'UTC'", "SET TIME ZONE LOCAL",
    "SET datestyle TO DEFAULT", "RESET ALL", "RESET", "RESET datestyle", "SHOW TIME ZONE",
    "SHOW TRANSACTION ISOLATION LEVEL", "SHOW SESSION AUTHORIZATION", "SHOW server_version",
    "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1", "FETCH c", "FETCH FORWARD ALL IN c",
    "FETCH FORWARD 5 FROM c", "FETCH 7 c", "MOVE NEXT FROM c", "FETCH next", "CLOSE ALL", "CLOSE c",
    "DISCARD ALL", "DEALLOCATE PREPARE p", "DEALLOCATE ALL", "UNLISTEN *",
)  # fmt: skip


def texts(file: Path) -> list[str]:
    """The statements of a file of cases that can be read."""
    found = []
    for case in read_cases(file):
        for block in case.blocks:
            try:
                pieces = [piece.text for piece in parser.split(block.sql)]
                found += [text for text in pieces if parser.parse(text)]
            except Error:  # a case of what cannot be read
                continue
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_how_a_statement_is_written_changes_nothing(file: Path) -> None:
    """Case, blanks and comments change neither the class of a statement nor what it says."""
    chance = Random(file.stem)
    for text in texts(file):
        check(text, written_otherwise(text, chance))


@pytest.mark.parametrize("text", OF_SESSIONS)
def test_how_a_statement_of_a_session_is_written_changes_nothing(text: str) -> None:
    """The same of statements that only sessions of PostgreSQL's protocol carry out."""
    chance = Random(text)
    for _ in range(8):
        check(text, written_otherwise(text, chance))


def check(text: str, other: str) -> None:
    (piece,) = parser.split(other)
    one, two = parser.parse(text), parser.parse(piece.text)
    assert type(one) is type(two), other
    assert meaning(one) == meaning(two), other
    for ask in (command_of, gives_rows, in_transaction, needed):
        assert ask(one) == ask(two), (ask, other)


def test_a_text_that_comes_again_is_parsed_once() -> None:
    """In one zone; another zone is another reading. Each spelling has its own."""
    text = "SELECT TIMESTAMP '2026-01-01 00:00:00' AS t_once"
    (asked,) = scripts.read(text)
    first = asked.statement("UTC")
    assert scripts.read(text)[0].statement("UTC") is first
    assert scripts.read(text)[0].statement() is first
    assert asked.statement("Europe/Amsterdam") is not first
    assert scripts.read(text, lambda t: EditedText(t))[0] is not asked
    assert scripts.read_one(text).statement("UTC") == first
    view = "CREATE VIEW shown_again AS SELECT 1 AS a"  # the console asks for it every second
    assert scripts.read_one(view).statement() is scripts.read_one(view).statement()


def test_what_is_not_kept() -> None:
    """Statements that bring rows, long texts, and texts beyond the bound."""
    for text in (
        "INSERT INTO t VALUES (1)",
        "CREATE USER u PASSWORD 'x'",
        "SELECT 1 --" + "x" * 5000,
    ):
        (asked,) = scripts.read(text)
        asked.statement()
        assert scripts.read(text)[0] is not asked
    kept = scripts.read("SELECT 'kept'")[0]
    kept.statement()
    for number in range(scripts.MOST_TEXTS):
        assert scripts.read("SELECT 'kept'")[0] is kept  # asked for again and again, it stays
        scripts.read(f"SELECT {number} AS driven_out")[0].statement()
    scripts.read("SELECT 'last'")[0].statement()
    assert len(scripts._kept) <= scripts.MOST_TEXTS
    for number in range(scripts.MOST_TEXTS):
        scripts.read(f"SELECT {number} AS others")[0].statement()
    assert scripts.read("SELECT 'kept'")[0] is not kept


def test_texts_that_cannot_be_parsed_are_bounded_too() -> None:
    """Nobody fills the memory with mistakes."""
    for number in range(3 * scripts.MOST_TEXTS):
        scripts.read(f"SELEKT {number}")
    assert len(scripts._kept) <= 2 * scripts.MOST_TEXTS


def test_places_and_facts() -> None:
    """A statement knows how it was written, and what follows from it is found once."""
    text = "SELECT 1 ; SELECT a -- b\n , 2"
    second = scripts.read(text)[1]
    assert second.original() == "SELECT a -- b\n , 2"
    assert second.original_position(0) == 11
    made: list[str] = []

    def fact(query: object) -> int:
        made.append(str(query))
        return 7

    statement = second.statement()
    assert isinstance(statement, Query)
    assert statement.fact(fact) + statement.fact(fact) == 14
    assert len(made) == 1
