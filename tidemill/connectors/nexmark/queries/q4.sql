-- q4, average price for a category: of the highest bids that came while their auction was open.
CREATE TABLE q4 (id BIGINT, final BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO q4
SELECT category, AVG(final)
FROM (
    SELECT A.category, MAX(B.price) AS final
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
    GROUP BY A.id, A.category
) AS won
GROUP BY category;
