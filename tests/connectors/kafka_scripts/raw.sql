-- topic words
-- topic numbers
-- message words {"key": "k1", "value": "v1"}
-- message words {"key": null, "value": "v2"}
-- message words {"key": "k3", "value": null}
-- message words {"key": "", "value": ""}
-- message words {"key": "k\u00e9", "value": "Zo\u00eb\n"}
CREATE TABLE words (k STRING, v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-words', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE numbers (k BIGINT, v INT) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-numbers', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'raw', 'value.raw.endianness' = 'little-endian',
  'value.fields-include' = 'EXCEPT_KEY'
);

SELECT k, v, CHAR_LENGTH(k), CHAR_LENGTH(v) FROM words;
INSERT INTO words VALUES ('new', 'Zoë'), ('gone', CAST(NULL AS STRING)), (CAST(NULL AS STRING), 'no key'), ('', '');
INSERT INTO numbers VALUES (1, 258), (-1, -2), (CAST(NULL AS BIGINT), 5);
SELECT k, v FROM words;
SELECT k, v FROM numbers;
