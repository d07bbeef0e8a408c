-- q11, user sessions: how many bids each user makes while active, with no more than ten seconds in between.
CREATE TABLE q11 (
    bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)
) WITH ('connector' = 'blackhole');

INSERT INTO q11
SELECT B.bidder, COUNT(*) AS bid_count,
    SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) AS starttime,
    SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) AS endtime
FROM bid AS B
GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND);
