"""Tables below the folds of views: read once, at creation, and kept in files of their own (CV6).

A file holds one version of one table and serves every view that was made at that version. Its pages and its
footer carry checksums, as all data files do: a changed bit is an error, never another row.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import StorageError
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.kernel.relation import HeldTables, Relation
from headwater.storage.disk import storage_error, sync_file, sync_folder
from headwater.storage.footer import check_footers, with_sum
from headwater.storage.modes import make_folder, make_private

FRESH = ".new-"


def _folder(context: Context) -> Path:
    return context.folder.path / "views"


def pin_static(context: Context, made: MadeView) -> dict[str, str]:
    """The rows of the tables below a view's folds, as of now: by table the name of a file."""
    found: dict[str, str] = {}
    names = {*made.plan.stream_tables, *context.tables_of_functions(made.plan.identifiers)}
    if not names:
        return found
    folder = _folder(context)
    make_folder(folder)
    with context.held(names) as held:
        for name in sorted(names):
            item, relation = context.find(name), held.relations.get(name)
            if item is None or relation is None:
                continue
            made_as = context.tables[item.id].folder.name  # another one counts versions anew
            stem = f"{item.id}-{made_as}-{held.versions[name]}"
            path = _pinned(folder, stem)
            if path is None:
                path = _written(folder, stem, context.table_rows(relation))
            found[name] = path.name
    sync_folder(folder)
    return found


def _pinned(folder: Path, stem: str) -> Path | None:
    """The file of a version, if it is there."""
    return next(folder.glob(f"{glob.escape(stem)}.*parquet"), None)


def _written(folder: Path, stem: str, rows: pa.Table) -> Path:
    fresh = folder / f"{FRESH}{stem}.parquet"
    pq.write_table(rows, fresh, write_page_checksum=True)
    fresh = with_sum(fresh)
    make_private(fresh)
    sync_file(fresh)
    return fresh.replace(folder / fresh.name.removeprefix(FRESH))


def held_static(context: Context, files: Mapping[str, str]) -> HeldTables:
    """The pinned tables, for folds."""
    folder = _folder(context)
    return HeldTables({name: _relation(name, folder / file) for name, file in files.items()}, {})


def _relation(name: str, path: Path) -> Relation:
    try:
        check_footers([str(path)])
        return Relation(pq.read_schema(path), (str(path),))
    except (OSError, pa.ArrowException, StorageError) as error:
        cause = error.__cause__ if isinstance(error, StorageError) else error
        gone = isinstance(cause, FileNotFoundError)
        if isinstance(cause, OSError) and cause.errno and not gone:
            raise storage_error("read", str(path), cause) from cause
        detail = error.detail if isinstance(error, StorageError) else str(error)
        raise StorageError(
            f"the file {path} is {'missing' if gone else 'damaged'}",
            sqlstate="XX001",
            detail=f"it holds table {name} as the view has it: {detail}",
            hint="restore the file from a copy, or DROP VIEW and create the view again",
        ) from error


def forget_static(context: Context) -> None:
    """Files that no view needs any more go, where it is sure which views there are."""
    if context.catalog.failed:
        return
    needed: set[str] = set()
    for item in (*context.catalog.all("view"), *list(context.passing.values())):
        needed.update(item.definition.get("static", {}).values())
    for path in _folder(context).glob("*.parquet"):
        if path.name not in needed:
            path.unlink(missing_ok=True)
