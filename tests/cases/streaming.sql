-- Streaming tables in one-time queries (ST1, ST3, ST4, ST8, ST12, ST14).

-- case: figure 1 of the streaming tables paper
SET select_rows = 0;
CREATE STREAMING TABLE pos (vid INT, spd INT, xway INT, lane INT, dir INT, seg INT, pos INT, t INT NOT NULL) TIMESTAMP BY t;
INSERT INTO pos VALUES (1,0,0,0,0,10,53320,0), (1,32,0,0,0,10,53320,1), (2,0,0,0,0,11,53320,3), (4,0,0,0,0,11,53320,4), (4,32,0,0,0,11,53320,6);
ADVANCE pos TO 7;
-- tier: operators
SELECT vid, spd FROM pos [INTERVAL 3 SECONDS];
--: INT, INT
--| 4 | 32
--| 4 | 0

-- tier: operators
SELECT vid, spd FROM pos [ROWS 3];
--| 4 | 32
--| 4 | 0
--| 2 | 0

-- tier: operators
SELECT vid, spd FROM pos [vid ROWS 1];
--| 4 | 32
--| 2 | 0
--| 1 | 32

-- tier: operators
SELECT vid, t FROM pos WHERE spd = 0;
--| 1 | 0
--| 2 | 3
--| 4 | 4

-- tier: operators
SELECT vid FROM pos [INTERVAL 1 SECOND BEFORE];
--| 4

-- tier: operators
SELECT vid, t FROM pos p WHERE VALID(p) OVERLAPS PERIOD(3, 4) AND p.spd < 5;
--| 2 | 3
--| 4 | 4

-- tier: spark
SELECT count(*), max(spd) FROM pos [INTERVAL 3 SECONDS] p;
--| 2 | 32

-- tier: spark
SELECT a.vid, b.n FROM pos [ROWS 1] a JOIN (SELECT vid, count(*) AS n FROM pos WHERE t <= 4 GROUP BY vid) b ON a.vid = b.vid;
--| 4 | 1

-- case: late rows are stored, counted and seen by one-time queries
CREATE STREAMING TABLE s (a INT, t INT NOT NULL) TIMESTAMP BY t;
INSERT INTO s VALUES (1, 10);
INSERT INTO s VALUES (2, 10), (3, 9);
SELECT a, t, _late FROM s;
--| 3 | 9 | true
--| 1 | 10 | false
--| 2 | 10 | false

SELECT table_name, policy, late_count FROM headwater.late_rows;
--| 's' | 'keep' | 1

-- case: late rows refused
CREATE STREAMING TABLE s (a INT, t INT NOT NULL) TIMESTAMP BY t LATE REJECT;
INSERT INTO s VALUES (1, 10);
INSERT INTO s VALUES (2, 11), (3, 5);
--! 22023 late ~ LATE KEEP

SELECT a FROM s;
--| 1

-- case: range hides what is older than the clock allows
SET select_rows = 0;
CREATE STREAMING TABLE s (a INT, t INT NOT NULL) TIMESTAMP BY t RANGE INTERVAL '10' SECOND;
INSERT INTO s VALUES (1, 1), (5, 5), (12, 12), (15, 15);
-- tier: operators
SELECT a FROM s;
--| 5
--| 12
--| 15

-- tier: spark
SELECT sum(a) FROM s;
--| 32

SELECT a FROM s [INTERVAL 11 SECONDS];
--! 42P16 longer than the RANGE

-- case: changes of history
CREATE STREAMING TABLE s (a INT, t INT NOT NULL) TIMESTAMP BY t;
INSERT INTO s VALUES (1, 1), (2, 2), (3, 3);
UPDATE s SET a = a * 10 WHERE t >= 2;
--# UPDATE 2

DELETE FROM s WHERE a = 1;
--# DELETE 1

SELECT a, t FROM s;
--| 20 | 2
--| 30 | 3

UPDATE s SET t = 9;
--! 42P10 1:14 cannot be changed

-- case: a stream keeps no rows, a table without time takes no window
CREATE STREAM e (a INT);
INSERT INTO e VALUES (1);
--# INSERT 1

SELECT * FROM e;
--! 55000 1:15 keeps no rows

CREATE TABLE plain (a INT);
SELECT * FROM plain [ROWS 1];
--! 42P16 has no time

CREATE STREAMING TABLE arrival (a INT);
ADVANCE arrival TO 5;
--! 55000 arrival
