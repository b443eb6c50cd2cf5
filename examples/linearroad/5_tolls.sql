-- Rules 12 to 15: what a car that enters a segment is told, and what it is charged.

CREATE MATERIALIZED VIEW entries RANGE INTERVAL '1' DAY WITH (mode = 'fold') AS
  SELECT m.vid, m.time, m.lane, m.begins, c.lav,
         CASE WHEN a.distance IS NULL THEN coalesce(c.toll, 0L) ELSE 0L END AS toll,
         CASE WHEN m.dir = 0 THEN m.seg + a.distance ELSE m.seg - a.distance END AS accident
  FROM (SELECT vid, time, xway, dir, seg, lane, begins FROM moves [INTERVAL '1' SECOND] WHERE enters AND _t = CURRENT_INSTANT()) m
       LEFT JOIN (SELECT xway, dir, seg, lav, toll FROM congestion [INTERVAL '59' SECOND]) c
         ON m.xway = c.xway AND m.dir = c.dir AND m.seg = c.seg
       LEFT JOIN (SELECT xway, dir, seg, distance FROM accidents [INTERVAL '59' SECOND]) a
         ON m.xway = a.xway AND m.dir = a.dir AND m.seg = a.seg
  SAMPLE INTERVAL '1' SECOND;

CREATE CONTINUOUS QUERY toll_notifications WITH (mode = 'fold') AS
  SELECT vid, time, lav, toll FROM entries [INTERVAL '1' SECOND] WHERE _t = CURRENT_INSTANT() AND lane <> 4 SAMPLE INTERVAL '1' SECOND;

CREATE CONTINUOUS QUERY accident_alerts WITH (mode = 'fold') AS
  SELECT vid, time, accident AS seg FROM entries [INTERVAL '1' SECOND] WHERE _t = CURRENT_INSTANT() AND lane <> 4 AND accident IS NOT NULL
  SAMPLE INTERVAL '1' SECOND;

CREATE MATERIALIZED VIEW charges WITH (mode = 'fold') AS
  SELECT vid, time, PREV(toll) AS toll FROM entries [vid ROWS 2]
  WHERE _t = CURRENT_INSTANT() AND NOT begins AND PREV(toll) > 0 SAMPLE INTERVAL '1' SECOND;
