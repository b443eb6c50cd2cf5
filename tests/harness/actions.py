"""Tests as lists of actions against a database in a folder.

    run([
        Sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts"),
        Insert("s", [(1, 10), (2, 20)]),
        Advance("s", 2),
        Flush(),
        Expect("SELECT sum(v) FROM s", [(30,)]),
        Restart(),
        Expect("SELECT sum(v) FROM s", [(30,)]),
        Kill(),
        Expect("SELECT sum(v) FROM s", [(30,)]),
    ], folder)

`Restart` closes the database and opens it again. `Kill` stands for the death of the process: all
actions before it run in a process of their own, which ends by SIGKILL; those after it go on with
what that one left on disk. Nothing waits for time to pass: `Flush` and `ExpectResults` wait for progress.
"""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwater
from tests.harness.rows import check_same

RESULT_TIMEOUT_S = 20.0
PROCESS_TIMEOUT_S = 120.0


@dataclass
class World:
    """What the actions act on: the open database and the subscriptions of the test."""

    folder: Path
    settings: Mapping[str, object]
    db: headwater.Database = field(init=False)
    subscriptions: dict[str, Any] = field(default_factory=dict)

    def open(self) -> None:
        """Opens the database; subscriptions of before are gone."""
        self.db = headwater.connect(self.folder, settings=self.settings)
        self.subscriptions = {}


@dataclass(frozen=True)
class Action:
    """One step of a test."""

    def act(self, world: World) -> None:
        """Does it; AssertionError if an expectation is not met."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sql(Action):
    """Runs statements."""

    text: str

    def act(self, world: World) -> None:
        world.db.sql(self.text)


@dataclass(frozen=True)
class Insert(Action):
    """Inserts rows; `added` is how many must be new (all, unless a batch repeats)."""

    table: str
    rows: Sequence[Any]
    batch_id: str | None = None
    added: int | None = None

    def act(self, world: World) -> None:
        count = world.db.insert(self.table, self.rows, batch_id=self.batch_id)
        wanted = len(self.rows) if self.added is None else self.added
        assert count is None or count == wanted, f"{count} rows were added, not {wanted}"


@dataclass(frozen=True)
class Advance(Action):
    """Says that no more rows up to a time will come."""

    table: str
    time: Any

    def act(self, world: World) -> None:
        world.db.advance(self.table, self.time)


@dataclass(frozen=True)
class CreateFunction(Action):
    """Registers a Python function; a process that follows must do it again."""

    name: str
    function: Any
    returns: str
    state: str | None = None

    def act(self, world: World) -> None:
        world.db.create_function(self.name, self.function, returns=self.returns, state=self.state)


@dataclass(frozen=True)
class Flush(Action):
    """Waits until everything acknowledged and complete has been processed."""

    def act(self, world: World) -> None:
        world.db.flush()


@dataclass(frozen=True)
class Expect(Action):
    """A query gives these rows: as a bag, or in this order."""

    sql: str
    rows: Sequence[Sequence[Any]]
    ordered: bool = False

    def act(self, world: World) -> None:
        found = world.db.sql(self.sql).rows()
        if self.ordered:
            assert found == [tuple(row) for row in self.rows]
        check_same(found, self.rows)


@dataclass(frozen=True)
class ExpectError(Action):
    """A statement fails with this SQLSTATE and these words."""

    sql: str
    sqlstate: str
    words: str = ""

    def act(self, world: World) -> None:
        found = None
        try:
            world.db.sql(self.sql)
        except headwater.Error as error:
            found = error
        assert found is not None, f"no error from {self.sql}"
        assert found.sqlstate == self.sqlstate, str(found)
        assert self.words in found.message, str(found)


@dataclass(frozen=True)
class Subscribe(Action):
    """Begins to take results under a name of the test's; `query` is a name or a select."""

    name: str
    query: str
    emit: str | None = None
    after: str | None = None

    def act(self, world: World) -> None:
        world.subscriptions[self.name] = world.db.subscribe(  # type: ignore[attr-defined]
            self.query, emit=self.emit, after=self.after, timeout=RESULT_TIMEOUT_S
        )


@dataclass(frozen=True)
class ExpectResults(Action):
    """The next result sets of a subscription: (time, rows), in order."""

    name: str
    results: Sequence[tuple[Any, Sequence[Sequence[Any]]]]

    def act(self, world: World) -> None:
        taken = list(itertools.islice(world.subscriptions[self.name], len(self.results)))
        assert [out.time for out in taken] == [time for time, _ in self.results]
        for out, (_, rows) in zip(taken, self.results, strict=True):
            check_same([tuple(row.values()) for row in out.arrow().to_pylist()], rows)


@dataclass(frozen=True)
class Restart(Action):
    """Closes the database and opens it again."""

    def act(self, world: World) -> None:
        world.db.close()
        world.open()


@dataclass(frozen=True)
class Kill(Action):
    """The process dies here (see above)."""

    def act(self, world: World) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def run(
    actions: Iterable[Action], folder: Path, settings: Mapping[str, object] | None = None
) -> None:
    """Runs the actions against a database in a folder."""
    actions = list(actions)
    last_kill = max((i for i, a in enumerate(actions) if isinstance(a, Kill)), default=-1)
    part: list[Action] = []
    for action in actions[: last_kill + 1]:
        part.append(action)
        if isinstance(action, Kill):
            _run_and_die(part, folder, settings or {})
            part = []
    _carry_out(actions[last_kill + 1 :], folder, settings or {})


def _carry_out(actions: Sequence[Action], folder: Path, settings: Mapping[str, object]) -> None:
    world = World(folder, settings)
    world.open()
    try:
        for number, action in enumerate(actions):
            try:
                action.act(world)
            except Exception as error:
                error.add_note(f"in action {number}: {action}")
                raise
    finally:
        world.db.close()


def _run_and_die(actions: Sequence[Action], folder: Path, settings: Mapping[str, object]) -> None:
    task = pickle.dumps((list(actions), folder, {"eager_spark": False, **settings}))
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.actions"],
        input=task,
        capture_output=True,
        timeout=PROCESS_TIMEOUT_S,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode(errors="replace")


if __name__ == "__main__":
    _carry_out(*pickle.loads(sys.stdin.buffer.read()))
