"""LINECUTTING: slow updaters go to the front, all others are served IN-PLACE (UpStream §5.3).

A key is slow if all keys that wait could be served between two of its updates: its update rate
is below 1 / (cost of a row · keys waiting). Taken alone this test lets every key cut while few
wait, and keys at the back starve when those that cut fill the operator: both make the mean worse
than IN-PLACE. So two more things must hold, which the paper's words imply: the key is slow beside
those it passes (below half the mean rate of the waiting keys), and nobody has waited for longer
than serving all waiting keys takes.

Rates are measured here: rows over time, older ones forgotten by and by; a key's first row counts
from the beginning of the queue, so that a key that was not seen in a long time is slow, and the
keys of the first batch are not.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.key_queue import KeyQueue
from headwater.engine.update_queue.policy import News, QueuePolicy
from headwater.engine.update_queue.vectors import NONE, grown
from headwater.fold.columns import Slots, Vector

REMEMBERED = 0.95  # of what is known of a rate, when one more row comes
SLOW = 0.5  # of the mean rate of waiting keys
SHORTEST = 1e-9  # ticks; two rows at one time


class LineCutting(QueuePolicy):
    """IN-PLACE with a way past the queue for keys that seldom come."""

    name = "linecutting"

    def __init__(self, literal: bool = False) -> None:
        """`literal`: test u < 1 / (c·n) and nothing else, as the paper's formula has it."""
        super().__init__()
        self._literal = literal
        self._line = KeyQueue()  # waiting keys by their oldest update
        self._began: int | None = None
        self._rows: Vector = np.empty(0, np.float64)  # by slot, as all that follow
        self._ticks: Vector = np.empty(0, np.float64)
        self._rate: Vector = np.empty(0, np.float64)
        self._last: Slots = np.empty(0, np.int64)
        self._since: Slots = np.empty(0, np.int64)  # when its oldest waiting update arrived
        self._waiting_rates = 0.0  # sum over waiting keys

    def grow(self, key_count: int) -> None:
        super().grow(key_count)
        self._line.grow(key_count)
        for name in ("_rows", "_ticks", "_rate"):
            setattr(self, name, grown(getattr(self, name), key_count, 0.0))
        self._last = grown(self._last, key_count, self._began or 0)
        self._since = grown(self._since, key_count, NONE)

    def arrived(self, news: News) -> None:
        if not len(news.slots):
            return
        if self._began is None:
            self._began = int(news.times[0])
            self._last[:] = self._began
        self._since[news.fresh] = news.times[news.fresh_row]
        self._learn_rates(news)
        self.keys.push_back(news.fresh)
        self._line.push_back(news.fresh)
        if self.cost > 0:
            self.keys.push_front(news.newest[self._may_cut(news)][::-1])

    def _may_cut(self, news: News) -> Vector:
        rates, residents = self._rate[news.newest], news.residents
        slow = rates * self.cost * residents < 1
        if self._literal:
            return slow
        slow &= rates < SLOW * self._waiting_rates / len(self.keys)
        longest = news.times[news.newest_row] - self._since[self._line.front]
        return slow & (longest <= self.cost * residents)

    def _learn_rates(self, news: News) -> None:
        """The update rates of the batch's keys, in rows per tick; this batch is included."""
        slots, times, counts = news.newest, news.times[news.newest_row], news.row_counts
        self._waiting_rates -= float(self._rate[slots[self._line.holds(slots)]].sum())
        kept = REMEMBERED**counts
        rows = self._rows[slots] * kept + counts
        ticks = self._ticks[slots] * kept + (times - self._last[slots])
        self._rows[slots], self._ticks[slots], self._last[slots] = rows, ticks, times
        self._rate[slots] = rows / np.maximum(ticks, SHORTEST)
        self._waiting_rates += float(self._rate[slots].sum())

    def take(self, count: int, now: int) -> Slots:
        slots = super().take(count, now)
        self._line.remove(slots)
        self._waiting_rates -= float(self._rate[slots].sum())
        if not len(self.keys):
            self._waiting_rates = 0.0  # and no rounding is left
        return slots

    def put_back(self, slots: Slots) -> None:
        super().put_back(slots)
        self._line.push_front(slots)
        self._waiting_rates += float(self._rate[slots].sum())
