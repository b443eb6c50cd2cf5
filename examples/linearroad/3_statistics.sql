-- Rules 6 and 8: cars and average speed of every segment, for each minute that is over.

CREATE MATERIALIZED VIEW statistics RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT s.xway, s.dir, s.seg, count(c.vid) AS cars, avg(c.speed) AS speed
  FROM segments s LEFT JOIN (
    SELECT xway, dir, seg, vid, avg(speed) AS speed
    FROM reports [INTERVAL '60' SECOND BEFORE] WHERE type = 0 GROUP BY xway, dir, seg, vid
  ) c ON s.xway = c.xway AND s.dir = c.dir AND s.seg = c.seg
  GROUP BY s.xway, s.dir, s.seg
  SAMPLE INTERVAL '60' SECOND;

-- Rules 7, 8 and 12 without accidents: the five minutes before.
-- LAV is rounded down after it was rounded to six decimals.
CREATE MATERIALIZED VIEW congestion RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT xway, dir, seg, CAST(floor(avg(speed) + 5e-7) AS INT) AS lav,
         CASE WHEN floor(avg(speed) + 5e-7) < 40 AND last(cars) > 50 THEN 2 * (last(cars) - 50) * (last(cars) - 50) ELSE 0L END AS toll
  FROM statistics [INTERVAL '240' SECOND] GROUP BY xway, dir, seg
  SAMPLE INTERVAL '60' SECOND;
