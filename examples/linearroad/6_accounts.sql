-- Rules 16 and 17: balance and expenditure.

CREATE VIEW accounts AS SELECT vid, sum(toll) AS balance FROM charges GROUP BY vid;

CREATE CONTINUOUS QUERY balances WITH (mode = 'fold') AS
  SELECT r.vid, r.time, r.qid, coalesce(b.balance, 0L) AS balance
  FROM (SELECT vid, time, qid FROM reports [INTERVAL '1' SECOND] WHERE type = 2 AND time = CURRENT_INSTANT()) r
       LEFT JOIN (
         SELECT q.qid, sum(c.toll) AS balance FROM reports [INTERVAL '1' SECOND] q JOIN charges [INTERVAL '1' DAY] c ON q.vid = c.vid
         WHERE q.type = 2 GROUP BY q.qid
       ) b ON r.qid = b.qid
  SAMPLE INTERVAL '1' SECOND;

CREATE PROCEDURE balance(car INT) AS BEGIN
  SELECT coalesce(sum(balance), 0L) AS balance FROM accounts WHERE vid = car;
END;

CREATE PROCEDURE expenditure(car INT, past INT, way INT) AS BEGIN
  SELECT coalesce(sum(toll), 0L) AS toll FROM history WHERE vid = car AND day = past AND xway = way;
END;
