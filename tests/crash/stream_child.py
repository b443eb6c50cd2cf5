"""The child processes of the crash tests: they write to streaming tables until they are killed.

    python -m tests.crash.stream_child insert FOLDER START…   several threads, sealing and compacting
    python -m tests.crash.stream_child script FOLDER          one of everything, in a fixed order
    python -m tests.crash.stream_child seal FOLDER            one seal and one free, for its syncs

Every acknowledged batch is written to standard output as `thread number` right after the insert has
returned. Batch n of a thread always has the same rows, so a parent knows what must be there.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.storage.streaming.stored import read_block
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened

TABLES = ("a", "b")
SCHEMA = pa.schema(
    [("t", pa.int64()), ("thread", pa.int32()), ("batch", pa.int32()), ("part", pa.int32()),
     ("filler", pa.string())]
)  # fmt: skip


def table_of(number: int) -> str:
    """The table that batch `number` of a thread goes to."""
    return TABLES[number % 2]


def size_of(number: int) -> int:
    """How many rows batch `number` has."""
    return number % 7 + 1


def batch_of(thread: int, number: int, filler: int) -> pa.Table:
    """The rows of one batch, in and out of order."""
    size = size_of(number)
    return pa.table(
        {
            "t": [number * 3 + (part * 5) % 11 - 4 for part in range(size)],
            "thread": [thread] * size,
            "batch": [number] * size,
            "part": list(range(size)),
            "filler": ["x" * filler] * size,
        },
        schema=SCHEMA,
    )


def opened(folder: str, **settings: object) -> Opened:
    """The folder with its two tables, made if they are not there, with small blocks."""
    found = Opened(Path(folder), removed_files_kept_s=0, **settings)
    for name in TABLES:
        if found.catalog.find(name) is None:
            found.create(name, SCHEMA, watermark_ticks=5 if name == "b" else 0)
        table = found.table(name)
        table.bounds = partial(replace, table.limits, block_rows=200, compact_files=3)
    return found


def said(thread: int, number: int) -> None:
    """Tells the parent that a batch was acknowledged."""
    os.write(1, f"{thread} {number}\n".encode())


def insert(folder: str, starts: list[int]) -> None:
    """Threads insert, each from its own number on, while this one seals and compacts."""
    found = opened(folder, block_age_s=0.05, recent_mb=1)

    def run(thread: int, number: int) -> None:
        while True:
            table = found.table(table_of(number))
            table.insert(batch_of(thread, number, 3000), f"{thread}.{number}")
            said(thread, number)
            number += 1

    for thread, start in enumerate(starts):
        threading.Thread(target=run, args=(thread, start), daemon=True).start()
    while True:
        for name in TABLES:
            found.store.seal(found.table(name))
            found.table(name).compact()
        found.store.free_log()


def script(folder: str) -> None:
    """Everything that writes, once or a few times, then a clean end."""
    found = opened(folder)
    for number in range(16):
        found.table(table_of(number)).insert(batch_of(0, number, 90_000), f"0.{number}")
        said(0, number)
        if number % 3 == 2:
            found.store.seal_all()
    tables = [found.table(name) for name in TABLES]
    found.create_index("i", tables[0], "batch", "btree") if not found.catalog.all("index") else None
    for table in tables:
        table.compact()
        table.build_indexes(9)
        rewrite(table)
        table.advance(-100)
    found.store.free_log()
    for number in range(16, 20):
        found.table(table_of(number)).insert(batch_of(0, number, 10), f"0.{number}")
        said(0, number)
    found.close()


def rewrite(table: StreamingTable) -> None:
    """What UPDATE does to a block."""
    with table.upkeep, table.reading() as snapshot:
        blocks = list(snapshot.blocks)[:1]
        table.replace(blocks, pa.concat_tables([read_block(snapshot, b) for b in blocks]))


def seal(folder: str) -> None:
    """Marks in the trace around one seal and the freeing of the log."""
    found = opened(folder)
    for number in range(0, 40, 2):
        found.table("a").insert(batch_of(0, number, 60_000))
    os.write(2, b"MARK seal\n")
    found.store.seal(found.table("a"))
    os.write(2, b"MARK free\n")
    found.store.free_log()
    os.write(2, b"MARK end\n")
    found.drop()


if __name__ == "__main__":
    kind, where, *numbers = sys.argv[1:]
    if kind == "insert":
        insert(where, [int(n) for n in numbers])
    else:
        {"script": script, "seal": seal}[kind](where)
