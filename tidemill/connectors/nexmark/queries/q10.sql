-- q10, log to files: every bid into a folder of its day and minute; ${OUTPUT} is the folder of all.
CREATE TABLE q10 (
    auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm STRING
) PARTITIONED BY (dt, hm) WITH (
    'connector' = 'filesystem',
    'path' = '${OUTPUT}',
    'format' = 'csv',
    'partition.time-extractor.timestamp-pattern' = '$dt $hm:00',
    'sink.partition-commit.trigger' = 'partition-time',
    'sink.partition-commit.delay' = '1 min',
    'sink.partition-commit.policy.kind' = 'success-file',
    'sink.rolling-policy.rollover-interval' = '1 min',
    'sink.rolling-policy.check-interval' = '1 min'
);

INSERT INTO q10
SELECT auction, bidder, price, `dateTime`, extra,
    DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid;
