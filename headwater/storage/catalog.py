"""The catalog: which objects there are. What makes an object exist is a record of a log of its own.

Owns: the log in the folder `catalog/` (the same kind of log that rows go to: checksums, syncs, a witness),
the image of all objects that is written into it now and then, and the folders that a DROP gave up.
Must never: know what a definition means, beyond the folders that it names.

Objects of kinds that stand in FROM share one namespace. All objects are kept in memory too, so that looking
up a name never touches the disk. A folder that no object names is removed only if a durable record says
that it was dropped; any other is somebody's data.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwater.errors import BindError, StorageError
from headwater.storage.disk import Disk
from headwater.storage.wal import Record, WriteAheadLog, peek

RELATIONS = "relation"
NAMESPACES = {
    "table": RELATIONS,
    "streaming table": RELATIONS,
    "stream": RELATIONS,
    "view": RELATIONS,
    "materialized view": RELATIONS,
    "continuous query": RELATIONS,
    "changes": "changes",  # of a view or table, under its name
    "index": "index",
    "function": "function",
    "procedure": "procedure",
    "source": "source",
    "sink": "sink",
    "user": "user",
    "token": "token",
}
ADDED, CHANGED, REMOVED, IMAGE = 1, 2, 3, 4
SEGMENT_BYTES = 1 << 20
FIRST_SEGMENT_BYTES = 64 << 10
IMAGE_AFTER_BYTES = 1 << 20  # of changes, and at least four times what the image itself takes
IMAGE_SHARE = 4


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

    @property
    def passes(self) -> bool:
        """Whether it is in no catalog: a query that ends with its reader."""
        return self.id < 0

    @property
    def folders(self) -> frozenset[str]:
        """The folders of tables that the object needs, its own and those of what it holds."""
        parts = (self.definition, self.definition.get("results"), self.definition.get("table"))
        return frozenset(
            part["folder"] for part in parts if isinstance(part, Mapping) and "folder" in part
        )


class Objects:
    """The state that the records of the log add up to."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, str], CatalogObject] = {}
        self.by_id: dict[int, CatalogObject] = {}
        self.last_id = 0
        self.dropped: set[str] = set()
        self.image_bytes = 0  # of the last image
        self.changed_bytes = 0  # of the changes since

    def apply(self, kind: int, payload: bytes) -> None:
        """Takes in one record."""
        said = json.loads(payload)
        self.changed_bytes += len(payload)
        if kind == IMAGE:
            self.image_bytes, self.changed_bytes = len(payload), 0
            self.by_name, self.by_id = {}, {}
            for each in said["objects"]:
                self._put(CatalogObject(**each))
            self.last_id, self.dropped = said["last_id"], set(said["dropped"])
        elif kind == REMOVED:
            self._take(said)
        else:
            made = CatalogObject(**said)
            if kind == CHANGED:
                self._take(made.id)
            self._put(made)
            self.last_id = max(self.last_id, made.id)

    def _put(self, made: CatalogObject) -> None:
        self.by_id[made.id] = self.by_name[made.key, NAMESPACES[made.kind]] = made
        self.dropped -= made.folders

    def _take(self, number: int) -> None:
        gone = self.by_id.pop(number)
        del self.by_name[gone.key, NAMESPACES[gone.kind]]
        self.dropped |= gone.folders

    @property
    def wants_image(self) -> bool:
        """Whether the changes since the last image take so much that a new one is worth it."""
        return self.changed_bytes > max(IMAGE_AFTER_BYTES, IMAGE_SHARE * self.image_bytes)

    def image(self) -> Any:
        """Everything, as the record that replaces all before it."""
        objects = [asdict(each) for each in self.by_id.values()]
        return {"last_id": self.last_id, "dropped": sorted(self.dropped), "objects": objects}


class Pending(threading.local):
    """What this thread adds as one, until it is written; None outside of `together`."""

    objects: list[CatalogObject] | None = None


class Catalog:
    """All objects of one database; safe to share between threads."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self._folder = folder
        self.changes = 0  # how often an object came, went or changed since it was opened
        self.on_change: Callable[[], None] = lambda: None  # told after every change
        self._writing = threading.Lock()
        self._lock = threading.Lock()  # of the objects; never held during a sync
        self._pending = Pending()
        self._last_given = 0  # the largest number of an object that may still be pending
        self._log = WriteAheadLog(
            str(folder),
            disk,
            segment_bytes=SEGMENT_BYTES,
            first_segment_bytes=FIRST_SEGMENT_BYTES,
            spare_segments=0,
            threads=False,
        )
        try:
            self._objects = _read(self._folder, self._log.recover())
        except BaseException:
            self._log.close()
            raise

    def close(self) -> None:
        """Closes the log."""
        with self._writing:
            self._log.close()

    def find(self, name: str, namespace: str = RELATIONS) -> CatalogObject | None:
        """The object of that name, or None."""
        for made in self._pending.objects or ():
            if (made.key, NAMESPACES[made.kind]) == (name.casefold(), namespace):
                return made
        with self._lock:
            return self._objects.by_name.get((name.casefold(), namespace))

    def by_number(self, number: int) -> CatalogObject | None:
        """The object of that number, or None."""
        with self._lock:
            return self._objects.by_id.get(number)

    def all(self, *kinds: str) -> list[CatalogObject]:
        """All objects of the given kinds (or all), by name."""
        with self._lock:
            known = [*self._objects.by_id.values(), *(self._pending.objects or ())]
        chosen = [o for o in known if not kinds or o.kind in kinds]
        return sorted(chosen, key=lambda o: (o.key, o.kind))

    def keep_written(self) -> None:
        """Others follow its log: no file of it is written twice."""
        self._log.keep_written()

    @property
    def position(self) -> int:
        """The last record of its log."""
        return self._log.next_lsn - 1

    @property
    def last_id(self) -> int:
        """The largest number ever given out."""
        with self._lock:
            return self._objects.last_id

    def next_id(self) -> int:
        """A number for an object about to be made; never given out again once the object exists."""
        with self._lock:
            return max(self._objects.last_id, self._last_given) + 1

    @property
    def dropped(self) -> frozenset[str]:
        """Folders of tables that nothing needs any more, because a DROP said so."""
        with self._lock:
            return frozenset(self._objects.dropped)

    @property
    def failed(self) -> bool:
        """Whether a change failed so that only the next open knows if it is there."""
        return self._log.failure is not None

    def forget_dropped(self, folders: Iterable[str]) -> None:
        """These folders are gone; the next image leaves them out."""
        with self._lock:
            self._objects.dropped -= set(folders)

    def add(self, kind: str, name: str, definition: Mapping[str, Any]) -> CatalogObject:
        """Adds an object; BindError 42P07 if the name is taken."""
        with self._writing:
            self.check_free(kind, name)
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            made = CatalogObject(self.next_id(), kind, name, dict(definition), now)
            if self._pending.objects is None:
                self._write(ADDED, asdict(made))
            else:
                self._last_given = made.id
                self._pending.objects.append(made)
            return made

    @contextlib.contextmanager
    def together(self) -> Iterator[list[CatalogObject]]:
        """What this thread adds inside is written at the end, all or none of it; others see it after that."""
        assert self._pending.objects is None
        made = self._pending.objects = []
        try:
            yield made
        finally:
            self._pending.objects = None
        with self._writing:
            for each in made:
                self.check_free(each.kind, each.name)
            if made:
                self._write(ADDED, *map(asdict, made))

    def check_free(self, kind: str, name: str) -> None:
        """BindError 42P07 if the name is taken in that kind's namespace."""
        other = self.find(name, NAMESPACES[kind])
        if other is not None:
            raise BindError(
                f"{other.kind} {other.name} exists already",
                sqlstate="42P07",
                hint=f"choose another name, or DROP {other.kind.upper()} {other.name} first",
            )

    def remove(self, *gone: CatalogObject) -> None:
        """Removes objects, all or none of them; their folders may be removed when this returns."""
        with self._writing:
            if self._pending.objects is not None:
                self._pending.objects[:] = [o for o in self._pending.objects if o not in gone]
            there = [each.id for each in gone if each.id in self._objects.by_id]
            if there:
                self._write(REMOVED, *there)

    def change(
        self, old: CatalogObject, definition: Mapping[str, Any], name: str | None = None
    ) -> CatalogObject:
        """Gives an object a new definition, and perhaps a new name; refused if `old` is not how it is now."""
        with self._writing:
            new_name = name or old.name
            if new_name.casefold() != old.key:
                self.check_free(old.kind, new_name)
            return self._change([self._changed(old, definition, new_name)])[0]

    def change_all(
        self, changes: Iterable[tuple[CatalogObject, Mapping[str, Any]]]
    ) -> list[CatalogObject]:
        """Gives objects new definitions, all or none of them."""
        with self._writing:
            return self._change([self._changed(old, new, old.name) for old, new in changes])

    def _changed(
        self, old: CatalogObject, definition: Mapping[str, Any], name: str
    ) -> CatalogObject:
        present = self._objects.by_id.get(old.id)
        if present is None:  # else no open could read the record
            raise BindError(f"{old.kind} {old.name} does not exist any more", sqlstate="42704")
        if _payload(asdict(present)) != _payload(asdict(old)):
            raise BindError(
                f"{old.kind} {old.name} was changed meanwhile",
                sqlstate="40001",
                hint="run the statement again",
            )
        return CatalogObject(old.id, old.kind, name, dict(definition), old.created_at)

    def _change(self, changed: list[CatalogObject]) -> list[CatalogObject]:
        self._write(CHANGED, *map(asdict, changed))
        return changed

    def _write(self, kind: int, *said: Any) -> None:
        """Makes records durable together, then takes them in; now and then everything as one record."""
        payloads = [_payload(each) for each in said]
        lsn = self._log.append([Record(kind, 0, (payload,)) for payload in payloads]).wait()
        with self._lock:
            for payload in payloads:
                self._objects.apply(kind, payload)
            self.changes += kind != IMAGE
            image = self._objects.image() if self._objects.wants_image else None
        self.on_change()
        if kind == IMAGE:
            self._log.free(lsn - 1)
        elif image is not None:
            # The change is durable, whatever comes of the image: the next change tries again.
            with contextlib.suppress(StorageError):
                self._write(IMAGE, image)


def read_objects(folder: Path) -> tuple[Objects, int]:
    """What the catalog of a folder that is open elsewhere says, and its last record."""
    last = 0

    def noted() -> Iterator[Record]:
        nonlocal last
        for record in peek(str(folder)):
            last = record.lsn
            yield record

    return _read(folder, noted()), last


def _payload(said: Any) -> bytes:
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()


def read_catalog(folder: Path) -> list[CatalogObject]:
    """The objects in the catalog of a folder that may be open elsewhere; nothing is changed."""
    return list(read_objects(folder)[0].by_id.values())


def _read(folder: Path, records: Iterator[Record]) -> Objects:
    """The objects that the records tell of; they begin with the first one ever, or with an image."""
    objects = Objects()
    seen = whole = False
    for record in records:
        seen, whole = True, whole or record.lsn == 1 or record.kind == IMAGE
        if not whole:
            continue  # an image that replaces it follows
        try:
            objects.apply(record.kind, bytes(record.payload[0]))
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(folder, f"record {record.lsn}: {error!r}") from error
    if seen and not whole:
        raise damaged(folder, "its first records are missing")
    return objects


def damaged(folder: Path, detail: str) -> StorageError:
    """The error for a catalog that cannot be read."""
    return StorageError(
        f"the catalog {folder} is damaged",
        sqlstate="XX001",
        detail=detail,
        hint="put its files back from a copy; the rows under tables/ are untouched, "
        "each folder there is a Delta table that any Delta reader opens",
    )
