"""A file that is on its way into the write-ahead log is never overwritten by one on its way out.

Found by tests/crash/test_stream_crashes.py: after a restart a retired segment took the name of a spare
that the writer had opened and not yet renamed. The writer then renamed the wrong file, and rows
acknowledged from then on were in a file without a name.
"""

from __future__ import annotations

import os
from pathlib import Path

from headwater.storage.disk import Disk
from headwater.storage.wal.pool import SegmentPool

SIZE = 64 << 10


def test_a_segment_is_retired_while_a_spare_of_an_earlier_run_goes_live(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for number in (1, 2, 3):
        (tmp_path / f"spare-{number:06d}.wal").write_bytes(bytes(SIZE))

    class Busy(Disk):
        """Retires segment 1 at the moment between a spare's sync and its rename."""

        def fdatasync(self, file):  # type: ignore[no-untyped-def]
            super().fdatasync(file)
            if live:
                pool.retire(live.pop())

    live = []  # type: ignore[var-annotated]
    pool = SegmentPool(folder, Busy(), SIZE, SIZE, 8)
    assert pool.open() == []
    first, file = pool.activate(1, 1, 0)
    os.close(file.descriptor)
    live.append(first)
    pool._unused_name()  # of a spare that was made meanwhile: the next number is that of the next spare
    second, file = pool.activate(2, 100, 0)
    assert os.fstat(file.descriptor).st_ino == os.stat(second.path).st_ino
    assert pool.segment(2).header.first_lsn == 100
    os.close(file.descriptor)
