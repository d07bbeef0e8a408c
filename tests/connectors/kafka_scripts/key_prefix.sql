-- topic pairs
CREATE TABLE pairs (k_id INT, k_name STRING, id BIGINT, name STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-pairs', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'json', 'key.fields' = 'k_name;k_id', 'key.fields-prefix' = 'k_',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE plain (v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-pairs', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'raw'
);

INSERT INTO pairs VALUES (1, 'a', 10, 'x'), (2, CAST(NULL AS STRING), CAST(NULL AS BIGINT), 'y'), (1, 'a', 11, CAST(NULL AS STRING));
SELECT * FROM pairs;
SELECT id, k_id FROM pairs WHERE k_name = 'a';
SELECT k_name FROM pairs;
SELECT v FROM plain;
