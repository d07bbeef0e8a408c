-- topic orders
-- topic totals 1 changes
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":1,\"who\":\"anna\",\"amount\":10.5},\"source\":{\"db\":\"shop\",\"schema\":\"public\",\"table\":\"orders\",\"ts_ms\":1600000000000},\"op\":\"r\",\"ts_ms\":1600000000500}"}
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":2,\"who\":\"ben\",\"amount\":5},\"source\":{\"db\":\"shop\",\"table\":\"orders\",\"ts_ms\":1600000001000},\"op\":\"c\",\"ts_ms\":1600000001500}"}
-- message orders {"value": "{\"before\":{\"id\":1,\"who\":\"anna\",\"amount\":10.5},\"after\":{\"id\":1,\"who\":\"anna\",\"amount\":12.25},\"source\":{\"db\":\"shop\",\"table\":\"orders\",\"ts_ms\":1600000002000},\"op\":\"u\",\"ts_ms\":1600000002500}"}
-- message orders {"value": null}
-- message orders {"value": "{\"before\":{\"id\":2,\"who\":\"ben\",\"amount\":5},\"after\":null,\"source\":{\"db\":\"shop\",\"table\":\"orders\",\"ts_ms\":1600000003000},\"op\":\"d\",\"ts_ms\":1600000003500}"}
-- message orders {"value": "{\"before\":null,\"after\":{\"id\":3,\"who\":\"anna\",\"amount\":1},\"source\":{\"db\":\"shop\",\"table\":\"orders\"},\"op\":\"c\"}"}
CREATE TABLE orders (
  id INT, who STRING, amount DECIMAL(10, 2),
  sent TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL,
  happened TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  db STRING METADATA FROM 'value.source.database' VIRTUAL,
  sch STRING METADATA FROM 'value.source.schema' VIRTUAL,
  tab STRING METADATA FROM 'value.source.table' VIRTUAL,
  place BIGINT METADATA FROM 'offset' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-orders', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-json'
);
CREATE TABLE totals (who STRING, n BIGINT, total DECIMAL(38, 2)) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-totals', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-json'
);

SELECT id, who, amount FROM orders;
SELECT id, sent, happened, db, sch, tab, place FROM orders;
INSERT INTO totals SELECT who, COUNT(*), SUM(amount) FROM orders GROUP BY who;
SELECT * FROM totals;
