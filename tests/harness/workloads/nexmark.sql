-- NEXMark's queries in Spark's words, over all rows that came. Where DuckDB has other words for a query they
-- stand behind it. A tie that would leave a result open is broken by more columns.

-- q0: every bid as it is
SELECT auction, bidder, price, dateTime, extra FROM bid

-- q1: dollars to euros
SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid

-- q2: bids of some auctions
SELECT auction, price FROM bid WHERE mod(auction, 123) = 0

-- q3: who sells in some states
SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')

-- q4: the mean of the winning bids of each category
SELECT Q.category, avg(Q.final) AS mean FROM (
  SELECT max(B.price) AS final, A.category FROM auction A, bid B
  WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires GROUP BY A.id, A.category
) Q GROUP BY Q.category

-- q5: the auctions with most bids in each sliding window
SELECT AuctionBids.auction, AuctionBids.num, AuctionBids.starttime FROM (
  SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
  FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
) AS AuctionBids JOIN (
  SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM (
    SELECT count(*) AS num, window.start AS starttime, window.end AS endtime
    FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
  ) AS CountBids GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
AND AuctionBids.num >= MaxBids.maxn
-- in DuckDB
WITH w AS (
  SELECT auction, time_bucket(INTERVAL 2 SECONDS, dateTime) - INTERVAL 2 SECONDS * i AS s
  FROM bid, range(5) AS r(i)
), c AS (SELECT auction, s, count(*) AS num FROM w GROUP BY ALL)
SELECT auction, num, s FROM c QUALIFY num = max(num) OVER (PARTITION BY s)

-- q6: the mean price of the last ten auctions of each seller
SELECT Q.seller, avg(Q.final) OVER (
  PARTITION BY Q.seller ORDER BY Q.dateTime, Q.final, Q.id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
) AS mean FROM (
  SELECT A.id, A.seller, B.price AS final, B.dateTime,
    row_number() OVER (PARTITION BY A.id, A.seller ORDER BY B.price DESC, B.dateTime) AS rownum
  FROM auction A, bid B WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
) AS Q WHERE Q.rownum <= 1

-- q7: the highest bids of each window
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra FROM bid B JOIN (
  SELECT max(price) AS maxprice, window.end AS dateTime FROM bid GROUP BY window(dateTime, '10 seconds')
) B1 ON B.price = B1.maxprice
WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND B1.dateTime
-- in DuckDB
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra FROM bid B JOIN (
  SELECT max(price) AS m, time_bucket(INTERVAL 10 SECONDS, dateTime) AS s FROM bid GROUP BY ALL
) B1 ON B.price = B1.m WHERE B.dateTime BETWEEN B1.s AND B1.s + INTERVAL 10 SECONDS

-- q8: persons who sold in the window in which they came
SELECT P.id, P.name, P.starttime FROM (
  SELECT id, name, window.start AS starttime, window.end AS endtime
  FROM person GROUP BY id, name, window(dateTime, '10 seconds')
) P JOIN (
  SELECT seller, window.start AS starttime, window.end AS endtime
  FROM auction GROUP BY seller, window(dateTime, '10 seconds')
) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime
-- in DuckDB
SELECT DISTINCT P.id, P.name, time_bucket(INTERVAL 10 SECONDS, P.dateTime) FROM person P JOIN auction A
ON P.id = A.seller
AND time_bucket(INTERVAL 10 SECONDS, P.dateTime) = time_bucket(INTERVAL 10 SECONDS, A.dateTime)

-- q9: the winning bid of each auction
SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra,
  auction, bidder, price, bid_dateTime, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
    row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC, B.bidder, B.extra) AS rownum
  FROM auction A, bid B WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
) WHERE rownum <= 1

-- q10: bids with day and minute, as a partitioned file would have them
SELECT auction, bidder, price, dateTime, extra,
  date_format(dateTime, 'yyyy-MM-dd') AS day, date_format(dateTime, 'HH:mm') AS minute
FROM bid
-- in DuckDB
SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'), strftime(dateTime, '%H:%M')
FROM bid

-- q11: bids of each session of a bidder
SELECT bidder, count(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds')
-- in DuckDB
WITH b AS (
  SELECT bidder, dateTime,
    lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) + INTERVAL 10 SECONDS < dateTime AS first
  FROM bid
), s AS (
  SELECT bidder, dateTime,
    count(*) FILTER (WHERE first) OVER (PARTITION BY bidder ORDER BY dateTime RANGE UNBOUNDED PRECEDING) AS n
  FROM b
)
SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECONDS FROM s GROUP BY bidder, n

-- q12: bids of each window of a bidder
SELECT bidder, count(*) AS bid_count, window.start AS starttime, window.end AS endtime
FROM bid GROUP BY bidder, window(dateTime, '10 seconds')
-- in DuckDB
SELECT bidder, count(*), time_bucket(INTERVAL 10 SECONDS, dateTime) AS s, s + INTERVAL 10 SECONDS
FROM bid GROUP BY ALL

-- q13: bids with a table beside them
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid B JOIN side_input S ON mod(B.auction, 10) = S.key

-- q14: what a function in Python was for: the time of day, and how often a letter stands in a text
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN hour(dateTime) >= 8 AND hour(dateTime) <= 18 THEN 'dayTime'
    WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000

-- q15: figures of each day
SELECT date_format(dateTime, 'yyyy-MM-dd') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY date_format(dateTime, 'yyyy-MM-dd')
-- in DuckDB
SELECT strftime(dateTime, '%Y-%m-%d') AS day, count(*),
  count(*) FILTER (WHERE price < 10000), count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  count(*) FILTER (WHERE price >= 1000000), count(DISTINCT bidder),
  count(DISTINCT bidder) FILTER (WHERE price < 10000),
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000),
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000), count(DISTINCT auction),
  count(DISTINCT auction) FILTER (WHERE price < 10000),
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000),
  count(DISTINCT auction) FILTER (WHERE price >= 1000000)
FROM bid GROUP BY day

-- q16: figures of each channel and day
SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day, max(date_format(dateTime, 'HH:mm')) AS minute,
  count(*) AS total_bids, count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions
FROM bid GROUP BY channel, date_format(dateTime, 'yyyy-MM-dd')
-- in DuckDB
SELECT channel, strftime(dateTime, '%Y-%m-%d') AS day, max(strftime(dateTime, '%H:%M')), count(*),
  count(*) FILTER (WHERE price < 10000), count(DISTINCT bidder),
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000), count(DISTINCT auction),
  count(DISTINCT auction) FILTER (WHERE price < 10000)
FROM bid GROUP BY channel, day

-- q17: figures of each auction and day
SELECT auction, date_format(dateTime, 'yyyy-MM-dd') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, date_format(dateTime, 'yyyy-MM-dd')
-- in DuckDB
SELECT auction, strftime(dateTime, '%Y-%m-%d') AS day, count(*),
  count(*) FILTER (WHERE price < 10000), count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  count(*) FILTER (WHERE price >= 1000000), min(price), max(price), avg(price), sum(price)
FROM bid GROUP BY auction, day

-- q18: the last bid of each bidder for each auction
SELECT auction, bidder, price, channel, url, dateTime, extra FROM (
  SELECT *, row_number() OVER (
    PARTITION BY bidder, auction ORDER BY dateTime DESC, price, channel, url, extra
  ) AS rank_number FROM bid
) WHERE rank_number <= 1

-- q19: the ten highest bids of each auction
SELECT * FROM (
  SELECT *, row_number() OVER (
    PARTITION BY auction ORDER BY price DESC, dateTime, bidder, channel, url, extra
  ) AS rank_number FROM bid
) WHERE rank_number <= 10

-- q20: bids with their auctions
SELECT auction, bidder, price, channel, url, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
  itemName, description, initialBid, reserve, A.dateTime AS auction_dateTime, expires, seller, category,
  A.extra AS auction_extra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 10

-- q21: the channel's number, by name or from the address
SELECT auction, bidder, price, channel,
  CASE
    WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
    WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')

-- q22: the folders of the address
SELECT auction, bidder, price, channel,
  split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bid
