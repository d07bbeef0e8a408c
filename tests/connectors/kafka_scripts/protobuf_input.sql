-- topic all
-- message all {"value": "hex:720d756e6b6e6f776e206669656c64980601920603616263"}
-- message all {"value": "hex:720c756e6b6e6f776e20656e756d800105880105a201020105"}
-- message all {"value": "hex:7208756e7061636b65649801029801039a010104"}
-- message all {"value": "hex:72066d6572676564920105080112016192010312016210011002"}
-- message all {"value": "hex:7204776964651087808080100802"}
-- message all {"value": "hex:72036d6170b201050a016b1001b201050a016b1002b20100ba01020804"}
-- message all {"value": "hex:72056f6e656f66c00103ca01046c617374"}
-- message all {"value": "hex:720f77726f6e67207769726520747970651203616263"}
-- message all {"value": "hex:7202fffe"}
-- message all {"value": "hex:720763757420"}
-- message all {"value": "hex:7203656e64"}
CREATE TABLE messages (
  text STRING, flag BOOLEAN, i32 INT, by_name STRING, by_number INT, enums ARRAY<STRING>, numbers ARRAY<BIGINT>,
  `inner` ROW<x INT, tags ARRAY<STRING>>, counts MAP<STRING, INT>, `rows` MAP<BIGINT, ROW<x INT>>, `left` INT, `right` STRING
) WITH (
  'connector' = 'kafka', 'topic' = '${RUN}-all', 'properties.bootstrap.servers' = '${SERVERS}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'protobuf', 'protobuf.message-class-name' = 'test.All', 'protobuf.ignore-parse-errors' = 'true'${DESCRIPTORS}
);

SELECT * FROM messages;
