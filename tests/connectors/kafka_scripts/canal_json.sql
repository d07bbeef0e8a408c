-- topic orders
-- topic copies 1 changes
-- message orders {"value": "{\"data\":[{\"id\":\"1\",\"v\":\"a\",\"w\":\"3.14\"},{\"id\":\"2\",\"v\":\"b\",\"w\":null}],\"database\":\"shop\",\"es\":1600000000000,\"id\":7,\"isDdl\":false,\"mysqlType\":{\"id\":\"INTEGER\",\"v\":\"VARCHAR(255)\"},\"old\":null,\"pkNames\":[\"id\"],\"sql\":\"\",\"sqlType\":{\"id\":4,\"v\":12},\"table\":\"orders\",\"ts\":1600000000500,\"type\":\"INSERT\"}"}
-- message orders {"value": "{\"data\":[{\"id\":\"1\",\"v\":\"c\",\"w\":\"3.14\"}],\"database\":\"shop\",\"es\":1600000001000,\"isDdl\":false,\"old\":[{\"v\":\"a\"}],\"pkNames\":[\"id\"],\"table\":\"orders\",\"ts\":1600000001500,\"type\":\"UPDATE\"}"}
-- message orders {"value": "{\"data\":[{\"id\":\"2\",\"v\":\"b\",\"w\":null}],\"database\":\"shop\",\"es\":1600000002000,\"isDdl\":false,\"old\":null,\"pkNames\":[\"id\"],\"table\":\"orders\",\"ts\":1600000002500,\"type\":\"DELETE\"}"}
-- message orders {"value": "{\"data\":null,\"database\":\"shop\",\"es\":1600000003000,\"isDdl\":true,\"old\":null,\"pkNames\":null,\"sql\":\"CREATE TABLE orders\",\"table\":\"orders\",\"ts\":1600000003500,\"type\":\"CREATE\"}"}
-- message orders {"value": "{\"data\":[{\"id\":\"9\",\"v\":\"z\",\"w\":\"1\"}],\"database\":\"other\",\"es\":1600000004000,\"isDdl\":false,\"old\":null,\"pkNames\":[\"id\"],\"table\":\"orders\",\"ts\":1600000004500,\"type\":\"INSERT\"}"}
CREATE TABLE orders (
  id INT, v STRING, w DOUBLE,
  db STRING METADATA FROM 'value.database' VIRTUAL,
  tab STRING METADATA FROM 'value.table' VIRTUAL,
  keys ARRAY<STRING> METADATA FROM 'value.pk-names' VIRTUAL,
  types MAP<STRING, INT> METADATA FROM 'value.sql-type' VIRTUAL,
  happened TIMESTAMP_LTZ(3) METADATA FROM 'value.event-timestamp' VIRTUAL,
  sent TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'value.format' = 'canal-json', 'value.canal-json.database.include' = 'shop', 'value.canal-json.table.include' = 'ord.*'
);
CREATE TABLE copies (v STRING, n BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-copies', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'canal-json'
);

SELECT id, v, w FROM orders;
SELECT id, db, tab, keys, CARDINALITY(types), happened, sent FROM orders;
INSERT INTO copies SELECT v, COUNT(*) FROM orders GROUP BY v;
SELECT * FROM copies;
