-- What comes in, and what is known before: docs/linearroad.md has the columns and the numbered rules.

CREATE STREAMING TABLE reports (
  type INT NOT NULL, time INT NOT NULL, vid INT NOT NULL, speed INT NOT NULL, xway INT NOT NULL, lane INT NOT NULL,
  dir INT NOT NULL, seg INT NOT NULL, pos INT NOT NULL, qid INT NOT NULL, day INT NOT NULL
) TIMESTAMP BY time;

-- Tolls of the last ten weeks, one row for each car and day. By day, so that a question reads one day of one car.
CREATE STREAMING TABLE history (vid INT NOT NULL, day INT NOT NULL, xway INT NOT NULL, toll INT NOT NULL) TIMESTAMP BY day;
CREATE INDEX history_by_vid ON history (vid);

-- Rule 11: an accident in segment `accident` is in the zone of segment `seg`, so many segments upstream of it.
CREATE TABLE zones (dir INT, accident INT, seg INT, distance INT);
INSERT INTO zones
  SELECT d.id, a.id, IF(d.id = 0, a.id - k.id, a.id + k.id), k.id FROM range(2) d, range(100) a, range(5) k
  WHERE IF(d.id = 0, a.id - k.id, a.id + k.id) BETWEEN 0 AND 99;
