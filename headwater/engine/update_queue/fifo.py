"""FIFO: a new value goes to the tail, the older one of its key leaves its place (UpStream §5.2)."""

from __future__ import annotations

from headwater.engine.update_queue.policy import News, QueuePolicy


class Fifo(QueuePolicy):
    """Keys by the arrival of their newest row."""

    name = "fifo"

    def arrived(self, news: News) -> None:
        self.keys.push_back(news.newest)
