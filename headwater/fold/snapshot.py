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
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from headwater.errors import StorageError

MAGIC = b"HWFOLD1\n"
HEADER = struct.Struct("<8sIQQ")  # magic, crc32 of the rest, lengths of the tree and of the arrays
ARRAY, VECTOR, OBJECTS = "array", "vector", "objects"
CHECKED_BYTES = 1 << 20  # of a file that are looked at together


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
    """A state, array by array, into a new file; its header last. No array is held twice for it."""
    arrays: list[pa.Array] = []
    tree = _put({"position": position, "state": state}, arrays)
    text = json.dumps(tree, separators=(",", ":")).encode()
    file.write(bytes(HEADER.size))
    body = _Checked(file)
    body.write(text)
    for array in arrays:
        batch = pa.record_batch([array], names=["a"])
        with pa.PythonFile(body, "w") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    file.seek(0)
    file.write(HEADER.pack(MAGIC, body.crc, len(text), body.length - len(text)))


class _Checked:
    """A file that is written to its end, with the checksum of what was."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.crc, self.length = file, 0, 0

    def write(self, data: bytes | pa.Buffer) -> int:
        """Some bytes more."""
        self.crc, size = zlib.crc32(data, self.crc), memoryview(data).nbytes
        self.length += size
        self._file.write(data)
        return size

    def flush(self) -> None:
        """Whoever has the file does."""

    def close(self) -> None:
        """Only the array has ended."""


def detached(state: Any, copy: Callable[[np.ndarray], np.ndarray] = np.copy) -> Any:
    """A state that does not change when its structure does: vectors that may be written to are copied.

    Partials of panes never are, so a snapshot of a window takes the memory of its running merge alone.
    `copy`: may put a vector elsewhere than in memory.
    """
    if isinstance(state, dict):
        return {key: detached(inner, copy) for key, inner in state.items()}
    if isinstance(state, list | tuple):
        return [detached(inner, copy) for inner in state]
    if isinstance(state, np.ndarray) and state.flags.writeable:
        return copy(state)
    return state


def load(structure: Snapshotted, data: bytes) -> Any:
    """Bring a fresh structure of the same query to a dumped state; gives the position."""
    return read(structure, io.BytesIO(data))


def read(structure: Snapshotted, file: BinaryIO) -> Any:
    """The same from a file, which is looked at before anything is made of it, and never held whole."""
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        raise damaged("it is too short")
    magic, crc, text_length, body_length = HEADER.unpack(header)
    if magic != MAGIC or file.seek(0, io.SEEK_END) != HEADER.size + text_length + body_length:
        raise damaged("its header or length is wrong")
    file.seek(HEADER.size)
    found = 0
    while piece := file.read(CHECKED_BYTES):
        found = zlib.crc32(piece, found)
    if found != crc:
        raise damaged("its checksum does not match")
    file.seek(HEADER.size)
    tree, arrays = json.loads(file.read(text_length)), []
    source = pa.PythonFile(file, "r")
    while file.tell() < HEADER.size + text_length + body_length:
        with pa.ipc.open_stream(source) as stream:
            arrays.append(stream.read_all().column(0).combine_chunks())
    tree = _get(tree, arrays)
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


def _get(tree: Any, arrays: list[pa.Array | None]) -> Any:
    """The tree with its arrays, each of which is in it once and let go as it is taken."""
    if isinstance(tree, list):
        return [_get(inner, arrays) for inner in tree]
    if not isinstance(tree, dict):
        return tree
    if "d" in tree:
        return {key: _get(inner, arrays) for key, inner in tree["d"].items()}
    if ARRAY in tree:
        return _taken(arrays, tree[ARRAY])
    if OBJECTS in tree:
        number, kind, shape = tree[OBJECTS]
        values = _taken(arrays, number).to_pylist()
        if kind == "int":
            values = [None if value is None else int(value) for value in values]
        vector = np.empty(len(values), object)
        vector[:] = values
        return vector.reshape(shape)
    number, dtype, shape = tree[VECTOR]
    flat = _taken(arrays, number).to_numpy(zero_copy_only=False)
    return np.array(flat.view(np.dtype(dtype)), copy=True).reshape(shape)


def _taken(arrays: list[pa.Array | None], number: int) -> pa.Array:
    array, arrays[number] = arrays[number], None
    return array
