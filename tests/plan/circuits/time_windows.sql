-- Windows of time and sessions.

SELECT k, window.start, window.end, sum(v) FROM s GROUP BY k, window(ts, '10 seconds');
group by k, start, end: sum(v)
  windows of 10 seconds by ts
    s: ts, k, v
± k STRING, start TIMESTAMP, end TIMESTAMP, _ INT

SELECT window, count(*) FROM s GROUP BY window(ts, '1 minute', '20 seconds', '5 seconds');
compute struct(start, end, 'start', 'end')
  group by start, end: count()
    windows of 1 minute, each 20 seconds, from 5 seconds on by ts
      s: ts
± window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, _ BIGINT

SELECT window(ts, '1 hour') AS h, count(*) AS n FROM s GROUP BY h HAVING window.start > TIMESTAMP '2026-01-01 00:00:00';
compute struct(start, end, 'start', 'end')
  filter (start > datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    group by start, end: count()
      windows of 1 hour by ts
        s: ts
± h STRUCT<start: TIMESTAMP, end: TIMESTAMP>, n BIGINT

SELECT w.start, max(n) FROM (SELECT k, window(ts, '1 hour') AS w, count(*) AS n FROM s GROUP BY k, window(ts, '1 hour')) GROUP BY w.start;
group by key: max(n)
  compute field(w, 0)
    compute struct(start, end, 'start', 'end')
      group by k, start, end: count()
        windows of 1 hour by ts
          s: ts, k
± start TIMESTAMP, _ BIGINT

SELECT k, window(ts, '10 seconds').end FROM s WHERE v > 1;
windows of 10 seconds by ts
  filter (v > 1)
    s: ts, k, v
+ k STRING, end TIMESTAMP

SELECT upper(k), session_window.start, count(*) FROM s GROUP BY upper(k), session_window(ts, '5 minutes');
group by key, start, end: count()
  compute upper(k)
    sessions of key by ts, 5 minutes apart
      compute upper(k)
        s: ts, k
± _ STRING, start TIMESTAMP, _ BIGINT

SELECT session_window.end, count(*) FROM s GROUP BY session_window(ts, '1 day') ORDER BY 1;
group by start, end: count()
  sessions of all rows by ts, 1 day apart
    s: ts
± end TIMESTAMP, _ BIGINT

SELECT window.start, count(*) FROM s GROUP BY window(ts, '10 seconds'), window(ts, '20 seconds');
Spark: several windows of time

SELECT session_window(ts, '5 minutes') FROM s;
Spark: a session without GROUP BY

SELECT count(session_window.start) FROM s GROUP BY session_window(ts, '5 minutes'), ROLLUP(k);
Spark: a session that is no key of GROUP BY

SELECT window.start, count(*) FROM s GROUP BY ROLLUP(window(ts, '10 seconds'));
Spark: a struct in a grouping set

SELECT window.start, count(*) FROM s GROUP BY window(ts, '1 month');
Spark: this length of a window: months and years are not a fixed length

SELECT window.start, count(*) FROM s GROUP BY window(ts, '1 second', '2 seconds');
Spark: this form of window

SELECT window.start, count(*) FROM n GROUP BY window(at, '1 second');
Spark: a window of int64

SELECT session_window.start, count(*) FROM s GROUP BY session_window(ts, CASE WHEN v > 1 THEN '1 second' ELSE '2 seconds' END);
Spark: a length that is no text

SELECT window.start, count(*) FROM s AS window GROUP BY window(ts, '1 second');
Spark: window may mean a column

SELECT struct(k AS a, v AS b) AS p, count(*) FROM s GROUP BY struct(k AS a, v AS b);
compute struct(k, v, 'a', 'b')
  group by k, v: count()
    s: k, v
± p STRUCT<a: STRING, b: INT>, _ BIGINT
