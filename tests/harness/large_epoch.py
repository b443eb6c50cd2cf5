"""A process whose epochs are larger than its memory should be: `python -m tests.harness.large_epoch`.

Two queries that no fold answers run over a small epoch and a large one. After each it prints a line of
JSON with the results; whoever started it watches its memory meanwhile.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa

import headwater

ROWS = 20_000  # of one insert
EPOCHS = (8, 48)  # inserts into each stream
LENGTH = 1000  # of an epoch in seconds
PAD = 180
SETTINGS = {
    "basket_mb": 4,
    "block_mb": 4,
    "unsealed_mb": 16,
    "recent_mb": 0,
    "block_rows": 50_000,
    "rows_at_once": 100_000,
    "driver_memory_mb": 1024,
    "aot_cache": False,
}
QUERIES = {
    "joined": """SELECT count(*) AS pairs, count(b.k) AS matches, sum(length(a.pad) + length(b.pad)) AS pads
        FROM a CUT ON ts BY INTERVAL '1000' SECOND LEFT JOIN b CUT ON ts BY INTERVAL '1000' SECOND
        ON a.k = b.k""",
    "median": """SELECT percentile(k, 0.5) AS middle, max(length(pad)) AS pad, count(*) AS n
        FROM a CUT ON ts BY INTERVAL '1000' SECOND""",
}


def memory_bytes(process: int | str = "self") -> int:
    """What a process holds that no file stands for."""
    text = Path(f"/proc/{process}/status").read_text()
    return sum(int(kib) << 10 for kib in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+) kB", text))


def rows(stream: str, ts: int, first: int) -> pa.Table:
    """Rows of one insert; `b` has a match for every second row of `a`."""
    keys = [k if stream == "a" else 2 * k for k in range(first, first + ROWS)]
    times = pa.array([ts] * ROWS, pa.int32())
    return pa.table({"ts": times, "k": keys, "pad": ["x" * PAD] * ROWS})


def run_epoch(db: headwater.Database, epoch: int) -> None:
    """All rows of an epoch, and its end."""
    for number in range(EPOCHS[epoch]):
        for stream in ("a", "b"):
            db.insert(stream, rows(stream, epoch * LENGTH + number + 1, number * ROWS))
    for stream in ("a", "b"):
        db.advance(stream, (epoch + 1) * LENGTH)
    db.flush()
    found = {name: db.sql(f"SELECT * FROM {name}").rows() for name in QUERIES}
    print(json.dumps(found), flush=True)


def main() -> None:
    """The whole life of the process."""
    with headwater.connect(settings=SETTINGS) as db:
        for stream in ("a", "b"):
            db.sql(f"CREATE STREAM {stream} (ts INT, k BIGINT, pad STRING) TIMESTAMP BY ts")
        for name, text in QUERIES.items():
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {text}")
        for epoch in range(len(EPOCHS)):
            run_epoch(db, epoch)


if __name__ == "__main__":
    main()
