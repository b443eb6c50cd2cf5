"""Update queues: of a stream of updates, each reader sees the newest rows per key.

Owns: which rows wait, in which order keys are served, and how stale each key is. Pure data
structures: rows, clock values and random numbers come in, rows go out. Must never: read a clock,
start a thread, or drop a row without counting it. UpStream §3 to §7; US1 to US10.
"""

from __future__ import annotations

from headwater.engine.update_queue.batch_sizer import BatchSizer
from headwater.engine.update_queue.load_switch import LoadSwitch
from headwater.engine.update_queue.policies import POLICIES, Choice
from headwater.engine.update_queue.queue import Dequeued, UpdateQueue
from headwater.engine.update_queue.several import Offer, choose
from headwater.engine.update_queue.store import PagePool
from headwater.engine.update_queue.window_queue import WindowBatch, WindowQueue
from headwater.engine.update_queue.window_spec import WindowSpec

__all__ = [
    "POLICIES",
    "BatchSizer",
    "Choice",
    "Dequeued",
    "LoadSwitch",
    "Offer",
    "PagePool",
    "UpdateQueue",
    "WindowBatch",
    "WindowQueue",
    "WindowSpec",
    "choose",
]
