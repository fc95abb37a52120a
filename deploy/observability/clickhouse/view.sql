-- Events of Postern's gateways over the table of the collector's ClickHouse exporter, whichever way they came: every column
-- is read from the line itself. `time` is the column that the table is ordered by, so name it in every query.
CREATE OR REPLACE VIEW postern_events AS
SELECT
    Timestamp AS time,
    JSONExtractString(Body, 'id') AS id,
    JSONExtractUInt(Body, 'sequence') AS sequence,
    JSONExtractUInt(Body, 'count') AS count,
    JSONExtractString(Body, 'kind') AS kind,
    JSONExtractString(Body, 'decision', 'verdict') AS verdict,
    JSONExtractString(Body, 'decision', 'rule') AS rule,
    JSONExtractString(Body, 'decision', 'reason') AS reason,
    JSONExtractString(Body, 'session') AS session,
    JSONExtractString(Body, 'trace') AS trace,
    JSONExtractString(Body, 'exchange') AS exchange,
    JSONExtractString(Body, 'workload', 'namespace') AS namespace,
    JSONExtractString(Body, 'workload', 'pod') AS pod,
    JSONExtractString(Body, 'destination', 'host') AS host,
    JSONExtractUInt(Body, 'destination', 'port') AS port,
    JSONExtractString(Body, 'http', 'method') AS method,
    JSONExtractString(Body, 'http', 'path') AS path,
    JSONExtractUInt(Body, 'http', 'status') AS status,
    JSONExtractString(Body, 'provider', 'name') AS provider,
    JSONExtractString(Body, 'provider', 'api') AS api,
    JSONExtractString(Body, 'provider', 'model') AS model,
    JSONExtractString(Body, 'provider', 'responseModel') AS response_model,
    JSONExtractString(Body, 'toolCall', 'name') AS tool,
    JSONExtractString(Body, 'toolCall', 'inputSha256') AS input_sha256,
    JSONExtractUInt(Body, 'usage', 'inputTokens') AS input_tokens,
    JSONExtractUInt(Body, 'usage', 'outputTokens') AS output_tokens,
    JSONExtractUInt(Body, 'usage', 'cacheReadTokens') AS cache_read_tokens,
    JSONExtractUInt(Body, 'usage', 'cacheWriteTokens') AS cache_write_tokens,
    JSONExtractUInt(Body, 'payload', 'bytes') AS bytes,
    Body AS event
FROM otel_logs
WHERE startsWith(Body, '{"apiVersion":"postern.dev/event/v1",');
