-- topic orders
-- message orders {"key": "1", "value": "{\"schema\":{\"type\":\"struct\"},\"payload\":{\"before\":null,\"after\":{\"id\":1,\"v\":\"a\"},\"source\":{\"table\":\"o\"},\"op\":\"c\",\"ts_ms\":1600000000500}}"}
-- message orders {"key": "1", "value": "{\"schema\":{\"type\":\"struct\"},\"payload\":{\"before\":{\"id\":1,\"v\":\"a\"},\"after\":{\"id\":1,\"v\":\"b\"},\"source\":{\"table\":\"o\"},\"op\":\"u\",\"ts_ms\":1600000001500}}"}
-- message orders {"key": "2", "value": "{\"schema\":null,\"payload\":{\"before\":null,\"after\":{\"id\":2,\"v\":null},\"op\":\"r\"}}"}
-- message orders {"key": "2", "value": "{\"payload\":{\"op\":\"x\"}}"}
CREATE TABLE orders (k STRING, id INT, v STRING, tab STRING METADATA FROM 'value.source.table' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY',
  'value.format' = 'debezium-json', 'value.debezium-json.schema-include' = 'true',
  'value.debezium-json.ignore-parse-errors' = 'true'
);

SELECT k, id, v, tab FROM orders;
SELECT COUNT(*), MAX(v) FROM orders;
