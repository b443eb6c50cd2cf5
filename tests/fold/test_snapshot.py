"""Snapshots: what they hold, bit by bit, and what they refuse. Each structure's test restores its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import StorageError
from headwater.fold import snapshot


class Held:
    """A structure that is its state."""

    def __init__(self, tree: dict | None = None) -> None:
        self.tree = tree or {}

    def state(self) -> dict:
        return self.tree

    def restore(self, state: dict) -> None:
        self.tree = state


def objects(*values) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


VECTORS = [
    np.array([1, -1, 2**63 - 1]),
    np.array([np.nan, -np.nan, -0.0, 5e-324, np.inf]),
    np.array([True, False]),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.empty((4, 0), np.int64),
    objects("a", None, "é\0"),
    objects(b"\xff", b""),
    objects(10**40, None, -1),
    objects(None, None),
    objects(),
]


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_vectors_come_back_bit_by_bit(vector):
    restored = Held()
    snapshot.load(restored, snapshot.dump(Held({"v": [vector, {"inner": vector}]})))
    for found in (restored.tree["v"][0], restored.tree["v"][1]["inner"]):
        assert (found.dtype, found.shape) == (vector.dtype, vector.shape)
        if vector.dtype == object:
            assert found.tolist() == vector.tolist()
        else:
            assert found.tobytes() == vector.tobytes()
        found.reshape(-1)[:1] = found.reshape(-1)[:1]  # may be written to


def test_positions_and_plain_values_come_back():
    tree = {"a": [1, None, "x", {"b": [pa.array(["é", None])]}], "t": True, "n": np.int64(7)}
    restored = Held()
    assert snapshot.load(restored, snapshot.dump(Held(tree), {"table": 42})) == {"table": 42}
    assert restored.tree == tree


def test_damage_is_found():
    data = snapshot.dump(Held({"v": np.arange(100)}))
    for place in (0, 9, 30, len(data) // 2, len(data) - 1):
        torn = bytearray(data)
        torn[place] ^= 1
        with pytest.raises(StorageError):
            snapshot.load(Held(), bytes(torn))
    for length in (0, 5, len(data) - 1):
        with pytest.raises(StorageError):
            snapshot.load(Held(), data[:length])


def test_what_it_cannot_hold_is_refused():
    with pytest.raises(TypeError):
        snapshot.dump(Held({"f": lambda: None}))


def test_a_held_state_stays_as_it_was():
    """A copy is not changed by what the structure does later."""
    vector = np.arange(5)
    held = snapshot.Held(Held({"inner": [vector, {"same": vector}]}))
    vector[:] = 0
    restored = Held()
    snapshot.load(restored, snapshot.dump(held))
    assert restored.tree["inner"][0].tolist() == [0, 1, 2, 3, 4]
    assert restored.tree["inner"][1]["same"].tolist() == [0, 1, 2, 3, 4]
