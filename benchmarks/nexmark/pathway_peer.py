"""Run by Pathway's own Python: some of NEXMark's queries over files of events. Prints one line of JSON.

Pathway takes all events as one batch, from CSV files that its own parser reads, and drops what comes out:
the most that it can reach. The time of the same graph over a handful of events is taken off, at most
half. Times are microseconds; windows are groupings by the beginning of ten seconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pathway as pw  # type: ignore[import-not-found]

TEN_SECONDS = 10_000_000
Streams = dict[str, Any]


def q0(s: Streams) -> Any:
    """Every bid as it is."""
    b = s["bid"]
    return b.select(b.auction, b.bidder, b.price, b.dateTime, b.extra)


def q1(s: Streams) -> Any:
    """Dollars to euros."""
    b = s["bid"]
    return b.select(b.auction, b.bidder, price=0.908 * b.price, dateTime=b.dateTime, extra=b.extra)


def q2(s: Streams) -> Any:
    """Bids of some auctions."""
    b = s["bid"].filter(pw.this.auction % 123 == 0)
    return b.select(b.auction, b.price)


def q3(s: Streams) -> Any:
    """Who sells in some states."""
    a = s["auction"].filter(pw.this.category == 10)
    state = pw.this.state
    p = s["person"].filter((state == "OR") | (state == "ID") | (state == "CA"))
    return a.join(p, a.seller == p.id_).select(p.name, p.city, p.state, a.id_)


def won(s: Streams) -> Any:
    """Bids while their auction lasted."""
    a, b = s["auction"], s["bid"]
    both = a.join(b, a.id_ == b.auction).select(
        a.id_, a.category, a.expires, b.price, begin=a.dateTime, at=b.dateTime
    )
    return both.filter((pw.this.at >= pw.this.begin) & (pw.this.at <= pw.this.expires))


def q4(s: Streams) -> Any:
    """The mean of the winning bids of each category."""
    bids = won(s)
    final = bids.groupby(bids.id_, bids.category).reduce(
        bids.category, final=pw.reducers.max(bids.price)
    )
    return final.groupby(final.category).reduce(final.category, mean=pw.reducers.avg(final.final))


def q8(s: Streams) -> Any:
    """Persons who sold in the window in which they came."""
    p, a = (
        s[n].select(*c, start=_window())
        for n, c in (("person", _of("id_", "name")), ("auction", _of("seller")))
    )
    p = p.groupby(p.id_, p.name, p.start).reduce(p.id_, p.name, p.start)
    a = a.groupby(a.seller, a.start).reduce(a.seller, a.start)
    return p.join(a, p.id_ == a.seller, p.start == a.start).select(p.id_, p.name, p.start)


def q12(s: Streams) -> Any:
    """Bids of each window of a bidder."""
    b = s["bid"].select(pw.this.bidder, start=_window())
    found = b.groupby(b.bidder, b.start).reduce(b.bidder, b.start, n=pw.reducers.count())
    return found.select(found.bidder, found.n, found.start, end=found.start + TEN_SECONDS)


def q17(s: Streams) -> Any:
    """Figures of each auction and day."""
    price = pw.this.price
    b = s["bid"].select(
        pw.this.auction,
        price,
        day=pw.this.dateTime.dt.utc_from_timestamp(unit="us").dt.strftime("%Y-%m-%d"),
        low=pw.cast(int, price < 10_000),
        middle=pw.cast(int, (price >= 10_000) & (price < 1_000_000)),
        high=pw.cast(int, price >= 1_000_000),
    )
    r = pw.reducers
    return b.groupby(b.auction, b.day).reduce(
        b.auction,
        b.day,
        total=r.count(),
        low=r.sum(b.low),
        middle=r.sum(b.middle),
        high=r.sum(b.high),
        least=r.min(b.price),
        most=r.max(b.price),
        mean=r.avg(b.price),
        all=r.sum(b.price),
    )


def q18(s: Streams) -> Any:
    """The last bid of each bidder for each auction."""
    b = s["bid"]
    last = b.groupby(b.bidder, b.auction).reduce(at=pw.reducers.argmax(b.dateTime))
    return b.ix(last.at).select(
        *_of("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
    )


def q20(s: Streams) -> Any:
    """Bids with their auctions."""
    b, a = s["bid"], s["auction"].filter(pw.this.category == 10)
    return b.join(a, b.auction == a.id_).select(
        b.auction,
        b.bidder,
        b.price,
        b.channel,
        b.url,
        bid_at=b.dateTime,
        bid_extra=b.extra,
        itemName=a.itemName,
        description=a.description,
        initialBid=a.initialBid,
        reserve=a.reserve,
        at=a.dateTime,
        expires=a.expires,
        seller=a.seller,
        category=a.category,
        extra=a.extra,
    )


QUERIES: dict[str, Callable[[Streams], Any]] = {
    f.__name__: f for f in (q0, q1, q2, q3, q4, q8, q12, q17, q18, q20)
}


def _of(*names: str) -> list[Any]:
    return [pw.this[name] for name in names]


def _window() -> Any:
    return pw.this.dateTime // TEN_SECONDS * TEN_SECONDS


def main(work: dict[str, Any]) -> dict[str, Any]:
    """What each query reached, and what it answered; why it did not run."""
    found: dict[str, Any] = {}
    for name, queries in work["queries"].items():
        try:
            answers = answer(work, queries[0]) if work["checked"] else None
            first = seconds(work, queries, "few")
            whole = seconds(work, queries, "events")
            found[name] = {
                "per_s": work["events"] / max(whole - first, whole / 2),
                "answers": answers,
            }
        except Exception as error:
            found[name] = {"missing": f"{type(error).__name__}: {error}"[:300]}
    return found


def seconds(work: dict[str, Any], queries: list[str], size: str) -> float:
    """How long a graph of one query, or of several, runs over the events of a folder."""
    pw.internals.parse_graph.G.clear()
    made = streams(work, size)
    for query in queries:
        pw.io.null.write(QUERIES[query](made))
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return time.perf_counter() - started


def answer(work: dict[str, Any], query: str) -> list[list[Any]]:
    """The rows that the changes come to."""
    pw.internals.parse_graph.G.clear()
    table = QUERIES[query](streams(work, "checked"))
    names = table.column_names()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.jsonl"
        pw.io.jsonlines.write(table, str(path))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        rows: Counter[tuple[Any, ...]] = Counter()
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[tuple(row[name] for name in names)] += row["diff"]
    return [list(row) for row, count in rows.items() for _ in range(count)]


def streams(work: dict[str, Any], size: str) -> Streams:
    """The streams of a folder; `id` is a name of Pathway's own."""
    types = {"int": int, "str": str}
    return {
        name: pw.io.csv.read(
            f"{work['folder']}/{size}/{name}.csv",
            schema=pw.schema_from_types(**{n: types[t] for n, t in columns.items()}),
            mode="static",
        )
        for name, columns in work["columns"].items()
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
