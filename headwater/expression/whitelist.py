"""The whitelist as data: every (operator, types) pair that is evaluated in line.

Owns: the list that tests go through against Spark and that the documentation shows. `{a}`, `{b}`
and `{c}` stand for operands of the types. Must never: name a pair that no test compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FLOATS = ("FLOAT", "DOUBLE")
DECIMALS = ("DECIMAL(10,2)", "DECIMAL(20,0)")  # for any DECIMAL(p,s)
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
NUMBERS = (*INTEGERS, *FLOATS)
TYPES = ("BOOLEAN", *NUMBERS, *DECIMALS, "STRING", *TIMES)

Types = tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """An operator as SQL text with places for operands, and the types they may have."""

    operator: str
    template: str
    types: tuple[Types, ...]
    can_raise: bool = False


def _each(types: Types) -> tuple[Types, ...]:
    return tuple((type_,) for type_ in types)


def _pairs(*kinds: Types) -> tuple[Types, ...]:
    return tuple(pair for kind in kinds for pair in product(kind, kind))


_SAME = tuple((type_, type_) for type_ in ("BOOLEAN", "STRING", *TIMES))
_EXACT = tuple(
    pair for pair in product((*INTEGERS, *DECIMALS), repeat=2) if not set(pair) <= set(INTEGERS)
)
COMMON = (*_SAME, *_pairs(NUMBERS), *_EXACT)  # what is brought to one type without a cast
_TOO_LONG = ({"DECIMAL(20,0)"}, {"DECIMAL(20,0)", "BIGINT"})  # more than 38 digits as a product
_PRODUCTS = tuple(pair for pair in _EXACT if set(pair) not in _TOO_LONG)

_MOMENTS = (("TIMESTAMP", "TIMESTAMP"), ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ"))

WHITELIST: tuple[Entry, ...] = (
    Entry("column", "{a}", _each(TYPES)),
    *(
        Entry(symbol, f"{{a}} {symbol} {{b}}", COMMON)
        for symbol in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    ),
    *(
        Entry("elapsed time", f"{{a}} - {{b}} < INTERVAL {length}", _MOMENTS)
        for length in ("'0.2' SECOND", "90 SECONDS", "'5' MINUTE", "36 HOURS", "'40000' DAY")
    ),
    Entry("IS DISTINCT FROM", "{a} IS DISTINCT FROM {b}", COMMON),
    Entry("IS NULL", "{a} IS NULL", _each(TYPES)),
    Entry("IS NOT NULL", "{a} IS NOT NULL", _each(TYPES)),
    *(
        Entry(f"IS {word}", f"{{a}} IS {word}", _each(("BOOLEAN",)))
        for word in ("TRUE", "FALSE", "NOT TRUE", "NOT FALSE")
    ),
    Entry("NOT", "NOT {a}", _each(("BOOLEAN",))),
    Entry("AND", "{a} AND {b}", _pairs(("BOOLEAN",))),
    Entry("OR", "{a} OR {b}", _pairs(("BOOLEAN",))),
    Entry("BETWEEN", "{b} BETWEEN {a} AND {b}", COMMON),
    Entry("NOT BETWEEN", "{a} NOT BETWEEN {b} AND {a}", COMMON),
    Entry("CASE", "CASE WHEN {a} < {b} THEN {a} WHEN {a} > {b} THEN {b} END", COMMON),
    Entry("CASE value", "CASE {a} WHEN {b} THEN 1 WHEN {a} THEN 2L ELSE NULL END", COMMON),
    Entry("IF", "IF({a} < {b}, {a}, {b})", COMMON),
    Entry("COALESCE", "COALESCE({a}, {b})", COMMON),
    Entry("NULLIF", "NULLIF({a}, {b})", COMMON),
    Entry("GREATEST", "GREATEST({a}, {b}, {a})", COMMON),
    Entry("LEAST", "LEAST({a}, {b})", COMMON),
    Entry("+", "{a} + {b}", (*_pairs(NUMBERS), *_EXACT), can_raise=True),
    Entry("-", "{a} - {b}", (*_pairs(NUMBERS), *_EXACT), can_raise=True),
    Entry("*", "{a} * {b}", (*_pairs(NUMBERS), *_PRODUCTS), can_raise=True),
    Entry("/", "{a} / {b}", _pairs(NUMBERS), can_raise=True),
    Entry("%", "{a} % {b}", _pairs(NUMBERS), can_raise=True),
    Entry("DIV", "{a} DIV {b}", _pairs(INTEGERS), can_raise=True),
    Entry("unary -", "-{a}", _each((*NUMBERS, *DECIMALS)), can_raise=True),
    Entry("abs", "abs({a})", _each((*NUMBERS, *DECIMALS)), can_raise=True),
    Entry("floor", "floor({a})", _each(NUMBERS), can_raise=True),
    Entry("ceil", "ceil({a})", _each(NUMBERS), can_raise=True),
    *(
        Entry(f"CAST AS {type_}", f"CAST({{a}} AS {type_})", _each(INTEGERS), can_raise=True)
        for type_ in INTEGERS
    ),
    Entry("CAST AS INT", "CAST({a} AS INT)", _each(("DOUBLE",)), can_raise=True),
    Entry("CAST AS BIGINT", "CAST({a} AS BIGINT)", _each(("DOUBLE",)), can_raise=True),
    Entry("CAST AS DOUBLE", "CAST({a} AS DOUBLE)", _each(NUMBERS)),
    Entry("CAST AS DATE", "CAST({a} AS DATE)", _each(("TIMESTAMP", "TIMESTAMP_NTZ"))),
    Entry("CAST AS STRING", "CAST({a} AS STRING)", _each((*INTEGERS, "STRING"))),
    Entry("length", "length({a})", _each(("STRING",))),
    Entry("||", "{a} || {b}", _pairs(("STRING",))),
    Entry("concat", "concat({a}, {b}, {a})", _pairs(("STRING",))),
    Entry("substring", "substring({a}, 2, 3)", _each(("STRING",))),
    Entry("LIKE", "{a} LIKE '%b%'", _each(("STRING",))),
    Entry("NOT LIKE", "{a} NOT LIKE '_b%'", _each(("STRING",))),
    *(
        Entry(name, f"{name}({{a}})", _each(("DATE", "TIMESTAMP_NTZ")))
        for name in ("year", "month", "day", "dayofmonth", "weekofyear")
    ),
    *(
        Entry(name, f"{name}({{a}})", _each(("TIMESTAMP_NTZ",)))
        for name in ("hour", "minute", "second")
    ),
)
