"""Real SIGKILLs of a child that appends from four threads on a real disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from headwater.storage.wal import WriteAheadLog

CHILD = """
import os, sys, threading
from headwater.storage.wal import Record, WriteAheadLog
folder, run = sys.argv[1], sys.argv[2]
log = WriteAheadLog(folder, segment_bytes=64 << 10)
list(log.recover())
def insert(thread):
    for number in range(10**9):
        name = f"{run}.{thread}.{number}"
        data = name.encode() * (1 + number % 40)
        lsn = log.append([log_record(data), log_record(b"second " + data)]).wait()
        os.write(1, f"{lsn} {name} {number % 40 + 1}\\n".encode())
def log_record(data):
    return Record(1, 1, (data,))
for thread in range(4):
    threading.Thread(target=insert, args=(thread,), daemon=True).start()
sys.stdin.read()
"""


def run_and_kill(folder: str, run: int, after_s: float) -> dict[int, bytes]:
    """What the child said was acknowledged, before it was killed."""
    root = str(Path(__file__).parents[3])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, folder, str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": root},
    )
    assert child.stdout is not None
    assert child.stdin is not None
    said = child.stdout.readline()
    time.sleep(after_s)  # not a wait for progress: the moment of the kill
    child.send_signal(signal.SIGKILL)
    said += child.stdout.read()
    child.wait()
    child.stdout.close()
    child.stdin.close()
    lines = [line.split() for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
    return {int(lsn): name * int(times) for lsn, name, times in lines}


def check(folder: str, acknowledged: dict[int, bytes], freed_lsn: int) -> int:
    """Everything acknowledged is there, in pairs; then free some. The next bound."""
    log = WriteAheadLog(folder, segment_bytes=64 << 10)
    found = {record.lsn: bytes(record.payload[0]) for record in log.recover()}
    for lsn, data in acknowledged.items():
        if lsn > freed_lsn:
            assert found[lsn] == data
            assert found[lsn + 1] == b"second " + data
    assert list(found) == list(range(min(found), log.next_lsn))
    assert len(set(found.values())) == len(found)
    for lsn, data in found.items():
        if not data.startswith(b"second "):
            assert found[lsn + 1] == b"second " + data
    freed_lsn = log.next_lsn - 20
    log.free(freed_lsn)
    log.close()
    return freed_lsn


def kills(folder: str, count: int, seed: int) -> None:
    random = Random(seed)
    acknowledged: dict[int, bytes] = {}
    freed_lsn = 0
    for run in range(count):
        said = run_and_kill(folder, run, random.uniform(0, 0.15))
        assert not said.keys() & acknowledged.keys(), "an LSN was given out twice"
        acknowledged |= said
        freed_lsn = check(folder, acknowledged, freed_lsn)
    assert len(acknowledged) > count


def test_kill(tmp_path: Path) -> None:
    kills(str(tmp_path / "wal"), 6, seed=1)


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_kill_many(tmp_path: Path) -> None:
    kills(str(tmp_path / "wal"), 1000, seed=2)
