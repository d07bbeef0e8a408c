-- q12, bids in ten seconds of the clock: how many bids of each user are read in every ten seconds.
CREATE TABLE q12 (
    bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)
) WITH ('connector' = 'blackhole');

INSERT INTO q12
SELECT B.bidder, COUNT(*) AS bid_count,
    TUMBLE_START(B.p_time, INTERVAL '10' SECOND) AS starttime,
    TUMBLE_END(B.p_time, INTERVAL '10' SECOND) AS endtime
FROM (SELECT *, PROCTIME() AS p_time FROM bid) AS B
GROUP BY B.bidder, TUMBLE(B.p_time, INTERVAL '10' SECOND);
