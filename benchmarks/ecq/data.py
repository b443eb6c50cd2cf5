"""Generated packets as two routers see them, chunk by chunk; the same rows for the same arguments.

A chunk is a minute of source time `ts`. No packet has the time of a full minute: an ADVANCE to that
time ends the chunk and closes the time itself.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

DDL = "pid BIGINT, ts INT, from_ip STRING, to_ip STRING, bytes INT, seen BIGINT"
HOSTS_DDL = "ip STRING, host_id INT"
STREAMS = ("rt1", "rt2")
MINUTE = 60
ADDRESSES = 1000
HOST_COUNT = 100
BOTH = 0.8  # of a router's packets, so many pass the other one too
SLOWEST_MS = 40

_NAMES = pa.array([f"10.0.{n // 250}.{n % 250}" for n in range(ADDRESSES)])


def hosts() -> pa.Table:
    """Which host has an address."""
    ids = np.arange(ADDRESSES, dtype=np.int32) % HOST_COUNT
    return pa.table({"ip": _NAMES, "host_id": ids})


def chunk(number: int, size: int) -> dict[str, pa.Table]:
    """The packets of a minute at both routers, in order of `ts`."""
    random = np.random.default_rng((size, number))
    shared = round(size * BOTH)
    ids = number * 2 * size + random.permutation(2 * size - shared)
    first = _packets(random, ids[:size], number)
    second = _packets(random, ids[size:], number)
    kept = random.permutation(size)[:shared]  # those that pass both routers
    again = first.take(pa.array(kept))
    late = again.column("seen").to_numpy() + random.integers(1, SLOWEST_MS, shared)
    again = again.set_column(again.column_names.index("seen"), "seen", pa.array(late))
    both = pa.concat_tables([again, second])
    return {"rt1": first, "rt2": both.sort_by("ts").combine_chunks()}


def _packets(random: np.random.Generator, ids: np.ndarray, number: int) -> pa.Table:
    """Packets with these ids, spread over a minute."""
    count = len(ids)
    second = number * MINUTE + 1 + np.arange(count) * (MINUTE - 1) // max(count, 1)
    return pa.table(
        {
            "pid": ids.astype(np.int64),
            "ts": second.astype(np.int32),
            "from_ip": _NAMES.take(pa.array(random.integers(0, ADDRESSES, count))),
            "to_ip": _NAMES.take(pa.array(random.integers(0, ADDRESSES, count))),
            "bytes": random.integers(40, 1500, count, dtype=np.int32),
            "seen": second * 1000 + random.integers(0, 1000, count),
        }
    )


def end_of(number: int) -> int:
    """The cut that ends a chunk."""
    return (number + 1) * MINUTE
