"""Killed processes and power cuts: every acknowledged row is there exactly once, no half batch.

Random SIGKILLs of a child that inserts from several threads while it seals and compacts; kills at the
nth write, sync, rename, link and unlink of any thread, by strace, because delta-rs writes past
every seam of ours; the order of syncs in a trace of one seal; and what a power cut may leave of a
Delta commit that was not synced yet.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headwater.storage import delta_sums
from tests.crash.stream_child import TABLES, opened, size_of, table_of
from tests.crash.stream_store import Opened, ids, rows_of, scanned
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
STRACE = shutil.which("strace")
THREADS = 3
FILLED = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("filler", pa.string())])
CALLS = ("fdatasync", "fsync", "link,linkat", "pwritev", "rename,renameat,renameat2",
         "unlink,unlinkat", "mkdir,mkdirat", "ftruncate", "pwrite64", "write")  # fmt: skip

needs_strace = pytest.mark.skipif(
    STRACE is None, reason="strace is not installed (apt-get install strace)"
)


def child(*arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    """A child process of tests/crash/stream_child.py; acknowledged batches on its standard output."""
    command = [*before, sys.executable, "-m", "tests.crash.stream_child", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )


def acknowledged(said: bytes) -> Iterator[tuple[int, int]]:
    """(thread, batch) of every whole line."""
    for line in said.splitlines(keepends=True):
        if line.endswith(b"\n"):
            thread, number = line.split()
            yield int(thread), int(number)


def check(folder: Path, done: list[int]) -> list[object]:
    """Of each thread: all batches before `done`, perhaps the next one; each whole and once."""
    found = opened(str(folder))
    try:
        state: list[object] = []
        for name in TABLES:
            table = found.table(name)
            rows = scanned(table, ("thread", "batch", "part"))
            assert len(set(rows)) == len(rows), "a row is there twice"
            sizes = Counter((thread, batch) for thread, batch, _ in rows)
            for thread, count in enumerate(done):
                numbers = {batch for other, batch in sizes if other == thread}
                mine = {n for n in range(count) if table_of(n) == name}
                assert mine <= numbers, f"lost: {sorted(mine - numbers)[:5]} of thread {thread}"
                extra = numbers - mine
                assert extra <= {count}, f"never sent: {extra}"
            for (thread, batch), size in sizes.items():
                assert size == size_of(batch), f"half of batch {batch} of thread {thread}"
            at = table.state
            state += [rows, at.time.clock, at.time.closed, at.late_total, at.next_sequence]
            table._clock.validate()
        return state
    finally:
        found.drop()


def kills(folder: Path, count: int, seed: int) -> int:
    """Kills at random moments; after each, two equal reopenings. How many batches were sent."""
    random = Random(seed)
    done = [0] * THREADS
    for _ in range(count):
        process = child("insert", folder, *done)
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        time.sleep(random.uniform(0, 0.5))  # not a wait for progress: the moment of the kill
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read()
        trouble = process.stderr.read()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        assert not trouble, trouble.decode()
        for thread, number in acknowledged(said):
            assert number == done[thread], "acknowledged out of turn"
            done[thread] = number + 1
        assert check(folder, done) == check(folder, done), "the second opening differs"
    return sum(done)


def test_kills_at_random_moments(tmp_path: Path) -> None:
    assert kills(tmp_path / "data", 4, seed=1) > 20


@pytest.mark.large
@pytest.mark.timeout(6 * 3600)
def test_kills_at_random_moments_many(tmp_path: Path) -> None:
    for seed in range(100):
        kills(tmp_path / f"data{seed}", 100, seed)
        shutil.rmtree(tmp_path / f"data{seed}")


def killed_at(folder: Path, calls: str, number: int) -> bool:
    """Runs the script and kills it at the nth of these calls of one thread; whether it came to that."""
    assert STRACE is not None
    # --seccomp-bpf: only the named calls stop, the rest runs at full speed.
    inject = f"inject={calls}:signal=KILL:when={number}"
    process = child(
        "script",
        folder,
        before=(STRACE, "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", inject),
    )
    said, trouble = process.communicate(timeout=PATIENCE_S)
    ended = process.returncode == 0
    assert ended or process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), trouble.decode()
    done = [number + 1 for _, number in acknowledged(said)]
    count = max(done, default=0)
    if (folder / "tables" / "b-1" / "_delta_log").exists() and _made(folder):
        assert check(folder, [count]) == check(folder, [count]), "the second opening differs"
    else:
        assert not count
    return not ended


def _made(folder: Path) -> bool:
    """Whether the child came so far as to have both tables in the catalog."""
    with Opened(folder) as found:
        return all(found.catalog.find(name) is not None for name in TABLES)


@needs_strace
def test_kills_at_chosen_calls(tmp_path: Path) -> None:
    """A few of the calls, other ones for each kind; the whole list is in the large test."""
    points = [("fdatasync", 9), ("fsync", 30), ("link,linkat", 4), ("write", 90)]
    reached = [killed_at(tmp_path / f"at{n}", *point) for n, point in enumerate(points)]
    assert sum(reached) >= 3, f"{reached}: choose other points"


@needs_strace
@pytest.mark.large
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("calls", CALLS)
def test_kills_at_every_call(tmp_path: Path, calls: str) -> None:
    number = 1
    while killed_at(tmp_path / f"at{number}", calls, number):
        shutil.rmtree(tmp_path / f"at{number}")
        number += 1
    assert number > 1 or calls in ("ftruncate", "pwrite64"), "nothing was killed"


@needs_strace
def test_order_of_syncs_in_a_seal(tmp_path: Path) -> None:
    """Block, its folders, the commit, the log's folder; only then does a segment of the log go."""
    assert STRACE is not None
    trace = tmp_path / "trace"
    traced = "trace=fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat,write"
    process = child(
        "seal",
        tmp_path / "data",
        before=(STRACE, "-f", "-y", "-qq", "--seccomp-bpf", "-o", str(trace), "-e", traced),
    )
    _, trouble = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, trouble.decode()
    lines = trace.read_text().splitlines()
    marks = {name: _place(lines, f"MARK {name}") for name in ("seal", "free", "end")}
    table = str(tmp_path / "data" / "tables" / "a-1")
    wal = str(tmp_path / "data" / "wal")
    block = re.escape(f"{table}/blocks/0") + r"/\S+\.parquet"
    commit = re.escape(f"{table}/_delta_log/00000000000000000001.json")
    steps = [
        rf'write\(\d+<{block}>, "PAR1"',
        rf"fsync\(\d+<{block}>\)",
        rf"fsync\(\d+<{re.escape(table)}/blocks/0>\)",
        rf"fsync\(\d+<{re.escape(table)}/blocks>\)",
        rf"fsync\(\d+<{re.escape(table)}>\)",
        rf'link(at)?\(.*"{commit}"',
        rf"fsync\(\d+<{commit}>\)",
        rf"fsync\(\d+<{re.escape(table)}/_delta_log>\)",
    ]
    places = [_place(lines, step, marks["seal"]) for step in steps]
    assert places == sorted(places), "a step of the seal is out of order"
    last_write = max(n for n, line in enumerate(lines) if re.search(rf"write\(\d+<{block}>", line))
    assert last_write < places[1], "the block is written after its sync"
    assert places[-1] < marks["free"]
    gone = [
        n for n, line in enumerate(lines)
        if re.search(rf'(rename|unlink)\w*\(.*"{re.escape(wal)}/\d+\.wal"', line)
        and '"' + wal + '/spare' not in line.split(",")[0]
    ]  # fmt: skip
    assert gone, "no segment was freed: the test shows nothing"
    assert all(n > marks["free"] for n in gone), "a segment went before the seal was durable"


def _place(lines: list[str], pattern: str, start: int = 0) -> int:
    found = [n for n, line in enumerate(lines) if n >= start and re.search(pattern, line)]
    assert found, f"not in the trace: {pattern}"
    return found[0]


# Power cuts: what delta-rs has written and nobody has synced yet may be lost whole or in part.


def sealed_folder(tmp_path: Path, commits: int = 3) -> Path:
    """A folder with one commit per three rows, as of the moment before the last seal returned."""
    folder = tmp_path / "data"
    found = Opened(folder)
    table = found.create("a")
    for number in range(commits):
        table.insert(rows_of([number, number, number + 5], number * 3), f"batch {number}")
        found.store.seal(table)
    found.drop()
    return folder / "tables" / "a-1"


def last_commit(table: Path) -> Path:
    return max((table / "_delta_log").glob("*[0-9].json"))


def blocks_of(commit: Path) -> list[Path]:
    paths = re.findall(r'"add":\{"path":"([^"]+)"', commit.read_text())
    assert paths
    return [commit.parents[1] / path for path in paths]


LOSSES = {
    "commit and blocks": lambda c: [p.unlink() for p in (*blocks_of(c), c)],
    "commit": lambda c: c.unlink(),
    "commit, blocks torn": lambda c: [
        *[p.write_bytes(p.read_bytes()[:50]) for p in blocks_of(c)],
        c.unlink(),
    ],
    "commit empty": lambda c: c.write_bytes(b""),
    "commit half": lambda c: c.write_bytes(c.read_bytes()[: c.stat().st_size // 2]),
    "commit without its last byte": lambda c: c.write_bytes(c.read_bytes().rstrip()[:-1]),
    "commit without its last line": lambda c: c.write_bytes(
        b"".join(c.read_bytes().splitlines(keepends=True)[:-1])
    ),
    "commit zeros": lambda c: c.write_bytes(bytes(c.stat().st_size)),
    "commit zeros at the end": lambda c: c.write_bytes(c.read_bytes()[:200] + bytes(300)),
    "temporary name left": lambda c: c.rename(c.with_name(c.name + "#1")),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_power_cut_before_the_commit_is_synced(tmp_path: Path, loss: str) -> None:
    table = sealed_folder(tmp_path)
    LOSSES[loss](last_commit(table))
    (table / "_delta_log" / delta_sums.NAME).unlink()  # they follow the sync of the commit
    for _ in range(2):
        with Opened(tmp_path / "data") as found:
            rows = scanned(found.table("a"), ("t", "id"))
            assert sorted(n for _, n in rows) == list(range(9))
            assert found.table("a").insert(rows_of([1]), "batch 2") == 0, "a batch id is forgotten"
            assert found.table("a").state.time.clock == 7


@pytest.mark.parametrize("loss", ["empty", "half", "gone", "zeros", "hint empty", "hint alone"])
def test_power_cut_before_the_checkpoint_is_synced(tmp_path: Path, loss: str) -> None:
    table = sealed_folder(tmp_path, commits=11)
    checkpoint = max((table / "_delta_log").glob("*.checkpoint.parquet"))
    data = checkpoint.read_bytes()
    hint = table / "_delta_log" / "_last_checkpoint"
    if loss in ("gone", "hint alone"):
        checkpoint.unlink()
    elif loss == "hint empty":
        hint.write_bytes(b"")
    else:
        parts = {"empty": b"", "half": data[: len(data) // 2], "zeros": bytes(len(data))}
        checkpoint.write_bytes(parts[loss])
    with Opened(tmp_path / "data") as found:
        assert sorted(ids(found.table("a"))) == list(range(33))


def test_a_torn_commit_whose_rows_the_log_no_longer_has_is_an_error(tmp_path: Path) -> None:
    """Then it was synced once, and is damaged: no row may vanish without a word."""
    folder = tmp_path / "data"
    with Opened(folder) as found:
        table = found.create("a", FILLED)
        for number in range(40):
            table.insert([{"t": number, "id": number, "filler": "x" * 60_000}])
        found.store.seal_all()
        assert found.store.log_state().first_lsn > 1, "nothing was freed: the test shows nothing"
    commit = last_commit(folder / "tables" / "a-1")
    commit.write_bytes(commit.read_bytes()[:100])
    with Opened(folder) as found:
        (error,) = found.store.damaged.values()
    assert error.sqlstate == "XX001"
    assert str(commit) in error.message


def test_the_log_keeps_what_one_table_has_not_sealed(tmp_path: Path) -> None:
    """Segments go only when every table has sealed past them."""
    found = Opened(tmp_path / "data")
    slow, fast = found.create("slow"), found.create("fast", FILLED)
    slow.insert(rows_of([1, 2]))
    for number in range(60):
        fast.insert([{"t": number, "id": number, "filler": "x" * 60_000}])
        if number % 10 == 5:
            found.store.seal(fast)
            found.store.free_log()
    assert found.store.log_state().segments > 2, "the log has one segment: the test shows nothing"
    found.drop()
    found = Opened(tmp_path / "data")
    assert ids(found.table("slow")) == [0, 1]
    assert ids(found.table("fast")) == list(range(60))
    found.store.seal_all()
    assert found.store.log_state().segments == 1, "the log is not freed"
    found.drop()


def test_a_commit_is_synced_again_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that made it may have been killed before its sync; then power fails."""
    table = sealed_folder(tmp_path)
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with Opened(tmp_path / "data"):
        assert str(last_commit(table)) in synced
        assert str(table / "_delta_log") in synced
