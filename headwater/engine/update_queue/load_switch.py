"""Append while the query keeps up, updates while it does not (`WHEN BEHIND interval`, US6).

Owns: which of the two a queue is, and when it changes. Must never: measure anything itself.

* To updates as soon as the oldest waiting row is older than the limit.
* Back only when append would keep up: the load (arriving rows times the cost of a row, over time)
  has been clearly below one and the queue nearly empty, both for as long as the limit. In an
  update queue staleness is low whatever the load, so it alone says nothing.
* Each return that does not last doubles the time that the next one takes, up to a bound.
"""

from __future__ import annotations

APPEND, UPDATES = "append", "updates"
LOW_LOAD = 0.8
NEAR = 0.5  # of the limit
LONGEST_PATIENCE = 64  # in limits
LASTING = 8  # times as long as it took to return


class LoadSwitch:
    """Which kind of queue to be."""

    def __init__(self, limit: int) -> None:
        """`limit`: how far behind an append queue may be, in ticks."""
        if limit <= 0:
            raise ValueError("the limit is above 0")
        self._limit = limit
        self._mode = APPEND
        self._calm_since: int | None = None
        self._patience = 1
        self._returned: int | None = None

    @property
    def mode(self) -> str:
        """Append or updates."""
        return self._mode

    def observe(self, now: int, behind: int, load: float) -> str:
        """How old the oldest waiting row is, and the load; gives the mode from now on.

        A load of 1 means that processing every row takes as long as rows take to come.
        """
        if self._mode == APPEND:
            if behind > self._limit:
                self._to_updates(now)
        elif load > LOW_LOAD or behind > NEAR * self._limit:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        elif now - self._calm_since >= self._patience * self._limit:
            self._mode, self._returned = APPEND, now
        return self._mode

    def _to_updates(self, now: int) -> None:
        lasted = None if self._returned is None else now - self._returned
        if lasted is not None and lasted < LASTING * self._patience * self._limit:
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)
        else:
            self._patience = 1
        self._mode, self._calm_since = UPDATES, None
