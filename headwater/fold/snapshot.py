"""States as bytes and back, bit by bit.

Owns: the format: a JSON tree whose leaves that are arrays point into one Arrow IPC stream each
(64-bit numbers and booleans by their bytes, objects as Arrow text, binary or decimal digits).
Every structure gives its state as such a tree and takes it back. Must never: pickle, write a
file, or accept bytes that are damaged: a checksum is compared before anything is read.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.errors import StorageError

MAGIC = b"HWFOLD1\n"
HEADER = struct.Struct("<8sIQQ")  # magic, crc32 of the rest, lengths of the tree and of the arrays
ARRAY, VECTOR, OBJECTS = "array", "vector", "objects"


class Snapshotted(Protocol):
    """A structure that can be put away and taken up again."""

    def state(self) -> dict[str, Any]:
        """What must be kept."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take it up again."""


class Held:
    """A copy of a structure's state, which stays as it is while the structure goes on."""

    def __init__(self, structure: Snapshotted) -> None:
        self._state = _copied(structure.state())

    def state(self) -> dict[str, Any]:
        """What must be kept."""
        return dict(self._state)

    def restore(self, state: dict[str, Any]) -> None:
        """Take it up again."""
        self._state = state


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def dump(structure: Snapshotted, position: Any = None) -> bytes:
    """A structure's state as bytes, with the source position that it belongs to."""
    return b"".join(dump_parts(structure, position))


def dump_parts(structure: Snapshotted, position: Any = None) -> list[bytes | pa.Buffer]:
    """The same in parts, to be written one after the other."""
    arrays: list[pa.Array] = []
    tree = _put({"position": position, "state": structure.state()}, arrays)
    text = json.dumps(tree, separators=(",", ":")).encode()
    sink = pa.BufferOutputStream()
    for array in arrays:
        batch = pa.record_batch([array], names=["a"])
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    body = sink.getvalue()
    crc = zlib.crc32(body, zlib.crc32(text))
    return [HEADER.pack(MAGIC, crc, len(text), body.size), text, body]


def load(structure: Snapshotted, data: bytes) -> Any:
    """Bring a fresh structure of the same query to a dumped state; gives the position."""
    if len(data) < HEADER.size:
        raise damaged("it is too short")
    magic, crc, text_length, body_length = HEADER.unpack_from(data)
    if magic != MAGIC or len(data) != HEADER.size + text_length + body_length:
        raise damaged("its header or length is wrong")
    if zlib.crc32(memoryview(data)[HEADER.size :]) != crc:
        raise damaged("its checksum does not match")
    start = HEADER.size + text_length
    reader = pa.BufferReader(pa.py_buffer(memoryview(data)[start:]))
    arrays: list[pa.Array] = []
    while reader.tell() < body_length:
        with pa.ipc.open_stream(reader) as stream:
            arrays.append(stream.read_all().column(0).combine_chunks())
    tree = _get(json.loads(data[HEADER.size : start]), arrays)
    structure.restore(tree["state"])
    return tree["position"]


def damaged(detail: str) -> StorageError:
    """The error for bytes that are no snapshot."""
    return StorageError("damaged snapshot", sqlstate="XX001", detail=detail)


def _put(value: Any, arrays: list[pa.Array]) -> Any:
    if isinstance(value, dict):
        return {"d": {key: _put(inner, arrays) for key, inner in value.items()}}
    if isinstance(value, list | tuple):
        return [_put(inner, arrays) for inner in value]
    if isinstance(value, pa.Array):
        arrays.append(value)
        return {ARRAY: len(arrays) - 1}
    if isinstance(value, np.ndarray):
        return _put_vector(value, arrays)
    if isinstance(value, np.integer):
        return int(value)
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"a snapshot cannot hold {type(value).__name__}")


def _put_vector(vector: np.ndarray[Any, Any], arrays: list[pa.Array]) -> Any:
    flat = np.ascontiguousarray(vector).reshape(-1)
    if vector.dtype == object:
        kind = _put_objects(flat.tolist(), arrays)
        return {OBJECTS: [len(arrays) - 1, kind, list(vector.shape)]}
    arrays.append(pa.array(flat.view(np.uint8) if flat.dtype == np.bool_ else flat))
    return {VECTOR: [len(arrays) - 1, vector.dtype.str, list(vector.shape)]}


def _put_objects(values: list[Any], arrays: list[pa.Array]) -> str:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int}:
        digits = [None if value is None else str(value) for value in values]
        arrays.append(pa.array(digits, pa.large_string()))
        return "int"
    arrays.append(pa.array(values, pa.large_string() if kinds == {str} else pa.large_binary()))
    return "other"


def _get(tree: Any, arrays: list[pa.Array]) -> Any:
    if isinstance(tree, list):
        return [_get(inner, arrays) for inner in tree]
    if not isinstance(tree, dict):
        return tree
    if "d" in tree:
        return {key: _get(inner, arrays) for key, inner in tree["d"].items()}
    if ARRAY in tree:
        return arrays[tree[ARRAY]]
    if OBJECTS in tree:
        number, kind, shape = tree[OBJECTS]
        values = arrays[number].to_pylist()
        if kind == "int":
            values = [None if value is None else int(value) for value in values]
        vector = np.empty(len(values), object)
        vector[:] = values
        return vector.reshape(shape)
    number, dtype, shape = tree[VECTOR]
    flat = arrays[number].to_numpy(zero_copy_only=False)
    return np.array(flat.view(np.dtype(dtype)), copy=True).reshape(shape)
