-- topic clicks 2
-- topic counts
-- message clicks {"partition": 0, "key": "a", "value": "1", "timestamp": 1600000001000}
-- message clicks {"partition": 1, "key": "b", "value": "2", "timestamp": 1600000002000}
-- message clicks {"partition": 0, "key": "a", "value": "3", "timestamp": 1600000012000}
-- message clicks {"partition": 1, "key": "a", "value": "4", "timestamp": 1600000009999}
-- message clicks {"partition": 1, "key": "b", "value": "5", "timestamp": 1600000031000}
CREATE TABLE clicks (
  who STRING, n INT, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-clicks', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'raw', 'key.fields' = 'who', 'value.format' = 'csv', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE counts (
  who STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), clicks BIGINT, total INT,
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-counts', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'json', 'key.fields' = 'who;window_start', 'value.format' = 'json'
);

INSERT INTO counts
SELECT who, window_start, window_end, COUNT(*), SUM(n), window_time
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY who, window_start, window_end, window_time;
SELECT * FROM counts;
