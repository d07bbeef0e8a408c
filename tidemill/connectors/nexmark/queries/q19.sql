-- q19, Top-10: of each auction the ten highest bids and their places.
CREATE TABLE q19 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    `dateTime` TIMESTAMP(3), extra STRING, place BIGINT
) WITH ('connector' = 'blackhole');

INSERT INTO q19
SELECT *
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid
) AS ranked
WHERE place <= 10;
