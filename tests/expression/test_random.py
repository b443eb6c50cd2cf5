"""Random expressions of the whitelist's grammar over random rows: by operators equals Spark."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import headwater
from headwater.errors import DataError, Error
from headwater.expression.bind import compile_predicate
from headwater.expression.compile import Compiled, filter_rows
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ
from tests.expression.evaluation import Oracle, compiled, parsed, shown

TYPES = {
    "b": pa.bool_(),
    "y": pa.int8(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "m": pa.decimal128(10, 2),
    "s": pa.string(),
    "e": pa.date32(),
    "t": TIMESTAMP,
    "z": TIMESTAMP_NTZ,
}
EXPRESSIONS, FILTERS = 60, 25  # in one query
ROW_COUNT = 25
NUMBERS, KINDS = "yilfd", "bylidmfsetz"
start = datetime(1969, 12, 31, 23)
VALUES: dict[str, Callable[[Random], Any]] = {
    "b": lambda r: r.random() < 0.5,
    "y": lambda r: r.choice([0, 1, -1, 2, 5, 100, -128, 127]),
    "i": lambda r: r.choice([0, 1, 2, 3, -3, 7, 1000, r.randrange(-50, 50)]),
    "l": lambda r: r.choice([0, 1, 2, -3, 10**10, r.randrange(-50, 50)]),
    "f": lambda r: r.choice([0.0, -0.0, 1.5, math.nan, math.inf, 0.1, -2.0]),
    "d": lambda r: r.choice([0.0, -0.0, 1.5, math.nan, -math.inf, 0.1, 2.0, r.uniform(-9, 9)]),
    "m": lambda r: Decimal(r.randrange(-500, 500)).scaleb(-2),
    "s": lambda r: "".join(r.choice("abäA_%😀 ") for _ in range(r.randrange(4))),
    "e": lambda r: date(1970, 1, 1) + timedelta(days=r.randrange(-40, 40)),
    "t": lambda r: (start + timedelta(minutes=r.randrange(200))).replace(tzinfo=UTC),
    "z": lambda r: start + timedelta(seconds=r.randrange(9999)),
}
LITERALS = {
    "b": ["TRUE", "FALSE"],
    "y": ["1Y", "5Y"],
    "i": ["0", "1", "2", "-3", "7"],
    "l": ["10L", "5000000000", "0L"],
    "f": ["1.5F", "-2F"],
    "d": ["1e1", "0.5D", "-1e0"],
    "m": ["1.25", "-0.5", "2.0"],
    "s": ["''", "'a'", "'äA'", "'%'"],
    "e": ["DATE '1970-01-05'"],
    "t": ["TIMESTAMP '1970-01-01 00:10:00'"],
    "z": ["TIMESTAMP_NTZ '1970-01-01 00:00:30.5'"],
}


class Grammar:
    """Draws expressions of a kind, as text."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def make(self, kind: str, depth: int) -> str:
        """An expression of a kind, in brackets where it has several words."""
        r = self.random
        if depth <= 0 or r.random() < 0.15:
            return kind if r.random() < 0.75 else r.choice(LITERALS[kind])
        shapes = [self.choose, self.fallback]
        own = getattr(self, f"make_{kind}", None)
        shapes += [own] * 3 if own is not None else []
        return str(r.choice(shapes)(kind, depth - 1))

    def choose(self, kind: str, depth: int) -> str:
        """A CASE or IF of a kind."""
        r = self.random
        condition, one, other = (
            self.make("b", depth),
            self.make(kind, depth),
            self.make(kind, depth),
        )
        forms = [
            f"CASE WHEN {condition} THEN {one} ELSE {other} END",
            f"CASE WHEN {condition} THEN {one} WHEN {self.make('b', depth)} THEN {other} END",
            f"IF({condition}, {one}, {other})",
            f"CASE {one} WHEN {other} THEN {one} END",
        ]
        return r.choice(forms)

    def fallback(self, kind: str, depth: int) -> str:
        """COALESCE, NULLIF, GREATEST or LEAST of a kind."""
        r = self.random
        name = r.choice(["COALESCE", "NULLIF", "GREATEST", "LEAST", "nvl"])
        return f"{name}({self.make(kind, depth)}, {self.make(kind, depth)})"

    def number(self, depth: int) -> str:
        """A number of any kind."""
        return self.make(self.random.choice(NUMBERS), depth)

    def make_b(self, _: str, depth: int) -> str:
        """A boolean."""
        r = self.random
        kind = r.choice(KINDS)
        one, other = self.make(kind, depth), self.make(kind, depth)
        symbol = r.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        consts = ", ".join(r.choices([*LITERALS[kind], "NULL"], k=r.randrange(1, 4)))
        yes, no = self.make("b", depth), self.make("b", depth)
        forms = [
            f"({one} {symbol} {other})",
            f"({self.number(depth)} {symbol} {self.number(depth)})",
            f"({yes} AND {no})",
            f"({yes} OR {no})",
            f"(NOT {yes})",
            f"({one} IS NULL)",
            f"({one} IS NOT NULL)",
            f"({yes} IS TRUE)",
            f"({one} IN ({consts}, {LITERALS[kind][0]}))",
            f"({one} NOT IN ({consts}, {LITERALS[kind][0]}))",
            f"({one} BETWEEN {other} AND {self.make(kind, depth)})",
            f"({self.make('s', depth)} LIKE '{r.choice(['a%', '%a', '%A%', '_', 'a_%', '%'])}')",
            f"({self.make('s', depth)} RLIKE '{r.choice(['a|b', '^a', 'b$', '[äA]+', '.b'])}')",
            f"({self.make('s', depth)} ILIKE '{r.choice(['a%', '%Ä%', '_'])}')",
            f"{r.choice(['contains', 'startswith'])}({self.make('s', depth)}, {self.make('s', depth)})",
            f"isnan({self.make('d', depth)})",
            f"array_contains(split({self.make('s', depth)}, 'a'), {self.make('s', depth)})",
        ]
        return r.choice(forms)

    def make_i(self, kind: str, depth: int) -> str:
        """An INT."""
        r = self.random
        forms = [
            f"({self.make(kind, depth)} {r.choice('+-*')} {self.make(r.choice('yi'), depth)})",
            f"length({self.make('s', depth)})",
            f"{r.choice(['year', 'month', 'day'])}({self.make(r.choice('ez'), depth)})",
            f"{r.choice(['hour', 'minute', 'second'])}({self.make('z', depth)})",
            f"abs({self.make(kind, depth)})",
            f"(- {self.make(kind, depth)})",
            f"CAST({self.make(r.choice('yild'), depth)} AS INT)",
            f"length({self.make('s', depth)})",
            f"{r.choice(['year', 'month', 'dayofweek'])}({self.make(r.choice('etz'), depth)})",
            f"datediff({self.make('e', depth)}, {self.make('e', depth)})",
            f"locate({self.make('s', depth)}, {self.make('s', depth)})",
            f"size(split({self.make('s', depth)}, 'b'))",
            f"get(array({self.make('i', depth)}, {self.make('i', depth)}), {r.randrange(3)})",
            f"({self.make('i', depth)} {r.choice('&^|')} {self.make('i', depth)})",
            f"nvl2({self.make('s', depth)}, {self.make('i', depth)}, {self.make('i', depth)})",
            f"({self.make(kind, depth)} % NULLIF({self.make(kind, depth)}, 0))",
            f"IF({(b := self.make(kind, depth))} = 0, NULL, {self.make(kind, depth)} % {b})",
        ]
        return r.choice(forms)

    def make_l(self, kind: str, depth: int) -> str:
        """A BIGINT."""
        r = self.random
        forms = [
            f"({self.make(kind, depth)} {r.choice('+-*')} {self.make(r.choice('yil'), depth)})",
            f"CAST({self.make(r.choice('yil'), depth)} AS BIGINT)",
            f"unix_seconds({self.make('t', depth)})",
            f"floor({self.make(r.choice('yilm'.replace('m', 'f')), depth)})",
            f"({self.make(r.choice('yil'), depth)} DIV NULLIF({self.make('i', depth)}, 0))",
        ]
        return r.choice(forms)

    def make_d(self, _: str, depth: int) -> str:
        """A DOUBLE."""
        r = self.random
        forms = [
            f"({self.make('d', depth)} {r.choice('+-*')} {self.number(depth)})",
            f"({self.number(depth)} / NULLIF({self.number(depth)}, 0))",
            f"CAST({self.number(depth)} AS DOUBLE)",
            f"abs({self.make('d', depth)})",
            f"round({self.make('d', depth)}, {r.randrange(3)})",
            f"sqrt({self.make('d', depth)})",
            f"pow({self.make('d', depth)}, 2)",
            f"sign({self.make('d', depth)})",
            f"(- {self.make('d', depth)})",
            f"({self.make('d', depth)} % NULLIF({self.make('d', depth)}, 0))",
            f"({self.make('d', depth)} * {r.choice(LITERALS['m'])})",
        ]
        return r.choice(forms)

    def make_m(self, _: str, depth: int) -> str:
        """A decimal of some digits."""
        r = self.random
        forms = [
            f"({self.make('m', 0)} {r.choice('+-*')} {self.make(r.choice('myi'), 0)})",
            f"abs({self.make('m', depth)})",
            f"(- {self.make('m', depth)})",
        ]
        return r.choice(forms)

    def make_s(self, _: str, depth: int) -> str:
        """A text."""
        r = self.random
        forms = [
            f"({self.make('s', depth)} || {self.make('s', depth)})",
            f"concat({self.make('s', depth)}, {self.make('s', depth)})",
            f"substring({self.make('s', depth)}, {r.randrange(4)}, {r.randrange(4)})",
            f"CAST({self.make(r.choice('yildbmetz'), depth)} AS STRING)",
            f"{r.choice(['upper', 'lower', 'trim', 'reverse'])}({self.make('s', depth)})",
            f"replace({self.make('s', depth)}, 'a', {self.make('s', depth)})",
            f"concat_ws(',', {self.make('s', depth)}, {self.make('s', depth)})",
            f"{r.choice(['lpad', 'rpad'])}({self.make('s', depth)}, 4, '-+')",
            f"{r.choice(['left', 'right', 'substring'])}({self.make('s', depth)}, {self.make('i', depth)})",
            f"regexp_replace({self.make('s', depth)}, '[ab]+', '.')",
            f"split_part({self.make('s', depth)}, 'a', {r.choice([1, 2, -1])})",
        ]
        return r.choice(forms)

    def make_e(self, _: str, depth: int) -> str:
        """A date."""
        r = self.random
        forms = [
            f"date_add({self.make('e', depth)}, {self.make('y', depth)})",
            f"({self.make('e', depth)} - 3)",
            f"last_day({self.make('e', depth)})",
            f"trunc({self.make('e', depth)}, '{r.choice(['MM', 'WEEK', 'YEAR'])}')",
            f"add_months({self.make('e', depth)}, {self.make('y', depth)})",
            f"CAST({self.make(r.choice('tz'), depth)} AS DATE)",
        ]
        return r.choice(forms)

    def make_t(self, _: str, depth: int) -> str:
        """A moment."""
        r = self.random
        forms = [
            f"date_trunc('{r.choice(['HOUR', 'WEEK', 'MONTH'])}', {self.make('t', depth)})",
            f"({self.make('t', depth)} + INTERVAL '{r.randrange(9)}' HOUR)",
            f"CAST({self.make(r.choice('ez'), depth)} AS TIMESTAMP)",
            f"timestamp_seconds({self.make('i', depth)})",
        ]
        return r.choice(forms)


def random_rows(random: Random) -> pa.Table:
    """Rows with edge values and NULLs."""
    columns: dict[str, pa.Array] = {"n": pa.array(range(ROW_COUNT), pa.int32())}
    for kind, type_ in TYPES.items():
        values = [
            VALUES[kind](random) if random.random() > 0.15 else None for _ in range(ROW_COUNT)
        ]
        columns[kind] = pa.array(values, type_)
    return pa.table(columns)


@pytest.fixture(scope="module")
def db() -> Iterator[headwater.Database]:
    with headwater.connect(":memory:") as db:
        yield db


COUNTS = {"drawn": 0, "operators": 0, "raised": 0, "spared by the optimizer": 0}


def by_operators(texts: list[str], rows: pa.Table) -> tuple[dict[str, pa.Array], list[str]]:
    """The values of those that are by operators, and those of them that raise."""
    values: dict[str, pa.Array] = {}
    raised = []
    for text in texts:
        expression = compiled(text, rows.schema)
        if expression is None:
            continue
        try:
            values[text] = expression.evaluate(rows)
        except DataError:
            raised.append(text)
    return values, raised


def differences(oracle: Oracle, values: dict[str, pa.Array]) -> list[Any]:
    """Where Spark answers differently; an error of Spark's is narrowed down to its expression."""
    texts = list(values)
    try:
        answers = oracle.ask(texts)
    except Error as error:
        if len(texts) == 1:
            return [(texts[0], str(error.message))]
        half = len(texts) // 2
        parts = (texts[:half], texts[half:])
        return [x for part in parts for x in differences(oracle, {t: values[t] for t in part})]
    wrong: list[Any] = []
    for text, answer in zip(texts, answers, strict=True):
        mine = values[text]
        if mine.type != answer.type:
            wrong.append((text, str(mine.type), str(answer.type)))
        pairs = enumerate(zip(shown(mine), shown(answer), strict=True))
        wrong += [(text, n, a, b) for n, (a, b) in pairs if a != b][:1]
    return wrong


def error_of(oracle: Oracle, text: str) -> str | None:
    """The SQLSTATE that Spark raises for an expression, None if it answers."""
    try:
        oracle.ask([text])
    except Error as error:
        return error.sqlstate
    return None


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**32))
def test_random_expressions(db: headwater.Database, seed: int) -> None:
    """60 expressions a query: the proven ones have Spark's types and values; what raises in Spark raises."""
    random = Random(seed)
    rows, grammar = random_rows(random), Grammar(random)
    texts = [grammar.make(random.choice(KINDS), random.randrange(1, 4)) for _ in range(EXPRESSIONS)]
    values, raised = by_operators(texts, rows)
    oracle = Oracle(db, rows)
    try:
        assert differences(oracle, values) == []
        for text in raised[:3]:
            sqlstate = error_of(oracle, text)
            assert sqlstate in ("22003", "22012", None), text
            COUNTS["spared by the optimizer"] += sqlstate is None
    finally:
        oracle.close()
    COUNTS["drawn"] += len(texts)
    COUNTS["operators"] += len(values) + len(raised)
    COUNTS["raised"] += len(raised)


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**32))
def test_random_filters(db: headwater.Database, seed: int) -> None:
    """25 filters a query, some with conjuncts that could raise: the rows that Spark's WHERE keeps."""
    random = Random(seed)
    rows, grammar = random_rows(random), Grammar(random)
    kept: dict[str, list[int]] = {}
    for _ in range(FILTERS):
        text = " AND ".join(grammar.make("b", 2) for _ in range(random.randrange(1, 4)))
        with contextlib.suppress(DataError):
            predicate = filter_of(text, rows.schema)
            if predicate is not None:
                kept[text] = filter_rows(rows, predicate)["n"].to_pylist()
    oracle = Oracle(db, rows)
    try:
        parts = [f"SELECT {k} AS k, n FROM t WHERE {text}" for k, text in enumerate(kept)]
        answer = oracle.query(" UNION ALL ".join(parts)).sort_by(
            [("k", "ascending"), ("n", "ascending")]
        )
    finally:
        oracle.close()
    for k, (text, mine) in enumerate(kept.items()):
        assert mine == answer.filter(pc.field("k") == k)["n"].to_pylist(), text
    assert len(kept) * 2 >= FILTERS


def filter_of(text: str, schema: pa.Schema) -> Compiled | None:
    """The filter by operators, None if it is refused."""
    node = parsed(text)
    assert node is not None
    return compile_predicate(node, lambda column: (column.name, schema.field(column.name).type))


def test_most_of_them_needed_no_spark() -> None:
    """The grammar is the whitelist's: at least half is evaluated, and errors are Spark's errors."""
    print(COUNTS)
    assert COUNTS["operators"] * 2 >= COUNTS["drawn"]
    assert COUNTS["spared by the optimizer"] * 4 <= COUNTS["raised"] + 4
