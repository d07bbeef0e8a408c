-- q23, three-way join: every bid of a person who sells something, too, with each of the auctions.
CREATE TABLE q23 (
    bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), name STRING, city STRING, state STRING,
    auction BIGINT, itemName STRING, category BIGINT, expires TIMESTAMP(3)
) WITH ('connector' = 'blackhole');

INSERT INTO q23
SELECT B.bidder, B.price, B.`dateTime`, P.name, P.city, P.state, A.id AS auction, A.itemName, A.category, A.expires
FROM bid AS B
JOIN person AS P ON P.id = B.bidder
JOIN auction AS A ON A.seller = B.bidder;
