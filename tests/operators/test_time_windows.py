"""Windows of time against loops in plain Python."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from headwater.errors import NotSupportedError
from headwater.operators.time_windows import TimeWindowRows
from tests.operators.model import Row, run

SCHEMA = pa.schema([("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
EPOCH = datetime(1970, 1, 1)


def at(moment: int) -> datetime:
    return EPOCH + timedelta(microseconds=moment)


def expected(rows: list[Row], length: int, slide: int, offset: int) -> list[Row]:
    found: list[Row] = []
    for time, value in rows:
        moment = None if time is None else (time - EPOCH) // timedelta(microseconds=1)
        for start in range(-1000, 1000) if moment is not None else ():
            if (start - offset) % slide == 0 and start <= moment < start + length:
                found.append((time, value, at(start), at(start + length)))
    return found


@pytest.mark.parametrize(
    "lengths", [(10, 10, 0), (10, 10, 3), (10, 5, 0), (10, 3, 2), (7, 7, 6), (7, 1, 0)]
)
def test_each_row_once_for_each_window(lengths: tuple[int, int, int]) -> None:
    for seed in range(3):
        rng = random.Random(seed)

        def draw(rng: random.Random = rng) -> Row:
            moment = None if rng.random() < 0.1 else at(rng.randrange(-30, 30))  # before 1970 too
            return moment, rng.randrange(3)

        run(
            rng,
            lambda: TimeWindowRows(SCHEMA, "t", lengths, "start", "end", True),
            SCHEMA,
            lambda rows: expected(rows, *lengths),
            True,
            draw,
            duplicates=True,
        )


@pytest.mark.parametrize(
    ("time", "lengths"), [("v", (1, 1, 0)), ("t", (1, 2, 0)), ("t", (1, 0, 0))]
)
def test_what_is_no_window(time: str, lengths: tuple[int, int, int]) -> None:
    with pytest.raises(NotSupportedError):
        TimeWindowRows(SCHEMA, time, lengths, "start", "end", True)
