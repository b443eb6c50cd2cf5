-- Rules 6 and 8: cars and average speed of the segments, for each minute that is over.

CREATE MATERIALIZED VIEW statistics RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT xway, dir, seg, count(*) AS cars, avg(speed) AS speed
  FROM (
    SELECT xway, dir, seg, vid, avg(speed) AS speed
    FROM reports [INTERVAL '60' SECOND BEFORE] WHERE type = 0 GROUP BY xway, dir, seg, vid
  )
  GROUP BY xway, dir, seg
  SAMPLE INTERVAL '60' SECOND;

-- Rules 7, 8 and 12 without accidents: LAV and toll of the segments for the minute that begins, from the five before it. LAV is
-- rounded to six decimals, then down. Cars that entered the segment in the last minute stand beside it; because moves have rows from
-- the first second on, there is a result for the first minute too.
CREATE MATERIALIZED VIEW congestion RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT c.xway, c.dir, c.seg, c.lav, CASE WHEN c.lav < 40 AND c.cars > 50 THEN 2 * (c.cars - 50) * (c.cars - 50) ELSE 0L END AS toll,
         c.cars, coalesce(m.entered, 0L) AS entered
  FROM (
    SELECT xway, dir, seg, CAST(floor(avg(speed) + 5e-7) AS INT) AS lav,
           CASE WHEN max(_t) = CURRENT_INSTANT() THEN last(cars) ELSE 0L END AS cars
    FROM statistics [INTERVAL '240' SECOND] GROUP BY xway, dir, seg
  ) c LEFT JOIN (
    SELECT xway, dir, seg, count(*) AS entered FROM moves [INTERVAL '60' SECOND BEFORE] WHERE enters GROUP BY xway, dir, seg
  ) m ON c.xway = m.xway AND c.dir = m.dir AND c.seg = m.seg
  SAMPLE INTERVAL '60' SECOND;
