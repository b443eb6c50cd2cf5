-- OTQ-1: how did an accident come about? The trajectories of the cars that came to stand there.
-- trj(time, pos, speed) is an aggregate in Python: db.create_function("trj", …, kind="aggregate"), docs/linearroad.md.

CREATE PROCEDURE accident_dynamics(way INT, direction INT, segment INT, since INT, until INT) AS BEGIN
  SELECT r.vid, trj(r.time, r.pos, r.speed) AS trajectory
  FROM reports r
  WHERE VALID(r) OVERLAPS PERIOD(since, until) AND r.type = 0 AND r.vid IN (
    SELECT vid FROM moves
    WHERE change = 1 AND from_xway = way AND from_dir = direction AND from_seg = segment AND time BETWEEN since AND until)
  GROUP BY r.vid ORDER BY r.vid;
END;
