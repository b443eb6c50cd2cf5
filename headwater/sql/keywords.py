"""Words for completion and colouring: SQL's, Headwater's own, and the phrases that follow a word.

A flat table. The parser decides what is SQL; this list only has to be helpful.
"""

from __future__ import annotations

from headwater.sql.names import words

OWN = words(
    """
    ADVANCE APPEND BEHIND BLOCK CHANGES CHUNKS CONFLATE CONTINUOUS CUT EAGER EARLIEST EMIT FIFO
    FLUSH FOREVER INPLACE INSERTS DELETES KEEP LANDMARK LATE LAZY LINECUTTING NEWEST PAIR PAUSE
    PRIORITY QUERY QUERIES REALTIME REJECT RESUME SAMPLE SCHEDULE SHEDDING SINK SINKS SOURCE SOURCES
    STREAM STREAMING STREAMS SUBSCRIBE UPDATES VALID VERIFY WATERMARK WINDOWS OVERLAPS PERIOD KILL
    REFRESH SETTINGS PREV CURRENT_INSTANT NEAR
    """
)
SQL = words(
    """
    ADD ALL ALTER ANALYZE AND ANTI ANY ARRAY AS ASC AT BEGIN BETWEEN BIGINT BINARY BOOLEAN BTREE BY
    CALL CASE CAST COLUMN COLUMNS COMMIT COPY CREATE CROSS CSV CUBE CURRENT_DATE CURRENT_TIMESTAMP
    DATE DAY DAYS DECIMAL DEFAULT DELETE DESC DESCRIBE DISTINCT DOUBLE DROP ELSE END ESCAPE EXCEPT
    EXISTS EXPLAIN FALSE FILTER FIRST FLOAT FOLLOWING FOR FOREIGN FROM FULL FUNCTION GROUP GROUPING
    HASH HAVING HEADER HOUR HOURS IF ILIKE IN INDEX INDEXES INNER INSERT INT INTERSECT INTERVAL INTO
    IS JOIN KEY LAST LATERAL LEFT LIKE LIMIT MAP MATCHED MATERIALIZED MERGE MINUTE MINUTES MONTH NOT
    NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PASSWORD PIVOT PRECEDING PROCEDURE QUALIFY
    RANGE RECURSIVE REPLACE RETURN RETURNS RIGHT RLIKE ROLE ROLLBACK ROLLUP ROW ROWS SECOND SECONDS
    SELECT SEMI SERVER SET SETS SHOW SMALLINT STDIN STDOUT STRING STRUCT TABLE TABLES TABLESAMPLE
    THEN TIMESTAMP TIMESTAMP_NTZ TINYINT TO TRUE TRUNCATE UNBOUNDED UNION UNIQUE UNPIVOT UPDATE USER
    USING VALUES VERSION VIEW VIEWS WHEN WHERE WINDOW WITH YEAR
    """
)
FUNCTIONS = words(
    """
    abs array_agg avg ceil coalesce collect_list collect_set concat count date_trunc dense_rank
    element_at explode extract first_value floor from_json greatest lag last_value lead least length
    lower max max_by min min_by nullif percentile percentile_cont rank regexp_extract
    regexp_replace round row_number sequence size split sqrt stddev substring sum to_date to_json
    to_timestamp trim upper variance
    """
)
WORDS = OWN | SQL

PHRASES: dict[str, tuple[str, ...]] = {
    "CREATE": (
        "TABLE",
        "STREAMING TABLE",
        "STREAM",
        "CONTINUOUS QUERY",
        "MATERIALIZED VIEW",
        "VIEW",
        "OR REPLACE VIEW",
        "INDEX",
        "SOURCE",
        "SINK",
        "FUNCTION",
        "PROCEDURE",
        "FOREIGN TABLE",
        "USER",
    ),
    "DROP": (
        "TABLE",
        "STREAM",
        "VIEW",
        "QUERY",
        "INDEX",
        "SOURCE",
        "SINK",
        "FUNCTION",
        "PROCEDURE",
    ),
    "ALTER": ("TABLE", "VIEW", "QUERY", "USER"),
    "SHOW": (
        "TABLES",
        "STREAMS",
        "VIEWS",
        "QUERIES",
        "SOURCES",
        "SINKS",
        "INDEXES",
        "SETTINGS",
    ),
    "SAMPLE": ("INTERVAL", "REALTIME"),
    "EMIT": ("ALL", "INSERTS", "DELETES", "CHANGES"),
    "LATE": ("KEEP", "DROP", "REJECT"),
    "RANGE": ("INTERVAL", "FOREVER"),
    "WATERMARK": ("INTERVAL",),
    "TIMESTAMP": ("BY",),
    "INSERT": ("INTO",),
    "DELETE": ("FROM",),
    "MERGE": ("INTO",),
    "GROUP": ("BY",),
    "ORDER": ("BY",),
    "PARTITION": ("BY",),
    "PAUSE": ("QUERY", "SINK", "SOURCE"),
    "RESUME": ("QUERY", "SINK", "SOURCE"),
    "KILL": ("QUERY",),
    "VERIFY": ("VIEW",),
    "SCHEDULE": ("FIFO", "INPLACE", "LINECUTTING"),
}
BEFORE_NAMES = words(
    "FROM JOIN INTO UPDATE TABLE DESCRIBE STREAM VIEW QUERY SUBSCRIBE ADVANCE ON COPY CALL"
)
"""Words after which the name of an object comes."""
