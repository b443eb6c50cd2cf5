"""What is not on the whitelist is refused, and how expressions meet the tables that they get."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from headwater.expression.bind import RULES, compile_predicate
from headwater.expression.compile import filter_rows
from headwater.sql.dialect import Headwater
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ
from tests.expression.evaluation import compiled, parsed

SCHEMA = pa.schema(
    {
        "b": pa.bool_(),
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "m": pa.decimal128(10, 2),
        "w": pa.decimal128(30, 10),
        "s": pa.string(),
        "e": pa.date32(),
        "t": TIMESTAMP,
        "z": TIMESTAMP_NTZ,
        "x": pa.binary(),
        "a": pa.list_(pa.int32()),
    }
)

REFUSED = """
NULL | x | a | unknown | t.i | i = s | i = '1' | e = t | e < z | t = z | b = 1 | m = d | m + d | m / d
m % 2 | m / 2L | CAST(m AS DECIMAL(38, 2)) * CAST(m AS DECIMAL(38, 2))
w * w | w + l * m * m | m + 10L | m + CAST(10 AS BIGINT) | d DIV 2 | m DIV 2
i + NULL | NOT NULL | s + 1 | -s | e - e | t - t | e + INTERVAL 1 WEEK | INTERVAL 1 DAY
e + INTERVAL '1-2' YEAR TO MONTH | INTERVAL 1 DAY + e | e + INTERVAL 1 DAY 2 MONTHS
t - z < INTERVAL '1' SECOND | e - e < INTERVAL '1' DAY | t - t < INTERVAL '1' MONTH
t - t < INTERVAL '1 2' DAY TO HOUR | t - t < INTERVAL '0.5' MINUTE | t - t < INTERVAL -1 SECOND
t - t < INTERVAL '0.1234567' SECOND | t - t < INTERVAL 1 MINUTE 2 SECONDS | t - t + i > 0
t - t < INTERVAL '1 second 2 minutes' | CAST(t - t AS STRING) | -(t - t) < INTERVAL '1' DAY | i + 1 + 2
(i + 1) + 2147483647 | i - 6 + 1 | 2 * i * 3 | 2 * (i * 3) | 1 / 0 | 1 % 0 | i > 0 OR 1 / 0 > 2
2147483647 + 1 | -128Y | i = l = b | i = l < b | b = i IN (1) | b = NOT b | i IN (l) | i IN (SELECT 1)
EXISTS (SELECT 1) | (SELECT 1) | (i, l) IN ((1, 2)) | i IN ('1')
d IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) | i BETWEEN SYMMETRIC 1 AND 2 | i BETWEEN '1' AND '2'
CASE WHEN i THEN 1 END | CASE WHEN NULL THEN i ELSE l END | IF(NULL, i, l)
CASE WHEN b THEN 1 ELSE 'x' END | CASE WHEN b THEN e ELSE t END | CASE WHEN b THEN NULL END | IF(b, 1)
COALESCE(i, 'x') | COALESCE(NULL, NULL) | NULLIF(i, 'x') | GREATEST(i, 'x') | LEAST(e, t) | GREATEST(i)
TRY_CAST(i AS TIMESTAMP) | CAST(i AS TIMESTAMP) | CAST('x' AS INT) | CAST(i AS BINARY) | 0.1F | 1e400
r'x' | X'1F' | DATE '2020-02-30' | DATE 'today' | TIMESTAMP '2020'
TIMESTAMP '2020-01-01 00:00:00.1234567' | DATE '٢٠٢٠-01-01' | s LIKE s | s LIKE ANY ('x', 'y')
i LIKE '1' | substring(s, 1L) | concat(s, i) | s || i | length(x) | length(s, s) | hour(e) | year(s)
floor(d, 1) | ceil(m) | floor(s) | rand() | uuid() | current_date | current_timestamp() | now()
count(*) | sum(i) | max(i) | row_number() OVER (ORDER BY i) | sum(i) OVER () | abs(DISTINCT i)
s COLLATE UTF8_LCASE = 'x' | f(i) | positive(i) | transform(a, q -> q + 1) | bigint(i) | a = a
a IN (a) | array(i, l) | split(s, ',') | COALESCE(a, a) | size(s) | a['x'] | a[l] | element_at(a, 1L)
t > 'now' | t > '2020' | e = '2020-1-1' | e = s | CAST(s AS TIMESTAMP) | CAST(s AS FLOAT)
CAST(f AS DECIMAL(10, 2)) | CAST(x AS STRING) | CAST(a AS STRING) | CAST(b AS DOUBLE)
CAST(l AS TIMESTAMP) | exp(m) | ln(m) | log1p(d) | pow(d, 3) | pow(2, d) | pow(m, 2) | sqrt(m)
round(f) | round(d, i) | round(d, -1) | round(i, -1) | expm1(d) | repeat(s, i) | repeat(s, 100000)
lpad(s, i) | s RLIKE s | s RLIKE '(?=x)' | s RLIKE '\\\\bx' | s RLIKE '(a*)*' | s RLIKE 'a*+'
s RLIKE '(?i)x' | s RLIKE '(?:a+)+' | s RLIKE '[a&&b]' | s RLIKE '\\\\p{L}' | s RLIKE '(a)\\\\1' | s RLIKE '['
regexp_replace(s, 'x', '$0') | regexp_replace(s, 'x*', 'y') | regexp_extract(s, 'x', 1)
regexp_replace(s, 'x', 'y', 2) | split(s, '')[0] | split(s, ',', 2)[0] | s LIKE 'x\\\\'
s LIKE 'a\\\\b' | s LIKE 'x' ESCAPE '%' | trim('' FROM s) | get_json_object(s, '$.*')
get_json_object(s, s) | get_json_object(s, '$') | get_json_object(s, 'a') | get_json_object(s, '$.a[*]')
map('k', s, 'k', s)['k'] | map(s, 1)['k'] | map('k', d)[1] | sha2(s, 1) | sha2(s, i) | try_element_at(a, 0)
from_json(s, 'a INT') | date_add(t, 1) | date_add(e, i) | date_add(e, l) | datediff(s, e)
add_months(e, i) | date_trunc('CENTURY', t) | date_trunc('DAY', e) | date_trunc(s, t) | trunc(t, 'MM')
trunc(e, s) | extract(SECOND FROM t) | extract(EPOCH FROM t) | unix_timestamp(s) | unix_timestamp()
from_unixtime(d) | from_unixtime(i, 'QQ') | to_date(s, 'yyyy') | date_format(e, 'yyyy') | date_format(t, 'QQ')
date_format(t, s) | date_format(t, 'yyyy[-MM]') | date_format(t, 'LLL') | date_format(z, 'yyyy')
t + INTERVAL '1' MONTH
e + INTERVAL '1' HOUR | t + i | make_timestamp(1, 2, 3, 4, 5, 6) | next_day(e, 'MO') | pmod(d, 2)
pmod(m, 2) | isnan(i) | i & d | i << 1 | shiftleft(i, 1) | decode(s, 'UTF-8') | substring(s, i, l)
e IN ('2020-01-01')
"""


@pytest.mark.parametrize(
    "text", [part.strip() for line in REFUSED.strip().split("\n") for part in line.split(" | ")]
)
def test_refused(text: str) -> None:
    """Implicit casts, inexact operations, time zones, other people's functions: None."""
    assert compiled(text, SCHEMA) is None


def test_bits_of_doubles_are_refused() -> None:
    """The bar that separates the list above is an operator too."""
    assert compiled("i | d", SCHEMA) is None
    assert compiled("i & 1 | l", SCHEMA) is None  # which of them binds tighter is Spark's to say
    assert compiled("(i & 1) | l", SCHEMA) is not None


def test_a_deep_expression_is_refused() -> None:
    """An expression too deep for Python's stack goes to Spark; a long one is read in no time."""
    assert compiled(" AND ".join(["b"] * 20_000), SCHEMA) is None
    begin = time.thread_time()
    assert compiled(" + ".join(["i"] * 60), SCHEMA) is not None
    assert time.thread_time() - begin < 1


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("nvl(i, 1)", "coalesce"),
        ("coalesce(i, 1)", "nvl"),
        ("i % 2", "mod"),
        ("len(s)", "length"),
        ("int(l)", "int"),
        ("IF(b, 1, 2)", "if"),
        ("b AND abs(i) > 1", "abs"),
    ],
)
def test_a_user_function_takes_the_name(text: str, function: str) -> None:
    """An expression that may call a user's function is refused: sqlglot hides which name it was."""
    assert compiled(text, SCHEMA) is not None
    assert compiled(text, SCHEMA, [function]) is None
    assert compiled(text, SCHEMA, ["another"]) is not None


@pytest.mark.parametrize("text", ["t - t < INTERVAL '1' DAY", "CAST(t AS DATE)"])
def test_a_time_zone_other_than_utc(text: str) -> None:
    """What depends on the session's zone is refused in any but UTC."""
    assert compiled(text, SCHEMA) is not None
    assert compiled(text, SCHEMA, time_zone="Europe/Berlin") is None


def test_every_name_of_a_node_is_known() -> None:
    """Each function name that sqlglot turns into a node of ours stands in that node's rule."""
    arguments: list[Any] = [exp.column("i"), exp.column("l"), exp.column("s")]
    missing = []
    for name in Headwater.Parser.FUNCTIONS:
        for count in (2, 3) if name in ("AND", "OR") else (1, 2, 3):
            texts = ", ".join(argument.name for argument in arguments[:count])
            node = parsed(f"{name}({texts})")
            node = node.this if isinstance(node, exp.Paren) else node
            rule = RULES.get(type(node)) if node is not None else None
            if rule is not None and name.lower() not in rule.names:
                missing.append((name, type(node).__name__))
    assert missing == []


def test_tables_of_other_flavours() -> None:
    """Chunks, dictionaries, large text, no rows and no chunks give the same columns."""
    text = pa.chunked_array([["a", None], ["b"]])
    expression = compiled("s = 'b' AND i > 0", SCHEMA)
    assert expression is not None
    assert expression.columns == {"s", "i"}
    for flavour in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"s": text.cast(flavour), "i": pa.array([1, 2, 3], pa.int32())})
        assert expression.evaluate(table).to_pylist() == [False, None, True]
        assert len(expression.evaluate(table.slice(0, 0))) == 0
    empty = pa.schema({"s": pa.string(), "i": pa.int32()}).empty_table()
    assert expression.evaluate(empty).type == pa.bool_()
    for constant in ("1", "CASE WHEN i > 0 THEN 1 ELSE 2 END", "CAST(NULL AS DATE)", "s || 'x'"):
        found = compiled(constant, SCHEMA)
        assert found is not None
        assert len(found.evaluate(empty)) == 0
        assert len(found.evaluate(table)) == 3


def test_a_filter_is_quick() -> None:
    """20 000 rows through one comparison, in well under the time of any Spark job."""
    table = pa.table({"i": pa.array(range(20_000), pa.int32())})
    node = parsed("i > 15000")
    assert node is not None
    predicate = compile_predicate(node, lambda column: (column.name, pa.int32()))
    assert predicate is not None
    times = []
    for _ in range(50):
        begin = time.thread_time()
        kept = filter_rows(table, predicate)
        times.append(time.thread_time() - begin)
    assert kept.num_rows == 4999
    assert min(times) < 0.001
    print(f"filter of 20 000 rows: {min(times) * 1e6:.0f} us")
