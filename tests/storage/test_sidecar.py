"""Sidecars: the rows come back as they were, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import StorageError
from headwater.storage.disk import Disk, storage_error
from headwater.storage.sidecar import Sidecar

MANY = 1 << 40


def rows(count: int = 1000, seed: int = 0) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "t": pa.array(np.arange(count), pa.timestamp("us", "UTC")),
            "vid": pa.array(chance.integers(0, 50, count), mask=chance.random(count) < 0.1),
            "name": pa.array([f"n{number % 7}" for number in range(count)]),
        },
        metadata={"of": "the user"},
    )


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_rows_come_back_without_a_copy(tmp_path):
    sidecar, table = Sidecar(tmp_path, MANY, 4), rows()
    assert sidecar.write("a/b.parquet", table)
    found = sidecar.read("a/b.parquet")
    assert found.equals(table, check_metadata=True)
    before = pa.total_allocated_bytes()
    again = sidecar.read("a/b.parquet", ["name", "vid"])
    assert again.equals(table.select(["name", "vid"]))
    assert pa.total_allocated_bytes() == before
    assert pa.ipc.open_file(only_file(tmp_path)).read_all().num_rows == 1000  # any Arrow reader


def test_chunks_slices_and_no_rows(tmp_path):
    sidecar, table = Sidecar(tmp_path, MANY, 4), rows()
    pieces = pa.concat_tables([table.slice(3, 100), table.slice(500), table.slice(0, 0)])
    sidecar.write("pieces", pieces)
    sidecar.write("none", table.slice(0, 0))
    assert sidecar.read("pieces").equals(pieces)
    assert sidecar.take("pieces", np.array([0, 599, 100]), ["vid"]).equals(
        pieces.select(["vid"]).take([0, 599, 100])
    )
    assert sidecar.read("none").equals(table.slice(0, 0))
    assert sidecar.take("none", np.empty(0, np.int64)).num_rows == 0


def test_take(tmp_path):
    sidecar, table = Sidecar(tmp_path, MANY, 4), rows()
    sidecar.write("a", table)
    wanted = np.array([999, 0, 5, 5])
    assert sidecar.take("a", wanted, ["vid", "t"]).equals(table.select(["vid", "t"]).take(wanted))
    with pytest.raises(IndexError):
        sidecar.take("a", np.array([1000]), ["vid"])


def test_what_is_not_there(tmp_path):
    sidecar = Sidecar(tmp_path, MANY, 4)
    sidecar.write("a", rows())
    assert sidecar.read("b") is None
    assert sidecar.read("a", ["new_column"]) is None
    assert sidecar.take("b", np.array([1]), ["vid"]) is None
    sidecar.drop("b")
    sidecar.drop("a")
    assert not sidecar.has("a")
    assert sidecar.read("a") is None
    assert sidecar.total_bytes == 0
    assert not list(tmp_path.iterdir())


def test_a_table_read_outlives_its_file(tmp_path):
    sidecar, table = Sidecar(tmp_path, MANY, 1), rows()
    sidecar.write("a", table)
    found = sidecar.read("a")
    sidecar.drop("a")
    sidecar.close()
    assert found.equals(table)


def test_the_oldest_are_dropped_at_the_bound(tmp_path):
    sidecar = Sidecar(tmp_path, MANY, 4)
    sidecar.write("0", rows())
    size = sidecar.total_bytes
    bounded = Sidecar(tmp_path, size * 3, 4)
    for number in range(1, 5):
        bounded.write(str(number), rows())
        assert bounded.total_bytes <= size * 3
    assert [n for n in range(5) if bounded.has(str(n))] == [2, 3, 4]
    assert bounded.total_bytes == size * 3 == sum(f.stat().st_size for f in tmp_path.iterdir())
    assert not bounded.write("large", rows(10_000))
    assert bounded.has("2")
    assert len(Sidecar(tmp_path, size * 2, 4)) == 2
    assert [n for n in range(5) if Sidecar(tmp_path, MANY, 4).has(str(n))] == [3, 4]


def test_mappings_are_bounded(tmp_path):
    sidecar, table = Sidecar(tmp_path, MANY, 3), rows(10)
    for number in range(20):
        sidecar.write(str(number), table)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        assert sidecar.read(str(number)).num_rows == 10
    assert len(sidecar._handles) == 3
    assert len(os.listdir("/proc/self/fd")) <= before + 3


def test_writing_again_replaces(tmp_path):
    sidecar = Sidecar(tmp_path, MANY, 4)
    sidecar.write("a", rows(seed=1))
    old = sidecar.read("a")
    sidecar.write("a", rows(seed=2))
    sidecar.write("a", rows(seed=2))
    assert sidecar.read("a").equals(rows(seed=2))
    assert old.equals(rows(seed=1))
    assert sidecar.total_bytes == only_file(tmp_path).stat().st_size


def test_survives_reopen_and_clears_what_is_not_ours(tmp_path):
    Sidecar(tmp_path, MANY, 4).write("a", rows())
    (tmp_path / "left-over.arrow.7.new").write_bytes(b"half")
    (tmp_path / "foreign").write_bytes(b"what")
    (tmp_path / ("0" * 32 + "-00000000.arrow")).write_bytes(b"")
    reopened = Sidecar(tmp_path, MANY, 4)
    assert reopened.read("a").equals(rows())
    assert len(list(tmp_path.iterdir())) == 2  # the empty one goes when its block is asked for


def test_a_file_of_another_block_is_not_taken(tmp_path):
    sidecar = Sidecar(tmp_path, MANY, 4)
    sidecar.write("a", rows(seed=1))
    own = only_file(tmp_path).name
    sidecar.write("b", rows(seed=2))
    (other,) = (path for path in tmp_path.iterdir() if path.name != own)
    other.rename(tmp_path / (own[:32] + other.name[32:]))
    (tmp_path / own).unlink()
    assert Sidecar(tmp_path, MANY, 4).read("a") is None


@settings(deadline=None)
@given(st.data())
def test_damage_is_missing_never_wrong(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("sidecar")
    Sidecar(folder, MANY, 4).write("a", rows(50))
    path = only_file(folder)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="truncate"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    damaged = Sidecar(folder, MANY, 4)
    assert damaged.read("a") is None
    assert not damaged.has("a")
    assert not path.exists()
    damaged.write("a", rows(50))
    assert damaged.read("a").equals(rows(50))


class FullDisk(Disk):
    """A disk that takes a few bytes and is full then."""

    def pwritev(self, file, buffers, offset):
        if offset > 100:
            raise storage_error("write", file.path, OSError(28, "full"))
        return super().pwritev(file, [memoryview(buffers[0])[:64]], offset)


def test_a_full_disk_leaves_nothing(tmp_path):
    sidecar = Sidecar(tmp_path, MANY, 4, FullDisk())
    with pytest.raises(StorageError, match="full") as caught:
        sidecar.write("a", rows())
    assert caught.value.sqlstate == "53100"
    assert not list(tmp_path.iterdir())
    assert sidecar.read("a") is None


def test_short_writes_are_continued(tmp_path):
    class ShortDisk(Disk):
        def pwritev(self, file, buffers, offset):
            return super().pwritev(file, [memoryview(buffers[0])[:1001]], offset)

    sidecar = Sidecar(tmp_path, MANY, 4, ShortDisk())
    sidecar.write("a", rows())
    assert Sidecar(tmp_path, MANY, 4).read("a").equals(rows())


def test_many_readers_and_writers(tmp_path):
    tables = {str(seed): rows(200, seed) for seed in range(6)}
    one = Sidecar(tmp_path / "one", MANY, 1)
    one.write("0", tables["0"])
    sidecar = Sidecar(tmp_path / "many", one.total_bytes * 4, 2)
    wrong: list[str] = []

    def work(seed: int) -> None:
        chance = np.random.default_rng(seed)
        for _ in range(150):
            block = str(chance.integers(6))
            action = chance.integers(8)
            if action == 0:
                sidecar.drop(block)
            elif action < 3:
                sidecar.write(block, tables[block])
            elif (found := sidecar.read(block)) is not None and not found.equals(tables[block]):
                wrong.append(block)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sidecar.total_bytes == sum(f.stat().st_size for f in (tmp_path / "many").iterdir())
