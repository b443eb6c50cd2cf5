"""DuckDB in memory, all cores: a chunk becomes a table, the query runs once, the table goes."""

from __future__ import annotations

import contextlib
import time

from benchmarks.datacell.series import Series
from benchmarks.ecq.data import chunk, end_of, hosts
from benchmarks.ecq.ours import Work


def one_time(work: Work) -> tuple[Series, Series]:
    """The query over a chunk that is there; and the same with the loading of the chunk."""
    import duckdb

    query, whole = Series(), Series()
    streams, text = work.query.streams, work.query.one_time()
    with contextlib.closing(duckdb.connect()) as connection:
        connection.register("rows_in", hosts())
        connection.execute("CREATE TABLE hosts AS SELECT * FROM rows_in")
        for number in work.numbers():
            rows = chunk(number, work.size)
            started = time.perf_counter()
            for name in streams:
                connection.register("rows_in", rows[name])
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_in")
            loaded = time.perf_counter()
            found = connection.sql(text).to_arrow_table()
            answered = time.perf_counter()
            for name in streams:
                connection.execute(f"DROP TABLE {name}")
            dropped = time.perf_counter()
            query.answers[end_of(number)] = work.query.answer(found)
            if number >= work.warm_up:
                query.add(answered - loaded, dropped - started)
                whole.add(answered - started, dropped - started)
    whole.answers = query.answers
    return query, whole
