"""LIFO: the newest value first; to compare with, nobody should want it."""

from __future__ import annotations

from headwater.engine.update_queue.policy import News, QueuePolicy


class Lifo(QueuePolicy):
    """Keys by the arrival of their newest row, the last one first."""

    name = "lifo"

    def arrived(self, news: News) -> None:
        self.keys.push_front(news.newest[::-1])
