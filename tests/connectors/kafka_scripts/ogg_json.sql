-- topic orders
-- topic copies 1 changes
-- message orders {"value": "{\"table\":\"SHOP.ORDERS\",\"op_type\":\"I\",\"op_ts\":\"2020-05-13 15:40:06.000000\",\"current_ts\":\"2020-05-13 15:40:07.000000\",\"primary_keys\":[\"id\"],\"before\":null,\"after\":{\"id\":1,\"v\":\"a\",\"w\":3.14}}"}
-- message orders {"value": "{\"table\":\"SHOP.ORDERS\",\"op_type\":\"I\",\"op_ts\":\"2020-05-13 15:40:06.500000\",\"current_ts\":\"2020-05-13 15:40:07.500000\",\"primary_keys\":[\"id\"],\"after\":{\"id\":2,\"v\":\"b\",\"w\":null}}"}
-- message orders {"value": "{\"table\":\"SHOP.ORDERS\",\"op_type\":\"U\",\"op_ts\":\"2020-05-13 17:26:27.936849\",\"current_ts\":\"2020-05-13T17:26:36.787654\",\"primary_keys\":[\"id\"],\"before\":{\"id\":1,\"v\":\"a\",\"w\":3.14},\"after\":{\"id\":1,\"v\":\"c\",\"w\":3.14}}"}
-- message orders {"value": "{\"table\":\"SHOP.ORDERS\",\"op_type\":\"T\",\"op_ts\":\"2020-05-13 17:26:27.936849\"}"}
-- message orders {"value": "{\"table\":\"SHOP.ORDERS\",\"op_type\":\"D\",\"op_ts\":\"2020-05-13 17:26:28.000000\",\"before\":{\"id\":2,\"v\":\"b\",\"w\":null},\"after\":null}"}
CREATE TABLE orders (
  id INT, v STRING, w DOUBLE,
  tab STRING METADATA FROM 'value.table' VIRTUAL,
  keys ARRAY<STRING> METADATA FROM 'value.primary-keys' VIRTUAL,
  happened TIMESTAMP_LTZ(6) METADATA FROM 'value.event-timestamp' VIRTUAL,
  sent TIMESTAMP_LTZ(6) METADATA FROM 'value.ingestion-timestamp' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'ogg-json',
  'ogg-json.ignore-parse-errors' = 'true'
);
CREATE TABLE copies (v STRING, n BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-copies', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'ogg-json'
);

SELECT id, v, w FROM orders;
SELECT id, tab, keys, happened, sent FROM orders;
INSERT INTO copies SELECT v, COUNT(*) FROM orders GROUP BY v;
SELECT * FROM copies;
