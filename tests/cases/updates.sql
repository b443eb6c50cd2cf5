-- Update queries: the newest result per key, how rows wait, and which queries are refused (US1–US9).

-- case: filter and map keep the key
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE CONTINUOUS QUERY newest AS SELECT symbol, price * 2 AS twice FROM ticks WHERE price > 10 WITH UPDATES;
SELECT * FROM newest;
--| (no rows)
INSERT INTO ticks VALUES (1, 'IBM', 24), (2, 'IBM', 25), (2, 'GM', 30), (3, 'ORCL', 7);
FLUSH;
-- sorted
SELECT * FROM newest;
--| 'GM' | 60 | 2
--| 'IBM' | 50 | 2
INSERT INTO ticks VALUES (4, 'GM', 9), (5, 'IBM', 26);
FLUSH;
SELECT * FROM newest;
--| 'IBM' | 52 | 5
DESCRIBE newest;
--| 'symbol' | 'STRING' | true
--| 'twice' | 'INT' | true
--| '_t' | 'BIGINT' | true
SELECT count(*) FROM ticks;
--| 6
SELECT query_name, key, policy, rows_in, shed, waiting, in_process, processed + superseded AS done FROM headwater.staleness WHERE key IS NULL;
--| 'newest' | NULL | 'inplace' | 6 | 0 | 0 | 0 | 6
SELECT query_name, key, application_staleness_s, queue_staleness_s FROM headwater.staleness WHERE key IS NOT NULL ORDER BY key;
--| 'newest' | 'GM' | 0.0 | 0.0
--| 'newest' | 'IBM' | 0.0 | 0.0
--| 'newest' | 'ORCL' | 0.0 | 0.0
SELECT name, state, mode, tier, sample, last_instant, error FROM headwater.queries;
--| 'newest' | 'running' | 'updates, inplace' | 'operators' | 'row by row' | '5' | NULL
SELECT name, update_key FROM headwater.tables;
--| 'ticks' | '(symbol)'
EXPLAIN QUERY newest;
--| 'update query newest, running'
--| 'rows wait: updates, inplace'
--| 'next is: the key that is stale for longest'
--| 'stream: ticks, row by row, update key symbol'
--| '  evaluated over the rows of the next keys, operators'
--| 'keys in one run: as many as take 50 ms, measured'
-- what was there before is read with FROM BEGINNING
CREATE CONTINUOUS QUERY again FROM BEGINNING AS SELECT t.* FROM ticks t WITH UPDATES SCHEDULE FIFO;
FLUSH;
-- sorted
SELECT * FROM again;
--| 3 | 'ORCL' | 7 | 3
--| 4 | 'GM' | 9 | 4
--| 5 | 'IBM' | 26 | 5
DROP QUERY again;
PAUSE QUERY newest;
INSERT INTO ticks VALUES (6, 'IBM', 100), (7, 'IBM', 101);
FLUSH;
SELECT * FROM newest;
--| 'IBM' | 52 | 5
RESUME QUERY newest;
FLUSH;
SELECT * FROM newest;
--| 'IBM' | 202 | 7

-- case: no key: each row replaces the one before
CREATE STREAMING TABLE load (ts INT, v INT) TIMESTAMP BY ts UPDATE KEY ();
CREATE CONTINUOUS QUERY q AS SELECT v + 1 AS w FROM load WITH UPDATES;
INSERT INTO load VALUES (1, 1), (2, 5), (3, 9);
FLUSH;
SELECT * FROM q;
--| 10 | 3
SELECT key, policy, rows_in, processed + superseded AS done FROM headwater.staleness;
--| NULL | 'inplace' | 3 | 3
--| '' | NULL | NULL | NULL

-- case: every row, or some of them
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE CONTINUOUS QUERY every AS SELECT symbol, price FROM ticks WITH APPEND;
CREATE CONTINUOUS QUERY none AS SELECT symbol, price FROM ticks WITH SHEDDING 1;
CREATE CONTINUOUS QUERY behind AS SELECT symbol, price FROM ticks WITH UPDATES SCHEDULE LINECUTTING WHEN BEHIND INTERVAL '1' HOUR REFRESH EVERY INTERVAL '1' SECOND FOR symbol IN ('IBM', concat('G', 'M'));
INSERT INTO ticks VALUES (1, 'IBM', 24), (2, 'IBM', 25), (2, 'GM', 30);
FLUSH;
SUBSCRIBE every EARLIEST;
--| 'IBM' | 24 | 1
--| 'IBM' | 25 | 2
--| 'GM' | 30 | 2
SELECT * FROM none;
--| (no rows)
SELECT query_name, rows_in, processed, superseded, shed, waiting, in_process FROM headwater.staleness WHERE key IS NULL ORDER BY query_name;
--| 'behind' | 3 | 3 | 0 | 0 | 0 | 0
--| 'every' | 3 | 3 | 0 | 0 | 0 | 0
--| 'none' | 3 | 0 | 0 | 3 | 0 | 0
SELECT name, mode FROM headwater.queries ORDER BY name;
--| 'behind' | 'updates, linecutting, 2 keys every 1 s, when behind 3600 s, now append'
--| 'every' | 'append'
--| 'none' | 'shedding 1'
EXPLAIN SELECT symbol, price FROM ticks WITH UPDATES SCHEDULE LINECUTTING;
--| 'rows wait: updates, linecutting'
--| 'next is: keys that change seldom, then the key that is stale for longest'
--| 'stream: ticks, row by row, update key symbol'
--| '  evaluated over the rows of the next keys, operators'
--| 'keys in one run: as many as take 50 ms, measured'

-- case: windows per key
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE CONTINUOUS QUERY lazy AS SELECT symbol, sum(price) AS total, count(*) AS n FROM ticks [INTERVAL 4 SECONDS BEFORE] GROUP BY symbol HAVING count(*) > 1 SAMPLE INTERVAL 4 SECONDS WITH UPDATES WINDOWS LAZY;
CREATE CONTINUOUS QUERY eager AS SELECT symbol, sum(price) AS total, count(*) AS n FROM ticks [INTERVAL 4 SECONDS BEFORE] GROUP BY symbol SAMPLE INTERVAL 4 SECONDS WITH UPDATES WINDOWS EAGER;
INSERT INTO ticks VALUES (0, 'IBM', 1), (1, 'GM', 7), (3, 'IBM', 2);
FLUSH;
INSERT INTO ticks VALUES (4, 'IBM', 10), (5, 'IBM', 20), (9, 'IBM', 30);
FLUSH;
-- sorted
SELECT * FROM lazy;
--| 'IBM' | 30 | 2 | 8
-- sorted
SELECT * FROM eager;
--| 'GM' | 7 | 1 | 4
--| 'IBM' | 3 | 2 | 4
ADVANCE ticks TO 12;
FLUSH;
-- sorted
SELECT * FROM eager;
--| 'GM' | 7 | 1 | 4
--| 'IBM' | 30 | 1 | 12
EXPLAIN QUERY eager;
--| 'update query eager, running'
--| 'rows wait: updates, inplace, windows eager'
--| 'next is: the key that is stale for longest'
--| 'stream: ticks [4 s BEFORE] every 4 s, update key symbol'
--| '  folded as rows of a window come, operators'
--| 'keys in one run: as many as take 50 ms, measured'

-- case: a union keeps one row per key and time
CREATE STREAMING TABLE a (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE STREAMING TABLE b (at INT, sym STRING, ask INT) TIMESTAMP BY at UPDATE KEY (sym);
CREATE CONTINUOUS QUERY u AS SELECT symbol, price FROM a UNION ALL SELECT sym AS symbol, ask AS price FROM b WITH UPDATES;
INSERT INTO a VALUES (9, 'IBM', 24);
FLUSH;
INSERT INTO b VALUES (7, 'IBM', 1), (9, 'IBM', 2), (9, 'GM', 3);
FLUSH;
-- sorted
SELECT * FROM u;
--| 'GM' | 3 | 9
--| 'IBM' | 24 | 9
INSERT INTO b VALUES (10, 'IBM', 25);
FLUSH;
-- sorted
SELECT * FROM u;
--| 'GM' | 3 | 9
--| 'IBM' | 25 | 10
SELECT rows_in, processed, superseded FROM headwater.staleness WHERE key IS NULL;
--| 5 | 3 | 2

-- case: a join takes the latest match in the window
CREATE STREAMING TABLE trades (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE STREAMING TABLE ratings (ts INT, symbol STRING, stars INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE CONTINUOUS QUERY j AS SELECT t.symbol, t.price, r.stars FROM trades [INTERVAL 5 SECONDS] t JOIN ratings [INTERVAL 10 SECONDS] r ON t.symbol = r.symbol AND r.stars < 5 WITH UPDATES;
INSERT INTO trades VALUES (1, 'IBM', 24), (1, 'GM', 30);
INSERT INTO ratings VALUES (2, 'IBM', 3), (3, 'IBM', 4), (3, 'GM', 5);
FLUSH;
SELECT * FROM j;
--| 'IBM' | 24 | 4 | 3
INSERT INTO trades VALUES (9, 'IBM', 25);
FLUSH;
SELECT * FROM j;
--| 'IBM' | 25 | 4 | 9
INSERT INTO trades VALUES (30, 'IBM', 26);
FLUSH;
SELECT * FROM j;
--| (no rows)
EXPLAIN QUERY j;
--| 'update query j, running'
--| 'rows wait: updates, inplace'
--| 'next is: the key that is stale for longest'
--| 'stream: trades [5 s], update key symbol'
--| 'stream: ratings [10 s], update key symbol'
--| 'join: the latest match of each key, Spark'
--| 'keys in one run: as many as take 50 ms, measured'
CREATE CONTINUOUS QUERY k AS SELECT t.symbol, r.stars FROM trades [INTERVAL 5 SECONDS] t JOIN ratings [INTERVAL 10 SECONDS] r ON t.price = r.stars WITH UPDATES;
--! 42P20 1:95 a join of update streams is over their update keys: (symbol) and (symbol) ~ ON t.symbol = r.symbol
CREATE CONTINUOUS QUERY k AS SELECT t.symbol, r.stars FROM trades t JOIN ratings r ON t.symbol = r.symbol WITH UPDATES;
--! 42P20 1:60 a join of update streams takes the latest match in a window of each ~ trades [INTERVAL '1' MINUTE]
CREATE CONTINUOUS QUERY k AS SELECT t.symbol, count(*) AS n FROM trades [INTERVAL 5 SECONDS] t JOIN ratings [INTERVAL 10 SECONDS] r USING (symbol) GROUP BY t.symbol WITH UPDATES;
--! 42P20 1:47 a join of update streams gives the latest match of each key, so there are no groups ~ leave GROUP BY out, or leave WITH UPDATES out
CREATE CONTINUOUS QUERY k AS SELECT t.symbol, r.stars FROM trades [INTERVAL 5 SECONDS] t JOIN ratings [INTERVAL 10 SECONDS] r USING (symbol) SAMPLE INTERVAL 1 SECOND WITH UPDATES;
--! 42P20 1:142 a join of update streams is made for each row that comes ~ leave SAMPLE out

-- case: a table beside the stream
CREATE TABLE names (symbol STRING, full STRING);
INSERT INTO names VALUES ('IBM', 'Machines'), ('GM', 'Motors');
CREATE STREAM ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE CONTINUOUS QUERY q AS SELECT t.symbol, n.full, t.price FROM ticks t JOIN names n ON n.symbol = t.symbol WITH UPDATES;
CREATE CONTINUOUS QUERY nested AS SELECT symbol, (SELECT max(full) FROM names) AS last FROM ticks WITH UPDATES;
INSERT INTO ticks VALUES (1, 'IBM', 24), (2, 'XX', 25);
FLUSH;
SELECT * FROM q;
--| 'IBM' | 'Machines' | 24 | 1
-- sorted
SELECT * FROM nested;
--| 'IBM' | 'Motors' | 1
--| 'XX' | 'Motors' | 2

-- case: rules
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts UPDATE KEY (symbol);
CREATE STREAMING TABLE plain (ts INT, symbol STRING) TIMESTAMP BY ts;
CREATE STREAMING TABLE other (ts INT, number INT) TIMESTAMP BY ts UPDATE KEY (number);
CREATE TABLE names (symbol STRING, full STRING);
CREATE CONTINUOUS QUERY q AS SELECT price FROM ticks WITH UPDATES;
--! 42P20 5:37 an update query keeps the update key: symbol is not in the result as it is ~ SELECT symbol, …
CREATE CONTINUOUS QUERY q AS SELECT upper(symbol) AS symbol, price FROM ticks WITH UPDATES;
--! 42P20 1:37 an update query keeps the update key: symbol is not in the result as it is ~ SELECT symbol, …
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM plain WITH UPDATES;
--! 42P20 1:49 streaming table plain has no update key ~ CREATE … UPDATE KEY (column), or UPDATE KEY () if each row replaces the one before
CREATE CONTINUOUS QUERY q AS SELECT symbol, max(price) FROM ticks GROUP BY symbol WITH UPDATES;
--! 42P20 1:45 an aggregate of an update query is over a window ~ FROM ticks [INTERVAL '1' MINUTE] … SAMPLE INTERVAL '10' SECOND
CREATE CONTINUOUS QUERY q AS SELECT price, max(symbol) AS symbol FROM ticks [INTERVAL 2 SECONDS] GROUP BY price SAMPLE INTERVAL 2 SECONDS WITH UPDATES;
--! 42P20 1:37 an update query keeps the update key: symbol is not in the result as it is ~ SELECT symbol, …
CREATE CONTINUOUS QUERY q AS SELECT symbol, count(*) AS n FROM ticks [INTERVAL 2 SECONDS] GROUP BY price SAMPLE INTERVAL 2 SECONDS WITH UPDATES;
--! 42P20 1:100 GROUP BY contains the update key: symbol is not in it ~ GROUP BY symbol, …
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks UNION SELECT symbol FROM ticks WITH UPDATES;
--! 42P20 1:30 a union of update streams is UNION ALL: it keeps one row per key and time itself ~ SELECT key, … FROM t [WHERE …] WITH UPDATES
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks UNION ALL SELECT number FROM other WITH UPDATES;
--! 42P20 1:30 the branches of a union have the same update key: (symbol) and (number) differ ~ name the key's columns alike, with equal types
CREATE CONTINUOUS QUERY q AS SELECT symbol, price FROM ticks ORDER BY price LIMIT 3 WITH UPDATES;
--! 42P20 1:77 an update query has no order and no LIMIT: keys come as they are processed ~ SELECT … FROM q ORDER BY … LIMIT … when you read it
CREATE CONTINUOUS QUERY q AS SELECT symbol, row_number() OVER (ORDER BY ts) AS n FROM ticks WITH UPDATES;
--! 42P20 1:45 row_number() OVER looks at rows that an update query may skip ~ aggregate over a window: GROUP BY the update key
CREATE CONTINUOUS QUERY q AS WITH x AS (SELECT * FROM ticks) SELECT symbol FROM x WITH UPDATES;
--! 42P20 1:30 an update query is one SELECT, or a UNION ALL of several ~ SELECT key, … FROM t [WHERE …] WITH UPDATES
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks SAMPLE INTERVAL 2 SECONDS WITH UPDATES;
--! 42P20 1:55 SAMPLE needs a window ~ without both, row by row
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks [ROWS 3] SAMPLE 1 ROWS WITH UPDATES;
--! 42P20 1:55 windows of an update query are of time ~ [INTERVAL '1' MINUTE] or [INTERVAL '1' MINUTE BEFORE]
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks [INTERVAL 2 SECONDS] WITH UPDATES;
--! 42P20 1:76 an update query with a window needs SAMPLE INTERVAL ~ SAMPLE INTERVAL '10' SECOND before WITH UPDATES
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks WITH UPDATES WINDOWS LAZY;
--! 42P20 1:55 WINDOWS LAZY | EAGER needs a window ~ FROM t [INTERVAL '1' MINUTE] … SAMPLE INTERVAL '10' SECOND
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks [INTERVAL 2 SECONDS] SAMPLE INTERVAL 2 SECONDS WITH UPDATES WHEN BEHIND INTERVAL '5' SECOND;
--! 42P20 1:102 windows are always kept whole: no SHEDDING and no WHEN BEHIND with a window ~ WITH UPDATES WINDOWS LAZY, or leave the window out
CREATE CONTINUOUS QUERY q AS SELECT symbol, price FROM ticks WITH UPDATES REFRESH EVERY INTERVAL '1' SECOND FOR price IN (1);
--! 42P20 1:113 REFRESH is for keys: the update key is (symbol) ~ REFRESH EVERY INTERVAL '1' MINUTE FOR key IN (…), with a key of one column
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks EMIT CHANGES WITH UPDATES;
--! 42P20 1:55 an update query gives the newest result of each key, so there is nothing to compare ~ leave EMIT out
CREATE CONTINUOUS QUERY q AS SELECT n.symbol, t.symbol AS s FROM names n LEFT JOIN ticks t ON n.symbol = t.symbol WITH UPDATES;
--! 42P20 1:66 the update key is kept by joins that begin with the stream ~ FROM ticks JOIN table … or LEFT JOIN table …
CREATE CONTINUOUS QUERY q AS SELECT symbol, CURRENT_INSTANT() AS i FROM ticks WITH UPDATES;
--! 42P20 1:30 each key of an update query has a time of its own, so there is no current instant ~ the time of a row is ts; _t in the result is it, or the window's end
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks CUT BY 10 ROWS WITH UPDATES;
--! 42P20 1:55 an update query takes no CUT: chunks hold every row ~ leave CUT out, or leave WITH … out
CREATE MATERIALIZED VIEW q UPDATE KEY (price) AS SELECT symbol, price FROM ticks WITH UPDATES;
--! 42P20 1:40 the results of an update query have its update key: (symbol) ~ leave UPDATE KEY out
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM ticks;
--! 42P20 1:49 streaming table ticks needs a window in a continuous query ~ for instance ticks [INTERVAL '1' MINUTE] or ticks [ROWS 100]
CREATE CONTINUOUS QUERY q AS SELECT symbol FROM nowhere WITH UPDATES;
--! 42P01 1:49 table nowhere does not exist ~ did you mean other?
CREATE CONTINUOUS QUERY q AS SELECT symbol, price AS p FROM ticks WITH UPDATES;
SUBSCRIBE q EMIT CHANGES;
--! 42P20 q is an update query: it gives the newest result of each key ~ leave EMIT out
SUBSCRIBE q CONFLATE BY symbl;
--! 42703 column symbl is not in the result ~ did you mean symbol?

-- case: an update queue behind a materialized view
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts;
CREATE MATERIALIZED VIEW bars UPDATE KEY (Symbol) AS SELECT symbol, max(price) AS high FROM ticks [INTERVAL 2 SECONDS BEFORE] GROUP BY symbol SAMPLE INTERVAL 2 SECONDS;
CREATE MATERIALIZED VIEW plain AS SELECT symbol, max(price) AS high FROM ticks [INTERVAL 2 SECONDS BEFORE] GROUP BY symbol SAMPLE INTERVAL 2 SECONDS;
CREATE CONTINUOUS QUERY highs AS SELECT symbol, high FROM bars WHERE high > 2 WITH UPDATES;
CREATE CONTINUOUS QUERY of_bars AS SELECT symbol, sum(high) AS sum, count(*) AS n FROM bars [INTERVAL 4 SECONDS] GROUP BY symbol SAMPLE INTERVAL 4 SECONDS WITH UPDATES WINDOWS LAZY;
INSERT INTO ticks VALUES (0, 'IBM', 1), (1, 'GM', 7), (3, 'IBM', 2), (4, 'IBM', 9), (5, 'GM', 8), (6, 'GM', 1);
ADVANCE ticks TO 9;
FLUSH;
-- sorted
SELECT * FROM bars;
--| 'GM' | 1 | 8
--| 'GM' | 7 | 2
--| 'GM' | 8 | 6
--| 'IBM' | 1 | 2
--| 'IBM' | 2 | 4
--| 'IBM' | 9 | 6
-- sorted
SELECT * FROM highs;
--| 'IBM' | 9 | 6
-- sorted
SELECT * FROM of_bars;
--| 'GM' | 9 | 2 | 8
--| 'IBM' | 11 | 2 | 8
EXPLAIN QUERY highs;
--| 'update query highs, running'
--| 'rows wait: updates, inplace'
--| 'next is: the key that is stale for longest'
--| 'stream: bars, row by row, update key symbol'
--| '  evaluated over the rows of the next keys, operators'
--| 'keys in one run: as many as take 50 ms, measured'
SELECT name, kind, update_key FROM headwater.tables;
--| 'bars' | 'materialized view' | '(symbol)'
--| 'plain' | 'materialized view' | NULL
--| 'ticks' | 'streaming table' | NULL
CREATE CONTINUOUS QUERY q AS SELECT symbol, high FROM plain WITH UPDATES;
--! 42P20 1:55 materialized view plain has no update key ~ CREATE … UPDATE KEY (column), or UPDATE KEY () if each row replaces the one before
CREATE MATERIALIZED VIEW m UPDATE KEY (symbl) AS SELECT symbol, price FROM ticks [ROWS 1] SAMPLE 1 ROWS;
--! 42703 1:40 column symbl is not in the select list ~ did you mean symbol?
CREATE MATERIALIZED VIEW m UPDATE KEY (_t) AS SELECT symbol FROM ticks [ROWS 1] SAMPLE 1 ROWS;
--! 42703 1:40 column _t is not in the select list ~ an update key is of columns that the query selects
CREATE MATERIALIZED VIEW m UPDATE KEY (symbol, symbol) AS SELECT symbol FROM ticks [ROWS 1] SAMPLE 1 ROWS;
--! 42701 1:48 column symbol occurs twice
CREATE MATERIALIZED VIEW m UPDATE KEY (symbol) AS SELECT symbol FROM ticks [ROWS 1] SAMPLE 1 ROWS EMIT CHANGES;
--! 42P20 EMIT CHANGES and EMIT DELETES tell what has gone: no row replaces another ~ leave UPDATE KEY out, or keep whole results: EMIT ALL
CREATE MATERIALIZED VIEW m UPDATE KEY (symbol) AS SELECT symbol, max(price) AS high FROM ticks GROUP BY symbol;
--! 42P20 UPDATE KEY is for the results of a query with a window: a kept view has no newer rows ~ leave UPDATE KEY out, or give the query a window and SAMPLE
DROP MATERIALIZED VIEW bars;
--! 2BP01 materialized view bars is read by continuous query highs, of_bars ~ KILL QUERY highs first

-- case: conflation before a reader
CREATE STREAMING TABLE ticks (ts INT, symbol STRING, price INT) TIMESTAMP BY ts;
CREATE CONTINUOUS QUERY q AS SELECT symbol, price FROM ticks [ROWS 1] SAMPLE 1 ROWS;
INSERT INTO ticks VALUES (1, 'IBM', 24), (2, 'GM', 30), (3, 'IBM', 25);
FLUSH;
SUBSCRIBE q EARLIEST CONFLATE BY symbol;
--| 'IBM' | 25 | 3
--| 'GM' | 30 | 2
SUBSCRIBE q EMIT CHANGES EARLIEST CONFLATE BY symbol;
--! 42P20 CONFLATE BY keeps the newest row of each key, so it does not go with EMIT CHANGES ~ EMIT ALL CONFLATE BY …
