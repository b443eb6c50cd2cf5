"""The key transition graph: through which states a key goes (UpStream §6.2, Fig. 10).

Owns: which step is allowed. A key may wait for its next window while an older one of it is being
processed, so WAIT stands beside READY and IDLE. Must never: decide a step.

    ENQ → WAIT → READY → DONE        READY → IDLE → READY: a gap in a committed window (EAGER)
"""

from __future__ import annotations

from collections import Counter
from enum import Enum


class KeyState(Enum):
    """Where a key stands."""

    ENQ = "enqueued"
    WAIT = "waits in the queue of keys"
    READY = "committed, with rows to process"
    IDLE = "committed, but no row is there"
    DONE = "delivered"


ENQ, WAIT, READY, IDLE, DONE = KeyState
STEPS = frozenset({(ENQ, WAIT), (WAIT, READY), (READY, IDLE), (IDLE, READY), (READY, DONE)})


class KeyStates:
    """The states of keys that are not at rest."""

    def __init__(self) -> None:
        self._states: dict[int, set[KeyState]] = {}
        self.steps: Counter[tuple[KeyState, KeyState]] = Counter()

    def of(self, slot: int) -> frozenset[KeyState]:
        """A key's states; none when nothing of it waits or is processed."""
        return frozenset(self._states.get(slot, ()))

    def is_committed(self, slot: int) -> bool:
        """Whether a window of the key is being processed."""
        return bool(self._states.get(slot, set()) & {READY, IDLE})

    def step(self, slot: int, before: KeyState, after: KeyState) -> None:
        """Go from one state to another; fails if the graph has no such step or no such state."""
        own = self._states.setdefault(slot, set())
        assert (before, after) in STEPS, f"{before.name} → {after.name}"
        assert before is ENQ or before in own, f"key {slot} is not in {before.name}"
        assert after not in own, f"key {slot} is already in {after.name}"
        assert after is not READY or before is IDLE or not own & {READY, IDLE}, (
            "one window at a time"
        )
        own.discard(before)
        if after is not DONE:
            own.add(after)
        if not own:
            del self._states[slot]
        self.steps[before, after] += 1

    def reset(self, slot: int) -> None:
        """Forget a key's states: what was in process waits again."""
        self._states.pop(slot, None)
