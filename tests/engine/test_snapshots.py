"""Snapshots in files: written in the caller's thread, or beside it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from headwater.engine import snapshots
from headwater.engine.snapshots import SnapshotFile, SnapshotKeeper
from headwater.storage.disk import storage_error
from headwater.storage.streaming.seen import SeenTable
from tests.harness import large_snapshot


class Changing:
    """A table whose stored rows can be changed."""

    def __init__(self) -> None:
        self.definition, self.generation = SimpleNamespace(id=7), 0


class Numbers:
    """A structure of one vector."""

    def __init__(self, values: list[int] | None = None) -> None:
        self.values = np.array(values or [])

    def state(self) -> dict[str, Any]:
        """What must be kept."""
        return {"values": self.values}

    def restore(self, state: dict[str, Any]) -> None:
        """Take it up again."""
        self.values = state["values"]


def kept(keeper: SnapshotKeeper, numbers: Numbers, place: int, *, beside: bool = False) -> None:
    keeper.keep(numbers.state(), {"place": place}, keeper.stamp, beside=beside)


def test_a_snapshot_written_beside_is_that_of_the_call(tmp_path: Path) -> None:
    """Whatever the structure does meanwhile; a reader waits until it is in place."""
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "a" / "1.snapshot"))
    numbers = Numbers([1, 2, 3])
    kept(keeper, numbers, 7, beside=True)
    numbers.values[:] = 0
    found = Numbers()
    assert keeper.read(found) == {"place": 7}
    assert found.values.tolist() == [1, 2, 3]
    assert keeper.kept == {"place": 7}


def test_an_error_beside_comes_out_at_the_next_call(tmp_path: Path) -> None:
    """A snapshot that cannot be written is told once, and the next one may succeed."""
    (tmp_path / "taken").write_text("a file where the folder should be")
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "taken" / "1.snapshot"))
    kept(keeper, Numbers([1]), 0, beside=True)
    with pytest.raises(OSError, match="taken"):
        keeper.settle()
    keeper.settle()
    (tmp_path / "taken").unlink()
    kept(keeper, Numbers([2]), 1)
    assert keeper.file is not None
    assert keeper.file.exists


def test_a_removed_snapshot_does_not_come_back(tmp_path: Path) -> None:
    """Forgetting waits for what is being written."""
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    for number in range(20):
        kept(keeper, Numbers([number] * 10_000), number, beside=True)
        keeper.forget()
        assert not list(tmp_path.iterdir())
        assert keeper.kept is None


def test_a_snapshot_that_failed_beside_frees_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows since the last good snapshot are still needed; that there was no room is not told."""
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    kept(keeper, Numbers([1]), 3)

    def full(*_: Any) -> Any:
        raise storage_error("write", "x", OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(SnapshotFile, "prepare", full)
    kept(keeper, Numbers([1]), 7, beside=True)
    assert keeper._writer is not None
    keeper._writer.join()
    assert not keeper.is_due(60.0)
    assert keeper.kept == {"place": 3}


def test_a_snapshot_is_due_once_per_period(tmp_path: Path) -> None:
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    assert keeper.is_due(60.0)
    assert not keeper.is_due(60.0)
    assert keeper.is_due(0.0)


def test_a_snapshot_that_cannot_be_made_can_be_removed(tmp_path: Path) -> None:
    """Whatever its error was: nobody wants it any more, and no half of it is left."""
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    keeper.keep(Numbers([1]).state(), {"place": object()}, keeper.stamp, beside=True)
    keeper.forget()
    keeper.settle()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("beside", [False, True])
def test_rows_that_change_while_a_snapshot_is_made(tmp_path: Path, beside: bool) -> None:
    """It holds what was made of the old rows; only a state of the new ones is kept again."""
    keeper, table = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot")), Changing()
    stamp = keeper.stamp
    keeper.hold_off(cast(SeenTable, table))
    keeper.keep(Numbers([1]).state(), {}, stamp, beside=beside)
    keeper.settle()
    assert not list(tmp_path.iterdir())
    keeper.begin_anew()  # of the rows that are about to go
    assert not keeper.may_keep
    table.generation += 1
    assert not keeper.may_keep  # the state is still that of the old ones
    keeper.begin_anew()
    assert keeper.may_keep


def test_what_goes_on_elsewhere_is_not_written_over(tmp_path: Path) -> None:
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    stamp = keeper.stamp
    keeper.void()
    keeper.keep(Numbers([1]).state(), {}, stamp)
    assert not list(tmp_path.iterdir())


def test_without_a_file_nothing_is_kept() -> None:
    keeper = SnapshotKeeper(None)
    assert not keeper.may_keep
    assert keeper.read(Numbers()) is None
    keeper.forget()


# Memory


def test_a_snapshot_does_not_double_memory() -> None:
    """Of a state that changes in place a third is copied at most; reading one takes little beside it."""
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed is given back, so memory is what is held
    }
    command = [sys.executable, "-m", large_snapshot.__name__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["written"] < found["size"] * 0.5, found
    assert found["size"] * 0.9 < found["read"] < found["size"] * 1.5, found


def test_what_is_set_aside_is_the_state_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On disk, and in memory where the disk has no room for it; nothing is left of it."""
    monkeypatch.setattr(snapshots, "COPIED_BYTES", 8)
    keeper = SnapshotKeeper(SnapshotFile(tmp_path / "1.snapshot"))
    for place, failing in enumerate((False, True)):
        if failing:
            monkeypatch.setattr(snapshots.SetAside, "_mapped", _full)
        numbers = Numbers([1, 2, 3])
        copy = keeper.copy_of(numbers.state())
        assert isinstance(copy["values"], np.memmap) is not failing
        assert keeper.copy_of(copy)["values"] is copy["values"]
        kept(keeper, numbers, place, beside=True)
        numbers.values[:] = 0
        found = Numbers()
        assert keeper.read(found) == {"place": place}
        assert found.values.tolist() == [1, 2, 3]
        assert [path.name for path in tmp_path.iterdir()] == ["1.snapshot"]


def _full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "full")
