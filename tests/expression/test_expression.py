"""Every pair of the whitelist against Spark, over all pairs of edge values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.errors import DataError, Error
from headwater.expression.bind import compile_predicate
from headwater.expression.compile import filter_rows
from headwater.expression.functions import OPERATIONS
from headwater.expression.nodes import NULL, BoundCall, BoundConstant, walk
from headwater.sql.types import SIMPLE
from tests.expression.evaluation import RAISED, Oracle, bound, compiled, parsed, row_by_row, shown
from tests.harness.whitelist import WHITELIST, Entry, Types

SIDE = 10  # edge values per type; the table has all pairs of them
ARROW = {
    **SIMPLE,
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(20,0)": pa.decimal128(20, 0),
}


def whole(bits: int) -> list[Any]:
    """Edge values of an integer type."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return [None, 0, 1, -1, 2, -7, low, low + 1, high, high // 2]


FLOATS = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.5, 3.0e38, 2.0**63]
EDGES: dict[str, list[Any]] = {
    "BOOLEAN": [None, True, False] * 3 + [True],
    "TINYINT": whole(8),
    "SMALLINT": whole(16),
    "INT": whole(32),
    "BIGINT": [*whole(64)[:-1], 2**53 + 1],
    "FLOAT": FLOATS,
    "DOUBLE": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 2147483647.9, -2.5, 1e308, 5e-324],
    "DECIMAL(10,2)": [
        *[None, Decimal(0), Decimal(1), Decimal(-1), Decimal("1.25"), Decimal("-0.01")],
        *[Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("7.50"), Decimal(2)],
    ],
    "DECIMAL(20,0)": [
        *[None, Decimal(0), Decimal(1), Decimal(-1), Decimal(2), Decimal(-7), Decimal(99)],
        *[Decimal(10**20 - 1), Decimal(1 - 10**20), Decimal(2**63)],
    ],
    "STRING": [None, "", "a", "b", "ab", "B", "äb", "a😀b", "\uffee", "xb\nz%"],
    "DATE": [
        *[None, date(1970, 1, 1), date(1969, 12, 31), date(1900, 2, 28), date(2100, 3, 1)],
        *[date(2000, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)],
        date(2024, 12, 31),
    ],
    "TIMESTAMP_NTZ": [
        *[None, datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)],
        *[datetime(1900, 1, 1, 0, 0, 1), datetime(2100, 12, 31, 12, 30, 15, 5)],
        *[datetime(2000, 2, 29), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)],
        *[datetime(1582, 10, 4, 6), datetime(2024, 3, 31, 2, 30)],
    ],
}
EDGES["TIMESTAMP"] = [value and value.replace(tzinfo=UTC) for value in EDGES["TIMESTAMP_NTZ"]]


def name(type_: str, side: str) -> str:
    """The column of a type on one side of the pairs."""
    return side + "_" + "".join(c if c.isalnum() else "_" for c in type_).lower()


def edge_table() -> pa.Table:
    """All pairs of edge values, for every type."""
    columns: dict[str, pa.Array] = {"n": pa.array(range(SIDE * SIDE), pa.int32())}
    for type_, values in EDGES.items():
        columns[name(type_, "a")] = pa.array([v for v in values for _ in values], ARROW[type_])
        columns[name(type_, "b")] = pa.array(values * SIDE, ARROW[type_])
    return pa.table(columns)


ROWS = edge_table()
CASES = [(entry, types) for entry in WHITELIST for types in entry.types]

FITS = "{a} >= -9223372036854775808D AND {a} < 9223372036854775808D OR isnan({a})"
# The same operation with NULL in place of an error, to see which rows raise.
ATTEMPTS = {
    "+": "try_add({a}, {b})",
    "-": "try_subtract({a}, {b})",
    "*": "try_multiply({a}, {b})",
    "/": "try_divide({a}, {b})",
    "{a} / 7.0": "{a} / 7.0",
    "3 / {a}": "try_divide(3, {a})",
    "CAST({a} AS DECIMAL(38, 6)) / CAST({b} AS DECIMAL(38, 4))": (
        "try_divide(CAST({a} AS DECIMAL(38, 6)), CAST({b} AS DECIMAL(38, 4)))"
    ),
    "%": "try_mod({a}, {b})",
    "unary -": "try_multiply({a}, CAST(-1 AS {ta}))",
    "abs": "IF({a} < 0, try_multiply({a}, CAST(-1 AS {ta})), {a})",
    "floor": f"IF({FITS}, floor({{a}}), NULL)",
    "ceil": f"IF({FITS}, ceil({{a}}), NULL)",
    "pmod": "IF({b} = 0, NULL, pmod({a}, {b}))",
    "split_part": "IF({b} = 0, NULL, split_part({a}, 'b', {b}))",
    "to_date": "TRY_CAST({a} AS DATE)",
    "timestamp_seconds": "timestamp_seconds({a})",
    "timestamp_millis": "timestamp_millis({a})",
    "timestamp_micros": "timestamp_micros({a})",
    "make_date({a}, {b}, {b})": (
        "IF({b} BETWEEN 1 AND 12 AND {a} BETWEEN -290000 AND 290000, make_date({a}, {b}, {b}), NULL)"
    ),
    "make_date({b} + 2000, 2, {a})": (
        "IF({a} BETWEEN 1 AND day(last_day(make_date({b} + 2000, 2, 1))), "
        "make_date({b} + 2000, 2, {a}), NULL)"
    ),
    "DIV": "IF({b} = 0 OR ({a} = -9223372036854775808 AND {b} = -1), NULL, {a} DIV {b})",
}


def filled(template: str, types: Types) -> str:
    """A template over columns of the types."""
    places = {"a": name(types[0], "a"), "ta": types[0]}
    if len(types) > 1:
        places["b"] = name(types[1], "b")
    return template.format(**places)


def attempt(entry: Entry, types: Types) -> str:
    """What Spark is asked: the entry itself, or with NULL where it raises."""
    floats = set(types) <= {"FLOAT", "DOUBLE"}
    never = entry.operator in ("unary -", "abs") if floats else entry.operator in ("floor", "ceil")
    if entry.can_raise and entry.operator.startswith("CAST"):
        return filled(entry.template.replace("CAST(", "TRY_CAST("), types)
    wide = any(type_.startswith("DECIMAL") for type_ in types) and entry.operator != "/"
    if not entry.can_raise or never or wide:
        return filled(entry.template, types)
    return filled(ATTEMPTS.get(entry.template) or ATTEMPTS[entry.operator], types)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with headwater.connect(":memory:") as db:
        oracle = Oracle(db, ROWS)
        yield oracle
        oracle.close()


def test_every_pair_needs_no_spark_and_has_sparks_type(oracle: Oracle) -> None:
    """No pair of the list is refused, and each result has the type that Spark gives it."""
    texts = [filled(entry.template, types) for entry, types in CASES]
    refused = [text for text in texts if compiled(text, ROWS.schema) is None]
    assert refused == []
    answers = oracle.ask(texts, "WHERE n < 0")
    wrong = [
        (text, str(answer.type), str(ours.type))
        for text, answer in zip(texts, answers, strict=True)
        if (ours := compiled(text, ROWS.schema)) is not None and answer.type != ours.type
    ]
    assert wrong == []


def test_every_pair_has_sparks_values_and_errors(oracle: Oracle) -> None:
    """Each row of each pair has Spark's value, and raises exactly where Spark does."""
    answers = oracle.ask([attempt(entry, types) for entry, types in CASES])
    wrong = []
    for (entry, types), answer in zip(CASES, answers, strict=True):
        text = filled(entry.template, types)
        ours = compiled(text, ROWS.schema)
        assert ours is not None
        if entry.can_raise:
            mine = row_by_row(ours, ROWS)
            inputs = [ROWS[column] for column in sorted(ours.columns)]
            theirs = with_errors(shown(answer), inputs)
        else:
            mine, theirs = shown(ours.evaluate(ROWS)), shown(answer)
        wrong += [
            (text, ROWS.slice(n, 1).select(sorted(ours.columns)).to_pylist()[0], a, b)
            for n, (a, b) in enumerate(zip(mine, theirs, strict=True))
            if a != b
        ]
    assert wrong == [], f"{len(wrong)} differ: {wrong[:20]}"


def with_errors(values: list[str], inputs: list[pa.ChunkedArray]) -> list[str]:
    """The answers of an attempt: NULL without a NULL in the input means an error."""
    there = [all(value.is_valid for value in row) for row in zip(*inputs, strict=True)]
    return [
        RAISED if value == "None" and valid else value
        for value, valid in zip(values, there, strict=True)
    ]


# Over the columns of the edge table, shortened: {i} is the INT column, {d} the DOUBLE one, …
WITH_CONSTANTS = """
{s} = 'a' OR 10 / NULLIF({i}, 0) > 2 | {s} = 'a' AND 10 / NULLIF({i}, 0) > 2 | {s} > 'a' OR {i} < 0
IF({s} = 'a', {i}, 10 DIV NULLIF({i}, 0)) | COALESCE({s} > 'a', 10 % NULLIF({i}, 0) = 1, {b})
{i} = 1 | {i} <> -2147483648 | {l} < 5000000000 | {y} >= 2 | {h} <= -7L | 2 > {i} | {i} = 1Y
{l} <=> NULL | {i} = NULL | {i} <=> 1 | {d} = 1.5 | {d} > 0 | {d} < 1e3 | {d} >= -2.5D | {f} = 1.5
{f} > 0.1 | {f} <= 1.5F | {i} > 1.5 | {l} < 0.5 | {y} = 1.0 | {m} = 1.25 | {m} > 1 | {m} < 0.005
{n} >= 99 | {n} = 9223372036854775808 | {m} + 1 | {m} * 2 | {m} - 1.5 | {m} + -5 | {m} * (5)
{n} + 0.25 | 1.5 + 1 | {i} + 1.5 | {m} * {m} | -{m} + 0.1 | {s} = 'ab' | {s} < "b" | {s} >= ''
{s} || 'x' | concat('a', {s}, 'ä') | concat({s}) | 'a' 'b' | 'it''s' | '\\u0041\\n'
{e} = DATE '2000-02-29' | {e} < DATE'1970-01-01' | {t} >= TIMESTAMP '1970-01-01 00:00:00'
{t} < TIMESTAMP '2000-02-29' | {z} = TIMESTAMP_NTZ '1582-10-04 06:00:00'
{z} > TIMESTAMP_NTZ '2024-03-31 02:29:59.5' | {t} = TIMESTAMP_LTZ '2024-03-31 02:30:00.000000'
CAST('2020-01-01' AS DATE) < {e} | TRUE | FALSE | 1 | 5000000000 | -2147483648 | -(2147483648)
1.50 | 0.5 | 5. | 0.00 | 1e3 | 1.5D | 1.5F | 1.5BD | 10L | 3S | 3Y | 99999999999999999999
{i} IN (1, 2) | {i} NOT IN (1, 2) | {i} IN (1, NULL) | {i} NOT IN (1, NULL)
{l} IN (1, 5000000000) | {y} IN (1, 1000) | {s} IN ('a', 'ab', '') | {s} NOT IN ('a', NULL)
{d} IN (0.0, -2.5) | {d} IN (0e0, 1e308, NULL) | {f} NOT IN (1.5, 0)
{e} IN (DATE '1970-01-01', DATE '9999-12-31') | {b} IN (TRUE) | {m} IN (1, 1.25, 7.5)
{d} IN (1, 2, 3, 0) | {i} IN (1) | {i} IN (NULL, 5) | {t} IN (TIMESTAMP '1970-01-01 00:00:00')
{i} NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) | {i} BETWEEN 0 AND 2
{d} BETWEEN -3 AND 1e308 | {s} BETWEEN 'a' AND 'b' | {i} BETWEEN NULL AND 5
{l} NOT BETWEEN 1 AND {i} | {s} LIKE 'a%' | {s} LIKE '%b' | {s} LIKE 'ab' | {s} LIKE '%'
{s} LIKE '' | {s} LIKE '_' | {s} LIKE 'a_b' | {s} LIKE '%b_z%' | {s} LIKE '__' | {s} LIKE 'x%z_'
{s} NOT LIKE '%' | {s} LIKE '%%' | {s} LIKE 'a%b' | {s} LIKE '%.%' | {s} LIKE '%(%'
substring({s}, 1) | substring({s}, 0, 1) | substring({s}, 2, 0) | substring({s}, 5, 9)
substr({s}, 2) | substring({s} FROM 1 FOR 2) | substring({s}, 2147483647, 2147483647)
length({s} || 'ä😀') | char_length({s}) | len({s}) | character_length('a😀')
CASE WHEN {i} > 0 THEN 'p' WHEN {i} < 0 THEN 'n' ELSE 'z' END
CASE {i} WHEN 1 THEN 'one' WHEN NULL THEN 'none' END | CASE WHEN {b} THEN NULL ELSE 1 END
CASE WHEN {b} THEN 1 WHEN NOT {b} THEN 5000000000 END | CASE WHEN {i} = 1 THEN {m} ELSE 0 END
CASE {s} WHEN 'a' THEN {d} WHEN 'b' THEN 1 END | IF({b}, {i}, NULL) | IF({b} AND {i} > 0, 1, 0)
COALESCE({i}, 0) | nvl({s}, '') | ifnull({d}, 0) | COALESCE(NULL, {i}, {l}, 7)
COALESCE({b}, FALSE) | COALESCE({m}, 0) | NULLIF({i}, 1) | NULLIF({d}, 0) | NULLIF({s}, '')
NULLIF({y}, 2L) | GREATEST({i}, 0, NULL) | LEAST({d}, 0, {f}) | GREATEST({s}, 'b') | LEAST({m}, 1)
{b} AND NULL | {b} OR NULL | NOT ({b} AND {i} > 0) | {b} AND {i} = 1 OR {d} > 0
NOT {b} OR {i} IS NULL | NOT {i} = 1 | !{b} | ({i} = 1) = {b} | ({i} IS NULL) <> {b}
{i} = 1 IS NULL | {b} IS NOT TRUE AND {s} IS NOT NULL | {i} IS DISTINCT FROM 1
CASE WHEN {i} <> 0 THEN 10 / {i} END | {i} <> 0 AND 10 / {i} > 2 | {i} = 0 OR 10 % {i} = 1
IF({i} = 0, 0, 10 DIV {i}) | {i} IS NULL OR {i} = 0 OR {l} / {i} > 2
CASE WHEN {i} = 0 THEN 0 WHEN 10 / {i} > 3 THEN 1 ELSE 10 % {i} END
COALESCE({i}, 1 + NULLIF({y}, 127)) | CASE WHEN {i} BETWEEN -100 AND 100 THEN {i} * {i} + {i} END
{d} / NULLIF({i}, 0) | CASE WHEN {i} > 0 AND {i} < 9 THEN CAST({i} AS TINYINT) ELSE 0Y END
{l} % 10 | {l} DIV 3 | {i} / 2 | {d} * 2 + 1 | {f} * {f} + 1F | {f} + 1 | {d} - {i} | {i} % 2 = 0
-{d} | - {d} * {d} | {l} / 3 * 2 | abs({d}) + 1 | floor({i} / 7) | ceil({l} / 1e10)
CAST({i} AS STRING) || ':' | CAST({l} AS DOUBLE) | CAST({i} AS BIGINT) + 1 | {i}::BIGINT
int({y}) + 1 | double({i}) | string({l}) | CAST({s} AS VARCHAR(1))
CAST({i} AS CHAR(1)) | CAST(NULL AS INT) | CAST(NULL AS DOUBLE) | year({e}) * 100 + month({e})
mod({l}, 7) | mod({i} , 3 + 4) | {t} < TIMESTAMP '2020-01-01T00:00:00Z' | {t} > DATE '1970-01-01'
{e} = '2000-02-29' | {t} > '1970-01-01 00:00:00' | '2024-03-31' <= {z} | {e} <=> '9999-12-31'
{t} BETWEEN '1582-10-04' AND '2024-03-31 02:30:00' | CAST('1' AS INT) | DATE '2020-1-1' | negative({d})
round({d}, 0) | CAST({m} AS DECIMAL(12, 4)) | nvl2({i}, 1, 5000000000) | {s} NOT RLIKE 'b' | {s} NOT ILIKE 'B'
{s} NOT LIKE '%/%%' ESCAPE '/' | upper('straße') | CASE WHEN {s} RLIKE '^[0-9]+$' THEN CAST({s} AS INT) END
COALESCE({s}, CAST({i} AS STRING)) | decode({i}, 1, 'one', NULL, 'none') | decode({s}, 'a', 1, 2)
array({i}, 1)[0] | array('a', {s})[1] = 'b' | get(split({s}, 'b'), 1) | element_at(array({i}, {l}), 1)
{t} + INTERVAL '1' DAY > {t} | {t} - INTERVAL 2 HOURS | year({t}) * 100 + month({t}) | {e} + 1 > {e}
{t} = TIMESTAMP '2024-03-31 03:30:00+01:00' | {z} BETWEEN DATE '1582-10-04' AND DATE '2024-03-31'
"""


def short(text: str) -> str:
    """The columns of a shortened expression."""
    letters = dict(zip("byhilfdmnsetz", TYPE_ORDER, strict=True))
    sides = {letter: "b" if letter in "bldsn" else "a" for letter in letters}  # to meet all pairs
    return text.format(**{letter: name(type_, sides[letter]) for letter, type_ in letters.items()})


TYPE_ORDER = [
    *["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)"],
    *["DECIMAL(20,0)", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"],
]


def with_constants() -> list[str]:
    """The expressions of the list above."""
    lines = WITH_CONSTANTS.strip().split("\n")
    return [part.strip() for line in lines for part in line.split(" | ")]


def test_constants_and_nested_expressions(oracle: Oracle) -> None:
    """Literals of every form, and parts that could raise for rows that are not asked."""
    texts = [short(text) for text in with_constants()]
    refused = [text for text in texts if compiled(text, ROWS.schema) is None]
    assert refused == []
    wrong = []
    for text, answer in zip(texts, oracle.ask(texts), strict=True):
        ours = compiled(text, ROWS.schema)
        assert ours is not None
        mine = ours.evaluate(ROWS)
        if ours.type != answer.type or mine.type != answer.type:
            wrong.append((text, str(mine.type), str(answer.type)))
        pairs = zip(shown(mine), shown(answer), strict=True)
        wrong += [(text, a, b) for a, b in pairs if a != b][:3]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("{i} + 1", "22003"),
        ("{y} * {y}", "22003"),
        ("-{h}", "22003"),
        ("abs({l})", "22003"),
        ("{i} / 0", "22012"),
        ("{d} / {d}", "22012"),
        ("{d} % 0", "22012"),
        ("1 DIV {i}", "22012"),
        ("{l} DIV -1", "22003"),
        ("floor({f})", "22003"),
        ("ceil({d})", "22003"),
        ("CAST({i} AS TINYINT)", "22003"),
        ("CAST({d} AS BIGINT)", "22003"),
        ("CASE WHEN {i} <> 1 THEN 1 / {i} END", "22012"),
        ("{i} = 0 AND 1 / {i} > 0", "22012"),
        ("{i} IS NULL OR 1 % {i} = 0", "22012"),
        ("COALESCE(NULLIF({i}, 0), 1 / {i})", "22012"),
    ],
)
def test_errors(oracle: Oracle, text: str, sqlstate: str) -> None:
    """What raises in Spark raises by operators, with the same SQLSTATE."""
    ours = compiled(short(text), ROWS.schema)
    assert ours is not None
    with pytest.raises(DataError) as mine:
        ours.evaluate(ROWS)
    with pytest.raises(Error) as theirs:
        oracle.ask([short(text)])
    assert mine.value.sqlstate == theirs.value.sqlstate == sqlstate
    assert mine.value.hint


PREDICATES = [
    "{i} IS NOT NULL AND {i} <> 0 AND 10 % {i} = 1 AND {s} = 'a'",
    "{i} > 0",
    "{b}",
    "NOT {b}",
    "{i} <> 0 AND 10 / {i} > 2",
    "{b} AND ({i} IS NULL OR {i} > 0) AND {s} LIKE '%b%'",
    "{i} > 0 AND {i} < 100 AND {i} * 1000 > 1500 AND ({s} < 'b' OR {d} = 0)",
    "NULL",
    "{i} = 1 OR NULL",
]


@pytest.mark.parametrize("text", PREDICATES)
def test_filters(oracle: Oracle, text: str) -> None:
    """A filter keeps the rows that Spark's WHERE keeps: those where it is true."""
    node = parsed(short(text))
    assert node is not None
    predicate = compile_predicate(node, lambda c: (c.name, ROWS.schema.field(c.name).type))
    if predicate is None:
        assert text == "NULL"
        return
    kept = filter_rows(ROWS, predicate)["n"].to_pylist()
    assert kept == oracle.ask(["n"], f"WHERE {short(text)}")[0].to_pylist()


def test_a_filter_that_spark_would_change_is_refused() -> None:
    """Spark puts the 0 of `i = 0` into the rest of a filter, which then raises without any row."""
    for text in ("i = 0 AND 1 / i > 2", "i + 1 > 0 AND i IN (5)", "NOT i <> 0 AND 1 / i > 2"):
        node = parsed(text)
        assert node is not None
        assert compile_predicate(node, lambda column: (column.name, pa.int32())) is None


def test_a_filter_does_not_ask_where_a_condition_before_is_unknown() -> None:
    """In WHERE, `x > 1 AND 1 / y > 0` does not divide where x is NULL; as a value, it does."""
    rows = pa.table({"x": pa.array([None, 2], pa.int32()), "y": pa.array([0, 1], pa.int32())})
    node = parsed("x > 1 AND 1 / y > 0")
    assert node is not None
    predicate = compile_predicate(node, lambda column: (column.name, pa.int32()))
    assert predicate is not None
    assert filter_rows(rows, predicate).to_pylist() == [{"x": 2, "y": 1}]
    value = compiled("x > 1 AND 1 / y > 0", rows.schema)
    assert value is not None
    with pytest.raises(DataError):
        value.evaluate(rows)


@pytest.mark.parametrize("symbol", ["*", "+", "-"])
@pytest.mark.parametrize("left", ["a_decimal_20_0_ * a_int", "a_decimal_20_0_ * b_decimal_10_2_"])
def test_decimals_of_more_than_38_digits(oracle: Oracle, symbol: str, left: str) -> None:
    """Spark's type, its values, and an error exactly where 38 digits are too few."""
    text = f"({left}) {symbol} b_decimal_20_0_"
    found = compiled(text, ROWS.schema)
    attempts = {"*": "try_multiply", "+": "try_add", "-": "try_subtract"}
    (answer,) = oracle.ask([f"{attempts[symbol]}({left}, b_decimal_20_0_)"])
    if found is None:
        pytest.skip("decimals would have to be rounded: left to Spark")
    assert found.type == answer.type
    values = answer.to_pylist()
    for row in range(ROWS.num_rows):
        one = ROWS.slice(row, 1)
        missing = any(one.column(name)[0].as_py() is None for name in found.columns)
        if values[row] is None and not missing:
            with pytest.raises(DataError):
                found.evaluate(one)
        else:
            assert found.evaluate(one).to_pylist() == [values[row]]


def test_every_function_of_the_table_is_on_the_list() -> None:
    """No function is entered that no test compares."""
    used = {
        part.function
        for entry, types in CASES
        for part in walk(
            bound(filled(entry.template, types), ROWS.schema) or BoundConstant(None, NULL)
        )
        if isinstance(part, BoundCall)
    }
    others = {"and then", "in"}
    assert set(OPERATIONS) - used == others
