-- q1, currency conversion: the price of every bid in euros.
CREATE TABLE q1 (auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING)
  WITH ('connector' = 'blackhole');

INSERT INTO q1
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid;
