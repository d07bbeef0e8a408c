-- topic orders
-- topic copies 1 changes
-- message orders {"value": "{\"database\":\"shop\",\"table\":\"orders\",\"type\":\"insert\",\"ts\":1600000000,\"xid\":1,\"commit\":true,\"primary_key_columns\":[\"id\"],\"data\":{\"id\":1,\"v\":\"a\",\"w\":1.5}}"}
-- message orders {"value": "{\"database\":\"shop\",\"table\":\"orders\",\"type\":\"update\",\"ts\":1600000001,\"primary_key_columns\":[\"id\"],\"data\":{\"id\":1,\"v\":\"b\",\"w\":1.5},\"old\":{\"v\":\"a\"}}"}
-- message orders {"value": "{\"database\":\"shop\",\"table\":\"orders\",\"type\":\"insert\",\"ts\":1600000002,\"data\":{\"id\":2,\"v\":\"c\",\"w\":null}}"}
-- message orders {"value": "{\"database\":\"shop\",\"table\":\"orders\",\"type\":\"update\",\"ts\":1600000003,\"data\":{\"id\":2,\"v\":\"c\",\"w\":7},\"old\":{\"w\":null}}"}
-- message orders {"value": "{\"database\":\"shop\",\"table\":\"orders\",\"type\":\"delete\",\"ts\":1600000004,\"data\":{\"id\":1,\"v\":\"b\",\"w\":1.5}}"}
CREATE TABLE orders (
  id INT, v STRING, w DOUBLE,
  db STRING METADATA FROM 'value.database' VIRTUAL,
  tab STRING METADATA FROM 'value.table' VIRTUAL,
  keys ARRAY<STRING> METADATA FROM 'value.primary-key-columns' VIRTUAL,
  sent TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'maxwell-json'
);
CREATE TABLE copies (v STRING, n BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-copies', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'maxwell-json'
);

SELECT id, v, w FROM orders;
SELECT id, db, tab, keys, sent FROM orders;
INSERT INTO copies SELECT v, COUNT(*) FROM orders GROUP BY v;
SELECT * FROM copies;
