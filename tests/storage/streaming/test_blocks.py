"""Blocks on disk: damage is an error, never another time."""

from __future__ import annotations

from pathlib import Path

import headwater
from headwater.errors import StorageError
from headwater.storage import footer
from headwater.storage.delta import listed_files
from headwater.storage.streaming.blocks import known_block, ticks_beyond


def test_every_changed_byte_of_a_block_is_noticed_where_its_times_are_read(tmp_path: Path) -> None:
    """Recovery reads the times of blocks that a source brought: other times would be another clock."""
    with headwater.connect(tmp_path, settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
        db.insert("r", [(ts, 1) for ts in range(5)])
        table = db._context.streaming_table("r")
    folder, definition = table.folder, table.definition
    (block,) = map(known_block, listed_files(folder))
    path = folder / block.path
    whole = path.read_bytes()
    noticed: list[StorageError] = []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        footer._check.cache_clear()  # a process looks at a file once
        try:
            assert ticks_beyond(folder, definition, [block], None).tolist() == list(range(5)), place
        except StorageError as error:
            noticed.append(error)
    assert {error.sqlstate for error in noticed} == {"XX001"}
    assert all(str(path) in error.message for error in noticed)
    assert len(noticed) > len(whole) // 4
