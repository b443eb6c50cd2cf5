"""Groups are shared out by their keys: the same in every process, evenly, equal keys to one part."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.fold.hashing import hashes_of, partitions_by
from headwater.fold.share import Share, shares_of

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int32(), [0, 1, -1, 7, 2**31 - 1]),
    "longs": (pa.int64(), [0, 1 << 40, -(2**63)]),
    "floats": (pa.float64(), [0.0, 1.5, float("nan"), float("inf"), -2.0]),
    "text": (pa.string(), ["", "a", "b", "a longer one", "ü", "eight __", "x" * 90, "y" * 64]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\xff"]),
    "decimals": (pa.decimal128(30, 4), [Decimal(1), Decimal("1e20"), Decimal("-1.5")]),
    "short decimals": (pa.decimal128(9, 2), [Decimal(1), Decimal("-1.5")]),
    "days": (pa.date32(), [date(1970, 1, 1), date(2026, 1, 2)]),
    "times": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1), datetime(1960, 5, 5)]),
    "booleans": (pa.bool_(), [True, False]),
}


def some(kind: str) -> pa.Array:
    """Values of a type, and NULL."""
    type_, values = VALUES[kind]
    return pa.array([*values, None], type_)


@pytest.mark.parametrize("kind", VALUES)
def test_a_key_has_its_part_whichever_rows_stand_beside_it(kind: str) -> None:
    values = some(kind)
    together = shares_of([values, some(kind)], len(values), 5)
    for row in range(len(values)):
        alone = values.slice(row, 1)
        assert shares_of([alone, alone], 1, 5)[0] == together[row]
    twice = pa.concat_arrays([values, values])
    assert (
        shares_of([twice], len(twice), 5).tolist()
        == shares_of([values], len(values), 5).tolist() * 2
    )


def test_keys_that_are_one_group_have_one_part() -> None:
    floats = pa.array([0.0, -0.0, float("nan"), -float("nan"), np.nan])
    zero, negative, *others = shares_of([floats], 5, 1 << 30).tolist()
    assert zero == negative
    assert len(set(others)) == 1


@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize(
    "keys",
    [
        [pa.array(range(10_000))],
        [pa.array([n << 32 for n in range(10_000)])],
        [pa.array([1_000_000 * n for n in range(10_000)])],
        [pa.array([float(n) for n in range(10_000)])],
        [pa.array([f"user {n}" for n in range(10_000)])],
        [pa.array([f"{n}{'-' * 100}" for n in range(10_000)])],
        [pa.array([f"{'-' * 100}{n}" for n in range(10_000)])],
        [pa.array([n % 100 for n in range(10_000)]), pa.array([n // 100 for n in range(10_000)])],
    ],
    ids=["numbers", "high bits", "times", "floats", "text", "long text", "last bytes", "two"],
)
def test_groups_are_shared_out_evenly(keys: list[pa.Array], parts: int) -> None:
    """And those of a part over all partitions of spilled states."""
    places = shares_of(keys, 10_000, parts)
    assert np.bincount(places, minlength=parts).min() > 0.9 * 10_000 / parts
    spilled = partitions_by(hashes_of(keys, 10_000), 32)[places == 0]
    assert np.bincount(spilled, minlength=32).min() > 0.3 * 10_000 / parts / 32


def test_every_row_is_of_one_share() -> None:
    keys = [some("text"), some("text")]
    for parts in (2, 3, 7, 64):
        places = shares_of(keys, len(keys[0]), parts)
        for place in range(parts):
            mine = Share(place, parts).rows(keys, len(keys[0]))
            assert mine.tolist() == np.flatnonzero(places == place).tolist()


def test_snapshots_go_by_it_so_it_never_changes() -> None:
    """The same in another process, and as ever."""
    places = {kind: shares_of([some(kind)], len(some(kind)), 1000).tolist() for kind in VALUES}
    text = (
        "from tests.fold.test_share import *;"
        "print({k: shares_of([some(k)], len(some(k)), 1000).tolist() for k in VALUES})"
    )
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(places)
    assert places == KNOWN


KNOWN = {
    "integers": [0, 817, 182, 720, 117, 416],
    "longs": [0, 511, 500, 416],
    "floats": [0, 763, 13, 526, 750, 416],
    "text": [0, 791, 514, 584, 438, 623, 446, 594, 416],
    "bytes": [0, 694, 388, 971, 416],
    "decimals": [19, 353, 305, 416],
    "short decimals": [720, 419, 416],
    "days": [0, 865, 416],
    "times": [763, 979, 416],
    "booleans": [817, 0, 416],
}
