"""The views of which one row changes: in Spark's words, and in DuckDB's where they are others."""

from __future__ import annotations

VIEWS = {
    "filter": "SELECT id, k, v FROM s WHERE v < 10",
    "join": "SELECT s.id, s.v, r.name FROM s JOIN r ON s.k = r.k WHERE s.v < 10",
    "left join": "SELECT s.id, s.v, r.name FROM s LEFT JOIN r ON s.k = r.k WHERE s.v < 10",
    "exists": (
        "SELECT id, v FROM s WHERE v < 10 AND EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.w > 10)"
    ),
    "top-n": (
        "SELECT g, id, v FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id DESC) AS n "
        "FROM s) WHERE n <= 3"
    ),
    "max_by": "SELECT g, max_by(v, id) AS newest FROM s GROUP BY g",
    "median": "SELECT g, median(v) AS middle FROM s GROUP BY g",
    "union": "SELECT g AS a, v AS b FROM s WHERE v < 10 UNION SELECT k AS a, w AS b FROM r",
    "tumble": (
        "SELECT window.start AS begins, count(*) AS n, sum(v) AS total FROM s "
        "GROUP BY window(ts, '10 seconds')"
    ),
    "session": (
        "SELECT g, session_window.start AS begins, count(*) AS n FROM s "
        "GROUP BY g, session_window(ts, '10 seconds')"
    ),
}
IN_DUCKDB = {
    "tumble": (
        "SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS begins, count(*), sum(v) FROM s GROUP BY begins"
    ),
    "session": (
        "WITH b AS (SELECT g, ts, coalesce(lag(ts) OVER (PARTITION BY g ORDER BY ts) + INTERVAL 10 SECONDS "
        "< ts, TRUE) AS first FROM s), n AS (SELECT g, ts, count(*) FILTER (WHERE first) OVER "
        "(PARTITION BY g ORDER BY ts RANGE UNBOUNDED PRECEDING) AS number FROM b) "
        "SELECT g, min(ts), count(*) FROM n GROUP BY g, number"
    ),
}


def in_duckdb(name: str) -> str:
    """A view's query for DuckDB."""
    return IN_DUCKDB.get(name, VIEWS[name])
