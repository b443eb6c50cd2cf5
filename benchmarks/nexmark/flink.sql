-- NEXMark's queries as Flink's own benchmark has them: windows by window functions, that tell a window once it is over.
-- Averages are of DOUBLE, since Flink's average of BIGINT is one; q12 goes by the time of the event, q13 joins a view.
-- Of q6 Flink says that it cannot: OVER takes no input that changes.

-- q0: every bid as it is
SELECT auction, bidder, price, `dateTime`, extra FROM bid

-- q1: dollars to euros
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid

-- q2: bids of some auctions
SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0

-- q3: who sells in some states
SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')

-- q4: the mean of the winning bids of each category
SELECT Q.category, AVG(CAST(Q.final AS DOUBLE)) AS average FROM (
  SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires GROUP BY A.id, A.category
) Q GROUP BY Q.category

-- q5: the auctions with most bids in each sliding window
SELECT AuctionBids.auction, AuctionBids.num, AuctionBids.starttime FROM (
  SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
) AS AuctionBids JOIN (
  SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM (
    SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
  ) AS CountBids GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
AND AuctionBids.num >= MaxBids.maxn

-- q6: the mean price of the last ten auctions of each seller
SELECT Q.seller, AVG(CAST(Q.price AS DOUBLE)) OVER (
  PARTITION BY Q.seller ORDER BY Q.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
) AS average FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY price DESC, `dateTime`) AS rownum FROM (
    SELECT A.id, A.seller, B.price, B.`dateTime`
    FROM auction A, bid B WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  )
) AS Q WHERE Q.rownum <= 1

-- q7: the highest bids of each window
SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra FROM bid B JOIN (
  SELECT MAX(price) AS maxprice, window_end AS `dateTime`
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
) B1 ON B.price = B1.maxprice
WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`

-- q8: persons who sold in the window in which they came
SELECT P.id, P.name, P.starttime FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) P JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime

-- q9: the winning bid of each auction
SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
  auction, bidder, price, bid_dateTime, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
  FROM auction A, bid B WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
) WHERE rownum <= 1

-- q10: bids with day and minute
SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid

-- q11: bids of each session of a bidder
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end

-- q12: bids of each window of a bidder
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end

-- q13: bids with a table beside them
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM bid B JOIN side_input S ON MOD(B.auction, 10) = S.`key`

-- q14: the time of day, and how often a letter stands in a text
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
    WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000

-- q15: figures of each day
SELECT DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), COUNT(*),
  COUNT(*) FILTER (WHERE price < 10000), COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(*) FILTER (WHERE price >= 1000000), COUNT(DISTINCT bidder),
  COUNT(DISTINCT bidder) FILTER (WHERE price < 10000),
  COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000), COUNT(DISTINCT auction),
  COUNT(DISTINCT auction) FILTER (WHERE price < 10000),
  COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000)
FROM bid GROUP BY DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')

-- q16: figures of each channel and day
SELECT channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), MAX(DATE_FORMAT(`dateTime`, 'HH:mm')), COUNT(*),
  COUNT(*) FILTER (WHERE price < 10000), COUNT(DISTINCT bidder),
  COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000), COUNT(DISTINCT auction),
  COUNT(DISTINCT auction) FILTER (WHERE price < 10000)
FROM bid GROUP BY channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')

-- q17: figures of each auction and day
SELECT auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), COUNT(*),
  COUNT(*) FILTER (WHERE price < 10000), COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(*) FILTER (WHERE price >= 1000000), MIN(price), MAX(price), AVG(CAST(price AS DOUBLE)), SUM(price)
FROM bid GROUP BY auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')

-- q18: the last bid of each bidder for each auction
SELECT auction, bidder, price, channel, url, `dateTime`, extra FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number FROM bid
) WHERE rank_number <= 1

-- q19: the ten highest bids of each auction
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, `dateTime`) AS rank_number FROM bid
) WHERE rank_number <= 10

-- q20: bids with their auctions
SELECT auction, bidder, price, channel, url, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
  itemName, description, initialBid, reserve, A.`dateTime` AS auction_dateTime, expires, seller, category,
  A.extra AS auction_extra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 10

-- q21: the channel's number, by name or from the address
SELECT auction, bidder, price, channel,
  CASE
    WHEN LOWER(channel) = 'apple' THEN '0' WHEN LOWER(channel) = 'google' THEN '1'
    WHEN LOWER(channel) = 'facebook' THEN '2' WHEN LOWER(channel) = 'baidu' THEN '3'
    ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')

-- q22: the folders of the address
SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4), SPLIT_INDEX(url, '/', 5)
FROM bid
