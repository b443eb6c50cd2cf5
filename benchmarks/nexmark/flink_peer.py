"""Run by Flink's own Python: NEXMark's queries over events that Flink makes itself. Prints one line of JSON.

The events are those of `data.py`: the same functions of their number. A rate is of a job into a sink that
drops what it gets; the time of the same job over a handful of events is taken off, at most half, so that
starting it does not count. Answers are those of a smaller run, as the bag that the changes come to.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

FEW = 50  # events of the run that is taken off
MODULUS = 2_147_483_647
ADDED = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}


def main(work: dict[str, Any]) -> dict[str, Any]:
    """What each query reached, and what it answered; why it did not run."""
    tables = opened()
    found: dict[str, Any] = {}
    for name, texts in work["queries"].items():
        try:
            answers = answer(tables, work, texts[0]) if work["checked"] else None
            first = seconds(tables, work, texts, FEW)
            whole = seconds(tables, work, texts, work["events"])
            found[name] = {
                "per_s": work["events"] / max(whole - first, whole / 2),
                "answers": answers,
            }
        except Exception as error:  # py4j's errors have no class of their own here
            found[name] = {"missing": _reason(str(error))}
    return found


def opened() -> Any:
    """An empty environment."""
    from pyflink.table import (  # type: ignore[import-not-found]
        EnvironmentSettings,
        TableEnvironment,
    )

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "2")
    tables.get_config().set("table.local-time-zone", "UTC")
    return tables


def seconds(tables: Any, work: dict[str, Any], texts: list[str], events: int) -> float:
    """How long a job of one query, or of several, runs over so many events."""
    from pyflink.table import TableDescriptor

    make_streams(tables, work, events)
    together = tables.create_statement_set()
    for text in texts:
        sink = TableDescriptor.for_connector("blackhole").build()
        together.add_insert(sink, tables.sql_query(text))
    done = together.execute().get_job_client().get_job_execution_result().result()
    return done.get_net_runtime() / 1000


def answer(tables: Any, work: dict[str, Any], text: str) -> list[list[str | None]]:
    """The rows that the changes come to, as text."""
    make_streams(tables, work, work["checked"])
    query = tables.sql_query(text)
    names = query.get_schema().get_field_names()
    tables.create_temporary_view("asked", query)
    columns = ", ".join(f"CAST(`{name}` AS STRING)" for name in names)
    rows: Counter[tuple[str | None, ...]] = Counter()
    with tables.sql_query(f"SELECT {columns} FROM asked").execute().collect() as changes:
        for row in changes:
            rows[tuple(row)] += ADDED[str(row.get_row_kind())]
    tables.drop_temporary_view("asked")
    return [list(row) for row, count in rows.items() for _ in range(count)]


def make_streams(tables: Any, work: dict[str, Any], events: int) -> None:
    """The three streams over so many events."""
    for view in ("bid", "auction", "person", "side_input"):
        tables.execute_sql(f"DROP TEMPORARY VIEW IF EXISTS {view}")
    tables.execute_sql("DROP TEMPORARY TABLE IF EXISTS events")
    tables.execute_sql(
        f"""CREATE TEMPORARY TABLE events (
            n BIGINT,
            `dateTime` AS CAST(TO_TIMESTAMP_LTZ({work["begin"]} + n, 3) AS TIMESTAMP(3)),
            WATERMARK FOR `dateTime` AS `dateTime`
        ) WITH (
            'connector' = 'datagen', 'number-of-rows' = '{events}',
            'rows-per-second' = '1000000000', 'fields.n.kind' = 'sequence',
            'fields.n.start' = '0', 'fields.n.end' = '{events - 1}'
        )"""
    )
    for name, text in Streams(work["multipliers"]).texts(work).items():
        tables.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {text}")


class Streams:
    """The functions of `data.py` in Flink's words."""

    def __init__(self, multipliers: list[int]) -> None:
        self._multipliers = multipliers

    def texts(self, work: dict[str, Any]) -> dict[str, str]:
        """Each stream as a view over the events."""
        person, auction = "(1000 + n / 50)", "(1000 + n / 50 * 3 + MOD(n, 50) - 1)"
        key = f"CAST({person} AS STRING)"
        extra, price = self._extra(work, "n"), self._price("n")
        life = f"(1 + {self._drawn(4, 3334)})"
        return {
            "person": f"""SELECT {person} AS id,
                {self._one_of(work["names"], 0)} || ' ' || {key} AS name,
                {key} || '@example.org' AS emailAddress, '4000 0000 0000 ' || {key} AS creditCard,
                {self._one_of(work["cities"], 1)} AS city, {self._one_of(work["states"], 1)} AS state,
                `dateTime`, {extra} AS extra FROM events WHERE MOD(n, 50) = 0""",
            "auction": f"""SELECT {auction} AS id, 'item ' || CAST({auction} AS STRING) AS itemName,
                {self._extra(work, "(n + 1)")} AS description, {price} AS initialBid,
                {price} + {self._price("(n + 7)")} AS reserve, `dateTime`,
                CAST(TO_TIMESTAMP_LTZ({work["begin"]} + n + {life}, 3) AS TIMESTAMP(3)) AS expires,
                {self._person(5)} AS seller, 10 + {self._drawn(7, 5)} AS category, {extra} AS extra
                FROM events WHERE MOD(n, 50) > 0 AND MOD(n, 50) < 4""",
            "bid": f"""SELECT {self._auction()} AS auction, {self._person(2)} AS bidder, {price} AS price,
                {self._channel(work)}, `dateTime`, {extra} AS extra FROM events WHERE MOD(n, 50) >= 4""",
            "side_input": "SELECT * FROM (VALUES "
            + ", ".join(f"(CAST({k} AS BIGINT), '{v}')" for k, v in work["side"])
            + ") AS v (`key`, `value`)",
        }

    def _drawn(self, which: int, below: int, number: str = "n") -> str:
        return f"MOD(MOD({number} * {self._multipliers[which]}, {MODULUS}), {below})"

    def _one_of(self, pool: list[str], which: int) -> str:
        return f"SPLIT_INDEX('{','.join(pool)}', ',', CAST({self._drawn(which, len(pool))} AS INT))"

    def _extra(self, work: dict[str, Any], number: str) -> str:
        begin = f"1 + CAST({self._drawn(2, work['extras'], number)} AS INT)"
        return f"SUBSTRING('{work['letters']}', {begin}, {work['extra']})"

    def _price(self, number: str) -> str:
        power = f"CAST(POWER(10, {self._drawn(7, 6, number)}) AS BIGINT)"
        return f"(100 + {self._drawn(6, 900, number)}) * {power}"

    def _person(self, which: int) -> str:
        back = "LEAST(n / 50, 1000)"
        some = f"n / 50 - {back} + MOD({self._drawn(which + 1, 1 << 30)}, {back} + 10)"
        return (
            f"1000 + CASE WHEN {self._drawn(which, 4)} > 0 THEN n / 50 / 100 * 100 ELSE {some} END"
        )

    def _auction(self) -> str:
        last = "(n / 50 * 3 + 2)"
        back = f"LEAST({last}, 100)"
        some = f"{last} - {back} + MOD({self._drawn(1, 1 << 30)}, {back} + 2)"
        return f"1000 + CASE WHEN {self._drawn(0, 2)} = 0 THEN {last} / 100 * 100 ELSE {some} END"

    def _channel(self, work: dict[str, Any]) -> str:
        which = f"CAST({self._drawn(4, 10_000)} AS STRING)"
        folders = " || '/".join(
            f"{c}' || CAST({self._drawn(k, 100)} AS STRING)" for k, c in enumerate("def")
        )
        url = f"'https://www.nexmark.com/' || '{folders} || '/item.htm?query=1'"
        hot = f"{self._drawn(3, 2)} = 0"
        return f"""CASE WHEN {hot} THEN {self._one_of(work["channels"], 5)}
            ELSE 'channel-' || {which} END AS channel,
            CASE WHEN {hot} THEN {url} ELSE {url} || '&channel_id=' || {which} END AS url"""


def _reason(text: str) -> str:
    """The innermost reason of Java's, without the places in its code."""
    lines = [line.strip() for line in text.splitlines() if not line.strip().startswith("at ")]
    causes = [line for line in lines if "Exception:" in line or "Error:" in line]
    return (causes[-1] if causes else lines[-1] if lines else "it failed")[:300]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
