"""States as bytes and back, bit by bit.

Owns: the format: a JSON tree whose leaves that are arrays point into one Arrow IPC stream each
(64-bit numbers and booleans by their bytes, objects as Arrow text, binary or decimal digits).
Every structure gives its state as such a tree and takes it back. Must never: pickle, write a
file, or accept bytes that are damaged: a checksum is compared before anything is read.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import Any, BinaryIO, Protocol

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


def dump(structure: Snapshotted, position: Any = None) -> bytes:
    """A structure's state as bytes, with the source position that it belongs to."""
    with io.BytesIO() as file:
        write(file, structure.state(), position)
        return file.getvalue()


def write(file: BinaryIO, state: dict[str, Any], position: Any = None) -> None:
    """A state, array by array, into a new file; its header last."""
    arrays: list[pa.Array] = []
    tree = _put({"position": position, "state": state}, arrays)
    text = json.dumps(tree, separators=(",", ":")).encode()
    file.write(bytes(HEADER.size))
    file.write(text)
    crc, length = zlib.crc32(text), 0
    for array in arrays:
        sink, batch = pa.BufferOutputStream(), pa.record_batch([array], names=["a"])
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        body = sink.getvalue()
        file.write(body)
        crc, length = zlib.crc32(body, crc), length + body.size
    file.seek(0)
    file.write(HEADER.pack(MAGIC, crc, len(text), length))


def detached(state: Any) -> Any:
    """A state that does not change when its structure does: vectors that may be written to are copied.

    Partials of panes never are, so a snapshot of a window takes the memory of its running merge alone.
    """
    if isinstance(state, dict):
        return {key: detached(inner) for key, inner in state.items()}
    if isinstance(state, list | tuple):
        return [detached(inner) for inner in state]
    if isinstance(state, np.ndarray) and state.flags.writeable:
        return state.copy()
    return state


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
