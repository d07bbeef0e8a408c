-- q0, pass through: every bid as it comes; what reading and writing cost alone.
CREATE TABLE q0 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING)
  WITH ('connector' = 'blackhole');

INSERT INTO q0
SELECT auction, bidder, price, `dateTime`, extra FROM bid;
