"""Delta Lake as the log of Parquet files, and nothing else: delta-rs evaluates nothing.

delta-rs syncs nothing, so this module does: data files and their folder before a commit, the
commit's file and the log's folder after it. A handle is refreshed after each commit, because
delta-rs does not do so by itself; that reads the commit back, and one that cannot be read is put
aside before anything relies on it. One writer per table: callers hold the table's lock.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import StorageError
from headwater.storage.delta_sums import DeltaSums
from headwater.storage.disk import storage_error, sync_file, sync_folder
from headwater.storage.footer import with_sum
from headwater.storage.modes import FOLDER, make_folder, make_private
from headwater.storage.statistics import misfit

CHECKPOINT_INTERVAL = 10
STATISTICS_COLUMNS = 32
LONGEST_TEXT_BOUND = 64
COUNT = "headwater.actions"  # in a commit's first line: how many lines follow
TORN, UNREADABLE = ".torn", ".unreadable"  # what is added to the names of commits put aside


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table: its path under the table's folder, and what it holds."""

    path: str
    size: int
    row_count: int
    statistics: Mapping[str, Any]


class DeltaLog:
    """The log of one table's files."""

    def __init__(self, folder: Path, *, cut_torn: bool = False) -> None:
        """`cut_torn`: a newest commit whose rows others still hold may be put aside (see `torn`)."""
        self.folder = folder
        self.torn = cut_torn_commit(folder) if cut_torn else None
        self._failure: StorageError | None = None
        self._sums = DeltaSums(folder)
        try:
            self._handle = self._opened_as_written(cut_torn and self.torn is None)
        except BaseException:
            if self.torn is not None:
                self.torn.rename(self.torn.with_suffix(""))  # something else is wrong
            raise
        self._sync_commit()  # the process that made it may have died before it did so

    def _opened_as_written(self, cut: bool) -> Any:
        """A handle of a log that is what was written; a bad checkpoint is left out if it can be."""
        bad = self._sums.check(without=self.torn)
        for path in bad:
            path.rename(_aside(path))
        try:
            return self._opened_without_unreadable(cut)
        except Exception as error:  # delta-rs raises many types; all mean an unreadable log
            for path in bad:
                _aside(path).rename(path)
            raise unreadable_log(self.folder, error, bad) from error

    def _opened_without_unreadable(self, cut: bool) -> Any:
        """A handle; `cut`: without the newest commit, if that only adds rows and cannot be read."""
        try:
            return _opened(self.folder)
        except Exception:
            newest = _newest_commit(self.folder) if cut else None
            if newest is None or not _only_adds(newest):
                raise
            self.torn = put_aside(newest, UNREADABLE)
            try:
                return _opened(self.folder)
            except Exception:
                self.torn.rename(newest)  # something else is wrong: leave all as it was
                raise

    @staticmethod
    def create(folder: Path, schema: pa.Schema) -> None:
        """Makes a new empty table in a new folder."""
        make_folder(folder.parent)
        folder.mkdir(mode=FOLDER)
        try:
            _write_first_commit(folder, schema)
        except OSError as error:
            raise _commit_error(folder, error) from error
        make_private(_commit_file(folder, 0))
        sync_file(_commit_file(folder, 0))
        sync_folder(folder / "_delta_log")
        sync_folder(folder)
        sync_folder(folder.parent)
        DeltaSums(folder).note(0)

    @property
    def version(self) -> int:
        """The version of the newest commit we know of."""
        return int(self._handle.version())

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema(self._handle.schema().to_arrow())

    def refresh(self) -> bool:
        """Looks for commits of others; whether there were any."""
        before = self.version
        self._handle.update_incremental()
        return self.version != before

    def transaction(self, name: str) -> int | None:
        """The last version that an application wrote under its name."""
        if self.version == 0:
            return None  # the commit that made the table has none, and asking reads the whole log
        found = self._handle.transaction_version(name)
        return None if found is None else int(found)

    def files(self) -> list[DataFile]:
        """The files of the newest version, in the order they were added."""
        return _files(self._handle)

    def commit(
        self,
        added: Sequence[DataFile] = (),
        removed: Iterable[str] = (),
        *,
        transactions: Mapping[str, int] | None = None,
    ) -> int:
        """Adds and removes files in one commit; the new version, durable when this returns."""
        from deltalake import CommitProperties, PostCommitHookProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        if self._failure is not None:
            raise StorageError(
                self._failure.message,
                sqlstate=self._failure.sqlstate,
                detail=self._failure.detail,
                hint=self._failure.hint,
            )
        self._check(added)
        now = int(time.time() * 1000)
        try:
            self._sync_data(added)
        except OSError as error:
            raise storage_error("sync", str(error.filename or self.folder), error) from error
        actions: list[Any] = [
            AddAction(f.path, f.size, {}, now, True, json.dumps(dict(f.statistics))) for f in added
        ]
        actions += [RemoveAction(path, True, now) for path in removed]
        names = [Transaction(name, number) for name, number in (transactions or {}).items()]
        mark = uuid.uuid4().hex
        properties = CommitProperties(
            {"headwater.commit": mark, COUNT: str(len(actions) + len(names))},
            app_transactions=names or None,
        )
        before = self.version
        try:
            self._handle.create_write_transaction(
                actions,
                "append",
                self._handle.schema(),
                commit_properties=properties,
                post_commithook_properties=PostCommitHookProperties(False, False),
            )
        except Exception as error:
            if not _made(self.folder, before + 1, mark):
                raise _commit_error(self.folder, error) from error
        self._read_back(mark)
        self._settle()
        return self.version

    def _check(self, added: Sequence[DataFile]) -> None:
        """StorageError for statistics that Delta readers would refuse; nothing was written then."""
        schema = self.schema if added else None
        for file in added:
            assert schema is not None
            wrong = misfit(file.statistics, schema)
            if wrong is not None:
                raise _unreadable(
                    self.folder,
                    ValueError(f"statistics of {file.path}: {wrong}"),
                    "nothing was committed; no acknowledged row is lost",
                )

    def _read_back(self, mark: str = "") -> None:
        """Reads the commit that was just written; one that cannot be read must not stay."""
        try:
            self._handle.update_incremental()
            return
        except Exception as error:
            failure = error
        try:
            self._handle = _read(_table(self.folder))  # the handle alone may have been at fault
        except Exception:
            self._undo(mark, failure)
            raise _unreadable(
                self.folder, failure, "it was put aside; no acknowledged row is lost"
            ) from failure

    def _undo(self, mark: str, failure: Exception) -> None:
        """Puts our commit aside; if that cannot be done, no other may follow it."""
        newest = _newest_commit(self.folder)
        try:
            if newest is None or mark.encode() not in newest.read_bytes():
                raise failure  # somebody committed after it
            put_aside(newest, UNREADABLE)
            self._handle = _read(_table(self.folder))
        except Exception as error:
            hint = f"move {newest} out of the folder, then open the database again"
            self._failure = _unreadable(self.folder, error, hint)
            raise self._failure from failure

    def _settle(self) -> None:
        """Makes the commit that is there durable; if that fails, no other may follow it."""
        try:
            self._sync_commit()
        except Exception as error:
            self._failure = _commit_error(self.folder, error)
            self._failure.hint = "close and open the database; no acknowledged row is lost"
            raise self._failure from error
        due = self.version % CHECKPOINT_INTERVAL == 0
        if due:
            self._checkpoint()
        self._sums.note(self.version, checkpoint=due)

    @property
    def failed(self) -> bool:
        """Whether a commit is there that could not be made durable; nothing may follow it."""
        return self._failure is not None

    def _sync_commit(self) -> None:
        path = _commit_file(self.folder, self.version)
        if path.exists():
            make_private(path)
            sync_file(path)
        sync_folder(self.folder / "_delta_log")

    def _checkpoint(self) -> None:
        """A checkpoint only makes opening faster: a failure is left at that."""
        try:
            self._handle.create_checkpoint()
            self._handle.cleanup_metadata()
            log = self.folder / "_delta_log"
            make_private(log / "_last_checkpoint")
            for path in log.glob(f"{self.version:020d}.checkpoint*.parquet"):
                make_private(path)
                sync_file(path)
            sync_folder(log)
        except Exception:
            for path in bad_checkpoints(self.folder):
                path.unlink(missing_ok=True)

    def add_columns(self, fields: Sequence[pa.Field]) -> int:
        """Adds columns that are NULL in all rows there are."""
        from deltalake import Schema, TableFeatures

        feature = TableFeatures.TimestampWithoutTimezone
        try:
            if any(_has_ntz(field.type) for field in fields):
                self._handle.alter.add_feature(feature, allow_protocol_versions_increase=True)
            self._handle.alter.add_columns(Schema.from_arrow(pa.schema(fields)).fields)
        except Exception as error:
            self._read_back()
            raise _commit_error(self.folder, error) from error
        self._read_back()
        self._settle()
        return self.version

    def _sync_data(self, added: Sequence[DataFile]) -> None:
        sync_files(self.folder, [file.path for file in added])


def sync_files(folder: Path, names: Iterable[str]) -> None:
    """Makes files under a folder durable, with their entries in all folders up to that one."""
    folders: set[Path] = set()
    for name in names:
        sync_file(folder / name)
        folders.update(folder / parent for parent in Path(name).parents)
    for inside in sorted(folders, reverse=True):
        sync_folder(inside)


def listed_files(folder: Path) -> list[DataFile]:
    """The files that the log of a folder names; nothing is changed, whatever is wrong with it."""
    return _files(_read(_table(folder)))


def _files(handle: Any) -> list[DataFile]:
    actions = pa.table(handle.get_add_actions(flatten=False))
    names = actions.column_names
    found = []
    for row in actions.to_pylist():
        stats: dict[str, Any] = {k: row.get(k) for k in ("min", "max", "null_count") if k in names}
        found.append(DataFile(row["path"], row["size_bytes"], row["num_records"] or 0, stats))
    return sorted(found, key=lambda f: f.path)


def _opened(folder: Path) -> Any:
    """A handle; a checkpoint that a power cut left unfinished is put aside, if the commits are there."""
    try:
        return _read(_table(folder))
    except Exception:
        bad = bad_checkpoints(folder)
        for path in bad:
            path.rename(_aside(path))
        if not bad and not _set_checkpoints_aside(folder):
            raise
        try:
            return _read(_table(folder))
        except Exception:
            for path in bad:
                _aside(path).rename(path)
            raise


def unreadable_log(folder: Path, error: Exception, bad: Sequence[Path] = ()) -> StorageError:
    """The error for a log that cannot be read; `bad`: files that are not what was written."""
    path = next(iter([*bad, *bad_checkpoints(folder)]), None) or _bad_commit(folder)
    return StorageError(
        f"the Delta log is damaged: {path or folder / '_delta_log'} cannot be read",
        sqlstate="XX001",
        detail=str(error).splitlines()[0][:300] if str(error) else repr(error),
        hint=f"put {'the folder' if path is None else 'the file'} back from a copy, "
        "and open the database again",
    )


def _aside(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


def _bad_commit(folder: Path) -> Path | None:
    """The first commit after a checkpoint that is no JSON, or is missing; None if all are there."""
    log = folder / "_delta_log"
    checkpoints = [int(p.name[:20]) for p in log.glob(f"{'[0-9]' * 20}.checkpoint*.parquet")]
    found = {int(path.stem): path for path in log.glob(f"{'[0-9]' * 20}.json")}
    for version in range(max(checkpoints, default=-1) + 1, max(found, default=-1) + 1):
        try:
            for line in found[version].read_bytes().splitlines():
                json.loads(line)
        except (KeyError, ValueError, OSError):
            return _commit_file(folder, version)
    return None


def _table(folder: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(folder)


def _read(handle: Any) -> Any:
    handle.get_add_actions()  # delta-rs reads the log only when it is asked
    handle.transaction_version("")
    return handle


def _set_checkpoints_aside(folder: Path) -> bool:
    """Renames checkpoints that can be read and make no sense, if all commits are there."""
    log = folder / "_delta_log"
    commits = sorted(int(path.stem) for path in log.glob(f"{'[0-9]' * 20}.json"))
    found = list(log.glob("*.checkpoint*.parquet"))
    if not found or commits != list(range(len(commits))):
        return False
    for path in (*found, log / "_last_checkpoint"):
        if path.exists():
            path.rename(_aside(path))
    return True


def bad_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints that cannot be read, and the note of the newest one if that is among them."""
    log = folder / "_delta_log"
    bad = []
    for path in log.glob("*.checkpoint*.parquet"):
        try:
            pq.read_table(path)
        except Exception:
            bad.append(path)
    hint = log / "_last_checkpoint"
    if hint.exists() and (bad or not any(log.glob("*.checkpoint*.parquet"))):
        bad.append(hint)
    return bad


def cut_torn_commit(folder: Path) -> Path | None:
    """Puts the newest commit aside if a power cut left only a part of it; where it is now.

    Such a commit was never synced, so nothing relies on it yet. A commit is torn if its last line is
    not whole or lines are missing at its end; any other damage is not.
    """
    newest = _newest_commit(folder)
    if newest is None or int(newest.stem) == 0:
        return None
    if _whole(newest.read_bytes().splitlines()):
        return None
    return put_aside(newest, TORN)


def put_aside(commit: Path, why: str) -> Path:
    """Takes a commit out of the log, durably; where it is now."""
    aside = commit.with_name(commit.name + why)
    commit.rename(aside)
    sync_folder(commit.parent)
    return aside


def _whole(lines: list[bytes]) -> bool:
    """Whether a commit's end is there; its first line says how many lines of ours follow."""
    try:
        json.loads(lines[-1])
    except (ValueError, IndexError):
        return False
    wanted = re.search(rf'"{COUNT}":"(\d+)"'.encode(), lines[0])
    return wanted is None or len(lines) > int(wanted.group(1))


def _has_ntz(type_: Any) -> bool:
    """Whether a type is TIMESTAMP_NTZ, or holds one."""
    if pa.types.is_timestamp(type_):
        return type_.tz is None
    return any(_has_ntz(type_.field(n).type) for n in range(type_.num_fields))


def _write_first_commit(folder: Path, schema: pa.Schema) -> None:
    """The commit that makes a table; delta-rs takes ten times as long, and overlooks types inside of maps."""
    from deltalake import Schema

    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if any(_has_ntz(field.type) for field in schema):
        features = ["timestampNtz"]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(schema).to_json(),
        "partitionColumns": [],
        "configuration": {"delta.checkpointInterval": str(CHECKPOINT_INTERVAL)},
        "createdTime": int(time.time() * 1000),
    }
    lines: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    (folder / "_delta_log").mkdir(mode=FOLDER)
    _commit_file(folder, 0).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _only_adds(commit: Path) -> bool:
    """Whether a commit is one of ours that adds rows, and does nothing else."""
    try:
        lines = [json.loads(line) for line in commit.read_bytes().splitlines()]
    except (ValueError, OSError):
        return False
    kinds = [kind for line in lines for kind in line]
    ours = any(COUNT in line.get("commitInfo", ()) for line in lines)
    return ours and set(kinds) <= {"commitInfo", "add", "txn"}


def _made(folder: Path, version: int, mark: str) -> bool:
    """Whether our commit is there although delta-rs reported an error after it."""
    while (path := _commit_file(folder, version)).exists():
        if mark.encode() in path.read_bytes():
            return True
        version += 1
    return False


def _commit_error(folder: Path, error: Exception) -> StorageError:
    if isinstance(error, OSError) and error.errno:
        return storage_error("commit to", str(folder), error)
    full = "No space left" in str(error) or "os error 28" in str(error)
    return StorageError(
        f"cannot commit to {folder}" + (": the disk is full" if full else ""),
        sqlstate="53100" if full else "58030",
        detail=str(error).splitlines()[0][:300] if str(error) else repr(error),
    )


def _unreadable(folder: Path, error: Exception, hint: str) -> StorageError:
    return StorageError(
        f"a commit to {folder} could not be read back",
        sqlstate="58030",
        detail=str(error).splitlines()[0][:300],
        hint=hint,
    )


def _commit_file(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020d}.json"


def _newest_commit(folder: Path) -> Path | None:
    return max((folder / "_delta_log").glob(f"{'[0-9]' * 20}.json"), default=None)


def write_file(folder: Path, table: pa.Table) -> DataFile:
    """Writes rows as one new Parquet file of the table; not part of it until it is committed."""
    path = folder / f"part-{uuid.uuid4().hex}.parquet"
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    make_private(path)
    return described(folder, path)


def described(folder: Path, path: Path) -> DataFile:
    """A Parquet file as the log describes it, from the file's own footer, whose checksum it is named by."""
    path = with_sum(path)
    footer = pq.read_metadata(path)
    statistics: dict[str, Any] = {"numRecords": footer.num_rows}
    bounds = _bounds(footer)
    if bounds is not None:
        statistics |= bounds
    name = str(path.relative_to(folder))
    return DataFile(name, path.stat().st_size, footer.num_rows, statistics)


def _bounds(footer: Any) -> dict[str, dict[str, Any]] | None:
    """Smallest and largest value and NULL count of plain columns, as Delta writes them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(min(footer.num_columns, STATISTICS_COLUMNS)):
        chunks = [footer.row_group(g).column(index) for g in range(footer.num_row_groups)]
        name = footer.schema.column(index).path
        if "." in name or not chunks or any(c.statistics is None for c in chunks):
            continue
        if all(c.statistics.has_null_count for c in chunks):
            nulls[name] = sum(c.statistics.null_count for c in chunks)
        bounds = [(c.statistics.min, c.statistics.max) for c in chunks if c.statistics.has_min_max]
        if bounds and len(bounds) == len(chunks) and _plain(bounds[0][0]):
            low[name], high[name] = min(b[0] for b in bounds), max(b[1] for b in bounds)
    return {"minValues": low, "maxValues": high, "nullCount": nulls} if nulls else None


def _plain(value: Any) -> bool:
    """Whether a bound can be written as it is; the others are left out, which is always allowed."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= LONGEST_TEXT_BOUND)
