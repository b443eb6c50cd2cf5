"""Checksums of Parquet footers, in the names of files.

Pages carry checksums of their own; a footer does not, and a changed bit there can hide a column or skip a row
group without an error. So a data file that we write ends in `.<crc32c of its footer>.parquet`, and the first
reader of a process compares. Files of other writers have no such name and are taken as they are.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

from headwater.errors import StorageError
from headwater.storage.disk import storage_error

FILES_REMEMBERED = 65_536
_NAMED = re.compile(r"\.([0-9a-f]{8})\.parquet")
_TAIL = struct.Struct("<I4s")
_MAGIC = b"PAR1"


def with_sum(path: Path) -> Path:
    """Renames a whole Parquet file so that its name carries the checksum of its footer; the new path."""
    end = f".{_footer_sum(path):08x}.parquet"
    if path.name.endswith(end):
        return path
    return path.rename(path.with_name(path.name.removesuffix(".parquet") + end))


def check_footers(paths: Iterable[str]) -> None:
    """XX001 for the first file whose footer is not the one that was written."""
    for path in paths:
        _check(path)


@lru_cache(FILES_REMEMBERED)
def _check(path: str) -> None:
    check_footer(path)


def check_footer(path: str) -> None:
    """The same of one file, whether this process has looked at it before or not."""
    named = _NAMED.search(path)
    if named is None:
        return
    try:
        right = _footer_sum(Path(path)) == int(named[1], 16)
    except (FileNotFoundError, ValueError) as error:
        raise damaged_file(path, str(error)) from error
    except OSError as error:
        raise storage_error("read", path, error) from error
    if not right:
        raise damaged_file(path, "the checksum of its footer does not match")


def check_pages(path: str) -> None:
    """XX001 if the file's footer or one of its pages is not what was written; reads all of it."""
    check_footer(path)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        raise damaged_file(path, str(error).splitlines()[0]) from error


def _footer_sum(path: Path) -> int:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - _TAIL.size, 0))
        tail = file.read()
        if len(tail) < _TAIL.size:
            raise ValueError("the file is too short")
        length, magic = _TAIL.unpack(tail)
        if magic != _MAGIC or length + _TAIL.size > size:
            raise ValueError("the file does not end with a Parquet footer")
        file.seek(size - _TAIL.size - length)
        return int(crc32c(file.read()))


def damaged_file(path: str, detail: str) -> StorageError:
    """The error for a data file that is not what was written."""
    return StorageError(
        f"the file {path} is damaged",
        sqlstate="XX001",
        detail=detail,
        hint="restore the file from a copy",
    )
