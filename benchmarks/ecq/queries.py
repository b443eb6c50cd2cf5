"""The paper's queries, each as one text for a cut stream and for a table that holds a chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.datacell.series import Answer
from benchmarks.ecq.data import MINUTE, STREAMS


@dataclass(frozen=True)
class Query:
    """A query; `{rt1}` and `{rt2}` stand for what the two routers saw."""

    name: str
    text: str
    answer: Callable[[pa.Table], Answer]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return tuple(name for name in STREAMS if f"{{{name}}}" in self.text)

    def continuous(self) -> str:
        """Over cut streams, epoch by epoch."""
        cut = "STREAM({name}, 'CUT ON ts BY {seconds} SECS', 'BLOCK')"
        return self.text.format(**{n: cut.format(name=n, seconds=MINUTE) for n in STREAMS})

    def one_time(self) -> str:
        """Over tables of the streams' names."""
        return self.text.format(**{name: name for name in STREAMS})


def row(rows: pa.Table) -> Answer:
    """Of a result of one row: the minute and the value."""
    assert rows.num_rows == 1
    return tuple(rows.column(place)[0].as_py() for place in range(2))


def checksum(rows: pa.Table) -> Answer:
    """Of a result of Q_b, whatever its order: rows, Σ bytes, and Σ bytes weighted by each host."""
    sender, receiver, total = (
        rows.column(name).to_numpy().astype(np.int64)
        for name in ("from_host", "to_host", "total_bytes")
    )
    sums = (total.sum(), (sender * total).sum(), (receiver * total).sum())
    return rows.num_rows, *map(int, sums)


Q_B = Query(
    "Q_b",
    "SELECT floor(s.ts / 60) AS minute, h1.host_id AS from_host, h2.host_id AS to_host, "
    "sum(s.bytes) AS total_bytes FROM {rt1} s, hosts h1, hosts h2 "
    "WHERE h1.ip = s.from_ip AND h2.ip = s.to_ip GROUP BY floor(s.ts / 60), h1.host_id, h2.host_id",
    checksum,
)
Q_C = Query(
    "Q_c",
    "SELECT floor(s1.ts / 60) AS minute, avg(s2.seen - s1.seen) AS delay "
    "FROM {rt1} s1, {rt2} s2 WHERE s1.pid = s2.pid GROUP BY floor(s1.ts / 60)",
    row,
)
Q_D = Query(
    "Q_d",
    "SELECT floor(s.ts / 60) AS minute, avg(s.bytes) AS mean_bytes FROM {rt1} s "
    "GROUP BY floor(s.ts / 60)",
    row,
)
