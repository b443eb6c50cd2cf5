"""Tables below the folds of views: read once, at creation, and kept in files of their own (CV6).

A file holds one version of one table and serves every view that was made at that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.kernel.relation import HeldTables, Relation
from headwater.storage.disk import sync_file, sync_folder
from headwater.storage.modes import make_folder, make_private


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
            found[name] = f"{item.id}-{made_as}-{held.versions[name]}.parquet"
            path = folder / found[name]
            if not path.exists():
                fresh = path.with_suffix(".new")
                pq.write_table(context.table_rows(relation), fresh)
                make_private(fresh)
                sync_file(fresh)
                fresh.replace(path)
    sync_folder(folder)
    return found


def held_static(context: Context, files: Mapping[str, str]) -> HeldTables:
    """The pinned tables, for folds."""
    folder = _folder(context)
    paths = {name: folder / file for name, file in files.items()}
    relations = {n: Relation(pq.read_schema(path), (str(path),)) for n, path in paths.items()}
    return HeldTables(relations, {})


def forget_static(context: Context) -> None:
    """Files that no view needs any more go, where it is sure which views there are."""
    if context.catalog.failed:
        return
    needed: set[str] = set()
    for item in context.catalog.all("view"):
        needed.update(item.definition.get("static", {}).values())
    for path in _folder(context).glob("*.parquet"):
        if path.name not in needed:
            path.unlink(missing_ok=True)
