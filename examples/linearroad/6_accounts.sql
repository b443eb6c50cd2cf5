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

CREATE CONTINUOUS QUERY expenditures WITH (mode = 'fold') AS
  SELECT r.vid, r.time, r.qid, r.day, r.xway, coalesce(h.toll, 0) AS toll
  FROM reports [INTERVAL '1' SECOND] r LEFT JOIN history h ON r.vid = h.vid AND r.day = h.day AND r.xway = h.xway
  WHERE r.type = 3 AND r.time = CURRENT_INSTANT()
  SAMPLE INTERVAL '1' SECOND;
