"""The names of policies and what they stand for.

Owns: the list. Must never: decide anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue.append import Append
from headwater.engine.update_queue.discipline import Discipline
from headwater.engine.update_queue.fifo import Fifo
from headwater.engine.update_queue.inplace import InPlace
from headwater.engine.update_queue.latest import Latest
from headwater.engine.update_queue.lifo import Lifo
from headwater.engine.update_queue.linecutting import LineCutting
from headwater.engine.update_queue.policy import Policy
from headwater.engine.update_queue.random import Random
from headwater.engine.update_queue.refresh import RefreshTimes
from headwater.engine.update_queue.shedding import Shedding
from headwater.engine.update_queue.store import PAGE_ROWS, PagePool

ORDERS: dict[str, type[Policy]] = {policy.name: policy for policy in (Fifo, InPlace, Lifo)}
KEY_POLICIES = (*ORDERS, LineCutting.name, Random.name)
POLICIES = (*KEY_POLICIES, Append.name, Shedding.name)


@dataclass(frozen=True)
class Choice:
    """A policy by name with what it needs besides."""

    name: str = InPlace.name
    random: np.random.Generator | None = None  # for random and shedding
    shed_fraction: float = 0.0  # for shedding
    literal: bool = False  # for linecutting: the paper's formula alone


def make_policy(choice: Choice) -> Policy:
    """The order of keys that a choice stands for."""
    if choice.name in ORDERS:
        return ORDERS[choice.name]()
    if choice.name == LineCutting.name:
        return LineCutting(choice.literal)
    if choice.name == Random.name:
        return Random(_generator(choice))
    raise ValueError(f"{choice.name!r} does not order keys: {', '.join(KEY_POLICIES)} do")


def make_discipline(
    choice: Choice,
    schema: pa.Schema,
    *,
    pool: PagePool,
    page_rows: int = PAGE_ROWS,
    targets: Sequence[tuple[np.ndarray, int]] = (),
) -> Discipline:
    """The waiting room of a choice; `targets`: slots and the interval to refresh them at."""
    if choice.name == Append.name:
        return Append(schema)
    if choice.name == Shedding.name:
        return Shedding(schema, choice.shed_fraction, _generator(choice))
    policy = make_policy(choice)
    if targets:
        policy = refresh = RefreshTimes(policy)
        refresh.grow(max(int(slots.max(initial=-1)) for slots, _ in targets) + 1)
        for slots, interval in targets:
            refresh.target(slots, interval)
    return Latest(schema, policy, pool, page_rows)


def _generator(choice: Choice) -> np.random.Generator:
    if choice.random is None:
        raise ValueError(f"{choice.name} needs a generator of random numbers")
    return choice.random
