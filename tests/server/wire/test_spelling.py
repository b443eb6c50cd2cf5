"""What PostgreSQL's clients write, as Headwater reads it, with every token's place kept."""

from __future__ import annotations

import pytest

from headwater.server.wire.spelling import spelled


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT public.t.a FROM public.t", "SELECT t.a FROM t"),
        ('SELECT * FROM "public"."T" JOIN PUBLIC.u', "SELECT * FROM `T` JOIN u"),
        ("SELECT x.public.a, public FROM x", "SELECT x.public.a, public FROM x"),
        ("SELECT ARRAY[1, f(2)], ARRAY[]", "SELECT ARRAY(1, f(2)), ARRAY()"),
        ("SELECT ARRAY[[1], [2, 3]], a[1]", "SELECT ARRAY(array(1), array(2, 3)), a[1]"),
        ("SELECT ARRAY[ARRAY[1], ARRAY[2]]", "SELECT ARRAY(ARRAY(1), ARRAY(2))"),
        (
            "SELECT ARRAY[ARRAY[[1], [2]], [[3]]]",
            "SELECT ARRAY(ARRAY(array(1), array(2)), array(array(3)))",
        ),
        ("SELECT ARRAY[1", "SELECT ARRAY[1"),
        ("SELECT array(1)[0]", "SELECT array(1)[0]"),
        ("WHERE a = ANY(ARRAY[1, 2]) AND b", "WHERE a IN (1, 2) AND b"),
        ("WHERE a = any (array(1, 2))", "WHERE a IN (1, 2)"),
        ("WHERE a = ANY(array(1, 2)::int[])", "WHERE a IN (1, 2)"),
        ("WHERE a = ANY(array(1::int8, 2)::int8[])", "WHERE a IN (1::BIGINT, 2)"),
        ("WHERE a = ANY('{1,NULL,\"x y\"}')", "WHERE a IN ('1', NULL, 'x y')"),
        (
            "WHERE a = ANY('{}') OR a = ANY('1')",
            "WHERE a IN (SELECT NULL WHERE FALSE) OR a = ANY('1')",
        ),
        ("WHERE a = ANY(array())", "WHERE a IN (SELECT NULL WHERE FALSE)"),
        ("WHERE a <> ALL(ARRAY['x', 'y'])", "WHERE a NOT IN ('x', 'y')"),
        ("WHERE a = ANY(b) OR a = ALL(ARRAY[1])", "WHERE a = ANY(b) OR a = ALL(ARRAY(1))"),
        (
            "WHERE a ~ '^x' AND b !~ 'y' AND c ~* 'z'",
            "WHERE a RLIKE '^x' AND b NOT RLIKE 'y' AND c RLIKE '(?i)z'",
        ),
        ("SELECT ~a, 1 + ~2", "SELECT ~a, 1 + ~2"),
        ("WHERE a~'x' AND b!~*'y'", "WHERE a RLIKE 'x' AND b NOT RLIKE '(?i)y'"),
        ("WHERE a=ANY(ARRAY[1]) OR a=ANY('{2}')", "WHERE a IN (1) OR a IN ('2')"),
        ('WHERE a ~ "b" OR a ~* "c"', "WHERE a RLIKE `b` OR a ~* `c`"),
        ("WHERE a = SOME('{2}')", "WHERE a IN ('2')"),
        ("WHERE a = ANY('{1,2}'::int[]) AND b::text", "WHERE a IN ('1', '2') AND b::STRING"),
        ("WHERE a = ANY('x'::int[])", "WHERE a = ANY('x'::ARRAY<INT>)"),
        ('SELECT "a b" FROM "T"', "SELECT `a b` FROM `T`"),
        ('SELECT "a""b`c"', 'SELECT `a"b``c`'),
        ("SELECT 'say \"x\"'", "SELECT 'say \"x\"'"),
        ("SELECT E'a\\nb', e''", "SELECT  'a\\nb',  ''"),
        ("SELECT x::int8, y::text", "SELECT x::BIGINT, y::STRING"),
        ("SELECT x::timestamp with time zone", "SELECT x::TIMESTAMP"),
        ("SELECT x::TIMESTAMP WITHOUT TIME ZONE", "SELECT x::TIMESTAMP_NTZ"),
        ("SELECT x::timestamp, y::double", "SELECT x::timestamp, y::double"),
        ("SELECT x::double precision", "SELECT x::DOUBLE"),
        ("SELECT x::decimal(10,2), y::int[]", "SELECT x::decimal(10,2), y::ARRAY<INT>"),
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
