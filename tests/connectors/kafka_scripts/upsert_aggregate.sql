-- topic bids
-- topic best 2 upsert
-- topic ranks 1 upsert
-- message bids {"value": "{\"before\":null,\"after\":{\"id\":1,\"who\":\"anna\",\"bid\":10},\"op\":\"c\"}"}
-- message bids {"value": "{\"before\":null,\"after\":{\"id\":2,\"who\":\"ben\",\"bid\":20},\"op\":\"c\"}"}
-- message bids {"value": "{\"before\":{\"id\":1,\"who\":\"anna\",\"bid\":10},\"after\":{\"id\":1,\"who\":\"anna\",\"bid\":30},\"op\":\"u\"}"}
-- message bids {"value": "{\"before\":{\"id\":2,\"who\":\"ben\",\"bid\":20},\"after\":null,\"op\":\"d\"}"}
-- message bids {"value": "{\"before\":null,\"after\":{\"id\":3,\"who\":\"cleo\",\"bid\":7},\"op\":\"c\"}"}
CREATE TABLE bids (id INT, who STRING, bid INT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-bids', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-json'
);
CREATE TABLE best (who STRING, best INT, bids BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-best', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'raw', 'value.format' = 'json',
  'sink.buffer-flush.max-rows' = '100', 'sink.buffer-flush.interval' = '1 s'
);
CREATE TABLE ranks (big BOOLEAN, people BIGINT, total INT, PRIMARY KEY (big) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${RUN}-ranks', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'csv', 'value.format' = 'csv'
);

INSERT INTO best SELECT who, MAX(bid), COUNT(*) FROM bids GROUP BY who;
SELECT * FROM best;
INSERT INTO ranks SELECT best > 15, COUNT(*), SUM(best) FROM best GROUP BY best > 15;
SELECT * FROM ranks;
