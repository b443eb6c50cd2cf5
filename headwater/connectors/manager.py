"""All sources, or all sinks, of one database: made, paused, resumed, dropped, started again at open.

The catalog's row is what makes one exist; its state there is "running", "paused", "finished" or "dropping".
A failure is not kept: opening the database, like RESUME, tries again.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from headwater.connectors.runner import DROPPING, FAILED, RUNNING, Runner, Surroundings
from headwater.errors import Error
from headwater.sql.masking import without_passwords
from headwater.storage.catalog import Catalog, CatalogObject

Run = TypeVar("Run", bound=Runner)


@dataclass(frozen=True, kw_only=True)
class Status:
    """What SHOW tells of sources and of sinks."""

    name: str
    url: str
    state: str
    last_error: str | None
    created_at: str


class Connectors(ABC, Generic[Run]):
    """The sources, or the sinks, of one open database."""

    kind: ClassVar[Literal["source", "sink"]]

    def __init__(self, catalog: Catalog, around: Surroundings, folder: Path) -> None:
        """`folder`: for what is kept of each beside the catalog."""
        self._catalog, self._around, self._folder = catalog, around, folder
        self._lock = threading.RLock()
        self._runners: dict[int, Run] = {}
        self._absent: dict[int, Error] = {}  # why one could not start when the database was opened

    # Life

    def open(self) -> None:
        """Starts what ran when the database was closed, and ends what was being dropped."""
        for item in self._catalog.all(self.kind):
            if item.definition["state"] == DROPPING:
                self._forget(item)
            elif item.definition["state"] == RUNNING:
                try:
                    self._start(item)
                except Error as error:  # its table is damaged: the others start
                    self._absent[item.id] = error

    def close(self) -> None:
        """Stops all; they go on at the next open."""
        with self._lock:
            runners = list(self._runners.values())
        for runner in runners:  # all of them, before any is waited for
            runner.ask_to_stop()
        for runner in runners:
            runner.stop()

    # Statements

    def _add(self, name: str, definition: Mapping[str, Any]) -> CatalogObject:
        """Makes one that is not started yet."""
        item = self._catalog.add(self.kind, name, {**definition, "state": RUNNING})
        self._remove_notes(item)  # a catalog that was put back may give a number twice
        return item

    def start(self, item: CatalogObject) -> None:
        """Starts one that was just made."""
        with self._lock:
            self._start(item)

    @abstractmethod
    def pause(self, item: CatalogObject) -> None:
        """Stops one until it is resumed, also over restarts."""

    def resume(self, item: CatalogObject) -> None:
        """Starts one again, at once if it waits for its next attempt; nothing if it runs."""
        runner = self._runner(item)
        if runner is not None and runner.state == RUNNING:
            return
        self._stop(item)
        with self._lock:
            running = self._set_state(item, RUNNING)
            try:
                self._start(running)
            except Error as error:
                self._absent[item.id] = error
                raise

    def drop(self, item: CatalogObject) -> None:
        """Stops one and removes all that was kept for it, but not its rows."""
        going = self._set_state(item, DROPPING)
        self._stop(item)
        self._forget(going)

    def end(self, item: CatalogObject) -> None:
        """Stops one that has left the catalog, and removes all that was kept for it."""
        self._stop(item)
        self._remove_notes(item)

    def find(self, name: str) -> CatalogObject | None:
        """The one of that name."""
        return self._catalog.find(name, self.kind)

    def names(self) -> list[str]:
        """All of them."""
        return [item.name for item in self._catalog.all(self.kind)]

    def wait_until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until a condition holds, looking again whenever one has come further."""
        with self._around.changed:
            return self._around.changed.wait_for(done, timeout_s)

    # Parts

    @abstractmethod
    def _made(self, item: CatalogObject) -> Run:
        """A run, not started yet."""

    @abstractmethod
    def _remove_notes(self, item: CatalogObject) -> None:
        """Removes what is kept of one beside the catalog."""

    def _forget(self, item: CatalogObject) -> None:
        """What is left to do for one in state "dropping"; may be done again."""
        self._remove_notes(item)
        self._catalog.remove(item)

    def _start(self, item: CatalogObject) -> None:
        self._runners[item.id] = runner = self._made(item)
        runner.start()

    def _stop(self, item: CatalogObject) -> None:
        """Ends a run; not under the lock, since the outside may take its time."""
        with self._lock:
            runner = self._runners.pop(item.id, None)
        if runner is not None:
            runner.stop()

    def _runner(self, item: CatalogObject) -> Run | None:
        with self._lock:
            return self._runners.get(item.id)

    def _set_state(self, item: CatalogObject, state: str) -> CatalogObject:
        """Whatever the state was: one that came to its end meanwhile is in another."""
        self._absent.pop(item.id, None)
        with self._lock:
            found = self._catalog.find(item.name, self.kind)
            if found is None or found.id != item.id:
                found = item  # the catalog tells that it is gone
            return self._catalog.change(found, {**found.definition, "state": state})

    def _common(self, item: CatalogObject, url: str) -> dict[str, Any]:
        """The fields of Status."""
        runner, error = self._runner(item), self._absent.get(item.id)
        state = item.definition["state"] if error is None else FAILED
        return {
            "name": item.name,
            "url": without_passwords(url),
            "state": state if runner is None else runner.state,
            "last_error": _shown(error if runner is None else runner.error),
            "created_at": item.created_at,
        }


def _shown(error: Error | None) -> str | None:
    if error is None:
        return None
    parts: Mapping[str, Any] = {"detail": error.detail, "hint": error.hint}
    more = [f"{name}: {text}" for name, text in parts.items() if text]
    return without_passwords("; ".join([f"{error.message} ({error.sqlstate})", *more]))


def safe_name(name: str) -> str:
    """A name for files and folders."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
