-- topic given 2
-- message given {"partition": 0, "value": "{\"v\":1}", "timestamp": 1600000000123, "headers": [["h", "x"], ["n", null]]}
-- message given {"partition": 0, "value": "{\"v\":2}", "timestamp": 1600000001000, "headers": [["h", "1"], ["h", "2"]]}
-- message given {"partition": 1, "value": "{\"v\":3}", "timestamp": 1}
CREATE TABLE given (
  v INT,
  place BIGINT METADATA FROM 'offset' VIRTUAL,
  `topic` STRING METADATA VIRTUAL,
  `partition` BIGINT METADATA VIRTUAL,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  kind STRING METADATA FROM 'timestamp-type' VIRTUAL,
  epoch INT METADATA FROM 'leader-epoch' VIRTUAL,
  h MAP<STRING, BYTES> METADATA FROM 'headers',
  twice AS v * 2
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-given', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'value.format' = 'json'
);

SELECT v, place, SPLIT_INDEX(`topic`, '-', 1), `partition`, ts, kind, epoch, twice FROM given;
SELECT v, CARDINALITY(h), CAST(h['h'] AS STRING), h['n'] IS NULL, h['none'] IS NULL FROM given;
SELECT `partition`, MAX(place), COUNT(*) FROM given WHERE kind = 'CreateTime' GROUP BY `partition`;
SELECT place FROM given;
