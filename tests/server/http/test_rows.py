"""Rows in JSON: the short ways through Arrow give what the long ones give."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings

from headwater import values
from headwater.server.http import rows_in, rows_out
from headwater.storage import json_rows

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.float64()),
        ("d", pa.bool_()),
        ("e", pa.timestamp("us", "UTC")),
        ("f", pa.timestamp("us")),
    ]
)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
rows = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.text(st.characters(exclude_categories=("Cs",))),
        "c": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "d": st.none() | st.booleans(),
        "e": st.none() | moments.map(lambda m: m.replace(tzinfo=UTC)),
        "f": st.none() | moments,
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5))
def test_the_short_ways_are_the_long_ways(given_rows: list[dict[str, Any]]) -> None:
    """Out: as `values.json_of` writes it. In: as each line read by itself. And back again."""
    table = pa.Table.from_pylist(given_rows, SCHEMA)
    lines = b"".join(rows_out._lines(table))
    expected = [
        {f.name: values.json_of(f.type)(row[f.name]) for f in SCHEMA} for row in table.to_pylist()
    ]
    assert [json.loads(line) for line in lines.splitlines()] == expected
    quickly = json_rows.lines_by_arrow(lines, SCHEMA, "UTC")
    assert quickly is not None
    assert quickly.cast(SCHEMA) == table
    slowly = json_rows.typed(json_rows.parsed_lines(lines), SCHEMA, "UTC")
    assert pa.Table.from_pylist(slowly, SCHEMA) == table


def test_times_with_and_without_zones() -> None:
    """Every spelling means the same moment by either way; what Arrow does not read is not lost."""
    for text in (
        "2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026-01-02T05:04:05+02:00",
        "2026-01-02T03:04:05.0", "2026-01-02T03:04:05+00:00",
    ):  # fmt: skip
        line = json.dumps({"e": text}).encode()
        found = rows_in.read_rows(rows_out.LINES, line, SCHEMA, "t")
        assert pa.table(found).column("e").to_pylist() == [
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        ]
        slowly = json_rows.typed([json.loads(line)], SCHEMA, "UTC")
        assert slowly[0]["e"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_what_the_short_way_does_not_take_goes_the_long_way() -> None:
    """Other letters in names, NaN as a text, keys twice, a zone of the session's."""
    for line in (b'{"A": 1}', b'{"c": "NaN"}', b'{"a": 1, "a": 2}', b'{"zzz": 1}', b"[1]"):
        assert json_rows.lines_by_arrow(line, SCHEMA, "UTC") is None
    assert json_rows.lines_by_arrow(b'{"a": 1}', SCHEMA, "Europe/Berlin") is None
