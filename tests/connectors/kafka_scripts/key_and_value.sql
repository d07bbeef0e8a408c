-- topic pairs
-- message pairs {"key": "{\"a\":1}", "value": "{\"a\":2,\"b\":3}"}
-- message pairs {"key": "{\"a\":4}", "value": "{\"b\":5}"}
-- message pairs {"key": "{\"a\":6,\"x\":1}", "value": "{\"a\":null,\"b\":7}"}
CREATE TABLE pairs (b INT, a INT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-pairs', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'json', 'key.fields' = 'a', 'value.format' = 'json', 'value.fields-include' = 'ALL'
);

SELECT a, b FROM pairs;
INSERT INTO pairs SELECT b * 10, a * 10 FROM pairs;
SELECT a, b FROM pairs;
SELECT a FROM pairs;
