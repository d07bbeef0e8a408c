-- q6, average selling price by seller: of each auction and the ten of its seller that ended before it.
CREATE TABLE q6 (seller BIGINT, average BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO q6
SELECT seller, AVG(final) OVER (
    PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT A.id, A.seller, A.expires, MAX(B.price) AS final
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
    GROUP BY A.id, A.seller, A.expires
) AS sold;
