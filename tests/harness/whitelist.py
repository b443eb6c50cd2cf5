"""The whitelist as data: every (operator, types) pair that is evaluated without Spark.

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
_TRIED = tuple((t, t) for t in ("TINYINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)"))
_ORDERED = (*_SAME, *_TRIED[1:3], _TRIED[-1])
COMMON = (*_SAME, *_pairs(NUMBERS), *_EXACT)  # what is brought to one type without a cast
_TOO_LONG = ({"DECIMAL(20,0)"}, {"DECIMAL(20,0)", "BIGINT"})  # more than 38 digits as a product
_PRODUCTS = tuple(pair for pair in _EXACT if set(pair) not in _TOO_LONG)

_MOMENTS = (("TIMESTAMP", "TIMESTAMP"), ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ"))

_CASTS: tuple[tuple[str, Types, bool], ...] = (
    *((type_, INTEGERS, True) for type_ in INTEGERS),
    *((type_, (*FLOATS, *DECIMALS, "STRING"), True) for type_ in INTEGERS),
    *((type_, ("BOOLEAN",), False) for type_ in INTEGERS),
    ("DOUBLE", (*NUMBERS, *DECIMALS), False),
    ("DOUBLE", ("STRING",), True),
    ("FLOAT", (*INTEGERS, "DOUBLE"), False),
    ("STRING", TYPES, False),
    ("BOOLEAN", NUMBERS, False),
    ("BOOLEAN", ("STRING",), True),
    ("DATE", ("TIMESTAMP", "TIMESTAMP_NTZ"), False),
    ("DATE", ("STRING",), True),
    ("TIMESTAMP", ("DATE", "TIMESTAMP_NTZ"), False),
    ("TIMESTAMP_NTZ", ("DATE", "TIMESTAMP"), False),
    ("DECIMAL(10,2)", (*INTEGERS, "DOUBLE", "DECIMAL(20,0)", "STRING"), True),
    ("DECIMAL(38,20)", (*INTEGERS, "DOUBLE", *DECIMALS, "STRING"), True),
    ("DECIMAL(3,1)", (*INTEGERS, "DOUBLE", *DECIMALS, "STRING"), True),
)


def _listed(text: str) -> tuple[str, ...]:
    """What stands between bars."""
    return tuple(part.strip() for line in text.strip().split("\n") for part in line.split(" ¦ "))


_OF_TEXT = _listed(r"""
length({a}) ¦ octet_length({a}) ¦ bit_length({a}) ¦ reverse({a}) ¦ ascii({a}) ¦ upper({a}) ¦ lower({a})
initcap({a}) ¦ trim({a}) ¦ ltrim({a}) ¦ rtrim({a}) ¦ btrim({a}, 'ab') ¦ trim(LEADING 'ab' FROM {a})
trim(TRAILING 'b' FROM {a}) ¦ substring({a}, 2, 3) ¦ substring({a}, -2) ¦ substring({a}, -3, 2)
substring({a}, -1, -1) ¦ substring({a}, 2, -1) ¦ left({a}, 2) ¦ right({a}, 2) ¦ right({a}, -1)
locate('b', {a}, 2) ¦ locate('', {a}, 2) ¦ instr({a}, 'b') ¦ position('b', {a})
replace({a}, 'b', 'xy') ¦ replace({a}, '', 'x') ¦ replace({a}, 'b') ¦ lpad({a}, 5, 'xy')
rpad({a}, 5, '😀y') ¦ lpad({a}, 2) ¦ rpad({a}, 4) ¦ lpad({a}, 1, '') ¦ rpad({a}, -1, 'x')
repeat({a}, 3) ¦ repeat({a}, 0) ¦ repeat({a}, -1) ¦ startswith({a}, 'a') ¦ endswith({a}, 'b')
contains({a}, 'b') ¦ contains({a}, '') ¦ split_part({a}, 'b', 1) ¦ split_part({a}, 'b', -1)
split_part({a}, '', 1) ¦ substring_index({a}, 'b', 1) ¦ substring_index({a}, 'b', -1)
get_json_object({a}, '$.x.y[0]') ¦ json_array_length({a})
sha1({a}) ¦ sha2({a}, 256) ¦ sha2({a}, 512) ¦ crc32({a})
json_array_length(concat('["', {a}, '", [1, 2]]')) ¦ json_object_keys(concat('{{"', {a}, '": 1}}'))[0]
translate({a}, 'abä', 'xy') ¦ concat_ws('-', {a}, 'x', {a}) ¦ concat_ws({a}, 'x', 'y')
""")
_OF_TEXTS = _listed(r"""
concat({a}, {b}, {a}) ¦ concat_ws({a}, {b}, {b}) ¦ concat_ws(',', {a}, {b}) ¦ startswith({a}, {b})
endswith({a}, {b}) ¦ contains({a}, {b}) ¦ instr({a}, {b}) ¦ locate({a}, {b}) ¦ locate({a}, {b}, 2)
replace({a}, {b}, 'x') ¦ replace({a}, 'b', {b}) ¦ split_part({a}, {b}, 2) ¦ lpad({a}, 5, {b})
substring_index({a}, {b}, 1) ¦ equal_null({a}, {b}) ¦ array_position(array({a}, {b}, 'b'), {b})
get_json_object(concat('{{"x": ["', {a}, '", 1.50]}}'), '$.x[0]')
get_json_object(concat('{{"x": "', {a}, '", "y": {{"z": "', {b}, '"}}}}'), '$.y')
array_join(array({a}, {b}, 'x'), ',') ¦ array_join(array({a}, {b}), {b}, '-')
map('x', {a}, 'b', {b})['x'] ¦ element_at(map('a', {a}, 'b', 'c'), {b}) ¦ map_keys(map('x', {a}))[0]
map_values(map('x', {a}, 'y', {b}))[1] ¦ map_contains_key(map('ab', {a}, 'b', {b}), {b})
""")
_LIKES = _listed(r"""
'%b%' ¦ '_b%' ¦ 'a\\%' ¦ '%\\%' ¦ 'xb_z\\%' ¦ 'a%' ESCAPE '/' ¦ '%/%' ESCAPE '/'
""")
EMPTY_PATTERNS = _listed("^ ¦ $ ¦ b* ¦ (a|)b? ¦ ^$ ¦ a?$")  # they can match nothing
PATTERNS = (
    *_listed(r"""
b ¦ a.b ¦ [ab] ¦ ^a ¦ b$ ¦ ^a.*b$ ¦ a|b ¦ [^a] ¦ [a-z]+ ¦ a?b ¦ (ab|b) ¦ b.z ¦ a{{1,2}} ¦ [a-c]{{2}} ¦ \\w
\\d+ ¦ \\s ¦ [\\w%]+ ¦ [^&b]+ ¦ [&a]b ¦ \\. ¦ .+?b ¦ z%$ ¦ (?:ab)+ ¦ ä ¦ 😀
"""),
    *EMPTY_PATTERNS,
)
DATE_PATTERNS = _listed(r"""
yyyy-MM-dd ¦ yyyy-MM-dd HH:mm:ss ¦ yyyyMMdd ¦ d/M/yy h:m:s a ¦ EEE, dd MMM y ¦ EEEE d. MMMM yyyy
HH:mm:ss.SSS ¦ yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS ¦ hh\'\'a S SSSSSSSSS ¦ E EE H
""")
_UNITS = (
    *("YEAR", "YYYY", "QUARTER", "MONTH", "MM", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND"),
)

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
    Entry("*", "100.00 * CAST({a} AS DECIMAL(38, 4))", _each(DECIMALS), can_raise=True),
    Entry("/", "{a} / {b}", (*_pairs(NUMBERS), *_EXACT), can_raise=True),
    Entry("/", "{a} / 7.0", _each(("INT", *DECIMALS)), can_raise=True),
    Entry("/", "3 / {a}", _each(DECIMALS), can_raise=True),
    Entry(
        "/",
        "CAST({a} AS DECIMAL(38, 6)) / CAST({b} AS DECIMAL(38, 4))",
        _pairs(DECIMALS),
        can_raise=True,
    ),
    Entry("%", "{a} % {b}", _pairs(NUMBERS), can_raise=True),
    Entry("try_add", "try_add({a}, {b})", _TRIED),
    Entry("try_subtract", "try_subtract({a}, {b})", _TRIED),
    Entry("try_multiply", "try_multiply({a}, {b})", _TRIED),
    Entry("try_divide", "try_divide({a}, {b})", _TRIED),
    Entry("try_mod", "try_mod({a}, {b})", _TRIED[:-1]),
    Entry("DIV", "{a} DIV {b}", _pairs(INTEGERS), can_raise=True),
    Entry("unary -", "-{a}", _each((*NUMBERS, *DECIMALS)), can_raise=True),
    Entry("abs", "abs({a})", _each((*NUMBERS, *DECIMALS)), can_raise=True),
    Entry("floor", "floor({a})", _each(NUMBERS), can_raise=True),
    Entry("ceil", "ceil({a})", _each(NUMBERS), can_raise=True),
    *(
        Entry(f"CAST AS {type_}", f"CAST({{a}} AS {type_})", _each(types), can_raise=raises)
        for type_, types, raises in _CASTS
    ),
    *(
        Entry(f"TRY_CAST AS {type_}", f"TRY_CAST({{a}} AS {type_})", _each(types))
        for type_, types, raises in _CASTS
        if raises
    ),
    *(Entry(template.partition("(")[0], template, _each(("STRING",))) for template in _OF_TEXT),
    Entry("||", "{a} || {b}", _pairs(("STRING",))),
    *(Entry(template.partition("(")[0], template, _pairs(("STRING",))) for template in _OF_TEXTS),
    *(
        Entry(template.partition("(")[0], template, (("STRING", "INT"), ("STRING", "SMALLINT")))
        for template in ("left({a}, {b})", "right({a}, {b})", "substring({a}, {b})")
    ),
    Entry("substring", "substring({a}, {b}, 2)", (("STRING", "INT"), ("STRING", "TINYINT"))),
    Entry("split_part", "split_part({a}, 'b', {b})", (("STRING", "INT"),), can_raise=True),
    Entry("substring_index", "substring_index({a}, 'b', {b})", (("STRING", "TINYINT"),)),
    *(Entry("LIKE", f"{{a}} LIKE {p}", _each(("STRING",))) for p in _LIKES),
    *(Entry("ILIKE", f"{{a}} ILIKE {p}", _each(("STRING",))) for p in ("'%B%'", "'ÄB'", "'_b'")),
    *(Entry("RLIKE", f"{{a}} RLIKE '{p}'", _each(("STRING",))) for p in PATTERNS),
    *(
        Entry("regexp_extract", f"regexp_extract({{a}}, '{p}', 0)", _each(("STRING",)))
        for p in PATTERNS
    ),
    Entry("regexp_extract", "regexp_extract({a}, '(a|^)b([^&]*)', 2)", _each(("STRING",))),
    *(
        Entry("regexp_replace", f"regexp_replace({{a}}, '{p}', '<>')", _each(("STRING",)))
        for p in PATTERNS
        if p not in EMPTY_PATTERNS
    ),
    *(
        Entry("split", f"size(split({{a}}, '{p}'))", _each(("STRING",)))
        for p in PATTERNS
        if p not in EMPTY_PATTERNS
    ),
    Entry("split", "split({a}, 'b')[0]", _each(("STRING",))),
    *(
        Entry(name, f"{name}({{a}})", _each(TIMES))
        for name in ("year", "quarter", "month", "day", "dayofmonth", "weekofyear", "dayofweek")
    ),
    *(Entry(name, f"{name}({{a}})", _each(TIMES)) for name in ("dayofyear", "weekday")),
    *(
        Entry(name, f"{name}({{a}})", _each(("TIMESTAMP", "TIMESTAMP_NTZ")))
        for name in ("hour", "minute", "second")
    ),
    *(
        Entry("extract", f"extract({part} FROM {{a}})", _each(TIMES))
        for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY")
    ),
    Entry("extract", "extract(HOUR FROM {a})", _each(("TIMESTAMP", "TIMESTAMP_NTZ"))),
    Entry("date_part", "date_part('MINUTE', {a})", _each(("TIMESTAMP", "TIMESTAMP_NTZ"))),
    *(
        Entry("date_trunc", f"date_trunc('{unit}', {{a}})", _each(("TIMESTAMP",)))
        for unit in _UNITS
    ),
    *(
        Entry("trunc", f"trunc({{a}}, '{unit}')", _each(("DATE",)))
        for unit in ("YEAR", "YYYY", "QUARTER", "MONTH", "MM", "WEEK")
    ),
    *(
        Entry(template.partition("(")[0], template, (("DATE", "TINYINT"), ("DATE", "SMALLINT")))
        for template in ("date_add({a}, {b})", "date_sub({a}, {b})", "add_months({a}, {b})")
    ),
    Entry("date_add", "date_add({a}, 40)", _each(("DATE",))),
    Entry("date_sub", "date_sub({a}, 40)", _each(("DATE",))),
    Entry("add_months", "add_months({a}, -13)", _each(("DATE",))),
    Entry("DATE + number", "{a} + {b}", (("DATE", "TINYINT"), ("DATE", "SMALLINT"))),
    Entry("DATE + number", "{a} + 1", _each(("DATE",))),
    Entry("DATE - number", "{a} - 366", _each(("DATE",))),
    Entry("datediff", "datediff({a}, {b})", _pairs(TIMES)),
    *(
        Entry("timestampdiff", f"timestampdiff({unit}, {{a}}, {{b}})", _SAME[-2:])
        for unit in ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
    ),
    Entry("last_day", "last_day({a})", _each(("DATE",))),
    Entry("make_date", "make_date({a}, {b}, {b})", (("INT", "TINYINT"),), can_raise=True),
    Entry("make_date", "make_date({b} + 2000, 2, {a})", (("TINYINT", "TINYINT"),), can_raise=True),
    *(
        Entry(name, f"{name}({{a}})", _each(("TIMESTAMP",)))
        for name in ("unix_timestamp", "unix_seconds", "unix_millis", "unix_micros")
    ),
    Entry("unix_date", "unix_date({a})", _each(("DATE",))),
    Entry("date_from_unix_date", "date_from_unix_date({a})", _each(("SMALLINT", "TINYINT"))),
    *(
        Entry(name, f"{name}({{a}})", _each(("INT", "SMALLINT")), can_raise=True)
        for name in ("timestamp_seconds", "timestamp_millis", "timestamp_micros")
    ),
    *(
        Entry(
            "time + interval", f"{{a}} + INTERVAL {length}", _each(("TIMESTAMP", "TIMESTAMP_NTZ"))
        )
        for length in ("'1' DAY", "36 HOURS", "'90' SECOND", "'0.5' SECOND", "40 MINUTES")
    ),
    Entry("time - interval", "{a} - INTERVAL '3' DAY", _each(("TIMESTAMP", "TIMESTAMP_NTZ"))),
    *(
        Entry("DATE + interval", f"{{a}} + INTERVAL {length}", _each(("DATE",)))
        for length in ("90 DAYS", "'1' MONTH", "'14' MONTH", "'4' YEAR")
    ),
    *(
        Entry("DATE - interval", f"{{a}} - INTERVAL {length}", _each(("DATE",)))
        for length in ("'366' DAY", "1 MONTH", "3 YEARS")
    ),
    *(
        Entry("date_format", f"date_format({{a}}, '{pattern}')", _each(("TIMESTAMP",)))
        for pattern in DATE_PATTERNS
    ),
    *(Entry(name, f"{name}({{a}})", _each(TIMES)) for name in ("dayname", "monthname")),
    Entry("from_unixtime", "from_unixtime({a})", _each(INTEGERS)),
    Entry("from_unixtime", "from_unixtime({a}, 'yyyy-MM-dd HH:mm')", _each(("BIGINT",))),
    Entry("to_date", "to_date({a})", _each(("STRING",)), can_raise=True),
    Entry("round", "round({a})", _each(("DOUBLE", *INTEGERS, *DECIMALS))),
    Entry("round", "round({a}, 1)", _each(("DOUBLE", *INTEGERS, *DECIMALS))),
    Entry("bround", "bround({a}, 1)", _each(("DOUBLE", *INTEGERS, *DECIMALS))),
    Entry("bround", "bround({a})", _each(("DOUBLE", *DECIMALS))),
    Entry("sqrt", "sqrt({a})", _each(NUMBERS)),
    Entry("power", "power({a}, 2)", _each(NUMBERS)),
    Entry("sign", "sign({a})", _each(NUMBERS)),
    *(
        Entry(name, f"{name}({{a}})", _each(NUMBERS))
        for name in ("exp", "ln", "log", "log10", "log2")
    ),
    Entry("log", "log({a}, {b})", _pairs(("INT", "DOUBLE"))),
    Entry("pmod", "pmod({a}, {b})", _pairs(INTEGERS), can_raise=True),
    Entry("isnan", "isnan({a})", _each(FLOATS)),
    *(Entry(symbol, f"{{a}} {symbol} {{b}}", _pairs(INTEGERS)) for symbol in ("&", "|", "^")),
    Entry("~", "~{a}", _each(INTEGERS)),
    Entry("nvl2", "nvl2({a}, {b}, {a})", COMMON),
    Entry("decode", "decode({a}, {b}, 1, NULL, 2, 3)", COMMON),
    Entry("zeroifnull", "zeroifnull({a})", _each((*NUMBERS, *DECIMALS))),
    Entry("nullifzero", "nullifzero({a})", _each((*NUMBERS, *DECIMALS))),
    Entry("isnull", "isnull({a})", _each(TYPES)),
    Entry("isnotnull", "isnotnull({a})", _each(TYPES)),
    Entry("array_contains", "array_contains(array({a}, {b}, {a}), {b})", _pairs(("STRING",))),
    Entry("array", "array({a}, {b})[1]", COMMON),
    Entry("struct", "struct({a} AS x, {b} AS y).y", COMMON),
    Entry("array", "size(array({a}, {b}))", COMMON),
    Entry("element_at", "element_at(array({a}, {b}), -2)", COMMON),
    Entry("get", "get(array({a}, {b}), 2)", COMMON),
    Entry("try_element_at", "try_element_at(array({a}, {b}), 3)", _ORDERED),
    Entry("try_element_at", "try_element_at(array({a}, {b}), -1)", _ORDERED),
    Entry("map", "map(1, {a}, 2, {b})[2]", _ORDERED),
    *(
        Entry(name, f"{name}(array({{a}}, {{b}}, {{a}}))", _ORDERED)
        for name in ("array_max", "array_min")
    ),
)
