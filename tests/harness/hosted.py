"""Tests over factories: a statement that makes a query returns once a Spark task has it.

Without this most tests would end before Spark has started a task, and never see one.
"""

from __future__ import annotations

import functools
from typing import Any

from headwater.database import Database
from tests.harness.patience import PATIENCE_S


def wait_for_factories() -> None:
    """Every statement, and every open, waits until whatever can live in a factory does."""
    run, init = Database._run, Database.__init__

    @functools.wraps(run)
    def run_and_wait(self: Database, *arguments: Any, **keywords: Any) -> Any:
        result = run(self, *arguments, **keywords)
        self._factories.settle(PATIENCE_S)
        return result

    @functools.wraps(init)
    def init_and_wait(self: Database, *arguments: Any, **keywords: Any) -> None:
        init(self, *arguments, **keywords)
        self._factories.settle(PATIENCE_S)

    Database._run = run_and_wait  # type: ignore[method-assign]
    Database.__init__ = init_and_wait  # type: ignore[method-assign]
