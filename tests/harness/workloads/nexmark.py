"""NEXMark's three streams, small and always the same: persons, auctions and bids in chunks.

Rows come late by some seconds, times and prices tie, bids come before their auctions, and columns have NULLs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Row = tuple[Any, ...]
Chunk = dict[str, list[Row]]

STREAMS = {
    "person": (
        "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
        "dateTime TIMESTAMP, extra STRING"
    ),
    "auction": (
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
        "dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, "
        "extra STRING"
    ),
}
SIDE_INPUT = "key BIGINT, value STRING"
SIDE_ROWS: list[Row] = [(key, f"side {key}") for key in range(0, 10, 2)]
BEGIN = datetime(2024, 2, 28, 5, 59, 40, tzinfo=UTC)
STATES, CITIES = ("OR", "ID", "CA", "WA", None), ("Portland", "Boise", "Kent")
CHANNELS = ("Apple", "Google", "Facebook", "Baidu", "channel-7", None)
PRICES = (100, 9_999, 10_000, 60_000, 999_999, 1_000_000, 1_200_000, 30_000_000, 80_000_000)


class NexmarkData:
    """Makes chunk after chunk; each is nine hours after the one before."""

    def __init__(self, seed: int, bids: int = 120) -> None:
        self._random, self._bids = Random(seed), bids
        self._persons, self._auctions = 1000, 980

    def chunks(self, count: int) -> list[Chunk]:
        """So many chunks."""
        return [self._chunk(BEGIN + timedelta(hours=9 * n)) for n in range(count)]

    def _chunk(self, begin: datetime) -> Chunk:
        made: Chunk = {"person": [], "auction": [], "bid": []}
        now = begin
        for number in range(self._bids):
            now += timedelta(milliseconds=self._random.choice((0, 200, 900, 1500)))
            if number % 40 == 39:
                now += timedelta(seconds=12)  # no session lasts
            if number % 10 == 0:
                made["person"].append(self._person(self._late(now)))
            if number % 5 == 0:
                made["auction"].append(self._auction(self._late(now)))
            made["bid"].append(self._bid(self._late(now)))
        made["bid"].append(made["bid"][-1])  # a row twice
        return made

    def _late(self, now: datetime) -> datetime:
        hours = 9 if self._random.random() < 0.04 else 0  # a row of the chunk before
        return now - timedelta(hours=hours, seconds=self._random.choice((0, 0, 0, 3, 9)))

    def _maybe(self, value: Any, chance: float = 0.05) -> Any:
        return None if self._random.random() < chance else value

    def _person(self, at: datetime) -> Row:
        self._persons += 1
        number, random = self._persons, self._random
        name = self._maybe(f"person {number % 7}")
        where = (random.choice(CITIES), random.choice(STATES))
        return (number, name, f"{number}@example.org", "4000 0000", *where, at, self._extra())

    def _auction(self, at: datetime) -> Row:
        self._auctions += 1
        number, random = self._auctions, self._random
        first = random.choice(PRICES)
        words = (f"item {number}", self._maybe("as new"), first, self._maybe(2 * first))
        until = at + timedelta(seconds=random.choice((5, 20, 40)))
        seller = self._maybe(random.randint(self._persons - 4, self._persons + 2))
        return (
            number,
            *words,
            at,
            until,
            seller,
            self._maybe(random.choice((10, 11))),
            self._extra(),
        )

    def _bid(self, at: datetime) -> Row:
        random = self._random
        auction = self._maybe(random.randint(self._auctions - 6, self._auctions + 1), 0.03)
        bidder = self._maybe(random.randint(self._persons - 5, self._persons), 0.03)
        end = random.choice(
            ("", f"&channel_id={random.randint(0, 9)}", "?x=1&channel_id=", "/more")
        )
        url = self._maybe(f"https://www.nexmark.com/a{auction}/b/item.htm{end}")
        price = self._maybe(random.choice(PRICES))
        return (auction, bidder, price, random.choice(CHANNELS), url, at, self._extra())

    def _extra(self) -> str | None:
        return self._maybe("".join(self._random.choices("abc", k=self._random.randint(0, 6))))
