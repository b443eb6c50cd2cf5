"""The file of one block's sorted keys: immutable, memory-mapped, checked whole when opened.

Layout: magic (8 bytes), length and crc32c of the header (4 each, little-endian), the header as
JSON padded with blanks, then the arrays, each at a multiple of 64 bytes. The header names column,
type, method, block, row count, the arrays and the crc32c of everything after it.
Must never: give keys from a file that is not byte for byte what was written.
"""

from __future__ import annotations

import base64
import json
import mmap
import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from headwater.errors import StorageError
from headwater.storage.derived import remove_quietly, write_temporary
from headwater.storage.disk import Disk, storage_error
from headwater.storage.value_index.keys import BytesKeys, SortedKeys

MAGIC = b"HWKEYS\x00\x01"
PREFIX = struct.Struct("<8sII")
ALIGNMENT = 64


class DamagedIndex(StorageError):
    """An index file that is not what was written; the index of that block is to be rebuilt."""

    default_sqlstate = "XX001"


@dataclass(frozen=True)
class Loaded:
    """What a file holds: the keys, and the block they are of."""

    keys: SortedKeys
    block_id: str


def write(path: str, keys: SortedKeys, block_id: str = "", disk: Disk | None = None) -> None:
    """Puts the file in place whole; nothing is synced: a torn file is found out by its checksum."""
    disk = disk or Disk()
    temporary = stage(path, keys, block_id, disk)
    try:
        disk.rename(temporary, path)
    except BaseException:
        remove_quietly(temporary)
        raise


def stage(path: str, keys: SortedKeys, block_id: str, disk: Disk) -> str:
    """Writes the file under a temporary name, which it gives, to be renamed to `path`."""
    parts: list[bytes | memoryview] = []
    layout: list[tuple[str, str, int]] = []
    crc = 0
    for name, array in _arrays(keys):
        content = np.ascontiguousarray(array).view(np.uint8).data if len(array) else b""
        padding = bytes(-len(content) % ALIGNMENT)
        layout.append((name, array.dtype.str, len(array)))
        parts += [content, padding]
        crc = crc32c(padding, crc32c(content, crc))
    header = json.dumps(_header(keys, block_id, layout, crc)).encode()
    header += b" " * (-(PREFIX.size + len(header)) % ALIGNMENT)
    prefix = PREFIX.pack(MAGIC, len(header), crc32c(header))
    return write_temporary(disk, path, [prefix, header, *parts])


def load(path: str) -> SortedKeys:
    """The keys in the file; DamagedIndex if it is not what was written."""
    return load_with_block(path).keys


def load_with_block(path: str) -> Loaded:
    """As `load`, with the block."""
    content = _mapped(path)
    try:
        return _parsed(content)
    except (ValueError, KeyError, TypeError, struct.error, pa.ArrowException) as error:
        raise DamagedIndex(
            f"the index file {path} is damaged",
            detail=str(error) or type(error).__name__,
            hint="it is rebuilt from the block; nothing is lost",
        ) from error


def _arrays(keys: SortedKeys) -> list[tuple[str, Any]]:
    found = keys.keys
    if isinstance(found, BytesKeys):
        distinct = [("offsets", found.offsets), ("data", found.data)]
    else:
        distinct = [("keys", found)]
    return [*distinct, ("starts", keys.starts), ("rows", keys.rows)]


def _header(
    keys: SortedKeys, block_id: str, layout: list[tuple[str, str, int]], crc: int
) -> dict[str, Any]:
    schema = pa.schema([pa.field("key", keys.type)]).serialize().to_pybytes()
    return {
        "column": keys.column,
        "type": str(keys.type),
        "schema": base64.b64encode(schema).decode(),
        "method": keys.method,
        "block": block_id,
        "row_count": keys.row_count,
        "arrays": layout,
        "crc32c": crc,
    }


def _mapped(path: str) -> memoryview:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not os.fstat(descriptor).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error("map", path, error) from error


def _parsed(content: memoryview) -> Loaded:
    magic, length, header_crc = PREFIX.unpack_from(content)
    start = PREFIX.size + length
    written = content[PREFIX.size : start]
    if magic != MAGIC or len(written) != length or crc32c(written) != header_crc:
        raise ValueError("the header is damaged")
    header = json.loads(bytes(written))
    arrays: dict[str, Any] = {}
    end = start
    for name, dtype, count in header["arrays"]:
        arrays[name] = np.frombuffer(content, np.dtype(dtype), count, end)
        end += -(-arrays[name].nbytes // ALIGNMENT) * ALIGNMENT
    if end != len(content) or crc32c(content[start:]) != header["crc32c"]:
        raise ValueError("the checksum of the keys does not fit")
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"])))
    keys = arrays["keys"] if "keys" in arrays else BytesKeys(arrays["offsets"], arrays["data"])
    sorted_keys = SortedKeys(
        header["column"],
        schema.field(0).type,
        header["method"],
        header["row_count"],
        keys,
        arrays["starts"],
        arrays["rows"],
    )
    return Loaded(sorted_keys, header["block"])
