"""Run by Flink's own Python: Q1 as a HOP window aggregation. Prints one line of JSON.

Rows are made inside Flink by its generator from their numbers, so that no format has to be parsed.
Timed is the stretch from the first window's result to that of the last row, by Flink's own clock:
neither the start of the job nor the windows that close once the input has ended are counted. A
first job of the same shape warms the process up.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any

FIRST, SECOND, MODULUS, VALUES = 48_271, 69_621, 2_147_483_647, 1000


def main(rows: int, per_second: int, groups: int, bound: int, seconds: int) -> None:
    """One warm-up and one run."""
    from pyflink.table import (  # type: ignore[import-not-found]
        EnvironmentSettings,
        TableEnvironment,
    )

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "2")
    tables.get_config().set("table.local-time-zone", "UTC")
    hop(tables, 5 * per_second, per_second, groups, bound, min(seconds, 8))
    rate, answers = hop(tables, rows, per_second, groups, bound, seconds)
    print(json.dumps({"rows_per_s": rate, "answers": answers}))


def hop(
    tables: Any, rows: int, per_second: int, groups: int, bound: int, seconds: int
) -> tuple[float, dict[int, list[int]]]:
    """Rows per second, and what each window held."""
    tables.execute_sql("DROP TEMPORARY TABLE IF EXISTS s")
    tables.execute_sql(
        f"""CREATE TEMPORARY TABLE s (
            i BIGINT,
            x1 AS CAST(MOD(MOD(i * {FIRST}, {MODULUS}), {groups}) AS BIGINT),
            x2 AS CAST(MOD(MOD(i * {SECOND}, {MODULUS}), {VALUES}) AS BIGINT),
            ts AS TO_TIMESTAMP_LTZ((i / {per_second}) * 1000, 3),
            WATERMARK FOR ts AS ts
        ) WITH (
            'connector' = 'datagen', 'number-of-rows' = '{rows}',
            'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence',
            'fields.i.start' = '0', 'fields.i.end' = '{rows - 1}'
        )"""
    )
    answers: dict[int, list[int]] = {}
    made: dict[int, datetime] = {}
    for row in tables.execute_sql(_text(bound, seconds)).collect():
        end, at, *values = row
        answers[int(end)] = [int(value) for value in values]
        made[int(end)] = datetime.fromisoformat(at)
    first, last = min(made), (rows - 1) // per_second
    elapsed = (made[last] - made[first]).total_seconds()
    return (last - first) * per_second / max(elapsed, 0.001), answers


def _text(bound: int, seconds: int) -> str:
    """Q1, and over it one row per window for the check."""
    return f"""
        SELECT UNIX_TIMESTAMP(CAST(window_end AS STRING)),
               CAST(CURRENT_ROW_TIMESTAMP() AS STRING),
               COUNT(*), SUM(total), SUM(x1 * total)
        FROM (
            SELECT x1, window_start, window_end, SUM(x2) AS total
            FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND,
                           INTERVAL '{seconds}' SECOND(4)))
            WHERE x1 > {bound} GROUP BY x1, window_start, window_end
        ) GROUP BY window_start, window_end"""


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
