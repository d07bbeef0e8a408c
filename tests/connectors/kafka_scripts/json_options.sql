-- topic given
-- topic written
-- message given {"value": "{\"a\":1,\"b\":\"x\",\"ts\":\"2024-01-01T10:00:00.5\"}"}
-- message given {"value": "not json"}
-- message given {"value": "{\"a\":\"2\",\"c\":{\"d\":1}}"}
-- message given {"value": "{\"a\":\"two\"}"}
-- message given {"value": "[{\"a\":3},{\"a\":4}]"}
-- message given {"value": null}
-- message given {"value": ""}
-- message given {"value": "{\"b\":{\"n\":[1,2]},\"a\":5.0}"}
-- message given {"value": "{\"A\":6,\"a\":null,\"a\":7}"}
-- message given {"value": "null"}
CREATE TABLE given (a INT, b STRING, ts TIMESTAMP(3), part INT METADATA FROM 'partition' VIRTUAL) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-given', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true', 'value.json.timestamp-format.standard' = 'ISO-8601'
);
CREATE TABLE written (a INT, d DECIMAL(10, 2), m MAP<STRING, INT>, ts TIMESTAMP(3), n STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-written', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'json.encode.decimal-as-plain-number' = 'true',
  'json.encode.ignore-null-fields' = 'true', 'json.map-null-key.mode' = 'LITERAL', 'json.map-null-key.literal' = 'none'
);

SELECT * FROM given;
SELECT b FROM given;
INSERT INTO written VALUES
  (1, 10000000.00, MAP['k', 1], TIMESTAMP '2024-01-01 00:00:00', 'x'),
  (CAST(NULL AS INT), 0.10, MAP[CAST(NULL AS STRING), 2], TIMESTAMP '2024-01-01 00:00:00.120', CAST(NULL AS STRING));
SELECT * FROM written;
