"""Bad rows for a streaming table: refused whole, with an SQLSTATE, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater
from headwater.errors import Error
from tests.crash.stream_store import Opened, ids, scanned
from tests.harness.patience import PATIENCE_S

SCHEMA = pa.schema(
    [
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("id", pa.int32(), nullable=False),
        pa.field("s", pa.string()),
    ]
)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
GOOD = {"t": NOON, "id": 1, "s": "x"}


def stamped(tick: int) -> pa.Table:
    """One row at a tick that Python's datetime may not know."""
    return pa.table(
        {"t": pa.array([tick], pa.int64()).cast(SCHEMA.field("t").type), "id": [1], "s": ["x"]},
        schema=SCHEMA,
    )


BAD: dict[str, tuple[Any, str]] = {
    "a text for a number": ([GOOD, {**GOOD, "id": "two"}], "22018"),
    "a number for a text": ([{**GOOD, "s": 5}], "22003"),
    "a number too large": ([{**GOOD, "id": 1 << 31}], "22003"),
    "a fraction": ([{**GOOD, "id": 1.5}], "22003"),
    "a number for a time": ([{**GOOD, "t": 17}], "22003"),
    "NULL in NOT NULL": ([GOOD, {**GOOD, "id": None}], "23502"),
    "NOT NULL column missing": ([{"t": NOON, "s": "x"}], "23502"),
    "NULL time": ([GOOD, {**GOOD, "t": None}], "23502"),
    "time missing": ([{"id": 1}], "23502"),
    "unknown column": ([{**GOOD, "other": 1}], "42703"),
    "too few values": ([(NOON, 1)], "42601"),
    "no rows at all": (5, "22000"),
    "an Arrow column of another type": (pa.table({"t": [NOON], "id": ["a"], "s": ["x"]}), "42804"),
    "a column twice": (pa.table([[1], [2]], names=["id", "ID"]), "42701"),
    "the year 10000": (stamped(253_402_300_800_000_000), "22008"),
    "before the year 1": (stamped(-62_135_596_800_000_001), "22008"),
    "the largest tick": (stamped((1 << 63) - 1), "22008"),
    "a batch id that is too long": ([GOOD], "22001"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_refuses_the_whole_insert(tmp_path: Path, case: str) -> None:
    rows, sqlstate = BAD[case]
    with Opened(tmp_path / "data") as opened:
        table = opened.create("a", SCHEMA)
        before = table.state
        with pytest.raises(Error) as caught:
            table.insert(rows, "x" * 1001 if "batch id" in case else "batch")
        if case != "no rows at all":
            assert caught.value.sqlstate == sqlstate
        assert caught.value.message
        assert table.state == before
        assert table.tail_bytes == 0
        assert scanned(table) == []
        assert table.insert([GOOD], "batch") == 1, "the refused batch's id is taken"


@pytest.mark.parametrize(
    ("tick", "good"), [((1 << 62) - 1, True), (1 << 62, False), (-(1 << 62), False)]
)
def test_the_bounds_of_integer_times(tmp_path: Path, tick: int, good: bool) -> None:
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
    with Opened(tmp_path / "data") as opened:
        table = opened.create("a", schema, range_ticks=10, watermark_ticks=3)
        attempts: list[Callable[[], Any]] = [
            lambda: table.insert([{"t": tick, "id": 1}]),
            lambda: table.advance(tick),
        ]
        for attempt in attempts:
            if good:
                attempt()
            else:
                with pytest.raises(Error) as caught:
                    attempt()
                assert caught.value.sqlstate == "22008"
        opened.store.seal(table)
        assert ids(table) == ([1] if good else [])


def test_the_bounds_of_times_can_be_sealed_and_read(tmp_path: Path) -> None:
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    opened = Opened(tmp_path / "data", max_clock_ahead_s=0)
    table = opened.create("a", SCHEMA)
    table.insert(pa.concat_tables([stamped(first), stamped(last)]))
    opened.close()
    with Opened(tmp_path / "data") as opened:
        found = scanned(opened.table("a"), ("t",))
    assert [t for (t,) in found] == [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ]


def test_a_small_integer_time_with_a_long_range(tmp_path: Path) -> None:
    """The clock minus RANGE does not fit the column's type."""
    schema = pa.schema([("t", pa.int16()), ("id", pa.int64())])
    with Opened(tmp_path / "data") as opened:
        table = opened.create("a", schema, range_ticks=100_000)
        table.insert([{"t": t, "id": t} for t in (-32_768, 0, 32_767)])
        assert ids(table) == [-32_768, 0, 32_767]
        opened.store.seal(table)
        assert ids(table) == [-32_768, 0, 32_767]
        table.advance(200_000)
        assert ids(table) == []


def test_advance_with_a_bad_time(tmp_path: Path) -> None:
    with Opened(tmp_path / "data") as opened:
        table = opened.create("a", SCHEMA)
        for bad in (17, "tomorrow", None, np.float64(1.5)):
            with pytest.raises(Error) as caught:
                table.advance(bad)
            assert caught.value.sqlstate == "22007"
        arrival = opened.create("b", pa.schema([("id", pa.int64())]), time_column=None)
        with pytest.raises(Error) as caught:
            arrival.advance(NOON)
        assert caught.value.sqlstate == "55000"


def test_a_csv_line_that_does_not_parse(db: headwater.Database, tmp_path: Path) -> None:
    """File, line number and reason; nothing of the file is inserted."""
    db.sql("CREATE STREAMING TABLE c (t BIGINT, id INT NOT NULL, s STRING) TIMESTAMP BY t")
    good = tmp_path / "good.csv"
    good.write_text("t,id,s\n1,1,a\n2,2,\n")
    assert db.sql(f"COPY c FROM '{good}' CSV HEADER").row_count == 2
    for number, text in enumerate(("3,3,a\n4,four,b\n5,5,c\n", "3,3,a\n4,4\n", "3,3,a\n4,4,b,c\n")):
        bad = tmp_path / f"bad{number}.csv"
        bad.write_text("t,id,s\n" + text)
        with pytest.raises(Error) as caught:
            db.sql(f"COPY c FROM '{bad}' CSV HEADER")
        assert caught.value.sqlstate == "22P04"
        assert str(bad) in caught.value.message
        assert "line 3" in caught.value.message, caught.value.message
    for number, text in enumerate(("3,3,a\n,4,b\n", "3,3,a\n4,,b\n")):
        bad = tmp_path / f"null{number}.csv"
        bad.write_text("t,id,s\n" + text)
        with pytest.raises(Error) as caught:
            db.sql(f"COPY c FROM '{bad}' CSV HEADER")
        assert caught.value.sqlstate == "23502"
    assert db.sql("SELECT id FROM c").rows() == [(1,), (2,)]


def test_a_second_process_is_refused(db: headwater.Database) -> None:
    path = db._context.folder.path
    text = f"import headwater.storage.folder as f; from pathlib import Path; f.DataFolder({str(path)!r})"
    second = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert second.returncode == 1
    assert "55006" in second.stderr
