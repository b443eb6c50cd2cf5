"""What `\\help STATEMENT` shows: a flat table, one entry per statement.

Short on purpose: the form, a sentence, an example, and the page that has the rest. Tests parse the
examples and compare the entries with the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

GUIDE, REFERENCE = "docs/guide", "docs/reference/sql.md"


@dataclass(frozen=True)
class Topic:
    """A statement: its name, what it does, how it is written, an example, where more is said."""

    name: str
    meaning: str
    form: str
    example: str
    page: str = REFERENCE


TOPICS: tuple[Topic, ...] = (
    Topic(
        "SELECT",
        "asks once: all of Spark SQL over tables, streams, views and results, now and in the past",
        "SELECT … FROM t [INTERVAL i] | t [ROWS n] | t [key ROWS n] | v [VERSION AS OF n] …\n"
        "  [WHERE …] [GROUP BY …] [ORDER BY …] [LIMIT n]",
        "SELECT id, celsius FROM readings [id ROWS 1] WHERE celsius > 20;",
        f"{GUIDE}/streaming-tables.md",
    ),
    Topic(
        "CREATE TABLE",
        "makes a standard table",
        "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (column TYPE [NOT NULL], …) | AS query",
        "CREATE TABLE sensors (id INT NOT NULL, place STRING);",
    ),
    Topic(
        "CREATE STREAMING TABLE",
        "makes a table that takes rows all the time and keeps their history",
        "CREATE STREAMING TABLE [IF NOT EXISTS] t (column TYPE [NOT NULL], …)\n"
        "  [TIMESTAMP BY column] [RANGE interval | FOREVER] [WATERMARK interval]\n"
        "  [LATE KEEP | DROP | REJECT] [UPDATE KEY (column, …)]",
        "CREATE STREAMING TABLE readings (id INT, celsius DOUBLE, at TIMESTAMP NOT NULL)\n"
        "  TIMESTAMP BY at RANGE INTERVAL '30' DAY;",
        f"{GUIDE}/streaming-tables.md",
    ),
    Topic(
        "CREATE STREAM",
        "makes a stream: rows are kept only as long as a query needs them",
        "CREATE STREAM [IF NOT EXISTS] s (column TYPE, …) [TIMESTAMP BY column] [UPDATE KEY (…)]",
        "CREATE STREAM packets (ts INT, src STRING, bytes INT) TIMESTAMP BY ts;",
        f"{GUIDE}/epochs-and-joins.md",
    ),
    Topic(
        "CREATE CONTINUOUS QUERY",
        "runs a query from now on, at every sample; SELECT * FROM q is its last result",
        "CREATE CONTINUOUS QUERY [IF NOT EXISTS] q [FROM BEGINNING] [WITH (option = value, …)]\n"
        "  AS SELECT … FROM t [INTERVAL i] … SAMPLE INTERVAL i | n ROWS | REALTIME\n"
        "     [EMIT ALL | INSERTS | DELETES | CHANGES]\n"
        "   | SELECT … FROM s CUT ON column BY interval | CUT BY n ROWS\n"
        "   | SELECT … FROM t … WITH UPDATES | WITH APPEND | WITH SHEDDING fraction",
        "CREATE CONTINUOUS QUERY warmth AS SELECT id, avg(celsius) AS celsius\n"
        "  FROM readings [INTERVAL '1' HOUR] GROUP BY id SAMPLE INTERVAL '1' MINUTE;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "CREATE MATERIALIZED VIEW",
        "a continuous query whose results are kept as a table with a history",
        "CREATE MATERIALIZED VIEW [IF NOT EXISTS] m [FROM BEGINNING] [RANGE interval | FOREVER]\n"
        "  [UPDATE KEY (column, …)] [WITH (option = value, …)] AS SELECT … SAMPLE …",
        "CREATE MATERIALIZED VIEW hourly AS SELECT id, max(celsius) AS highest\n"
        "  FROM readings [INTERVAL '1' HOUR] GROUP BY id SAMPLE INTERVAL '1' HOUR;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "CREATE VIEW",
        "a view over streams is folded at each insert and up to date at each read",
        "CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(column, …)] [FROM NOW]\n"
        "  [WITH (maintenance = 'split' | 'eager' | 'deferred' | 'incremental')] AS query",
        "CREATE VIEW extremes AS SELECT id, min(celsius) AS lowest FROM readings GROUP BY id;",
        f"{GUIDE}/views.md",
    ),
    Topic(
        "CREATE INDEX",
        "lets queries leave out blocks by the values of a column",
        "CREATE INDEX [IF NOT EXISTS] i ON t [USING BTREE | HASH] (column)",
        "CREATE INDEX by_id ON readings (id);",
        f"{GUIDE}/streaming-tables.md",
    ),
    Topic(
        "CREATE SOURCE",
        "brings rows from outside into a streaming table until it is dropped, each row once",
        "CREATE SOURCE [IF NOT EXISTS] s INTO t FROM 'csv:… | json:… | parquet:… | spark:FORMAT |\n"
        "  python:NAME | kafka://… | tcp://… | postgresql://…' [WITH (option = value, …)]\n"
        "INSERT INTO t FROM STREAM '…' [WITH (…)]",
        "CREATE SOURCE files INTO readings FROM 'csv:./incoming';",
        f"{GUIDE}/sources-and-sinks.md",
    ),
    Topic(
        "CREATE SINK",
        "writes the results of a continuous query to outside, each row once",
        "CREATE SINK [IF NOT EXISTS] k FROM q INTO 'csv:… | json:… | parquet:… | delta:… |\n"
        "  postgresql://… | kafka://…' [WITH (option = value, …)]",
        "CREATE SINK alarms FROM warmth INTO 'json:./out';",
        f"{GUIDE}/sources-and-sinks.md",
    ),
    Topic(
        "CREATE FUNCTION",
        "makes a function of SQL; those in Python come from db.create_function",
        "CREATE [OR REPLACE] FUNCTION f(x TYPE, …) RETURNS TYPE RETURN expression\n"
        "CREATE [OR REPLACE] FUNCTION f(x TYPE, …) RETURNS TABLE (column TYPE, …) RETURN query",
        "CREATE FUNCTION fahrenheit(c DOUBLE) RETURNS DOUBLE RETURN c * 1.8 + 32;",
    ),
    Topic(
        "CREATE PROCEDURE",
        "gives statements a name; CALL runs them",
        "CREATE [OR REPLACE] PROCEDURE p(x TYPE, …) AS BEGIN statement; … END",
        "CREATE PROCEDURE forget(sensor INT) AS BEGIN DELETE FROM sensors WHERE id = sensor; END;",
    ),
    Topic("CALL", "runs a procedure", "CALL p(value, …)", "CALL forget(2);"),
    Topic(
        "CREATE USER",
        "who may log in to headwater serve, and what for",
        "CREATE USER [IF NOT EXISTS] u PASSWORD '…' [ROLE READER | WRITER | ADMIN]\n"
        "ALTER USER u [PASSWORD '…'] [ROLE …]\n"
        "DROP USER [IF EXISTS] u",
        "CREATE USER ada PASSWORD 'correct horse' ROLE WRITER;",
        "docs/operating/users.md",
    ),
    Topic(
        "CREATE TOKEN",
        "a key for programs that speak HTTP; it is shown once",
        "CREATE TOKEN t [ROLE READER | WRITER | ADMIN]\nDROP TOKEN [IF EXISTS] t",
        "CREATE TOKEN probe ROLE READER;",
        "docs/operating/users.md",
    ),
    Topic(
        "INSERT",
        "adds rows; they are on disk when it returns",
        "INSERT INTO t [(column, …)] VALUES (…), … | query\nINSERT INTO t BY NAME query",
        "INSERT INTO sensors VALUES (1, 'roof'), (2, 'cellar');",
    ),
    Topic(
        "UPDATE",
        "changes rows of a table, or of the history of a streaming table",
        "UPDATE t SET column = expression, … [WHERE condition]",
        "UPDATE sensors SET place = 'attic' WHERE id = 1;",
    ),
    Topic(
        "DELETE",
        "removes rows",
        "DELETE FROM t [WHERE condition]",
        "DELETE FROM sensors WHERE id = 2;",
    ),
    Topic(
        "MERGE",
        "changes a table by the rows of another",
        "MERGE INTO t USING source ON condition\n"
        "  WHEN MATCHED [AND …] THEN UPDATE SET … | DELETE\n"
        "  WHEN NOT MATCHED [BY TARGET | BY SOURCE] [AND …] THEN INSERT (…) VALUES (…) | …",
        "MERGE INTO sensors USING moved ON sensors.id = moved.id\n"
        "  WHEN MATCHED THEN UPDATE SET place = moved.place;",
    ),
    Topic("TRUNCATE", "removes all rows", "TRUNCATE TABLE t", "TRUNCATE TABLE sensors;"),
    Topic(
        "COPY",
        "reads rows from a file, or writes them to one",
        "COPY t [(column, …)] FROM 'file' [CSV | PARQUET] [HEADER]\n"
        "COPY t | (query) TO 'file' [CSV | PARQUET] [HEADER]",
        "COPY readings FROM 'readings.csv' CSV HEADER;",
    ),
    Topic(
        "ALTER TABLE",
        "changes the columns or the name of a table, how long rows are kept, or its clock",
        "ALTER TABLE t ADD COLUMN c TYPE | RENAME COLUMN a TO b | DROP COLUMN c | RENAME TO u\n"
        "ALTER TABLE t SET RANGE interval | FOREVER\n"
        "ALTER TABLE t SET CLOCK TO time | SET MAX_CLOCK_AHEAD interval | DEFAULT",
        "ALTER TABLE readings SET RANGE INTERVAL '7' DAY;",
    ),
    Topic(
        "ALTER QUERY",
        "begins a landmark window anew",
        "ALTER QUERY q RESET LANDMARK [AT time]",
        "ALTER QUERY warmth RESET LANDMARK;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "ALTER VIEW",
        "reads the standard tables of a view again",
        "ALTER VIEW v REFRESH STATIC",
        "ALTER VIEW extremes REFRESH STATIC;",
        f"{GUIDE}/views.md",
    ),
    Topic(
        "DROP",
        "removes an object",
        "DROP TABLE | STREAM | VIEW | MATERIALIZED VIEW | QUERY | INDEX | SOURCE | SINK |\n"
        "  FUNCTION | PROCEDURE | USER | TOKEN [IF EXISTS] name",
        "DROP QUERY IF EXISTS warmth;",
    ),
    Topic(
        "SUBSCRIBE",
        "shows the results of a query as they come; Ctrl-C ends it",
        "SUBSCRIBE q [EMIT ALL | INSERTS | DELETES | CHANGES] [AFTER 'token' | EARLIEST]\n"
        "  [CONFLATE BY column, …]",
        "SUBSCRIBE warmth EMIT CHANGES;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "PAUSE",
        "stops a continuous query or a source for a while, or for good",
        "PAUSE QUERY q | SOURCE s\nRESUME QUERY q | SOURCE s\nKILL QUERY q",
        "PAUSE QUERY warmth;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "ADVANCE",
        "says that no row before that time will come, so that windows can end",
        "ADVANCE t TO time",
        "ADVANCE readings TO TIMESTAMP '2026-11-15 10:00:00';",
        f"{GUIDE}/streaming-tables.md",
    ),
    Topic(
        "FLUSH",
        "waits until everything acknowledged and complete has been answered",
        "FLUSH",
        "FLUSH;",
        f"{GUIDE}/continuous-queries.md",
    ),
    Topic(
        "EXPLAIN",
        "how a statement would run, or how a query or view runs; ANALYZE measures",
        "EXPLAIN [ANALYZE] query\nEXPLAIN CREATE VIEW … | CREATE CONTINUOUS QUERY …\n"
        "EXPLAIN [ANALYZE] QUERY q | VIEW v",
        "EXPLAIN ANALYZE QUERY warmth;",
    ),
    Topic(
        "DESCRIBE",
        "the columns of a table, a view, a result or a query",
        "DESCRIBE name | query",
        "DESCRIBE readings;",
    ),
    Topic(
        "SHOW",
        "lists objects, or shows a setting",
        "SHOW TABLES | STREAMS | VIEWS | QUERIES | SOURCES | SINKS | INDEXES | FUNCTIONS |\n"
        "  PROCEDURES | SETTINGS | USERS | TOKENS\nSHOW setting",
        "SHOW QUERIES;",
    ),
    Topic(
        "SET",
        "changes a setting; RESET gives back its default",
        "SET setting = value\nRESET setting | ALL",
        "SET statement_timeout_s = 60;",
        "docs/reference/settings.md",
    ),
    Topic(
        "VERIFY",
        "computes a view anew and compares",
        "VERIFY VIEW v",
        "VERIFY VIEW extremes;",
        f"{GUIDE}/views.md",
    ),
    Topic(
        "BEGIN",
        "starts a transaction of inserts; for clients of headwater serve",
        "BEGIN\nCOMMIT\nROLLBACK",
        "BEGIN;",
        f"{GUIDE}/serving.md",
    ),
)
