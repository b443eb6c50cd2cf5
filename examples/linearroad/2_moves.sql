-- Rules 3, 4, 5 and 9: what a position report says when it is compared with those before it of the same car.
-- `change` is 1 where the car has come to a stop, and -1 where a stopped car has moved; the place is that of the report before.

CREATE MATERIALIZED VIEW moves RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT time, vid, xway, lane, dir, seg,
         PREV(lane) IS NULL OR PREV(lane) = 4 AS begins,
         PREV(lane) IS NULL OR PREV(lane) = 4 OR seg <> PREV(seg) OR dir <> PREV(dir) OR xway <> PREV(xway) AS enters,
         CASE WHEN PREV(pos) = PREV(pos, 2) AND PREV(lane) = PREV(lane, 2) AND PREV(dir) = PREV(dir, 2) AND PREV(xway) = PREV(xway, 2)
               AND PREV(pos) = PREV(pos, 3) AND PREV(lane) = PREV(lane, 3) AND PREV(dir) = PREV(dir, 3) AND PREV(xway) = PREV(xway, 3)
              THEN CASE WHEN pos = PREV(pos) AND lane = PREV(lane) AND dir = PREV(dir) AND xway = PREV(xway) THEN 1 ELSE 0 END
                 - CASE WHEN PREV(pos) = PREV(pos, 4) AND PREV(lane) = PREV(lane, 4) AND PREV(dir) = PREV(dir, 4)
                         AND PREV(xway) = PREV(xway, 4) THEN 1 ELSE 0 END
              ELSE 0 END AS change,
         PREV(xway) AS from_xway, PREV(lane) AS from_lane, PREV(dir) AS from_dir, PREV(seg) AS from_seg, PREV(pos) AS from_pos
  FROM reports [type, vid ROWS 5]
  WHERE time = CURRENT_INSTANT() AND type = 0
    AND (PREV(lane) IS NULL OR PREV(lane) = 4 OR seg <> PREV(seg) OR dir <> PREV(dir) OR xway <> PREV(xway)
         OR PREV(pos) = PREV(pos, 2) AND PREV(pos) = PREV(pos, 3))
  SAMPLE INTERVAL '1' SECOND;
