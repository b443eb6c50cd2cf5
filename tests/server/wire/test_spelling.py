"""What PostgreSQL's clients write, as Headwater reads it, with every token's place kept."""

from __future__ import annotations

import pytest

from headwater.server.wire.spelling import spelled


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("SELECT a FROM t", "SELECT a FROM t"),
        ('SELECT "a b" FROM "T"', "SELECT `a b` FROM `T`"),
        ('SELECT "a""b`c"', 'SELECT `a"b``c`'),
        ("SELECT 'say \"x\"'", "SELECT 'say \"x\"'"),
        ("SELECT E'a\\nb', e''", "SELECT  'a\\nb',  ''"),
        ("SELECT x::int8, y::text", "SELECT x::BIGINT, y::STRING"),
        ("SELECT x::timestamp with time zone", "SELECT x::TIMESTAMP"),
        ("SELECT x::TIMESTAMP WITHOUT TIME ZONE", "SELECT x::TIMESTAMP_NTZ"),
        ("SELECT x::timestamp, y::double", "SELECT x::timestamp, y::double"),
        ("SELECT x::double precision", "SELECT x::DOUBLE"),
        ("SELECT x::decimal(10,2), y::int[]", "SELECT x::decimal(10,2), y::int[]"),
        ("SELECT 'x'::varchar, TRUE::bool", "SELECT 'x', TRUE"),
        ("SELECT 1::INTEGER, 1::BIGINT", "SELECT 1, 1::BIGINT"),
        ("SELECT 9999999999::INTEGER", "SELECT 9999999999::INT"),
        (
            "INSERT INTO t VALUES (1::BIGINT, NULL::TEXT, -2::int2)",
            "INSERT INTO t VALUES (1, NULL, -2)",
        ),
        (
            "SELECT '2024-01-01T10:00:00'::timestamptz",
            "SELECT TIMESTAMP '2024-01-01 10:00:00'",
        ),
        (
            "SELECT '2024-01-01 10:00:00+02'::timestamptz",
            "SELECT TIMESTAMP '2024-01-01 08:00:00+00:00'",
        ),
        ("SELECT '2024-02-29'::date", "SELECT DATE '2024-02-29'"),
        ("SELECT 'today'::date", "SELECT 'today'::DATE"),
        (r"SELECT E'\\x00fF'::bytea", "SELECT  X'00fF'"),
        (r"SELECT 'x00'::bytea", "SELECT 'x00'::BINARY"),
        ("SELECT 'yesterday'::timestamptz", "SELECT 'yesterday'::TIMESTAMP"),
        ("SELECT 'unclosed", "SELECT 'unclosed"),
        (
            'SELECT floor(extract(epoch from "at")/60)*60',
            "SELECT floor(CAST(CAST( `at` AS TIMESTAMP) AS DOUBLE)/60)*60",
        ),
        (
            "SELECT EXTRACT(EPOCH FROM max(f(a)::timestamptz)), b",
            "SELECT CAST(CAST( max(f(a)::TIMESTAMP) AS TIMESTAMP) AS DOUBLE), b",
        ),
        ("SELECT extract(year from a), epoch from x", "SELECT extract(year from a), epoch from x"),
        ("SELECT extract(epoch from a", "SELECT extract(epoch from a"),
    ],
)
def test_texts(written: str, read: str) -> None:
    """Names in double quotes, escape strings and casts; literals lose casts that say nothing."""
    assert spelled(written).text == read


def test_places() -> None:
    """A place in the text that is read is the same place in the text that was written."""
    written = 'SELECT "a", x::int8, y::timestamp with time zone FROM nowhere'
    found = spelled(written)
    place = found.text.index("nowhere")
    assert found.original_position(place) == written.index("nowhere")
