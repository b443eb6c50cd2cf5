"""LINECUTTING: slow updaters go to the front, all others are served IN-PLACE (UpStream §5.3).

A key is slow if all keys that wait could be served between two of its updates: its update rate
is below 1 / (cost of a row · keys waiting). Rates are measured here: rows over time, older ones
forgotten by and by; a key's first row counts from the beginning of the queue, so that a key that
has never been seen in a long time is slow, and all keys of the first batch are not.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.policy import News, QueuePolicy
from headwater.engine.update_queue.vectors import grown
from headwater.fold.columns import Slots, Vector

REMEMBERED = 0.95  # of what is known of a rate, when one more row comes


class LineCutting(QueuePolicy):
    """IN-PLACE with a way past the queue for keys that seldom come."""

    name = "linecutting"

    def __init__(self) -> None:
        super().__init__()
        self._began: int | None = None
        self._rows: Vector = np.empty(0, np.float64)
        self._ticks: Vector = np.empty(0, np.float64)
        self._last: Slots = np.empty(0, np.int64)

    def grow(self, key_count: int) -> None:
        super().grow(key_count)
        self._rows = grown(self._rows, key_count, 0.0)
        self._ticks = grown(self._ticks, key_count, 0.0)
        self._last = grown(self._last, key_count, self._began or 0)

    def arrived(self, news: News) -> None:
        if not len(news.slots):
            return
        if self._began is None:
            self._began = int(news.times[0])
            self._last[:] = self._began
        rates = self._rates(news)
        self.keys.push_back(news.fresh)
        if self.cost > 0:
            slow = rates * self.cost * news.residents < 1
            self.keys.push_front(news.newest[slow][::-1])

    def _rates(self, news: News) -> Vector:
        """The update rates of the batch's keys, this batch included, in rows per tick."""
        slots, times, counts = news.newest, news.times[news.newest_row], news.row_counts
        kept = REMEMBERED**counts
        rows = self._rows[slots] * kept + counts
        ticks = self._ticks[slots] * kept + (times - self._last[slots])
        self._rows[slots], self._ticks[slots], self._last[slots] = rows, ticks, times
        return rows / np.maximum(ticks, 1e-9)
