"""Places in time as conditions for Spark: for every type of T, whatever the session's time zone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater
from headwater.kernel.kernel import Work
from headwater.kernel.stored_files import after_place, from_tick, time_text, until_place
from headwater.storage.clock import TICK_MAX, TICK_MIN
from headwater.storage.streaming.definition import DAY, Definition

MARCH = 1_774_746_000_000_000  # 2026-03-29 01:00 UTC: clocks in Berlin go forward
TICKS = {
    pa.int32(): [-5, 0, 7, 7, 8, 100],
    pa.int64(): [TICK_MIN, -1, 0, 0, 3, TICK_MAX],
    pa.timestamp("us", "UTC"): [-1, MARCH - 1, MARCH, MARCH, MARCH + 1, MARCH + 3_600_000_000],
    pa.timestamp("us"): [-1, MARCH - 1, MARCH, MARCH, MARCH + 1, MARCH + 3_600_000_000],
    pa.date32(): [-DAY, 0, DAY, DAY, 2 * DAY, 30 * DAY],
}


def definition_of(type_: pa.DataType) -> Definition:
    schema = pa.schema([pa.field("at", type_, nullable=False)])
    return Definition(
        1, "t", "streaming table", schema, "at", None, 0, "keep", None, 8, None, "t-1"
    )


def values(type_: pa.DataType, ticks: list[int]) -> pa.Array:
    if pa.types.is_date(type_):
        return pa.array([tick // DAY for tick in ticks], pa.int32()).cast(type_)
    whole = pa.array(ticks, pa.int64())
    return whole.cast(type_)


@pytest.mark.parametrize("type_", TICKS, ids=str)
def test_conditions_are_those_of_ticks(db: headwater.Database, type_: pa.DataType) -> None:
    """At and around every tick, at sequences before, at and after a row's own; one Spark run."""
    db.sql("SET time_zone = 'Europe/Berlin'")
    definition, ticks = definition_of(type_), TICKS[type_]
    rows = list(zip(ticks, range(len(ticks)), strict=True))
    staging = db._context.kernel.staging
    relation = staging.stage(
        pa.table({"at": values(type_, ticks), "_seq": pa.array(range(len(ticks)))})
    )
    texts, expected = [], []
    for tick in {near for t in ticks for near in (t - 1, t, t + 1)}:
        if not TICK_MIN <= tick <= TICK_MAX:
            continue
        texts.append(from_tick(definition, tick))
        expected.append([t >= tick for t, _ in rows])
        for sequence in (1, 2, 3):
            texts.append(until_place(definition, tick, sequence))
            expected.append([row <= (tick, sequence) for row in rows])
            texts.append(after_place(definition, tick, sequence))
            expected.append([row > (tick, sequence) for row in rows])
    columns = ", ".join(f"{text} AS c{n}" for n, text in enumerate(texts))
    found = db._context.kernel.run(Work(f"SELECT _seq, {columns} FROM r", {"r": relation}))
    staging.release(relation)
    found = found.sort_by("_seq")
    for number, wanted in enumerate(expected):
        assert found.column(f"c{number}").to_pylist() == wanted, texts[number]


def test_times_beyond_what_spark_can_count_to_do_no_harm(db: headwater.Database) -> None:
    """RANGE may reach back before the first tick."""
    for type_ in TICKS:
        texts = [time_text(definition_of(type_), tick) for tick in (-(1 << 70), 1 << 70)]
        found = db._context.kernel.run(Work(f"SELECT {texts[0]} < {texts[1]} AS fine"))
        assert found.to_pylist() == [{"fine": True}]


def test_range_over_times_without_zone_does_not_follow_the_session(db: headwater.Database) -> None:
    """The rows of the last hour, also where the session's clock is another one."""
    db.sql("SET time_zone = 'Europe/Berlin'")
    db.sql(
        "CREATE STREAMING TABLE t (at TIMESTAMP_NTZ, v INT) TIMESTAMP BY at RANGE INTERVAL 1 HOUR"
    )
    rows: Any = [(pc.cast(pa.scalar(MARCH + m * 60_000_000), pa.timestamp("us")).as_py(), m)
                 for m in (0, 30, 70)]  # fmt: skip
    db.insert("t", rows)
    assert db.sql("SELECT percentile(v, 0.5) AS m, count(*) AS n FROM t").rows() == [(50.0, 2)]
