-- topic given 2
-- message given {"partition": 0, "value": "1", "timestamp": 1600000001000}
-- message given {"partition": 0, "value": "2", "timestamp": 1600000002000}
-- message given {"partition": 0, "value": "3", "timestamp": 1600000003000}
-- message given {"partition": 0, "value": "4", "timestamp": 1600000004000}
-- message given {"partition": 1, "value": "11", "timestamp": 1600000001500}
-- message given {"partition": 1, "value": "12", "timestamp": 1600000003500}
-- message given {"partition": 1, "value": "13", "timestamp": 1600000002500}
-- group g given {"0": 1, "1": 2}
-- group h given {"0": 1, "1": 2}
CREATE TABLE given (v STRING) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-given', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'raw',
  'scan.bounded.mode' = 'latest-offset'
);

SELECT v FROM given;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'group-offsets', 'properties.group.id' = '${RUN}-g') */;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1600000002500') */;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1600000009000') */;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:3;partition:1,offset:0') */;
SELECT v FROM given /*+ OPTIONS('scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:1,offset:2', 'properties.group.id' = '${RUN}-h') */;
