-- CQ-3: the statistics of those segments only that are usually congested. The list is an ordinary table.

CREATE TABLE critical (xway INT, dir INT, seg INT);

CREATE PROCEDURE choose_critical(number INT) AS BEGIN
  TRUNCATE TABLE critical;
  INSERT INTO critical
    SELECT xway, dir, seg FROM statistics WHERE cars > 0 GROUP BY xway, dir, seg ORDER BY avg(speed), xway, dir, seg LIMIT number;
  SELECT xway, dir, seg FROM critical;
END;

CREATE CONTINUOUS QUERY critical_segments AS
  SELECT s.xway, s.dir, s.seg, s.cars, s.speed
  FROM statistics [INTERVAL '59' SECOND] s JOIN critical c ON s.xway = c.xway AND s.dir = c.dir AND s.seg = c.seg
  SAMPLE INTERVAL '60' SECOND;
