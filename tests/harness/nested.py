"""Every type that tables hold, nested up to three deep: types, rows of them, and random ones."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headwater.sql.types import name_of
from headwater.storage.door import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME

# Each primitive type, with its smallest and largest values and those that are easily got wrong.
PRIMITIVES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "i1": (pa.int8(), [-128, 127]),
    "i2": (pa.int16(), [-(1 << 15), (1 << 15) - 1]),
    "i4": (pa.int32(), [-(1 << 31), (1 << 31) - 1]),
    "i8": (pa.int64(), [-(1 << 63), (1 << 63) - 1]),
    "f4": (pa.float32(), [1.5, float("-inf")]),
    "f8": (pa.float64(), [float("nan"), -0.0]),
    "s": (pa.string(), ["", 'é"\n\\']),
    "y": (pa.binary(), [b"", b"\x00\xff"]),
    "d": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    ),
    "n": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2026, 11, 17, 8, 0, 0, 5000)]),
    "m": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789")]),
    "c": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.00")]),
}
LEAVES = pa.struct([(name, type_) for name, (type_, _) in PRIMITIVES.items()])
FIRST = {name: values[0] for name, (_, values) in PRIMITIVES.items()}
LAST = {name: values[-1] for name, (_, values) in PRIMITIVES.items()}
NULLS: dict[str, Any] = dict.fromkeys(PRIMITIVES)


def listed(type_: pa.DataType) -> pa.DataType:
    """ARRAY of a type, as tables have it."""
    return pa.list_(pa.field("element", type_))


# By name: a nested type with all primitives at its leaves, and values of it with NULL at every level.
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (LEAVES, [FIRST, LAST, NULLS, None]),
    "array": (listed(LEAVES), [[FIRST, None, NULLS], [], None]),
    "map": (pa.map_(pa.string(), LEAVES), [[("a", LAST), ("b", None)], [], None]),
    "map_in_struct": (
        pa.struct([("m", pa.map_(pa.int32(), LEAVES)), ("n", pa.int32())]),
        [{"m": [(1, FIRST), (2, NULLS)], "n": 1}, {"m": [], "n": None}, {"m": None, "n": 2}, None],
    ),
    "struct_in_array_in_map_in_struct": (
        pa.struct([("m", pa.map_(pa.string(), listed(LEAVES)))]),
        [{"m": [("a", [FIRST, None]), ("b", []), ("c", None)]}, {"m": []}, {"m": None}, None],
    ),
    "map_in_array_of_arrays": (
        listed(listed(pa.map_(pa.string(), pa.timestamp("us", "UTC")))),
        [[[[("a", FIRST["ts"]), ("b", None)], [], None], [], None], [], None],
    ),
    "times_as_keys": (
        pa.map_(pa.timestamp("us", "UTC"), pa.map_(pa.date32(), listed(pa.timestamp("us")))),
        [[(FIRST["ts"], [(LAST["d"], [FIRST["n"], None])]), (LAST["ts"], None)], [], None],
    ),
    "structs_as_keys": (
        pa.map_(pa.struct([("x", pa.int32()), ("y", listed(pa.date32()))]), pa.decimal128(5, 2)),
        [[({"x": 1, "y": [FIRST["d"], None]}, Decimal("1.50"))], [], None],
    ),
}


def schema_of(type_: pa.DataType) -> pa.Schema:
    """A table with a time, a number and a column `v` of the type."""
    return pa.schema([pa.field("t", pa.int64()), pa.field("id", pa.int64()), pa.field("v", type_)])


def rows_of(values: list[Any], first: int = 0) -> list[dict[str, Any]]:
    """Rows with these values; times and numbers count up."""
    return [{"t": first + n, "id": first + n, "v": value} for n, value in enumerate(values)]


def create(kind: str, name: str, type_: pa.DataType) -> str:
    """The statement for such a table."""
    by = "TIMESTAMP BY t" if "STREAMING" in kind else ""
    return f"CREATE {kind} {name} (t BIGINT NOT NULL, id BIGINT, v {name_of(type_)}) {by}"


def plain(value: Any) -> Any:
    """The value with instants as texts: a zone has several names."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value)}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


def same(left: list[Any], right: list[Any]) -> bool:
    """Whether values are equal, NaN being NaN and -0.0 not 0.0; maps as lists of pairs."""
    return repr(plain(left)) == repr(plain(right))


# Random types and values

_NAMES = st.sampled_from(["a", "b", "c", "A name", "ü"])
_TIMES = st.integers(FIRST_TIME, LAST_TIME)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i1": st.integers(-128, 127),
    "i2": st.integers(-(1 << 15), (1 << 15) - 1),
    "i4": st.integers(-(1 << 31), (1 << 31) - 1),
    "i8": st.integers(-(1 << 63), (1 << 63) - 1),
    "b": st.booleans(),
    "f4": st.floats(width=32),
    "f8": st.floats(),
    "s": st.text(max_size=5),
    "y": st.binary(max_size=5),
    "d": st.integers(FIRST_DAY, LAST_DAY).map(lambda d: pa.scalar(d, pa.date32()).as_py()),
    "ts": _TIMES.map(lambda t: pa.scalar(t, pa.timestamp("us", "UTC")).as_py()),
    "n": _TIMES.map(lambda t: pa.scalar(t, pa.timestamp("us")).as_py()),
    "m": st.decimals(-(10**20), 10**20, places=10),
    "c": st.decimals(-999, 999, places=2),
}


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(_NAMES, st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return fields.map(
        lambda found: pa.struct([pa.field(n, t, nullable) for n, (t, nullable) in found.items()])
    )


def types(depth: int = 3) -> st.SearchStrategy[pa.DataType]:
    """Types nested at most so deep; fields of structs may be NOT NULL."""
    leaves = st.sampled_from([type_ for type_, _ in PRIMITIVES.values()])
    if not depth:
        return leaves
    inner = types(depth - 1)
    keys = st.sampled_from([pa.string(), pa.int32(), pa.date32(), pa.timestamp("us", "UTC")])
    maps = st.tuples(keys, inner).map(lambda pair: pa.map_(*pair))
    return st.one_of(leaves, inner.map(listed), maps, _structs(inner))


def values(type_: Any, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, NULL at every level where it may be."""
    if pa.types.is_struct(type_):
        found = st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in type_})
    elif pa.types.is_map(type_):
        key = values(type_.key_type, nullable=False)
        pairs = st.tuples(key, values(type_.item_type))
        found = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    elif pa.types.is_list(type_):
        found = st.lists(values(type_.value_type), max_size=3)
    else:
        found = next(_VALUES[n] for n, (known, _) in PRIMITIVES.items() if known == type_)
    return st.none() | found if nullable else found
