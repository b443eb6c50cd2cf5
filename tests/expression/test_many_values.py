"""Functions over many values against Spark: all letters, texts that are values or not, odd doubles."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.errors import DataError
from headwater.sql.types import TIMESTAMP
from tests.expression.evaluation import RAISED, Oracle, compiled, row_by_row, shown
from tests.harness.whitelist import DATE_PATTERNS

SEED = 20


@pytest.fixture(scope="module")
def db() -> Iterator[headwater.Database]:
    with headwater.connect(":memory:") as db:
        yield db


def compare(db: headwater.Database, rows: pa.Table, expressions: list[tuple[str, str]]) -> None:
    """Expressions by operators, and what Spark is asked in their place: NULL of a value is an error there."""
    numbered = rows.append_column("n", pa.array(range(rows.num_rows), pa.int32()))
    oracle = Oracle(db, numbered)
    try:
        answers = oracle.ask([asked for _, asked in expressions])
    finally:
        oracle.close()
    wrong: list[Any] = []
    for (text, asked), answer in zip(expressions, answers, strict=True):
        ours = compiled(text, numbered.schema)
        assert ours is not None, text
        assert ours.type == answer.type, text
        if text == asked:
            mine, theirs = shown(ours.evaluate(numbered)), shown(answer)
        else:
            (column,) = ours.columns
            given = numbered[column].is_valid().to_pylist()
            mine = row_by_row(ours, numbered)
            pairs = zip(shown(answer), given, strict=True)
            theirs = [RAISED if value == "None" and there else value for value, there in pairs]
        values = numbered[next(iter(ours.columns))]
        pairs_ = enumerate(zip(mine, theirs, strict=True))
        wrong += [(text, values[n].as_py(), a, b) for n, (a, b) in pairs_ if a != b][:20]
    assert wrong == [], f"{len(wrong)} differ: {wrong[:30]}"


def test_the_case_of_every_character(db: headwater.Database) -> None:
    """All of Unicode, one character a row."""
    places = [n for n in range(1, 0x110000) if not 0xD800 <= n < 0xE000]
    rows = pa.table({"s": pa.array([chr(n) for n in places])})
    compare(db, rows, [(f"{name}(s)", f"{name}(s)") for name in ("upper", "lower", "initcap")])


def test_the_case_of_words(db: headwater.Database) -> None:
    """A sigma at the end of a word, letters that become several, marks between them."""
    random = Random(SEED)
    letters = "Σσςα a.'\u0345\u0301ß İıiIŉǰΐﬁ\u00adΣA:-\u2019’😀𐐀Ǆǅ\u0130"
    words = [
        "".join(random.choice(letters) for _ in range(random.randrange(1, 7))) for _ in range(6000)
    ]
    texts = [
        *("upper(s)", "lower(s)", "initcap(s)"),
        *(f"s ILIKE '{p}'" for p in ("%σ%", "a%", "%ς", "_ß%", "%I%")),
    ]
    compare(db, pa.table({"s": pa.array(words)}), [(text, text) for text in texts])


NUMERALS = """
0 | 1 | -1 | +1 | 007 | -0 | 127 | 128 | -128 | -129 | 32767 | 32768 | 2147483647 | 2147483648 | -2147483648
9223372036854775807 | 9223372036854775808 | -9223372036854775808 | 1.0 | 1. | .5 | . | - | + | +-1 | 1e3
1E-3 | 1e | e1 | 1e400 | -1e400 | 1e-400 | 0.1 | 1d | 1f | 1D | 1.5F | 1l | 0x1p3 | 0x10 | NaN | nan
Infinity | -Infinity | inf | INF | +inf | -Inf | 1_000 | 1,5 | ١ | 12 34 | true | TRUE | t | T | yes | y | no
n | f | false | False | on | off | 0.5 | 99.95 | 9.95 | 9.949 | -9.95 | 99.949 | 1e1 | 123456789.12345
0.00000000000000000001 | 99999999999999999999999999999999999999 | 1e37 | 1e38 | 1.005 | 4.9e-324 | 2.5e-324
1.7976931348623157e308 | 1.7976931348623159e308 | 12345678901234567890 | 0.1e1 | 00.00 | 1e+5 | 1e+05
0e50 | 0e99999 | 1e99999 | 1e-99999 | 1e1000000000 | -1e99999999999 | 1e-99999999999
"""
DATES = """
2024 | 2024-02 | 2024-2 | 2024-02-29 | 2023-02-29 | 2024-2-9 | 2024-13-01 | 2024-00-01 | 2024-01-00
2024-01-32 | 24-01-01 | 02024-01-01 | +2024-01-01 | -2024-01-01 | 12024-01-01 | 2024-01-01 | 2024-01-01T
2024-01-01 x | 2024-01-01T10:00:00 | 2024-01-01 10:00 | 2024-01-01x | 2024-01-01Z | 2024-001-01
2024-01-001 | 2024/01/01 | 20240101 | 2024-01- | 2024- | - | 0001-01-01 | 0000-01-01 | 9999-12-31
10000-01-01 | 1582-10-10 | today | epoch | now | 2024-02-30 | 1900-02-29 | 2000-02-29 | 5881580-07-11
5881580-07-12 | -5877641-06-23 | ٢٠٢٤-01-01 | 2024-W01 | Jan 1 2024 | 2024-01-01\t | 2024 -01 | 1-1-1
999999-01-01 | 9999999-01-01 | 12345678-01-01
"""


def listed(text: str) -> list[str | None]:
    words: list[str | None] = [
        w.strip(" ") for line in text.strip().split("\n") for w in line.split(" | ")
    ]
    around = [
        " 1",
        "1 ",
        "\t1\n",
        "\x001",
        "1\x7f",
        "\u00a01",
        "\u20031",
        "\x851",
        "\x0b1",
        "",
        " ",
        " true ",
        " 2024 ",
    ]
    return [*words, *around, None]


def test_texts_that_are_values_or_not(db: headwater.Database) -> None:
    """Every cast of text, value by value and error by error."""
    types = (
        "TINYINT SMALLINT INT BIGINT DOUBLE BOOLEAN DATE DECIMAL(10,2) DECIMAL(38,0) DECIMAL(38,38)"
    )
    casts = [(f"CAST(s AS {t})", f"TRY_CAST(s AS {t})") for t in [*types.split(), "DECIMAL(3,1)"]]
    rows = pa.table({"s": pa.array([*listed(NUMERALS), *listed(DATES)])})
    compare(db, rows, [*casts, ("to_date(s)", "TRY_CAST(s AS DATE)")])


def odd_doubles() -> list[float]:
    """Doubles of all sizes, ties of rounding, edges of the integers."""
    random = Random(SEED)
    bits = [struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0] for _ in range(1500)]
    near = [random.uniform(-1000, 1000) for _ in range(500)]
    ties = (
        [n / 8 for n in range(-50, 50)]
        + [n + 0.005 for n in range(-20, 20)]
        + [2.675, 1.005, 0.285]
    )
    sizes = [m * 10.0**e for e in range(-12, 20) for m in (1, 9.999999, 1.2345678901234567)]
    edges = [2.0**n + d for n in (7, 8, 15, 31, 53, 63) for d in (-1, -0.5, 0, 0.5, 1)]
    tiny = [5e-324 * n for n in range(1, 40)]
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e23, 9.5e-3, 1e-3, 1e7, 123456789.0]
    return [*bits, *near, *ties, *sizes, *edges, *(-e for e in edges), *tiny, *special]


def test_doubles(db: headwater.Database) -> None:
    """Written, rounded, cast, rooted and squared."""
    plain = [
        *("CAST(d AS STRING)", "CAST(d AS FLOAT)", "CAST(d AS BOOLEAN)", "sqrt(d)", "pow(d, 2)"),
        *("sign(d)", "round(d)", "round(d, 2)", "round(d, 15)", "bround(d)", "bround(d, 2)"),
        *("isnan(d)", "exp(d)", "ln(d)", "log10(d)", "log2(d)", "log(3, d)", "exp(d % 750)"),
        *("log(d, 7)", "exp(d % 1)", "ln(1 + d % 1)", "log10(abs(d) % 1000)"),
    ]
    types = (
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "DECIMAL(10,2)",
        "DECIMAL(38,10)",
        "DECIMAL(20,20)",
    )
    casts = [(f"CAST(d AS {t})", f"TRY_CAST(d AS {t})") for t in types]
    rows = pa.table({"d": pa.array(odd_doubles(), pa.float64())})
    compare(db, rows, [*((text, text) for text in plain), *casts])


def test_floats(db: headwater.Database) -> None:
    """Written and cast."""
    random = Random(SEED)
    bits = [struct.unpack("<f", struct.pack("<I", random.getrandbits(32)))[0] for _ in range(2000)]
    tiny = [1.401298464324817e-45 * n for n in range(1, 40)]
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 1e10, 1e-5, 33554432.0, 16777216.0]
    special += [sign * 2.0**n for n in (7, 15, 31, 63) for sign in (1, -1)]
    rows = pa.table({"f": pa.array([*bits, *tiny, *special], pa.float32())})
    plain = [
        (t, t) for t in ("CAST(f AS STRING)", "CAST(f AS DOUBLE)", "CAST(f AS BOOLEAN)", "sqrt(f)")
    ]
    casts = [
        (f"CAST(f AS {t})", f"TRY_CAST(f AS {t})") for t in ("TINYINT", "SMALLINT", "INT", "BIGINT")
    ]
    compare(db, rows, [*plain, *casts])


def test_days_and_moments(db: headwater.Database) -> None:
    """Every day around the turns of years, and moments between: fields, truncation, months, text."""
    random = Random(SEED)
    turns = [
        (y - 1970) * 365 + (y - 1969) // 4
        for y in (1, 4, 100, 400, 1582, 1600, 1900, 1970, 2000, 2024, 9990)
    ]
    days = [turn + n for turn in turns for n in range(-40, 420, 3)]
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    micros = [day * 86_400_000_000 + random.randrange(86_400_000_000) for day in days]
    rows = pa.table({"e": dates, "t": pa.array(micros, pa.int64()).cast(TIMESTAMP)})
    fields = [
        "year",
        "quarter",
        "month",
        "day",
        "weekofyear",
        "dayofweek",
        "dayofyear",
        "weekday",
        "last_day",
    ]
    texts = [f"{name}(e)" for name in fields] + [
        f"{name}(t)" for name in [*fields[:-1], "hour", "second"]
    ]
    texts += [f"trunc(e, '{unit}')" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK")]
    texts += [
        f"date_trunc('{unit}', t)" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")
    ]
    texts += [f"add_months(e, {n})" for n in (1, -1, 12, -25, 1200)] + [
        "CAST(t AS STRING)",
        "CAST(e AS STRING)",
    ]
    texts += [f"date_format(t, '{pattern}')" for pattern in DATE_PATTERNS]
    texts += ["unix_timestamp(t)", "unix_millis(t)", "CAST(t AS DATE)", "CAST(e AS TIMESTAMP)"]
    compare(db, rows, [(text, text) for text in texts])


JSON = r"""
{"a":1} | {"a":1.50} | {"a":1e5} | {"a":1E-7} | {"a":-0} | {"a":-0.0} | {"a":1e400} | {"a":-1e400}
{"a":12345678901234567890123} | {"a":0.1234567890123456789} | {"a":9007199254740993.0} | {"a":100000000.0}
{"a":"x"} | {"a":"x\"y\\z\/\b\f\n\r\t\u0041\u00e9"} | {"a":null} | {"a":true} | {"a":[1, 2 ,{"b":"c"}]}
{"a":{"b":[null,"q"]}} | {'a':'x'} | {'a':'it\'s "q"'} | {"a":"it\'s"} | {"a":1,"a":2} | {"a":null,"a":2}
{"a":{"c":1},"a":{"b":2}} | {"a":[],"b":1} | [1,2] | [null] | [{"a":3}] | "a" | 1 | null | {} | {"a":1} x
{"a":1}} | {"a":1, x} | {"a":1,} | {"a":1 | {"a":01} | {"a":+1} | {"a":.5} | {"a":5.} | {"a":NaN}
{"a":Infinity} | {"a":1e-400}
{a:1} | {"a" : 1 , "b" : { "b" : 2 } } | {"a":"\x"} | {"a":"\ud83d\ude00"} | {"a":"\ud83d"} | {"a":["\ud83d"]}
{"b":"\ud83d","a":1} | {"a":["\ude00\ud83d\ud83d\ude00"]} | {"a":"😀ä"} | {"a":{"b":"😀\u0001\u007f\u2028"}}
{"a":tru} | {"a":TRUE} | {"a":"1" "b"} | {"":1} | {"a b":1} | {"a.b":2} | {"a":1/**/} | {"a":1e} | {"a":--1}
{"a":'x" | {"a":"x'} | {"a":1}' | {'a':1}" | {"a":'é\u00e9'} | {"a":"\u00ZZ"} | {"a":[[1,2],[3]]} | {"a":-}
{"a":{"x":[1.10,"s",null,true,{}]}} | {"A":7} | {"a":1 2} | {"a":{"\ud83d":"\u0007"}}
"""
PATHS = "$.a | $.a.b | $.a[0] | $[0] | $.a[1] | $[0].a | $.b | $.a.b[1] | $.a[2].b | $.a.x | $.b.b | $[1]"


def json_texts() -> list[str | None]:
    """Texts that are JSON or nearly: of the list, at the bounds of Jackson, and with letters changed."""
    random = Random(SEED)
    texts = [text for line in JSON.strip().split("\n") for text in line.split(" | ")]
    odd = [
        "",
        " ",
        '\ufeff{"a":1}',
        '\u00a0{"a":1}',
        '\t\n\r {"a":1}',
        '\x0b{"a":1}',
        '{"a":"\x00\t"}',
    ]
    digits = [
        f'{{"a":{first}{"9" * n}}}' for first in ("", "-", "1.") for n in (998, 999, 1000, 1001)
    ]
    names = [f'{{"{"n" * n}":1,"a":2}}' for n in (49_999, 50_000, 50_001)]
    deep = [f'{{"a":{"[" * n}{"]" * n}}}' for n in (10, 300)]
    changed = []
    for _ in range(1000):
        text = random.choice([text for text in texts if len(text) > 9])
        for _ in range(random.randrange(1, 4)):
            place, letter = (
                random.randrange(len(text)),
                random.choice("{}[]\",:'\\ 019.eE-+tfnul\n\tb"),
            )
            text = (
                text[:place] + random.choice([letter, letter + text[place], ""]) + text[place + 1 :]
            )
            text = text or "{"
        changed.append(text)
    return [None, *texts, *odd, *digits, *names, *deep, *changed]


def test_parts_of_json(db: headwater.Database) -> None:
    """Read, taken and written again as Jackson does it, or NULL where it is no JSON."""
    paths = [*(f"'{path}'" for path in PATHS.split(" | ")), "\"$['a b']\"", "\"$['a']['b']\""]
    texts = [*(f"get_json_object(s, {path})" for path in paths), "json_array_length(s)"]
    texts += ["get(json_object_keys(s), 0)", "size(json_object_keys(s))"]
    compare(db, pa.table({"s": pa.array(json_texts())}), [(text, text) for text in texts])


def test_json_that_is_nested_too_deeply_is_left_to_spark() -> None:
    rows = pa.table({"s": [f'{{"a":{"[" * 5000}{"]" * 5000}}}']})
    found = compiled("get_json_object(s, '$.b')", rows.schema)
    assert found is not None
    with pytest.raises(DataError, match="too deeply"):
        found.evaluate(rows)


ATOMS = [
    "a",
    "b",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    "[a-c]",
    "(a)",
    "(?:ab)",
    "(a|b)",
    "(a|bc)",
    "\\\\w",
    "\\\\d",
    "\\\\s",
    "x",
]


def random_pattern(random: Random) -> str:
    """A pattern of the part that is known to be alike."""
    parts = [random.choice(ATOMS) + random.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?", "*?"])
             for _ in range(random.randrange(1, 5))]  # fmt: skip
    return random.choice(["", "", "^"]) + "".join(parts) + random.choice(["", "", "$"])


def test_random_patterns(db: headwater.Database) -> None:
    """Searched, taken out, replaced and split by, over random texts with line ends."""
    random = Random(SEED)
    letters = "aabbc1& \n\r\u2028x\u0085"
    words = [
        "".join(random.choice(letters) for _ in range(random.randrange(0, 9))) for _ in range(400)
    ]
    forms = ["s RLIKE '{}'", "regexp_extract(s, '{}', 0)", "regexp_extract(s, '{}', 1)"]
    forms += [
        "regexp_replace(s, '{}', '<>')",
        "concat_ws('|', split(s, '{}')[0], 'x')",
        "size(split(s, '{}'))",
    ]
    schema = pa.schema({"s": pa.string()})
    texts = []
    for _ in range(120):
        pattern = random_pattern(random)
        drawn = [form.format(pattern) for form in forms]
        texts += [text for text in drawn if compiled(text, schema) is not None]
    assert len(texts) > 200
    compare(db, pa.table({"s": pa.array(words)}), [(text, text) for text in texts])


def test_quotients_of_decimals(db: headwater.Database) -> None:
    """Rounded as Spark rounds, whatever digits the operands have; ties of the last digit too."""
    random = Random(SEED)
    types = {"a": (12, 2), "b": (38, 10), "c": (5, 4), "d": (20, 0)}
    columns = {
        name: pa.array(
            [Decimal(_digits(random, digits)).scaleb(-scale) for _ in range(300)],
            pa.decimal128(digits, scale),
        )
        for name, (digits, scale) in types.items()
    }
    texts = [f"{one} / {other}" for one in types for other in types]
    texts += ["a / 8", "a / 16.0", "b / 128", "7 / a", "a / 3 / c", "100.00 * d / a"]
    compare(db, pa.table(columns), [(text, text) for text in texts])


def _digits(random: Random, most: int) -> int:
    """A number with some of its digits, never 0."""
    return random.choice((-1, 1)) * random.randrange(1, 10 ** random.randint(1, min(most, 20)))


OF_NESTED = [
    *(
        "s.f",
        "s.g.H",
        "S.F + 1",
        "size(a)",
        "size(m)",
        "cardinality(w)",
        "m['k']",
        "m['z']",
        "k[1]",
    ),
    *("array_contains(a, 1)", "array_contains(a, 3)", "array_contains(w, 'a')", "get(a, i)"),
    *("get(a, 0) + 1", "element_at(m, 'k')", "s IS NULL", "a IS NOT NULL", "upper(s.g.h)"),
    *("k[i]", "map_contains_key(m, 'k')", "map_contains_key(k, i)", "size(map_keys(m))"),
    *(
        "get(map_keys(m), 0)",
        "get(map_values(m), 0)",
        "get(map_values(k), i)",
        "try_element_at(k, i)",
    ),
    *("array_position(a, i)", "array_max(a)", "array_min(w)", "array_join(w, '-')"),
    *("array_join(w, '-', '?')", "try_element_at(a, -1)", "try_element_at(a, 3)"),
]


def test_parts_of_nested_columns(db: headwater.Database) -> None:
    """Fields of structs, elements of arrays, values of maps; a place that is missing raises."""
    types = {
        "s": pa.struct({"f": pa.int32(), "G": pa.struct({"h": pa.string()})}),
        "a": pa.list_(pa.field("element", pa.int32())),
        "w": pa.list_(pa.field("element", pa.string())),
        "m": pa.map_(pa.string(), pa.int64()),
        "k": pa.map_(pa.int32(), pa.string()),
        "i": pa.int32(),
    }
    rows = pa.Table.from_pylist(
        [
            {
                "s": {"f": 1, "G": {"h": "x"}},
                "a": [1, None, 3],
                "w": ["a"],
                "m": [("k", 1)],
                "i": 0,
            },
            {"s": {"f": None, "G": None}, "a": [], "w": [None], "m": [("k", None)], "i": 1},
            {"s": None, "a": None, "w": None, "m": None, "k": None, "i": None},
            {"s": {"f": 2, "G": {"h": None}}, "a": [5], "w": ["b", "a"], "m": [], "i": -1},
            {"a": [None], "k": [(1, "one"), (2, None)], "m": [("x", 7), ("k", 8)], "i": 2},
        ],
        schema=pa.schema(types),
    )
    compare(db, rows, [(text, text) for text in OF_NESTED])
    raising = {
        "a[0]": "get(a, 0)",
        "a[i]": "get(a, i)",
        "element_at(a, -1)": "try_element_at(a, -1)",
    }
    numbered = rows.append_column("n", pa.array(range(rows.num_rows), pa.int32()))
    oracle = Oracle(db, numbered)
    try:
        answers = oracle.ask([*raising.values(), "size(a)"])
    finally:
        oracle.close()
    sizes = answers.pop().to_pylist()
    for text, answer in zip(raising, answers, strict=True):
        ours = compiled(text, numbered.schema)
        assert ours is not None
        places = numbered["i"].to_pylist() if "i" in ours.columns else [0] * len(sizes)
        missing = [
            size is not None and place is not None and not 0 <= place < size
            for size, place in zip(sizes, places, strict=True)
        ]
        theirs = [
            RAISED if gone else value for gone, value in zip(missing, shown(answer), strict=True)
        ]
        assert row_by_row(ours, numbered) == theirs, text
