-- topic types
CREATE TABLE types (
  id INT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, f FLOAT, d DOUBLE, num DECIMAL(12, 3), s STRING,
  b BYTES, d1 DATE, t TIME(3), ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3),
  a ARRAY<INT>, m MAP<STRING, DOUBLE>, r ROW<x INT, y ROW<z STRING>>
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-types', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'avro', 'key.fields' = 'id', 'value.format' = 'avro', 'value.avro.timestamp_mapping.legacy' = 'false'
);

INSERT INTO types VALUES
  (1, TRUE, CAST(-128 AS TINYINT), CAST(300 AS SMALLINT), 9223372036854775807, CAST(1.5 AS FLOAT), 0.1e0, 12.500, 'Zoë',
   X'00ff10', DATE '0001-01-01', TIME '23:59:59', TIMESTAMP '2024-02-29 12:34:56.789', TO_TIMESTAMP_LTZ(1600000000123, 3),
   ARRAY[1, CAST(NULL AS INT), 3], MAP['a', 1e10], ROW(7, ROW('deep'))),
  (2, FALSE, CAST(0 AS TINYINT), CAST(0 AS SMALLINT), -1, CAST(1e20 AS FLOAT), 1e-7, -0.001, '',
   X'', DATE '2024-12-31', TIME '00:00:00', TIMESTAMP '1969-12-31 23:59:59', TO_TIMESTAMP_LTZ(-1, 3),
   ARRAY[9], MAP['', 123456789.123e0], ROW(CAST(NULL AS INT), ROW(CAST(NULL AS STRING))));
INSERT INTO types (id) VALUES (3);
SELECT * FROM types;
SELECT id, r.y.z FROM types WHERE flag;
