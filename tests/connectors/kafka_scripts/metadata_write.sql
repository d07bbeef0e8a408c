-- topic written
CREATE TABLE written (
  k INT,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  v STRING,
  `headers` MAP<STRING, BYTES> METADATA,
  o BIGINT METADATA FROM 'offset' VIRTUAL,
  loud AS UPPER(v)
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-written', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);

INSERT INTO written VALUES
  (1, TO_TIMESTAMP_LTZ(1600000000123, 3), 'a', MAP['q', X'71', 'empty', X'']),
  (2, TO_TIMESTAMP_LTZ(1600000000456, 3), 'b', CAST(NULL AS MAP<STRING, BYTES>)),
  (3, TO_TIMESTAMP_LTZ(1600000000789, 3), CAST(NULL AS STRING), MAP['n', CAST(NULL AS BYTES)]);
INSERT INTO written (v, ts, k) SELECT v, ts + INTERVAL '1' SECOND, k + 10 FROM written WHERE k < 3;
SELECT k, ts, v, CARDINALITY(headers), CAST(headers['q'] AS STRING), CHAR_LENGTH(CAST(headers['empty'] AS STRING)), o, loud FROM written;
