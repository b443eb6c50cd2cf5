-- Rules 10 and 11: for each minute, the segments that have an accident in their zone, and how far it is.

CREATE MATERIALIZED VIEW accidents RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT a.xway, a.dir, z.seg, min(z.distance) AS distance
  FROM (
    SELECT from_xway AS xway, from_lane AS lane, from_dir AS dir, from_seg AS seg, from_pos AS pos
    FROM moves [INTERVAL '1' DAY BEFORE] WHERE change <> 0
    GROUP BY from_xway, from_lane, from_dir, from_seg, from_pos HAVING sum(change) >= 2
  ) a JOIN zones z ON a.dir = z.dir AND a.seg = z.accident
  GROUP BY a.xway, a.dir, z.seg
  SAMPLE INTERVAL '60' SECOND;
