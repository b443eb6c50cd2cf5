"""Splitting scripts, whole scripts, and no text that breaks the parser."""

# ruff: noqa: E501  # SQL as data reads better on one line
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater
from headwater.errors import Error, SqlSyntaxError
from headwater.sql import scripts
from headwater.sql.masking import masked
from headwater.sql.parser import BY_FIRST_WORD, is_complete, parse, split
from headwater.sql.statements.query import Query

PROCEDURE = (
    "CREATE OR REPLACE PROCEDURE p() AS BEGIN UPDATE t SET a = CASE WHEN b THEN 1 END;"
    " SELECT CASE WHEN x.end THEN 1 END; END"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;; -- nothing\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT \";\"", ["SELECT ';'", 'SELECT ";"']),
        ("SELECT 1 /* ; */ + 1 -- ;\n; FLUSH", ["SELECT 1 /* ; */ + 1", "FLUSH"]),
        ("SELECT `a;b`; x", ["SELECT `a;b`", "x"]),
        (f"{PROCEDURE}; FLUSH", [PROCEDURE, "FLUSH"]),
        ("BEGIN; INSERT INTO t VALUES (1); END; FLUSH",
         ["BEGIN", "INSERT INTO t VALUES (1)", "END", "FLUSH"]),
        ("SELECT CASE WHEN a THEN 1; SELECT 2", ["SELECT CASE WHEN a THEN 1", "SELECT 2"]),
    ],
)  # fmt: skip
def test_split(text: str, expected: list[str]) -> None:
    pieces = split(text)
    assert [piece.text for piece in pieces] == expected
    for piece in pieces:
        assert text[piece.start : piece.start + len(piece.text)] == piece.text


STATEMENTS = st.sampled_from(
    ["SELECT 1", "FLUSH", PROCEDURE, "INSERT INTO t VALUES ('a;b')", "DELETE FROM t -- x;\nWHERE a"]
)


@given(st.lists(STATEMENTS, max_size=5))
def test_split_undoes_join(statements: list[str]) -> None:
    assert [piece.text for piece in split(";\n".join(statements))] == statements
    read = [asked.statement() for asked in scripts.read("; ".join(statements))]
    assert [statement.text for statement in read] == statements


def test_errors_are_placed_in_the_script() -> None:
    script = "FLUSH;\nSELECT * FROM t [ROWS x];\nFLUSH"
    with (
        headwater.connect(settings={"eager_spark": False}) as db,
        pytest.raises(SqlSyntaxError) as caught,
    ):
        db.sql(script)
    place = caught.value.place
    assert place is not None
    assert (place.text, place.line) == (script, 2)
    assert script[place.start : place.end] == "x"


def test_parse_takes_one_statement() -> None:
    with pytest.raises(SqlSyntaxError):
        parse("SELECT 1; SELECT 2")
    assert isinstance(parse("SELECT 1 ;"), Query)
    assert isinstance(parse("  -- c\n (SELECT 1)"), Query)


@pytest.mark.parametrize(
    ("text", "complete"),
    [("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';", False), ("", True), ("/* ;", False),
     ("CREATE PROCEDURE p() AS BEGIN FLUSH;", False), (f"{PROCEDURE};", True)],
)  # fmt: skip
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


WORDS = [
    *BY_FIRST_WORD, "TABLE", "STREAMING", "STREAM", "VIEW", "t", "a", "`b c`", "(", ")", "[", "]", ",", ";", ".",
    "INTERVAL", "'3'", "3", "SECOND", "MONTH", "ROWS", "SAMPLE", "EMIT", "ALL", "CHANGES", "UPDATES", "CUT", "ON",
    "BY", "AS", "OF", "VERSION", "LANDMARK", "CASE", "WHEN", "THEN", "INTO", "USING", "MATCHED", "NOT", "*", "=",
    "SET", "WHERE", "INT", "ARRAY", "<", ">", "STRUCT", "'x", "-- c\n", "/* c */", "PREV", "VALID", "OVERLAPS",
    "PERIOD", "'CUT ON ts BY 3 SECS'", "QUERY", "CONTINUOUS", "FUNCTION", "PROCEDURE", "RETURNS", "RETURN", "IF",
    "EXISTS", "REPLACE", "OR", "1.5", "-", "JOIN", "USER", "PASSWORD", "TO", "AND", "é", "\x00", "$$", "REFRESH",
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_token_soup_gives_a_statement_or_an_error(words: list[str]) -> None:
    check(" ".join(words))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(BY_FIRST_WORD)), st.lists(st.sampled_from(WORDS), max_size=12))
def test_statement_soup(first: str, words: list[str]) -> None:
    check(" ".join([first, *words]))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30))
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_cut_and_changed_statements(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SAMPLES))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    check(text[:start] + data.draw(st.sampled_from([*WORDS, ""])) + text[end:])


SAMPLES = [
    "SELECT PREV(x, 2) FROM t [INTERVAL '3' SECOND BEFORE] a, u [a, b ROWS 3] SAMPLE 3 ROWS EMIT ALL",
    "SELECT * FROM STREAM(s, 'CUT ON ts BY 60 SECS', 'BLOCK', 12) x JOIN v VERSION AS OF 3 y ON x.a = y.a",
    "SELECT k FROM t WITH UPDATES WHEN BEHIND INTERVAL '3' SECOND REFRESH EVERY INTERVAL 1 DAY FOR k IN (1, 2)",
    "MERGE INTO t USING (SELECT 1 a) s ON t.a = s.a WHEN MATCHED AND x THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT *",
    "CREATE STREAMING TABLE t (a INT NOT NULL, b MAP<STRING, STRUCT<c: INT>>) TIMESTAMP BY a WITH (x = 1)",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.5, TIMESTAMP '2020-01-01 00:00:00')",
    "COPY t (a) FROM 'x' WITH (FORMAT csv, HEADER, DELIMITER ';')",
    PROCEDURE,
]  # fmt: skip


def check(text: str) -> None:
    """The text parses or raises an Error with a place inside it; nothing else."""
    error = raised(text)
    if error is not None:
        assert error.place is not None
        assert 0 <= error.place.start <= error.place.end <= len(text)
        assert error.place.text == masked(text)  # passwords are stars
        assert error.sqlstate in str(error)


def raised(text: str) -> Error | None:
    try:
        split(text)
        found = parse(text)
    except Error as error:
        return error
    if isinstance(found, Query):
        assert all(span.of(found.text) for span in found.spans)
        found.edited()
        _ = (found.tree, found.table_references)
    return None
