"""The catalog: which objects there are, in SQLite. The commit of a row here is what makes an
object exist; files without a row are left-overs and are removed at open.

Objects of kinds that stand in FROM share one namespace. All rows are kept in memory too, so that
looking up a name never touches the disk.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import BindError, StorageError

RELATIONS = "relation"
NAMESPACES = {
    "table": RELATIONS,
    "streaming table": RELATIONS,
    "stream": RELATIONS,
    "view": RELATIONS,
    "materialized view": RELATIONS,
    "continuous query": RELATIONS,
    "index": "index",
    "function": "function",
    "procedure": "procedure",
    "source": "source",
    "sink": "sink",
    "user": "user",
    "token": "token",
}
FORMAT = 1


@dataclass(frozen=True)
class CatalogObject:
    """One object: a number that is never given out again, its kind, name and definition."""

    id: int
    kind: str
    name: str
    definition: Mapping[str, Any]
    created_at: str

    @property
    def key(self) -> str:
        """The name as it is compared."""
        return self.name.casefold()


class Catalog:
    """All objects of one database; safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.changes = 0  # how often an object came, went or changed since it was opened
        self._lock = threading.RLock()
        try:
            if not path.exists():  # passwords of addresses may stand in it
                path.touch(mode=0o600)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._open()
            self._objects = {(o.key, NAMESPACES[o.kind]): o for o in self._load()}
        except (sqlite3.DatabaseError, ValueError, KeyError) as error:
            if hasattr(self, "_connection"):
                self._connection.close()
            raise damaged(path, str(error)) from error

    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        found = run("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise ValueError(found)
        version = run("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise ValueError(f"format {version} is newer than {FORMAT}")
        run(
            "CREATE TABLE IF NOT EXISTS objects (id INTEGER PRIMARY KEY AUTOINCREMENT,"
            " kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL,"
            " definition TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (namespace, key))"
        )
        run(f"PRAGMA user_version = {FORMAT}")

    def _load(self) -> Iterator[CatalogObject]:
        rows = self._connection.execute(
            "SELECT id, kind, name, definition, created_at FROM objects"
        )
        for number, kind, name, definition, created_at in rows:
            yield CatalogObject(number, kind, name, json.loads(definition), created_at)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def find(self, name: str, namespace: str = RELATIONS) -> CatalogObject | None:
        """The object of that name, or None."""
        with self._lock:
            return self._objects.get((name.casefold(), namespace))

    def all(self, *kinds: str) -> list[CatalogObject]:
        """All objects of the given kinds (or all), by name."""
        with self._lock:
            found = [o for o in self._objects.values() if not kinds or o.kind in kinds]
        return sorted(found, key=lambda o: (o.key, o.kind))

    def next_id(self) -> int:
        """A number for an object about to be made; never given out again once the object exists."""
        with self._lock:
            row = self._connection.execute("SELECT seq FROM sqlite_sequence").fetchone()
            return (row[0] if row else 0) + 1

    def add(self, kind: str, name: str, definition: Mapping[str, Any]) -> CatalogObject:
        """Adds an object; BindError 42P07 if the name is taken."""
        with self._lock:
            self.check_free(kind, name)
            cursor = self._connection.execute(
                "INSERT INTO objects (kind, namespace, name, key, definition, created_at)"
                " VALUES (?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) RETURNING id, created_at",
                (kind, NAMESPACES[kind], name, name.casefold(), json.dumps(definition)),
            )
            number, created_at = cursor.fetchone()
            made = CatalogObject(number, kind, name, dict(definition), created_at)
            self._objects[made.key, NAMESPACES[kind]] = made
            self.changes += 1
            return made

    def check_free(self, kind: str, name: str) -> None:
        """BindError 42P07 if the name is taken in that kind's namespace."""
        other = self.find(name, NAMESPACES[kind])
        if other is not None:
            raise BindError(
                f"{other.kind} {other.name} exists already",
                sqlstate="42P07",
                hint=f"choose another name, or DROP {other.kind.upper()} {other.name} first",
            )

    def remove(self, gone: CatalogObject) -> None:
        """Removes an object."""
        with self._lock:
            self._connection.execute("DELETE FROM objects WHERE id = ?", (gone.id,))
            self._objects.pop((gone.key, NAMESPACES[gone.kind]), None)
            self.changes += 1

    def change(
        self, old: CatalogObject, definition: Mapping[str, Any], name: str | None = None
    ) -> CatalogObject:
        """Gives an object a new definition, and perhaps a new name."""
        with self._lock:
            new_name = name or old.name
            if new_name.casefold() != old.key:
                self.check_free(old.kind, new_name)
            self._connection.execute(
                "UPDATE objects SET name = ?, key = ?, definition = ? WHERE id = ?",
                (new_name, new_name.casefold(), json.dumps(definition), old.id),
            )
            namespace = NAMESPACES[old.kind]
            self._objects.pop((old.key, namespace), None)
            new = CatalogObject(old.id, old.kind, new_name, dict(definition), old.created_at)
            self._objects[new.key, namespace] = new
            self.changes += 1
            return new


def damaged(path: Path, detail: str) -> StorageError:
    """The error for a catalog that cannot be read."""
    return StorageError(
        f"the catalog {path} is damaged",
        sqlstate="XX001",
        detail=detail,
        hint="restore the file from a copy; the rows under tables/ are untouched, "
        "each folder there is a Delta table that any Delta reader opens",
    )
