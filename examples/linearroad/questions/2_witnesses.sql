-- OTQ-2: which cars were near a segment in a period, and may have seen what happened?

CREATE PROCEDURE near(way INT, direction INT, segment INT, since INT, until INT) AS BEGIN
  SELECT r.vid, min(r.time) AS first_seen, max(r.time) AS last_seen, min(r.speed) AS slowest
  FROM reports r
  WHERE VALID(r) OVERLAPS PERIOD(since, until) AND r.type = 0
    AND r.xway = way AND r.dir = direction AND r.seg BETWEEN segment - 1 AND segment + 1
  GROUP BY r.vid ORDER BY first_seen, r.vid;
END;
