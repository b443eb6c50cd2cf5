"""Customers and calls: the same rows for the same numbers."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

CUSTOMERS = {
    "id": "BIGINT",
    "city_zip": "INT",
    "region_id": "INT",
    "type": "INT",
    "category": "INT",
    "value_type": "INT",
}
EVENTS = {
    "entity_id": "BIGINT",
    "week": "INT",
    "duration": "INT",
    "cost": "INT",
    "long_distance": "BOOLEAN",
    "local_calls": "INT",  # 1 for a local call, NULL for another
    "local_cost": "INT",
    "long_distance_cost": "INT",
}
THIS_WEEK = 0.9  # of the calls; the others are late by a week
LOCAL = 0.7


def ddl(columns: dict[str, str]) -> str:
    """The columns as SQL has them."""
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())


def current_week() -> int:
    """The ISO week of today."""
    return datetime.now(UTC).isocalendar().week


def customers(count: int, seed: int = 0) -> pa.Table:
    """So many customers."""
    random = np.random.default_rng(seed)

    def below(bound: int) -> pa.Array:
        return pa.array(random.integers(0, bound, count, dtype=np.int32))

    return pa.table(
        {
            "id": pa.array(np.arange(count, dtype=np.int64)),
            "city_zip": below(1000),
            "region_id": below(20),
            "type": below(4),
            "category": below(3),
            "value_type": below(4),
        }
    )


def events(first: int, count: int, customer_count: int, week: int) -> pa.Table:
    """Calls from the `first` on."""
    random = np.random.default_rng((1, first))
    local = random.random(count) < LOCAL
    cost = random.integers(1, 500, count, dtype=np.int32)
    late = random.random(count) >= THIS_WEEK
    return pa.table(
        {
            "entity_id": pa.array(random.integers(0, customer_count, count, dtype=np.int64)),
            "week": pa.array(np.where(late, week - 1, week).astype(np.int32)),
            "duration": pa.array(random.integers(1, 120, count, dtype=np.int32)),
            "cost": pa.array(cost),
            "long_distance": pa.array(~local),
            "local_calls": pa.array(np.ones(count, np.int32), mask=~local),
            "local_cost": pa.array(np.where(local, cost, 0).astype(np.int32)),
            "long_distance_cost": pa.array(np.where(local, 0, cost).astype(np.int32)),
        }
    )
