"""The update queue again, row by row in plain Python: what the vectorised one is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Key:
    """One key's rows, as (arrival, seq), and how far they were taken and delivered."""

    arrived: list[tuple[int, int]] = field(default_factory=list)
    taken: int = -1
    delivered: int = -1
    queue_area: float = 0.0
    application_area: float = 0.0

    def start(self, reached: int) -> int | None:
        return min((time for time, seq in self.arrived if seq > reached), default=None)


class Model:
    """FIFO, IN-PLACE, LIFO and append by their definitions."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.keys: dict[int, Key] = {}
        self.line: list[tuple[int, int]] = []  # (key, seq), the next one first
        self.batches: list[tuple[list[tuple[int, int]], dict[int, int]]] = []
        self.now = 0
        self.rows_in = self.superseded = self.processed = 0

    def pass_time(self, now: int) -> None:
        """Staleness grows: the trapezium between then and now."""
        for key in self.keys.values():
            for name, reached in (("queue", key.taken), ("application", key.delivered)):
                start = key.start(reached)
                if start is not None:
                    low, high = max(self.now, start) - start, now - start
                    area = getattr(key, f"{name}_area") + (high * high - low * low) / 2
                    setattr(key, f"{name}_area", area)
        self.now = now

    def arrive(self, name: int, seq: int) -> None:
        self.rows_in += 1
        self.keys.setdefault(name, Key()).arrived.append((self.now, seq))
        place = next((i for i, (key, _) in enumerate(self.line) if key == name), None)
        if self.policy == "append" or place is None:
            self.line.insert(0 if self.policy == "lifo" else len(self.line), (name, seq))
            return
        self.superseded += 1
        del self.line[place]
        to = {"fifo": len(self.line), "lifo": 0, "inplace": place}[self.policy]
        self.line.insert(to, (name, seq))

    def take(self, count: int) -> list[tuple[int, int]]:
        batch, self.line = self.line[:count], self.line[count:]
        self.batches.append((batch, {name: self.keys[name].taken for name, _ in batch}))
        for name, seq in batch:
            self.keys[name].taken = seq
        return batch

    def deliver(self) -> None:
        batch, _ = self.batches.pop(0)
        self.processed += len(batch)
        for name, seq in batch:
            self.keys[name].delivered = seq

    def put_back(self) -> None:
        batch, before = self.batches.pop()
        waiting = set() if self.policy == "append" else {name for name, _ in self.line}
        back = [(name, seq) for name, seq in batch if name not in waiting]
        self.superseded += len(batch) - len(back)
        self.line = back + self.line
        for name, taken in before.items():
            self.keys[name].taken = taken
