-- topic given
-- topic written
-- message given {"key": "k;1", "value": "1;'a;b';~;1#2"}
-- message given {"key": "k;2", "value": "2;'it''s';2.50;"}
-- message given {"key": "k;3", "value": "# a comment"}
-- message given {"key": "k;4", "value": "3;x"}
-- message given {"key": "k;5", "value": "four;x;1;1"}
-- message given {"key": "k;6", "value": null}
-- message given {"key": "k;7", "value": "7;;1e2;7"}
-- message given {"key": "k;8", "value": "8;' s ';8.005;~"}
CREATE TABLE given (k STRING, n INT, a INT, b STRING, d DECIMAL(5, 2), l ARRAY<INT>) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-given', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'csv', 'key.fields' = 'k;n', 'key.csv.field-delimiter' = '\;',
  'value.format' = 'csv', 'value.fields-include' = 'EXCEPT_KEY', 'value.csv.field-delimiter' = '\;',
  'value.csv.quote-character' = '''', 'value.csv.null-literal' = '~', 'value.csv.array-element-delimiter' = '#',
  'value.csv.allow-comments' = 'true', 'value.csv.ignore-parse-errors' = 'true'
);
CREATE TABLE written (
  a INT, s STRING, d DOUBLE, b BOOLEAN, d1 DATE, t TIME(0), ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3), l ARRAY<STRING>, y BYTES
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-written', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'csv', 'key.fields' = 's;a', 'value.format' = 'csv', 'value.csv.null-literal' = 'n/a'
);

SELECT * FROM given;
INSERT INTO written VALUES
  (1, 'a,b', 1.5e0, TRUE, DATE '2024-01-02', TIME '03:04:05', TIMESTAMP '2024-01-02 03:04:05.6', TO_TIMESTAMP_LTZ(1600000000123, 3), ARRAY['p', 'q r'], X'0aff'),
  (2, 'say "hi"', -1e-5, FALSE, DATE '1900-01-01', TIME '00:00:00', TIMESTAMP '1900-01-01 00:00:00', TO_TIMESTAMP_LTZ(0, 3), ARRAY[''], X''),
  (3, CAST(NULL AS STRING), CAST(NULL AS DOUBLE), CAST(NULL AS BOOLEAN), CAST(NULL AS DATE), CAST(NULL AS TIME), CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS TIMESTAMP_LTZ(3)), CAST(NULL AS ARRAY<STRING>), CAST(NULL AS BYTES)),
  (4, '', 1e100, TRUE, DATE '9999-12-31', TIME '12:00:00', TIMESTAMP '9999-12-31 23:59:59.999', TO_TIMESTAMP_LTZ(1, 3), ARRAY['x'], X'41');
SELECT * FROM written;
