"""IN-PLACE: a new value takes the place of the older one of its key (UpStream §5.2).

The key at the head has waited longest since its first update, so it is the stalest of all: no
order has a lower mean staleness when all keys update equally often.
"""

from __future__ import annotations

from headwater.engine.update_queue.policy import News, QueuePolicy


class InPlace(QueuePolicy):
    """Keys by the arrival of their oldest pending update."""

    name = "inplace"

    def arrived(self, news: News) -> None:
        self.keys.push_back(news.fresh)
