"""Probes of a static table: Spark's joins for every key type, and brute force over random rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater
from headwater.fold.probe import KINDS, Probe
from tests.expression.evaluation import Oracle
from tests.expression.test_expression import EDGES, ROWS, name

STATIC = "(SELECT n AS k, * FROM t WHERE n % 7 < 4)"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with headwater.connect(":memory:") as db:
        oracle = Oracle(db, ROWS)
        yield oracle
        oracle.close()


def static_rows() -> pa.Table:
    """The static side: some rows of the edge table, with their numbers as k."""
    table = ROWS.filter(pa.array([n % 7 < 4 for n in range(ROWS.num_rows)]))
    return table.append_column("k", table["n"])


def pairs(table: pa.Table) -> list[Any]:
    """Which rows met which, in a fixed order within a row of the chunk."""
    columns = [table[c].to_pylist() for c in table.schema.names if c in ("n", "k")]
    rows = zip(*columns, strict=True)
    return sorted(rows, key=lambda row: [-1 if v is None else v for v in row])


def joined(kind: str, keys: list[tuple[str, str]]) -> str:
    """The join as Spark's SQL: its kind, the chunk's row and the static row."""
    on = " AND ".join(f"chunk.{c} = s.{s}" for c, s in keys)
    words = {
        "inner": "JOIN",
        "left": "LEFT JOIN",
        "semi": "LEFT SEMI JOIN",
        "anti": "LEFT ANTI JOIN",
    }
    k = "s.k" if kind in ("inner", "left") else "NULL"
    return f"SELECT '{kind}' AS kind, chunk.n, {k} AS k FROM t AS chunk {words[kind]} {STATIC} AS s ON {on}"


@pytest.mark.parametrize("type_", EDGES)
def test_every_key_type_joins_as_in_spark(oracle: Oracle, type_: str) -> None:
    """NULL matches nothing, NaN matches NaN, -0.0 matches 0.0; keys of one and of two columns."""
    a, b = name(type_, "a"), name(type_, "b")
    for keys in ([(a, b)], [(a, b), ("b_string", "a_string")]):
        probe = Probe(static_rows(), [static for _, static in keys])
        chunk = ROWS.select(["n", *(c for c, _ in keys)])
        answer = oracle.query(" UNION ALL ".join(joined(kind, keys) for kind in KINDS))
        for kind in KINDS:
            columns = ["k"] if kind in ("inner", "left") else []
            ours = probe.join(chunk, [chunk[c] for c, _ in keys], columns, kind)
            wanted = answer.filter(pc.field("kind") == kind).select(["n", *columns])
            assert pairs(ours) == pairs(wanted), (kind, keys)
            assert ours["n"].to_pylist() == sorted(ours["n"].to_pylist())  # in the chunk's order


def same(one: Any, other: Any) -> bool:
    """Equality of keys as in Spark's joins."""
    if one is None or other is None:
        return False
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


keys = st.tuples(
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, math.nan, 1.5])),
    st.one_of(st.none(), st.sampled_from(["", "a", "ä"])),
)


def made(rows: list[Any], number: str) -> pa.Table:
    """Key columns d and s, and the number of each row."""
    doubles, texts = zip(*rows, strict=True) if rows else ((), ())
    return pa.table(
        {
            number: pa.array(range(len(rows)), pa.int64()),
            "d": pa.array(doubles, pa.float64()),
            "s": pa.array(texts, pa.string()),
        }
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(keys, max_size=12),
    st.lists(st.lists(keys, max_size=12), max_size=3),
    st.sampled_from(["d", "s", "ds"]),
    st.sampled_from(KINDS),
)
def test_chunk_after_chunk(static: list[Any], chunks: list[list[Any]], on: str, kind: str) -> None:
    """One probe answers chunk after chunk: every match, in the order of both sides."""
    probe = Probe(made(static, "k"), list(on))
    for rows in chunks:
        chunk = made(rows, "n")
        columns = ["k", "s"] if kind in ("inner", "left") else []
        ours = probe.join(chunk, [chunk[c] for c in on], columns, kind)
        wanted = []
        for n, row in enumerate(rows):
            places = ["ds".index(c) for c in on]
            found = [k for k, s in enumerate(static) if all(same(row[p], s[p]) for p in places)]
            if kind in ("semi", "anti"):
                wanted += [(n,)] if bool(found) == (kind == "semi") else []
            else:
                wanted += [(n, k) for k in found or ([None] if kind == "left" else [])]
        assert list(zip(*[c.to_pylist() for c in numbers(ours)], strict=True)) == wanted
        assert ours.schema.names == ["n", "d", "s", *columns]


def numbers(table: pa.Table) -> list[pa.ChunkedArray]:
    """The columns that number rows."""
    return [table[c] for c in ("n", "k") if c in table.schema.names]


def test_an_unknown_kind_and_no_keys() -> None:
    """Mistakes of a caller are named."""
    table = pa.table({"k": [1]})
    with pytest.raises(ValueError, match="outer"):
        Probe(table, ["k"]).join(table, [table["k"]], [], "outer")
    with pytest.raises(ValueError, match="key"):
        Probe(table, [])
