"""Where the queries of a test live: in this process, or in a factory, which is a Spark task.

Most tests that are about what queries say have them in a factory (HOSTED), and a statement that makes a query
returns once a task has it: else the tests would end before Spark has started one, and never see it. Others
have them in this process, and so do tests marked `here`, which look inside them. HEADWATER_FACTORIES in the
environment decides for all tests that are not marked; `make test-hosted` and `make test-here` set it.

Owns the choice and the waiting. Must never: change what a test asks or expects.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest

from headwater.database import Database
from headwater.factories import coordinator
from headwater.kernel import spark, spark_settings
from headwater.settings import Settings
from tests.harness.patience import PATIENCE_S

VARIABLE = "HEADWATER_FACTORIES"
FACTORIES = "2"
HERE = "0"
HOSTED = ("tests/semantics/", "tests/test_cases.py")

_asked = os.environ.get(VARIABLE)  # for the whole run
_waits = False


def prepare() -> None:
    """For the whole run: a test's statements can wait; whichever test starts Spark, it has room, and a
    daemon with a factory's modules: else each factory would load them again."""
    _have_statements_wait()
    if _asked != HERE:
        _make_room()


def house(item: pytest.Item) -> None:
    """Decides for the databases that a test opens, and those of its fixtures."""
    global _waits
    os.environ[VARIABLE] = factories = factories_of(item)
    _waits = factories != HERE


def factories_of(item: pytest.Item) -> str:
    """How many factories a test has."""
    if item.get_closest_marker("here") is not None:
        return HERE
    return _asked or (FACTORIES if item.nodeid.startswith(HOSTED) else HERE)


def _make_room() -> None:
    wanted, confs = spark.factory_slots, spark.spark_settings

    def slots(settings: Settings) -> int:
        return max(wanted(settings), int(FACTORIES))

    def with_daemon(settings: Settings) -> dict[str, str]:
        local = settings.text("master").startswith("local")
        daemon = {"spark.python.daemon.module": spark_settings.FACTORY_DAEMON} if local else {}
        return {**daemon, **confs(settings)}

    spark.factory_slots, spark.spark_settings = slots, with_daemon


def _have_statements_wait() -> None:
    """Every statement, and every open, waits until whatever can live in a factory does.

    Nothing is gained by waiting for statements that may follow: they come after this one's query has gone.
    """
    coordinator.SETTLE_S = 0.0
    run, init = Database._run, Database.__init__

    @functools.wraps(run)
    def run_and_wait(self: Database, *arguments: Any, **keywords: Any) -> Any:
        result = run(self, *arguments, **keywords)
        if _waits:
            self._factories.settle(PATIENCE_S)
        return result

    @functools.wraps(init)
    def init_and_wait(self: Database, *arguments: Any, **keywords: Any) -> None:
        init(self, *arguments, **keywords)
        if _waits:
            self._factories.settle(PATIENCE_S)

    Database._run = run_and_wait  # type: ignore[method-assign]
    Database.__init__ = init_and_wait  # type: ignore[method-assign]
