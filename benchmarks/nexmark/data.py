"""NEXMark's events: 2 % persons, 6 % auctions, 92 % bids, each a function of its number.

So every system can make them itself: `flink.sql` has the same functions. Proportions, hot keys and life
times are those of Beam's generator; an event comes each millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
Chunk = dict[str, pa.Table]

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
SIDE_ROWS = [(key, f"side {key}") for key in range(10)]
BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000
GROUP = 50  # events: one person, three auctions, bids
FIRST_ID = 1000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Walter")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
LETTERS = "abcdefghijabdcegfihjbacedfghjiadbcfeghijcabdefighj" * 5
EXTRA = 40  # letters
EXTRAS = 200  # texts
MODULUS = 2_147_483_647
MULTIPLIERS = (
    1_226_874_159,
    1_343_714_438,
    630_360_016,
    742_938_285,
    950_706_376,
    1_078_318_381,
    397_204_094,
    1_203_248_318,
)


def drawn(number: Numbers, which: int, below: int) -> Numbers:
    """What stands for chance: of each event a number below a bound."""
    found: Numbers = number * MULTIPLIERS[which] % MODULUS % below
    return found


def chunk(first: int, count: int) -> Chunk:
    """The events from a number on, stream by stream."""
    number = np.arange(first, first + count, dtype=np.int64)
    place = number % GROUP
    return {
        "person": _persons(number[place == 0]),
        "auction": _auctions(number[(place > 0) & (place < 4)]),
        "bid": _bids(number[place >= 4]),
    }


def chunks(first: int, count: int, size: int) -> list[Chunk]:
    """So many events in chunks of a size."""
    return [chunk(n, min(size, first + count - n)) for n in range(first, first + count, size)]


def _persons(number: Numbers) -> pa.Table:
    key = FIRST_ID + number // GROUP
    text = _text(key)
    return _table(
        "person",
        key,
        pc.binary_join_element_wise(_one_of(NAMES, number, 0), text, " "),
        pc.binary_join_element_wise(text, "example.org", "@"),
        pc.binary_join_element_wise("4000 0000 0000", text, " "),
        _one_of(CITIES, number, 1),
        _one_of(STATES, number, 1),
        _times(number),
        _extra(number),
    )


def _auctions(number: Numbers) -> pa.Table:
    key = FIRST_ID + number // GROUP * 3 + number % GROUP - 1
    price = _price(number)
    life = 1 + drawn(number, 4, 2 * 1667)
    return _table(
        "auction",
        key,
        pc.binary_join_element_wise("item", _text(key), " "),
        _extra(number + 1),
        price,
        price + _price(number + 7),
        _times(number),
        _times(number + life),
        _person(number, 5),
        10 + drawn(number, 7, 5),
        _extra(number),
    )


def _bids(number: Numbers) -> pa.Table:
    last = number // GROUP * 3 + 2
    hot, back = last // 100 * 100, np.minimum(last, 100)
    some = last - back + drawn(number, 1, 1 << 30) % (back + 2)  # the next one may not be there yet
    auction = FIRST_ID + np.where(drawn(number, 0, 2) == 0, hot, some)
    channel, url = _channel(number)
    return _table(
        "bid",
        auction,
        _person(number, 2),
        _price(number),
        channel,
        url,
        _times(number),
        _extra(number),
    )


def _person(number: Numbers, which: int) -> Numbers:
    """A person who has come already, or will soon: three of four times the one of the hour."""
    last = number // GROUP
    back = np.minimum(last, 1000)
    some = last - back + drawn(number, which + 1, 1 << 30) % (back + 10)
    found: Numbers = FIRST_ID + np.where(drawn(number, which, 4) > 0, last // 100 * 100, some)
    return found


def _price(number: Numbers) -> Numbers:
    """Prices spread evenly over orders of magnitude: 100 to 99 900 000."""
    found: Numbers = (100 + drawn(number, 6, 900)) * 10 ** drawn(number, 7, 6)
    return found


def _channel(number: Numbers) -> tuple[pa.Array, pa.Array]:
    hot = pa.array(drawn(number, 3, 2) == 0)
    which = _text(drawn(number, 4, 10_000))
    folders = [
        pc.binary_join_element_wise(c, _text(drawn(number, n, 100)), "")
        for n, c in enumerate("def")
    ]
    url = pc.binary_join_element_wise("https://www.nexmark.com", *folders, "item.htm?query=1", "/")
    channel = pc.if_else(
        hot, _one_of(CHANNELS, number, 5), pc.binary_join_element_wise("channel", which, "-")
    )
    return channel, pc.if_else(hot, url, pc.binary_join_element_wise(url, which, "&channel_id="))


def _one_of(pool: Sequence[str], number: Numbers, which: int) -> pa.Array:
    return pa.array(pool).take(pa.array(drawn(number, which, len(pool))))


def _extra(number: Numbers) -> pa.Array:
    pool = [LETTERS[n : n + EXTRA] for n in range(EXTRAS)]
    return pa.array(pool).take(pa.array(drawn(number, 2, EXTRAS)))


def _times(number: Numbers) -> pa.Array:
    return pa.array((BEGIN + number) * 1000, pa.timestamp("us", "UTC"))


def _text(number: Numbers) -> pa.Array:
    return pc.cast(pa.array(number), pa.string())


def _table(stream: str, *columns: object) -> pa.Table:
    names = [column.split()[0] for column in STREAMS[stream].split(", ")]
    return pa.table(dict(zip(names, map(_array, columns), strict=True)))


def _array(column: object) -> pa.Array:
    return pa.array(column) if isinstance(column, np.ndarray) else column
