"""Epochs are small transactions, also across kills: each once, with its rows and its number (EQ3)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash import epoch_child
from tests.crash.epoch_child import CHUNK, LAST_SECOND, ROWS, VIEWS, lines_of, rows_of
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
Epoch = tuple[int, list[tuple[Any, ...]]]  # its `_t`, its rows


@pytest.mark.timeout(600)
def test_every_epoch_is_in_the_table_once_whoever_is_killed(tmp_path: Path) -> None:
    """Killed in the middle of epochs, views and subscriptions have each epoch once and miss none."""
    _feed_with_kills(tmp_path, random.Random(1), kills=4)
    _check(tmp_path)


@pytest.mark.large
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(100, 140))
def test_every_epoch_is_in_the_table_once_many_times(seed: int, tmp_path: Path) -> None:
    """The same with many seeds and more kills."""
    _feed_with_kills(tmp_path, random.Random(seed), kills=10)
    _check(tmp_path)


def _feed_with_kills(folder: Path, choose: random.Random, kills: int) -> None:
    command = [sys.executable, "-m", "tests.crash.epoch_child", str(folder / "db"), str(folder)]
    for _ in range(kills):
        child = subprocess.Popen([*command, str(PATIENCE_S)], cwd=ROOT, stderr=subprocess.PIPE)
        _wait_for_lines(folder, child, choose.randint(0, 25))
        time.sleep(choose.random() * 0.03)  # not a wait for progress: any moment will do
        child.send_signal(signal.SIGKILL)
        child.communicate()
    subprocess.run([*command, "3"], cwd=ROOT, check=True, timeout=2 * PATIENCE_S)


def _wait_for_lines(folder: Path, child: subprocess.Popen[bytes], count: int) -> None:
    """Until the child has written so many results, or there are no more."""
    before, until = _written(folder), time.monotonic() + PATIENCE_S
    count = min(count, sum(map(len, _expected().values())) - before)
    while _written(folder) < before + count and time.monotonic() < until:
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        time.sleep(0.005)  # not a wait for progress of ours: the child is killed at any moment


def _written(folder: Path) -> int:
    return sum(len(lines_of(folder / name)) for name in VIEWS)


def _check(folder: Path) -> None:
    """The logs, the tables and the kept results against brute force."""
    expected = _expected()
    for name, epochs in expected.items():
        lines = lines_of(folder / name)
        assert [line["epoch"] for line in lines] == list(range(len(epochs))), name
        assert [line["time"] for line in lines] == [tick for tick, _ in epochs], name
        assert len({line["token"] for line in lines}) == len(lines), name
        for line, (tick, rows) in zip(lines, epochs, strict=True):
            assert _sorted(line["rows"]) == _sorted([(*row, tick) for row in rows]), (name, tick)
    with epoch_child.open_database(folder / "db") as db:
        db.flush()
        for name, epochs in expected.items():
            wanted = [(*row, tick) for tick, rows in epochs for row in rows]
            assert _sorted(db.sql(f"SELECT * FROM {name}").rows()) == _sorted(wanted), name
            outs = list(db.subscribe(name, after="earliest", timeout=0.001))
            assert [out.epoch for out in outs] == list(range(len(epochs))), name


def _sorted(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


def _expected() -> dict[str, list[Epoch]]:
    """Both views by brute force."""
    inserted = {
        table: [row for second in range(LAST_SECOND) for row in rows_of(table, second)]
        for table in ("a", "b")
    }
    first = min(row[0] for rows in inserted.values() for row in rows) // CHUNK * CHUNK
    ends = range(first + CHUNK, LAST_SECOND + 1, CHUNK)
    ordered = sorted(inserted["a"], key=lambda row: row[0])
    chunks = [ordered[n : n + ROWS] for n in range(0, len(ordered) - ROWS + 1, ROWS)]
    return {
        "joined": [(end, _joined(inserted["a"], inserted["b"], end)) for end in ends],
        "counted": [(chunk[-1][0], _counted(chunk)) for chunk in chunks],
    }


def _joined(a: list[Any], b: list[Any], end: int) -> list[tuple[Any, ...]]:
    groups: dict[str, list[tuple[int, int]]] = {}
    for t, key, v in a:
        for u, other, w in b:
            if end - CHUNK <= t < end and end - 2 * CHUNK <= u < end and key == other:
                groups.setdefault(key, []).append((v, w))
    return [
        (key, len(pairs), sum(v for v, _ in pairs), max(w for _, w in pairs))
        for key, pairs in groups.items()
    ]


def _counted(chunk: list[Any]) -> list[tuple[Any, ...]]:
    groups: dict[str | None, list[int]] = {}
    for _, key, v in chunk:
        groups.setdefault(key, []).append(v)
    return [(key, len(values), min(values)) for key, values in groups.items()]
